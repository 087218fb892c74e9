"""How a tree grows: gradients, histograms' best split, leaf weights. Sums come in as integers, so any cipher gives the same tree.

Second-order boosting as in SecureBoost and XGBoost (Fed-EINI §II-A eq. 1): with G = Σg and H = Σh over a node,
weight = -η·G/(H+λ) and gain = ½·[G_L²/(H_L+λ) + G_R²/(H_R+λ) - G²/(H+λ)] - γ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class GrowthRules:
    """What decides whether and how a node is split (XGBoost's names; ``gamma`` as in eq. 1)."""

    learning_rate: float
    reg_lambda: float
    gamma: float
    min_child_weight: float


@dataclass(frozen=True)
class Histogram:
    """Sums over one node by one feature's bins, as integers at a public scale.

    Attributes
    ----------
    g, h : ndarray of int64
        ``(count + 1,)``: Σg and Σh by bin; the last is the bin of missing values.
    scale : float
        One unit of the integers.
    categorical : bool
        Whether the bins have no order of their own.
    """

    g: IntArray
    h: IntArray
    scale: float
    categorical: bool

    def minus(self, other: Histogram) -> Histogram:
        """A sibling's histogram: parent minus child, exact."""
        return Histogram(self.g - other.g, self.h - other.h, self.scale, self.categorical)


@dataclass(frozen=True)
class BestSplit:
    """The best split of one node by one feature.

    Attributes
    ----------
    gain : float
    left_bins : tuple of int
        Bins that go left (for ordered bins 0 … k-1).
    default_left : bool
        Where missing values go.
    g_left, h_left : int
        Sums of the left child, missing values included where they go left.
    """

    gain: float
    left_bins: tuple[int, ...]
    default_left: bool
    g_left: int
    h_left: int


def logistic_gradients(
    labels: NDArray[np.int8], margins: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """First and second derivative of the logistic loss by the margin, ``(n,)`` each: g = p - y, h = p·(1-p)."""
    p = sigmoid(margins)
    return p - labels, p * (1.0 - p)


def sigmoid(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of the positive label, without overflow."""
    return np.where(margins >= 0, 1.0, np.exp(np.minimum(margins, 0))) / (1.0 + np.exp(-np.abs(margins)))


def leaf_weight(g: float, h: float, rules: GrowthRules) -> float:
    """-η·G/(H+λ), on the logit scale."""
    return -rules.learning_rate * g / (h + rules.reg_lambda)


def best_split(histogram: Histogram, rules: GrowthRules) -> BestSplit | None:
    """Best cut of one feature's histogram; None where no cut has a positive gain and enough weight on both sides.

    Categories are ordered by G/(H+λ) first (the order in which some cut is optimal for a convex loss). Both directions are
    tried for missing values; where a node has none, the heavier child becomes the default.
    """
    order = _bin_order(histogram, rules)
    if len(order) < 2:
        return None
    scale = histogram.scale
    g_bins, h_bins = histogram.g[order], histogram.h[order]
    g_missing, h_missing = int(histogram.g[-1]), int(histogram.h[-1])
    g_all, h_all = int(histogram.g.sum()), int(histogram.h.sum())
    g_below, h_below = np.cumsum(g_bins)[:-1], np.cumsum(h_bins)[:-1]
    g_left = np.stack([g_below, g_below + g_missing])  # row 0: missing goes right; row 1: missing goes left
    h_left = np.stack([h_below, h_below + h_missing])
    gain = _gain(
        (g_left * scale).astype(np.float64), (h_left * scale).astype(np.float64), g_all * scale, h_all * scale, rules
    )
    place = int(np.argmax(gain))
    side, cut = divmod(place, gain.shape[1])
    if not gain[side, cut] > 0.0:
        return None
    no_missing = g_missing == 0 and h_missing == 0
    heavier_left = 2 * int(h_left[side, cut]) >= h_all
    return BestSplit(
        gain=float(gain[side, cut]),
        left_bins=tuple(sorted(int(b) for b in order[: cut + 1])),
        default_left=heavier_left if no_missing else side == 1,
        g_left=int(g_left[side, cut]),
        h_left=int(h_left[side, cut]),
    )


def _bin_order(histogram: Histogram, rules: GrowthRules) -> NDArray[np.intp]:
    bins = np.arange(len(histogram.g) - 1)
    if not histogram.categorical:
        return bins
    g, h = histogram.g[:-1], histogram.h[:-1]
    seen = bins[h > 0]
    return seen[np.argsort(g[seen] / (h[seen] + rules.reg_lambda / histogram.scale), kind="stable")]


def _gain(
    g_left: NDArray[np.float64], h_left: NDArray[np.float64], g: float, h: float, rules: GrowthRules
) -> NDArray[np.float64]:
    g_right, h_right = g - g_left, h - h_left
    lam = rules.reg_lambda
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = 0.5 * (g_left**2 / (h_left + lam) + g_right**2 / (h_right + lam) - g**2 / (h + lam)) - rules.gamma
    heavy = (h_left >= rules.min_child_weight) & (h_right >= rules.min_child_weight) & (h_left > 0) & (h_right > 0)
    return np.where(heavy, gain, -np.inf)
