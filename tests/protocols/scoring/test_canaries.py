"""Canaries: every true score brings its own back, and nothing else a Host can make of the entries does."""

from math import prod

import numpy as np
import pytest
from actors import running, score
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST, World, random_world, with_outputs

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.scoring.fed_eini import CompiledGuest, CompiledHost
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores
from backend.protocols.scoring.packing import CANARY_BITS, canaries
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import to_bitmap
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, Split, SplitRule

KINDS = ("plain", "vectors", "class trees", "median")


def of_kind(kind, seed, hosts=1):
    world = random_world(seed, hosts)
    return world if kind == "plain" else with_outputs(world, kind, seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hosts", [0, 1, 2])
def test_scores_with_canaries_are_those_without(kind, hosts, secret_key):
    world = of_kind(kind, 2, hosts)
    with running(world) as (guest, network, _):
        plain, _ = score(world, guest, network, PlainKeySide())
        carried, _ = score(world, guest, network, PaillierKeySide(secret_key), name="d", canary=True)
    assert carried.units == plain.units
    assert plain.canaries == 0 and carried.canaries == (len(plain.units) if hosts else 0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS))
def test_one_leaf_a_tree_adds_up_to_the_canaries_of_all_trees(seed, kind):
    """In plain arithmetic: the constant and what the Host keeps hold the plain score below, and above it every tree's number once."""
    world = of_kind(kind, seed)
    compiled, table, theirs = CompiledGuest(world.model), world.tables[GUEST], world.tables["host0"]
    riding = canaries(b"seed", "m", table.ids, compiled.trees)
    constant, entries = compiled.encode(table.columns, len(table.ids), riding)
    with running(world) as (guest, network, _):
        plain, _ = score(world, guest, network, PlainKeySide())
    held = np.array([i in theirs.row_of for i in table.ids])
    columns = theirs.take(np.array([theirs.row_of.get(i, 0) for i in table.ids])).columns
    steps = compiled.folding.steps
    sums = [int(c) for c in constant]
    if steps:
        keep = CompiledHost(steps[0], world.hosts["host0"].rules).decide(columns, held)
        sums = [s + sum(int(e) for e in row[kept]) for s, row, kept in zip(sums, entries, keep, strict=True)]
    assert compiled.without_canaries(sums, riding) == plain.units


def returning(world, entries_kept, key, canary):
    """Score one person at a Host that returns the product of the entries of its choice, each as often as it likes."""
    with running(world) as (guest, network, served):
        host = served.hosts["host0"]
        answer = host.answer

        def tampering(sender, message):
            if not isinstance(message, DecisionVectors):
                yield from answer(sender, message)
                return
            sent = key.public.load(message.vectors, message.entries)
            yield sender, HeldRecords(message.conversation, to_bitmap(np.ones(1, dtype=bool)))
            product = prod(sent[e] ** times for e, times in entries_kept.items()) % key.public.n2
            yield sender, EncryptedScores(message.conversation, key.public.dump([product]))

        host.answer = tampering
        return score(world, guest, network, key, canary=canary)[0].units


def two_trees():
    """The Host's split into 1 and 4 units, and another into 3 and 10: four entries, sums from 4 to 14."""
    trees = tuple(
        GuestTree((Split("host0", "h", 1, 2, True, 1.0, 1.0), Leaf(low, 1.0), Leaf(high, 1.0)))
        for low, high in ((1.0, 4.0), (3.0, 10.0))
    )
    model = GuestModel(GUEST, ("host0",), trees, (0.0,), 0, (), {})
    partial_model = HostModel(
        "host0", GUEST, ("host0",), model.skeletons, {(t, 0): SplitRule("h", True, 5.0) for t in (0, 1)}, "salt"
    )
    tables = {p: PartyTable(p, ("a",), {}) for p in (GUEST, "host0")}
    return World(model, {"host0": partial_model}, tables)


def test_a_host_that_stays_within_what_is_possible_is_detected_by_canaries_alone(secret_key):
    world, key = two_trees(), PaillierKeySide(secret_key)
    units = CompiledGuest(world.model).encode({}, 1)[1][0].tolist()
    entry_of = {unit: e for e, unit in enumerate(units)}
    # another record's answers: a sum like any
    assert returning(world, {entry_of[4]: 1, entry_of[10]: 1}, key, canary=True) == [14]
    for odd in (
        {entry_of[4]: 2},
        {entry_of[1]: 1, entry_of[4]: 1},
        {entry_of[10]: 1},
        {entry_of[1]: 4, entry_of[3]: 1},
    ):
        total = sum(units[e] * times for e, times in odd.items())
        assert 4 <= total <= 14, "a sum that could be a score"
        with pytest.raises(SecurityError, match="came back through host0 are not scores that the model can give"):
            returning(world, odd, key, canary=True)


def test_numbers_are_keyed_repeatable_and_as_wide_as_they_should_be():
    drawn = canaries(b"a", "m", ("x", "y"), 50)
    assert drawn.shape == (50, 2) and (drawn == canaries(b"a", "m", ("x", "y"), 50)).all()
    assert drawn.min() >= 0 and 2 ** (CANARY_BITS - 2) < drawn.max() < 2**CANARY_BITS
    for other in (canaries(b"b", "m", ("x", "y"), 50), canaries(b"a", "n", ("x", "y"), 50)):
        assert not (drawn == other).any()
    assert not (drawn[:, 0] == drawn[:, 1]).any()
