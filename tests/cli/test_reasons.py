"""The shell's questions about reasons: `reasons` with a notice, `cohort`."""

import json

import pytest

from backend.services import Glassleaf


@pytest.fixture
def person(home):
    glassleaf = Glassleaf(home, pools=False)
    found = str(glassleaf.samples.table("latest").index[0])
    glassleaf.close()
    return found


def test_reasons_are_named_and_a_notice_is_written(run, person, tmp_path):
    out = tmp_path / "notice.html"
    words = (
        "reasons",
        "latest",
        "--id",
        person,
        "--bits",
        2048,
        "--cutoff",
        0,
        "--notice",
        "en",
        "--out",
        out,
        "--json",
    )
    status, text, _ = run(*words)
    body = json.loads(text)
    assert body["id"] == person and body["decision"] == "decline" and body["features"] > 4 and body["messages"] > 8
    assert len(body["reasons"]) <= 4 and body["blocked"] == any(r["blockers"] for r in body["reasons"])
    assert status == int(body["blocked"]) and out.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("words", [("--notice", "en"), ("--out", "a.txt"), ("--notice", "en", "--out", "a.doc")])
def test_a_notice_without_a_file_or_a_language_is_refused_before_anything_is_asked(run, person, words):
    status, _, error = run("reasons", "latest", "--id", person, *words)
    assert status == 1 and "--notice en or zh and --out FILE" in error


def test_means_over_a_group_are_told(run):
    status, text, _ = run("cohort", "latest", "--samples", 55, "--cipher", "none", "--json")
    rows = json.loads(text)["features"]
    assert status == 0 and rows[0]["people"] == 55
    assert [abs(row["mean"]) for row in rows] == sorted((abs(row["mean"]) for row in rows), reverse=True)
