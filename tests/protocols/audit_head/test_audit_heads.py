"""What Hosts keep of the Guest's audit log: every signed head, each of which continues the one before."""

import sqlite3
import threading

import pytest
from actors import running
from companies import IN_TIME, until
from refused import raises
from worlds import GUEST, random_world

from backend.crypto.signing import SigningKey
from backend.data.demo import write_demo
from backend.errors import PartyUnreachable, SecurityError
from backend.protocols.audit_head import protocol
from backend.protocols.audit_head.messages import AskAuditHeads, AuditHeads, KeepAuditHead
from backend.protocols.audit_head.protocol import ask_heads, is_signed_head, report_head, signed_report
from backend.protocols.lanes import SIZES
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import Lane
from backend.store.audit_log import START, AuditLog, ConsistencyProof, Head, link
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.store.schema import KeptHead

KEY = SigningKey.generate()
A, B, C, X = ("a" * 64, "b" * 64, "c" * 64, "e" * 64)  # digests of entries
HOST, EMPTY = "host0", Head(0, START)


@pytest.fixture
def session():
    world = random_world(1, 2, n=3)
    with running(world) as (_, network, _):
        conversation = Session(network.end(GUEST), "c", world.model.hosts, timeout=120)
        yield conversation
        conversation.close()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A Host on a slow machine is not taken for a busy one."""
    monkeypatch.setattr("backend.protocols.guest_runtime.HEAD_TIMEOUT", IN_TIME)


@pytest.fixture
def log(tmp_path):
    log = AuditLog(Database(tmp_path / "log"))
    for i in range(3):
        log.add("score", {"i": i}, "ana", "analyst")
    yield log


def report(*digests, base=EMPTY, key=KEY):
    return signed_report("c", ConsistencyProof(base, digests), key)


def kept_after(*reports):
    store = memory_store()
    for one in reports:
        protocol.keep_head(store, GUEST, one)
    return [head.number for head in store.audit_heads(GUEST, 1 << 53, 99)]


def head_of(*digests):
    return ConsistencyProof(EMPTY, digests).heads()[-1]


def test_a_host_that_was_told_nothing_keeps_no_head(session):
    assert ask_heads(session, HOST) == []


def test_a_host_keeps_every_head_that_it_is_told_with_its_signature(session, log):
    told = report_head(session, HOST, log, KEY, None)
    assert told == log.head()
    log.add("score", {}, "ana", "analyst")
    assert report_head(session, HOST, log, KEY, told) == log.head()
    kept = ask_heads(session, HOST)
    assert [(head.number, head.hash) for head in kept] == [(e.number, e.hash) for e in log.entries()[:1:-1]]
    assert all(is_signed_head(KEY.public, head) for head in kept)


def test_a_host_that_comes_late_or_missed_heads_catches_up(session, log):
    report_head(session, HOST, log, KEY, None)
    for i in range(3):
        log.add("train", {"i": i}, "ana", "analyst")
    assert report_head(session, HOST, log, KEY, None) == report_head(session, "host1", log, KEY, None) == log.head()


def test_a_long_way_to_catch_up_travels_in_parts_and_is_read_in_pages(session, log, monkeypatch):
    monkeypatch.setattr(protocol, "MAX_DIGESTS", 2)
    monkeypatch.setattr(protocol, "MAX_HEADS", 2)
    for i in range(4):
        log.add("train", {"i": i}, "ana", "analyst")
    report_head(session, HOST, log, KEY, None)
    assert [head.number for head in ask_heads(session, HOST)] == [7, 6, 4, 2]


def test_a_fork_is_refused_wherever_it_left_the_log():
    first = report(A, B)
    for fork in (
        report(A, X, C),  # entry 2 is another
        report(X, C, base=Head(1, link(START, A))),
        report(C, base=Head(2, link(START, X))),
        report(A, X),  # as long as before
    ):
        with raises(SecurityError, "audit_log_rewritten", entry=2):
            kept_after(first, fork)


def test_a_fork_below_the_newest_head_is_refused_too():
    with raises(SecurityError, "audit_log_rewritten", entry=2):
        kept_after(report(A, B), report(A, B, C), report(A, X))


def test_an_older_report_that_comes_late_changes_nothing():
    assert kept_after(report(A), report(A, B, C), report(A, B)) == [3, 1]


def test_a_report_that_leaves_entries_out_is_refused():
    with raises(SecurityError, "audit_digests_missing", expected=2):
        kept_after(report(A), report(C, base=head_of(A, B)))


def test_a_shorter_log_is_not_kept_and_its_guest_is_told(session, log, tmp_path):
    report_head(session, HOST, log, KEY, None)
    with sqlite3.connect(tmp_path / "log" / "store.db") as database:
        database.execute("delete from audit where number = 3")
    database.close()
    for told in (None, Head(3, X)):
        with raises(SecurityError, "audit_log_cut_off", seen=3, here=2):
            report_head(session, HOST, log, KEY, told)
    assert [head.number for head in ask_heads(session, HOST)] == [3]


def test_the_first_key_is_trusted_and_another_is_refused():
    other = SigningKey.generate()
    with raises(SecurityError, "audit_key_changed", expected=KEY.public):
        kept_after(report(A), report(A, B, key=other))
    assert kept_after(report(A, key=other), report(A, B, key=other)) == [2, 1]


GOOD = report(A, B)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"number": 0, "digests": ()}, "audit_head_malformed"),
        ({"number": -1}, "audit_head_malformed"),
        ({"number": 1 << 60, "base_number": (1 << 60) - 2}, "audit_head_malformed"),
        ({"base_number": -1, "number": 1}, "audit_head_malformed"),
        ({"base_hash": A}, "audit_head_malformed"),
        ({"hash": GOOD.hash.upper()}, "audit_head_malformed"),
        ({"digests": (A, "")}, "audit_head_malformed"),
        ({"digests": (A, C)}, "audit_head_not_proved"),
        ({"number": 3}, "audit_head_not_proved"),
        ({"hash": X}, "audit_head_not_proved"),
        ({"signature": ""}, "audit_head_not_signed"),
        ({"signature": "0" * 128}, "audit_head_not_signed"),
        ({"public_key": SigningKey.generate().public}, "audit_head_not_signed"),
        ({"public_key": "not a key"}, "audit_head_not_signed"),
        ({"digests": (A,) * (protocol.MAX_DIGESTS + 1)}, "audit_digests_too_many"),
    ],
)
def test_what_is_no_signed_head_with_its_proof_is_refused(session, changed, code):
    session.send(HOST, KeepAuditHead(**{**vars(GOOD), **changed}))
    with raises(SecurityError, code):
        session.expect(AuditHeads)


def test_a_busy_host_is_not_waited_for_and_keeps_the_head_once_it_is_free(tmp_path, monkeypatch, log):
    monkeypatch.setattr("backend.protocols.guest_runtime.WITNESS_TIMEOUT", 0.5)
    runtime = FederationRuntime(write_demo(tmp_path, rows=200), tmp_path / "parties", key_floor=512, pools=False)
    runtime.tell_audit_head(log, KEY)
    log.add("score", {}, "ana", "analyst")
    busy, free = runtime._simulated.hosts[runtime.hosts[0]], threading.Event()
    handler = busy._handlers[AskAuditHeads]
    busy._handlers[AskAuditHeads] = lambda *asked: free.wait() and handler(*asked)
    others = [runtime.open_session(runtime.hosts[:1]) for _ in range(SIZES[Lane.ONLINE].workers)]
    for other in others:
        other.send(runtime.hosts[0], AskAuditHeads(other.name, 9, 1))
    monkeypatch.setattr("backend.protocols.guest_runtime.HEAD_TIMEOUT", 0.5)
    with pytest.raises(PartyUnreachable, match=r"for 0\.5 s"):
        runtime.tell_audit_head(log, KEY)
    until(lambda: set(runtime.audit_heads()) == set(runtime.hosts[1:]))  # the others witness
    free.set()
    for other in others:
        other.expect(AuditHeads)
    told = dict.fromkeys(runtime.hosts, log.head().hash)
    # the head is kept in a conversation of its own, beside those that ask for it
    until(lambda: {host: heads[0].hash for host, heads in runtime.audit_heads().items()} == told)
    for other in others:
        other.close()
    runtime.close()


def test_heads_outlive_a_restart_of_the_host_and_one_that_is_down_is_left_out_and_told_later(tmp_path, log):
    federation = write_demo(tmp_path, rows=200)

    def started():
        return FederationRuntime(federation, tmp_path / "parties", key_floor=512, pools=False)

    runtime = started()
    runtime.tell_audit_head(log, KEY)
    runtime.close()
    runtime = started()
    first, *others = runtime.hosts
    runtime.operator.stop(first)
    log.add("score", {}, "ana", "analyst")
    runtime.tell_audit_head(log, KEY)
    assert {host: len(kept) for host, kept in runtime.audit_heads().items()} == dict.fromkeys(others, 2)
    runtime.close()
    runtime = started()
    assert [head.number for head in runtime.audit_heads()[first]] == [3]
    log.add("score", {}, "ana", "analyst")
    runtime.tell_audit_head(log, KEY)
    assert [head.number for head in runtime.audit_heads()[first]] == [5, 3]
    runtime.close()


def test_a_host_that_refuses_keeps_no_other_from_being_told(tmp_path, log):
    runtime = FederationRuntime(write_demo(tmp_path, rows=200), tmp_path / "parties", key_floor=512, pools=False)
    first, second = runtime.hosts
    runtime._simulated.hosts[first]._store.put_audit_head(runtime.guest.name, KeptHead(2, X, KEY.public, ""))
    with raises(SecurityError, "audit_log_rewritten", entry=2):
        runtime.tell_audit_head(log, KEY)
    assert runtime.audit_heads()[second][0].hash == log.head().hash
    runtime.close()
