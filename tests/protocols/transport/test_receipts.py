"""What Hosts state at the end of a conversation, and the whole transcript that a Guest makes of it without seeing their link."""

from dataclasses import replace

import pytest
from actors import running
from worlds import GUEST, random_world

from backend.crypto.plain import PlainKeySide
from backend.crypto.signing import SigningKey
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.transport import channel
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.messages import ConversationReceipt, EndConversation, OfferKey
from backend.protocols.transport.receipts import is_genuine, sign_receipt, whole
from backend.protocols.transport.simulated_latency import Link, simulate
from backend.protocols.transport.transcript import OwnTranscript
from backend.store.database import Database
from backend.store.receipts import Receipts

LINK = Link(0.01, 1e6)
KEYS = {"host0": SigningKey.generate(), "host1": SigningKey.generate()}
PUBLIC = {host: key.public for host, key in KEYS.items()}


class Untold:
    """A Guest's end of a network that keeps nothing but what passes over it."""

    def __init__(self, wire):
        self._wire = wire

    def __getattr__(self, name):
        if name in ("transcript", "forget", "take", "rest"):
            raise AttributeError(name)
        return getattr(self._wire, name)


def ran(signing=KEYS, witnesses=PUBLIC):
    """A score through two Hosts: what happened, what the Guest saw and was told, and its session."""
    world = random_world(4, 2, n=3)
    options = {host: {"signing": key} for host, key in signing.items()}
    with running(world, options=options) as (guest, network, _):
        wire = OwnTranscript(Untold(network.end(GUEST)))
        network.open(GUEST, "c")  # so that the network's transcript begins, too
        session = Session(wire, "c", world.model.hosts, timeout=20, witnesses=witnesses)
        people = world.tables[GUEST]
        guest.score("m-test", CompiledGuest(world.model), people, PlainKeySide(), session)
        own = session.transcript()
        shown = session.close()
        happened = network.noted.entries("c")
    return happened, own, shown, session


def messages(entries):
    return [
        (e.sender, e.receiver, e.kind, e.bytes)
        for e in entries
        if e.kind not in ("EndConversation", "ConversationReceipt")
    ]


def test_a_guest_alone_sees_its_own_messages_and_with_receipts_all_of_them():
    happened, own, shown, session = ran()
    assert messages(own) == [m for m in messages(happened) if GUEST in m[:2]]
    assert sorted(messages(shown)) == sorted(messages(happened))
    assert any(GUEST not in m[:2] for m in messages(shown))
    assert set(session.receipts) == {"host0", "host1"}
    assert [e.number for e in shown] == list(range(1, len(shown) + 1))


def test_the_whole_transcript_can_be_let_run_over_a_link_as_that_of_a_simulation():
    happened, _, shown, _ = ran()
    one, other = simulate(happened, LINK), simulate(shown, LINK)
    assert (one.hops, one.bytes, one.messages) == (other.hops, other.bytes, other.messages)
    assert other.work.keys() >= {GUEST, "host0", "host1"}


def test_what_a_host_did_not_sign_or_states_of_others_is_not_believed(monkeypatch):
    entries = ((GUEST, "host0", "OfferKey", 40, 0.0), ("host0", "host1", "DecisionVectors", 900, 0.25))
    receipt = sign_receipt("c", "host0", entries, KEYS["host0"])
    assert is_genuine(receipt, "host0", PUBLIC["host0"]) and decode(encode(receipt)) == receipt
    assert not is_genuine(receipt, "host0", PUBLIC["host1"])
    assert not is_genuine(replace(receipt, conversation="d"), "host0", PUBLIC["host0"])
    assert not is_genuine(replace(receipt, entries=entries[:1]), "host0", PUBLIC["host0"])
    of_others = sign_receipt("c", "host0", ((GUEST, "host1", "OfferKey", 40, 0.0),), KEYS["host0"])
    assert not is_genuine(of_others, "host0", PUBLIC["host0"])


def test_a_guest_states_its_own_side_before_it_waits_for_the_hosts():
    world = random_world(4, 2, n=3)
    closed = []
    with running(world, options={host: {"signing": key} for host, key in KEYS.items()}) as (_, network, _):
        wire = OwnTranscript(Untold(network.end(GUEST)))

        def keep(name, own, receipts):
            closed.append((len(own), set(receipts)))

        session = Session(wire, "c", world.model.hosts, timeout=20, witnesses=PUBLIC, on_close=keep)
        session.broadcast(OfferKey("c", "none", b""))
        session.close()
    assert closed == [(4, set()), (4, {"host0", "host1"})]  # two keys and two ends


def test_a_host_that_signs_with_another_key_gives_the_guest_its_own_side_alone(monkeypatch):
    monkeypatch.setattr(channel, "RECEIPT_TIMEOUT", 20.0)
    happened, own, shown, session = ran(witnesses={**PUBLIC, "host0": KEYS["host1"].public})
    assert set(session.receipts) == {"host1"}
    assert set(messages(own)) <= set(messages(shown)) <= set(messages(happened))


def test_a_host_that_states_nothing_is_waited_for_a_moment_only(monkeypatch):
    monkeypatch.setattr(channel, "RECEIPT_TIMEOUT", 0.1)
    _, own, shown, session = ran(signing={})
    assert session.receipts == {} and messages(shown) == messages(own)


@pytest.mark.parametrize("cut", range(1, 8))
def test_receipts_that_leave_something_out_still_give_a_transcript_in_order(cut):
    _, own, _, session = ran()
    cropped = {host: replace(r, entries=r.entries[:-cut] or ()) for host, r in session.receipts.items()}
    shown = whole(own, GUEST, cropped)
    assert [m for m in messages(shown) if GUEST in m[:2]] == messages(own) or len(shown) >= len(own)
    assert [e.number for e in shown] == list(range(1, len(shown) + 1))


def test_a_conversation_without_an_end_is_stated_by_nobody():
    with running(random_world(1, 1), options={"host0": {"signing": KEYS["host0"]}}) as (_, _, served):
        host = served.hosts["host0"]
        assert [m for _, m in host.answer(GUEST, OfferKey("c", "none", b""))] == []
        assert not any(isinstance(m, ConversationReceipt) for m in host._sessions.find("c").stated)


def test_a_conversation_that_the_guests_end_broke_off_is_stated_without_an_end():
    kept = Receipts(Database())
    with running(random_world(1, 1), options={"host0": {"signing": KEYS["host0"], "receipts": kept}}) as (_, net, _):
        wire = net.end(GUEST)
        for name, broken_off in (("left", True), ("ended", False)):
            wire.open(name)
            for message in (OfferKey(name, "none", b""), EndConversation(name, broken_off)):
                wire.send("host0", message)
        assert wire.receive("ended", timeout=20).message.conversation == "ended"
        assert wire.receive("left", timeout=0.0) is None  # nobody waits for that one
    stated = {one.conversation: [kind for _, _, kind, *_ in one.entries] for one in kept.all()}
    assert stated == {"left": ["OfferKey"], "ended": ["OfferKey", "EndConversation"]}
