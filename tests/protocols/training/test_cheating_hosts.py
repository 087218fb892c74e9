"""A Host that cheats in a training is noticed by the Guest, which names it: over real messages, under every cipher, one Host or two.

Each attack is shown to work with the one check removed that notices it.
"""

import json
import logging
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from joints import joined
from worlds import GUEST

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.sum_key import RlweSumKey
from backend.crypto.rlwe.sum_parameters import sum_parameters
from backend.crypto.signing import SigningKey
from backend.errors import SecurityError, WrongAnswer
from backend.protocols.terms.approvals import Approvals
from backend.protocols.training import decision_tree, federated_trees, forest, node_sums, secureboost
from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.federated_trees import TreeJob, start
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.growing import root
from backend.protocols.training.host_splits import HostTraining
from backend.protocols.training.joint import FromTheStart
from backend.protocols.training.label_bound import choice_bits
from backend.protocols.training.messages import BinSums, ReportWrongAnswer, SplitRows, TakeSplit
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport.codec import decode
from backend.protocols.transport.packing import from_bitmap
from backend.remark import Remark
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.criteria import ClassCounts, Stops
from backend.trees.ensemble import Leaf
from backend.trees.growth import FREE, BestSplit, GrowthRules, SecondOrder

CRITERION = SecondOrder(GrowthRules(1.0, 1.0, 0.0, 0.0), (2.0**-10, 2.0**-10))
BOOSTED = SecureBoostParameters(trees=2, depth=2, bins=6, cipher="none", min_child_weight=0.0)
WAYS = {
    "secureboost": (secureboost, BOOSTED),
    "forest": (forest, ForestParameters(trees=2, depth=2, bins=6, cipher="none", score_bits=12, min_samples_leaf=1)),
    "fl-dt": (decision_tree, DecisionTreeParameters(depth=4, min_gain=0.0, bins=6, cipher="none", score_bits=12)),
}
STOLEN = 5  # labels a split: 31 cuts of 32 bins
WORTH = 40  # how often a chosen record counts in a forged sum


@cache
def rlwe_key():
    return RlweSumKey(RlweKeySide(RlweSecretKey.generate(sum_parameters(60))))


@pytest.fixture(params=["none", "paillier", "rlwe"])
def side(request, secret_key):
    return {"none": None, "paillier": PaillierKeySide(secret_key), "rlwe": rlwe_key()}[request.param]


def nothing(*arguments):
    """What is left of a check once it is removed."""


def cheats(monkeypatch, host, method, lie):
    """Have one Host answer by `lie(training, honest answer, arguments)`."""
    honest = getattr(HostTraining, method)

    def answer(training, *arguments, **named):
        given = honest(training, *arguments, **named)
        owned = training._columns.bins[0].feature.name
        return lie(training, given, *arguments) if owned.startswith(host) else given

    # patched: a Host that lies in an answer of its own
    monkeypatch.setattr(HostTraining, method, answer)


def told(parties, kind, receiver):
    return [decode(blob) for _, to, name, blob in parties.sent if name == kind.__name__ and to == receiver]


# 1. bins said against bins asked


def test_a_host_with_more_bins_than_were_asked_for_is_named(monkeypatch):
    honest = HostTraining.__init__

    def finer(training, features, columns, start, history, **named):
        honest(training, features, columns, replace(start, bins=start.bins * 8), history, **named)

    # patched: a Host that lies in an answer of its own
    monkeypatch.setattr(HostTraining, "__init__", finer)
    with joined(0, hosts=1) as parties:
        with pytest.raises(WrongAnswer) as refusal:
            start(parties.joint, 4)
        assert refusal.value.code == "bins_exceed_request" and refusal.value.hosts == ("host0",)
        assert refusal.value.values["asked"] == 4 and refusal.value.values["got"] > 4
        monkeypatch.setattr(federated_trees, "check_bins", nothing)
        grower = start(parties.joint, 4)
        assert max(grower._bins) > 4


# 2. sums against the node's


def forged(training, sums, cipher, message, counted):
    """K1: cut c of the first feature holds WORTH times the gradients of those of the chosen records whose bit in c is set."""
    if message.nodes != (0,):
        return sums
    g, h = training._history.pairs.batches[0]
    chosen = np.flatnonzero(training._history.sent)[:STOLEN]
    numbers = training._position[chosen]
    first = training._columns.bins[0]
    left = np.zeros((2, first.count + 1), dtype=np.int64)
    for cut in range(first.count - 1):
        pattern = (cut + 1) >> np.arange(STOLEN) & 1 == 1
        left[0, cut] = WORTH * g[numbers[pattern]].sum()
        left[1, cut] = WORTH * h[numbers[pattern]].sum()
    node = np.array([g.sum(), h.sum()])
    left[:, first.count - 1] = left[:, first.count] = node + WORTH * np.array([0, h[numbers].sum()])
    by_bin = np.diff(left, axis=1, prepend=0)
    blob = np.frombuffer(sums.sums[0][0], dtype="<i8").reshape(2, -1).copy()
    blob[:, : first.count + 1] = by_bin
    return BinSums(sums.conversation, sums.trees, sums.nodes, ((blob.tobytes(),),))


def everybody_left(training, rows, message, inside):
    """K1 and K2: whatever the split, all go left, so that the node can be split again."""
    return SplitRows(rows.conversation, rows.tree, rows.node, pack_rows(np.ones(int(inside.sum()), dtype=bool)))


def gradients(joint):
    """``(n_joint,)`` each, of a first round at a rate of one half: only signs tell labels."""
    signs = np.where(joint.labels == 1, -1, 1)
    return (512 * signs).astype(np.int64), np.full(len(signs), 256, dtype=np.int64)


def steal(parties):
    """Grow a root while the first Host cheats; return the labels of the chosen records as the Host reads them, and the true ones."""
    grower = start(parties.joint, 32)
    grower.send_pairs([gradients(parties.joint)])
    grower.grow([TreeJob(0, CRITERION, parties.joint.training)], 1)
    [split] = told(parties, TakeSplit, "host0")
    pattern = len(split.left_bins) >> np.arange(STOLEN) & 1 == 1
    labels = parties.joint.labels[np.flatnonzero(parties.joint.training)[:STOLEN]]
    return pattern, labels == 1


def test_labels_that_forged_sums_would_steal_stay_with_the_guest(monkeypatch):
    cheats(monkeypatch, "host0", "bin_sums", forged)
    cheats(monkeypatch, "host0", "take_split", everybody_left)
    with joined(3, n=200, hosts=1, gaps=0.0, coded=False) as parties:
        with pytest.raises(WrongAnswer) as refusal:
            steal(parties)
        assert refusal.value.code == "sums_do_not_add_up" and refusal.value.hosts == ("host0",)
        assert not told(parties, TakeSplit, "host0")  # it has learned nothing
    # With the check removed the pattern of the chosen cut is the labels: one split, five people.
    monkeypatch.setattr(node_sums, "check_histograms", nothing)
    monkeypatch.setattr(federated_trees, "check_histograms", nothing)
    monkeypatch.setattr(federated_trees, "check_split_rows", nothing)
    with joined(3, n=200, hosts=1, gaps=0.0, coded=False) as parties:
        pattern, labels = steal(parties)
    assert (pattern == labels).all() or (pattern == ~labels).all()
    assert 0 < labels.sum() < STOLEN


def fewer_rows(training, node, *arguments):
    """A node's rows without its first: what a feature's bins hold is less than the node."""
    positions, bins = node
    return positions[1:], [(index[1:], count) for index, count in bins]


def next_feature(training, bins, *arguments):
    """Under RLWE: the first row counts in the first bin of the second feature in place of the first feature's."""
    index, count = bins[0]
    moved = index.copy()
    moved[0] = count
    return [(moved, count), *bins[1:]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hosts", [1, 2])
def test_sums_that_leave_out_a_record_end_the_training(monkeypatch, way, hosts, side):
    cheat = f"host{hosts - 1}"
    lie = ("_bins", next_feature) if side is not None and side.scheme == "rlwe" else ("_of_sent", fewer_rows)
    cheats(monkeypatch, cheat, *lie)
    grower, parameters = WAYS[way]
    with joined(1, hosts=hosts, key=side, n=40) as parties, pytest.raises(WrongAnswer) as refusal:
        grower.grow(parties.joint, parameters)
    assert refusal.value.code == "sums_do_not_add_up" and refusal.value.hosts == (cheat,)


def test_a_child_s_sums_larger_than_its_parent_s_end_the_training(monkeypatch):
    """The sums of one child follow from the other's: there a bin would hold a negative number of records."""

    def moved(training, sums, cipher, message, counted):
        if message.nodes == (0,):
            return sums
        answers = []
        count = training._columns.bins[0].count
        for [blob] in sums.sums:
            numbers = np.frombuffer(blob, dtype="<i8").reshape(2, -1).copy()
            numbers[1, : count + 1] = [numbers[1, : count + 1].sum(), *[0] * count]  # all of the node in the first bin
            answers.append((numbers.tobytes(),))
        return BinSums(sums.conversation, sums.trees, sums.nodes, tuple(answers))

    cheats(monkeypatch, "host0", "bin_sums", moved)
    with joined(2, n=120, hosts=1, gaps=0.0, coded=False) as parties, pytest.raises(WrongAnswer) as refusal:
        secureboost.grow(parties.joint, replace(BOOSTED, depth=3))
    assert refusal.value.code == "sums_do_not_add_up"
    monkeypatch.setattr(federated_trees, "check_histograms", nothing)
    with joined(2, n=120, hosts=1, gaps=0.0, coded=False) as parties:
        try:
            secureboost.grow(parties.joint, replace(BOOSTED, depth=3))
        except WrongAnswer as later:
            assert later.code == "rows_do_not_fit_sums"  # it is noticed one answer later, after a split was told


# 3. the rows of a split against the sums that chose it


def others_bins(training, bins, inside, features):
    """Sums in which every third record is in the bin of another one: they add up to the node's, and are those of no cut."""
    asked = from_bitmap(features, len(training._columns.bins))
    names = [b.feature.name for b, used in zip(training._columns.bins, asked, strict=True) if used]
    changed = []
    for name, (_, count) in zip(names, bins, strict=True):
        index = training._columns.index(name).copy()
        index[::3] = np.roll(index[::3], 1)
        changed.append((index[inside], count))
    return changed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hosts", [1, 2])
def test_rows_that_are_not_those_of_the_sums_end_the_training(monkeypatch, way, hosts, side):
    cheat = f"host{hosts - 1}"
    cheats(monkeypatch, cheat, "_bins", others_bins)
    grower, parameters = WAYS[way]
    with (
        joined(2, hosts=hosts, key=side, n=140) as parties,
        pytest.raises(WrongAnswer) as refusal,
    ):  # each way has a split of the last Host
        grower.grow(parties.joint, parameters)
    assert refusal.value.code == "rows_do_not_fit_sums" and refusal.value.hosts == (cheat,)


def planted(training, sums, cipher, message, counted):
    """K2: the first bin of the first feature holds half of the node's hessians and all of its lack of defaults; no record is in it."""
    if message.nodes != (0,):
        return sums
    blob = np.frombuffer(sums.sums[0][0], dtype="<i8").reshape(2, -1).copy()
    count = training._columns.bins[0].count
    g, h = blob[:, : count + 1].sum(axis=1)
    blob[:, : count + 1] = 0
    blob[:, 0] = (g + (1 << 16), h // 2)
    blob[:, 1] = (-(1 << 16), h - h // 2)
    return BinSums(sums.conversation, sums.trees, sums.nodes, ((blob.tobytes(),),))


def everybody_right(training, rows, message, inside):
    return SplitRows(rows.conversation, rows.tree, rows.node, pack_rows(np.zeros(int(inside.sum()), dtype=bool)))


def plant(parties):
    grower = start(parties.joint, 8)
    grower.send_pairs([gradients(parties.joint)])
    [grown] = grower.grow([TreeJob(0, CRITERION, parties.joint.training)], 1)
    return grown


def test_a_leaf_that_no_record_reaches_cannot_be_planted(monkeypatch):
    cheats(monkeypatch, "host0", "bin_sums", planted)
    cheats(monkeypatch, "host0", "take_split", everybody_right)
    with joined(3, n=200, hosts=1, gaps=0.0, coded=False) as parties, pytest.raises(WrongAnswer) as refusal:
        plant(parties)
    assert refusal.value.code == "rows_do_not_fit_sums" and refusal.value.hosts == ("host0",)
    monkeypatch.setattr(federated_trees, "check_split_rows", nothing)
    with joined(3, n=200, hosts=1, gaps=0.0, coded=False) as parties:
        grown = plant(parties)
        empty = ({1, 2} - set(grown.leaf[parties.joint.training].tolist())).pop()
        sums = np.array([number[parties.joint.training].sum() for number in gradients(parties.joint)])
        above = CRITERION.leaf(sums, FREE)
        # The last defence: the leaf has no weight of its own.
        assert grown.tree.nodes[empty] == Leaf(above.weight, 0.0)


@pytest.mark.parametrize(
    "criterion",
    [CRITERION, ClassCounts(2, "gini", Stops(), binary=True), ClassCounts(3, "gini", Stops(), binary=False)],
)
def test_a_leaf_without_rows_takes_the_weight_of_the_node_above(criterion):
    rows = np.array([True, True, True, False])
    sums = np.arange(2, 2 + criterion.channels)
    tree = root(TreeJob(0, criterion, rows), 4, sums)
    best = BestSplit(1.0, (0,), True, np.full(criterion.channels, 1))
    left, right = tree.divide(tree.level[0], "host0", "x", best, np.array([False, False, False, True]))
    tree.end(left)
    tree.end(right)
    above, below = criterion.leaf(sums, FREE), criterion.leaf(sums - 1, FREE)
    assert tree.nodes[1] == replace(above, cover=0.0)
    assert tree.nodes[2] == below


# what no check covers


def test_a_host_that_bins_by_false_values_is_not_noticed(monkeypatch):
    """K3: it gives three people a value of their own and owns the leaf that this makes, which is lenient to whom it sends there later."""
    favoured = 3
    honest = HostTraining.__init__

    def lying(training, features, columns, start, history, **named):
        false = dict(columns)
        name = features[0].name
        false[name] = np.where(np.arange(len(columns[name])) < favoured, 99.0, columns[name] / 10)
        honest(training, features, false, start, history, **named)

    # patched: a Host that lies in an answer of its own
    monkeypatch.setattr(HostTraining, "__init__", lying)
    with joined(3, n=200, hosts=1, gaps=0.0, coded=False) as parties:
        grown = secureboost.grow(parties.joint, replace(BOOSTED, bins=32))
    assert grown.trees  # sums, rows and bins fit, so that nothing is said
    assert choice_bits([32], [False]) > 4.9  # what is metered: log2 of the cuts that it could choose among


# after a break


class Finished(FromTheStart):
    request = "r"

    def add(self, finished):
        self.rounds.append(json.loads(json.dumps(finished)))


def test_rows_that_change_after_a_break_end_the_training(monkeypatch):
    stored = Finished()
    stores = {host: memory_store() for host in ("host0", "host1")}
    with joined(4, n=120, hosts=2, stores=stores) as parties:
        whole = secureboost.grow(replace(parties.joint, resumed=stored), BOOSTED)
    resumed = Finished()
    resumed.rounds = stored.rounds[:1]
    with joined(4, n=120, hosts=2, stores=stores) as parties:
        assert secureboost.grow(replace(parties.joint, resumed=resumed), BOOSTED).trees == whole.trees
    owner = next(s.owner for s in whole.trees[0].splits.values() if s.owner != GUEST)
    cheats(monkeypatch, owner, "take_split", everybody_left)
    resumed.rounds = stored.rounds[:1]
    with joined(4, n=120, hosts=2, stores=stores) as parties, pytest.raises(WrongAnswer) as refusal:
        secureboost.grow(replace(parties.joint, resumed=resumed), BOOSTED)
    assert refusal.value.code == "rows_changed_after_break" and owner in refusal.value.hosts


# the meter


def test_the_meter_counts_the_answers_that_a_host_can_tell_apart():
    assert choice_bits([], []) == 0.0
    assert choice_bits([1], [False]) == 0.0  # one bin has no cut
    assert choice_bits([2], [False]) == pytest.approx(np.log2(3))  # one cut, two sides for missing values, or no split
    assert choice_bits([2, 2], [False, True]) == pytest.approx(np.log2(1 + 2 + 8))


@pytest.mark.parametrize(("way", "nodes"), [("secureboost", 2 * 3), ("fl-dt", 15)])
def test_every_node_that_hosts_are_asked_about_is_metered(way, nodes):
    """Two trees with 3 nodes above their leaves, or one with 15; 6 bins of x and y each, and the 4 categories of c."""
    grower, parameters = WAYS[way]
    with joined(5, n=200, hosts=2, gaps=0.0) as parties:
        grown = grower.grow(parties.joint, parameters)
    most = nodes * np.log2(1 + 2 * (5 + 5 + 2**4))
    assert most / 3 < grown.choice_bits <= most + 1e-9


def test_a_bound_on_labels_bounds_the_choices_too():
    parameters = replace(BOOSTED, trees=6, label_bound=0.2)
    with joined(5, n=400, hosts=2, gaps=0.0) as parties:
        grown = secureboost.grow(parties.joint, parameters)
        rows = int(parties.joint.training.sum())
    with joined(5, n=400, hosts=2, gaps=0.0) as parties:
        free = secureboost.grow(parties.joint, replace(parameters, label_bound=0.0))
    assert 0 < grown.choice_bits <= 0.2 * rows < free.choice_bits


# who reads of it


def test_a_host_logs_what_the_guest_reports_once(caplog):
    with joined(0, hosts=1) as parties:
        host = parties.served.hosts["host0"]
        book = Approvals("host0", Database(), SigningKey.generate())
        handler = next(h.__self__ for kind, h in host._handlers.items() if kind is ReportWrongAnswer)
        handler._log = book.log
        why = Remark("sums_do_not_add_up", {"host": "host0", "feature": "x"})
        report = ReportWrongAnswer("c", why)
        with caplog.at_level(logging.WARNING, "glassleaf"):
            assert not list(host.answer(GUEST, report))
        assert "sums_do_not_add_up" in caplog.text
        [entry] = book.log.entries()
        assert entry.action == "wrong answer" and entry.body["code"] == "sums_do_not_add_up"
        for again in (report, ReportWrongAnswer("c", Remark("at_column", {"column": "x"}))):
            with pytest.raises(SecurityError) as refusal:
                list(host.answer(GUEST, again))
            assert refusal.value.code == "unexpected_report"
        assert len(book.log.entries()) == 1
