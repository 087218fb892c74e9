"""Trees under growth at the Guest: their jobs, nodes so far and joint records. Sends no message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from backend.protocols.training.growth_record import ROOT
from backend.protocols.training.joint import FeatureKey
from backend.protocols.training.label_bound import COUNTS, BoundedSplits
from backend.trees.ensemble import GuestTree, Leaf, Split
from backend.trees.growth import FREE, BestSplit, Bounds, Criterion, Histogram

IntArray = NDArray[np.int64]
Flags = NDArray[np.bool_]
Histograms = dict[FeatureKey, Histogram]


@dataclass(frozen=True, eq=False, repr=False)
class TreeJob:
    """One tree to be grown.

    Attributes
    ----------
    number : int
        Index among the model's trees.
    rows : ndarray of bool
        ``(n_joint,)``: training rows whose sums count.
    batches : tuple of int
        The batches, of those sent last, that hold its channels, two per batch.
    features : frozenset of (str, str), optional
        (party, feature) pairs that may split; None = all.
    features_a_split : int
        How many of them each split is chosen from, drawn anew for every node; 0 = all.
    seed : int
        Draws these.
    directions : mapping of (str, str) to int
        +1 or -1: predictions must rise or fall with the feature.
    reported : BoundedSplits, optional
        Judges the splits of Hosts in place of `criterion`; its bound says of which nodes they may be told. None = of all.
    """

    number: int
    criterion: Criterion
    rows: Flags
    batches: tuple[int, ...] = (0,)
    features: frozenset[FeatureKey] | None = None
    guest_only: bool = False
    directions: Mapping[FeatureKey, int] = field(default_factory=dict)
    reported: BoundedSplits | None = None
    features_a_split: int = 0
    seed: int = 0

    def uses(self, party: str, feature: str) -> bool:
        """Whether it may split by a feature."""
        return self.features is None or (party, feature) in self.features

    def drawn(self, node: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the places, of `count` features, that a node's split is chosen from, rising, and the others in the order of a draw.

        As scikit-learn does, the others are tried one by one if none of the first splits the node.
        """
        if not self.features_a_split:
            return np.arange(count), np.arange(0)
        order = np.random.default_rng((self.seed, self.number, node)).permutation(count)
        return np.sort(order[: self.features_a_split]), order[self.features_a_split :]

    def may_tell(self, *sums: IntArray) -> bool:
        """Whether Hosts may be told of nodes with these sums."""
        bound = self.reported.bound if self.reported else None
        return bound is None or all(bound.allows(s[COUNTS:]) for s in sums)


@dataclass(frozen=True, eq=False, repr=False)
class GrownTree:
    """A tree, and the number of the leaf that each joint record has come to, ``(n_joint,)``."""

    tree: GuestTree
    leaf: NDArray[np.intp]


@dataclass(eq=False, repr=False)
class GrowingNode:
    """A node under growth: indices of its joint records (training, validation and test) and its sums over the rows that count.

    No Host is told of a node that is `untold`, nor of any below it. `parent` is the node above, whose sums are
    `parent_sums`; -1 and None for the root.
    """

    number: int
    rows: NDArray[np.intp]
    sums: IntArray
    bounds: Bounds
    histograms: Histograms = field(default_factory=dict)
    untold: bool = False
    parent: int = ROOT
    parent_sums: IntArray | None = None


@dataclass(eq=False, repr=False)
class Growing:
    """A tree under growth; nodes are numbered level by level; a split is known once its owner has answered."""

    job: TreeJob
    level: list[GrowingNode]
    leaf: NDArray[np.intp]
    nodes: list[Split | Leaf | None] = field(default_factory=lambda: [None])

    def counted(self, node: GrowingNode) -> Flags:
        """``(n_joint,)``: the node's rows whose sums count."""
        return self.job.rows & flags(node.rows, len(self.leaf))

    def end(self, node: GrowingNode) -> None:
        """Make a node a leaf. A leaf without rows that count has no weight of its own: it takes that of the node above."""
        leaf = self.job.criterion.leaf(node.sums, node.bounds)
        if node.parent_sums is not None and not self.job.rows[node.rows].any():
            above = self.job.criterion.leaf(node.parent_sums, node.bounds)
            leaf = replace(above, cover=0.0)
        self.nodes[node.number] = leaf
        self.leaf[node.rows] = node.number

    def divide(
        self, node: GrowingNode, owner: str, feature: str, best: BestSplit, joint_left: Flags
    ) -> tuple[GrowingNode, GrowingNode]:
        """Turn a node into a split; its children get the next numbers. `joint_left`: which joint records go left, ``(n_joint,)``."""
        number = len(self.nodes)
        goes_left = joint_left[node.rows]
        cover = self.job.criterion.cover(node.sums)
        self.nodes[node.number] = Split(owner, feature, number, number + 1, best.default_left, best.gain, cover)
        self.nodes += [None, None]
        right = node.sums - best.left_sums
        # Both children are checked: the sums of one are the parent's minus the other's.
        untold = node.untold or not self.job.may_tell(best.left_sums, right)
        children = (
            GrowingNode(
                number,
                node.rows[goes_left],
                best.left_sums,
                best.bounds[0],
                untold=untold,
                parent=node.number,
                parent_sums=node.sums,
            ),
            GrowingNode(
                number + 1,
                node.rows[~goes_left],
                right,
                best.bounds[1],
                untold=untold,
                parent=node.number,
                parent_sums=node.sums,
            ),
        )
        self.level += children
        return children

    def grown(self) -> GrownTree:
        """The finished tree."""
        return GrownTree(GuestTree(tuple(n for n in self.nodes if n is not None)), self.leaf)


Wanted = tuple[Growing, GrowingNode]  # a node whose bin sums are requested


def root(job: TreeJob, n: int, sums: IntArray) -> Growing:
    """A tree of one node with all ``n`` joint records."""
    return Growing(job, [GrowingNode(0, np.arange(n), sums, FREE)], np.zeros(n, dtype=np.intp))


def flags(rows: NDArray[np.intp], n: int) -> Flags:
    """Row indices as ``(n,)`` flags."""
    out = np.zeros(n, dtype=bool)
    out[rows] = True
    return out
