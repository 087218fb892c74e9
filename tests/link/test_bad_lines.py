"""What a line does to a link at its worst: packets lost, hours without it, the same sent again by whoever passes it on."""

import random
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from socket import SHUT_RDWR, SHUT_WR

import pytest
from companies import IN_TIME, Proxy, until
from link.recording import FOLDER, Recording

from backend.errors import PartyUnreachable
from backend.link.frames import ENVELOPE
from backend.protocols.transport.codec import decode
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.wire import new_conversation

PACKET = 16_384  # bytes that the lossy line passes at a time


class LossyProxy(Proxy):
    """A line that loses packets: some come a second time and late, as TCP sends them again; now and then all is lost, and it ends.

    Parameters
    ----------
    late, lost : float
        Share of packets.
    """

    def __init__(self, late, lost):
        super().__init__()
        self._draw = random.Random(5)
        self._late = late
        self._lost = lost
        self.n_late = 0
        self.n_lost = 0

    def _pump(self, one, other):
        with suppress(OSError):
            while blob := one.recv(PACKET):
                drawn = self._draw.random()
                if drawn < self._lost:
                    self.n_lost += 1
                    break
                if drawn < self._lost + self._late:
                    self.n_late += 1
                    time.sleep(0.02)
                self._flows.wait()
                other.sendall(blob)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(SHUT_RDWR)


def test_over_a_line_that_loses_packets_every_message_comes_once_and_in_order(links):
    with LossyProxy(late=0.1, lost=0.03) as line:
        bank, shop = links.pair(line, heartbeat=0.5)
        names = [new_conversation() for _ in range(3)]
        sizes = (10, 60_000, 2_000)
        for name in names:
            bank.open(name)
        for n in range(6):
            for name in names:
                key = bytes([n]) * sizes[n % 3]
                bank.send("shop", OfferKey(name, "rlwe", key))
                shop.send("bank", OfferKey(name, "rlwe", key))
        expected = [(n, sizes[n % 3]) for n in range(6)]
        taken = {name: [] for name in names}
        for _ in range(6 * len(names)):
            message = shop.receive(timeout=IN_TIME).message
            taken[message.conversation].append((message.key[0], len(message.key)))
        for name in names:
            answers = [bank.receive(name, timeout=IN_TIME).message.key for _ in range(6)]
            assert [(key[0], len(key)) for key in answers] == taken[name] == expected
            assert bank.receive(name, timeout=0.0) is None
        assert shop.receive(timeout=0.1) is None
        assert line.n_lost > 0 and line.n_late > 0


class HalfEndedProxy(Proxy):
    """A line that takes nothing more of a link, ends its other direction, and lets the next link through."""

    def __init__(self):
        super().__init__()
        self._frozen = []  # pairs of sockets

    def freeze(self):
        """Take nothing more of the links that there are."""
        with self._lock:
            self._frozen += self._pairs
            self._pairs = []

    def half_end(self, of_bank=False):
        """End the direction towards the Host, or `of_bank`; the other side of the line is closed."""
        for near, far in self._frozen:
            left, closed = (far, near) if of_bank else (near, far)
            left.shutdown(SHUT_WR)
            closed.close()

    def _pump(self, one, other):
        with suppress(OSError):
            while blob := one.recv(PACKET):
                if any(one in pair for pair in self._frozen):
                    return
                other.sendall(blob)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(SHUT_RDWR)

    def __exit__(self, *error):
        super().__exit__(*error)
        for pair in self._frozen:
            for end in pair:
                end.close()


def test_a_line_that_ends_in_one_direction_alone_in_the_midst_of_a_message_is_made_again(links):
    with HalfEndedProxy() as line:
        bank, shop = links.pair(line)
        name = new_conversation()
        bank.open(name)
        line.freeze()
        shop.send("bank", OfferKey(name, "rlwe", bytes(7_000_000)))
        time.sleep(0.3)  # what the machine's own buffers hold is written
        line.half_end()
        assert len(bank.receive(name, timeout=20).message.key) == 7_000_000


def test_a_bank_whose_line_takes_nothing_more_says_so_serves_the_next_one_and_can_be_stopped(links):
    with HalfEndedProxy() as line:
        bank, shop = links.pair(line, heartbeat=0.2)
        name = new_conversation()
        line.freeze()
        bank.send("shop", OfferKey(name, "rlwe", bytes(7_000_000)))
        time.sleep(0.3)  # what the machine's own buffers hold is written
        line.half_end(of_bank=True)
        assert len(shop.receive(timeout=20).message.key) == 7_000_000
        began = time.monotonic()
        bank.shut_down()
        assert time.monotonic() - began < 20


def test_over_a_line_that_loses_everything_the_party_is_named_and_nothing_is_sent(links):
    with LossyProxy(late=0.0, lost=1.0) as line:
        bank = links.bank()
        line.target = links.port
        shop = links.host("shop", port=line.port)
        until(lambda: line.n_lost > 2)
        until(lambda: shop.links()["bank"].remark.values["why"].code != "link_not_yet")
        assert shop.links()["bank"].remark.values["why"].code in ("link_closed_by_peer", "link_unanswered", "link_late")
        with pytest.raises(PartyUnreachable, match=r"shop: down since .*Nothing was sent"):
            bank.send("shop", OfferKey(new_conversation(), "rlwe", b"key"))


@pytest.mark.parametrize(("hours", "since"), [(5, "%H:%M"), (30, "%Y-%m-%d %H:%M")])
def test_after_hours_without_a_line_what_nobody_waits_for_is_refused_in_words_and_the_next_question_passes(
    links, monkeypatch, hours, since
):
    with Proxy() as line:
        bank = links.bank(grace=2.0)
        line.target = links.port
        shop = links.host("shop", port=line.port, grace=0.1)
        links.up(shop)
        old = new_conversation()
        new = new_conversation()
        bank.open(old)
        bank.open(new)
        line.cut()
        until(lambda: not bank.peer("shop").is_attached)
        bank.send("shop", OfferKey(old, "rlwe", b"old"))  # within the grace that the line has to come back
        cut_at = datetime.now(UTC).astimezone()
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + 3600 * hours)
        until(lambda: not bank.is_up("shop"))
        said = bank.peer("shop").state(datetime.now(UTC) + timedelta(hours=hours)).sentence()
        assert said.startswith("shop: down since ")
        assert any(f"{cut_at - timedelta(minutes=late):{since}}" in said for late in (0, 1)), said
        with pytest.raises(PartyUnreachable, match="Nothing was sent"):
            bank.send("shop", OfferKey(new, "rlwe", b"key"))
        line.mend()
        links.up(shop)
        why = bank.receive(old, timeout=IN_TIME).message.why
        assert (why.code, why.values["why"].code) == ("not_delivered", "deadline_passed_waiting")
        bank.send("shop", OfferKey(new, "rlwe", b"new"))
        assert shop.receive(timeout=IN_TIME).message.key == b"new"
        assert shop.receive(timeout=0.1) is None


def noted(wire, peer):
    """The messages that a side sends a peer from now on, as they were first put into its outbox."""
    outbox = wire.peer(peer).outbox
    put = outbox.put
    passed = []

    def noting(message, timeout=0.0):
        put(message, timeout)
        passed.append(replace(message))

    outbox.put = noting
    return passed


def test_an_envelope_that_the_guest_passes_on_a_second_time_is_refused_and_the_guest_is_told(links):
    bank = links.bank()
    shop, telecom = links.host("shop"), links.host("telecom")
    links.up(shop, telecom)
    passed = noted(bank, "telecom")
    put = bank.peer("telecom").outbox.put
    name = new_conversation()
    bank.open(name)
    for key in (b"1", b"2"):
        shop.send("telecom", OfferKey(name, "rlwe", key))
        assert telecom.receive(timeout=IN_TIME).message.key == key
    for envelope in tuple(passed):
        assert envelope.kind == ENVELOPE
        bank._node.memory.force(len(envelope.blob))
        put(replace(envelope, id=token_hex(16), sequence=0))
        why = bank.receive(name, timeout=IN_TIME).message.why
        assert (why.code, why.values["why"].code) == ("not_delivered", "envelope_out_of_order")
    assert telecom.receive(timeout=0.1) is None
    shop.send("telecom", OfferKey(name, "rlwe", b"3"))
    assert telecom.receive(timeout=IN_TIME).message.key == b"3"


@pytest.mark.parametrize("talk", ["scores", "sums", "training"])
def test_no_message_of_a_conversation_is_taken_a_second_time_in_either_direction(links, talk):
    """As `recording.py` wrote them: the alignments of "sums" and "training" from their first message to their last, too."""
    bank = links.bank()
    shop, telecom = links.host("shop"), links.host("telecom")
    links.up(shop, telecom)
    bank.open()
    wires = {"bank": bank, "host0": shop, "platform": shop, "host1": telecom, "telecom": telecom}
    sides = [(bank, "shop"), (bank, "telecom"), (shop, "bank"), (telecom, "bank")]
    noting = [noted(*side) for side in sides]
    recorded = Recording.load(FOLDER / "1.0.json.gz").talks[talk]
    for sent in recorded:
        message = decode(sent.blob)
        receiver = wires[sent.receiver]
        wires[sent.sender].send(receiver.party, message)
        assert receiver.receive(timeout=IN_TIME).message == message
    until(lambda: not any(any(wire.peer(peer).outbox.depth().values()) for wire, peer in sides))
    passed = [tuple(messages) for messages in noting]
    n_envelopes = sum(one.kind == ENVELOPE for one in passed[1])
    assert sum(map(len, passed)) == len(recorded) + n_envelopes and (n_envelopes > 0) == (talk == "scores")

    for (wire, peer), messages in zip(sides, passed, strict=True):
        outbox = wire.peer(peer).outbox
        outbox._number = lambda message: None  # each keeps its place in the conversation
        for message in messages:
            outbox.put(replace(message, id=token_hex(16)))
    until(lambda: not any(any(wire.peer(peer).outbox.depth().values()) for wire, peer in sides))
    for host in (shop, telecom):
        assert host.receive(timeout=0.1) is None
    refused = [bank.receive(timeout=IN_TIME).message.why for _ in (*passed[0], *passed[1])]
    assert {(why.code, why.values["why"].code) for why in refused} == {("not_delivered", "message_repeated")}
