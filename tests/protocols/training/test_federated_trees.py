"""Trees grown together: as if grown in one place, one by one or in lockstep; and what each party is asked and refuses."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from joints import joined
from worlds import GUEST

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.binning import make_bins
from backend.data.dictionary import Kind
from backend.errors import SecurityError
from backend.protocols.training import host as training_host
from backend.protocols.training import node_sums, pair_pieces
from backend.protocols.training.federated_trees import TreeJob, start
from backend.protocols.training.host_splits import HostTraining
from backend.protocols.training.messages import (
    AskBinSums,
    BinSums,
    FeatureBins,
    Gradients,
    MoreGradients,
    SplitRows,
    TakeSplit,
)
from backend.protocols.training.row_sets import pack_rows, unpack_rows
from backend.protocols.transport.codec import decode
from backend.protocols.transport.packing import to_bitmap
from backend.store.accountant import Limits
from backend.trees.ensemble import Leaf
from backend.trees.growth import GrowthRules, SecondOrder

RULES = GrowthRules(learning_rate=1.0, reg_lambda=1.0, gamma=0.0, min_child_weight=1.0)
CRITERION = SecondOrder(RULES, (1.0, 1.0))
BINS = 6


def pairs(n, seed=0):
    """One batch: gradients from -9 to 9, hessians from 1 to 4."""
    draw = np.random.default_rng(seed)
    return draw.integers(-9, 10, n), draw.integers(1, 5, n)


def some_of(rows, share, seed):
    """A random part of the flagged rows."""
    return rows & (np.random.default_rng(seed).random(len(rows)) < share)


def oracle(parties, g, h, rows, depth, features=None, least=1):
    """Leaves of a tree grown in one place by trying every cut of every feature: a set of (joint rows, weight)."""
    joint, lam = parties.joint, RULES.reg_lambda
    bins = {
        f.name: make_bins(f, parties.columns[f.name][joint.training], BINS)
        for party, offered in joint.features.items()
        for f in offered
        if features is None or (party, f.name) in features
    }
    place = {name: b.index(parties.columns[name]) for name, b in bins.items()}

    def score(inside):
        return g[inside].sum() ** 2 / (h[inside].sum() + lam)

    def sides(name, inside):
        """Every way to divide all records by a feature."""
        count, index = bins[name].count, place[name]
        order = list(range(count))
        if bins[name].feature.kind is Kind.CATEGORICAL:
            members = [inside & rows & (index == b) for b in order]
            order = [b for b in order if members[b].any()]
            order.sort(key=lambda b: g[members[b]].sum() / (h[members[b]].sum() + lam))
        for missing_left in (False, True):
            for cut in range(1, len(order)):
                yield np.isin(index, order[:cut]) | (missing_left & (index == count))

    def grow(inside, level, told=True):
        """Below a node of fewer than `least` people, or one whose sibling has fewer, the Guest's features alone split."""
        counted = inside & rows
        best, chosen = 0.0, None
        offered = bins if told else [name for name in bins if name.startswith(GUEST)]
        for name in offered if level < depth else ():
            for left in sides(name, inside):
                a, b = counted & left, counted & ~left
                if min(h[a].sum(), h[b].sum()) < RULES.min_child_weight:
                    continue
                gain = 0.5 * (score(a) + score(b) - score(counted))
                if gain > best:
                    best, chosen = gain, (name, left)
        if chosen is None:
            return {(tuple(np.flatnonzero(inside)), round(-g[counted].sum() / (h[counted].sum() + lam), 9))}
        name, left = chosen
        missing = place[name] == bins[name].count
        if not (counted & missing).any():  # then those who have no value follow the heavier side
            left = np.where(missing, 2 * h[counted & left].sum() >= h[counted].sum(), left)
        told = told and min((counted & left).sum(), (counted & ~left).sum()) >= least
        return grow(inside & left, level + 1, told) | grow(inside & ~left, level + 1, told)

    return grow(np.ones(len(g), dtype=bool), 0, rows.sum() >= least)


def leaves(grown):
    """The same of a tree that was grown together."""
    nodes = enumerate(grown.tree.nodes)
    found = {i: (tuple(np.flatnonzero(grown.leaf == i)), round(n.weight, 9)) for i, n in nodes if isinstance(n, Leaf)}
    return set(found.values())


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_grown_together_is_the_tree_that_trying_everything_in_one_place_gives(seed):
    with joined(seed, n=80) as parties:
        g, h = pairs(80, seed)
        grower = start(parties.joint, BINS)
        grower.send_pairs([(g, h)])
        [grown] = grower.grow([TreeJob(0, CRITERION, parties.joint.training)], 3)
        assert len(grown.tree.leaves) > 3
        assert leaves(grown) == oracle(parties, g, h, parties.joint.training, 3)


@pytest.mark.parametrize("least", [1, 5, 20, 1_000])
@pytest.mark.parametrize("seed", range(3))
def test_with_a_floor_of_people_a_node_the_tree_is_that_of_a_plaintext_grower_with_that_floor(seed, least, secret_key):
    """Whether the Guest asks for the floor or the Hosts insist on it."""
    found = []
    for min_node, insisted, key in ((least, 0, None), (1, least, None), (1, least, PaillierKeySide(secret_key))):
        floors = {"min_group": insisted, "limits": Limits(999) if insisted else None}
        with joined(seed, n=80, key=key, named=0.0, **floors) as parties:
            g, h = pairs(80, seed)
            grower = start(parties.joint, BINS, min_node=min_node)
            grower.send_pairs([(g, h)])
            [grown] = grower.grow([TreeJob(0, CRITERION, parties.joint.training)], 3)
            found.append(leaves(grown))
            expected = oracle(parties, g, h, parties.joint.training, 3, least=max(20, least) if insisted else least)
            assert found[-1] == expected
            told = [message for message in asked_of(parties) if np.count_nonzero(message) < max(min_node, insisted)]
            assert not told
    assert found[1] == found[2]


def asked_of(parties):
    """The rows of all nodes whose sums Hosts were asked for."""
    for host in ("host0", "host1"):
        for message in asked(parties, AskBinSums, host):
            for rows in message.rows:
                yield unpack_rows(rows, len(parties.joint.parts))


def test_every_joint_record_ends_in_the_leaf_to_which_all_parties_rules_lead_it():
    with joined(3) as parties:
        grower = start(parties.joint, BINS)
        grower.send_pairs([pairs(60)])
        grown = grower.grow([TreeJob(t, CRITERION, parties.joint.training) for t in range(2)], 4)
        rules = parties.rules(grower.rules)
        for number, tree in enumerate(grown):
            assert {s.owner for s in tree.tree.splits.values()} == {GUEST, "host0", "host1"}
            assert (tree.leaf == parties.leaves(number, tree.tree, rules)).all()


def test_trees_in_lockstep_are_the_trees_one_by_one_each_with_its_own_rows_and_features():
    with joined(5, n=90) as parties:
        training = parties.joint.training
        g, h = pairs(90)
        grower = start(parties.joint, BINS)
        draw = np.random.default_rng(0)
        drawn = [frozenset(grower.features[i] for i in draw.choice(9, 4, replace=False)) for _ in range(5)]
        jobs = [TreeJob(t, CRITERION, some_of(training, 0.7, t), features=drawn[t]) for t in range(5)]
        grower.send_pairs([(g, h)])
        together = grower.grow(jobs, 4)
        # A node is summed once in a training: trees of other numbers.
        apart = [grower.grow([replace(job, number=5 + job.number)], 4)[0] for job in jobs]
        for job, one, other in zip(jobs, together, apart, strict=True):
            assert one.tree == other.tree and (one.leaf == other.leaf).all()
            assert {(s.owner, s.feature) for s in one.tree.splits.values()} <= job.features
            assert leaves(one) == oracle(parties, g, h, job.rows, 4, job.features)
        assert len({one.tree for one in together}) == 5


def test_ciphertexts_and_plaintext_give_the_same_trees(secret_key):
    grown = []
    for key in (None, PaillierKeySide(secret_key)):
        with joined(1, key=key) as parties:
            grower = start(parties.joint, BINS)
            grower.send_pairs([pairs(60, 1), pairs(60, 2)])
            jobs = [TreeJob(b, CRITERION, some_of(parties.joint.training, 0.8, b), (b,)) for b in range(2)]
            grown.append([(one.tree, one.leaf.tolist()) for one in grower.grow(jobs, 3)])
    assert grown[0] == grown[1] and grown[0][0] != grown[0][1]


class Recorder:
    """A criterion that keeps what it is shown and never splits."""

    def __init__(self, channels):
        self.channels, self.seen = channels, []

    def best_split(self, histogram, direction, bounds):
        self.seen.append(histogram.sums)

    def leaf(self, sums, bounds):
        return Leaf(0.0, 1.0)

    def cover(self, sums):
        return 1.0


def test_a_criterion_is_shown_the_channels_of_its_own_batches(secret_key):
    batches = [(np.full(60, 1), np.full(60, 2)), (np.full(60, 3), np.full(60, 4)), (np.full(60, 5), np.full(60, 6))]
    with joined(2, key=PaillierKeySide(secret_key)) as parties:
        grower = start(parties.joint, BINS)
        grower.send_pairs(batches)
        rows = some_of(parties.joint.training, 0.5, 1)
        wide, narrow = Recorder(5), Recorder(1)
        jobs = [TreeJob(0, wide, rows, (0, 1, 2)), TreeJob(1, narrow, parties.joint.training, (2,))]
        grower.grow(jobs, 1)
    for sums in wide.seen:  # 9 features, whatever their bins
        assert sums.sum(axis=1).tolist() == [value * rows.sum() for value in (1, 2, 3, 4, 5)]
    for sums in narrow.seen:
        assert sums.sum(axis=1).tolist() == [5 * 36]
    assert len(wide.seen) == len(narrow.seen) == 9


def test_all_of_a_level_is_asked_before_the_first_answer_is_awaited(monkeypatch):
    monkeypatch.setattr(node_sums, "MAX_NODES", 2)
    with joined(4) as parties:
        grower = start(parties.joint, BINS)
        grower.send_pairs([pairs(60)])
        events = []
        send, expect = parties.joint.conversation.send, parties.joint.conversation.expect
        monkeypatch.setattr(parties.joint.conversation, "send", lambda to, m: (events.append(type(m)), send(to, m))[1])
        monkeypatch.setattr(parties.joint.conversation, "expect", lambda kind: (events.append(kind), expect(kind))[1])
        theirs = frozenset(f for f in grower.features if f[0] != GUEST)
        grower.grow([TreeJob(t, CRITERION, parties.joint.training, features=theirs) for t in range(5)], 2)
    turns = [kind for i, kind in enumerate(events) if i == 0 or events[i - 1] is not kind]
    assert turns == [AskBinSums, BinSums, TakeSplit, SplitRows] * 2
    assert events.count(AskBinSums) == events.count(BinSums) == 2 * 2 * 3  # levels, Hosts, five nodes two by two


def test_a_message_asks_for_a_few_dozen_nodes_or_half_a_minute_of_work(monkeypatch):
    with joined(0, n=100) as parties:
        grower = start(parties.joint, BINS)
        grower.send_pairs([pairs(100), pairs(100)])
        number = count()  # a node is summed once in a training

        def nodes_a_message(trees, **kwargs):
            parties.sent.clear()
            numbers = [next(number) for _ in range(trees)]
            grower.grow([TreeJob(t, CRITERION, parties.joint.training, **kwargs) for t in numbers], 1)
            return [len(m.nodes) for m in asked(parties, AskBinSums, "host0")]

        assert nodes_a_message(40) == [32, 8]
        monkeypatch.setattr(node_sums, "MAX_PRODUCTS", 3 * 60 * 3)  # three roots of 60 training rows by three features
        assert nodes_a_message(7) == [3, 3, 1]
        assert nodes_a_message(7, features=frozenset({("host0", "host0_x")})) == [7]
        assert nodes_a_message(7, batches=(0, 1)) == [2, 2, 2, 1]
        # six bins, or four categories, and one for missing values
        monkeypatch.setattr(node_sums, "MAX_SUMS", 2 * (7 + 7 + 5))
        assert nodes_a_message(5) == [2, 2, 1]


def asked(parties, kind, receiver):
    """Messages of a kind that a party was sent."""
    return [decode(blob) for _, to, name, blob in parties.sent if name == kind.__name__ and to == receiver]


def test_a_host_none_of_whose_features_a_tree_uses_is_not_asked_about_it():
    with joined(6) as parties:
        grower = start(parties.joint, BINS)
        grower.send_pairs([pairs(60)])
        without = frozenset(f for f in grower.features if f[0] != "host1")
        few = frozenset({("host1", "host1_c"), ("host0", "host0_x")})
        jobs = [
            TreeJob(0, CRITERION, parties.joint.training, features=without),
            TreeJob(1, CRITERION, parties.joint.training, features=few),
            TreeJob(2, CRITERION, parties.joint.training, guest_only=True),
        ]
        grown = grower.grow(jobs, 3)
        assert {t for m in asked(parties, AskBinSums, "host1") for t in m.trees} == {1}
        assert {t for m in asked(parties, AskBinSums, "host0") for t in m.trees} == {0, 1}
        assert {f for m in asked(parties, AskBinSums, "host1") for f in m.features} == {to_bitmap(np.arange(3) == 2)}
        assert {s.owner for s in grown[2].tree.splits.values()} == {GUEST}
        answers = asked(parties, BinSums, GUEST)
        categories = {8 * 2 * 5}  # four categories and one bin for missing values, two plaintext each
        assert {
            len(b) for m in answers if m.trees[0] == 1 and len(m.trees) == 1 for s in m.sums for b in s
        } >= categories


def test_a_tree_of_the_guest_alone_sends_nothing_at_all():
    with joined(6) as parties:
        grower = start(parties.joint, BINS)
        parties.sent.clear()
        grower.send_pairs([pairs(60)], guest_only=True)
        [grown] = grower.grow([TreeJob(0, CRITERION, parties.joint.training, guest_only=True)], 3)
        assert parties.sent == [] and len(grown.tree.splits) > 1


def test_only_rows_that_count_are_encrypted_and_asked_about():
    with joined(7) as parties:
        some = some_of(parties.joint.training, 0.5, 1)
        grower = start(parties.joint, BINS)
        grower.send_pairs([pairs(60)], rows=some, tree=3)
        grower.grow([TreeJob(3, CRITERION, some)], 2)
        [gradients] = asked(parties, Gradients, "host0")
        assert gradients.tree == 3 and gradients.rows == pack_rows(some)
        assert len(gradients.pairs[0]) == 16 * some.sum()
        assert asked(parties, AskBinSums, "host0")[0].rows == (pack_rows(some),)


@pytest.mark.parametrize("cipher", ["none", "paillier"])
def test_pairs_in_pieces_grow_the_same_tree(cipher, secret_key, monkeypatch):
    key = PaillierKeySide(secret_key) if cipher == "paillier" else None
    width, grown = secret_key.public.width if key else 16, []
    for size in (1 << 22, 2 * 10 * width):  # ten rows of two batches
        monkeypatch.setattr(pair_pieces, "PIECE_BYTES", size)
        with joined(7, key=key) as parties:
            grower = start(parties.joint, BINS)
            grower.send_pairs([pairs(60), pairs(60, seed=1)])
            [made] = grower.grow([TreeJob(0, CRITERION, parties.joint.training)], 3)
            grown.append(leaves(made))
            first, more = asked(parties, Gradients, "host0"), asked(parties, MoreGradients, "host0")
    assert grown[0] == grown[1]
    rows = int(parties.joint.training.sum())
    assert [len(m.pairs) for m in (*first, *more)] == [2] * (1 + (rows - 1) // 10)
    assert [len(m.pairs[1]) // width for m in (*first, *more)] == [10] * (rows // 10) + [rows % 10] * (rows % 10 > 0)


def test_a_host_sums_nothing_before_all_pieces_have_come(monkeypatch):
    monkeypatch.setattr(pair_pieces, "PIECE_BYTES", 16 * 10)
    with joined(7) as parties:
        start(parties.joint, BINS)
        training, all_features = parties.joint.training, to_bitmap(np.ones(3, dtype=bool))
        refused(parties, MoreGradients("c", (bytes(160),)), "follows no other")
        parties.joint.conversation.send("host0", Gradients("c", 0, pack_rows(training), (bytes(160),)))
        asked_for = AskBinSums("c", (0,), (0,), (pack_rows(training),), (all_features,), ((0,),), (-1,))
        refused(parties, asked_for, "before all of their encrypted pairs")
        refused(parties, MoreGradients("c", (bytes(150),)), "were expected")


@pytest.mark.parametrize("coin", [0, 1])
def test_a_hidden_order_changes_names_of_sides_and_no_split(coin, monkeypatch):
    """Numbers downwards (coin 1) or upwards, categories in some order: the same groups, and rules that lead to them."""

    # patched: the coin falls as the test needs it
    def shuffled(noise, request):
        return lambda feature, numbers: list(numbers)[::-1] if coin else list(numbers)

    monkeypatch.setattr(training_host, "_shuffled", shuffled)
    with joined(8, n=90) as parties:
        g, h = pairs(90)
        grower = start(parties.joint, BINS, hide_order=True)
        grower.send_pairs([(g, h)])
        [grown] = grower.grow([TreeJob(0, CRITERION, parties.joint.training)], 3)
        rules = parties.rules(grower.rules)
        assert (grown.leaf == parties.leaves(0, grown.tree, rules)).all()
        assert leaves(grown) == oracle(parties, g, h, parties.joint.training, 3)
        hosts = [r for key, r in rules.items() if key not in grower.rules and r.threshold is not None]
        assert hosts and all(rule.above == bool(coin) for rule in hosts)
        assert not any(rule.above for rule in grower.rules.values())


def test_the_order_is_hidden_by_a_coin_of_each_feature():
    with joined(9, hosts=1, gaps=0.0) as parties:
        firsts = set()
        for _ in range(40):
            grower = start(parties.joint, BINS, hide_order=True)
            columns = parties.served.hosts["host0"]._sessions.of("c").kept(HostTraining)._columns
            shown = [columns.index(f"host0_{f}") for f in "xyc"]
            x, y = parties.columns["host0_x"], parties.columns["host0_y"]
            firsts.add((bool(shown[0][x.argmin()]), bool(shown[1][y.argmin()])))
            assert grower.features[3:] == (("host0", "host0_x"), ("host0", "host0_y"), ("host0", "host0_c"))
    assert len(firsts) == 4  # all pairs of coins came up; they stay away with probability 4 · 0.75**40


def refused(parties, message, match):
    parties.joint.conversation.send("host0", message)
    with pytest.raises(SecurityError, match=match):
        parties.joint.conversation.expect(BinSums)


def test_a_host_refuses_what_no_gradients_came_for():
    with joined(0) as parties:
        grower = start(parties.joint, BINS)
        training = parties.joint.training
        all_features, nobody = to_bitmap(np.ones(3, dtype=bool)), np.zeros(60, dtype=bool)
        refused(
            parties, AskBinSums("c", (0,), (0,), (pack_rows(nobody),), (all_features,), ((0,),), (-1,)), "no gradients"
        )
        some = some_of(training, 0.5, 0)
        grower.send_pairs([pairs(60)], rows=some)
        refused(
            parties,
            AskBinSums("c", (0,), (0,), (pack_rows(training),), (all_features,), ((0,),), (-1,)),
            "over records that",
        )
        refused(
            parties, AskBinSums("c", (0,), (0,), (pack_rows(some),), (all_features,), ((1,),), (-1,)), "no gradients"
        )
        refused(
            parties, AskBinSums("c", (0,), (0,), (pack_rows(some),), (all_features,), ((-1,),), (-1,)), "no gradients"
        )
        refused(parties, AskBinSums("c", (0,), (0,), (pack_rows(some),), (), (), ()), "internal error|no gradients")
        parties.joint.conversation.send("host0", Gradients("c", 0, pack_rows(~training), (b"",)))
        with pytest.raises(SecurityError, match="no training rows"):
            parties.joint.conversation.expect(BinSums)


@pytest.mark.parametrize(
    "answer",
    [
        FeatureBins("c", ("host0_x", "host0_y"), (3, 3), (False, False)),
        FeatureBins("c", ("host0_y", "host0_x", "host0_c"), (3, 3, 3), (False, False, True)),
        FeatureBins("c", ("host0_x", "host0_y", "host0_c"), (3, 3), (False, False, True)),
    ],
)
def test_a_host_that_tells_of_other_features_stops_the_training(answer, monkeypatch):
    with joined(0, hosts=1) as parties:
        monkeypatch.setattr(parties.joint.conversation, "expect_each", lambda kind, hosts: {"host0": answer})
        with pytest.raises(SecurityError) as refusal:
            start(parties.joint, BINS)
        assert refusal.value.code == "host_reports_other_features"


@pytest.mark.parametrize(
    "wrong",
    [
        BinSums("c", (0,), (1,), ((b"",),)),
        BinSums("c", (0, 0), (0, 0), ((b"",), (b"",))),
        BinSums("c", (0,), (0,), ((b"", b""),)),
    ],
)
def test_an_answer_to_another_question_stops_the_training(wrong, monkeypatch):
    with joined(0, hosts=1) as parties:
        grower = start(parties.joint, BINS)
        grower.send_pairs([pairs(60)])
        monkeypatch.setattr(parties.joint.conversation, "expect", lambda kind: ("host0", wrong))
        with pytest.raises(SecurityError) as refusal:
            grower.grow([TreeJob(0, CRITERION, parties.joint.training)], 1)
        assert refusal.value.code == "answered_out_of_turn" and refusal.value.values["host"] == "host0"
