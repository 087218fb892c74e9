"""Fed-EINI over real messages equals the plain walk, integer for integer (Proposition 1)."""

import numpy as np
import pytest
from actors import running, score
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import GUEST_RULES, HOST_RULES, TOY
from worlds import GUEST, random_world

from backend.crypto.paillier import PaillierKeySide, SecretKey
from backend.crypto.plain import PlainKeySide
from backend.protocols.inference.fed_eini import guest_decision_vectors, host_decision_vectors, to_logits
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Split
from backend.trees.folding import fold_structure

KEY = SecretKey.generate(512, floor=512)


def toy_model():
    weights = dict(zip(TOY.leaves, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], strict=True))
    nodes = tuple(
        Split(TOY.forks[i].owner, "x", TOY.forks[i].left, TOY.forks[i].right, True, 1.0, 1.0)
        if i in TOY.forks
        else Leaf(weights[i], 1.0)
        for i in range(11)
    )
    return GuestModel("guest", ("host",), (GuestTree(nodes),), 0.0, 4, (), GUEST_RULES)


def test_the_toy_sample_of_figure_4_scores_the_weight_of_leaf_one():
    model = toy_model()
    folding = fold_structure(model.skeletons, "guest", ("host",))
    guest_columns = {name: np.array([1.0]) for name in ("g1", "g2", "g6")}
    constant, entries = guest_decision_vectors(model, folding, guest_columns, 1)
    # eq. 11: [w1, w2, 0, 0, 0, 0]; leaf 3 is the constant, leaves 5 and 6 share an entry
    places = folding.entry_of_leaf[0]
    assert constant.tolist() == [0]
    assert entries[0, places[0]] == 16 * 1 and entries[0, places[1]] == 16 * 2
    assert entries[0, places[3]] == entries[0, places[4]] == 0
    host_columns = {"h4": np.array([1.0]), "h7": np.array([1.0])}
    keep = host_decision_vectors(folding.steps[0], HOST_RULES, host_columns, np.array([True]))
    # eq. 12: [1, 0, 1, 1, 0, 0]
    assert [bool(keep[0, p]) for p in (places[0], places[1], places[3], places[4])] == [True, False, True, False]
    assert (entries[0] * keep[0]).sum() + constant[0] == 16 * 1  # eq. 10: w(1,k)


def check_against_oracle(world, key):
    with running(world) as (guest, network, _):
        scored, _ = score(world, guest, network, key)
    ids = world.tables[GUEST].ids
    assert scored.units == [world.oracle(world.row(i)) for i in ids]
    for host, held in scored.held.items():
        assert held.tolist() == [i in world.tables[host].row_of for i in ids]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_scores_over_plain_messages_equal_the_walk(seed, n_hosts):
    check_against_oracle(random_world(seed, n_hosts), PlainKeySide())


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2))
def test_scores_under_encryption_equal_the_walk(seed, n_hosts):
    check_against_oracle(random_world(seed, n_hosts, n=4), PaillierKeySide(KEY))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 24))
def test_scores_are_within_half_a_unit_a_tree_of_the_float_model(seed, bits):
    world = random_world(seed, bits=bits)
    with running(world) as (guest, network, _):
        scored, _ = score(world, guest, network, PlainKeySide())
    exact = random_world(seed, bits=40)
    for i, logit in zip(world.tables[GUEST].ids, to_logits(scored.units, bits), strict=True):
        float_model = exact.oracle(exact.row(i)) / 2**40 - exact.model.base_score + world.model.base_score
        assert abs(logit - float_model) <= len(world.model.trees) * 2.0 ** -(bits + 1) + 1e-9


def test_one_round_of_messages_goes_round_whatever_the_number_of_trees():
    world = random_world(5, n_hosts=2, n_trees=12)
    with running(world) as (guest, network, _):
        _, transcript = score(world, guest, network, PlainKeySide())
    kinds = [(e.kind, e.sender, e.receiver) for e in transcript if e.kind in ("DecisionVectors", "EncryptedScores")]
    assert kinds == [
        ("DecisionVectors", "bank", "host0"),
        ("DecisionVectors", "host0", "host1"),
        ("EncryptedScores", "host1", "bank"),
    ]
    assert [e.number for e in transcript] == list(range(1, len(transcript) + 1))
    assert all(e.bytes > 0 and e.holds and e.readable_by for e in transcript)


def test_a_model_of_the_guest_alone_is_scored_without_a_message():
    world = random_world(7, n_hosts=1)
    alone = random_world(7, n_hosts=0)
    with running(alone) as (guest, network, _):
        scored, transcript = score(alone, guest, network, PlainKeySide())
    assert transcript == () and scored.entries == 0
    assert scored.units == [alone.oracle(alone.row(i)) for i in alone.tables[GUEST].ids]
    assert world.model.hosts == ("host0",)


@pytest.mark.parametrize("cipher", ["none", "paillier"])
def test_messages_are_cut_so_that_a_batch_can_be_watched(monkeypatch, cipher):
    monkeypatch.setattr("backend.protocols.guest.MESSAGE_ENTRIES", 20)
    world = random_world(11, n_hosts=1, n=7)
    key = PlainKeySide() if cipher == "none" else PaillierKeySide(KEY)
    seen = []
    with running(world) as (guest, network, _):
        scored, transcript = score(
            world, guest, network, key, on_stage=lambda stage, party, done: seen.append((stage, party, done))
        )
    assert sum(e.kind == "EncryptedScores" for e in transcript) > 1
    assert scored.units == [world.oracle(world.row(i)) for i in world.tables[GUEST].ids]
    assert seen[0] == ("encode", "bank", 0) and seen[-1] == ("done", "bank", 7)
    assert [d for _, _, d in seen] == sorted(d for _, _, d in seen)
