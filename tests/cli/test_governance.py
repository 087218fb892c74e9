"""The commands of a regulator: report, audit, attack."""

import json
import sqlite3

import pytest

from backend.crypto.signing import SigningKey
from backend.research.attacks import lab
from backend.research.attacks.result import AttackOutcome, SuccessCount


@pytest.mark.parametrize("form", ["json", "html", pytest.param("pdf", marks=pytest.mark.slow)])
def test_a_report_is_written_and_checked(run, tmp_path, form):
    out = tmp_path / f"report.{form}"
    status, text, _ = run("report", "latest", "--out", out, "--json")
    digest = json.loads(text)["sha256"]
    assert status == 0 and out.stat().st_size > 1000
    status, text, _ = run("report", "--check", out, "--json")
    assert status == 0 and json.loads(text)["sha256"] == digest
    content = json.loads(text)["content_sha256"]  # what the first page names
    assert content != digest and all(one in run("report", "--check", out)[1] for one in (content, digest))
    assert json.loads(text)["named_by"][0]["federation"] == "demo"


def test_a_report_without_a_file_is_json_on_standard_output_and_can_be_checked(run, tmp_path):
    status, text, _ = run("report")
    assert status == 0 and json.loads(text)["schema"] == "glassleaf-report"
    (tmp_path / "report.json").write_bytes(text.encode())
    assert run("report", "--check", tmp_path / "report.json")[0] == 0


def test_a_changed_report_is_refused_with_exit_status_1(run, tmp_path):
    out = tmp_path / "report.json"
    run("report", "latest", "--format", "json", "--out", out)
    out.write_text(out.read_text().replace('"actor":"', '"actor":"not '))
    status, _, error = run("report", "--check", out)
    assert status == 1 and "does not match its hash" in error


@pytest.mark.slow
def test_the_exit_status_tells_issued_from_changed_from_whole_but_not_known(run, home, tmp_path, monkeypatch):
    out, pages = tmp_path / "report.json", tmp_path / "report.pdf"
    for file in (out, pages):
        run("report", "latest", "--out", file)
    pages.write_bytes(pages.read_bytes() + b"\n% one more line")
    pem = tmp_path / "bank.pem"
    status, text, _ = run("audit", "key", "demo", "--out", pem, "--json")
    public, other = json.loads(text)["public_key"], SigningKey.generate().public
    assert status == 0 and pem.read_text() == json.loads(text)["pem"]

    def verdict(*words):
        status, text, _ = run("report", "--check", *words, "--json")
        return status, json.loads(text)["verdict"]

    assert verdict(out) == (0, "issued") and verdict(pages) == (4, "other pages")
    nowhere = tmp_path / "no home"
    monkeypatch.setenv("GLASSLEAF_HOME", str(nowhere))
    for key in (public, public.upper(), pem):
        assert verdict(out, "--key", key) == (0, "issued")
    assert verdict(out, "--key", other) == (3, "elsewhere") and verdict(pages, "--key", pem) == (4, "other pages")
    assert not nowhere.exists()  # a stranger needs the public key alone
    assert verdict(out) == (3, "elsewhere")
    out.write_text(out.read_text().replace('"actor":"', '"actor":"not '))
    assert run("report", "--check", out, "--key", public)[0] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "--key", "00"), "add --check FILE"),
        (("report", "latest", "--format", "pdf"), "needs a file"),
        (("report", "latest", "--out", "x.docx"), "Choose one of json, html, pdf"),
        (("report", "latest", "--out", "/no/such/folder/x.json"), "cannot be written"),
        (("report", "--check", "/no/such/file"), "cannot be read"),
        (("attack",), "--all"),
        (("attack", "A99"), "no attacks A99"),
        (("audit", "show", "nowhere"), "no federation nowhere"),
    ],
)
def test_a_mistake_gives_one_clear_sentence(run, words, said):
    status, _, error = run(*words)
    assert status == 1 and said in error


def test_entries_are_shown_and_exported(run, tmp_path):
    status, text, _ = run("audit", "show", "--action", "train", "--json")
    assert status == 0 and {e["action"] for e in json.loads(text)} == {"train"}
    assert "train: algorithm secureboost" in run("audit", "show", "demo", "--last", 500)[1]
    status, text, _ = run("audit", "export", "demo", "--out", tmp_path / "log.jsonl", "--json")
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert json.loads(text)["entries"] == len(lines) and json.loads(lines[-1])["action"] == "export"


def test_a_log_that_was_cut_fails_the_check_with_exit_status_1(run, home):
    status, text, _ = run("audit", "verify", "--json")
    assert status == 0 and json.loads(text)["demo"]["holds"]
    run("report")
    with sqlite3.connect(home / "parties" / "demo" / "bank" / "store.db") as database:
        database.execute("delete from audit where number = (select max(number) from audit)")
    database.close()
    status, text, _ = run("audit", "verify")
    assert status == 1 and "cut off" in text and "SOMETHING IS WRONG" in text


def test_attacks_are_listed(run):
    assert [a["id"] for a in json.loads(run("attack", "--list", "--json")[1])] == list(lab.ATTACKS)


@pytest.mark.parametrize(("right", "status", "word"), [(50, 0, "fails"), (100, 1, "WORKS")])
def test_the_exit_status_tells_whether_an_attack_works(run, monkeypatch, right, status, word):
    outcome = AttackOutcome(SuccessCount(100, 100, 0.1), SuccessCount(right, 100, 0.1), 0.5, {})
    synthetic = lab.Attack("A1", "Made up", "high", lambda seed: outcome, 1)
    monkeypatch.setattr(lab, "ATTACKS", {"A1": synthetic})
    found, text, _ = run("attack", "A1")
    assert found == status and word in text
    assert json.loads(run("attack", "--all", "--json")[1])[0]["works"] == bool(status)
