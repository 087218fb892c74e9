"""A model as two kinds of partial models: what the Guest may hold and what each Host may hold.

The Guest's partial model has no field in which a Host's threshold or categories could stand; a Host's partial model has none for a leaf
weight, a gain, a cover or another party's feature.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature
from backend.data.medians import Medians
from backend.data.rounding import GainShare, Rounded
from backend.trees.backgrounds import ScoreBands
from backend.trees.outputs import ONE_LOGIT, Outputs

# feature name → (n_samples,) float64 (NaN = missing) or object (None = missing)
Columns = Mapping[str, NDArray[np.generic]]
NodeKey = tuple[int, int]  # (tree, node)


@dataclass(frozen=True)
class Usage:
    """How much one model uses one feature.

    Attributes
    ----------
    splits, trees : int
        Splits by it; trees that have one.
    gain_share, cover_share : float
        Of the model's whole gain and cover, 0–1.
    """

    splits: int
    trees: int
    gain_share: GainShare
    cover_share: Rounded


@dataclass(frozen=True, slots=True)
class SplitRule:
    """What only a split's owner may know: which values go left.

    Attributes
    ----------
    default_left : bool
        Where a missing (or never seen) value goes.
    threshold : float or None
        Numeric and boolean features: ``value < threshold`` goes left.
    above : bool
        Numeric and boolean features: the other values go left instead.
    left_categories, right_categories : frozenset of str
        Categorical features: these go left and right; any other value counts as missing.
    """

    feature: str
    default_left: bool
    threshold: float | None = None
    left_categories: frozenset[str] = frozenset()
    right_categories: frozenset[str] = frozenset()
    above: bool = False

    def goes_left(self, column: NDArray[np.generic]) -> NDArray[np.bool_]:
        """Decide each value of `column`, shape ``(n_samples,)``; returns the same shape, True = left."""
        if self.threshold is not None:
            values = column.astype(np.float64)
            return np.where(np.isnan(values), self.default_left, (values < self.threshold) != self.above)
        if self.default_left:
            in_right = np.fromiter((v in self.right_categories for v in column), dtype=bool, count=len(column))
            return ~in_right
        return np.fromiter((v in self.left_categories for v in column), dtype=bool, count=len(column))


@dataclass(frozen=True, slots=True)
class Split:
    """An internal node as the Guest knows it; ``left`` and ``right`` index into the tree's nodes.

    ``gain`` is eq. 7 of XGBoost's paper (second order, λ and γ); ``cover`` is the sum of hessians that reached the node.
    """

    owner: str
    feature: str
    left: int
    right: int
    default_left: bool
    gain: float
    cover: float


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf as the Guest knows it: ``weight`` on the scale of the model's margins, ``cover`` the sum of hessians or of records.

    ``weights`` holds one number per class where one tree decides between several (``weight`` is the largest then); else it is empty.
    """

    weight: float
    cover: float
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Fork:
    """An internal node as any party may know it: its owner and its children."""

    owner: str
    left: int
    right: int


@dataclass(frozen=True)
class Skeleton:
    """The shape of one tree, shared by all parties: node number → fork; every other node is a leaf."""

    forks: Mapping[int, Fork]

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """Node numbers of the leaves, left to right (the order of every decision vector, Fed-EINI eq. 8)."""
        order: list[int] = []
        stack = [0]
        while stack:
            node = stack.pop()
            fork = self.forks.get(node)
            if fork is None:
                order.append(node)
            else:
                stack += [fork.right, fork.left]
        return tuple(order)

    @cached_property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        level = [0]
        depth = 0
        while forks := [self.forks[i] for i in level if i in self.forks]:
            level = [i for fork in forks for i in (fork.left, fork.right)]
            depth = depth + 1
        return depth


@dataclass(frozen=True)
class GuestTree:
    """One tree at the Guest; node 0 is the root."""

    nodes: tuple[Split | Leaf, ...]

    @cached_property
    def splits(self) -> Mapping[int, Split]:
        """Node number → split, in node order."""
        return {i: n for i, n in enumerate(self.nodes) if isinstance(n, Split)}

    @cached_property
    def skeleton(self) -> Skeleton:
        """What may be shared of the structure: forks and owners."""
        return Skeleton({i: Fork(s.owner, s.left, s.right) for i, s in self.splits.items()})

    @property
    def leaves(self) -> tuple[int, ...]:
        """Node numbers of the leaves, left to right."""
        return self.skeleton.leaves

    @property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        return self.skeleton.depth


@dataclass(frozen=True)
class GuestModel:
    """The Guest's partial model: structure, owners, meanings, gains, covers, its own rules and all leaf weights.

    Attributes
    ----------
    rules : mapping of (tree, node) to SplitRule
        The Guest's own splits only.
    base_scores : tuple of float
        ``(outputs.count,)``: margins before any tree.
    score_bits : int
        Leaf weights are scored as integers of 2**-score_bits (public).
    hosts : tuple of str
        Host party names, in the order of the scoring chain (Fed-EINI §III-B).
    dictionary : tuple of (str, Feature)
        Party name and disclosed feature, for every feature offered to the training, used or not.
    outputs : Outputs
        What the sums of leaf weights mean.
    sides_hidden : bool
        Whether the Hosts keep to themselves which side of a split holds the lower values.
    medians : Medians
        Of the Guest's own features in use, over the joint training records (:mod:`backend.data.medians`).
    bands : ScoreBands or None
        Training records by leaf and score; None if the Guest does not know which leaf they reach, or a score is several numbers.
    """

    guest: str
    hosts: tuple[str, ...]
    trees: tuple[GuestTree, ...]
    base_scores: tuple[float, ...]
    score_bits: int
    dictionary: tuple[tuple[str, Feature], ...]
    rules: Mapping[NodeKey, SplitRule] = field(repr=False)
    outputs: Outputs = ONE_LOGIT
    sides_hidden: bool = False
    medians: Medians = field(default_factory=dict)
    bands: ScoreBands | None = field(default=None, repr=False)

    @cached_property
    def skeletons(self) -> tuple[Skeleton, ...]:
        """What may be shared of the trees."""
        return tuple(tree.skeleton for tree in self.trees)

    @cached_property
    def known_codes(self) -> dict[str, frozenset[str]]:
        """Return the codes that the Guest's splits name, by categorical feature."""
        codes_of: dict[str, frozenset[str]] = {}
        for rule in self.rules.values():
            if rule.threshold is None:
                codes = rule.left_categories | rule.right_categories
                codes_of[rule.feature] = codes_of.get(rule.feature, frozenset()) | codes
        return codes_of

    def weights_of(self, tree: int, leaf: Leaf) -> tuple[float, ...]:
        """What a leaf adds to each output, ``(outputs.count,)``."""
        if leaf.weights:
            return leaf.weights
        at = self.outputs.of_tree[tree] if self.outputs.of_tree else 0
        return tuple(leaf.weight if k == at else 0.0 for k in range(self.outputs.count))

    @property
    def n_leaves(self) -> int:
        """Leaves over all trees."""
        return sum(len(t.leaves) for t in self.trees)

    @cached_property
    def _entries(self) -> Mapping[str, tuple[str, Feature]]:
        return {feature.name: (party, feature) for party, feature in self.dictionary}

    def knows(self, feature: str) -> bool:
        """Whether `feature` was offered to the training."""
        return feature in self._entries

    def owner_of(self, feature: str) -> str:
        """Party that holds `feature`."""
        return self._entries[feature][0]

    def feature(self, name: str) -> Feature:
        """Disclosed entry of the feature dictionary."""
        return self._entries[name][1]


@dataclass(frozen=True, slots=True)
class Layout:
    """Public layout of the numbers that the Guest decrypts.

    Attributes
    ----------
    score_bits : int
        Units are 2**-score_bits.
    slots : int
        Sums packed into one number.
    slot_bits : int
        Bits of each; 0 for a single sum.
    scale : int
        Log2 of the amount that corresponds to 1 on a logit (:attr:`backend.trees.outputs.Outputs.scale`).
    """

    score_bits: int
    slots: int
    slot_bits: int
    scale: int = 0

    @property
    def dither_bits(self) -> int:
        """Units are 2**-dither_bits of the amount that corresponds to a logit."""
        return self.score_bits + self.scale


@dataclass(frozen=True, slots=True)
class Registered:
    """What a Host was told of the Guest's partial model when it kept its own: an auditor compares both with the partial model itself.

    Attributes
    ----------
    guest_hash : str
        Of the Guest's partial model; empty = none was told.
    layout : Layout, optional
        What the Host books and adds dither by.
    """

    guest_hash: str
    layout: Layout | None


@dataclass(frozen=True)
class HostModel:
    """A Host's partial model: the shape of the trees and the rules of its own splits.

    ``salt`` is random, so that the content hash, which the Guest receives, confirms no guessed threshold.
    ``medians`` are those of its own features in use, over the joint training records; none if it does not know which those were.
    Partial models of formats 1 and 2 have no ``layout``, so the Host can add no dither, and an empty ``guest_hash``, so no auditor can
    verify which weights were registered.
    """

    host: str
    guest: str
    hosts: tuple[str, ...]
    skeletons: tuple[Skeleton, ...]
    rules: Mapping[NodeKey, SplitRule] = field(repr=False)
    salt: str = field(repr=False)
    layout: Layout | None = None
    guest_hash: str = ""
    medians: Medians = field(default_factory=dict, repr=False)

    @property
    def registered(self) -> Registered:
        """Return what the Guest has told of its partial model."""
        return Registered(self.guest_hash, self.layout)

    @cached_property
    def capacity(self) -> float:
        """Upper bound of what all answers about these trees can tell about one record here, bits: between which values it lies."""
        return sum(self.capacities.values())

    @cached_property
    def capacities(self) -> dict[str, float]:
        """Feature in use → upper bound of what all answers about these trees can tell about one value of it, bits."""
        cuts: dict[str, set[object]] = {}
        for name, (low, high) in self.medians.items():
            cuts[name] = {("below", low), ("above", high)}  # two cuts even if both are one value
        for rule in self.rules.values():
            of_feature = cuts.setdefault(rule.feature, set())
            if rule.threshold is not None:
                of_feature.add(rule.threshold)
            else:
                of_feature |= rule.left_categories | rule.right_categories
        # k cuts make k + 1 intervals, k categories and another one k + 1 values; a missing value is one more
        return {name: math.log2(len(of_feature) + 2) for name, of_feature in cuts.items()}
