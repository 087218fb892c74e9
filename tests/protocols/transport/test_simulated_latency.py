"""Simulated time: hand-worked exchanges over a link, and what the channel notes so that they can be worked out."""

import pytest
from actors import running, score
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST, random_world

from backend.crypto.plain import PlainKeySide
from backend.errors import ParameterError
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import EndConversation, HeldRecords, OfferKey
from backend.protocols.transport.network import Network
from backend.protocols.transport.simulated_latency import BANDWIDTH, INSTANT, LATENCY, Link, simulate
from backend.protocols.transport.transcript import TranscriptEntry
from backend.research.baselines.messages import PassOn


def exchange(*told):
    """Entries from (sender, receiver, bytes, work), numbered through; a receiver of None is the goodbye."""
    return tuple(
        TranscriptEntry(i, s, r or "h", "EndConversation" if r is None else "Message", size, 0.0, "", "", work)
        for i, (s, r, size, work) in enumerate(told, 1)
    )


def there(told, link):
    """When the last of these messages is there."""
    return simulate(told, link).total


ONE_ROUND = exchange(
    ("g", "h", 300, ((0, 1.0),)),
    ("h", "g", 100, ((1, 0.5),)),
    ("g", None, 40, ((2, 0.25),)),
)


def test_the_links_default_is_the_forest_papers():
    assert Link() == Link(LATENCY, BANDWIDTH) == Link(0.05, 300_000.0)


def test_one_question_and_answer_by_hand():
    done = simulate(ONE_ROUND, Link(0.05, 1000.0))
    # 1 s of work, 0.3 s to leave, 0.05 s on the way; 0.5 s of work, 0.1 s, 0.05 s; 0.25 s of work
    assert there(ONE_ROUND[:1], Link(0.05, 1000.0)) == pytest.approx(1.35)
    assert there(ONE_ROUND[:2], Link(0.05, 1000.0)) == pytest.approx(2.0)
    assert done.total == pytest.approx(2.25)
    assert done.compute == pytest.approx(1.75) and done.network == pytest.approx(0.5)
    assert (done.rounds, done.hops, done.messages, done.bytes) == (1, 2, 2, 400)  # without the goodbye
    assert done.work == pytest.approx({"g": 1.25, "h": 0.5})


def test_messages_of_one_party_leave_one_after_the_other():
    told = exchange(("g", "h", 1000, ()), ("g", "i", 500, ()), ("h", "i", 2000, ()))
    done, link = simulate(told, Link(0.05, 1000.0)), Link(0.05, 1000.0)
    assert [there(told[:n], link) for n in (1, 2)] == pytest.approx([1.05, 1.55])
    assert done.total == pytest.approx(2.05)  # the other party has an uplink of its own
    assert (done.rounds, done.hops) == (0, 1)


def test_sending_does_not_keep_a_party_from_working():
    told, link = exchange(("g", "h", 2000, ((0, 1.0),)), ("g", "h", 1000, ((0, 1.0),))), Link(0.0, 1000.0)
    assert (there(told[:1], link), there(told, link)) == (3.0, 4.0)  # ready at 1 and 2 s, the second leaves at 3 s


def test_a_host_works_on_the_first_piece_while_the_second_is_on_its_way():
    pieces = exchange(
        ("g", "h", 1000, ()),
        ("g", "h", 1000, ()),
        ("h", "g", 0, ((1, 0.8), (2, 0.8))),
        ("g", None, 0, ()),
    )
    # arrivals at 1 and 2 s; the first piece is done at 1.8 s, the second at 2.8 s, not at 2 + 1.6 s
    assert simulate(pieces, Link(0.0, 1000.0)).total == pytest.approx(2.8)


def test_a_message_waits_for_what_its_sender_had_taken_in_and_for_nothing_else():
    told = exchange(
        ("g", "h", 0, ()),
        ("g", "i", 0, ()),
        ("h", "g", 0, ((1, 5.0),)),
        ("i", "g", 0, ((2, 1.0),)),
        ("g", "i", 0, ((0, 0.0),)),  # sent before any answer was taken in
        ("g", "i", 0, ((3, 0.0), (4, 0.0))),
    )
    link, asked = Link(1.0, 1.0), told[:2]
    assert [there((*asked, told[n]), link) for n in (2, 3, 4)] == [7.0, 3.0, 1.0]  # a second after each was ready
    assert there(told, link) == 8.0


def test_work_at_the_same_time_counts_once():
    told = exchange(
        ("g", "h", 0, ()),
        ("g", "i", 0, ()),
        ("h", "g", 0, ((1, 3.0),)),
        ("i", "g", 0, ((2, 2.0),)),
        ("g", None, 0, ((3, 0.0), (4, 0.0))),
    )
    done = simulate(told, INSTANT)
    assert done.compute == 3.0 and done.network == 0.0 and sum(done.work.values()) == 5.0
    assert (done.rounds, done.hops) == (1, 2)


def test_a_chain_of_hosts_is_one_round_of_three_hops():
    told = exchange(
        ("g", "h", 0, ()), ("h", "i", 0, ((1, 0.0),)), ("i", "g", 0, ((2, 0.0),)), ("g", None, 0, ((3, 0.0),))
    )
    done = simulate(told, Link(0.05, 1.0))
    assert (done.rounds, done.hops) == (1, 3) and done.total == pytest.approx(0.15)


def test_an_empty_transcript_takes_no_time():
    done = simulate((), Link())
    assert (done.rounds, done.hops, done.messages, done.bytes, done.total) == (0, 0, 0, 0, 0.0)


@pytest.mark.parametrize(("latency", "bandwidth"), [(-0.1, 1.0), (float("inf"), 1.0), (0.1, 0.0), (float("nan"), 1.0)])
def test_an_impossible_link_is_refused(latency, bandwidth):
    with pytest.raises(ParameterError, match="it must be"):
        Link(latency, bandwidth)


@pytest.fixture(scope="module")
def transcript():
    world = random_world(5, 3, n_trees=6)
    with running(world) as (guest, network, _):
        return score(world, guest, network, PlainKeySide())[1]


@settings(max_examples=50, deadline=None)
@given(latency=st.floats(0, 10), bandwidth=st.floats(1, 1e9))
def test_a_link_adds_its_hops_at_least_and_its_hops_and_bytes_at_most(transcript, latency, bandwidth):
    done = simulate(transcript, Link(latency, bandwidth))
    assert (done.rounds, done.hops) == (1, 4)
    assert done.total >= done.hops * latency - 1e-9
    assert -1e-9 <= done.network <= done.hops * latency + done.bytes / bandwidth + 1e-6


class Hands:
    """A clock that a test moves."""

    now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    hands = Hands()
    monkeypatch.setattr("time.perf_counter", hands.perf_counter)
    return hands


def take_in(network, party, conversation=""):
    """Wait for what comes next, and begin to work on it."""
    network.end(party).take(network.receive(party, conversation))


def test_the_channel_notes_work_between_messages_and_leaves_out_waiting(clock):
    network = Network()
    network.open("h")
    network.open("g", "c")
    clock.now = 2.0
    network.send("g", "h", OfferKey("c", "none", b""))
    clock.now = 3.0  # h was idle until here
    take_in(network, "h")
    clock.now = 3.5
    network.send("h", "g", HeldRecords("c", b""))
    clock.now = 4.5
    take_in(network, "g", "c")  # g worked till 4.5, and the answer was there
    clock.now = 4.75
    network.send("g", "h", EndConversation("c"))
    assert [e.work for e in network.noted.entries("c")] == [((0, 2.0),), ((1, 0.5),), ((0, 2.5), (2, 0.25))]


def test_a_message_of_a_round_does_not_wait_for_what_came_early_of_the_same_round(clock):
    network = Network()
    network.open("h")
    network.open("g", "c")
    for sender, round_ in (("i", 3), ("j", 2)):
        network.send(sender, "h", PassOn("c", round_, b"", b""))
        clock.now += 1.0
        take_in(network, "h")
    clock.now += 0.5
    network.send("h", "g", PassOn("c", 3, b"", b""))
    network.send("h", "g", PassOn("c", 4, b"", b""))
    early, late = ([number for number, _ in e.work] for e in network.noted.entries("c")[2:])
    assert (early, late) == ([2], [1, 2])


def test_work_for_one_conversation_is_not_told_in_another(clock):
    network = Network()
    network.open("h")
    for name in ("c", "d"):
        network.open("g", name)
        network.send("g", "h", OfferKey(name, "none", b""))
    take_in(network, "h")
    clock.now = 1.0  # for c
    network.end("h").rest("c")
    take_in(network, "h")
    clock.now = 3.0  # for d
    network.send("h", "g", HeldRecords("d", b""))
    network.send("g", "h", OfferKey("c", "none", b""))
    take_in(network, "h")
    network.send("h", "g", HeldRecords("c", b""))
    assert network.noted.entries("d")[-1].work == ((1, 2.0),)
    assert network.noted.entries("c")[-1].work == ((1, 1.0), (2, 0.0))


def test_an_ended_conversations_work_is_forgotten(clock):
    network = Network()
    network.open("h")
    session = Session(network.end(GUEST), "c", ("h",))
    session.send("h", OfferKey("c", "none", b""))
    take_in(network, "h")
    session.close()
    take_in(network, "h")
    assert len(network.noted) == 0


def test_every_message_waits_only_for_messages_that_reached_its_sender(transcript):
    to = {e.number: e.receiver for e in transcript}
    for entry in transcript:
        taken = [number for number, _ in entry.work if number]
        assert taken == sorted(taken) and all(to[n] == entry.sender and n < entry.number for n in taken)
        assert all(seconds >= 0 for _, seconds in entry.work)
    kind = {e.number: e.kind for e in transcript}
    first = {e.kind: e for e in reversed(transcript)}
    assert kind[first["EncryptedScores"].work[-1][0]] == "DecisionVectors"
    assert kind[first["EndConversation"].work[-1][0]] == "EncryptedScores"  # decrypted before the goodbye
