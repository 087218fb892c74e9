"""How much a released score tells about a path at most, in a fraction of the leak meter's time: its probability, bounded from below.

Every tree's candidates are tilted by e^(λ·offset), with λ so that the mean of their sum is the score (Cramér 1938). Then nearly all of
the probability of the sums that count lies within a few standard deviations of the means, tree by tree; what lies beyond is dropped. It is
never negative, so what is left bounds the probability from below, and its surprisal from above, whatever the trees are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.privacy.windows import windows

REACH = 3.5  # standard deviations that are kept on either side
BLOCK = 8192  # sums worked on together: they stay in a core's cache, and BLAS starts no threads for them
NEAR = 0.05  # standard deviations by which the mean may miss the score
STEEPEST = 50.0  # λ, nats a unit: beyond, a tree's second best leaf weighs nothing in float64
ROUNDING_ERROR = 2.0**-24  # relative error of one operation in float32
SLACK = 1e-6  # bits by which float64 may have the rest too large

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Tree = tuple[Integers, Floats]  # ascending offsets from 0 on, and the share of each; shares sum to 1


@dataclass(frozen=True)
class _Tilted:
    """Trees under one λ.

    Attributes
    ----------
    trees : list of Tree
        Shares are tilted, and sum to 1 again.
    means, variances : ndarray of float64
        Of each tree's offset.
    slope : float
        λ, nats a unit.
    log : float
        Of the product of what the tilted shares summed to before.
    """

    trees: list[Tree]
    means: Floats
    variances: Floats
    slope: float
    log: float


@dataclass(frozen=True)
class _Sums:
    """Tilted probability of the sums of some trees from `start` on; `centre` is about their mean."""

    start: int
    values: NDArray[np.float32]
    centre: int

    def straight(self, slope: float) -> Floats:
        """Without the tilt, times e^(λ·centre)."""
        away = np.arange(self.start, self.start + len(self.values)) - self.centre
        untilted: Floats = self.values * np.exp(-slope * away)
        return untilted


def disclosed_at_most(trees: Sequence[Tree], target: int, dither: int) -> float:
    """Return an upper bound, in bits, of -log2 of the probability that offsets sum to `target` ± `dither`; inf if no such sum was met."""
    largest_sum = sum(int(offsets[-1]) for offsets, _ in trees)
    low = max(0, target - dither)
    high = min(largest_sum, target + dither)
    if low > high or not all(shares.any() for _, shares in trees):
        return math.inf
    tilted = _tilted(trees, low, high)
    order = sorted(range(len(trees)), key=lambda t: int(trees[t][0][-1]))  # narrow ones first
    a = _sums(tilted, order[::2])
    b = _sums(tilted, order[1::2])
    ours = a.straight(tilted.slope)
    theirs = windows(b.straight(tilted.slope), dither)
    last = target - a.start - b.start + dither  # position in `theirs` of the window that fits our first sum
    first = max(0, last - len(theirs) + 1)
    end = min(len(ours), last + 1)
    if first >= end:
        return math.inf
    probability = float(np.dot(ours[first:end], theirs[last - end + 1 : last - first + 1][::-1]))
    if not probability:
        return math.inf
    # All terms are positive: each operation's result is too large by at most its own rounding.
    rounded = sum(len(offsets) + 2 for offsets, _ in trees) * ROUNDING_ERROR
    nats = tilted.slope * (a.centre + b.centre) - tilted.log - math.log(probability) + rounded
    return max(0.0, nats / math.log(2) + SLACK)


def _tilted(trees: Sequence[Tree], low: int, high: int) -> _Tilted:
    """Tilt the trees by the λ for the sum from `low` to `high` that is nearest to the mean."""
    width = max((len(offsets) for offsets, _ in trees), default=1)
    offsets = np.zeros((len(trees), width))
    logs = np.full((len(trees), width), -np.inf)
    for row, (tree_offsets, shares) in enumerate(trees):
        reached = shares > 0
        count = reached.sum()
        offsets[row, :count] = tree_offsets[reached]
        logs[row, :count] = np.log(shares[reached])

    def under(slope: float) -> tuple[Floats, Floats]:
        """Return shares, ``(trees, leaves)``, and the logarithm of each tree's sum before it was divided by it."""
        values = logs + slope * offsets
        top = values.max(axis=1, initial=-np.inf, keepdims=True)
        weights = np.exp(values - top)
        total = weights.sum(axis=1, keepdims=True)
        return weights / total, (top + np.log(total)).ravel()

    begin = -STEEPEST
    slope = 0.0
    end = STEEPEST
    while True:
        shares, log = under(slope)
        means = (shares * offsets).sum(axis=1)
        variances = (shares * (offsets - means[:, None]) ** 2).sum(axis=1)
        mean = float(means.sum())
        variance = float(variances.sum())
        away = min(max(mean, low), high) - mean
        if abs(away) <= NEAR * math.sqrt(variance) or end - begin <= STEEPEST * 2.0**-50:
            break
        if away > 0:
            begin = slope
        else:
            end = slope
        # One step of Newton's method; if it leaves the interval, bisect.
        newton = slope + away / variance if variance else begin
        slope = newton if begin < newton < end else (begin + end) / 2
    tilted_trees = []
    for line_offsets, line_shares, line_logs in zip(offsets, shares, logs, strict=True):
        is_reached = np.isfinite(line_logs)
        tilted_trees.append((line_offsets[is_reached].astype(np.int64), line_shares[is_reached]))
    return _Tilted(tilted_trees, means, variances, slope, float(log.sum()))


def _sums(tilted: _Tilted, tree_numbers: Sequence[int]) -> _Sums:
    """Shift and add, tree by tree; only sums within :data:`REACH` standard deviations of the mean are kept.

    The deviation is that of sums which the other trees complete to the score: for a part v of the variance V, v·(1 − v/V).
    """
    from scipy.linalg.blas import saxpy  # noqa: PLC0415 - slow to import, and few runs need it

    start = 0
    values = np.ones(1, dtype=np.float32)
    mean = 0.0
    variance = 0.0
    total_variance = float(tilted.variances.sum())
    for t in tree_numbers:
        offsets, shares = tilted.trees[t]
        mean = mean + tilted.means[t]
        variance = variance + tilted.variances[t]
        if total_variance:
            reach = REACH * math.sqrt(max(0.0, variance - variance**2 / total_variance)) + 1
        else:
            reach = 1.0
        low = max(start + int(offsets[0]), math.ceil(mean - reach))
        high = min(start + len(values) - 1 + int(offsets[-1]), math.floor(mean + reach))
        new_values = np.zeros(max(0, high - low + 1), dtype=np.float32)
        moves = list(zip((offsets + (start - low)).tolist(), shares.tolist(), strict=True))
        for begin in range(0, len(new_values), BLOCK):
            for move, share in moves:
                first = max(begin, move)
                end = min(begin + BLOCK, len(new_values), move + len(values))
                if first < end:  # new_values += share * values, in one pass
                    saxpy(values[first - move : end - move], new_values[first:end], a=share)
        start = low
        values = new_values
    return _Sums(start, values, round(mean))
