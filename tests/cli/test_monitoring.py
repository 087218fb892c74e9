"""`monitor`: text and JSON of every figure, exit status by verdict, and the report that has it from then on."""

import json

import pytest

from backend.cli.validation import STATUS
from backend.evaluation.validation.monitoring import triggers
from backend.i18n import Catalogue


@pytest.fixture
def sheet(run, tmp_path):
    """The test records as a later sheet of ids."""
    found = json.loads(run("samples", "latest", "--json")[1])
    file = tmp_path / "later.csv"
    file.write_text("\n".join([found["column"], *found["ids"][:60]]) + "\n")
    return file


def test_every_figure_is_printed_and_the_report_has_it(run, sheet, tmp_path):
    assert json.loads(run("report", "latest")[1])["content"].get("monitoring") is None
    status, text, _ = run("monitor", "latest", sheet, "--cipher", "none", "--feature", "gender", "--json")
    done = json.loads(text)
    assert [t["id"] for t in done["tests"]] == [t.id for t in triggers().tests]
    assert status == STATUS[done["verdict"]] and (done["n"], done["outcomes"]) == (60, 0)
    page = tmp_path / "report.html"
    assert run("report", "latest", "--out", page)[0] == 0
    words = Catalogue("en")
    for key in ("monitoring.figures", "validation.missing_no_outcomes"):
        assert words(key) in page.read_text()
    assert words("policy.at_base_rate", cutoff="").strip(", ") in " ".join(page.read_text().split())
    status, text, _ = run("monitor", "latest", sheet, "--cipher", "none")
    assert words("policy.at_base_rate", cutoff=f"{done['cutoff']:.1%}") in text
    assert status in STATUS.values() and words("validation.missing_no_feature_named") in text
    assert f"{words('validation.test_score_shift')}: {words('validation.measure_psi')}" in text


def test_a_label_that_the_sheet_does_not_have_is_a_mistake(run, sheet):
    status, _, error = run("monitor", "latest", sheet, "--label", "repaid")
    assert status == 1 and "repaid" in error
