"""Several outputs in one number: what goes in comes out, and every protocol gives the same predictions as plain sums over the leaves."""

from dataclasses import replace

import numpy as np
import pytest
from actors import MODEL_ID, running, score
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST, random_world, with_outputs

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.errors import ParameterError
from backend.protocols.scoring.fed_eini import CompiledGuest, host_plan
from backend.protocols.scoring.packing import Packing
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey
from backend.research.baselines.comparison import protocols
from backend.trees.outputs import Outputs

KINDS = ("vectors", "class trees", "median")


def plain_margins(world, row):
    """Oracle: walk every tree, add up (or take the median of) what its leaf says, at the public scale."""
    model, unit = world.model, 2**world.model.score_bits
    told = []
    for t, tree in enumerate(model.trees):
        leaf = tree.nodes[world.leaf_of(t, row)]
        told.append([round(w * unit) / unit for w in model.weights_of(t, leaf)])
    base = np.array([round(b * unit) / unit for b in model.base_scores])
    if model.outputs.aggregation == "median":
        return np.median(told, axis=0) + base
    return np.sum(told, axis=0) + base


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_packed_outputs_are_those_of_a_walk_by_every_protocol(kind, seed):
    world = with_outputs(random_world(seed, n_hosts=2, n_trees=4), kind, seed)
    ids = world.tables[GUEST].ids
    expected = [plain_margins(world, world.row(i)) for i in ids]
    compiled = CompiledGuest(world.model)
    with running(world) as (guest, network, _):
        for name, protocol in protocols(guest, world.model, compiled, PlainKeySide()).items():
            session = Session(network.end(GUEST), name, world.model.hosts, timeout=120)
            try:
                session.broadcast(OfferKey(session.name, "none", b""))
                outcome = protocol.run(MODEL_ID, world.tables[GUEST], session)
            finally:
                session.close()
            np.testing.assert_allclose(compiled.margins(outcome.scored.units), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_outputs_survive_encryption(kind, secret_key):
    world = with_outputs(random_world(3, n_hosts=2, n_trees=4), kind, 3)
    with running(world) as (guest, network, _):
        encrypted, _ = score(world, guest, network, PaillierKeySide(secret_key))
        plain, _ = score(world, guest, network, PlainKeySide())
    assert encrypted.units == plain.units


def test_classes_take_no_more_ciphertexts_than_one_output():
    world = random_world(8, n_hosts=2, n_trees=5)
    assert (
        CompiledGuest(with_outputs(world, "vectors", 1).model).folding.n_entries
        == CompiledGuest(world.model).folding.n_entries
    )


def test_small_packed_numbers_do_not_run_over_when_they_are_added():
    world = with_outputs(random_world(4, n_hosts=1, n_trees=3, bits=4), "vectors", 4)
    packed = np.array([[3 << 61], [3 << 61]], dtype=object)  # each in 8 bytes, their sum not
    key, plan = PlainKeySide(), host_plan(CompiledGuest(world.model).folding, 0)
    plan = replace(plan, target=(0,), is_own=(False,), n_out=1, origin=(0,))
    fold = PlainPublicSide().start_fold(np.ones((2, 1), dtype=bool), plan)
    fold.add(key.encrypt(packed))
    [reply] = fold.finish()
    doubled = PlainPublicSide().start_fold(
        np.ones((1, 2), dtype=bool), replace(plan, target=(0, 0), is_own=(False, False))
    )
    doubled.add(key.encrypt(packed.T))
    assert key.decrypt(reply, 2) == [3 << 61] * 2
    assert key.decrypt(next(iter(doubled.finish())), 1) == [3 << 62]


@given(
    st.lists(st.tuples(*[st.integers(-(2**20), 2**20)] * 3), min_size=1, max_size=6),
)
def test_what_is_packed_comes_out_again(rows):
    world = with_outputs(random_world(1, n_trees=2), "vectors", 1)
    packing = Packing(world.model)
    packing.width = 24  # room for what hypothesis draws
    values = np.array(rows)
    packed = [int(sum(packing.shifted(row, np.arange(3)))) for row in values]
    assert packing.unpack(packed).tolist() == values.tolist()


def test_outputs_that_do_not_fit_a_key_are_refused_before_anything_is_sent(secret_key):
    world = with_outputs(random_world(2, n_hosts=1, n_trees=40), "median", 2)
    with running(world) as (guest, network, _), pytest.raises(ParameterError, match="holds"):
        score(world, guest, network, PaillierKeySide(secret_key))


def test_shares_become_probabilities_that_sum_to_one():
    outputs = Outputs("classes", ("a", "b", "c"), "identity")
    told = outputs.predict(np.array([[0.5, 0.25, 0.249], [0.0, 0.0, 1.0]]))
    np.testing.assert_allclose(told.sum(axis=1), 1.0)
    assert told.argmax(axis=1).tolist() == [0, 2]
