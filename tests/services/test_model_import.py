"""A model that XGBoost trained on everybody's columns is imported and scored under encryption."""

import json
import threading

import numpy as np
import pandas as pd
import pytest
from inside import runtime_of
from sqlalchemy import text

from backend.data.csv_file import shown
from backend.data.demo import write_demo
from backend.data.dictionary import Kind
from backend.data.federation import write_federation
from backend.data.label import Label
from backend.data.table import SampleSheet
from backend.errors import ModelError, ParameterError
from backend.jobs import Job
from backend.services import Glassleaf, import_proof
from backend.services.fairness import DisparityRequest, ProxyRequest
from backend.services.measurement import asked_by, is_of_share
from backend.services.scoring import ScoringRequest
from backend.services.validation import ValidationRequest
from backend.store.accountant import GROUPS, Limits

xgboost = pytest.importorskip("xgboost", reason="XGBoost is installed for tests only; it is not here")
KEY = 512
BITS = 12


def of_demo(folder, rows, change=lambda demo: None):
    """A home, and XGBoost's model of the demo's joint table with its raw predictions by id."""
    federation = write_demo(folder / "demo", rows=rows)
    change(folder / "demo")
    glassleaf = Glassleaf(folder / "home", key_floor=KEY, pools=False)
    glassleaf.federations.add(folder / "demo")
    joint = None
    for party in federation.parties:
        own = pd.read_csv(folder / "demo" / party.file, dtype={party.id: str}).set_index(party.id)
        joint = own if joint is None else joint.join(own, how="inner")
    kinds = {f.name: f.kind for _, f in federation.features()}
    names = [n for n in kinds if n in joint and kinds[n] is not Kind.CATEGORICAL]
    matrix = xgboost.DMatrix(
        joint[names].astype(float), (joint[federation.label.column].astype(str) == federation.label.positive)
    )
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 3, "nthread": 1}, matrix, 12)
    booster.save_model(folder / "model.json")
    return (
        glassleaf,
        folder / "model.json",
        dict(zip(joint.index, booster.predict(matrix, output_margin=True), strict=True)),
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What :func:`of_demo` makes."""
    made = of_demo(tmp_path_factory.mktemp("import"), 500)
    yield made
    made[0].close()


@pytest.mark.slow
def test_every_measurement_of_real_peoples_imported_model_is_answered_and_each_person_is_in_one_answer(
    tmp_path, monkeypatch
):
    """Of joint records without parts a third each, by the id: proxies about one, disparity and validation about another."""

    def real(demo):
        file = demo / "federation.toml"
        file.write_text(file.read_text().replace("synthetic = true", "synthetic = false"))

    glassleaf, file, _ = of_demo(tmp_path, 1200, real)
    try:
        record, _ = glassleaf.model_import.import_file("demo", file)
        hosts = runtime_of(glassleaf)._simulated.hosts
        for host in hosts.values():
            monkeypatch.setattr(host.accountant, "limits", Limits(1))
        plain = {"cipher": "none", "key_bits": KEY}
        proxies = glassleaf.fairness.start_proxies(ProxyRequest(record.id, "gender", **plain)).get()
        disparity = glassleaf.fairness.start_disparity(DisparityRequest(record.id, "gender", **plain)).get()
        validated = glassleaf.validation.start(ValidationRequest(record.id, **plain)).get()
        assert proxies.features and not disparity.measured and not validated.unexamined
        parts = glassleaf.models.part_of(record)
        asked = {turn: {i for i in parts if asked_by(i) == turn} for turn in ("validation", "proxies")}
        assert set(parts.values()) == {"joint"} and min(map(len, asked.values())) > 200
        protected = glassleaf.compliance.protected(record.id)
        share = [person for person in asked["proxies"] if is_of_share(person, "gender", protected)]
        assert (disparity.n, proxies.n) == (len(asked["validation"]), len(share))
        with hosts["telecom"].accountant._database.read() as session:
            most = session.execute(
                text(
                    "SELECT MAX(n) FROM (SELECT SUM(asked) AS n FROM answers LEFT JOIN crowds ON crowd = answers.subject "
                    "WHERE kind = :kind GROUP BY COALESCE(crowds.subject, answers.subject), structure)"
                ),
                {"kind": GROUPS},
            ).scalar()
        assert most == 1
    finally:
        glassleaf.close()


def test_encrypted_scores_are_the_librarys_raw_predictions_within_the_quantisation_bound(trained):
    glassleaf, file, margins = trained
    record, proof = glassleaf.model_import.import_file("demo", file, score_bits=BITS)
    assert record.algorithm.startswith("imported: XGBoost") and record.n_trees == 12
    assert proof.rows == len(margins) and proof.against.startswith("XGBoost") and 0 < proof.difference <= proof.bound
    own = runtime_of(glassleaf).table
    rows = np.array([own.row_of[i] for i in list(margins)[:6]])
    table = own.take(rows)
    for cipher in ("paillier", "rlwe"):
        request = ScoringRequest(record.id, SampleSheet(table.ids, table, {}, {}, ()), 0.5, cipher, KEY)
        for score in glassleaf.scoring.start(request).get().scores:
            assert abs(score.margin - margins[score.id]) <= (12 + 1) * 2.0 ** -(BITS + 1) + 1e-5


GRADES = ("top", "middle", "low")
KINDS = {
    "classes": (Label(column="grade", task="classes", classes=GRADES, meaning="a grade"), {"num_class": 3}),
    "number": (Label(column="worth", task="number", unit="EUR", meaning="an amount"), {}),
}


@pytest.fixture(scope="module", params=sorted(KINDS))
def of_kind(request, tmp_path_factory):
    """A home whose demo predicts a grade or an amount, XGBoost's model of it, its predictions by id, and the task."""
    folder, (label, options) = tmp_path_factory.mktemp(request.param), KINDS[request.param]
    federation = write_demo(folder / "demo", rows=300)
    names, joint = [], None
    for party in federation.parties:
        own = pd.read_csv(folder / "demo" / party.file, dtype={party.id: str}).set_index(party.id)
        joint = own if joint is None else joint.join(own, how="left")
        names += [f.name for f in party.features if f.kind is not Kind.CATEGORICAL and f.name in own]
    worth = (joint.monthly_income.fillna(2500) * 12 + 500 * joint.tenure_months.fillna(3)).round(2)
    grade = pd.qcut(worth, 3, labels=False)
    bank = pd.read_csv(folder / "demo" / federation.guest.file, dtype=str)
    bank = bank.assign(worth=worth.to_numpy(), grade=[GRADES[g] for g in grade])
    bank.to_csv(folder / "demo" / federation.guest.file, index=False)
    write_federation(federation.model_copy(update={"label": label}), folder / "demo")
    glassleaf = Glassleaf(folder / "home", key_floor=KEY, pools=False)
    glassleaf.federations.add(folder / "demo")
    objective = "multi:softprob" if request.param == "classes" else "reg:squarederror"
    matrix = xgboost.DMatrix(joint[names].astype(float), grade if request.param == "classes" else worth)
    booster = xgboost.train({"objective": objective, "max_depth": 3, "nthread": 1} | options, matrix, 4)
    booster.save_model(folder / "model.json")
    predictions = booster.predict(matrix).reshape(len(joint), -1).tolist()
    yield glassleaf, folder / "model.json", dict(zip(joint.index, predictions, strict=True)), request.param
    glassleaf.close()


def test_encrypted_classes_and_numbers_are_the_librarys_own(of_kind):
    glassleaf, file, own, task = of_kind
    record, proof = glassleaf.model_import.import_file("demo", file, score_bits=BITS)
    numbered = [dict(note.values) for note in proof.notes if note.code == "classes_are_numbered"]
    expected = [{"last": 2, "classes": tuple(map(shown, GRADES))}] if task == "classes" else []
    assert record.task == task and numbered == expected
    table = runtime_of(glassleaf).table.take(np.arange(5))
    request = ScoringRequest(record.id, SampleSheet(table.ids, table, {}, {}, ()), 0.5, "paillier", KEY)
    scores = glassleaf.scoring.start(request).get().scores
    bound = (4 + 1) * 2.0 ** -(BITS + 1)  # softmax changes by less than its margins do
    for score in scores:
        assert score.predictions == pytest.approx(own[score.id], abs=bound, rel=1e-6)
    if task == "classes":
        assert [s.predicted for s in scores] == [GRADES[int(np.argmax(own[s.id]))] for s in scores]
    else:
        assert record.metrics.r2 > 0.5 and max(s.margin for s in scores) > 10_000


def test_rlwe_names_the_number_of_classes_as_what_it_cannot_hold(of_kind):
    glassleaf, file, own, task = of_kind
    if task == "number":
        pytest.skip("a number is one sum")
    record, _ = glassleaf.model_import.import_file("demo", file, score_bits=16)
    request = ScoringRequest(record.id, glassleaf.samples.of_person(record.id, next(iter(own))), 0.5, "rlwe", KEY)
    with pytest.raises(ParameterError, match="3 sums, one a class") as refused:
        glassleaf.scoring.start(request).get()
    assert "score bits" not in str(refused.value)


def test_a_model_of_another_task_than_the_label_is_refused_by_the_door(trained, of_kind):
    (glassleaf, file, _), (other, other_file, _, _) = trained, of_kind
    for refused, model in [(glassleaf, other_file), (other, file)]:
        before = len(refused.models.all())
        with pytest.raises(ModelError, match=r"found a model that predicts .*, expected .* as the federation's label"):
            refused.model_import.import_file("demo", model)
        assert len(refused.models.all()) == before


def test_an_imported_model_is_registered_with_metrics_on_the_joint_records(trained):
    glassleaf, file, margins = trained
    record, _ = glassleaf.model_import.import_file("demo", file, score_bits=BITS)
    assert record.metrics.n == len(margins) == record.parts["joint"] and record.metrics.auc > 0.8
    assert repr(glassleaf.models.get(record.id)) == repr(record) and record.curve == ()  # NaN differs from itself
    assert glassleaf.scoring.evaluate(record.id, 3, KEY).encrypted.n == 3
    assert set(glassleaf.samples.table(record.id)["part"]) == {"joint", "not in training"}
    assert {f.feature for f in glassleaf.compliance.assess(record.id).findings}


def test_two_files_that_differ_in_a_threshold_are_two_models(trained, tmp_path):
    glassleaf, file, _ = trained
    document = json.loads(file.read_text())
    first = document["learner"]["gradient_booster"]["model"]["trees"][0]
    first["split_conditions"][0] += 0.25
    (tmp_path / "other.json").write_text(json.dumps(document))
    ids = {
        glassleaf.model_import.import_file("demo", f, score_bits=BITS)[0].id for f in (file, tmp_path / "other.json")
    }
    assert len(ids) == 2


def test_the_guests_half_of_an_import_holds_no_threshold_of_a_host(trained):
    glassleaf, file, _ = trained
    record, _ = glassleaf.model_import.import_file("demo", file, score_bits=BITS)
    model = glassleaf.models.guest_model(record.id)
    own = {f.name for p, f in model.dictionary if p == model.guest}
    assert {rule.feature for rule in model.rules.values()} <= own
    assert any(split.owner != model.guest for tree in model.trees for split in tree.nodes if hasattr(split, "owner"))


def test_what_cannot_be_imported_is_refused_in_words_and_leaves_nothing(trained, tmp_path):
    glassleaf, file, _ = trained
    before = len(glassleaf.models.all())
    (tmp_path / "half.json").write_bytes(file.read_bytes()[:5000])
    with pytest.raises(ModelError, match=r"half\.json"):
        glassleaf.model_import.import_file("demo", tmp_path / "half.json")
    with pytest.raises(ParameterError, match="from 4 to 24"):
        glassleaf.model_import.import_file("demo", file, score_bits=3)
    assert len(glassleaf.models.all()) == before


def test_a_proof_is_the_same_in_pieces_and_counts_every_row(trained, monkeypatch):
    glassleaf, file, margins = trained
    whole = glassleaf.model_import.check("demo", file, score_bits=BITS)
    monkeypatch.setattr(import_proof, "PIECE_ROWS", 7)
    seen = []

    class Watched(Job):
        def at(self, stage, party="", done=None):
            seen.append((stage, done, self.total))

    assert glassleaf.model_import.check("demo", file, score_bits=BITS, job=Watched(lambda job: None, 0)) == whole
    rows = len(margins)
    assert seen == [("prove", done, rows) for done in (0, *range(7, rows, 7), rows)]


def test_an_import_that_is_stopped_registers_nothing_and_one_that_is_not_counts_to_its_end(trained, monkeypatch):
    glassleaf, file, margins = trained
    before = [record.id for record in glassleaf.models.all()]
    go, begun = threading.Event(), threading.Event()
    walk = import_proof.margins_in_the_clear

    def slowly(parts, tables):
        begun.set()
        go.wait(20)
        return walk(parts, tables)

    with monkeypatch.context() as patch:
        patch.setattr(import_proof, "margins_in_the_clear", slowly)
        job = glassleaf.model_import.start_upload("demo", "m.json", file.read_bytes(), keep=True, score_bits=14)
        assert begun.wait(20)
        job.cancel()
        go.set()
        job.wait(20)
    assert job.state == "cancelled" and [record.id for record in glassleaf.models.all()] == before
    job = glassleaf.model_import.start_upload("demo", "m.json", file.read_bytes(), keep=True, score_bits=14)
    done = job.get()
    assert glassleaf.models.get(done.model_id).score_bits == 14 and done.file == "m.json"
    assert job.through == job.total == len(margins) + len(runtime_of(glassleaf).table.ids) and job.eta.share == 1.0
