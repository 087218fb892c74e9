"""The Importance page: every measure with its whiskers, contradictions with their trees, pairs, and curves of both kinds."""

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.panels import importance
from app.texts import Texts
from backend.services import (
    MEASURES,
    CohortImportance,
    Glassleaf,
    Group,
    GroupMean,
    GroupMeans,
    Job,
    MeansRequest,
    PermutationRequest,
    Permuted,
)
from tests.app.conftest import Opened, World
from tests.app.reading_out import everything
from tests.app.test_nothing_leaks import leaks


@pytest.fixture(scope="module")
def worth(glassleaf: Glassleaf, world: World) -> tuple[Permuted, ...]:
    return glassleaf.start_permutation(PermutationRequest(world.record.id, samples=60, repeats=1, cipher="none")).get()


def said(at: AppTest) -> str:
    return "\n".join(text.value for text in (*at.markdown, *at.caption, *at.info))


def used(glassleaf: Glassleaf, world: World) -> list[str]:
    return [row.feature for row in glassleaf.importance(world.record.id) if row.splits]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_has_bars_a_sentence_and_a_table(opened: Opened, measure: str, language: str) -> None:
    at = opened("importance")
    at.get_by_key("language").set_value(language)
    at.get_by_key("importance_measure").set_value(measure)
    at.run()
    assert not at.exception
    assert Texts(language)("importance.whiskers_none") in said(at)  # six trees
    assert "%" in at.dataframe[0].value.to_csv()


def test_worth_is_offered_then_measured_and_kept(opened: Opened, glassleaf: Glassleaf, world: World) -> None:
    at = opened("importance")
    at.get_by_key("importance_measure").set_value(importance.WORTH)
    at.run()
    at.button(key="worth_go").click().run()
    job = at.session_state[f"job:worth:{world.record.id}"]
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
    words = said(at)
    assert "Without **" in words and "60 people drawn with replacement" in words
    table = at.dataframe[0].value
    assert len(table) == sum(1 for row in worth if row.feature) and "Fall of quality" in table
    assert not leaks(world, everything(at))


def test_each_party_appears_once(opened: Opened, worth: tuple[Permuted, ...], world: World) -> None:
    view = session.view(world.record.id)  # of the home that `opened` has set
    rows = importance.parties(view, worth)
    assert len({row.party for row in rows}) == len(rows) and [row.fall for row in rows] == sorted(
        (row.fall for row in rows), reverse=True
    )


def test_a_contradiction_leads_to_its_trees(opened: Opened, glassleaf: Glassleaf, world: World) -> None:
    at = opened("importance")
    against = [d for d in glassleaf.directions(world.record.id) if d.contradicts]
    links = [e for e in at.get("page_link") if "tree=" in str(e.proto)]
    trees = {tree + 1 for d in against for tree, _ in d.where}
    assert bool(links) == bool(against)
    assert all(any(f"tree={tree}" in str(e.proto) for tree in trees) for e in links)


def test_pairs_are_told_with_their_largest_and_all_of_them_once_the_table_is_opened(
    opened: Opened, glassleaf: Glassleaf, world: World
) -> None:
    at = opened("importance")
    first = glassleaf.interactions(world.record.id)[0]
    assert f"in {first.trees} trees" in said(at)
    assert not [frame for frame in at.dataframe if "One feature" in frame.value]
    at.session_state["importance_pairs_twin"] = True  # open
    table = next(frame.value for frame in at.run().dataframe if "One feature" in frame.value)
    assert not at.exception and len(table) == len(glassleaf.interactions(world.record.id))


def test_a_feature_of_the_guest_has_a_curve_without_asking_anybody(
    opened: Opened, glassleaf: Glassleaf, world: World
) -> None:
    guest = [name for name in used(glassleaf, world) if glassleaf.guest_model(world.record.id).owner_of(name) == "bank"]
    at = opened("importance")
    for name in guest:
        at.selectbox(key="curve_feature").select(name).run()
        assert not at.exception and "If everybody had the same" in said(at)
        assert not [b for b in at.button if b.key == "means_go"]


def test_a_hosts_feature_is_measured_by_groups_that_are_large_enough(
    opened: Opened, glassleaf: Glassleaf, world: World
) -> None:
    hosts = [name for name in used(glassleaf, world) if glassleaf.guest_model(world.record.id).owner_of(name) != "bank"]
    at = opened("importance")
    at.selectbox(key="curve_feature").select(hosts[0]).run()
    assert "nobody can set it here" in said(at)
    found = glassleaf.start_means(MeansRequest(world.record.id, hosts[0], cipher="none")).get()
    assert found.groups == ()  # 95 test people make no two groups of 50
    at.run()
    assert "No two groups of 50 people" in said(at) and not at.exception


def test_means_are_drawn_without_an_edge(
    opened: Opened, glassleaf: Glassleaf, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = glassleaf.guest_model(world.record.id)
    name = next(n for n in used(glassleaf, world) if model.owner_of(n) != "bank" and model.feature(n).kind == "numeric")
    groups = tuple(
        GroupMean(Group("bin", str(k), 60), (0.1 * k,), (0.1 * k - 0.05,), (0.1 * k + 0.05,), 0.1 * k)
        for k in (1, 2, 3)
    )
    found = {name: GroupMeans(model.owner_of(name), name, 180, groups)}
    monkeypatch.setattr(Glassleaf, "means", lambda self, model_id: found)
    at = opened("importance")
    at.selectbox(key="curve_feature").select(name).run()
    words = said(at)
    assert (
        "group 1 of 3 (1 = lowest values)** (10.0 %)" in words
        and "group 3 of 3 (1 = lowest values)** (30.0 %)" in words
    )
    assert not at.exception and not leaks(world, everything(at))


def test_contributions_of_a_group_are_told_once_they_are_added_up(opened: Opened, world: World) -> None:
    at = opened("importance")
    at.get_by_key("importance_measure").set_value(importance.SHAP)
    at.run()
    assert not at.exception and "only the sums over a group" in said(at)
    name = session.view(world.record.id).importance[0].feature
    found = (CohortImportance(session.view(world.record.id).importance[0].party, name, -0.25, 95, 1e-6, "rlwe", 8192),)
    at.session_state[f"job:shap:{world.record.id}"] = Job(lambda job: found, 1).start().wait(10)
    at.run()
    assert not at.exception and "Over 95 test people" in said(at) and "**−0.250** on average" in said(at)
    assert "Added up under RLWE (BGV), ring degree 8,192." in said(at)
