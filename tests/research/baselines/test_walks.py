"""Walks in the clear: what a Host decides of them, and what it refuses."""

import itertools

import numpy as np
import pytest
from actors import MODEL_ID, running
from protocol_runs import IN_THE_CLEAR, KEY, toy_world
from worlds import GUEST, World, random_world

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import Message
from backend.research.baselines.comparison import protocols
from backend.research.baselines.messages import AskCandidates, AskWalk, PassOn, StartWalk, Walked
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, Split, SplitRule


@pytest.mark.parametrize("name", IN_THE_CLEAR)
def test_a_real_host_answers_no_protocol_in_the_clear(name):
    world = random_world(3, 2)
    with running(world, simulated=False) as (guest, network, _):
        every = protocols(guest, world.model, CompiledGuest(world.model), PaillierKeySide(KEY))
        session = Session(network.end(GUEST), "c", world.model.hosts, timeout=120)
        with pytest.raises(SecurityError, match=r"refused: A Host does not answer (StartWalk|AskCandidates)\."):
            every[name].run(MODEL_ID, world.tables[GUEST], session)
        assert {e.kind for e in session.close()} <= {
            "StartWalk",
            "AskWalk",
            "PassOn",
            "AskCandidates",
            "Refusal",
            "EndConversation",
        }


def answers(world, *messages):
    """Send messages to host0 and yield what comes, until it refuses."""
    with running(world) as (_, network, _):
        session = Session(network.end(GUEST), "c", ("host0",), timeout=120)
        for message in messages:
            session.send("host0", message)
        while True:
            yield session.expect(Message)[1]


START = StartWalk("c", MODEL_ID, ("a", "b"))
ROOT, HF4, HF7 = bytes([0]), bytes([3]), bytes([2])


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([AskCandidates("c", MODEL_ID, ("a",)), AskWalk("c", True, ROOT, HF4)], "before the walk was begun"),
        ([START, AskWalk("c", True, bytes([0]), ROOT)], "that this Host does not decide"),
        ([START, AskWalk("c", True, bytes([2]), HF4)], "Numbers below 2 were expected, got 2"),
        ([START, AskWalk("c", True, bytes([0]), bytes([11]))], "Numbers below 11 were expected, got 11"),
        ([START, AskWalk("c", True, bytes([0, 1]), HF4)], "2 samples arrived at 1 node"),
        ([START, PassOn("c", 9, b"", b"")], "this model has 2 rounds"),
        ([START, PassOn("c", 2, b"", b"")], "out of turn in round 2"),
        ([START, PassOn("c", 1, b"", b""), PassOn("c", 1, b"", b"")], "out of turn in round 1"),
    ],
)
def test_a_host_refuses_what_does_not_fit_the_walk(messages, why):
    with pytest.raises(SecurityError, match=why):
        list(answers(toy_world(), *messages))


def test_only_the_models_guest_may_start_a_walk():
    world = toy_world()
    with running(world) as (_, network, _):
        session = Session(network.end("stranger"), "c", ("host0",), timeout=120)
        session.send("host0", START)
        with pytest.raises(SecurityError, match="Only the model's Guest"):
            session.expect(Message)


def test_a_host_decides_one_split_or_all_of_its_own_in_a_row():
    nodes = (
        Split("host0", "y", 1, 2, True, 1.0, 1.0),
        Split("host0", "y", 3, 4, True, 1.0, 1.0),
        *(Leaf(w, 1.0) for w in (1.0, 2.0, 3.0)),
    )
    rules = {(0, 0): SplitRule("y", True, 5.0), (0, 1): SplitRule("y", True, 3.0)}
    dictionary = ((GUEST, Feature(name="x", meaning="x")), ("host0", Feature(name="y", meaning="y")))
    model = GuestModel(GUEST, ("host0",), (GuestTree(nodes),), (0.0,), 4, dictionary, {})
    tables = {
        GUEST: PartyTable(GUEST, ("a", "b"), {"x": np.zeros(2)}),
        "host0": PartyTable("host0", ("a", "b"), {"y": np.array([4.0, 1.0])}),
    }
    half = HostModel("host0", GUEST, ("host0",), model.skeletons, rules, "salt")
    world = World(model, {"host0": half}, tables)
    at_root = bytes([0, 1]), bytes([0, 0])
    for one_step, reached in ((True, bytes([1, 1])), (False, bytes([4, 3]))):
        walked = [
            a.nodes
            for a in itertools.islice(answers(world, START, AskWalk("c", one_step, *at_root)), 2)
            if isinstance(a, Walked)
        ]
        assert walked == [reached]
