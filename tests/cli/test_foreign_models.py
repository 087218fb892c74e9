"""`import` from a shell of models that were trained on other numbers than the cells: asked about, refused or told, never silently wrong."""

import json

import numpy as np
import pandas as pd
import pytest
from homes import copied_home

from backend.data.split import Division
from backend.services import Glassleaf

xgboost = pytest.importorskip("xgboost", reason="XGBoost is installed for tests only; it is not here")
lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is installed for tests only; it is not here")
ROWS = 1_000


def people():
    """Records whose sex is coded 1 and 2 and whose grade 0, 1 and 2; women are late more often."""
    draw = np.random.default_rng(6)
    frame = pd.DataFrame({"sex": draw.choice([1, 2], ROWS), "amount": np.round(draw.lognormal(8, 1, ROWS), 2)})
    frame["share"] = np.round(draw.uniform(5, 95, ROWS), 1)  # percent
    frame["age"] = draw.integers(18, 80, ROWS)
    frame["grade"] = draw.choice([0, 1, 2], ROWS)
    lean = 2.0 * (frame["sex"] == 2) + frame["share"] / 40 - frame["age"] / 30 + np.log(frame["amount"]) / 3
    late = lean + frame["grade"] + draw.normal(0, 0.5, ROWS) > 4.5
    return frame, late


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The federation of these people, in a home of its own that is only copied."""
    folder = tmp_path_factory.mktemp("made")
    frame, late = people()
    frame.insert(0, "id", [f"p{i}" for i in range(ROWS)])
    frame["late"] = np.where(late, "yes", "no")
    frame.to_csv(folder / "t.csv", index=False)
    codes = "name,meaning,kind,categories\nsex,Sex,categorical,1=men;2=women\ngrade,Grade,categorical,0=a;1=b;2=c\n"
    (folder / "codes.csv").write_text(codes, encoding="utf-8")
    division = Division(
        "late", ("sex", "amount", "grade"), {"bureau": ("share", "age")}, "id", "yes", dictionary=folder / "codes.csv"
    )
    with Glassleaf(folder / "home", pools=False) as glassleaf:
        glassleaf.federations.init(folder / "t.csv", division, folder / "home" / "f")
    return folder / "home"


@pytest.fixture
def home(made, tmp_path):
    return copied_home(made, tmp_path / "home")


def trained(path, frame, late, library="lightgbm", categorical=("sex", "grade")):
    """A model file of numbers as a data scientist gives them."""
    if library == "lightgbm":
        settings = {"objective": "binary", "verbose": -1, "num_threads": 1, "num_leaves": 8, "min_data_per_group": 5}
        data = lightgbm.Dataset(frame, late, categorical_feature=list(categorical))
        lightgbm.train(settings, data, 12).save_model(path)
        return path
    kinds = ["c" if name in categorical else "float" for name in frame]
    matrix = xgboost.DMatrix(
        frame.to_numpy(float), late, feature_names=list(frame), feature_types=kinds, enable_categorical=True
    )
    settings = {"objective": "binary:logistic", "max_depth": 4, "nthread": 1}
    xgboost.train(settings, matrix, 12).save_model(path)
    return path


@pytest.fixture
def check(run, home, tmp_path):
    def call(file, *words):
        return run("import", file, "--federation", home / "f", "--check", *words)

    return call


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_a_model_of_the_cells_themselves_is_imported_without_a_note_on_its_numbers(check, tmp_path, library):
    frame, late = people()
    file = trained(tmp_path / "m.json", frame, late, library)
    (tmp_path / "codes.json").write_text(json.dumps({"sex": [None, "1", "2"]}), encoding="utf-8")
    words = () if library == "lightgbm" else ("--categories", tmp_path / "codes.json")
    status, text, error = check(file, *words)
    assert status == 0, error
    assert "other numbers than the cells" not in text


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_codes_that_were_encoded_as_places_are_asked_about(check, tmp_path, library):
    frame, late = people()
    file = trained(tmp_path / "m.json", frame.assign(sex=frame["sex"] - 1), late, library)
    status, text, error = check(file)
    assert (status, text) == (1, "") and "'sex'" in error and "--categories" in error
    (tmp_path / "codes.json").write_text('{"sex": ["1", "2"]}', encoding="utf-8")
    status, _, error = check(file, "--categories", tmp_path / "codes.json")
    assert status == 0, error


def test_codes_of_a_sample_that_lacked_one_are_asked_about_though_the_federation_counts_from_0(check, tmp_path):
    frame, late = people()
    some = frame["grade"] > 0
    encoded = frame[some].assign(grade=frame["grade"][some] - 1, sex=frame["sex"][some])
    status, text, error = check(trained(tmp_path / "m.txt", encoded, late[some]))
    assert (status, text) == (1, "") and "'grade'" in error and "--categories" in error


@pytest.mark.parametrize("column", ["sex", "grade"])
def test_whole_numbers_that_pandas_names_as_categories_are_asked_about(check, tmp_path, column):
    frame, late = people()
    some = frame[column] > 0
    encoded = frame[some].assign(**{column: frame[column][some] - 1})
    encoded = encoded.astype({"sex": "category", "grade": "category"})
    data = lightgbm.Dataset(encoded, late[some])
    settings = {"objective": "binary", "verbose": -1, "num_threads": 1, "num_leaves": 8, "min_data_per_group": 5}
    lightgbm.train(settings, data, 12).save_model(tmp_path / "m.txt")
    status, text, error = check(tmp_path / "m.txt")
    assert (status, text) == (1, "") and f"'{column}'" in error and "--categories" in error


CHANGES = {
    "logarithms": ("amount", np.log1p),
    "shares": ("share", lambda cells: cells / 100),
    "scaled": ("age", lambda cells: (cells - cells.mean()) / cells.std()),
    "encoded labels cut as numbers": ("sex", lambda cells: cells - 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_splits_that_the_cells_cannot_have_made_are_told(check, tmp_path, name):
    column, change = CHANGES[name]
    frame, late = people()
    other = frame.assign(**{column: change(frame[column])})
    numbers = ("grade",) if column == "sex" else ("sex", "grade")
    status, text, error = check(trained(tmp_path / "m.txt", other, late, categorical=numbers), "--json")
    assert status == 0, error
    (note,) = [note for note in json.loads(text)["proof"]["notes"] if "other numbers" in str(note)]
    assert f"cells of '{column}' (" in note


def test_rounds_of_an_old_file_are_counted_and_its_version_is_named(check, tmp_path):
    frame, late = people()
    file = trained(tmp_path / "m.json", frame, late, "xgboost", categorical=())
    document = json.loads(file.read_text(encoding="utf-8"))
    document["version"] = [1, 7, 6]
    document["learner"]["attributes"] = {"best_iteration": "3", "best_ntree_limit": "4"}
    del document["learner"]["gradient_booster"]["model"]["iteration_indptr"]  # as 1.7 has none
    file.write_text(json.dumps(document), encoding="utf-8")
    status, text, error = check(file)
    assert status == 0, error
    assert "iteration 3" in text and "12 trees" in text
    assert "XGBoost 1.7.6" in text and "2.1 to 3.2" in text


def test_a_note_on_missing_values_claims_no_more_than_the_file_shows(check, tmp_path):
    frame, late = people()
    gaps = frame.copy()
    gaps.loc[np.random.default_rng(1).random(ROWS) < 0.05, "age"] = np.nan
    file = trained(tmp_path / "m.json", gaps, late, "xgboost", categorical=())
    status, text, error = check(file, "--json")
    assert status == 0, error
    (note,) = [note for note in json.loads(text)["proof"]["notes"] if "does not show whether" in note]
    assert "'share'" in note and "'age'" not in note
