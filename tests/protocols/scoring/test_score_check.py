"""The Guest's check of every decrypted score: what the model can give passes, what no combination of leaves can give does not."""

from dataclasses import replace

import numpy as np
import pytest
from actors import running, score
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST, random_world, with_outputs

from backend.crypto.plain import PlainKeySide
from backend.errors import SecurityError
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import EncryptedScores
from backend.trees.compiled import candidate_leaves
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Split, SplitRule

KINDS = ("plain", "vectors", "class trees", "median")


def two_trees():
    """Tree 0: the Guest's x < 5, then the Host's split into 1 and 4 units, else -2. Tree 1: the Host's split into 3 and 10; base 100."""
    first = GuestTree(
        (
            Split(GUEST, "x", 1, 2, True, 1.0, 1.0),
            Split("host0", "h", 3, 4, True, 1.0, 1.0),
            Leaf(-2.0, 1.0),
            Leaf(1.0, 1.0),
            Leaf(4.0, 1.0),
        )
    )
    second = GuestTree((Split("host0", "h", 1, 2, True, 1.0, 1.0), Leaf(3.0, 1.0), Leaf(10.0, 1.0)))
    return GuestModel(GUEST, ("host0",), (first, second), (100.0,), 0, (), {(0, 0): SplitRule("x", True, 5.0)})


@pytest.mark.parametrize(("x", "low", "high"), [(1.0, 100 + 1 + 3, 100 + 4 + 10), (9.0, 100 - 2 + 3, 100 - 2 + 10)])
def test_the_sums_of_the_smallest_and_the_largest_candidates_pass_and_one_unit_beyond_does_not(x, low, high):
    compiled, columns = CompiledGuest(two_trees()), {"x": np.full(4, x)}
    assert compiled.impossible([low - 1, low, high, high + 1], columns).tolist() == [True, False, False, True]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loud", [1 << 62, -(1 << 63), 1 << 70, -(1 << 2000), 1 << 3000])
def test_a_number_of_any_size_is_refused_without_a_fault(kind, loud):
    world = random_world(2, 1)
    world = world if kind == "plain" else with_outputs(world, kind, 2)
    columns = {name: column[:1] for name, column in world.tables[GUEST].columns.items()}
    assert CompiledGuest(world.model).impossible([loud], columns).tolist() == [True]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), hosts=st.integers(1, 2))
def test_no_true_score_is_ever_refused(kind, seed, hosts):
    world = random_world(seed, hosts)
    world = world if kind == "plain" else with_outputs(world, kind, seed)
    with running(world) as (guest, network, _):
        scored, _ = score(world, guest, network, PlainKeySide())
    assert not CompiledGuest(world.model).impossible(scored.units, world.tables[GUEST].columns).any()


def highest(world, compiled):
    """Oracle for the first record: per slot the largest candidate of every tree, added up."""
    packing, columns = compiled.packing, world.tables[GUEST].columns
    kept = candidate_leaves(world.model.skeletons, world.model.rules, columns, len(world.tables[GUEST].ids))
    sums, place = packing.unpack([packing.base])[0].copy(), 0
    for candidates in kept:
        leaves = [place + j for j in np.flatnonzero(candidates[0])]
        place += candidates.shape[1]
        for slot in range(packing.slots):
            units = [
                u
                for leaf, s, u in zip(packing.leaf, packing.slot, packing.unit, strict=True)
                if s == slot and leaf in leaves
            ]
            sums[slot] += max(units, default=0)
    return sums


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [2, 3])
def test_every_output_may_be_as_large_as_its_largest_candidates_and_no_larger(kind, seed):
    world = random_world(seed, 1)
    world = world if kind == "plain" else with_outputs(world, kind, seed)
    compiled = CompiledGuest(world.model)
    packing, columns = compiled.packing, {name: c[:1] for name, c in world.tables[GUEST].columns.items()}
    slots = np.arange(packing.slots)
    most = highest(world, compiled)
    packed = sum(int(v) for v in packing.shifted(most, slots))
    assert not compiled.impossible([packed], columns).any()
    for slot in slots:
        beyond = packed + int(packing.shifted(np.array([1]), np.array([slot]))[0])
        assert compiled.impossible([beyond], columns).all()


def test_a_host_that_returns_something_else_is_named_and_nothing_is_decided():
    world = random_world(4, 2, n=5)
    with running(world) as (guest, network, served):
        last = served.hosts["host1"]
        answer = last.answer

        def louder(sender, message):
            for receiver, reply in answer(sender, message):
                if isinstance(reply, EncryptedScores):
                    units = np.frombuffer(reply.scores, dtype="<i8") + (1 << 40)
                    reply = replace(reply, scores=units.tobytes())  # noqa: PLW2901
                yield receiver, reply

        last.answer = louder
        with pytest.raises(SecurityError, match=r"5 of 5 scores that came back through host0, host1 are not scores"):
            score(world, guest, network, PlainKeySide())
        last.answer = answer
        assert len(score(world, guest, network, PlainKeySide(), name="d")[0].units) == 5
