"""A group that was put together says who is in it and why, at the shell and where the finding is read."""

import json

import numpy as np
import pytest

from backend.evaluation.validation.suite import Figure
from backend.evaluation.validation.words import about_in_words
from backend.i18n import Catalogue
from backend.services import Glassleaf

ROWS = 500


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Empty: the federation is new to it."""
    return tmp_path_factory.mktemp("groups") / "home"


@pytest.fixture
def model(run, tmp_path):
    """A model of people of whom some have no gender: too few to be a group of their own. It is made once."""
    models = json.loads(run("models", "--json")[1] or "[]")
    if models:
        return models[0]["id"]
    draw = np.random.default_rng(4)
    genders = draw.choice(["f", "m", ""], ROWS, p=[0.48, 0.46, 0.06])
    ages = draw.integers(18, 80, ROWS)
    debts = np.round(draw.normal(size=ROWS), 3)
    late = ages / 30 + debts > 2
    rows = [f"p{i},{ages[i]},{genders[i]},{debts[i]},{'yes' if late[i] else 'no'}" for i in range(ROWS)]
    (tmp_path / "t.csv").write_text("\n".join(["id,age,gender,debt,late", *rows]), encoding="utf-8")
    codes = "name,meaning,kind,categories\ngender,Gender,categorical,f=women;m=men;x=others\n"
    (tmp_path / "codes.csv").write_text(codes, encoding="utf-8")
    words = ("--id", "id", "--label", "late", "--positive", "yes", "--guest", "age,gender", "--host", "bureau=debt")
    table = ("init", tmp_path / "t.csv", *words, "--dictionary", tmp_path / "codes.csv", "--out", tmp_path / "f")
    assert run(*table)[0] == 0
    options = ("--trees", "2", "--depth", "2", "--cipher", "none", "--most-named", "1")
    assert run("train", tmp_path / "f", *options)[0] == 0
    return json.loads(run("models", "--json")[1])[0]["id"]


def test_women_are_not_compared_with_a_mixture_without_a_word(run, home, model):
    status, text, error = run("disparity", model, "gender")
    assert status == 0, error
    (line,) = {
        one.split(", n=")[0].strip() for one in text.splitlines() if "all others together" in one and ", n=" in one
    }
    others = ("men" if "women" not in line else "women", "others", "no value if any")
    assert all(name in line for name in others) and "Codes with too few people" in text
    document = json.loads(run("disparity", model, "gender", "--json")[1])
    assert document["rest"]["without_value"] and set(document["rest"]["codes"]) in ({"m", "x"}, {"f", "x"})
    with Glassleaf(home, pools=False) as glassleaf:
        found = [one for one in glassleaf.compliance.assess(model).findings if one.feature == "gender"]
        named = {row.about.en for one in found for row in one.disparities}
        chinese = {row.about.in_language("zh") for one in found for row in one.disparities}
    assert any("all others together" in name for name in named) and any("其余合计" in name for name in chinese)


def test_two_features_together_stand_in_report_and_verdict_and_small_groups_are_named(run, home, model):
    status, text, error = run("disparity", model, "gender", "--with", "age")
    assert status == 0, error
    assert text.startswith("age × gender (guest)")
    document = json.loads(run("disparity", model, "gender", "--with", "age", "--json")[1])
    small = [group["name"] for group in document["small"]]
    assert small and text.count("suppressed, fewer than 20 records") == len(small)
    assert all(group["n"] == 0 for group in document["small"])
    assert all(outcome["group"]["n"] >= 20 for outcome in document["groups"])
    report = json.loads(run("report", model)[1])
    measured = next(line for line in report["content"]["fairness"] if line["feature"] == "age × gender")
    assert measured["meaning"]["en"].endswith(" × Gender")
    hidden = [row for row in measured["measures"] if row["measure"] == "selection rate" and row["value"] is None]
    assert [row["n"] for row in hidden] == [0] * len(small)
    with Glassleaf(home, pools=False) as glassleaf:
        facts = glassleaf.verdicts.of(model).of("outcomes")
    assert "age × gender" in [fact.about for fact in facts]


def test_a_slice_of_the_validation_says_who_was_put_together(run, home, model):
    status, text, error = run("validate", model, "--json")
    assert status in (0, 3, 4), error
    figures = [judged["figure"] for test in json.loads(text)["tests"] for judged in test["figures"]]
    slices = [figure for figure in figures if figure["kind"] == "rest" and figure["feature"] == "gender"]
    assert slices and all(set(figure["apart"]) in ({"f"}, {"m"}) for figure in slices)
    with Glassleaf(home, pools=False) as glassleaf:
        record = glassleaf.models.get(model)
        codes = {code: text.en for code, text in glassleaf.models.feature(record, "gender").categories.items()}
    said = about_in_words(Catalogue("en"), Figure(**slices[0]), "gender", "", codes)
    others = "men" if slices[0]["apart"] == ["f"] else "women"
    assert f"all others together ({others}, others, no value if any)" in said
