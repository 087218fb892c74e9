"""`validate`: text and JSON of every test, exit status by verdict, an operator's file, and the report that has it from then on."""

import json

import pytest

from backend.cli.validation import STATUS
from backend.evaluation.validation.suite import standard
from backend.i18n import Catalogue

FAST = ("validate", "latest", "--cipher", "none", "--samples", "100")


def test_every_test_is_printed_with_its_verdict_and_the_report_has_it(run, tmp_path):
    assert json.loads(run("report", "latest")[1])["content"].get("validation") is None
    status, text, _ = run(*FAST, "--json")
    done = json.loads(text)
    assert [t["id"] for t in done["tests"]] == [t.id for t in standard().tests]
    assert status == STATUS[done["verdict"]] and done["n"] <= 100
    shown = json.loads(run("policy", "show", "latest", "--json")[1])["policy"]
    assert (done["cutoff"], done["policy"]) == (shown["decline_at"], shown["version"])
    reported = json.loads(run("report", "latest")[1])["content"]["validation"]
    assert [(t["id"], t["verdict"]) for t in reported["tests"]] == [(t["id"], t["verdict"]) for t in done["tests"]]
    page = tmp_path / "report.html"
    assert run("report", "latest", "--out", page)[0] == 0
    assert Catalogue("en")("validation.test_weak_spots") in page.read_text() and "29 CFR 1607.4(D)" in page.read_text()


def test_what_was_switched_off_and_tightened_is_printed_with_its_reason(run, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('cutoff = 0.3\n[limits.auc]\nfail = 0.999\n[off]\nproxies = "second line, file 17"\n')
    status, text, _ = run(*FAST, "--config", own)
    words = Catalogue("en")
    assert status == 3 and "AUC and Gini failed" in text.splitlines()[0] and "second line, file 17" in text
    assert words("validation.tightened", listed="auc") in text and "Cut-off 30.0%, another line than" in text
    page = tmp_path / "report.html"
    run("report", "latest", "--out", page)
    assert "second line, file 17" in page.read_text()


@pytest.mark.parametrize(
    ("text", "reason"),
    [("[limits.auc]\nfail = 0.5\n", "looser"), ("[off]\nauc = 'it fails'\n", "floor"), ("off = 3\n", "expected")],
)
def test_a_file_that_loosens_the_suite_is_a_mistake(run, tmp_path, text, reason):
    own = tmp_path / "own.toml"
    own.write_text(text)
    status, _, error = run(*FAST, "--config", own)
    assert status == 1 and reason in error
