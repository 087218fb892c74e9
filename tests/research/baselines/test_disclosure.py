"""Every protocol tells of itself what its messages tell: counted again from the bytes on the wire."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_runs import IN_THE_CLEAR, KEY, WALKS, run, toy_world
from worlds import GUEST, goes_left, random_world

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.protocols.transport.packing import from_numbers, to_numbers
from backend.research.baselines.guest import GuestPaths
from backend.research.baselines.messages import AskCandidates, AskWalk, CandidateLeaves, PassOn, StartWalk, Walked
from backend.trees.ensemble import Leaf, Split


@pytest.mark.parametrize("name", WALKS)
def test_in_the_toy_a_walk_tells_the_guest_one_direction_and_the_host_two(name):
    ran = run(toy_world(), [name])[name]
    guest, host = ran.learned[GUEST], ran.learned["host0"]
    # HF4 to the Guest; to the Host, which is asked at HF4: that GF1 and GF2 went left
    assert (guest.directions, guest.leaves, guest.held, guest.score, guest.ids) == (1.0, 1.0, 1, 0.0, False)
    assert (host.directions, host.leaves, host.held, host.score, host.ids) == (2.0, 1.0, 0, 0.0, True)
    assert guest.bits == 2.0 and host.bits == 2.0


@pytest.mark.parametrize("name", ["one-round-streaming", "one-round-batched"])
def test_in_the_toy_one_round_tells_the_guest_both_directions_and_the_host_none(name):
    ran = run(toy_world(), [name])[name]
    guest, host = ran.learned[GUEST], ran.learned["host0"]
    assert (guest.directions, guest.leaves) == (2.0, 1.0)  # HF7, which is not on the path, too
    assert (host.directions, host.leaves, host.bits, host.ids) == (0.0, 0.0, 0.0, True)
    answer = next(m for _, m in ran.got[GUEST] if isinstance(m, CandidateLeaves))
    # eq. 12, and for the record that is not held right at HF4 and HF7
    eq12, right = [1, 0, 1, 1, 0, 0], [0, 1, 1, 0, 1, 1]
    expected = eq12 if name == "one-round-streaming" else eq12 + right
    assert np.unpackbits(np.frombuffer(answer.leaves, np.uint8))[: len(expected)].tolist() == expected


def test_in_the_toy_fed_eini_tells_the_guest_a_score_of_at_most_one_bit_and_the_host_nothing():
    ran = run(toy_world(), ["fed-eini"], PaillierKeySide(KEY))["fed-eini"]
    guest, host = ran.learned[GUEST], ran.learned["host0"]
    assert (guest.directions, guest.leaves, guest.held) == (0.0, 0.0, 1)
    assert guest.score == 1.0  # leaf one or leaf two
    assert (host.ids, host.bits) == (True, 0.0)


def leaf_paths(model):
    """Per tree, per leaf: the splits on the way, as (node, went left)."""
    out = []
    for tree in model.trees:
        found, stack = [], [(0, ())]
        while stack:
            node, path = stack.pop()
            if isinstance(tree.nodes[node], Leaf):
                found.append(path)
            else:
                stack.append((tree.nodes[node].right, (*path, (node, False))))
                stack.append((tree.nodes[node].left, (*path, (node, True))))
        out.append(found)
    return out


def numbered(model):
    """Node number on the wire → (tree, node)."""
    return [(t, i) for t, tree in enumerate(model.trees) for i in range(len(tree.nodes))]


def visits(world, ran, host):
    """What a Host learned, per sample: splits of its own at which the sample was handed to it."""
    nodes = numbered(world.model)
    out, n, base = [], 0, 0
    for _, message in ran.got[host]:
        if isinstance(message, StartWalk):
            base, n = base + n, len(message.ids)
            out += [set() for _ in message.ids]
        elif isinstance(message, (AskWalk, PassOn)):
            for row, node in zip(from_numbers(message.rows, n), from_numbers(message.nodes, len(nodes)), strict=True):
                out[base + row].add(nodes[node])
    return out


def named_by_host(world, host, seen, row, one_step):
    """(directions, leaves) that follow for a Host from the splits at which it saw a sample, by trying every leaf of every tree."""
    rules = world.hosts[host].rules
    directions = leaves = 0
    for t, paths in enumerate(leaf_paths(world.model)):
        owner = {i: node.owner for i, node in world.model.trees[t].splits.items()}
        fitting = []
        for path in paths:
            own = [i for i, _ in path if owner[i] == host]
            entered = {
                i
                for k, (i, _) in enumerate(path)
                if owner[i] == host and (one_step or not k or owner[path[k - 1][0]] != host)
            }
            as_decided = all(
                goes_left(rules[t, i], row.get(rules[t, i].feature)) == left for i, left in path if i in own
            )
            if as_decided and entered == {i for tree, i in seen if tree == t}:
                fitting.append(path)
        certain = set.intersection(*(set(path) for path in fitting))
        named = sum(owner[i] != host for i, _ in certain)
        directions += named
        leaves += len(fitting) == 1 and named > 0
    return directions, leaves


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(1, 3), together=st.integers(1, 13))
def test_what_a_host_learns_from_a_walk_is_what_its_messages_say(seed, n_hosts, together):
    world = random_world(seed, n_hosts, depth=4)
    ids = world.tables[GUEST].ids
    for name, ran in run(world, WALKS, together=together).items():
        for host in ran.scored.has_record:
            table, seen = world.tables[host], visits(world, ran, host)
            assert len(seen) == len(ids)
            counts = []
            for i, at in zip(ids, seen, strict=True):
                row = world.row(i) if i in table.row_of else {}
                one_step = name.endswith(("node", "tree"))
                counts.append(named_by_host(world, host, at, row, one_step))
            directions, leaves = np.mean(counts, axis=0)
            assert ran.learned[host].directions == pytest.approx(directions), name
            assert ran.learned[host].leaves == pytest.approx(leaves), name


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(1, 3), together=st.integers(1, 13))
def test_what_the_guest_learns_from_a_walk_is_every_host_split_on_the_true_paths(seed, n_hosts, together):
    world = random_world(seed, n_hosts, depth=4)
    rules = dict(world.model.rules) | {
        k: r for partial_model in world.hosts.values() for k, r in partial_model.rules.items()
    }
    passed = 0
    for i in world.tables[GUEST].ids:
        row = world.row(i)
        for t, tree in enumerate(world.model.trees):
            node = 0
            while isinstance(tree.nodes[node], Split):
                split = tree.nodes[node]
                passed += split.owner != GUEST
                node = split.left if goes_left(rules[t, node], row.get(split.feature)) else split.right
    for name, ran in run(world, WALKS, together=together).items():
        assert ran.learned[GUEST].directions == pytest.approx(passed / ran.n)
        if name.endswith(("node", "tree")):  # there each direction is an answer of its own
            width = len(to_numbers(np.array([0]), len(numbered(world.model))))
            assert sum(len(m.nodes) // width for _, m in ran.got[GUEST] if isinstance(m, Walked)) == passed


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(1, 3), together=st.integers(1, 13))
def test_what_the_guest_learns_in_one_round_is_every_host_split_with_a_candidate_below(seed, n_hosts, together):
    world = random_world(seed, n_hosts, depth=4)
    paths = [[(t, *step) for step in path] for t, of_tree in enumerate(leaf_paths(world.model)) for path in of_tree]
    owned_by_tree = [tree.splits for tree in world.model.trees]
    for ran in run(world, ["one-round-streaming", "one-round-batched"], together=together).values():
        named, asked = 0, {h: [] for h in ran.scored.has_record}
        for host, counts in asked.items():
            counts += [len(m.ids) for _, m in ran.got[host] if isinstance(m, AskCandidates)]
        for sender, message in ran.got[GUEST]:
            n = asked[sender].pop(0)
            bits = np.unpackbits(np.frombuffer(message.leaves, np.uint8), count=n * len(paths)).reshape(n, -1)
            for of_sample in bits:
                steps = {step for path, bit in zip(paths, of_sample, strict=True) if bit for step in path}
                own = {(t, node, left) for t, node, left in steps if owned_by_tree[t][node].owner == sender}
                assert len({(t, node) for t, node, _ in own}) == len(own)  # one direction each
                named += len(own)
        assert ran.learned[GUEST].directions == pytest.approx(named / ran.n)
        assert all(ran.learned[h].bits == 0 for h in asked)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(1, 3))
def test_a_score_tells_no_more_than_the_bits_stated(seed, n_hosts):
    world = random_world(seed, n_hosts, bits=3)
    paths = GuestPaths(world.model)
    table = world.tables[GUEST]
    kept = paths.candidates(table.columns, len(table.ids))
    tells = paths.tells(table.columns, len(table.ids))
    spans = np.cumsum([0, *(len(tree.leaves) for tree in world.model.trees)])
    for sample, bits in zip(kept, tells, strict=True):
        units = [paths.units[a:b][sample[a:b]].tolist() for a, b in itertools.pairwise(spans)]
        sums = {sum(chosen) for chosen in itertools.product(*units)}
        assert math.log2(len(sums)) <= bits + 1e-9


def test_fed_einis_guest_gets_ciphertext_sums_and_held_bitmaps_alone():
    world = random_world(3, 2, n_trees=6, n=5)
    key = PaillierKeySide(KEY)
    ran = run(world, ["fed-eini"], key)["fed-eini"]
    assert ran.learned[GUEST].received == ("EncryptedScores", "HeldRecords")
    assert {type(m).__name__: len(getattr(m, "scores", getattr(m, "held", None))) for _, m in ran.got[GUEST]} == {
        "HeldRecords": 1,
        "EncryptedScores": 5 * KEY.public.width,
    }
    for host in world.hosts:
        assert set(ran.learned[host].received) <= {"OfferKey", "DecisionVectors", "MoreVectors", "EndConversation"}
        assert ran.learned[host].bits == 0.0


def test_what_plain_decision_vectors_show_a_host_is_not_called_nothing():
    ran = run(random_world(3, 2), ["fed-eini"], PlainKeySide())["fed-eini"]
    assert ran.learned["host0"].bits is None and ran.learned["host0"].directions is None
    assert ran.learned[GUEST].bits is not None


@pytest.mark.parametrize("name", IN_THE_CLEAR)
def test_statements_name_the_messages_that_came(name):
    ran = run(random_world(3, 2), [name])[name]
    for party, statement in ran.learned.items():
        assert set(statement.received) == {type(m).__name__ for _, m in ran.got[party]}
