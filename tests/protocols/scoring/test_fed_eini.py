"""Fed-EINI over real messages equals the plain walk, integer for integer (Proposition 1)."""

import numpy as np
import pytest
from actors import running, score
from hypothesis import given, settings
from hypothesis import strategies as st
from node_walk import goes_left
from toy import GUEST_RULES, HOST_RULES, TOY
from worlds import GUEST, random_world

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.protocols.scoring.fed_eini import CompiledGuest, CompiledHost, host_plan
from backend.trees.compiled import candidate_leaves, own_conditions
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Split
from backend.trees.folding import fold_structure

KEY = PaillierSecretKey.generate(512, floor=512)


def toy_model():
    weights = dict(zip(TOY.leaves, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], strict=True))
    nodes = tuple(
        Split(TOY.forks[i].owner, "x", TOY.forks[i].left, TOY.forks[i].right, True, 1.0, 1.0)
        if i in TOY.forks
        else Leaf(weights[i], 1.0)
        for i in range(11)
    )
    return GuestModel("guest", ("host",), (GuestTree(nodes),), (0.0,), 4, (), GUEST_RULES)


def test_the_toy_sample_of_figure_4_scores_the_weight_of_leaf_one():
    model = toy_model()
    folding = fold_structure(model.skeletons, "guest", ("host",))
    guest_columns = {name: np.array([1.0]) for name in ("g1", "g2", "g6")}
    compiled = CompiledGuest(model)
    constant, entries = compiled.encode(guest_columns, 1)
    assert compiled.largest == 16 * 6 + 2  # and what dither may add: half of 2^-2
    # eq. 11: [w1, w2, 0, 0, 0, 0]; leaf 3 is the constant, leaves 5 and 6 share an entry
    places = folding.entry_of_leaf[0]
    assert constant == [0]
    assert entries[0, places[0]] == 16 * 1 and entries[0, places[1]] == 16 * 2
    assert entries[0, places[3]] == entries[0, places[4]] == 0
    host_columns = {"h4": np.array([1.0]), "h7": np.array([1.0])}
    keep = CompiledHost(folding.steps[0], HOST_RULES).decide(host_columns, np.array([True]))
    # eq. 12: [1, 0, 1, 1, 0, 0]
    assert [bool(keep[0, p]) for p in (places[0], places[1], places[3], places[4])] == [True, False, True, False]
    assert (entries[0] * keep[0]).sum() + constant[0] == 16 * 1  # eq. 10: w(1,k)


def walked_entries(model, folding, columns, n):
    """Oracle of eq. 8: the walk, leaf by leaf."""
    constant = np.full(n, round(model.base_scores[0] * 2**model.score_bits))
    entries = np.zeros((n, folding.n_entries), dtype=np.int64)
    candidates = candidate_leaves(model.skeletons, model.rules, columns, n)
    for kept, tree, places in zip(candidates, model.trees, folding.entry_of_leaf, strict=True):
        units = [round(tree.nodes[i].weight * 2**model.score_bits) for i in tree.leaves]
        for j, place in enumerate(places):
            target = constant if place is None else entries[:, place]
            target += kept[:, j] * units[j]
    return constant, entries


def decided_entries(step, rules, columns, held):
    """Oracle of eq. 9: entry by entry, condition by condition."""
    keep = np.ones((len(held), len(step.host_conditions)), dtype=bool)
    for e, conditions in enumerate(step.host_conditions):
        for tree, node, left in conditions:
            rule = rules[tree, node]
            keep[:, e] &= np.where(held, goes_left(rule, columns, len(held)), rule.default_left) == left
    return keep


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.data())
def test_compiled_decision_vectors_are_those_of_the_walk_integer_for_integer(seed, n_hosts, data):
    world = random_world(seed, n_hosts)
    folding = fold_structure(world.model.skeletons, GUEST, world.model.hosts)

    def some(party):
        table = world.tables[party]
        names = data.draw(st.sets(st.sampled_from(sorted(table.columns))))
        return {name: table.columns[name] for name in names}, len(table.ids)

    columns, n = some(GUEST)
    for got, walked in zip(
        CompiledGuest(world.model).encode(columns, n),
        walked_entries(world.model, folding, columns, n),
        strict=True,
    ):
        assert np.array_equal(got, walked)
    for step in folding.steps:
        columns, n = some(step.host)
        held = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool)
        rules = world.hosts[step.host].rules
        assert np.array_equal(
            CompiledHost(step, rules).decide(columns, held), decided_entries(step, rules, columns, held)
        )


@pytest.mark.parametrize(("weight", "width"), [(2.0**20 - 1, np.int32), (2.0**21, np.int64)])
def test_entries_take_64_bits_only_where_32_are_too_few(weight, width):
    nodes = (Split("host", "x", 1, 2, True, 1.0, 1.0), Leaf(weight, 1.0), Leaf(-weight, 1.0))
    model = GuestModel("guest", ("host",), (GuestTree(nodes),), (3.0,), 10, (), {})
    compiled = CompiledGuest(model)
    constant, entries = compiled.encode({}, 1)
    assert entries.dtype == width and sorted(entries[0].tolist()) == [-weight * 1024, weight * 1024]
    assert constant == [3 * 1024]
    assert compiled.largest == weight * 1024 + 128  # and what dither may add: half of 2^-2


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_a_plan_traces_every_entry_of_the_guest_to_the_entry_with_this_hosts_conditions(seed, n_hosts):
    world = random_world(seed, n_hosts)
    folding = fold_structure(world.model.skeletons, GUEST, world.model.hosts)
    entry_of_leaf = [e for leaves in folding.entry_of_leaf for e in leaves]
    for place, step in enumerate(folding.steps):
        plan = host_plan(folding, place)
        assert (plan.index, plan.hosts, plan.n_out) == (place, len(folding.steps), step.n_out)
        assert plan.last == (place + 1 == len(folding.steps))
        assert len(plan.origin) == folding.n_entries and set(plan.origin) == set(range(len(step.host_conditions)))
        of_leaf = own_conditions(world.model.skeletons, world.hosts[step.host].rules)
        for e, conditions in zip(entry_of_leaf, of_leaf, strict=True):
            if e is not None:
                assert step.host_conditions[plan.origin[e]] == conditions and plan.is_own[plan.origin[e]] == bool(
                    conditions
                )


def check_against_oracle(world, key):
    with running(world) as (guest, network, _):
        scored, _ = score(world, guest, network, key)
    ids = world.tables[GUEST].ids
    assert scored.units == [world.oracle(world.row(i)) for i in ids]
    for host, held in scored.has_record.items():
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
    for i, logit in zip(world.tables[GUEST].ids, np.array(scored.units) / 2**bits, strict=True):
        float_model = exact.oracle(exact.row(i)) / 2**40 - exact.model.base_scores[0] + world.model.base_scores[0]
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


@pytest.mark.parametrize("cipher", ["plain", "paillier.scheme"])
def test_messages_are_cut_so_that_a_batch_can_be_watched(monkeypatch, cipher):
    monkeypatch.setattr(f"backend.crypto.{cipher}.MESSAGE_ENTRIES", 20)
    world = random_world(11, n_hosts=1, n=7)
    key = PlainKeySide() if cipher == "plain" else PaillierKeySide(KEY)
    seen = []
    with running(world) as (guest, network, _):
        scored, transcript = score(
            world, guest, network, key, on_stage=lambda stage, party, done: seen.append((stage, party, done))
        )
    assert sum(e.kind == "EncryptedScores" for e in transcript) > 1
    assert scored.units == [world.oracle(world.row(i)) for i in world.tables[GUEST].ids]
    assert seen[0] == ("encode", "bank", 0) and seen[-1] == ("done", "bank", 7)
    assert [d for _, _, d in seen] == sorted(d for _, _, d in seen)
