"""The account of a Host is never below what a Guest without manners learned, by enumeration of a toy world (docs/leak-oracle.md)."""

import os
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from leak_crowd import Crowd, alone, played
from leak_moves import CONVERSATIONS
from leak_scripts import (
    SCRIPTS,
    SUMS,
    cohort,
    group_sums,
    score,
)
from leak_worlds import CONVERSATION, GROUPED, SMALL, WIDE, World, toy_floors, world_of

from backend.protocols.terms.floors import Floors
from backend.store.accountant import Accountant

EXAMPLES = int(os.environ.get("LEAK_EXAMPLES") or 12)  # conversations of a kind, or a multiple of it
STEPS = 5  # moves of a conversation
ANSWERS = 20  # that a kind has to have got at least: refusals alone prove nothing
LARGE = World(people=4, values=(0.0, 1.0, 2.0))
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
    "name", ["score, twice", "permuted, one scored", "training, two splits at a node", "groups, marks apart"]
)
def test_a_host_without_the_first_ones_decisions_sends_the_same(name):
    world = world_of(name)
    script = [*SCRIPTS[name](world), *SCRIPTS[name](world)]
    crowd = Crowd(world)
    replies = [[] for _ in world.tables]
    for message in script:
        crowd.say(message)
        for of_table, reply in zip(replies, crowd.replies, strict=True):
            of_table.append(reply)
    for place in (0, 21, 42, 63):
        assert replies[place] == alone(world, world.tables[place], script)


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


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_no_conversation_learns_more_than_was_booked(name):
    kind = CONVERSATIONS[name]
    answers = Counter()

    @settings(max_examples=max(1, kind.examples * EXAMPLES), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(kind.moves, min_size=1, max_size=STEPS))
    def converse(conversation):
        crowd = Crowd(kind.world)
        for move in conversation:
            for message in move:
                crowd.say(message)
            verdict = crowd.verdict()
            assert verdict.holds, verdict
        assert not crowd.faults, crowd.faults
        assert not crowd.uneven(), "the account of tables that the Guest cannot tell apart differs"
        answers.update(crowd.answers)

    converse()
    for message in kind.answered:
        assert answers[message] >= ANSWERS, answers


def priced(monkeypatch, most):
    """Have the account book at most so many bits an answer."""
    add = Accountant._add

    def cheaper(session, question, day, granted):
        add(session, replace(question, bits=min(question.bits, most)), day, granted)

    # patched: a mutant of the price, which the oracle has to catch
    monkeypatch.setattr(Accountant, "_add", staticmethod(cheaper))


@pytest.mark.parametrize(
    "name", ["score", "training begins", "cohort", "permuted, one scored", "blanked", "layout of no bits", "groups"]
)
def test_a_host_that_books_nothing_is_caught(name, monkeypatch):
    priced(monkeypatch, 0.0)
    world = world_of(name)
    assert not played(world, SCRIPTS[name](world)).holds


def test_a_price_below_what_is_released_is_caught(monkeypatch):
    """One person's row has two bits."""
    priced(monkeypatch, 1.9)
    assert not played(SMALL, [score(SMALL)]).holds


def test_a_host_without_a_bound_on_the_share_that_sums_could_name_is_caught():
    script = group_sums(GROUPED, ("a",), apart=True, half=13)
    wide = replace(GROUPED, floors=Floors(group_size=2, named=9.0))  # as if there were no bound
    verdict = played(wide, script)
    # 20 of 64 tables have two groups of three people; of these every cell is named.
    assert verdict.answered == 3 and verdict.named == 20 / 64
    assert played(GROUPED, script).named == 0.0
    apart = cohort(WIDE, value_bits=52, apart=True)
    assert played(WIDE, apart).named == 1.0
    assert played(SMALL, apart).answered == 0


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
    "ReportWrongAnswer",
    "StatePurpose",
}
# Kinds that the oracle's conversations send.
COVERED = {
    "AskBinSums",
    "AskCohort",
    "AskGroupSums",
    "BlankValues",
    "DecisionVectors",
    "Gradients",
    "GroupPairs",
    "KeepModel",
    "PermuteValues",
    "ReasonTerms",
    "StartTraining",
    "TakeSplit",
}
# Kinds that it does not send yet, and why.
NOT_COVERED = {
    "StartRanks": "its noise has a distribution of its own: log2 of the sum of the largest probabilities (docs/leak-oracle.md)",
    "TakeRankSplits": "as StartRanks",
    "AskReasons": "a ranking is garbled; what it opens is names",
    "OpenRanking": "as AskReasons",
    "ChooseLabels": "as AskReasons",
    "AssignAges": "classes of ages need more people than the toy has",
    "AskGroupPairs": "pairs of groups of two Hosts need a second Host",
    "AskNodeSums": "RLWE's own form of AskBinSums",
    "NodePairs": "RLWE's own form of Gradients",
    "MoreVectors": "a further piece of DecisionVectors",
    "MoreGradients": "a further piece of Gradients",
    "MoreGroupPairs": "a further piece of GroupPairs",
    "AskCandidates": "alignment: candidates for joint ids, not columns",
    "AskWalk": "simulated Hosts alone answer it",
    "StartWalk": "simulated Hosts alone answer it",
    "PassOn": "simulated Hosts alone answer it",
}


def test_every_kind_of_message_that_a_host_takes_is_covered_or_named_as_not():
    host = Crowd(SMALL).hosts[0].first.host
    taken = {kind.__name__ for kind in (*host._handlers, *host._gate.kinds)}
    unknown = taken - NO_RECORDS - COVERED - set(NOT_COVERED)
    alignment = {kind.__name__ for kind in (*host._handlers, *host._gate.kinds) if ".alignment." in kind.__module__}
    assert not unknown - alignment, f"give {sorted(unknown - alignment)} a move in this file, or say why they have none"
    assert taken >= COVERED
