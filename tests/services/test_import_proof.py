"""An import proves itself on tables as nasty as real ones: odd category texts, label codes, missing marks, commas and quotes in names."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from inside import runtime_of
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from backend.data.dictionary import Feature, Kind
from backend.data.federation import write_federation
from backend.data.split import Division
from backend.data.table import SampleSheet
from backend.errors import FederationError, ModelError, ParameterError
from backend.services import Glassleaf, model_import
from backend.services.scoring import ScoringRequest
from backend.trees.importers.sklearn_file import export

xgboost = pytest.importorskip("xgboost", reason="XGBoost is installed for tests only; it is not here")
lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is installed for tests only; it is not here")
KEY, BITS, ROWS = 512, 16, 240
PURPOSES = ("none", "?", "NA", "car, new", 'the "other"', "nan")
DEBTORS = ("none", "guarantor", "None")
AMOUNT = 'amount, "net"'
FEATURES = ("age", AMOUNT, "purpose", "debtors")


def table(seed=5):
    """One table as German credit and Adult have them; the label is coded 1 (good) and 2 (bad)."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(ROWS)]})
    frame["age"] = draw.integers(18, 80, ROWS)
    frame[AMOUNT] = np.round(draw.lognormal(7, 1, ROWS), 2)
    frame["purpose"] = draw.choice(PURPOSES, ROWS)
    frame["debtors"] = draw.choice(DEBTORS, ROWS, p=[0.9, 0.05, 0.05])
    lean = (frame.purpose == "none") + 0.8 * (frame.purpose == "?") - (frame.debtors == "None") - frame.age / 40
    frame["class"] = np.where(lean + draw.normal(0, 0.4, ROWS) > -1, 2, 1)
    return frame


@pytest.fixture
def glassleaf(tmp_path):
    opened = Glassleaf(tmp_path / "home", key_floor=KEY, pools=False)
    yield opened
    opened.close()


def federate(glassleaf, folder, frame, name="odd", **wishes):
    frame.to_csv(folder / f"{name}.csv", index=False)
    hosts = {"bureau": (AMOUNT, "debtors")}
    wishes = {"positive": "2"} | wishes
    codes = {"debtors": Feature(name="debtors", meaning="debtors", kind=Kind.CATEGORICAL)}  # none and None differ
    wishes = {"meanings": codes} | wishes
    division = Division("class", ("age", "purpose"), hosts, id_column="id", name=name, **wishes)
    return glassleaf.federations.init(folder / f"{name}.csv", division, folder / name)


def learnt(frame):
    """What a data scientist hands a library: pandas categories, the texts as they are."""
    features = frame[list(FEATURES)].copy()
    for name in ("purpose", "debtors"):
        features[name] = features[name].astype("category")
    return features


def train(library, path, features, y, **options):
    """The library's own raw scores; `path` gets its model file."""
    if library == "XGBoost":
        matrix = xgboost.DMatrix(features, y, enable_categorical=True)
        settings = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "max_cat_to_onehot": 1}
        booster = xgboost.train(settings | options, matrix, 8)
        booster.save_model(path)
        return booster.predict(matrix, output_margin=True).astype(np.float64)
    settings = {"objective": "binary", "verbose": -1, "num_threads": 1, "num_leaves": 6, "min_data_in_leaf": 5}
    plain = features.rename(columns={AMOUNT: "amount"})  # it refuses names with JSON's characters
    booster = lightgbm.train(settings | {"min_data_per_group": 1} | options, lightgbm.Dataset(plain, y), 8)
    booster.save_model(path)
    return booster.predict(plain, raw_score=True)


def scored(glassleaf, name, record):
    """Everybody's encrypted-pipeline margins on plaintext, by id."""
    own = runtime_of(glassleaf, name).table
    request = ScoringRequest(record.id, SampleSheet(own.ids, own, {}, {}, ()), 0.5, "none", KEY)
    batch = glassleaf.scoring.start(request, counted=False).get()
    return np.array([score.margin for score in batch.scores])


LIBRARIES = pytest.mark.parametrize("library", ["XGBoost", "LightGBM"])


@LIBRARIES
def test_categories_spelt_none_question_mark_and_na_score_as_the_library_scores_them(glassleaf, tmp_path, library):
    frame = table()
    federate(glassleaf, tmp_path, frame)
    raw = train(library, tmp_path / "m.json", learnt(frame), frame["class"] == 2)
    record, proof = glassleaf.model_import.import_file("odd", tmp_path / "m.json", features=FEATURES, score_bits=BITS)
    assert np.abs(scored(glassleaf, "odd", record) - raw).max() <= proof.bound
    assert proof.against.startswith(library) and proof.rows == ROWS and proof.auc > 0.8


@LIBRARIES
def test_a_category_that_the_federation_counts_as_missing_is_refused_and_leaves_nothing(glassleaf, tmp_path, library):
    frame = table()
    federate(glassleaf, tmp_path, frame, "said", missing={"purpose": ["?"]})
    train(library, tmp_path / "m.json", learnt(frame), frame["class"] == 2)
    with pytest.raises(ModelError, match=r"found the category '\?'.*take '\?' out of 'missing'"):
        glassleaf.model_import.import_file("said", tmp_path / "m.json", features=FEATURES)
    assert glassleaf.models.all() == []


@LIBRARIES
def test_a_text_that_the_federation_calls_missing_goes_where_the_librarys_missing_values_go(
    glassleaf, tmp_path, library
):
    frame = table()
    federate(glassleaf, tmp_path, frame, missing={"purpose": ["?", "NA"]})
    features = learnt(frame.assign(purpose=frame.purpose.where(~frame.purpose.isin(["?", "NA"]))))
    raw = train(library, tmp_path / "m.json", features, frame["class"] == 2)
    record, proof = glassleaf.model_import.import_file("odd", tmp_path / "m.json", features=FEATURES, score_bits=BITS)
    assert np.abs(scored(glassleaf, "odd", record) - raw).max() <= proof.bound


@LIBRARIES
def test_empty_cells_that_training_turned_into_the_text_nan_are_asked_about_and_mapped(glassleaf, tmp_path, library):
    frame = table()
    frame["purpose"] = frame.purpose.where(~frame.purpose.isin(["nan", "NA"]))  # empty cells in the file …
    federate(glassleaf, tmp_path, frame)
    features = learnt(frame.assign(purpose=frame.purpose.astype(object).fillna("nan")))  # … and a text in training
    raw = train(library, tmp_path / "m.json", features, frame["class"] == 2)
    with pytest.raises(ModelError, match="the model has a category 'nan', which no cell is"):
        glassleaf.model_import.import_file("odd", tmp_path / "m.json", features=FEATURES)
    texts = [None if text == "nan" else text for text in features.purpose.cat.categories]
    (tmp_path / "codes.json").write_text(json.dumps({"purpose": texts}), encoding="utf-8")
    record, proof = glassleaf.model_import.import_file(
        "odd", tmp_path / "m.json", features=FEATURES, categories=tmp_path / "codes.json", score_bits=BITS
    )
    assert np.abs(scored(glassleaf, "odd", record) - raw).max() <= proof.bound


def test_white_space_around_categories_is_cut_as_it_is_around_cells(glassleaf, tmp_path):
    frame = table().assign(purpose=lambda f: " " + f.purpose)  # Adult's way: a space after each comma
    federate(glassleaf, tmp_path, frame)
    raw = train("XGBoost", tmp_path / "m.json", learnt(frame), frame["class"] == 2)
    record, proof = glassleaf.model_import.import_file("odd", tmp_path / "m.json", features=FEATURES, score_bits=BITS)
    assert np.abs(scored(glassleaf, "odd", record) - raw).max() <= proof.bound


def test_codes_that_cells_write_in_another_way_than_the_model_are_refused(glassleaf, tmp_path):
    frame = table().assign(purpose=lambda f: f.purpose.str.upper() + "!")
    federate(glassleaf, tmp_path, frame)
    train("XGBoost", tmp_path / "m.json", learnt(table()), frame["class"] == 2)
    with pytest.raises(ModelError, match=r"'purpose': no cell of the column is one of the model's categories"):
        glassleaf.model_import.import_file("odd", tmp_path / "m.json", features=FEATURES)


@pytest.mark.parametrize("kind", ["XGBoost", "LightGBM", "forest", "boosted"])
def test_a_model_of_the_other_outcome_is_refused_until_it_is_said_what_it_means(glassleaf, tmp_path, kind):
    frame = table()
    federate(glassleaf, tmp_path, frame)
    good = (frame["class"] == 1).astype(int)  # the model speaks for 1, the federation's positive label is 2
    if kind in ("XGBoost", "LightGBM"):
        raw = train(kind, tmp_path / "m.json", learnt(frame)[["age", AMOUNT]], good)
        sign, shift = -1.0, 0.0
    else:
        forest = kind == "forest"
        maker = (
            RandomForestClassifier(6, max_depth=4, random_state=0)
            if forest
            else GradientBoostingClassifier(n_estimators=8)
        )
        model = maker.fit(frame[["age", AMOUNT]], good == 1)
        (tmp_path / "m.json").write_text(json.dumps(export(model)), encoding="utf-8")
        raw = (
            model.predict_proba(frame[["age", AMOUNT]])[:, 1]
            if forest
            else model.decision_function(frame[["age", AMOUNT]])
        )
        sign, shift = -1.0, float(forest)
    wanted = {"features": ("age", AMOUNT), "score_bits": BITS}
    with pytest.raises(ModelError, match=r"expected more than 0\.5.*--label-is 1 .*--label-is 2"):
        glassleaf.model_import.import_file("odd", tmp_path / "m.json", **wanted)
    assert glassleaf.models.all() == []
    record, proof = glassleaf.model_import.import_file("odd", tmp_path / "m.json", label_is="1", **wanted)
    assert (
        record.metrics.auc > 0.5
        and np.abs(scored(glassleaf, "odd", record) - (sign * raw + shift)).max() <= proof.bound
    )
    record, proof = glassleaf.model_import.import_file("odd", tmp_path / "m.json", label_is="2", **wanted)
    assert record.metrics.auc < 0.5 and any(note.code == "ranks_by_chance" for note in proof.notes)
    assert np.abs(scored(glassleaf, "odd", record) - raw).max() <= proof.bound


def test_what_a_label_is_must_be_one_of_its_texts(glassleaf, tmp_path):
    frame = table()
    federate(glassleaf, tmp_path, frame)
    train("XGBoost", tmp_path / "m.json", learnt(frame), frame["class"] == 2)
    with pytest.raises(ParameterError, match="choose one of '1', '2'"):
        glassleaf.model_import.import_file("odd", tmp_path / "m.json", features=FEATURES, label_is="bad")


def test_a_model_that_knows_nothing_is_told_of_and_not_refused(glassleaf, tmp_path):
    frame = table()
    federate(glassleaf, tmp_path, frame)
    for seed in range(40):  # noise that happens to rank a little below chance
        noise = np.random.default_rng(seed).integers(0, 2, ROWS)
        train("XGBoost", tmp_path / "m.json", learnt(frame)[["age", AMOUNT]], noise, max_depth=1)
        try:
            proof = glassleaf.model_import.check("odd", tmp_path / "m.json", features=("age", AMOUNT))
        except ModelError:
            continue
        if proof.auc < 0.5:
            assert any(note.code == "ranks_by_chance" for note in proof.notes)
            return
    pytest.fail("no seed ranked a little below chance")


def test_a_check_proves_and_keeps_nothing(glassleaf, tmp_path):
    frame = table()
    federate(glassleaf, tmp_path, frame)
    train("XGBoost", tmp_path / "m.json", learnt(frame), frame["class"] == 2)
    before = len(glassleaf.audit.entries("odd"))
    proof = glassleaf.model_import.check("odd", tmp_path / "m.json", features=FEATURES)
    assert proof.rows == ROWS and glassleaf.models.all() == [] and len(glassleaf.audit.entries("odd")) == before


@pytest.mark.parametrize("kind", ["XGBoost", "LightGBM", "forest"])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_model_that_never_saw_a_missing_value_says_so_where_records_have_one(glassleaf, tmp_path, kind, gaps):
    frame = table()
    holes = frame.assign(age=frame.age.astype(float).where(np.arange(ROWS) % 4 > 0))
    federate(glassleaf, tmp_path, holes)
    trained = (holes if gaps else frame.fillna(-1))[["age", AMOUNT]]
    if kind == "forest":
        model = RandomForestClassifier(20, max_depth=5, random_state=0).fit(trained, (frame["class"] == 2).astype(int))
        (tmp_path / "m.json").write_text(json.dumps(export(model)), encoding="utf-8")
    else:
        train(kind, tmp_path / "m.json", trained, frame["class"] == 2, max_depth=4)
    proof = glassleaf.model_import.check("odd", tmp_path / "m.json", features=("age", AMOUNT))
    told = [note for note in proof.notes if note.code == "missing_at_guest"]
    assert len(told) == (not gaps)


def test_a_category_that_the_model_never_saw_is_named_at_the_guest_and_not_at_a_host(glassleaf, tmp_path):
    frame = table()
    seen = frame[(frame.purpose != "car, new") & (frame.debtors != "guarantor")]
    federate(glassleaf, tmp_path, frame)
    train("XGBoost", tmp_path / "m.json", learnt(seen), seen["class"] == 2, max_depth=6)
    proof = glassleaf.model_import.check("odd", tmp_path / "m.json", features=FEATURES)
    text = " ".join(note.sentence() for note in proof.notes)
    assert "'purpose' holds texts that are not among the model's categories ('car, new')" in text
    assert "guarantor" not in text


def test_halves_that_do_not_score_as_the_library_are_refused(glassleaf, tmp_path, monkeypatch):
    """A fault in our own reading of a file, which nothing else would show."""
    frame = table()
    federate(glassleaf, tmp_path, frame)
    train("XGBoost", tmp_path / "m.json", learnt(frame), frame["class"] == 2)

    def misread(path, features):
        model = read_model(path, features)
        return replace(model, base_scores=(model.base_scores[0] + 0.01,))

    read_model = model_import.read_model
    monkeypatch.setattr(model_import, "read_model", misread)
    with pytest.raises(ModelError, match=r"240 of 240 records score otherwise than by XGBoost .* by up to 0\.01"):
        glassleaf.model_import.import_file("odd", tmp_path / "m.json", features=FEATURES)
    assert glassleaf.models.all() == []


def test_too_few_joint_records_prove_nothing(glassleaf, tmp_path):
    frame = table().iloc[:8]
    federate(glassleaf, tmp_path, frame)
    train("XGBoost", tmp_path / "m.json", learnt(table()), table()["class"] == 2)
    with pytest.raises(FederationError, match="8 records are held"):
        glassleaf.model_import.import_file("odd", tmp_path / "m.json", features=FEATURES)


def test_codes_read_as_floats_by_pandas_are_refused_and_not_taken_for_missing(glassleaf, tmp_path):
    frame = table()
    codes = {text: float(i) for i, text in enumerate(PURPOSES)}
    written = frame.assign(purpose=frame.purpose.map(codes))  # cells such as 3.0; the model has 3
    federation = federate(glassleaf, tmp_path, written)
    guest = federation.guest
    coded = guest.features[1].model_copy(update={"kind": Kind.CATEGORICAL})
    guest = guest.model_copy(update={"features": (guest.features[0], coded)})
    write_federation(federation.model_copy(update={"guest": guest}), federation.folder)
    train(
        "XGBoost", tmp_path / "m.json", learnt(written.assign(purpose=written.purpose.astype(int))), frame["class"] == 2
    )
    with pytest.raises(ModelError, match="no cell of the column is one of the model's categories"):
        glassleaf.model_import.import_file("odd", tmp_path / "m.json", features=FEATURES)
