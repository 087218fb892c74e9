"""What Hosts keep of the Guest's audit log: a number and a hash, never fewer entries than they were told before."""

import threading
import time

import pytest
from actors import running
from worlds import GUEST, random_world

from backend.data.demo import write_demo
from backend.errors import PartyUnreachable, SecurityError
from backend.protocols.audit_head.messages import AskAuditHead, AuditHead, KeepAuditHead
from backend.protocols.audit_head.protocol import ask_heads, tell_head
from backend.protocols.simulation.simulator import Room
from backend.protocols.transport.channel import Conversation
from backend.store.audit_log import START, Head

ONE, TWO = Head(1, "a" * 64), Head(2, "b" * 64)


@pytest.fixture
def talk():
    world = random_world(1, 2, n=3)
    with running(world) as (_, network, _):
        conversation = Conversation(network, GUEST, "c", world.model.hosts, patience=20)
        yield conversation
        conversation.close()


def test_a_host_that_was_told_nothing_answers_with_the_head_of_an_empty_log(talk):
    assert ask_heads(talk) == dict.fromkeys(("host0", "host1"), Head(0, START))


def test_hosts_keep_the_last_head_they_were_told(talk):
    tell_head(talk, ONE)
    assert tell_head(talk, TWO) == ask_heads(talk) == dict.fromkeys(("host0", "host1"), TWO)


def test_a_host_never_goes_back(talk):
    tell_head(talk, TWO)
    assert set(tell_head(talk, ONE).values()) == {TWO}
    assert set(ask_heads(talk).values()) == {TWO}


def test_a_host_keeps_the_first_hash_it_was_told_for_a_number(talk):
    tell_head(talk, TWO)
    tell_head(talk, Head(2, "c" * 64))
    assert set(ask_heads(talk).values()) == {TWO}


@pytest.mark.parametrize(
    ("number", "digest"), [(0, "a" * 64), (-1, "a" * 64), (1 << 60, "a" * 64), (1, "A" * 64), (1, "")]
)
def test_what_is_no_head_is_refused(talk, number, digest):
    talk.broadcast(KeepAuditHead(talk.name, number, digest))
    with pytest.raises(SecurityError, match="head of a log was expected"):
        ask_heads(talk)


def test_a_busy_host_is_not_waited_for_and_keeps_the_head_once_it_is_free(tmp_path, monkeypatch):
    monkeypatch.setattr("backend.protocols.simulation.simulator.WITNESS_PATIENCE", 0.5)
    room = Room(write_demo(tmp_path, rows=200), tmp_path / "parties", key_floor=512, pools=False)
    busy, free = room._simulated._hosts[room.hosts[0]], threading.Event()
    handler = busy._handlers[AskAuditHead]
    busy._handlers[AskAuditHead] = lambda *asked: free.wait(20) and handler(*asked)
    other = room.converse(room.hosts[:1])
    other.broadcast(AskAuditHead(other.name))
    began = time.monotonic()
    with pytest.raises(PartyUnreachable, match=r"for 0\.5 s"):
        room.tell_audit_head(TWO)
    assert set(room.audit_heads()) == set(room.hosts[1:])  # the others witness
    assert time.monotonic() - began < 5
    free.set()
    other.expect(AuditHead)
    assert room.audit_heads() == dict.fromkeys(room.hosts, TWO)
    other.close()
    room.close()


def test_a_head_outlives_a_restart_of_the_host_and_one_that_is_down_is_left_out(tmp_path):
    federation = write_demo(tmp_path, rows=200)
    room = Room(federation, tmp_path / "parties", key_floor=512, pools=False)
    room.tell_audit_head(TWO)
    room.close()
    room = Room(federation, tmp_path / "parties", key_floor=512, pools=False)
    first, *others = room.hosts
    room.stop_host(first)
    room.tell_audit_head(Head(3, "d" * 64))
    assert room.audit_heads() == dict.fromkeys(others, Head(3, "d" * 64))
    room.close()
    room = Room(federation, tmp_path / "parties", key_floor=512, pools=False)
    assert room.audit_heads()[first] == TWO
    room.close()
