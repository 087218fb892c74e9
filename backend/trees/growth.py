"""Tree growth: gradients, the best split of a histogram, leaves. Sums arrive as integers, so every cipher gives the same tree.

Second-order boosting as in SecureBoost and XGBoost (Fed-EINI §II-A eq. 1): with G = Σg and H = Σh over a node,
weight = -η·G/(H+λ) and gain = ½·[G_L²/(H_L+λ) + G_R²/(H_R+λ) - G²/(H+λ)] - γ. Other criteria: :mod:`backend.trees.criteria`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.data.label import Task
from backend.trees.ensemble import Leaf
from backend.trees.outputs import Floats, sigmoid, softmax

IntArray = NDArray[np.int64]


class Bounds(NamedTuple):
    """Range of a node's leaf weights (before the learning rate, or a share or mean) under the monotone constraints above it."""

    low: float
    high: float


FREE = Bounds(-np.inf, np.inf)


# Not the parameters of a training: trees know no protocol, cipher or key.
@dataclass(frozen=True)
class GrowthRules:
    """Parameters of second-order growth (XGBoost's names; ``gamma`` as in eq. 1)."""

    learning_rate: float
    reg_lambda: float
    gamma: float
    min_child_weight: float


@dataclass(frozen=True, eq=False)
class Histogram:
    """Sums over one node by one feature's bins, as integers.

    Attributes
    ----------
    sums : ndarray of int64
        ``(channels, count + 1)``: the criterion defines the channels; the last column is the bin of missing values.
    categorical : bool
        Whether the bins are unordered.
    """

    sums: IntArray
    categorical: bool

    def minus(self, child: Histogram) -> Histogram:
        """Return the other child's histogram: this node's minus `child`'s, exact."""
        return Histogram(self.sums - child.sums, self.categorical)


@dataclass(frozen=True, eq=False)
class BestSplit:
    """The best split of one node by one feature.

    Attributes
    ----------
    left_bins : tuple of int
        Bins that go left, ascending (for ordered bins 0 … k-1).
    left_sums : ndarray of int64
        ``(channels,)``: sums of the left child, missing values included where they go left.
    bounds : (Bounds, Bounds)
        Of the left and the right child.
    """

    gain: float
    left_bins: tuple[int, ...]
    default_left: bool
    left_sums: IntArray
    bounds: tuple[Bounds, Bounds] = (FREE, FREE)


class Criterion(Protocol):
    """Judges splits and makes leaves. Sums are integers, one row per channel."""

    @property
    def channels(self) -> int:
        """Number of sums per bin."""

    def best_split(self, histogram: Histogram, direction: int, bounds: Bounds) -> BestSplit | None:
        """Best split by one feature, None if there is none; usually one call of :func:`search`.

        Parameters
        ----------
        direction : {-1, 0, 1}
            Predictions must fall, are unconstrained, or must rise with the feature.
        """

    def leaf(self, sums: IntArray, bounds: Bounds) -> Leaf:
        """The leaf of a node with these sums, ``(channels,)``."""

    def cover(self, sums: IntArray) -> float:
        """Weight of a node with these sums, ``(channels,)``, among its tree's nodes."""


def search(
    histogram: Histogram,
    gain: Callable[[IntArray, IntArray], Floats],
    key: Callable[[IntArray], Floats],
    weight: Callable[[IntArray], IntArray],
) -> BestSplit | None:
    """Return the best cut of one feature's histogram; None if no cut has a positive gain.

    Both directions are tried for missing values; if a node has no missing value, the heavier child becomes the default. On a tie the
    first cut wins: "missing goes right" before "missing goes left", lower cut before higher.

    Parameters
    ----------
    gain : callable
        (sums of the left child ``(channels, 2, cuts)``, sums of the node ``(channels,)``) → ``(2, cuts)``, -inf if a cut is not allowed.
    key : callable
        Categories' sums ``(channels, count)`` → ``(count,)``: categories are ordered by it and then cut like numbers; NaN leaves
        out a category without records in the node.
    weight : callable
        Sums ``(channels,)`` → the node's weight, for the default direction.
    """
    order = _bin_order(histogram, key)
    if len(order) < 2:
        return None
    missing = histogram.sums[:, -1]
    total = histogram.sums.sum(axis=1)
    below = np.cumsum(histogram.sums[:, order], axis=1)[:, :-1]
    # row 0: missing goes right; row 1: missing goes left
    left_sums = np.stack([below, below + missing[:, None]], axis=1)
    gains = gain(left_sums, total)
    side, cut = divmod(int(np.argmax(gains)), gains.shape[1])
    if not gains[side, cut] > 0.0:
        return None
    best_left_sums = left_sums[:, side, cut]
    if missing.any():
        default_left = side == 1
    else:
        default_left = bool(2 * weight(best_left_sums) >= weight(total))
    return BestSplit(
        gain=float(gains[side, cut]),
        left_bins=tuple(sorted(int(b) for b in order[: cut + 1])),
        default_left=default_left,
        left_sums=best_left_sums,
    )


def parted(
    best: BestSplit, histogram: Histogram, direction: int, bounds: Bounds, value: Callable[[IntArray], Floats]
) -> BestSplit:
    """Return a split with its children's bounds, as XGBoost sets them: under a direction, the mean of both values parts the node's bounds.

    Parameters
    ----------
    value : callable
        Sums ``(channels,)`` → the prediction of a leaf with these sums.
    """
    if direction == 0:
        if bounds == FREE:
            return best
        return replace(best, bounds=(bounds, bounds))
    right_sums = histogram.sums.sum(axis=1) - best.left_sums
    middle = (float(value(best.left_sums)) + float(value(right_sums))) / 2
    lower = Bounds(bounds.low, middle)
    upper = Bounds(middle, bounds.high)
    if direction > 0:
        return replace(best, bounds=(lower, upper))
    return replace(best, bounds=(upper, lower))


def _bin_order(histogram: Histogram, key: Callable[[IntArray], Floats]) -> NDArray[np.intp]:
    if not histogram.categorical:
        return np.arange(histogram.sums.shape[1] - 1)
    keys = key(histogram.sums[:, :-1])
    with_records = np.flatnonzero(~np.isnan(keys))
    return with_records[np.argsort(keys[with_records], kind="stable")]


@dataclass(frozen=True)
class SecondOrder:
    """Boosting (eq. 1): channels are Σg and Σh, integers of `units`; categories are ordered by G/(H+λ)."""

    rules: GrowthRules
    units: tuple[float, float]
    channels: int = 2

    def best_split(self, histogram: Histogram, direction: int, bounds: Bounds) -> BestSplit | None:
        """Return the cut with the largest gain and enough weight on both sides; a direction rules out children in the wrong order.

        The children's bounds are XGBoost's: the mean of the two weights parts them.
        """
        best = search(
            histogram, lambda left, total: self._gain(left, total, direction, bounds), self._key, itemgetter(1)
        )
        if best is None:
            return None
        return parted(best, histogram, direction, bounds, lambda sums: self._weight(sums, bounds))

    def leaf(self, sums: IntArray, bounds: Bounds) -> Leaf:
        """Weight -η·G/(H+λ), clipped to the bounds; 0 if H+λ is 0."""
        return Leaf(float(self._weight(sums, bounds, self.rules.learning_rate)), self.cover(sums))

    def cover(self, sums: IntArray) -> float:
        """Sum of hessians."""
        return int(sums[1]) * self.units[1]

    def _real(self, sums: IntArray) -> tuple[Floats, Floats]:
        return np.asarray(sums[0] * self.units[0]), np.asarray(sums[1] * self.units[1])

    def _weight(self, sums: IntArray, bounds: Bounds, rate: float = 1.0) -> Floats:
        g, h = self._real(sums)
        has_weight = h + self.rules.reg_lambda > 0
        best = np.divide(-rate * g, h + self.rules.reg_lambda, out=np.zeros_like(g), where=has_weight)
        return np.clip(best, rate * bounds.low, rate * bounds.high)

    def _key(self, sums: IntArray) -> Floats:
        g, h = sums[:2]
        with np.errstate(invalid="ignore"):  # 0/0 if no record has the category and λ is 0
            return np.where(h > 0, g / (h + self.rules.reg_lambda / self.units[1]), np.nan)

    def _gain(self, left_sums: IntArray, total: IntArray, direction: int, bounds: Bounds) -> Floats:
        right = total[:, None, None] - left_sums
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = 0.5 * (self._score(left_sums, bounds) + self._score(right, bounds) - self._score(total, bounds))
            is_allowed = np.ones(gain.shape, dtype=bool)
            if direction:
                is_allowed = direction * self._weight(left_sums, bounds) <= direction * self._weight(right, bounds)
        min_weight = self.rules.min_child_weight
        for side in (left_sums, right):
            weight = side[1] * self.units[1]
            is_allowed &= (weight >= min_weight) & (weight > 0)
        return np.where(is_allowed, gain - self.rules.gamma, -np.inf)

    def _score(self, sums: IntArray, bounds: Bounds) -> Floats:
        """Twice the reduction of the loss by a node: G²/(H+λ) at the best weight, -(2Gw + (H+λ)w²) at another."""
        g, h = self._real(sums)
        if bounds == FREE:
            return g**2 / (h + self.rules.reg_lambda)
        w = self._weight(sums, bounds)
        return -(2 * g * w + (h + self.rules.reg_lambda) * w**2)


def gradients(task: Task, labels: Floats, margins: Floats) -> tuple[Floats, Floats]:
    """First and second derivatives of the loss by the margins, as XGBoost's ``binary:logistic``, ``multi:softprob``, ``reg:squarederror``.

    Parameters
    ----------
    task : {"binary", "classes", "number"}
        Logistic loss: g = p - y, h = p·(1-p). Softmax: g = p - [y = k], h = 2·p·(1-p), twice the diagonal of the second derivative,
        which bounds it. Half the squared error: g = margin - y, h = 1.
    labels : ndarray of float64
        ``(n,)``
    margins : ndarray of float64
        ``(n, k)``: one column a class, else one.

    Returns
    -------
    g, h : ndarray of float64
        ``(n, k)``
    """
    if task == "number":
        return margins - labels[:, None], np.ones_like(margins)
    if task == "binary":
        p = sigmoid(margins)
        return p - labels[:, None], p * (1.0 - p)
    p = softmax(margins)
    return p - (labels[:, None] == np.arange(p.shape[1])), 2.0 * p * (1.0 - p)
