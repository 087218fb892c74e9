"""The account of a Host is never below what a Guest without manners learned, by enumeration of a toy world (docs/leak-oracle.md)."""

import pytest
from leak_crowd import KNOWN, Crowd, alone, played
from leak_moves import CONVERSATIONS
from leak_scripts import (
    SCRIPTS,
    SUMS,
)
from leak_worlds import CONVERSATION, LARGE, MODEL, SMALL, WIDE, World, toy_floors, world_of

from backend.research.baselines.messages import AskCandidates, AskWalk, PassOn, StartWalk

C = CONVERSATION


@pytest.fixture(autouse=True)
def _toy_floors():
    with toy_floors():
        yield


def check(name, world, verdict):
    assert verdict.holds, f"{name}: {verdict}"
    if name in SUMS:
        assert verdict.named <= world.floors.named, f"{name}: {verdict}"


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_known_attack_learns_more_than_was_booked_or_names_too_many_cells(name):
    world = world_of(name)
    check(name, world, played(world, SCRIPTS[name](world)))


@pytest.mark.parametrize(
    "name",
    [
        "score, twice",
        "score, in pieces",
        "permuted, one scored",
        "ages",
        "training, two splits at a node",
        "groups, marks apart",
        "reasons",
        "pairs of groups",
    ],
)
def test_a_host_without_the_first_ones_decisions_sends_the_same_until_its_table_is_known(name):
    world = world_of(name)
    script = [*SCRIPTS[name](world), *SCRIPTS[name](world)]
    crowd = Crowd(world)
    replies = [[] for _ in world.tables]
    for message in script:
        crowd.say(message)
        for of_table, reply in zip(replies, crowd.replies, strict=True):
            of_table.append(reply)
    for place in range(0, len(world.tables), 21):
        own = alone(world, world.tables[place], script)
        until = replies[place].index(KNOWN) if KNOWN in replies[place] else len(script)
        assert until and replies[place][:until] == own[:until]
        assert replies[place][until:] == [KNOWN] * (len(script) - until)


def test_a_second_split_at_a_node_is_refused_in_a_training_without_a_bound_on_names():
    crowd = Crowd(WIDE)
    *_, first, second = (crowd.say(message) for message in SCRIPTS["training, two splits at a node"](WIDE))
    assert first[0][0] == "SplitRows" and second[0][0] == "refused"


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_nor_does_it_on_6561_tables(name):
    world = World(people=4, values=LARGE.values, floors=world_of(name).floors)
    assert len(world.tables) == 6561
    check(name, world, played(world, SCRIPTS[name](world)))


# Kinds of message that read no record.
NO_RECORDS = {
    "Acknowledge",
    "AskApproval",
    "AskAuditHeads",
    "AskTraining",
    "EndConversation",
    "KeepAuditHead",
    "KeepImport",
    "OfferKey",
    "ReleaseModel",
    "ReportWrongAnswer",
    "StatePurpose",
}
# Kinds of which no conversation has to get answers, and why.
NOT_COVERED = {
    "StartRanks": "its noise is no known one: test_leak_of_ranks.py takes every reply by its probability",
    "TakeRankSplits": "as StartRanks",
}


def test_every_kind_of_message_that_a_host_takes_is_covered_or_named_as_not():
    host = Crowd(SMALL).hosts[0].first.host
    kinds = (*host._handlers, *host._gate.kinds)
    taken = {kind.__name__ for kind in kinds}
    # They compare ids, and read no column.
    alignment = {kind.__name__ for kind in kinds if ".alignment." in kind.__module__}
    covered = {kind for conversations in CONVERSATIONS.values() for kind in conversations.answered}
    missing = taken - NO_RECORDS - alignment - covered - set(NOT_COVERED)
    assert not missing, f"give {sorted(missing)} a move in tests/leak_moves.py, or say why they need none"
    assert not covered & set(NOT_COVERED) and taken >= covered | NO_RECORDS


@pytest.mark.parametrize(
    "message",
    [
        AskCandidates(C, MODEL, SMALL.ids),
        StartWalk(C, MODEL, SMALL.ids),
        AskWalk(C, one_step=True, rows=b"\0", nodes=b"\0"),
        PassOn(C, 0, b"\0", b"\0"),
    ],
)
def test_a_real_host_refuses_what_simulated_ones_alone_answer(message):
    crowd = Crowd(SMALL)
    assert crowd.say(message)[0][0] == "refused"
    assert crowd.verdict().everybody == 0.0
