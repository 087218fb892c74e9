"""A search from end to end: real trainings, groups at the Guest and at a Host, a choice that is registered, logged and kept."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from measurement_contexts import PARAMETERS, TrainedDemo
from release_rule import EVERY_SCORE

from backend.data.dictionary import Feature, Kind
from backend.errors import HostRefused, ParameterError
from backend.evaluation.performance import RESAMPLES, draws
from backend.fairness.alternatives import Tried
from backend.fairness.intervals import simultaneous
from backend.i18n import Catalogue
from backend.protocols.group_sums.grouping import Group
from backend.protocols.training.forest import ForestParameters
from backend.reports.sections.writer import signed
from backend.services import alternatives, tried_models
from backend.services.alternatives import AlternativesRequest
from backend.services.fairness import DisparityRequest, compared_with, group_names
from backend.services.training import TrainingRequest, train
from backend.store.accountant import Limits

REASON = "narrower at a cost that the bank accepts"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    made = TrainedDemo(tmp_path_factory.mktemp("alternatives"))
    yield made
    made.glassleaf.close()


def asked(demo, attribute, **options):
    settings = {"without": (("gender",),), "cutoffs": (0.25,), "cipher": "none", "key_bits": 512, "tolerance": 0.05}
    return AlternativesRequest(demo.record.id, attribute, **settings | options)


@pytest.fixture(scope="module")
def at_host(demo):
    return demo.glassleaf.alternatives.start(asked(demo, "gender", depths=(1,))).get()


@pytest.fixture(scope="module")
def at_guest(demo):
    """A search after decisions were compared with a group that is not the largest."""
    compared = DisparityRequest(demo.record.id, "home_ownership", 0.25, reference="family", cipher="none")
    demo.glassleaf.fairness.start_disparity(compared).get()
    return demo.glassleaf.alternatives.start(asked(demo, "home_ownership", lambdas=(30.0,))).get()


def counted(demo, found, point):
    """The gap from all columns in one hand: the widest group's share of accepted people less the reference's."""
    probabilities = demo.probabilities("test" if found.source == "records" else "validation")
    people = demo.people.loc[probabilities.index]
    codes = people[found.attribute].map(lambda code: str(int(code)) if isinstance(code, float) else str(code))
    shares = {g.name: (probabilities[codes == g.name] < point.cutoff).mean() for g in found.groups}
    return shares[point.group.name] - shares[found.groups[found.reference].name]


def test_every_combination_is_trained_and_the_model_itself_comes_first(demo, at_host):
    settings = [(t.without, t.depth, t.reg_lambda) for t in at_host.tried]
    assert settings == [((), 3, 1.0), ((), 1, 1.0), (("gender",), 3, 1.0), (("gender",), 1, 1.0)]
    assert (at_host.tried[0].model, at_host.tried[0].sha256) == (demo.record.id, demo.record.content_hash)
    oracle = TrainingRequest("demo", PARAMETERS, exclude=("gender",), most_named=EVERY_SCORE)
    assert demo.glassleaf.training.start(oracle).get().content_hash == at_host.tried[2].sha256


def test_a_search_compares_with_the_group_that_decisions_were_compared_with_or_the_one_that_is_named(demo, at_guest):
    groups, largest = at_guest.groups, max(at_guest.groups, key=lambda g: g.n)
    home = Feature(name="home_ownership", meaning="Home", kind=Kind.CATEGORICAL)
    assert groups[at_guest.reference].name == "family" != largest.name
    for named, usual, found in (("", "family", "family"), ("rent", "family", "rent"), ("", "gone", largest.name)):
        request = asked(demo, "home_ownership", reference=named, usual=usual)
        assert groups[tried_models.reference_of(groups, request, home)].name == found
    with pytest.raises(ParameterError, match="There is no group gone"):
        tried_models.reference_of(groups, asked(demo, "home_ownership", reference="gone"), home)


def test_the_second_of_four_bins_is_compared_with_again_and_the_second_of_three_is_another(demo):
    age = Feature(name="age", meaning="Age", kind=Kind.NUMERIC)
    quarters = tuple(Group("bin", str(k), 50 + k) for k in (1, 2, 3, 4))
    request = asked(demo, "age", usual=group_names(quarters, age)[1].en)
    decisions = DisparityRequest(demo.record.id, "age", usual=request.usual)
    for groups, place, name in ((quarters, 1, "2"), (quarters[:3], 2, "")):
        assert tried_models.reference_of(groups, request, age) == place
        assert compared_with(decisions, groups, age) == name


def test_decisions_are_compared_with_the_group_that_a_search_compared_with(demo, at_guest):
    request = DisparityRequest(demo.record.id, "home_ownership", 0.25, cipher="none")
    found = demo.glassleaf.fairness.start_disparity(request).get()
    assert found.gaps[0].reference.name == at_guest.groups[at_guest.reference].name == "family"


def test_gaps_are_those_counted_with_everything_in_one_hand(demo, at_host, at_guest):
    for found, source in ((at_host, "validation"), (at_guest, "records")):
        [decided] = found.decisions
        first = decided.points[0]
        assert found.source == source and first.cutoff == 0.25
        assert first.gap.value == pytest.approx(counted(demo, found, first), abs=1e-9)
        assert first.auc.value == pytest.approx(demo.record.metrics.auc)
        shares = [point.accepted for point in decided.points]
        assert np.ptp(shares) < 0.15  # every model accepts about as many


def test_intervals_that_hold_together_are_around_those_of_one_model_alone(demo, at_host, at_guest):
    """With the attribute at the Guest draws are of the same records throughout; of a Host's sums they are each model's own."""
    for found in (at_host, at_guest):
        first, *others = found.decisions[0].points
        assert first.auc_together is None and first.gap_together is None
        for point in others:
            assert point.auc_together.value == point.auc_change.value
            if point.gap_change is not None and point.gap_change.low < point.gap_change.high:
                alone, together = point.gap_change, point.gap_together
                assert together.high - together.low > alone.high - alone.low
            assert (point.gap_together is None) == (point.gap is None)


def test_with_the_attribute_at_the_guest_gaps_are_drawn_on_the_records_that_quality_was_drawn_on():
    draw, n = np.random.default_rng(1), 300
    labels, codes = (draw.random(n) < 0.4).astype(float), draw.choice(["a", "b"], n, p=[0.7, 0.3])
    ids = tuple(str(i) for i in range(n))
    models = []
    for k in range(3):
        margins = labels + 0.5 * (codes == "a") * (2 - k) + draw.normal(size=n)
        predicted = 1 / (1 + np.exp(-margins))
        tried = Tried(f"c{k}", f"m{k}", "", (), "", 3, 1.0, 1, 2)
        models.append(tried_models.TestedModel(tried, ids, ids, labels, margins, predicted, predicted))
    table = SimpleNamespace(row_of={i: int(i) for i in ids}, columns={"f": codes.astype(object)})
    context = SimpleNamespace(runtime=SimpleNamespace(table=table, guest=SimpleNamespace(name="bank")))
    feature = Feature(name="f", meaning="f", kind=Kind.CATEGORICAL)
    request = AlternativesRequest("m0", "f", cutoffs=(0.6,), seed=11)
    quality = tried_models.resampled(models, 11)
    _, [decided] = tried_models.judged_by_group(context, "bank", feature, request, models, quality, None)

    weights = np.concatenate(list(draws(n, RESAMPLES, 11)))
    members = [codes == "a", codes == "b"]
    wide = []
    for model, point in zip(models, decided.points, strict=True):
        flags = model.predicted < point.cutoff
        shares = [(weights[:, m] @ flags[m]) / weights[:, m].sum(axis=1) for m in members]
        wide.append(np.abs(shares[1] - shares[0]))
    drawn, values = [], []
    for k, point in enumerate(decided.points[1:], start=1):
        drawn += [quality[k][0].draws - quality[0][0].draws, wide[k] - wide[0]]
        values += [point.auc_change.value, point.gap_change.value]
    low, high = simultaneous(np.array(values), np.stack(drawn, axis=1))
    shown = [figure for p in decided.points[1:] for figure in (p.auc_together, p.gap_together)]
    assert [figure.low for figure in shown] == pytest.approx(list(low)) and min(high - low) > 0
    assert [figure.high for figure in shown] == pytest.approx(list(high))


@pytest.mark.slow
def test_under_encryption_a_search_finds_the_same(demo, at_host):
    encrypted = demo.glassleaf.alternatives.start(asked(demo, "gender", depths=(1,), cipher="paillier")).get()
    assert encrypted.decisions == at_host.decisions and encrypted.groups == at_host.groups


def test_models_whose_sums_would_tell_of_few_people_are_not_asked_about(demo, at_host):
    """Here the Host's sums would differ by less than twenty of 285 people for some models; the Guest's own attribute has no such bound."""
    again = demo.glassleaf.alternatives.start(asked(demo, "gender", lambdas=(2.0,), without=())).get()
    [decided] = again.decisions
    assert decided.points[1].gap is None and decided.points[1].auc.value > 0.5 and not decided.points[1].frontier


def test_a_search_is_kept_and_logged_without_a_figure(demo, at_host, at_guest):
    assert at_guest in demo.glassleaf.alternatives.searches(demo.record.id)
    entries = [e.body for e in demo.glassleaf.audit.entries("demo") if e.action == "alternatives"]
    of_guest = next(body for body in entries if body["feature"] == "home_ownership")
    assert of_guest["tried"] == {t.model: t.sha256 for t in at_guest.tried}
    assert not any(isinstance(value, float) for value in of_guest.values())


def test_a_host_that_would_not_answer_is_found_out_before_anything_is_trained(demo, monkeypatch):
    later, host = datetime.now(UTC).date() + timedelta(days=40), demo.runtime._simulated.hosts["telecom"]
    monkeypatch.setattr(host.accountant, "limits", Limits(1))  # as a real Host counts
    monkeypatch.setattr(host.accountant, "_today", lambda: later)
    request, trainings = asked(demo, "gender", depths=(1,), without=()), []
    monkeypatch.setattr(alternatives, "train", lambda *given: trainings.append(given) or train(*given))
    assert demo.glassleaf.alternatives.start(request).get().decisions  # to ask ahead takes nothing off the allowance
    assert len(trainings) == 2
    until = later + timedelta(days=28)
    said = rf"Nothing was begun: telecom refused: .* 28 days.* wait until {until} at least\."
    # neither at another cut-off, nor with and then without a feature to take the difference
    for other in (replace(request, cutoffs=(0.4,)), replace(request, depths=(), without=(("gender",),))):
        with pytest.raises(HostRefused, match=rf"{said} The last .*: alternatives of {request.model_id}"):
            demo.glassleaf.alternatives.start(other).get()
    assert len(trainings) == 2

    later = until  # the day on which it answers again
    disparity = DisparityRequest(demo.record.id, "gender", 0.25, cipher="none")
    demo.glassleaf.fairness.start_disparity(disparity).get()
    assert (
        demo.glassleaf.alternatives.start(request).get().decisions
    )  # of validation records, which disparity leaves alone
    assert len(trainings) == 4


def test_a_candidate_can_be_opened_before_it_is_registered_and_chosen_with_a_reason(demo, at_guest):
    service, models = demo.glassleaf.alternatives, demo.glassleaf.models
    name = at_guest.tried[-1].name
    opened = service.opened(demo.record.id, "home_ownership", name)
    assert not opened.registered and opened.importance and opened.record.id not in {m.id for m in models.all()}
    with pytest.raises(ParameterError, match="Give a reason"):
        service.choose(demo.record.id, "home_ownership", name, "good")
    record = service.choose(demo.record.id, "home_ownership", name, REASON)
    assert record.content_hash == at_guest.tried[-1].sha256 and record.retrained_from == demo.record.id
    assert models.get(record.id) == record and record.parameters["reg_lambda"] == 30.0
    assert record.release is not None and models.test_ids(record) == models.test_ids(demo.record)
    kept = next(s for s in service.searches(demo.record.id) if s.attribute == "home_ownership")
    assert (kept.choice.name, kept.choice.model, kept.choice.reason) == (name, record.id, REASON)
    assert service.opened(demo.record.id, "home_ownership", name).registered
    actions = [(e.action, e.body) for e in demo.glassleaf.audit.entries("demo")][-2:]
    assert [action for action, _ in actions] == ["train", "alternative-choice"]
    assert actions[0][1]["traffic"] and actions[1][1]["chosen"] == record.id and REASON not in str(actions)
    assert demo.glassleaf.model_cards.get(record.id).parts


def test_keeping_the_model_is_a_choice_too(demo, at_host):
    before = len(demo.glassleaf.models.all())
    demo.glassleaf.alternatives.choose(demo.record.id, "gender", "c0", "no alternative is worth its AUC")
    assert len(demo.glassleaf.models.all()) == before


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"without": ()}, "1 model would be trained"),
        ({"depths": tuple(range(1, 9)), "lambdas": (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)}, "so that 2 to 64 are"),
        ({"without": (("nobody",),)}, "nobody: not offered"),
        ({"constraints": ("nobody=1",)}, "nobody: not offered"),
        ({"constraints": ("income=3",)}, "constraints holds income=3"),
        ({"reference": "women"}, "gender has no group women; its codes are"),
        ({"cutoffs": (1.0,)}, "cut-off is 1"),
        ({"attribute": "nobody"}, "nobody is not a feature"),
        ({"depths": (99,)}, "depth is 99"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_anything_is_asked_or_trained(demo, options, match, monkeypatch):
    monkeypatch.setattr(alternatives, "Sessions", None)  # a Host that was asked would end the test
    request = asked(demo, options.pop("attribute", "gender"), **options)
    with pytest.raises(ParameterError, match=match):
        demo.glassleaf.alternatives.start(request).get()


def test_an_algorithm_without_the_lever_says_so(demo):
    forest = ForestParameters(trees=2, depth=2, cipher="none")
    record = demo.glassleaf.training.start(TrainingRequest("demo", forest, most_named=EVERY_SCORE)).get()
    with pytest.raises(ParameterError, match="forest has no reg_lambda"):
        demo.glassleaf.alternatives.start(AlternativesRequest(record.id, "gender", lambdas=(2.0,))).get()


def test_a_search_that_is_stopped_leaves_no_search(demo):
    job = demo.glassleaf.alternatives.start(asked(demo, "age"))
    job.cancel()
    job.wait(60)
    assert job.state == "cancelled"
    assert "age" not in {s.attribute for s in demo.glassleaf.alternatives.searches(demo.record.id)}


def test_reports_of_both_models_state_the_search_and_the_choice(demo, at_guest):
    service, name = demo.glassleaf.alternatives, at_guest.tried[1].name
    chosen = service.choose(demo.record.id, "home_ownership", name, REASON)
    for model in (demo.record.id, chosen.id):
        report = demo.glassleaf.reports.make(model)
        line = next(s for s in report.content.searches if s.attribute == "home_ownership")
        assert line.choice.reason == REASON and [a.tried.name for a in line.alternatives] == ["c0", "c1", "c2", "c3"]
        assert line.alternatives[0].point.gap.value == pytest.approx(
            at_guest.decisions[0].points[0].gap.value, abs=1e-4
        )
        for language in ("en", "zh"):
            html = demo.glassleaf.reports.export(model, "html", language).decode()
            assert REASON in html and at_guest.tried[1].model in html
            ends = line.alternatives[1].point.auc_together
            assert ends.low < ends.value < ends.high
            shown = {"low": signed(ends.low), "high": signed(ends.high)}
            assert Catalogue(language)("document.lda_together", **shown) in html
