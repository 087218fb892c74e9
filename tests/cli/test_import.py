"""`import` from a shell: it proves a model, refuses one that means the other outcome, and can only check."""

import json

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost", reason="XGBoost is installed for tests only; it is not here")


@pytest.fixture
def home(tmp_path):
    """Empty: the federation is new to it."""
    return tmp_path / "home"


@pytest.fixture
def model(run, tmp_path):
    """A federation whose positive label is the text ``bad``, and XGBoost's model of ``good``."""
    draw = np.random.default_rng(2)
    age, debt = draw.integers(18, 80, 200), draw.normal(size=200)
    bad = age / 30 + debt + draw.normal(0, 0.3, 200) > 1.5
    rows = [f"p{i},{age[i]},{debt[i]:.3f},{'bad' if bad[i] else 'good'}" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["id,age,debt,end", *rows]), encoding="utf-8")
    words = ("--id", "id", "--label", "end", "--positive", "bad", "--guest", "age", "--host", "bureau=debt")
    assert run("init", tmp_path / "t.csv", *words, "--out", tmp_path / "f")[0] == 0
    columns = np.column_stack([age, np.round(debt, 3)])
    matrix = xgboost.DMatrix(columns, ~bad, feature_names=["age", "debt"])
    xgboost.train({"objective": "binary:logistic", "max_depth": 2, "nthread": 1}, matrix, 5).save_model(
        tmp_path / "m.json"
    )
    return ("import", tmp_path / "m.json", "--federation", tmp_path / "f")


def test_a_model_of_the_other_outcome_is_refused_with_the_switch_that_says_so(run, model):
    status, text, error = run(*model)
    assert (status, text) == (1, "") and "--label-is good" in error and "--label-is bad" in error
    status, text, _ = run(*model, "--label-is", "good", "--json")
    document = json.loads(text)
    assert status == 0 and document["metrics"]["auc"] > 0.8
    assert document["proof"]["rows"] == 200 and document["proof"]["difference"] <= document["proof"]["bound"]


def test_a_check_says_what_an_import_would_and_keeps_nothing(run, model):
    status, text, _ = run(*model, "--label-is", "good", "--check", "--json")
    proof = json.loads(text)["proof"]
    assert status == 0 and proof["against"].startswith("XGBoost") and proof["auc"] > 0.8
    assert json.loads(run("models", "--json")[1]) == []
    assert run(*model, "--check")[0] == 1


def test_the_text_names_library_difference_and_bound(run, model):
    status, text, _ = run(*model, "--label-is", "good")
    assert status == 0 and "200 records score as by XGBoost" in text and "is allowed" in text
