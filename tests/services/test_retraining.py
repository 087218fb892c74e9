"""A model trained anew without flagged features: same training, measured beside the old one, and the report shows both."""

import json
from dataclasses import asdict

import pytest

from backend.data.demo import write_demo
from backend.errors import Cancelled, ModelError, ParameterError
from backend.protocols.training.forest import ForestParameters
from backend.reports.build import content_of
from backend.results import read_record
from backend.services import Glassleaf, RetrainingRequest, SecureBoostParameters, TrainingRequest
from backend.services.retraining import lineage

PARAMETERS = SecureBoostParameters(trees=8, depth=3, learning_rate=0.4, cipher="none", seed=11)
WITHOUT = ("gender", "marital_status")


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    write_demo(home / "demo", rows=600)
    door = Glassleaf(home, pools=False, actor="ana")
    door.add_federation(home / "demo")
    door.start_training(TrainingRequest("demo", PARAMETERS, exclude=("in_blacklist",))).get()
    yield door
    door.close()


@pytest.fixture(scope="module")
def home(door):
    return door.home


@pytest.fixture(scope="module")
def before(door):
    return door.models()[-1]


@pytest.fixture(scope="module")
def found(door, before):
    return door.start_retraining(RetrainingRequest(before.id, WITHOUT, by=("gender",), cipher="none")).get()


def test_the_new_model_is_what_a_training_without_the_features_gives(door, before, found):
    after = found.after.record
    asked = TrainingRequest("demo", PARAMETERS, before.hosts, ("in_blacklist", *WITHOUT))
    oracle = door.start_training(asked).get()
    assert after.content_hash == oracle.content_hash and repr(after.metrics) == repr(oracle.metrics)
    assert after.parameters == before.parameters and after.exclude == ("in_blacklist", *WITHOUT)
    assert set(WITHOUT).isdisjoint(f.name for _, f in door.guest_model(after.id).dictionary)


def test_the_new_model_knows_which_one_it_replaces_and_the_old_one_stays(door, before, found):
    assert found.after.record.retrained_from == before.id and set(found.without) == set(WITHOUT)
    assert door.lineage(before.id)[1][0].id == found.after.record.id
    assert door.lineage(found.after.record.id)[0] == door.model(before.id)
    assert door.model(before.id).content_hash == before.content_hash


def test_both_are_measured_on_the_same_people_and_by_the_same_groups(door, found):
    assert found.same_people
    rates = [p for p in found.outcomes if p.either.measure == "selection rate"]
    assert {p.feature for p in rates} == {"gender"} and len(rates) == 2
    assert all(p.before is not None and p.after is not None and p.before.n == p.after.n for p in rates)
    assert found.before.bases["disparity", "gender"] == found.after.bases["disparity", "gender"]


def test_it_is_logged_with_both_models(door, before, found):
    [entry] = [e for e in door.audit_entries("demo") if e.action == "retrain"]
    assert (entry.body["model"], entry.body["new_model"]) == (before.id, found.after.record.id)
    assert entry.body["without"] == list(WITHOUT) and entry.actor == "ana"


@pytest.mark.parametrize("which", ["before", "after"])
def test_the_report_of_either_shows_both_side_by_side(door, found, which):
    record = getattr(found, which).record
    [pair] = content_of(door._sources(record)).retrained
    assert (pair.before, pair.after) == (found.before.record.id, found.after.record.id)
    auc = next(f for f in pair.figures if f.name == "auc")
    assert (auc.before, auc.after) == (
        round(found.before.record.metrics.auc, 4),
        round(found.after.record.metrics.auc, 4),
    )
    page = door.export_report(record.id, "html").decode()
    done = dict(door.report_answers(door.report(record.id), "en"))["What was done about it?"]
    assert f"{auc.before:.4f}" in done and f"{auc.after:.4f}" in done and "gender" in done
    assert "not given" in page and "Trained anew without flagged features" in page
    assert door.check_report(page.encode()).drawn == "yes"


def test_a_measurement_is_reported_with_its_basis_and_its_groups_in_both_languages(door, found):
    record = found.after.record
    [fairness] = door.report(record.id).content.fairness
    assert fairness.on.n > 100 and fairness.on.cutoff == 0.5 and fairness.meaning == "Gender of the subscriber"
    assert next(m.about_zh for m in fairness.measures if m.about == "all groups") == "所有群体"
    page = door.export_report(record.id, "html", "zh").decode()
    shown = page.split("<script")[0]
    assert "最小除以最大" in shown and "smallest over largest" not in shown and "selection rate" not in shown


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"without": ()}, "No feature was named"),
        ({"without": ("shoe_size",)}, "shoe_size"),
        ({"without": ("in_blacklist",)}, "was offered to this model's training"),
        ({"without": ("gender",), "by": ("shoe_size",)}, "is in the federation"),
        ({"without": ("gender",), "by": ("gender",), "cutoff": 1.5}, "cut-off is 1.5"),
    ],
)
def test_what_cannot_be_trained_anew_is_refused_before_anything_is_trained(door, before, request_, reason):
    known = len(door.models())
    with pytest.raises(ParameterError, match=reason):
        door.start_retraining(RetrainingRequest(before.id, **request_)).get()
    assert len(door.models()) == known


def test_an_imported_model_is_trained_anew_where_it_comes_from(door, before, monkeypatch):
    real = Glassleaf.model
    monkeypatch.setattr(
        Glassleaf, "model", lambda self, i: read_record({**asdict(real(self, i)), "algorithm": "imported: xgboost"})
    )
    with pytest.raises(ParameterError, match="was not grown here"):
        door.start_retraining(RetrainingRequest(before.id, ("gender",))).get()


def test_a_forest_is_trained_anew_as_a_forest(door):
    grown = door.start_training(TrainingRequest("demo", ForestParameters(trees=2, depth=2, cipher="none"))).get()
    found = door.start_retraining(RetrainingRequest(grown.id, ("gender",))).get()
    assert found.after.record.algorithm == "forest" and found.after.record.parameters == grown.parameters
    assert found.outcomes == ()


def test_it_can_be_stopped_and_leaves_no_model(door, before):
    known = [m.id for m in door.models()]
    job = door.start_retraining(RetrainingRequest(before.id, ("gender",)))
    job.cancel()
    with pytest.raises(Cancelled):
        job.get()
    assert [m.id for m in door.models()] == known


def test_two_models_of_two_federations_are_not_compared(door, before, tmp_path):
    other = write_demo(tmp_path / "other", rows=300)
    toml = tmp_path / "other" / "federation.toml"
    toml.write_text(toml.read_text().replace('name = "demo"', 'name = "second"', 1))
    door.add_federation(tmp_path / "other")
    grown = door.start_training(TrainingRequest("second", PARAMETERS)).get()
    with pytest.raises(ParameterError, match="two models of one federation"):
        door.side_by_side(before.id, grown.id)
    with pytest.raises(ModelError):
        door.side_by_side(before.id, "nowhere")
    assert other.name == "demo"


def test_a_model_whose_forerunner_is_gone_has_none(before, found):
    assert lineage(found.after.record, []) == (None, ())


def test_the_shell_trains_anew_and_compares(run, before):
    words = ("retrain", before.id, "--without", "gender", "--by", "gender", "--cipher", "none", "--json")
    status, text, _ = run(*words)
    told = json.loads(text)
    assert status == 0
    assert told["without"] == ["gender"] and told["same_people"]
    assert told["gain_share"]["gender"][1] is None and told["outcomes"]
    text = run("side-by-side", *told["models"])[1]
    assert "gain of gender" in text and "not given" in text and "the same records" in text
