"""Path-dependent SHAP values of tree ensembles: by how much each feature moved a sample's margin (Lundberg et al. 2020, Algorithm 1).

Knows conditions, shares of cover and 0/1, of whichever party. :func:`shap_values`, given all parties' rules, is the plaintext oracle of
what is computed under encryption (:mod:`backend.protocols.explanations`).

Let P be the features on the path to leaf j with weight w_j, 1_i whether the sample follows the path at all of feature i's splits, and c_i
the product of their shares of cover. The leaf's part of a feature's Shapley value is an integral over the probability x that another
feature is known (Owen 1972, "Multilinear extensions of games"), since ∫ x^s (1-x)^(p-1-s) dx = s! (p-1-s)! / p!:

    w_j (1_f - c_f) ∫ ∏_{i≠f} (x 1_i + (1-x) c_i) dx   over [0, 1]

The integrand has degree |P| - 1, so Gauss-Legendre quadrature with ⌈|P|/2⌉ points is exact. At a fixed x the integrand is a product over
features and therefore over parties, which sums over subsets by size are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.trees.backgrounds import COVERS, Background, left_shares
from backend.trees.compiled import Conjunctions
from backend.trees.ensemble import Columns, GuestModel, GuestTree, Leaf, NodeKey, Skeleton, SplitRule
from backend.trees.folding import Condition, Conditions, leaf_conditions

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Factor:
    """One feature on one path.

    Attributes
    ----------
    conditions : Conditions
        All of its splits on the path, and the sides.
    share : float
        Product of their shares of cover, 0 … 1.
    """

    feature: str
    conditions: Conditions
    share: float


def quadrature(skeletons: Sequence[Skeleton]) -> tuple[Floats, Floats]:
    """Points in [0, 1] and their weights, enough for the longest path: ⌈depth/2⌉ each; a function of the public structure."""
    count = max(1, (max((s.depth for s in skeletons), default=0) + 1) // 2)
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) / 2, weights / 2


def largest_contributions(trees: Sequence[GuestTree], features: Sequence[str]) -> Floats:
    """Return the largest absolute contribution of each feature to anybody's margin, ``(features,)``, of models with one sum.

    A Shapley value is a mean of differences between expectations of a tree, and each of these lies between its smallest and its largest
    weight.
    """
    bounds = dict.fromkeys(features, 0.0)
    for tree in trees:
        weights = [node.weight for node in tree.nodes if isinstance(node, Leaf)]
        for feature in {node.feature for node in tree.nodes if not isinstance(node, Leaf)}:
            if feature in bounds:
                bounds[feature] += max(weights) - min(weights)
    return np.array([bounds[feature] for feature in features])


def paths(trees: Sequence[GuestTree]) -> list[Conditions]:
    """Conditions of all parties on the path to each leaf: trees in order, leaves left to right."""
    return [path for leaves in leaf_conditions([tree.skeleton for tree in trees], lambda key: True) for path in leaves]


def factors_of(
    conditions: Sequence[Condition], features: Mapping[NodeKey, str], shares: Mapping[NodeKey, float]
) -> list[Factor]:
    """Group conditions by feature.

    Parameters
    ----------
    features : mapping of (tree, node) to str
        Splits that are not in it are skipped.
    shares : mapping of (tree, node) to float
        Share of the split's cover that goes left.
    """
    by_feature: dict[str, list[Condition]] = {}
    for condition in conditions:
        if condition[:2] in features:
            by_feature.setdefault(features[condition[:2]], []).append(condition)
    factors = []
    for name, conditions_of_feature in by_feature.items():
        shares_of_feature = []
        for t, i, goes_left in conditions_of_feature:
            shares_of_feature.append(shares[t, i] if goes_left else 1.0 - shares[t, i])
        factors.append(Factor(name, tuple(conditions_of_feature), float(np.prod(shares_of_feature))))
    return factors


class Factors:
    """The factors of many paths as arrays.

    Parameters
    ----------
    rules : mapping of (tree, node) to SplitRule
        Of the party whose factors these are.

    Attributes
    ----------
    features : tuple of str
        Name per factor, paths in order.
    row : ndarray of int
        ``(m,)``: the path of each factor.
    """

    def __init__(self, rules: Mapping[NodeKey, SplitRule], rows: Sequence[Sequence[Factor]]) -> None:
        flat = [factor for row in rows for factor in row]
        self.features = tuple(factor.feature for factor in flat)
        self.row = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        self._share = np.array([factor.share for factor in flat]).reshape(-1, 1)
        self._lines = np.full((max(map(len, rows), default=0), len(rows)), len(flat), dtype=np.intp)
        line = iter(range(len(flat)))
        for r, row in enumerate(rows):
            self._lines[: len(row), r] = [next(line) for _ in row]
        factor_numbers = np.arange(len(flat))
        self._others = np.where(self._lines[:, self.row] == factor_numbers, len(flat), self._lines[:, self.row])
        self._conditions = Conjunctions(rules, [factor.conditions for factor in flat]) if flat else None

    def blocks(
        self, columns: Columns, n: int, has_record: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Yield 1_i of some samples at a time: rows, and ``(m, len(rows))``, overwritten by the next block."""
        if self._conditions is None:
            return iter([(slice(0, n), np.empty((0, n), dtype=bool))])
        return self._conditions.blocks(columns, n, has_record)

    def whole(self, holds: NDArray[np.bool_], x: float) -> Floats:
        """Return ∏ (x 1_i + (1-x) c_i) over all factors of a path, ``(paths, n)``; 1 for a path without factors."""
        values = self._values(holds, x)
        out = np.ones((self._lines.shape[1], holds.shape[1]))
        for line in self._lines:
            out *= values[line]
        return out

    def parts(self, holds: NDArray[np.bool_], x: float) -> Floats:
        """Return (1_f - c_f) ∏ over the other factors of f's path, ``(m, n)``."""
        return self._times_others(np.where(holds, 1.0 - self._share, -self._share), holds, x)

    def changes(self, holds: NDArray[np.bool_], other_holds: NDArray[np.bool_]) -> Floats:
        """Return (1_f - 1'_f) ∏ 1_i over the other factors of f's path, ``(m, n)``: the loss if f alone answered as in `other_holds`."""
        return self._times_others(holds.astype(np.float64) - other_holds, holds, 1.0)

    def _times_others(self, out: Floats, holds: NDArray[np.bool_], x: float) -> Floats:
        values = self._values(holds, x)
        for line in self._others:
            out *= values[line]
        return out

    def _values(self, holds: NDArray[np.bool_], x: float) -> Floats:
        """Return x 1_i + (1-x) c_i, and 1 for no factor, ``(m + 1, n)``."""
        values = np.where(holds, x, 0.0) + (1.0 - x) * self._share
        no_factor = np.ones((1, holds.shape[1]))
        return np.concatenate([values, no_factor])


def merged_factors(
    rules: Mapping[NodeKey, SplitRule], rows: Sequence[Conditions], names: Sequence[str], groups: Sequence[int]
) -> Factors:
    """Return the factors of some paths where a party's features of one reason are one factor, named by the reason's number.

    Parameters
    ----------
    names, groups : sequence of str, sequence of int
        Each feature in use, and the reason that it belongs to.
    """
    reason_of = {name: str(group) for name, group in zip(names, groups, strict=True)}
    reasons = {key: reason_of[rule.feature] for key, rule in rules.items()}
    # shares of cover have no part in what is known of everybody
    shares = dict.fromkeys(rules, 1.0)
    return Factors(rules, [factors_of(row, reasons, shares) for row in rows])


def members(factors: Factors, names: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which factor stands for which of some items, where an item has the name of its factors: ``(m,)`` each."""
    places: dict[str, list[int]] = {}
    for item, name in enumerate(names):
        places.setdefault(name, []).append(item)
    pairs = [(factor, item) for factor, name in enumerate(factors.features) for item in places[name]]
    table = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def leaf_weights(model: GuestModel) -> Floats:
    """``(n_leaves,)`` of a model with one output, in the order of :func:`paths`."""
    ends = (tree.nodes[i] for tree in model.trees for i in tree.leaves)
    return np.array([leaf.weight for leaf in ends if isinstance(leaf, Leaf)])


def shap_values(
    model: GuestModel, rules: Mapping[NodeKey, SplitRule], columns: Columns, n: int, background: Background = COVERS
) -> tuple[tuple[str, ...], Floats]:
    """Return SHAP values, computed in plaintext, of a model with one output that is a sum.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The columns of all parties, ``(n,)`` each.
    background : Background
        The group whose shares at the splits replace unknown values.

    Returns
    -------
    features : tuple of str
        The features in use, sorted.
    values : ndarray of float64
        ``(n, len(features))``, in units of the margin.
    """
    names = {}
    for t, tree in enumerate(model.trees):
        for i, split in tree.splits.items():
            names[(t, i)] = split.feature
    shares = left_shares(model, background)
    factors = Factors(rules, [factors_of(path, names, shares) for path in paths(model.trees)])
    features = tuple(sorted(set(names.values())))
    of_factor = leaf_weights(model)[factors.row][:, None]
    position = np.array([features.index(name) for name in factors.features], dtype=np.intp)
    out = np.zeros((len(features), n))
    for rows, holds in factors.blocks(columns, n):
        for x, weight in zip(*quadrature(model.skeletons), strict=True):
            np.add.at(out[:, rows], position, weight * of_factor * factors.parts(holds, float(x)))
    return features, out.T
