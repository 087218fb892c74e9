"""Sample weights from a shell: a column weighs training, figures and card; what cannot weigh a record is refused at its line."""

import json

import numpy as np
import pytest

FAST = ("--trees", 2, "--depth", 2, "--cipher", "none", "--most-named", 1)


@pytest.fixture
def home(tmp_path):
    """Empty: every walk begins with nothing."""
    return tmp_path / "home"


def table(tmp_path, weights=None, n=300):
    """Late payers are rare; a weight undoes that each of them was taken and of the others one in four."""
    draw = np.random.default_rng(0)
    age, income = draw.normal(size=n), draw.normal(size=n)
    late = (age + income + draw.normal(size=n) > 1).astype(int)
    weights = np.where(late, 1, 4) if weights is None else weights
    rows = [f"p{i:03},{age[i]:.3f},{income[i]:.3f},{late[i]},{weights[i]}" for i in range(n)]
    file = tmp_path / "people.csv"
    file.write_text("\n".join(["id,age,income,late,w", *rows]) + "\n")
    return file


@pytest.fixture
def split(run, tmp_path):
    def call(weights=None, *more):
        options = ("--id", "id", "--label", "late", "--guest", "age", "--host", "bank=income", "--out", tmp_path / "f")
        status, _, error = run("init", table(tmp_path, weights), *options, *(more or ("--keep", "w")))
        assert status == 0, error
        return tmp_path / "f"

    return call


def test_a_column_weighs_training_and_figures_and_the_record_card_and_report_say_so(run, split, tmp_path):
    folder = split()
    assert "w" not in (folder / "bank.csv").read_text().splitlines()[0].split(",")
    plain = json.loads(run("train", folder, *FAST, "--json")[1])
    status, text, error = run("train", folder, *FAST, "--weights", "w")
    assert status == 0 and "weighed by the column w" in text, error
    card = json.loads(run("model-card", "latest", "--json")[1])
    assert card["model"]["parameters"]["weights"] == "w" and plain["parameters"]["weights"] == ""
    assert card["model"]["content_hash"] != plain["content_hash"]
    # The share of late payers is that of the population, not that of the sample.
    test = card["parts"][0]
    assert sum(row["weight"] for row in test["calibration"]) == test["counts"][1] + 4 * test["counts"][0]
    assert card["model"]["metrics"]["auc"] == next(f["value"] for f in test["figures"] if f["name"] == "auc")
    assert run("report", "latest", "--out", tmp_path / "r.html", "--format", "html")[0] == 0
    assert "their weight in the column w of the Guest" in (tmp_path / "r.html").read_text()


def test_each_row_that_cannot_be_weighed_is_named_and_nothing_is_trained(run, split):
    weights = ["1"] * 300
    weights[3], weights[10], weights[20], weights[40], weights[50], weights[60] = "0", "-2", "", "two", "1e12", "1e-9"
    folder = split(weights)
    status, text, error = run("train", folder, *FAST, "--weights", "w")
    assert status == 1 and not text
    for line, words in ((5, "not '0'"), (12, "not '-2'"), (22, "no weight"), (42, "two"), (52, "1e12"), (62, "1e-9")):
        assert any(f"Row {line}," in one and words in one for one in error.splitlines()), (line, error)
    assert "No model yet" in run("models")[1]


@pytest.mark.parametrize(
    ("column", "words"), [("nothing", "no column"), ("late", "label"), ("id", "ids"), ("age", "--exclude")]
)
def test_a_column_that_is_something_else_is_refused(run, split, column, words):
    status, _, error = run("train", split(), *FAST, "--weights", column)
    assert status == 1 and words in error


def test_a_feature_that_is_left_out_may_weigh(run, split):
    folder = split(None, "--guest", "age,w")
    status, text, error = run("train", folder, *FAST, "--exclude", "w", "--weights", "w", "--json")
    assert status == 0 and json.loads(text)["parameters"]["weights"] == "w", error


@pytest.mark.parametrize("algorithm", ["forest", "fl-dt", "opboost"])
def test_every_algorithm_takes_weights(run, split, algorithm):
    folder, found = split(), []
    for more in ((), ("--weights", "w")):
        fast = ("--depth", 2, "--most-named", 1, *(() if algorithm == "opboost" else ("--cipher", "none")))
        trees = () if algorithm == "fl-dt" else ("--trees", 2)
        status, text, error = run("train", folder, "--algorithm", algorithm, *fast, *trees, *more, "--json")
        assert status == 0, error
        found.append(json.loads(text)["metrics"]["log_loss"])
    assert found[0] != found[1]
