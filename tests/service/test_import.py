"""A model that XGBoost trained on everybody's columns is imported and scored under encryption."""

import json

import numpy as np
import pandas as pd
import pytest

from backend.data.demo import write_demo
from backend.data.dictionary import Kind
from backend.data.table import SampleSheet
from backend.errors import ModelError, ParameterError
from backend.service import Glassleaf, ScoringRequest

xgboost = pytest.importorskip("xgboost", reason="XGBoost is installed for tests only; it is not here")
KEY = 512
BITS = 12


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The door, and XGBoost's model of the demo's joint table with its raw predictions by id."""
    folder = tmp_path_factory.mktemp("import")
    federation = write_demo(folder / "demo", rows=500)
    door = Glassleaf(folder / "home", key_floor=KEY, pools=False)
    door.add_federation(folder / "demo")
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
    yield door, folder / "model.json", dict(zip(joint.index, booster.predict(matrix, output_margin=True), strict=True))
    door.close()


def test_encrypted_scores_are_the_librarys_raw_predictions_within_the_quantisation_bound(trained):
    door, file, margins = trained
    record, notes = door.import_model("demo", file, score_bits=BITS)
    assert record.algorithm.startswith("imported: XGBoost") and record.n_trees == 12 and isinstance(notes, tuple)
    own = door._catalogue.room("demo").table
    rows = np.array([own.row_of[i] for i in list(margins)[:6]])
    table = own.take(rows)
    for cipher in ("paillier", "rlwe"):
        request = ScoringRequest(record.id, SampleSheet(table.ids, table, {}, {}, ()), 0.5, cipher, KEY)
        for score in door.start_scoring(request).get().scores:
            assert abs(score.logit - margins[score.id]) <= (12 + 1) * 2.0 ** -(BITS + 1) + 1e-5


def test_an_imported_model_is_registered_with_metrics_on_the_joint_records(trained):
    door, file, margins = trained
    record, _ = door.import_model("demo", file, score_bits=BITS)
    assert record.metrics.n == len(margins) == record.parts["joint"] and record.metrics.auc > 0.8
    assert door.model(record.id) == record and record.curve == ()
    assert door.evaluate(record.id, 3, KEY).encrypted.n == 3
    assert set(door.samples(record.id)["part"]) == {"joint", "not in training"}
    assert {f.feature for f in door.compliance(record.id).findings}


def test_two_files_that_differ_in_a_threshold_are_two_models(trained, tmp_path):
    door, file, _ = trained
    document = json.loads(file.read_text())
    first = document["learner"]["gradient_booster"]["model"]["trees"][0]
    first["split_conditions"][0] += 0.25
    (tmp_path / "other.json").write_text(json.dumps(document))
    ids = {door.import_model("demo", f, score_bits=BITS)[0].id for f in (file, tmp_path / "other.json")}
    assert len(ids) == 2


def test_the_guests_half_of_an_import_holds_no_threshold_of_a_host(trained):
    door, file, _ = trained
    record, _ = door.import_model("demo", file, score_bits=BITS)
    model = door.guest_model(record.id)
    own = {f.name for p, f in model.dictionary if p == model.guest}
    assert {rule.feature for rule in model.rules.values()} <= own
    assert any(split.owner != model.guest for tree in model.trees for split in tree.nodes if hasattr(split, "owner"))


def test_what_cannot_be_imported_is_refused_in_words_and_leaves_nothing(trained, tmp_path):
    door, file, _ = trained
    before = len(door.models())
    (tmp_path / "half.json").write_bytes(file.read_bytes()[:5000])
    with pytest.raises(ModelError, match=r"half\.json"):
        door.import_model("demo", tmp_path / "half.json")
    with pytest.raises(ParameterError, match="from 4 to 24"):
        door.import_model("demo", file, score_bits=3)
    assert len(door.models()) == before
