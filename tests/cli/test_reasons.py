"""The shell's questions about reasons: `reasons` with a notice, `cohort`."""

import json

import pytest
from lines import decide_at

from backend.services import Glassleaf


@pytest.fixture
def person(home):
    glassleaf = Glassleaf(home, pools=False)
    found = str(glassleaf.samples.table("latest").index[0])
    glassleaf.close()
    return found


def test_reasons_are_named_and_a_notice_is_written(run, home, person, tmp_path):
    with Glassleaf(home, pools=False) as glassleaf:
        decide_at(glassleaf, 0.0)
    out = tmp_path / "notice.html"
    words = (
        "reasons",
        "latest",
        "--id",
        person,
        "--bits",
        2048,
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
    before = asked(home)
    status, text, _ = run("reasons", "latest", "--id", person, "--bits", 2048)
    assert "no second score was asked for" in text and "score" not in asked(home)[len(before) :]


def test_whom_a_person_is_compared_with_is_said_and_an_unknown_group_is_refused(run, person):
    status, text, _ = run("reasons", "latest", "--id", person, "--against", "covers", "--bits", 2048, "--json")
    body = json.loads(text)
    assert status == 0 and (body["against"], body["compared"]) == ("covers", 0)
    status, _, error = run("reasons", "latest", "--id", person, "--against", "median")
    assert status == 1 and "choose one of covers, all, approved" in error


def test_names_and_addresses_of_notices_are_printed_filled_in_and_kept(run, tmp_path):
    out = tmp_path / "notice.toml"
    assert run("notice-details", "demo", "--out", out)[0] == 0
    out.write_text(out.read_text().replace('phone = ""', 'phone = "555-0100"', 1))
    status, text, _ = run("notice-details", "demo", out, "--json")
    body = json.loads(text)
    assert status == 0 and body["parties"]["bank"]["phone"] == "555-0100" and "bank.phone" not in body["missing"]["en"]
    status, _, error = run("notice-details", "demo", out)
    assert status == 1 and "Nothing was changed" in error


@pytest.mark.parametrize("words", [("--notice", "en"), ("--out", "a.txt"), ("--notice", "en", "--out", "a.doc")])
def test_a_notice_without_a_file_or_a_language_is_refused_before_anything_is_asked(run, person, words):
    status, _, error = run("reasons", "latest", "--id", person, *words)
    assert status == 1 and "--notice en or zh, and --out FILE" in error


def test_means_over_a_group_are_told(run):
    status, text, _ = run("cohort", "latest", "--samples", 55, "--cipher", "none", "--json")
    rows = json.loads(text)["features"]
    assert status == 0 and rows[0]["people"] == 55
    assert [abs(row["mean"]) for row in rows] == sorted((abs(row["mean"]) for row in rows), reverse=True)


def asked(home):
    """Kinds of entry in the audit log, which every question leaves."""
    glassleaf = Glassleaf(home, pools=False)
    actions = [entry.action for entry in glassleaf.audit.entries("demo")]
    glassleaf.close()
    return actions


def test_an_accepted_person_who_was_to_get_a_notice_is_told_of_and_asked_no_reasons(run, home, person, tmp_path):
    with Glassleaf(home, pools=False) as glassleaf:
        decide_at(glassleaf, 1.0)
        glassleaf.reasons._measurement.workspace.decisions("demo").forget(person)  # another test had a decision
    before, out = asked(home), tmp_path / "notice.txt"
    words = ("--id", person, "--bits", 2048, "--notice", "en", "--out", out, "--json")
    status, text, _ = run("reasons", "latest", *words)
    body = json.loads(text)
    assert (status, body["id"], body["decision"], out.exists()) == (1, person, "accept", False)
    assert 0 <= body["probability"] <= 1
    after = asked(home)[len(before) :]
    assert "score" in after and "reasons" not in after and "notice" not in after


@pytest.mark.parametrize("out", ["nowhere/notice.txt", "folder.txt"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_asked(run, home, person, tmp_path, out):
    (tmp_path / "folder.txt").mkdir()
    before = asked(home)
    status, _, error = run("reasons", "latest", "--id", person, "--notice", "en", "--out", tmp_path / out)
    assert status == 1 and "cannot be written" in error and asked(home) == before


def test_a_language_that_notices_do_not_have_is_refused_before_anything_is_asked(run, home, person, tmp_path):
    before = asked(home)
    status, _, error = run("reasons", "latest", "--id", person, "--notice", "fr", "--out", tmp_path / "n.txt")
    assert status == 1 and "--notice en or zh" in error and asked(home) == before
