"""The most likely of all combinations of leaves that give a sum: by how much each falls short of the best, not sum by sum.

Every leaf's log2 p is tilted by λ times its offset, so that the trees' best leaves add up to about the sum that is wanted (the Lagrangian
dual of the problem). A combination's gap is what its leaves lack, together, of the best ones. Only those of a small gap are looked at;
if one of them has the sum, none of a larger gap is likelier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# leaves beside the best ones that are looked at; how many more the next time
FIRST = 32
GROWTH = 1.2
BITS_TOLERANCE = 1e-9  # bits that sums of gaps may differ by in another order
MAX_COMBINATIONS = 1 << 16  # combinations of half the trees; beyond, to go sum by sum is faster

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Tilted:
    """Trees under one λ.

    Attributes
    ----------
    moves : list of (ndarray of int64, ndarray of float64)
        A tree's other leaves: how far each moves the sum from that of the best one, and its gap.
    best : int
        Sum of the best leaves' offsets.
    value : float
        Sum of their log2 p + λ·offset.
    slope : float
        λ, bits a unit.
    """

    moves: list[tuple[Integers, Floats]]
    best: int
    value: float
    slope: float


def likeliest(trees: Sequence[tuple[Integers, Floats]], low: int, high: int) -> float | None:
    """Return the largest log2 p of a combination whose offsets sum to `low` … `high`; -inf if there is none.

    Parameters
    ----------
    trees : sequence of (ndarray of int64, ndarray of float64)
        Offsets from 0 on and log2 p of each tree's leaves; -inf for a leaf that no record reaches.

    Returns
    -------
    float or None
        None if more than :data:`MAX_COMBINATIONS` combinations are as likely as the best, so that this method would take too long.
    """
    if not trees:
        return 0.0 if low <= 0 <= high else -np.inf
    offsets, logs = _padded(trees)
    tilted, target = _tilt(offsets, logs, low, high)
    gaps = np.sort(np.concatenate([gap for _, gap in tilted.moves]))
    halves = (tilted.moves[::2], tilted.moves[1::2])
    looked_at = float(FIRST)
    lacking_at_most = np.inf
    while True:
        every = looked_at >= len(gaps)
        limit = min(np.inf if every else gaps[int(looked_at)], lacking_at_most)
        near = [_near(half, limit) for half in halves]
        if near[0] is None or near[1] is None:
            return None
        lacking = _joined(near[0], near[1], low - tilted.best, high - tilted.best, tilted.slope)
        # A sum beyond the target of the tilt lacks the tilt as well.
        lacking += tilted.slope * (tilted.best - target)
        if lacking <= limit or every:
            return tilted.value - tilted.slope * target - lacking
        looked_at = looked_at * GROWTH
        lacking_at_most = lacking + BITS_TOLERANCE


def _padded(trees: Sequence[tuple[Integers, Floats]]) -> tuple[Integers, Floats]:
    """Return offsets and log2 p, ``(n, largest number of leaves)``, padded with leaves that no record reaches."""
    width = max(len(offsets) for offsets, _ in trees)
    offsets = np.zeros((len(trees), width), dtype=np.int64)
    logs = np.full((len(trees), width), -np.inf)
    for row, (tree_offsets, log) in enumerate(trees):
        offsets[row, : len(tree_offsets)] = tree_offsets
        logs[row, : len(tree_offsets)] = log
    return offsets, logs


def _tilt(offsets: Integers, logs: Floats, low: int, high: int) -> tuple[Tilted, int]:
    """Tilt the trees by the λ for the sum from `low` to `high` that is nearest to the likeliest of all; return them and that sum."""
    rows = np.arange(len(offsets))

    def best(slope: float) -> NDArray[np.intp]:
        best_leaves: NDArray[np.intp] = (logs + slope * offsets).argmax(axis=1)
        return best_leaves

    def sum_of(slope: float) -> int:
        return int(offsets[rows, best(slope)].sum())

    target = min(max(sum_of(0.0), low), high)
    slope = 0.0
    if target != sum_of(0.0):
        # the best leaf of a tree changes where the tilt makes up for a difference of two leaves
        up = offsets[:, :, None] - offsets[:, None, :]
        with np.errstate(invalid="ignore"):
            turns = (logs[:, None, :] - logs[:, :, None])[up > 0] / up[up > 0]
        turns = np.unique(turns[np.isfinite(turns)])
        if target > sum_of(0.0):
            turns = turns[turns > 0]
        else:
            turns = turns[turns < 0]
        begin = 0
        end = max(0, len(turns) - 1)
        while begin < end:
            middle = (begin + end) // 2
            if sum_of(turns[middle]) >= target:
                end = middle
            else:
                begin = middle + 1
        slope = float(turns[begin]) if len(turns) else 0.0
    chosen_leaves = best(slope)
    values = logs + slope * offsets
    top = values[rows, chosen_leaves]
    moves = []
    for row, leaf in enumerate(chosen_leaves):
        other_leaves = np.flatnonzero(np.isfinite(logs[row]))
        other_leaves = other_leaves[other_leaves != leaf]
        moves.append((offsets[row, other_leaves] - offsets[row, leaf], top[row] - values[row, other_leaves]))
    return Tilted(moves, int(offsets[rows, chosen_leaves].sum()), float(top.sum()), slope), target


def _near(trees: Sequence[tuple[Integers, Floats]], limit: float) -> tuple[Integers, Floats] | None:
    """Sums, in order, and smallest gap of each, of the combinations whose gap is at most `limit`; None if they are too many."""
    sums = np.zeros(1, dtype=np.int64)
    gaps = np.zeros(1)
    for moves, lacking in trees:
        parts = [(sums, gaps)]
        for move, gap in zip(moves.tolist(), lacking.tolist(), strict=True):
            if gap <= limit:
                fits = gaps + gap <= limit
                parts.append((sums[fits] + move, gaps[fits] + gap))
        if len(parts) == 1:
            continue
        sums, gaps = (np.concatenate(values) for values in zip(*parts, strict=True))
        if len(sums) > MAX_COMBINATIONS // 8:
            sums, gaps = _distinct(sums, gaps)
            if len(sums) > MAX_COMBINATIONS:
                return None
    return _distinct(sums, gaps)


def _distinct(sums: Integers, gaps: Floats) -> tuple[Integers, Floats]:
    """Each sum once, in order, with its smallest gap."""
    order = np.argsort(sums)
    sums = sums[order]
    gaps = gaps[order]
    first = np.flatnonzero(np.diff(sums, prepend=sums[0] - 1))
    return sums[first], np.minimum.reduceat(gaps, first)


def _joined(a: tuple[Integers, Floats], b: tuple[Integers, Floats], low: int, high: int, slope: float) -> float:
    """Return the smallest gap + λ·sum of two halves' combinations whose sums add up to `low` … `high`; inf if there are none."""
    keys = np.append(a[1] + slope * a[0], np.inf)
    begin = np.searchsorted(a[0], low - b[0])
    end = np.searchsorted(a[0], high - b[0], side="right")
    has_partner = begin < end
    if not has_partner.any():
        return np.inf
    ranges = np.stack([begin[has_partner], end[has_partner]], axis=1).ravel()
    smallest = np.minimum.reduceat(keys, ranges)[::2]
    totals = smallest + b[1][has_partner] + slope * b[0][has_partner]
    return float(totals.min())
