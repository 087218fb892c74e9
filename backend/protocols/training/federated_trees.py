"""Trees grown by the Guest and the Hosts together, for every algorithm: bin sums come in, splits go to their owners.

Sums arrive as integers, so plaintext and ciphertexts give the same trees. The Guest learns which joint records go left at a Host's split
(inherent in SecureBoost; kept in memory for the run only) and never a threshold. Several trees grow in lockstep, level by level: all
requests of a level are sent before the first answer is awaited, and answers are handled as they arrive (asynchronous communication,
Yao et al. §4.1.1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError, WrongAnswer
from backend.jobs import work
from backend.protocols.training.binned import BinnedColumns
from backend.protocols.training.checks import check_bins, check_histograms, check_split_rows
from backend.protocols.training.growing import Flags, Growing, GrowingNode, GrownTree, IntArray, TreeJob, flags, root
from backend.protocols.training.growth_record import ROOT
from backend.protocols.training.joint import FeatureKey, Joint
from backend.protocols.training.label_bound import told_bits
from backend.protocols.training.messages import ChosenSplit, FeatureBins, SplitRows, StartTraining, TakeSplit
from backend.protocols.training.node_sums import NodeSums, answers
from backend.protocols.training.row_sets import pack_rows, unpack_rows
from backend.trees.ensemble import GuestTree, NodeKey, Split, SplitRule
from backend.trees.growth import BestSplit, Histogram

__all__ = ["GrownTree", "TreeGrower", "TreeJob", "routes", "start"]

ENCRYPTED = 0.4  # about the share of a tree's time in which its pairs are encrypted under Paillier


@dataclass(eq=False, repr=False)
class _PendingSplit:
    """A split that its owner has to make; `goes_left` is the owner's answer about the joint records, of which `rows` are in the node."""

    chosen: ChosenSplit
    rows: NDArray[np.intp]
    owner: str
    parent: int
    goes_left: Flags = field(default_factory=lambda: np.empty(0, dtype=bool))


@dataclass(eq=False, repr=False)
class _Chosen:
    """A node and its best split."""

    tree: Growing
    node: GrowingNode
    best: BestSplit
    split: _PendingSplit


Family = tuple[Growing, GrowingNode, GrowingNode, GrowingNode]  # tree, parent, left child, right child


def start(joint: Joint, bins: int, *, hide_order: bool = False, min_node: int = 1) -> TreeGrower:
    """Have every party bin its columns.

    Parameters
    ----------
    bins : int
        Largest number of bins per feature.
    hide_order : bool
        The Hosts number the bins of a feature upwards or downwards at random (categories: in a random order), so that the Guest does
        not learn which side of a split is the upper one ("shuffle the left and right subtree", Yao et al. App. B).
    min_node : int
        The smallest number of people in a node, and in its sibling, that Hosts may see; each Host may ask for more. Smaller nodes are
        grown from the Guest's features alone.

    Raises
    ------
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`Session.expect`; or a Host's answer does not fit its dictionary.
    """
    session = joint.conversation
    for host in session.hosts:
        parameters = pack_rows(joint.training), bins, joint.excluded[host], hide_order, joint.resumed.request
        session.send(host, StartTraining(session.name, *parameters))
    columns = BinnedColumns(joint.features[joint.guest], joint.table.columns, joint.training, bins)
    answers_of = session.expect_each(FeatureBins, session.hosts)
    for host, answer in answers_of.items():
        check_bins(host, answer, joint.features[host], bins)
    return TreeGrower(joint, columns, {host: answers_of[host] for host in session.hosts}, min_node)


class TreeGrower:
    """Grows trees over the joint records.

    Parameters
    ----------
    columns : BinnedColumns
        The Guest's own features over the joint records.
    host_bins : mapping of str to FeatureBins
        Each Host's answer, in chain order.

    Attributes
    ----------
    features : tuple of (str, str)
        (party, feature), the Guest first; on a tie the first one splits.
    choices : dict of (tree, node) to tuple of int
        Which bins go left at each split, as its owner numbers them.
    label_bits : float or None
        Most that a set of records told to a Host has told about labels so far; None if the label is a number.
    choice_bits : dict of str to float
        Per Host: bits that the choice of splits may have told it about labels so far, all nodes together.
    """

    def __init__(
        self, joint: Joint, columns: BinnedColumns, host_bins: Mapping[str, FeatureBins], min_node: int = 1
    ) -> None:
        self._min_node = min_node
        self._columns = columns
        self._guest = joint.guest
        self._n = len(joint.parts)
        self._session = joint.conversation
        self._hosts = tuple(host_bins)
        self._key = joint.key
        self._bins = [count for bins in host_bins.values() for count in bins.bins]
        self._sums = NodeSums(joint, columns, {host: bins for host, bins in host_bins.items() if bins.names})
        guest_features = tuple((self._guest, b.feature.name) for b in columns.bins)
        self.features: tuple[FeatureKey, ...] = guest_features + tuple(
            (host, name) for host, bins in host_bins.items() for name in bins.names
        )
        self.rules: dict[NodeKey, SplitRule] = {}
        self.choices: dict[NodeKey, tuple[int, ...]] = {}
        self._classes = joint.labels.astype(np.intp)
        self._training_rows = int(np.count_nonzero(joint.training))
        self.label_bits: float | None = None if joint.task == "number" else 0.0
        self.choice_bits: dict[str, float] = dict.fromkeys(host_bins, 0.0)

    def send_pairs(
        self,
        batches: Sequence[tuple[IntArray, IntArray]],
        *,
        tree: int = 0,
        rows: Flags | None = None,
        guest_only: bool = False,
    ) -> None:
        """Step 1: see :meth:`NodeSums.send`."""
        self._sums.send(batches, tree=tree, rows=rows, guest_only=guest_only)

    @property
    def encrypted_share(self) -> float:
        """Share of a tree's time after which its pairs are sent; under RLWE each node's rows are encrypted with its sums."""
        if self._key.scheme.startswith("paillier"):
            return ENCRYPTED
        return 0.0

    def grow(self, jobs: Sequence[TreeJob], depth: int) -> list[GrownTree]:
        """Grow trees of at most `depth` splits on a path, all of them level by level; raises as :meth:`Session.expect`."""
        trees = [root(job, self._n, self._sums.of_rows(job)) for job in jobs]
        for tree in trees:
            self._keep_small_nodes(tree.job, tree.level)
            self._count_choices(tree.job, tree.level)
        self._sums.fill([(tree, tree.level[0]) for tree in trees])
        work.reached(1 / max(depth, 1))
        for level in range(depth + 1):
            choices: list[_Chosen] = []
            for tree in trees:
                nodes = tree.level
                tree.level = []
                for node in nodes:
                    work.check()
                    best = self._best(tree.job, node) if level < depth else None
                    if best is None:
                        tree.end(node)
                    else:
                        choices.append(_chosen(tree, node, *best))
            self._ask_owners([c.split for c in choices])
            for c in choices:
                self._check_rows(c)
            families = [
                (
                    c.tree,
                    c.node,
                    *c.tree.divide(c.node, c.split.owner, c.split.chosen.feature, c.best, c.split.goes_left),
                )
                for c in choices
            ]
            for c, (tree, _, left, right) in zip(choices, families, strict=True):
                if c.split.owner != self._guest or (level + 1 < depth and self._sums.asks(tree.job, left)):
                    self._note_told(tree.job, left, right)
            if level + 1 < depth:
                for tree, _, left, right in families:
                    self._keep_small_nodes(tree.job, (left, right))
                    self._count_choices(tree.job, (left, right))
                self._fill_children(families)
                work.reached((level + 2) / depth)
        return [tree.grown() for tree in trees]

    def _best(self, job: TreeJob, node: GrowingNode) -> tuple[str, str, BestSplit] | None:
        """Step 3: the best split over all parties, of the features drawn for it; on a tie the first in party and feature order."""
        keys = [key for key in self.features if key in node.histograms]
        first, others = job.drawn(node.number, len(keys))
        winner = self._best_of(job, node, [keys[place] for place in first])
        for place in others:
            if winner is not None:
                break
            winner = self._best_of(job, node, [keys[place]])
        return winner

    def _best_of(
        self, job: TreeJob, node: GrowingNode, keys: Sequence[FeatureKey]
    ) -> tuple[str, str, BestSplit] | None:
        """Return the best split by one of these features."""
        winner: tuple[str, str, BestSplit] | None = None
        for key in keys:
            criterion = job.reported if job.reported and key[0] != self._guest else job.criterion
            split = criterion.best_split(node.histograms[key], job.directions.get(key, 0), node.bounds)
            if split is not None and (winner is None or split.gain > winner[2].gain):
                winner = (*key, split)
        return winner

    def _keep_small_nodes(self, job: TreeJob, nodes: Sequence[GrowingNode]) -> None:
        """Hide siblings from the Hosts if one of them has too few people: the sums of one follow from those of the other."""
        min_people = max(self._min_node, self._sums.least_people(job))
        if any(np.count_nonzero(job.rows[node.rows]) < min_people for node in nodes):
            for node in nodes:
                node.untold = True

    def _count_choices(self, job: TreeJob, nodes: Sequence[GrowingNode]) -> None:
        """Count what the splits of these nodes may reveal about labels to the Hosts; hide the nodes if the bound would be exceeded.

        Both children of a split are counted: the sums of one follow from those of the other.
        """
        if any(node.untold for node in nodes):
            return
        counted = dict(self.choice_bits)
        for host in self._hosts:
            counted[host] += len(nodes) * self._sums.choice_bits(job, host)
        if job.reported is not None and job.reported.bound is not None:
            max_bits = job.reported.bound.bits * self._training_rows
            if max(counted.values(), default=0.0) > max_bits:
                for node in nodes:
                    node.untold = True
                return
        self.choice_bits = counted

    def _note_told(self, job: TreeJob, *nodes: GrowingNode) -> None:
        if self.label_bits is not None:
            counted = [node.rows[job.rows[node.rows]] for node in nodes]
            counts = []
            for rows in (*counted, job.rows):
                counts.append(np.bincount(self._classes[rows], minlength=self._classes.max() + 1))
            self.label_bits = max(self.label_bits, *(float(told_bits(c, counts[-1])) for c in counts[:-1]))

    def _ask_owners(self, splits: Sequence[_PendingSplit]) -> None:
        """Step 4: the owners store the thresholds and answer which records go left."""
        pending: dict[str, deque[_PendingSplit]] = {host: deque() for host in self._hosts}
        for split in splits:
            chosen = split.chosen
            name = chosen.tree, chosen.node
            self.choices[name] = chosen.left_bins
            if split.owner == self._guest:
                self.rules[name], split.goes_left = self._columns.take_split(
                    chosen.feature, chosen.left_bins, chosen.default_left
                )
                continue
            inside = pack_rows(flags(split.rows, self._n))
            self._session.send(
                split.owner,
                TakeSplit(self._session.name, **vars(chosen), rows=inside, parent=split.parent),
            )
            pending[split.owner].append(split)
        for host, split, answer in answers(self._session, SplitRows, pending):
            if (answer.tree, answer.node) != (split.chosen.tree, split.chosen.node):
                raise SecurityError("answered_out_of_turn", host=host)
            split.goes_left = flags(split.rows[unpack_rows(answer.left, len(split.rows))], self._n)

    def _check_rows(self, choice: _Chosen) -> None:
        """Compare the rows that a Host sends left with the sums that chose its split."""
        split = choice.split
        if split.owner == self._guest:
            return
        left_rows = split.rows[split.goes_left[split.rows]]
        left_sums = self._sums.of_some(choice.tree.job, left_rows)
        check_split_rows(split.owner, split.chosen.feature, left_sums, choice.best.left_sums)

    def take_up(
        self,
        first: int,
        trees: Sequence[GuestTree],
        choices: Mapping[NodeKey, tuple[int, ...]],
        expected: Sequence[Sequence[str]],
    ) -> list[GrownTree]:
        """Return trees that were grown before a break: their splits are sent to their owners once more, and nothing is summed.

        Parameters
        ----------
        first : int
            The number of the first tree.
        choices : mapping of (tree, node) to tuple of int
            :attr:`choices` before the break.
        expected : sequence of sequence of str
            By tree: :func:`routes` before the break.

        Raises
        ------
        WrongAnswer
            If a Host divides its records otherwise than before.
        Cancelled, PartyUnreachable, SecurityError
            See :meth:`Session.expect`.
        """
        places = [np.zeros(self._n, dtype=np.intp) for _ in trees]
        depth = 0
        level = [(i, 0, ROOT, np.arange(self._n)) for i in range(len(trees))]
        while level:
            work.check()
            splits = []
            for i, number, parent, rows in level:
                node = trees[i].nodes[number]
                if isinstance(node, Split):
                    left_bins = choices[first + i, number]
                    chosen = ChosenSplit(first + i, number, node.feature, left_bins, node.default_left)
                    splits.append((i, node, _PendingSplit(chosen, rows, node.owner, parent)))
            self._ask_owners([split for _, _, split in splits])
            level = []
            for i, node, split in splits:
                goes_left = split.goes_left[split.rows]
                places[i][split.rows] = np.where(goes_left, node.left, node.right)
                level.append((i, node.left, split.chosen.node, split.rows[goes_left]))
                level.append((i, node.right, split.chosen.node, split.rows[~goes_left]))
            for i in {i for i, _, _ in splits}:
                if _hash(places[i]) != expected[i][depth]:
                    owners = {split.owner for j, _, split in splits if j == i} - {self._guest}
                    raise WrongAnswer("rows_changed_after_break", hosts=tuple(sorted(owners)))
            depth += 1
        return [GrownTree(tree, place) for tree, place in zip(trees, places, strict=True)]

    def _fill_children(self, families: Sequence[Family]) -> None:
        """Subtract histograms: request those of the smaller child only; the larger child's are parent minus child (FL-DT eq. 14)."""
        small = [
            min((left, right), key=lambda child: np.count_nonzero(tree.job.rows[child.rows]))
            for tree, _, left, right in families
        ]
        self._sums.fill([(family[0], child) for family, child in zip(families, small, strict=True)])
        for (tree, parent, left, right), smaller in zip(families, small, strict=True):
            larger = right if smaller is left else left
            larger.histograms = {k: parent.histograms[k].minus(sums) for k, sums in smaller.histograms.items()}
            of_hosts: dict[str, dict[str, Histogram]] = {}
            for (party, feature), histogram in larger.histograms.items():
                if party != self._guest:
                    of_hosts.setdefault(party, {})[feature] = histogram
            for host, histograms in of_hosts.items():
                check_histograms(host, histograms, None, self._sums.not_negative(tree.job))
            parent.histograms = {}


def routes(grown: GrownTree) -> list[str]:
    """Return for each level of a tree the SHA-256 of the nodes that all joint records have come to, in hexadecimal."""
    parents = {child: i for i, split in grown.tree.splits.items() for child in (split.left, split.right)}
    depths = {0: 0}
    for child, parent in sorted(parents.items()):
        depths[child] = depths[parent] + 1
    places = grown.leaf.copy()
    hashes = []
    for depth in range(max(depths.values()), 0, -1):
        hashes.append(_hash(places))
        for node in np.unique(places).tolist():
            if depths[node] == depth:
                places[places == node] = parents[node]
    return hashes[::-1]


def _hash(places: NDArray[np.intp]) -> str:
    return sha256(places.astype("<i4").tobytes()).hexdigest()


def _chosen(tree: Growing, node: GrowingNode, owner: str, feature: str, best: BestSplit) -> _Chosen:
    chosen = ChosenSplit(tree.job.number, node.number, feature, tuple(best.left_bins), best.default_left)
    return _Chosen(tree, node, best, _PendingSplit(chosen, node.rows, owner, node.parent))
