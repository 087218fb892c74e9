"""What a Host refuses, and what happens when one is down, silent or cancelled upon."""

import threading
import time

import numpy as np
import pytest
from actors import MODEL_ID, running, score
from worlds import GUEST, random_world

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.errors import Cancelled, HostRefused, PartyUnreachable, SecurityError
from backend.jobs import Job
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import DecisionVectors, MoreVectors
from backend.protocols.training.messages import AskBinSums
from backend.protocols.transport import channel
from backend.protocols.transport.channel import Session, await_links
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import EndConversation, HeldRecords, OfferKey, Refusal
from backend.protocols.transport.network import Network
from backend.protocols.transport.wire import Quiet
from backend.remark import Remark
from backend.trees.folding import fold_structure


def ask(network, *messages, host="host0", timeout=120):
    session = Session(network.end(GUEST), "c", (host,), timeout=timeout)
    try:
        for message in messages:
            session.send(host, message)
        while isinstance(answer := session.expect(Message)[1], HeldRecords):
            pass  # a Host tells on arrival which ids it holds
        return answer
    finally:
        session.close()


def offer(secret_key):
    return OfferKey("c", "paillier", PaillierKeySide(secret_key).offer())


def test_a_real_host_refuses_plaintext():
    refused = pytest.raises(SecurityError, match="host0 refused: Plaintext was offered")
    with running(random_world(1, 1), simulated=False) as (_, network, _), refused:
        ask(network, OfferKey("c", "none", b""))


def test_a_real_host_cannot_be_played():
    world = random_world(1, 1)
    with running(world, simulated=False) as (_, _, served), pytest.raises(SecurityError, match="simulated"):
        served.hosts["host0"].play("c", GUEST, world.tables["host0"])


def test_a_short_key_is_refused():
    tiny = PaillierSecretKey.generate(256, floor=256)
    with running(random_world(1, 1)) as (_, network, _), pytest.raises(SecurityError, match="at least 512"):
        ask(network, offer(tiny))


def test_an_unknown_cipher_is_refused():
    with running(random_world(1, 1)) as (_, network, _), pytest.raises(SecurityError, match="riac"):
        ask(network, OfferKey("c", "riac", b""))


def test_a_crafted_ciphertext_is_refused(secret_key):
    world = random_world(1, 1)
    entries = _entries(world)
    width = secret_key.public.width
    vectors = int(secret_key.p).to_bytes(width, "big") * entries
    with running(world) as (_, network, _), pytest.raises(SecurityError, match="shares a factor"):
        ask(network, offer(secret_key), DecisionVectors("c", MODEL_ID, ("id0",), entries, 1, vectors))


def test_a_vector_that_does_not_fit_the_model_is_refused(secret_key):
    world = random_world(1, 1)
    with running(world) as (_, network, _), pytest.raises(SecurityError, match="entries a person were expected"):
        ask(
            network,
            offer(secret_key),
            DecisionVectors("c", MODEL_ID, ("id0",), 1, 1, b"\x01" * secret_key.public.width),
        )


def test_a_piece_that_belongs_to_no_batch_is_refused(secret_key):
    with running(random_world(1, 1)) as (_, network, _), pytest.raises(SecurityError, match="belongs to no batch"):
        ask(network, offer(secret_key), MoreVectors("c", b""))


@pytest.mark.parametrize("pieces", [0, -1, 1 << 40])
def test_a_batch_of_an_impossible_number_of_messages_is_refused(secret_key, pieces):
    world = random_world(1, 1)
    vectors = DecisionVectors("c", MODEL_ID, ("id0",), _entries(world), pieces, b"")
    with running(world) as (_, network, _), pytest.raises(SecurityError, match="messages was announced"):
        ask(network, offer(secret_key), vectors)


def test_an_internal_fault_is_answered_without_its_text(secret_key):
    def failing(sender, message):
        raise KeyError("a value of somebody's record")

    with running(random_world(1, 1)) as (_, network, served):
        host = served.hosts["host0"]
        list(host.answer(GUEST, OfferKey("c", "none", b"")))
        host.answer = failing
        with pytest.raises(SecurityError, match=r"An internal error \(KeyError\)"):
            ask(network, offer(secret_key))


def test_sums_are_refused_outside_a_training(secret_key):
    with (
        running(random_world(1, 1)) as (_, network, _),
        pytest.raises(SecurityError, match="not a training"),
    ):
        ask(network, offer(secret_key), AskBinSums("c", (), (), (), (), (), ()))


def test_a_host_that_is_down_is_named_at_once():
    world = random_world(2, 2)
    with running(world) as (guest, network, served):
        served.stop("host1")
        with pytest.raises((PartyUnreachable, SecurityError), match="host1"):
            score(world, guest, network, PlainKeySide())
        served.stop("host0")
        with pytest.raises(PartyUnreachable, match="Start it again"):
            score(world, guest, network, PlainKeySide(), name="d")


def test_a_host_that_goes_down_half_way_does_not_hang_the_guest():
    network = Network()
    network.open("host0")
    session = Session(network.end(GUEST), "c", ("host0",))
    session.send("host0", EndConversation("c"))
    network.close("host0")
    with pytest.raises(PartyUnreachable, match="host0 stopped"):
        session.expect(HeldRecords)


class QuietWire:
    """The Guest's end towards Hosts of which nothing comes, and of whose silence the link says this."""

    def __init__(self, **quiet):
        self._wire, self._quiet = Network().end(GUEST), quiet

    def send(self, receiver, message):
        return 0

    def is_up(self, party):
        return True

    def quiet(self, party):
        return self._quiet[party]

    def __getattr__(self, name):
        return getattr(self._wire, name)


@pytest.mark.parametrize(
    ("quiet", "named"),
    [
        ({"a": Quiet(9.0, 0.0), "b": Quiet(9.0, 0.0)}, ("a",)),  # whoever is at work
        ({"a": Quiet(9.0, 0.0), "b": Quiet(9.0, 8.0)}, ("b",)),  # what was sent to it is not confirmed: that is why
        ({"a": Quiet(0.0, 0.0), "b": Quiet(9.0, 0.0)}, None),  # signs of life come
        ({"a": Quiet(), "b": Quiet()}, None),  # a simulation
    ],
)
def test_who_does_not_answer_is_told_while_it_is_waited_for_and_no_longer(monkeypatch, quiet, named):
    monkeypatch.setattr(channel, "QUIET_SECONDS", 0.05)
    session = Session(QuietWire(**quiet), "c", ("a", "b"), timeout=0.5)

    def run(job):
        session.expect(HeldRecords, ["a"])

    told = []
    # patched: to hear all that a job was told, and not what it kept last
    monkeypatch.setattr(Job, "_silent", lambda job, silence: told.append(silence))
    assert isinstance(Job(run, 1).start().wait(20).failure, PartyUnreachable)
    assert {one.parties for one in told if one} == ({named} if named else set())
    assert all(0.05 <= one.seconds <= 0.7 for one in told if one)
    assert told[-1] is None


class CutWire(QuietWire):
    """The line to Host b is cut."""

    def __init__(self):
        super().__init__(a=Quiet(), b=Quiet())

    def is_up(self, party):
        return party == "a"

    def state(self, party):
        return Remark("link_down", {"host": party, "since": "14:02", "why": Remark("link_silent")})


def test_a_host_whose_line_is_cut_while_another_is_asked_is_named_with_the_cause_and_not_said_to_have_stopped():
    session = Session(CutWire(), "c", ("a", "b"), timeout=20)
    with pytest.raises(PartyUnreachable) as refused:
        session.expect(HeldRecords, ["a"])
    assert refused.value.code == "link_down_while_asked"
    state = refused.value.values["why"]
    assert (state.values["host"], state.values["why"].code) == ("b", "link_silent")
    assert "b: down since 14:02" in refused.value.sentence()


def test_a_host_whose_link_does_not_come_up_is_told_while_it_is_waited_for_and_no_longer(monkeypatch):
    monkeypatch.setattr(channel, "QUIET_SECONDS", 0.05)
    told, looks = [], iter([("a", "b"), ("b",), ("b",), ("b",), ()])
    # patched: to hear all that a job was told, and not what it kept last
    monkeypatch.setattr(Job, "_silent", lambda job, silence: told.append(silence))
    Job(lambda job: await_links(lambda: next(looks), time.monotonic() + 20, job.cancelled), 1).start().get()
    assert {one.parties for one in told if one} == {("b",)}
    assert told[-1] is None
    assert next(looks, None) is None  # all looks were taken


def test_work_that_waits_for_a_link_can_be_stopped():
    job = Job(lambda job: await_links(lambda: ("a",), time.monotonic() + 20, lambda: False), 1).start()
    job.cancel()
    assert job.wait(10).state == "cancelled"


def test_a_host_that_confirms_nothing_is_not_waited_for_at_the_end():
    witnesses = {"a": "00", "b": "00"}
    took = {}
    for name, silent in {"silent": Quiet(9.0, 3.0), "there": Quiet(9.0, 0.0)}.items():
        session = Session(QuietWire(a=silent, b=silent), name, ("a", "b"), witnesses=witnesses)
        session.broadcast(EndConversation(name))
        began = time.monotonic()
        session.close()
        took[name] = time.monotonic() - began
    assert took["silent"] < 0.5 < channel.RECEIPT_TIMEOUT <= took["there"]


def test_a_host_that_was_waited_for_in_vain_is_not_waited_for_again_at_the_end():
    session = Session(QuietWire(a=Quiet(1.0, 0.2)), "c", ("a",), timeout=0.1, witnesses={"a": "00"})
    session.broadcast(EndConversation("c"))
    with pytest.raises(PartyUnreachable):
        session.expect(HeldRecords)
    began = time.monotonic()
    session.close()
    assert time.monotonic() - began < 0.5 < channel.RECEIPT_TIMEOUT


@pytest.mark.parametrize("death", [SystemExit, MemoryError])
def test_a_host_whose_thread_dies_in_the_middle_of_a_score_is_named_at_once(death, monkeypatch):
    world, died = random_world(2, 2), []

    def dying(party, conversation="", timeout=None):
        letter = receive(party, conversation, timeout)
        if party == "host1" and letter is not None and isinstance(letter.message, DecisionVectors):
            died.append(time.monotonic())
            raise death
        return letter

    with running(world) as (guest, network, _):
        receive = network.receive
        monkeypatch.setattr(network, "receive", dying)
        with pytest.raises(PartyUnreachable, match="host1 stopped"):
            score(world, guest, network, PlainKeySide())
        assert time.monotonic() - died[0] < 100  # the Guest would wait for 120 seconds
        assert (network.is_up("host0"), network.is_up("host1")) == (True, False)


def test_silence_ends_after_the_timeout():
    network = Network()
    network.open("host0")
    session = Session(network.end(GUEST), "c", ("host0",), timeout=0.2)
    with pytest.raises(PartyUnreachable, match="No answer from host0"):
        session.expect(HeldRecords)


def test_a_cancelled_conversation_stops_at_the_next_wait_and_the_hosts_go_on():
    world = random_world(3, 1)
    with running(world) as (guest, network, _):
        session = Session(network.end(GUEST), "c", ("host0",), cancelled=lambda: True)
        with pytest.raises(Cancelled):
            guest.score(MODEL_ID, CompiledGuest(world.model), world.tables[GUEST], PlainKeySide(), session)
        session.close()
        scored, _ = score(world, guest, network, PlainKeySide(), name="d")
        assert len(scored.units) == len(world.tables[GUEST].ids)


def test_an_answer_out_of_turn_stops_the_exchange():
    network = Network()
    network.open("host0")
    session = Session(network.end(GUEST), "c", ("host0",))
    network.send("stranger", GUEST, HeldRecords("c", b""))
    with pytest.raises(SecurityError, match="stranger answered out of turn"):
        session.expect_each(HeldRecords, ["host0"])
    network.send("host0", GUEST, Refusal("c", Remark("host_stops")))
    with pytest.raises(HostRefused) as refused:
        session.expect(HeldRecords)
    assert (refused.value.code, refused.value.values["why"]) == ("host_refused", Remark("host_stops"))


def test_hosts_forget_a_conversation_that_was_cancelled():
    world = random_world(3, 1)
    with running(world) as (_, network, served):
        session = Session(network.end(GUEST), "c", ("host0",))
        session.send("host0", OfferKey("c", "none", b""))
        transcript = session.close()
        assert [e.kind for e in transcript] == ["OfferKey", "EndConversation"]
        deadline = time.monotonic() + 120
        while served.hosts["host0"]._sessions and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(served.hosts["host0"]._sessions) == 0


def test_a_transcript_is_forgotten_with_its_conversation():
    world = random_world(3, 1)
    with running(world) as (guest, network, _):
        _, transcript = score(world, guest, network, PlainKeySide())
        assert transcript and network.noted.entries("c") == ()


def test_two_conversations_at_once_do_not_mix(secret_key):
    world = random_world(4, 2, n=6)
    expected = [world.oracle(world.row(i)) for i in world.tables[GUEST].ids]
    results = {}
    with running(world) as (guest, network, _):

        def work(name):
            results[name] = score(world, guest, network, PaillierKeySide(secret_key), name=name)[0].units

        threads = [threading.Thread(target=work, args=(f"c{i}",)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {f"c{i}": expected for i in range(3)}


def _entries(world):
    return fold_structure(world.model.skeletons, GUEST, world.model.hosts).n_entries


def test_playing_a_host_replaces_its_records_for_one_conversation_only():
    world = random_world(6, 1)
    ids = world.tables[GUEST].ids
    blank = world.tables["host0"].take(np.array([], dtype=np.intp))
    with running(world) as (guest, network, served):
        served.hosts["host0"].play("c", GUEST, blank)
        played, _ = score(world, guest, network, PlainKeySide(), name="c")
        own, _ = score(world, guest, network, PlainKeySide(), name="d")
    assert not played.has_record["host0"].any()
    assert own.units == [world.oracle(world.row(i)) for i in ids]


def test_what_a_host_says_steers_no_terminal_and_writes_no_second_line_of_a_log():
    network = Network()
    network.open("host0")
    session = Session(network.end(GUEST), "c", ("host0",))
    said = "no\n2026-11-27 approved \x1b[2J\u202e"
    network.send("host0", GUEST, Refusal("c", Remark("not_delivered", {"why": said})))
    with pytest.raises(HostRefused) as refused:
        session.expect(HeldRecords)
    text = str(refused.value)
    assert text == "host0 refused: A message could not be delivered: no 2026-11-27 approved  [2J "
