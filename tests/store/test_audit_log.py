"""The audit log: what was written stays, and every way of changing it shows."""

import hashlib
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from backend.store.audit_log import START, AuditLog, Head, link
from backend.store.database import Database
from backend.store.schema import KeptHead


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


def kept(log):
    """Every head, as a witness that missed none keeps them."""
    return [KeptHead(entry.number, entry.hash) for entry in log.entries()[::-1]]


def with_chain(tmp_path, texts):
    """Replace the log by one whose chain holds: what its owner alone can do."""
    tamper(tmp_path, "delete from audit")
    previous = START
    for number, text in enumerate(texts, start=1):
        fields = json.loads(text)
        fields[0], fields[6] = number, previous
        rewritten = json.dumps(fields, sort_keys=True, ensure_ascii=False)
        previous = link(previous, hashlib.sha256(rewritten.encode()).hexdigest())
        tamper(tmp_path, "insert into audit values (?, ?, ?)", number, rewritten, previous)


def texts(tmp_path):
    with sqlite3.connect(tmp_path / "store.db") as database:
        found = [text for (text,) in database.execute("select text from audit order by number")]
    database.close()
    return found


def test_an_untouched_log_holds_and_names_its_head(log):
    verdict = log.verify({"telecom": kept(log)})
    assert verdict.holds and verdict.entries == verdict.heads == 4 and verdict.witnesses == ("telecom",)
    assert [e.number for e in log.entries()] == [1, 2, 3, 4] and log.entries()[0].previous == START
    assert log.entries()[2].body == {"model": "m2"} and log.entries()[2].actor == "ana"


def test_an_edited_entry_shows(log, tmp_path):
    tamper(tmp_path, "update audit set text = replace(text, 'm1', 'mX') where number = 2")
    assert any("Entry 2 was changed" in p for p in log.verify({}).problems)


def test_an_edited_entry_with_a_new_hash_of_its_own_breaks_the_chain(log, tmp_path):
    row = log.entries()[1]
    text = json.dumps([2, row.time, "eve", row.role, row.action, row.body, row.previous], sort_keys=True)
    digest = link(row.previous, hashlib.sha256(text.encode()).hexdigest())
    tamper(tmp_path, "update audit set text = ?, hash = ? where number = 2", text, digest)
    assert any("Entry 3 does not follow" in p for p in log.verify({}).problems)


def test_a_deleted_entry_shows(log, tmp_path):
    tamper(tmp_path, "delete from audit where number = 2")
    assert any("Entry 2 is missing" in p for p in log.verify({}).problems)


def test_an_inserted_entry_shows(log, tmp_path):
    tamper(tmp_path, "update audit set number = number + 10 where number > 2")
    tamper(tmp_path, 'insert into audit values (3, \'[3, "", "", "", "", {}, ""]\', \'x\')')
    assert not log.verify({}).holds


def test_a_cut_at_the_end_shows_against_a_witness_only(log, tmp_path):
    heads = kept(log)
    tamper(tmp_path, "delete from audit where number = 4")
    assert log.verify({}).holds
    assert any("was cut off" in p for p in log.verify({"telecom": heads}).problems)


def test_a_log_chained_again_without_one_entry_shows_though_more_were_appended(log, tmp_path):
    heads = kept(log)
    before = texts(tmp_path)
    with_chain(tmp_path, [*before[:1], *before[2:]])
    for _ in range(2):
        log.add("score", {}, "ana", "analyst")
    assert log.verify({}).holds  # nothing shows without a witness
    newer = [*(head for head in kept(log) if head.number == 5), *heads]  # the witness got the forged head too
    [problem] = log.verify({"telecom": newer}).problems
    assert "Entry 2" in problem and "was rewritten" in problem


def test_a_head_that_this_party_did_not_sign_is_told_apart(log):
    strange = [KeptHead(4, "f" * 64, "k", "s")]
    assert len(log.verify({"telecom": strange}).problems) == 1
    assert len(log.verify({"telecom": strange}, lambda head: False).problems) == 2


def test_the_proof_leads_from_any_earlier_head_to_the_last_one(log):
    entries = log.entries()
    for number in range(5):
        proof = log.proof(number)
        assert proof.base == (Head(number, entries[number - 1].hash) if number else Head(0, START))
        assert proof.heads()[-1] == log.head() and len(proof.digests) == 4 - number
    assert log.proof(9).base == log.head() and log.proof(9).digests == ()


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
    assert log.head() == Head(0, START) and log.verify({}).holds


def test_the_export_is_one_json_document_a_line(log):
    lines = [json.loads(line) for line in log.export().splitlines()]
    assert [line["number"] for line in lines] == [1, 2, 3, 4]
