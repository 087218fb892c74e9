"""What a Host does at once: ordered within a conversation, parallel across, a bounded queue a kind of work; results as alone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from actors import MODEL_ID, running, score
from refused import raises
from worlds import GUEST, random_world

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.data.demo import write_demo
from backend.errors import HostBusy, SecurityError
from backend.protocols import host_state
from backend.protocols.host_state import HostSessions
from backend.protocols.lanes import Lanes, LaneSize
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import DecisionVectors, MoreVectors
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.terms.permit import Ask, Kind
from backend.protocols.training.messages import StartTraining
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import ONLINE_PEOPLE, Lane
from backend.protocols.transport.messages import EndConversation, OfferKey
from backend.protocols.transport.wire import Delivery, new_conversation
from backend.store.accountant import Accountant
from backend.store.database import Database

TIMEOUT = 60.0
SMALL = {lane: LaneSize(1, 1, again=2.5) for lane in Lane}


def delivery(message):
    return Delivery(GUEST, message, 10, 0)


def asks(conversation, people=1):
    return delivery(DecisionVectors(conversation, "m", ("p",) * people, 1, 1, b""))


def training(conversation):
    return delivery(StartTraining(conversation, b"", 8, (), False))


class Desk:
    """Answers what lanes bring: writes down the order, and holds what it is told to hold."""

    def __init__(self, sizes, hold=()):
        self.done, self.begun = [], {}
        self.release, self._hold, self._changed = threading.Event(), set(hold), threading.Condition()
        self.lanes = Lanes(self._answer, "host", sizes)

    def _answer(self, delivery):
        name = delivery.message.conversation
        with self._changed:
            self.begun.setdefault(name, threading.current_thread().name)
            self._changed.notify_all()
        if name in self._hold:
            assert self.release.wait(TIMEOUT)
        with self._changed:
            self.done.append((name, type(delivery.message).__name__))
            self._changed.notify_all()

    def until(self, condition):
        with self._changed:
            assert self._changed.wait_for(condition, TIMEOUT)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.release.set()
        self.lanes.close()


def test_a_conversations_messages_are_answered_in_order_and_another_conversation_goes_by():
    with Desk({lane: LaneSize(2, 8, 1.0) for lane in Lane}, hold=["a"]) as desk:
        for message in (asks("a"), delivery(MoreVectors("a", b"")), delivery(EndConversation("a")), asks("b")):
            desk.lanes.put(message)
        desk.until(lambda: ("b", "DecisionVectors") in desk.done)
        assert [name for name, _ in desk.done] == ["b"]
        desk.release.set()
        desk.until(lambda: len(desk.done) == 4)
        assert [kind for name, kind in desk.done if name == "a"] == [
            "DecisionVectors",
            "MoreVectors",
            "EndConversation",
        ]


def test_a_training_blocks_no_score_and_many_people_block_no_few():
    with Desk(SMALL, hold=["training", "many"]) as desk:
        desk.lanes.put(training("training"))
        desk.lanes.put(asks("many", ONLINE_PEOPLE + 1))
        desk.until(lambda: {"training", "many"} <= set(desk.begun))
        desk.lanes.put(asks("few"))
        desk.until(lambda: desk.done == [("few", "DecisionVectors")])
        assert [desk.begun[name] for name in ("training", "many", "few")] == [
            "host-training",
            "host-bulk",
            "host-online",
        ]


def test_a_piece_is_answered_in_the_lane_of_what_it_belongs_to():
    with Desk(SMALL, hold=["many"]) as desk:
        desk.lanes.put(asks("many", ONLINE_PEOPLE + 1))
        desk.until(lambda: "many" in desk.begun)
        desk.lanes.put(delivery(MoreVectors("many", b"")))
        desk.release.set()
        desk.until(lambda: len(desk.done) == 2)
        desk.lanes.put(delivery(MoreVectors("many", b"")))
        desk.until(lambda: len(desk.done) == 3)
        assert not any(thread.name == "host-online" for thread in desk.lanes._threads)


def test_a_full_lane_refuses_with_a_delay_and_takes_nothing_of_that_conversation_until_it_ends():
    with Desk(SMALL, hold=["first"]) as desk:
        desk.lanes.put(asks("first"))
        desk.until(lambda: "first" in desk.begun)
        desk.lanes.put(asks("waits"))
        with pytest.raises(HostBusy) as refused:
            desk.lanes.put(asks("too many"))
        assert refused.value.wait == 2.5
        desk.lanes.put(delivery(MoreVectors("waits", b"")))  # belongs to what was taken on
        desk.lanes.put(training("other lane"))
        desk.release.set()
        desk.until(lambda: len(desk.done) == 4)
        with pytest.raises(HostBusy):  # though there is room: without its first piece it means something else
            desk.lanes.put(delivery(MoreVectors("too many", b"")))
        desk.lanes.put(delivery(EndConversation("too many")))
        desk.until(lambda: ("too many", "EndConversation") in desk.done)
    assert ("too many", "DecisionVectors") not in desk.done


def test_conversations_that_never_end_are_forgotten_one_by_one(monkeypatch):
    monkeypatch.setattr("backend.protocols.lanes.MAX_CONVERSATIONS", 3)
    with Desk({lane: LaneSize(1, 100, 1.0) for lane in Lane}) as desk:
        for number in range(20):
            desk.lanes.put(asks(f"c{number}"))
            desk.until(lambda number=number: len(desk.done) == number + 1)
        assert len(desk.lanes._conversations) <= 4


def test_one_conversation_too_many_of_a_guest_is_refused_and_nobody_elses_is_dropped(monkeypatch):
    monkeypatch.setattr(host_state, "SESSIONS_KEPT", 2)
    now = [0.0]
    sessions = HostSessions(lambda: now[0])
    kept = [sessions.of(name, "bank") for name in ("a", "b")]
    with pytest.raises(HostBusy, match="2 conversations of this Guest are open"):
        sessions.of("c", "bank")
    assert sessions.of("c", "other bank").guest == "other bank"
    assert [sessions.find(name, "bank") for name in ("a", "b")] == kept
    now[0] = host_state.IDLE + 1
    with sessions.serving("bank", "b"):
        sessions.of("c", "bank")  # nothing came in a for an hour; b is at work
    assert (sessions.find("a", "bank"), sessions.find("b", "bank")) == (None, kept[1])


def test_two_guests_conversations_of_one_name_are_two():
    sessions = HostSessions()
    one, other = sessions.of("c", "bank"), sessions.of("c", "other bank")
    one.purpose = "curves"
    assert one is not other and other.purpose == ""
    with sessions.serving("other bank", "c"):
        assert sessions.of("c") is other
    with raises(SecurityError, "conversation_not_open"):
        sessions.of("c")  # nobody's in particular
    sessions.end("c", "bank")
    assert sessions.of("c") is other


def test_names_of_conversations_are_128_random_bits():
    names = {new_conversation() for _ in range(1000)}
    assert len(names) == 1000
    assert all(len(bytes.fromhex(name)) == 16 for name in names)


def test_a_busy_host_says_so_over_the_wire_and_counts_nobody():
    world = random_world(3, 1)
    options = {"host0": {"lanes": {lane: LaneSize(1, 0, again=1.5) for lane in Lane}}}
    with running(world, options=options) as (_, network, served):
        session = Session(network.end(GUEST), "c", ("host0",), timeout=TIMEOUT)
        session.send("host0", OfferKey("c", "none", b""))
        with pytest.raises(HostBusy, match="host0 refused: It has more to do") as busy:
            session.expect(EndConversation)
        session.close()
        assert busy.value.wait == 1.5 and len(served.hosts["host0"]._sessions) == 0


def test_scores_come_while_a_host_trains():
    world, began, release = random_world(4, 2), threading.Event(), threading.Event()
    expected = [world.oracle(world.row(i)) for i in world.tables[GUEST].ids]
    with running(world) as (guest, network, served):
        host = served.hosts["host0"]

        def long_work(*_):
            began.set()
            assert release.wait(TIMEOUT)
            return iter(())

        host._gate.kinds[StartTraining] = Kind(lambda asked: Ask(), long_work, begins=True)
        session = Session(network.end(GUEST), "training", ("host0",), timeout=TIMEOUT)
        session.send("host0", training("training").message)
        assert began.wait(TIMEOUT)
        scored, _ = score(world, guest, network, PlainKeySide())
        assert scored.units == expected
        release.set()
        session.close()


@pytest.fixture(scope="module")
def bank(tmp_path_factory, secret_key):
    """The demo's federation, a key, a model, and its scores and trees as they come alone."""
    folder = tmp_path_factory.mktemp("lanes")
    runtime = FederationRuntime(write_demo(folder, rows=120), folder / "parties", key_floor=512, pools=False)
    key = PaillierKeySide(secret_key)
    yield runtime, key, train(runtime, key)
    runtime.close()


def train(runtime, key):
    session = runtime.open_session(runtime.hosts)
    try:
        parameters = SecureBoostParameters(trees=2, depth=2, bins=6)
        return runtime.guest.train(runtime.labels(), parameters, key, session)
    finally:
        session.close()


def scores(runtime, key, trained, rows):
    session = runtime.open_session(runtime.hosts, counted=False)
    try:
        compiled, people = CompiledGuest(trained.model), runtime.table.take(np.array(rows))
        return runtime.guest.score(trained.model_id, compiled, people, key, session).units
    finally:
        session.close()


def test_scores_and_a_training_at_once_come_out_as_alone(bank):
    runtime, key, trained = bank
    parts = [list(range(start, start + 12)) for start in range(0, 72, 12)]
    alone = [scores(runtime, key, trained, part) for part in parts]
    with ThreadPoolExecutor(len(parts) + 1) as at_once:
        again = at_once.submit(train, runtime, key)
        beside = list(at_once.map(lambda part: scores(runtime, key, trained, part), parts * 2))
        assert again.result().model.trees == trained.model.trees
    assert beside == alone * 2


def test_a_question_that_comes_twice_at_once_gets_the_same_bytes(secret_key):
    world = random_world(5, 1, n=3)
    options = {"host0": {"accountant": Accountant(Database())}}
    compiled = CompiledGuest(world.model)
    key = PaillierKeySide(secret_key)
    _, entries = compiled.encode(world.tables[GUEST].columns, 3)
    ids, vectors = world.tables[GUEST].ids, key.encrypt(entries)
    with running(world, options=options) as (_, _, served):
        host, ready = served.hosts["host0"], threading.Barrier(4, timeout=TIMEOUT)

        def ask(number):
            name = f"c{number}"
            list(host.answer(GUEST, OfferKey(name, key.scheme, key.offer())))
            ready.wait()
            question = DecisionVectors(name, MODEL_ID, ids, entries.shape[1], 1, vectors, request="r")
            return [message for _, message in host.answer(GUEST, question)]

        with ThreadPoolExecutor(4) as at_once:
            held, answers = zip(*at_once.map(ask, range(4)), strict=True)
        assert len({answer.scores for answer in answers}) == 1
        assert not any(message.spent for message in held)
        assert all(host.accountant.about(person)[0].times == 1 for person in ids)
