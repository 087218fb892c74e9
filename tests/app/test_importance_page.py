"""The Importance page: every measure with its whiskers, contradictions with their trees, pairs, and curves of both kinds."""

import pytest

from app import session
from app.panels import frame, importance, importance_curves
from app.texts import Texts, markdown, percent
from backend.explain.dependence import GroupMean, GroupMeans
from backend.explain.permutation import Permuted
from backend.explain.stability import MEASURES
from backend.jobs import Job
from backend.protocols.group_sums.grouping import Group
from backend.services import Glassleaf
from backend.services.explanation import MeansRequest, PermutationRequest
from backend.services.reasons import CohortImportance
from tests.app.conftest import Answers, Opened, World, job_of, put_job
from tests.app.reading_out import everything, says
from tests.app.test_nothing_leaks import leaks

T = Texts("en")
PAIR = T("importance.pair_one")


@pytest.fixture(scope="module")
def worth(glassleaf: Glassleaf, world: World) -> tuple[Permuted, ...]:
    return glassleaf.explanation.start_permutation(
        PermutationRequest(world.record.id, samples=60, repeats=1, cipher="none")
    ).get()


def used(glassleaf: Glassleaf, world: World) -> list[str]:
    return [row.feature for row in glassleaf.explanation.importance(world.record.id) if row.splits]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_has_bars_a_sentence_and_a_table(opened: Opened, measure: str, language: str) -> None:
    at = opened("importance")
    at.get_by_key("language").set_value(language)
    at.get_by_key("importance_measure").set_value(measure)
    at.run()
    assert not at.exception
    assert says(at, "importance.whiskers_none", language)  # six trees
    assert "%" in at.dataframe[0].value.to_csv()


def test_worth_is_offered_then_measured_and_kept(opened: Opened, glassleaf: Glassleaf, world: World) -> None:
    at = opened("importance")
    at.get_by_key("importance_measure").set_value(importance.WORTH)
    at.run()
    at.button(key="worth_go").click().run()
    job = job_of(f"worth:{world.record.id}")
    job.cancel()
    job.wait(60)
    at.run()
    assert not at.exception and job.state in ("cancelled", "done")


def test_what_was_measured_of_worth_is_drawn_by_feature_and_by_party(
    opened: Opened, world: World, worth: tuple[Permuted, ...]
) -> None:
    at = opened("importance")
    at.get_by_key("importance_measure").set_value(importance.WORTH)
    at.run()
    assert not at.exception
    assert says(at, "importance.worth_sentence") and says(at, "importance.whiskers_worth", n=60)
    table = at.dataframe[0].value
    assert len(table) == sum(1 for row in worth if row.feature) and T("importance.column_worth") in table
    assert not leaks(world, everything(at))


def test_each_party_appears_once(opened: Opened, worth: tuple[Permuted, ...], world: World) -> None:
    view = session.view(world.record.id)  # of the home that `opened` has set
    rows = importance.parties(view, worth)
    assert len({row.party for row in rows}) == len(rows) and [row.fall for row in rows] == sorted(
        (row.fall for row in rows), reverse=True
    )


def test_a_contradiction_leads_to_its_trees(opened: Opened, glassleaf: Glassleaf, world: World) -> None:
    at = opened("importance")
    against = [d for d in glassleaf.explanation.directions(world.record.id) if d.contradicts]
    links = [e for e in at.get("page_link") if "tree=" in str(e.proto)]
    trees = {tree + 1 for d in against for tree, _ in d.where}
    assert bool(links) == bool(against)
    assert all(any(f"tree={tree}" in str(e.proto) for tree in trees) for e in links)


def test_pairs_are_shown_with_their_largest_and_all_of_them_once_the_table_is_opened(
    opened: Opened, glassleaf: Glassleaf, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "BOXES_OPEN", False)
    at = opened("importance")
    first = glassleaf.explanation.interactions(world.record.id)[0]
    assert not says(at, "importance.pairs", trees=first.trees)
    at.session_state["importance_pairs_box"] = True  # open
    at.run()
    assert says(at, "importance.pairs", trees=first.trees)
    assert not [table for table in at.dataframe if PAIR in table.value]
    at.session_state["importance_pairs_twin"] = True  # open
    table = next(found.value for found in at.run().dataframe if PAIR in found.value)
    assert not at.exception and len(table) == len(glassleaf.explanation.interactions(world.record.id))


def test_a_feature_of_the_guest_has_a_curve_without_asking_anybody(
    opened: Opened, glassleaf: Glassleaf, world: World
) -> None:
    guest = [
        name
        for name in used(glassleaf, world)
        if glassleaf.models.guest_model(world.record.id).owner_of(name) == "bank"
    ]
    at = opened("importance")
    for name in guest:
        at.selectbox(key="curve_feature").select(name).run()
        assert not at.exception and says(at, "importance.curve")
        assert not [b for b in at.button if b.key == "means_go"]


def test_the_tallest_bar_under_a_curve_is_said_as_its_axis_does_not_measure_it(
    opened: Opened, glassleaf: Glassleaf, world: World
) -> None:
    opened("importance")
    view = session.view(world.record.id)
    name = next(one for one in used(glassleaf, world) if importance_curves.held_by_guest(view, one))
    found = glassleaf.explanation.partial_dependence(world.record.id, name)
    svg = importance_curves._steps(T, view, view.model.feature(name), found.levels, "")
    assert T("importance.records_bars", share=percent(max(level.share for level in found.levels))) in svg


def test_a_hosts_feature_is_measured_by_groups_that_are_large_enough(
    opened: Opened, glassleaf: Glassleaf, world: World
) -> None:
    hosts = [
        name
        for name in used(glassleaf, world)
        if glassleaf.models.guest_model(world.record.id).owner_of(name) != "bank"
    ]
    at = opened("importance")
    at.selectbox(key="curve_feature").select(hosts[0]).run()
    assert says(at, "importance.means_why")
    found = glassleaf.explanation.start_means(MeansRequest(world.record.id, hosts[0], cipher="none")).get()
    assert found.groups == ()  # 95 test people make no two groups of 50
    at.run()
    assert says(at, "importance.means_none") and not at.exception


def test_means_are_drawn_without_an_edge(opened: Opened, glassleaf: Glassleaf, world: World, answers: Answers) -> None:
    model = glassleaf.models.guest_model(world.record.id)
    name = next(n for n in used(glassleaf, world) if model.owner_of(n) != "bank" and model.feature(n).kind == "numeric")
    groups = tuple(
        GroupMean(Group("bin", str(k), 60), (0.1 * k,), (0.1 * k - 0.05,), (0.1 * k + 0.05,), 0.1 * k)
        for k in (1, 2, 3)
    )
    found = {name: GroupMeans(model.owner_of(name), name, 180, groups)}
    answers["explanation.means"] = lambda model_id: found
    at = opened("importance")
    at.selectbox(key="curve_feature").select(name).run()
    ends = {f"at_{end}": markdown(T("importance.bin", place=k, bins=3)) for end, k in (("low", 1), ("high", 3))}
    assert says(at, "importance.means", low="10.0\u00a0%", high="30.0\u00a0%", **ends)
    assert not at.exception and not leaks(world, everything(at))


def test_contributions_of_a_group_are_shown_once_they_are_summed(opened: Opened, world: World) -> None:
    at = opened("importance")
    at.get_by_key("importance_measure").set_value(importance.SHAP)
    at.run()
    assert not at.exception and says(at, "importance.shap_why")
    name = session.view(world.record.id).importance[0].feature
    found = (CohortImportance(session.view(world.record.id).importance[0].party, name, -0.25, 95, 1e-6, "rlwe", 8192),)
    put_job(f"shap:{world.record.id}", Job(lambda job: found, 1).start().wait(60))
    at.run()
    cipher = frame.cipher(T, "rlwe", 8192)
    assert not at.exception and says(at, "importance.shap_sentence", people=95, mean="−0.250", cipher=cipher)
