"""The audit log: what was written stays, and every way of changing it shows."""

import hashlib
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from backend.store.audit_log import START, AuditLog, Head
from backend.store.database import Database


@pytest.fixture
def log(tmp_path):
    log = AuditLog(Database(tmp_path))
    for i in range(4):
        log.add("train", {"model": f"m{i}"}, "ana", "analyst")
    return log


def tamper(tmp_path, statement, *values):
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute(statement, values)
    database.close()


def test_an_untouched_log_holds_and_names_its_head(log):
    verdict = log.verify({"telecom": log.head()})
    assert verdict.holds and verdict.entries == 4 and verdict.witnesses == ("telecom",)
    assert [e.number for e in log.entries()] == [1, 2, 3, 4] and log.entries()[0].previous == START
    assert log.entries()[2].body == {"model": "m2"} and log.entries()[2].actor == "ana"


def test_an_edited_entry_shows(log, tmp_path):
    tamper(tmp_path, "update audit set text = replace(text, 'm1', 'mX') where number = 2")
    assert any("Entry 2 was changed" in p for p in log.verify({}).problems)


def test_an_edited_entry_with_a_new_hash_of_its_own_breaks_the_chain(log, tmp_path):
    row = log.entries()[1]
    text = json.dumps([2, row.time, "eve", row.role, row.action, row.body, row.previous], sort_keys=True)
    tamper(
        tmp_path,
        "update audit set text = ?, hash = ? where number = 2",
        text,
        hashlib.sha256(text.encode()).hexdigest(),
    )
    assert any("Entry 3 does not follow" in p for p in log.verify({}).problems)


def test_a_deleted_entry_shows(log, tmp_path):
    tamper(tmp_path, "delete from audit where number = 2")
    assert any("Entry 2 is missing" in p for p in log.verify({}).problems)


def test_an_inserted_entry_shows(log, tmp_path):
    tamper(tmp_path, "update audit set number = number + 10 where number > 2")
    tamper(tmp_path, 'insert into audit values (3, \'[3, "", "", "", "", {}, ""]\', \'x\')')
    assert not log.verify({}).holds


def test_a_cut_at_the_end_shows_against_a_witness_only(log, tmp_path):
    kept = log.head()
    tamper(tmp_path, "delete from audit where number = 4")
    assert log.verify({}).holds
    assert any("was cut off" in p for p in log.verify({"telecom": kept}).problems)


def test_a_rewritten_log_shows_against_a_witness(log, tmp_path):
    kept = log.head()
    tamper(tmp_path, "delete from audit")
    for _ in range(5):
        log.add("train", {}, "eve", "operator")
    assert any("was rewritten" in p for p in log.verify({"telecom": kept}).problems)


def test_text_that_is_no_entry_shows_and_stops_nothing(log, tmp_path):
    tamper(tmp_path, "update audit set text = 'half an ent' where number = 3")
    assert any("Entry 3 was changed" in p for p in log.verify({}).problems)
    assert [e.number for e in log.entries()] == [1, 2, 4]


def test_two_that_write_at_once_both_get_their_place(tmp_path):
    log = AuditLog(Database(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: AuditLog(Database(tmp_path)).add("score", {"i": i}, "a", "b"), range(12)))
    assert log.verify({}).holds and log.head().number == 12


def test_an_empty_log_has_an_empty_head(tmp_path):
    log = AuditLog(Database(tmp_path))
    assert log.head() == Head(0, START) and log.verify({"h": Head(0, START)}).holds


def test_the_export_is_one_json_document_a_line(log):
    lines = [json.loads(line) for line in log.export().splitlines()]
    assert [line["number"] for line in lines] == [1, 2, 3, 4]
