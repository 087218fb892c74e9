"""What Hosts keep of the Guest's audit log: a number and a hash, never fewer entries than they were told before."""

import threading
import time

import pytest
from actors import running
from worlds import GUEST, random_world

from backend.data.demo import write_demo
from backend.errors import PartyUnreachable, SecurityError
from backend.protocols.audit_head.messages import AskAuditHead, AuditHead, KeepAuditHead
from backend.protocols.audit_head.protocol import ask_heads, report_head
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.transport.channel import Session
from backend.store.audit_log import START, Head

ONE, TWO = Head(1, "a" * 64), Head(2, "b" * 64)


@pytest.fixture
def session():
    world = random_world(1, 2, n=3)
    with running(world) as (_, network, _):
        conversation = Session(network, GUEST, "c", world.model.hosts, timeout=20)
        yield conversation
        conversation.close()


def test_a_host_that_was_told_nothing_answers_with_the_head_of_an_empty_log(session):
    assert ask_heads(session) == dict.fromkeys(("host0", "host1"), Head(0, START))


def test_hosts_keep_the_last_head_they_were_told(session):
    report_head(session, ONE)
    assert report_head(session, TWO) == ask_heads(session) == dict.fromkeys(("host0", "host1"), TWO)


def test_a_host_never_goes_back(session):
    report_head(session, TWO)
    assert set(report_head(session, ONE).values()) == {TWO}
    assert set(ask_heads(session).values()) == {TWO}


def test_a_host_keeps_the_first_hash_it_was_told_for_a_number(session):
    report_head(session, TWO)
    report_head(session, Head(2, "c" * 64))
    assert set(ask_heads(session).values()) == {TWO}


@pytest.mark.parametrize(
    ("number", "digest"), [(0, "a" * 64), (-1, "a" * 64), (1 << 60, "a" * 64), (1, "A" * 64), (1, "")]
)
def test_what_is_no_head_is_refused(session, number, digest):
    session.broadcast(KeepAuditHead(session.name, number, digest))
    with pytest.raises(SecurityError, match="head of a log was expected"):
        ask_heads(session)


def test_a_busy_host_is_not_waited_for_and_keeps_the_head_once_it_is_free(tmp_path, monkeypatch):
    monkeypatch.setattr("backend.protocols.simulation.simulator.WITNESS_TIMEOUT", 0.5)
    runtime = FederationRuntime(write_demo(tmp_path, rows=200), tmp_path / "parties", key_floor=512, pools=False)
    busy, free = runtime._simulated.hosts[runtime.hosts[0]], threading.Event()
    handler = busy._handlers[AskAuditHead]
    busy._handlers[AskAuditHead] = lambda *asked: free.wait(20) and handler(*asked)
    other = runtime.open_session(runtime.hosts[:1])
    other.broadcast(AskAuditHead(other.name))
    began = time.monotonic()
    with pytest.raises(PartyUnreachable, match=r"for 0\.5 s"):
        runtime.tell_audit_head(TWO)
    assert set(runtime.audit_heads()) == set(runtime.hosts[1:])  # the others witness
    assert time.monotonic() - began < 5
    free.set()
    other.expect(AuditHead)
    assert runtime.audit_heads() == dict.fromkeys(runtime.hosts, TWO)
    other.close()
    runtime.close()


def test_a_head_outlives_a_restart_of_the_host_and_one_that_is_down_is_left_out(tmp_path):
    federation = write_demo(tmp_path, rows=200)
    runtime = FederationRuntime(federation, tmp_path / "parties", key_floor=512, pools=False)
    runtime.tell_audit_head(TWO)
    runtime.close()
    runtime = FederationRuntime(federation, tmp_path / "parties", key_floor=512, pools=False)
    first, *others = runtime.hosts
    runtime.stop_host(first)
    runtime.tell_audit_head(Head(3, "d" * 64))
    assert runtime.audit_heads() == dict.fromkeys(others, Head(3, "d" * 64))
    runtime.close()
    runtime = FederationRuntime(federation, tmp_path / "parties", key_floor=512, pools=False)
    assert runtime.audit_heads()[first] == TWO
    runtime.close()
