"""A model retrained without flagged features: same training, measured beside the old one, and the report shows both."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from answering import Answering
from inside import workspace_of

from backend.data.demo import write_demo
from backend.errors import ApprovalPending, Cancelled, ModelError, ParameterError
from backend.i18n import Catalogue
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.reports.build import content_of
from backend.services import Glassleaf
from backend.services.audit import Auditor
from backend.services.model_difference import DifferenceRequest
from backend.services.retraining import Retraining, RetrainingRequest, training_of
from backend.services.roles import OPERATOR
from backend.services.training import TrainingRequest

PARAMETERS = SecureBoostParameters(trees=8, depth=3, learning_rate=0.4, cipher="none", seed=11)
WITHOUT = ("gender", "marital_status")


@pytest.fixture(scope="module")
def glassleaf(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    write_demo(home / "demo", rows=600)
    glassleaf = Glassleaf(home, pools=False, actor="ana")
    glassleaf.federations.add(home / "demo")
    glassleaf.training.start(TrainingRequest("demo", PARAMETERS, exclude=("in_blacklist",))).get()
    yield glassleaf
    glassleaf.close()


@pytest.fixture(scope="module")
def home(glassleaf):
    return glassleaf.home


@pytest.fixture(scope="module")
def before(glassleaf):
    return glassleaf.models.all()[-1]


@pytest.fixture(scope="module")
def found(glassleaf, before):
    return glassleaf.retraining.start(
        RetrainingRequest(before.id, WITHOUT, by=("gender",), cutoff=0.25, cipher="none")
    ).get()


def test_the_new_model_is_what_a_training_without_the_features_gives(glassleaf, before, found):
    after = found.after.record
    asked = TrainingRequest("demo", PARAMETERS, before.hosts, ("in_blacklist", *WITHOUT))
    oracle = glassleaf.training.start(asked).get()
    assert after.content_hash == oracle.content_hash and repr(after.metrics) == repr(oracle.metrics)
    assert after.parameters == before.parameters and after.exclude == ("in_blacklist", *WITHOUT)
    assert set(WITHOUT).isdisjoint(f.name for _, f in glassleaf.models.guest_model(after.id).dictionary)


def test_the_new_model_knows_which_one_it_replaces_and_the_old_one_stays(glassleaf, before, found):
    assert found.after.record.retrained_from == before.id and set(found.without) == set(WITHOUT)
    assert glassleaf.models.lineage(before.id)[1][0].id == found.after.record.id
    assert glassleaf.models.lineage(found.after.record.id)[0] == glassleaf.models.get(before.id)
    assert glassleaf.models.get(before.id).content_hash == before.content_hash


def test_both_are_measured_on_the_same_people_and_by_the_same_groups(glassleaf, found):
    assert found.same_people
    rates = [p for p in found.outcomes if p.either.measure == "selection rate"]
    assert {p.feature for p in rates} == {"gender"} and len(rates) == 2
    assert all(p.before is not None and p.after is not None and p.before.n == p.after.n for p in rates)
    assert found.before.bases["disparity", "gender"] == found.after.bases["disparity", "gender"]


def test_the_difference_is_measured_on_the_test_people_whom_both_score(glassleaf, before, found):
    assert found.paired_on == found.after.record.metrics.n
    auc = next(f for f in found.figures if f.name == "auc")
    assert auc.paired and auc.low <= auc.after - auc.before <= auc.high
    [own] = [p for p in glassleaf.model_cards.get(before.id).parts if p.part == "test"]
    assert auc.high - auc.low < own.figure("auc").high - own.figure("auc").low
    swapped = next(f for f in glassleaf.reports.compare(found.after.record.id, before.id).figures if f.name == "auc")
    assert (swapped.low, swapped.high, swapped.better) == (-auc.high, -auc.low, -auc.better)
    entries = [e for e in glassleaf.audit.entries("demo") if e.action == "difference"]
    assert (found.after.record.id, before.id) in {(e.body["model"], e.body["other"]) for e in entries}


def test_models_of_other_test_people_are_not_paired(glassleaf, before, found):
    drawn_otherwise = replace(PARAMETERS, trees=1, seed=PARAMETERS.seed + 1)
    other = glassleaf.training.start(TrainingRequest("demo", drawn_otherwise)).get()
    with pytest.raises(ParameterError, match="not tested on the same people"):
        glassleaf.model_differences.start(DifferenceRequest(before.id, other.id)).get()


def test_it_is_logged_with_both_models(glassleaf, before, found):
    [entry] = [e for e in glassleaf.audit.entries("demo") if e.action == "retrain"]
    assert (entry.body["model"], entry.body["new_model"]) == (before.id, found.after.record.id)
    assert entry.body["without"] == list(WITHOUT) and entry.actor == "ana"


@pytest.mark.parametrize("which", ["before", "after"])
def test_the_report_of_either_shows_both_side_by_side(glassleaf, found, which):
    record = getattr(found, which).record
    [pair] = content_of(glassleaf.reports._sources(record)).retrained
    assert (pair.before, pair.after) == (found.before.record.id, found.after.record.id)
    auc = next(f for f in pair.figures if f.name == "auc")
    assert (auc.before, auc.after) == (
        round(found.before.record.metrics.auc, 4),
        round(found.after.record.metrics.auc, 4),
    )
    page = glassleaf.reports.export(record.id, "html").decode()
    done = dict(glassleaf.reports.answers(glassleaf.reports.make(record.id), "en"))["What was done about it?"]
    assert f"{auc.before:.4f}" in done and f"{auc.after:.4f}" in done and "gender" in done
    assert "excluded" in page and Catalogue("en")("document.retrained") in page
    assert "Gender of the subscriber (gender)" in done.partition("AUC")[0]  # by its meaning where it was measured
    assert glassleaf.reports.check(page.encode()).drawn == "yes"


def test_a_measurement_is_reported_with_its_basis_and_its_groups_in_both_languages(glassleaf, found):
    record = found.after.record
    [fairness] = glassleaf.reports.make(record.id).content.fairness
    assert fairness.on.n > 100 and fairness.on.cutoff == 0.25 and fairness.meaning.en == "Gender of the subscriber"
    everybody, chinese = (Catalogue(language)("measure.group_all") for language in ("en", "zh"))
    assert next(m.about.zh for m in fairness.measures if m.about.en == everybody) == chinese
    page = glassleaf.reports.export(record.id, "html", "zh").decode()
    shown = page.split("<script")[0]
    assert Catalogue("zh")("document.gap_reference") in shown and "selection rate" not in shown


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"without": ()}, "Choose at least one feature to exclude"),
        ({"without": ("shoe_size",)}, "shoe_size"),
        ({"without": ("in_blacklist",)}, "not offered to this model's training"),
        ({"without": ("gender",), "by": ("shoe_size",)}, "groups cannot be compared by it"),
        ({"without": ("gender",), "by": ("gender",), "cutoff": 1.5}, "cut-off is 1.5"),
    ],
)
def test_what_cannot_be_retrained_is_refused_before_anything_is_trained(glassleaf, before, request_, reason):
    known = len(glassleaf.models.all())
    with pytest.raises(ParameterError, match=reason):
        glassleaf.retraining.start(RetrainingRequest(before.id, **request_)).get()
    assert len(glassleaf.models.all()) == known


def test_an_imported_model_is_retrained_where_it_comes_from(glassleaf, before):
    imported, model = replace(before, algorithm="imported: xgboost"), glassleaf.models.guest_model(before.id)
    with pytest.raises(ParameterError, match="was not trained here"):
        training_of(imported, model, RetrainingRequest(before.id, ("gender",)), glassleaf.federations.get("demo"))


def test_a_forest_is_retrained_as_a_forest_and_stays_where_an_operator_has_yet_to_allow_what_is_measured(
    glassleaf,
):
    def pending(request, job):
        raise ApprovalPending("shop", 3, datetime.now(UTC))

    parts = glassleaf.models, Auditor(workspace_of(glassleaf), "ana", OPERATOR), glassleaf.training, glassleaf.fairness
    differences = Answering(glassleaf.model_differences, {"measure": pending})
    retraining, waited = Retraining(workspace_of(glassleaf), *parts, differences, glassleaf.reports), []
    grown = glassleaf.training.start(TrainingRequest("demo", ForestParameters(trees=2, depth=2, cipher="none"))).get()
    asked = RetrainingRequest(grown.id, ("gender",), cipher="none")
    found = retraining.start(asked, lambda *of: waited.append(of)).get()
    assert found.after.record.algorithm == "forest" and found.after.record.parameters == grown.parameters
    assert [(before, after, waits.host) for before, after, waits in waited] == [
        (grown.id, found.after.record.id, "shop")
    ]
    assert found.outcomes == ()


def test_it_can_be_stopped_and_leaves_no_model(glassleaf, before):
    known = [m.id for m in glassleaf.models.all()]
    job = glassleaf.retraining.start(RetrainingRequest(before.id, ("gender",)))
    job.cancel()
    with pytest.raises(Cancelled):
        job.get()
    assert [m.id for m in glassleaf.models.all()] == known


def test_two_models_of_two_federations_are_not_compared(glassleaf, before, tmp_path):
    other = write_demo(tmp_path / "other", rows=300)
    toml = tmp_path / "other" / "federation.toml"
    toml.write_text(toml.read_text().replace('name = "demo"', 'name = "second"', 1))
    glassleaf.federations.add(tmp_path / "other")
    grown = glassleaf.training.start(TrainingRequest("second", PARAMETERS)).get()
    with pytest.raises(ParameterError, match="two models of one federation"):
        glassleaf.reports.compare(before.id, grown.id)
    with pytest.raises(ModelError):
        glassleaf.reports.compare(before.id, "nowhere")
    assert other.name == "demo"


def test_a_model_that_was_not_retrained_has_no_forerunner(glassleaf, before):
    assert glassleaf.models.lineage(before.id)[0] is None


def test_the_shell_retrains_and_compares(run, before):
    words = ("retrain", before.id, "--without", "gender", "--by", "gender", "--cipher", "none", "--json")
    status, text, _ = run(*words)
    told = json.loads(text)
    assert status == 0
    assert told["without"] == ["gender"] and told["same_people"]
    assert told["gain_share"]["gender"][1] is None and told["outcomes"]
    text = run("compare-models", *told["models"])[1]
    assert "gain of gender" in text and "not given" in text and "the same records" in text
