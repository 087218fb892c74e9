"""Every protocol gives the plain walk's score, and tells of itself what its messages tell: counted anew from the bytes on the wire."""

import itertools
import math

import numpy as np
import pytest
from actors import MODEL_ID, running
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST, World, goes_left, random_world

from backend.crypto.paillier import PaillierKeySide, SecretKey
from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import ParameterError, SecurityError
from backend.protocols.channel import Conversation
from backend.protocols.comparison import PROTOCOLS, compare, protocols
from backend.protocols.inference.fed_eini import CompiledGuest
from backend.protocols.inference.paths import GuestPaths
from backend.protocols.messages import (
    AskCandidates,
    AskWalk,
    CandidateLeaves,
    Message,
    PassOn,
    StartWalk,
    Walked,
    decode,
    from_numbers,
    to_numbers,
)
from backend.protocols.network import INSTANT, Link
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, Rule, Split

KEY = SecretKey.generate(512, floor=512)
IN_THE_CLEAR = PROTOCOLS[1:]
WALKS = [name for name in PROTOCOLS if name.startswith("multi") or name == "collaborative"]


class Ran:
    """One protocol on a world's own records: its outcome, its statements by party, and the messages by receiver."""

    def __init__(self, name, world, guest, network, every, tap):
        talk = Conversation(network, GUEST, name, world.model.hosts, patience=20)
        before = len(tap)
        try:
            outcome = every[name].run(MODEL_ID, world.tables[GUEST], talk)
        finally:
            self.transcript = talk.close()
        self.scored, self.n = outcome.scored, len(world.tables[GUEST].ids)
        self.learned = {statement.party: statement for statement in outcome.learned(self.transcript)}
        self.got = {party: [] for party in world.tables}
        for sender, receiver, _, blob in tap[before:]:
            self.got[receiver].append((sender, decode(blob)))


def run(world, names=PROTOCOLS, key=None, together=1 << 14):
    tap = []
    key = key or PlainKeySide()
    with running(world, tap=tap) as (guest, network, _):
        every = protocols(guest, world.model, CompiledGuest(world.model), key, together=together)
        assert tuple(every) == PROTOCOLS
        return {name: Ran(name, world, guest, network, every, tap) for name in names}


def toy_world():
    """Fed-EINI's Figure 4 with one sample that goes left everywhere, and one that the Host does not hold (its default: right)."""
    owner = {0: GUEST, 1: GUEST, 2: "host0", 3: "host0", 6: GUEST}
    children = {0: (1, 2), 1: (3, 4), 2: (5, 6), 3: (7, 8), 6: (9, 10)}
    weights = dict(zip((7, 8, 4, 5, 9, 10), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), strict=True))
    nodes = tuple(
        Split(owner[i], f"f{i}", *children[i], True, 1.0, 1.0) if i in owner else Leaf(weights[i], 1.0)
        for i in range(11)
    )
    rules = {(0, i): Rule(f"f{i}", owner[i] == GUEST, 5.0) for i in owner}
    parts = {p: {k: r for k, r in rules.items() if owner[k[1]] == p} for p in (GUEST, "host0")}
    dictionary = tuple((p, Feature(name=f"f{i}", meaning="x")) for i, p in owner.items())
    model = GuestModel(GUEST, ("host0",), (GuestTree(nodes),), (0.0,), 4, dictionary, parts[GUEST])
    low = np.array([1.0, 1.0])
    tables = {
        GUEST: PartyTable(GUEST, ("a", "b"), {"f0": low, "f1": low, "f6": low}),
        "host0": PartyTable("host0", ("a",), {"f2": low[:1], "f3": low[:1]}),
    }
    hosts = {"host0": HostModel("host0", GUEST, ("host0",), model.skeletons, parts["host0"], "salt")}
    return World(model, hosts, tables)


def test_the_toy_samples_score_the_weights_of_leaves_one_and_two_under_every_protocol():
    for ran in run(toy_world()).values():
        assert ran.scored.units == [16, 32]
        assert ran.scored.held["host0"].tolist() == [True, False]


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


def test_rounds_and_messages_of_the_toy_are_as_counted_by_hand():
    rows = run_comparison(toy_world()).rows
    figures = {row.protocol: (row.exchange.rounds, row.exchange.hops, row.exchange.messages) for row in rows}
    assert figures == {
        "fed-eini": (1, 2, 4),  # key, vectors; records held, scores
        "multi-interactive-node": (2, 4, 8),  # start, ask; records held, answer: for each sample
        "multi-interactive-tree": (1, 2, 4),
        "multi-interactive-level": (1, 2, 4),
        "one-round-streaming": (2, 4, 4),
        "one-round-batched": (1, 2, 2),
        "collaborative": (1, 2, 4),  # there to HF4, back to its leaf
    }


def test_the_toys_bytes_are_those_of_its_messages():
    row = next(r for r in run_comparison(toy_world()).rows if r.protocol == "one-round-batched")
    # array header, name, map of field names and values; conversation c1…, bitmaps of 1 and 2 bytes
    ask, answer = (e.bytes for e in row.transcript if e.kind != "EndConversation")
    assert ask + answer == row.exchange.bytes
    assert answer == 1 + 1 + 15 + 1 + (13 + 1 + len("c11")) + (5 + 2 + 1) + (7 + 2 + 2)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(0, 3), together=st.integers(1, 13), depth=st.integers(1, 4))
def test_all_protocols_give_the_plain_walks_score(seed, n_hosts, together, depth):
    world = random_world(seed, n_hosts, depth=depth)
    ids = world.tables[GUEST].ids
    expected = [world.oracle(world.row(i)) for i in ids]
    runs = run(world, together=together)
    for name, ran in runs.items():
        assert ran.scored.units == expected, name
        assert ran.scored.held.keys() == runs["fed-eini"].scored.held.keys()
        for host, held in ran.scored.held.items():
            assert held.tolist() == [i in world.tables[host].row_of for i in ids]


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_three_parties_under_encryption_agree_with_the_protocols_in_the_clear(seed):
    runs = run(random_world(seed, 2, n=4), key=PaillierKeySide(KEY))
    assert len({tuple(ran.scored.units) for ran in runs.values()}) == 1


# what each learned, counted anew ------------------------------------------------------------------------------------------


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
    """What a Host was told, per sample: splits of its own at which the sample was handed to it."""
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


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(1, 3), together=st.integers(1, 13))
def test_what_a_host_learns_from_a_walk_is_what_its_messages_say(seed, n_hosts, together):
    world = random_world(seed, n_hosts, depth=4)
    ids = world.tables[GUEST].ids
    for name, ran in run(world, WALKS, together=together).items():
        for host in ran.scored.held:
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


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(1, 3), together=st.integers(1, 13))
def test_what_the_guest_learns_from_a_walk_is_every_host_split_on_the_true_paths(seed, n_hosts, together):
    world = random_world(seed, n_hosts, depth=4)
    rules = dict(world.model.rules) | {k: r for half in world.hosts.values() for k, r in half.rules.items()}
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


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(1, 3), together=st.integers(1, 13))
def test_what_the_guest_learns_in_one_round_is_every_host_split_with_a_candidate_below(seed, n_hosts, together):
    world = random_world(seed, n_hosts, depth=4)
    paths = [[(t, *step) for step in path] for t, of_tree in enumerate(leaf_paths(world.model)) for path in of_tree]
    owned_by_tree = [tree.splits for tree in world.model.trees]
    for ran in run(world, ["one-round-streaming", "one-round-batched"], together=together).values():
        named, asked = 0, {h: [] for h in ran.scored.held}
        for host, told in asked.items():
            told += [len(m.ids) for _, m in ran.got[host] if isinstance(m, AskCandidates)]
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


# rounds ---------------------------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(1, 3), n=st.integers(1, 12))
def test_rounds_are_within_what_the_papers_say(seed, n_hosts, n):
    world = random_world(seed, n_hosts, depth=4, n=n)
    paths = GuestPaths(world.model)
    if not paths.hosts:
        return
    depth, trees = max(tree.depth for tree in world.model.trees), len(world.model.trees)
    done = {row.protocol: row.exchange for row in run_comparison(world).rows}
    assert done["fed-eini"].rounds == done["one-round-batched"].rounds == 1
    assert done["one-round-batched"].hops == 2 and done["one-round-streaming"].rounds == n
    assert done["multi-interactive-node"].rounds <= n * trees * depth
    assert done["multi-interactive-tree"].rounds <= trees * depth
    assert done["multi-interactive-level"].rounds <= depth
    handovers = paths.trees.handovers()
    assert len(handovers) <= depth + 1  # to the root's owner, down, and back with the leaf
    assert done["collaborative"].hops == max(len(handovers), 2)
    assert done["collaborative"].messages == 2 * len(paths.hosts) + sum(len(handed) for handed in handovers)


# refusals -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", IN_THE_CLEAR)
def test_a_real_host_refuses_every_protocol_in_the_clear_and_says_why(name):
    world = random_world(3, 2)
    with running(world, simulated=False) as (guest, network, _):
        every = protocols(guest, world.model, CompiledGuest(world.model), PaillierKeySide(KEY))
        talk = Conversation(network, GUEST, "c", world.model.hosts, patience=20)
        with pytest.raises(SecurityError, match=r"refused: .* in the clear. Only simulated Hosts answer that"):
            every[name].run(MODEL_ID, world.tables[GUEST], talk)
        assert {e.kind for e in talk.close()} <= {
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
        talk = Conversation(network, GUEST, "c", ("host0",), patience=5)
        for message in messages:
            talk.send("host0", message)
        while True:
            yield talk.expect(Message)[1]


START = StartWalk("c", MODEL_ID, ("a", "b"))
ROOT, HF4, HF7 = bytes([0]), bytes([3]), bytes([2])


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([AskCandidates("c", MODEL_ID, ("a",)), AskWalk("c", True, ROOT, HF4)], "before the walk was begun"),
        ([START, AskWalk("c", True, bytes([0]), ROOT)], "not this Host's to decide"),
        ([START, AskWalk("c", True, bytes([2]), HF4)], "Numbers below 2 were expected, 2 came"),
        ([START, AskWalk("c", True, bytes([0]), bytes([11]))], "Numbers below 11 were expected, 11 came"),
        ([START, AskWalk("c", True, bytes([0, 1]), HF4)], "2 samples came at 1 nodes"),
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
        talk = Conversation(network, "stranger", "c", ("host0",), patience=5)
        talk.send("host0", START)
        with pytest.raises(SecurityError, match="Only the model's Guest"):
            talk.expect(Message)


def test_a_host_decides_one_split_or_all_of_its_own_in_a_row():
    nodes = (
        Split("host0", "y", 1, 2, True, 1.0, 1.0),
        Split("host0", "y", 3, 4, True, 1.0, 1.0),
        *(Leaf(w, 1.0) for w in (1.0, 2.0, 3.0)),
    )
    rules = {(0, 0): Rule("y", True, 5.0), (0, 1): Rule("y", True, 3.0)}
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


@pytest.mark.parametrize(("below", "width"), [(1, 1), (256, 1), (257, 2), (65536, 2), (65537, 4)])
def test_numbers_take_as_few_bytes_as_the_largest(below, width):
    blob = to_numbers(np.array([0, below - 1]), below)
    assert len(blob) == 2 * width and from_numbers(blob, below).tolist() == [0, below - 1]


# the comparison ---------------------------------------------------------------------------------------------------------------


def run_comparison(world, **kwargs):
    with running(world) as (guest, network, _):
        key = kwargs.pop("key", PlainKeySide())
        every = protocols(guest, world.model, CompiledGuest(world.model), key)
        number = itertools.count(1)

        def converse():
            return Conversation(network, GUEST, f"c{next(number)}", world.model.hosts, patience=20)

        return compare(every, MODEL_ID, world.tables[GUEST], key, converse, **kwargs)


def test_a_comparison_has_a_row_for_every_protocol_with_the_same_scores():
    told = []
    done = run_comparison(random_world(4, 2, n=5), key=PaillierKeySide(KEY), on_protocol=told.append)
    assert tuple(row.protocol for row in done.rows) == PROTOCOLS == tuple(told)
    assert all(row.equal for row in done.rows)
    assert (done.samples, done.cipher, done.key_bits) == (5, "paillier", 512)
    for row in done.rows:
        sent = [e for e in row.transcript if e.kind != "EndConversation"]
        assert row.exchange.messages == len(sent) and row.exchange.bytes == sum(e.bytes for e in sent)
        assert row.exchange.total == row.exchange.compute + row.exchange.network > 0
        assert [s.party for s in row.learned] == [GUEST, "host0", "host1"]


def test_another_link_changes_times_and_nothing_else():
    done = run_comparison(random_world(4, 2))
    other = done.over(INSTANT)
    for before, after in zip(done.rows, other.rows, strict=True):
        assert after.exchange.network == 0 < before.exchange.network
        assert after.exchange.compute == before.exchange.compute and after.exchange.bytes == before.exchange.bytes
        assert (after.learned, after.equal) == (before.learned, before.equal)
    assert other.over(Link()) == done


def test_a_comparison_as_json_holds_every_figure_and_no_transcript():
    body = run_comparison(random_world(4, 1), names=("fed-eini", "collaborative")).as_dict()
    assert [p["protocol"] for p in body["protocols"]] == ["fed-eini", "collaborative"]
    assert body["latency_seconds"] == 0.05 and body["bandwidth_bytes_per_second"] == 300_000
    assert set(body["protocols"][0]) == {
        "protocol", "rounds", "hops", "messages", "bytes", "compute_seconds", "network_seconds", "total_seconds",
        "work_seconds", "equal", "learned",
    }  # fmt: skip
    assert body["protocols"][0]["learned"][1]["bits"] is None
    assert set(body["protocols"][1]["learned"][0]) == {
        "party", "received", "ids", "held", "directions", "leaves", "score", "bits",
    }  # fmt: skip


def test_a_protocol_that_scores_otherwise_is_found_out():
    class Wrong:
        name = "wrong"

        def __init__(self, right):
            self._right = right

        def run(self, *args):
            outcome = self._right.run(*args)
            outcome.scored.units[-1] += 1
            return outcome

    world = random_world(4, 1)
    key = PlainKeySide()
    with running(world) as (guest, network, _):
        every = protocols(guest, world.model, CompiledGuest(world.model), key)
        every["wrong"] = Wrong(every["collaborative"])
        number = itertools.count(1)
        done = compare(
            every,
            MODEL_ID,
            world.tables[GUEST],
            key,
            lambda: Conversation(network, GUEST, f"c{next(number)}", world.model.hosts, patience=20),
            names=("fed-eini", "wrong"),
        )
    assert [row.equal for row in done.rows] == [True, False]


def test_a_comparison_refuses_an_unknown_protocol_no_sample_and_a_model_without_hosts():
    with pytest.raises(ParameterError, match="riac was asked for; there are: fed-eini, "):
        run_comparison(random_world(4, 1), names=("riac",))
    with pytest.raises(ParameterError, match="No protocol was asked for"):
        run_comparison(random_world(4, 1), names=())
    with pytest.raises(ParameterError, match="no sample"):
        run_comparison(random_world(4, 1, n=0))
    with pytest.raises(ParameterError, match="No Host owns a split"):
        run_comparison(random_world(4, 0))
