"""How much a set of records tells about labels, and splits that keep below a bound on it (ID-LMID, arXiv 2307.10318). The Guest's alone.

A Host is told which records are in a node. If labels inside are other than outside, it learns who shares a label, and needs no key for it
(ID2Graph). Per set: the larger of the divergences from the labels of all records to those inside, and to those outside, in bits.

A Host that bins its records as it likes chooses the patterns of records among which the Guest then chooses by labels. No sum shows this, so
it is counted: a node tells log2 of the number of answers that the Host can tell apart (:func:`choice_bits`), whatever it is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.trees.growth import Bounds, IntArray, SecondOrder
from backend.trees.outputs import Floats

COUNTS = 2  # channel from which on a node's sums count its records by class


@dataclass(frozen=True, eq=False)
class LabelBound:
    """A bound for the sets of one tree.

    Attributes
    ----------
    bits : float
        Most that a set may tell.
    total : ndarray of int64
        ``(classes,)``: records that count, by class.
    """

    bits: float
    total: IntArray

    def allows(self, counts: IntArray) -> NDArray[np.bool_]:
        """Return whether a Host may see sets with these ``(classes, …)`` records; a set and its complement have the same answer."""
        is_allowed: NDArray[np.bool_] = told_bits(counts, self.total) <= self.bits
        return is_allowed


@dataclass(frozen=True)
class BoundedSplits(SecondOrder):
    """Second-order splits of which a Host may be told both sides."""

    bound: LabelBound | None = None

    def _gain(self, left_sums: IntArray, total: IntArray, direction: int, bounds: Bounds) -> Floats:
        gain = super()._gain(left_sums, total, direction, bounds)
        if self.bound is None:
            return gain
        left_counts = left_sums[COUNTS:]
        right_counts = total[COUNTS:, None, None] - left_counts
        is_allowed = self.bound.allows(left_counts) & self.bound.allows(right_counts)
        return np.where(is_allowed, gain, -np.inf)


def choice_bits(bins: Sequence[int], categorical: Sequence[bool]) -> float:
    """Bits that a Host learns at most from which of its cuts splits a node, or that none does.

    Parameters
    ----------
    bins : sequence of int
        Bins of each of the features that it was asked for.
    categorical : sequence of bool
        Whether a feature's bins are unordered: then any of them may go left.

    Examples
    --------
    >>> choice_bits([8, 1], [False, False])  # 7 cuts with missing values on either side, or no split
    3.9068905956085187
    """
    answers = 1
    for count, unordered in zip(bins, categorical, strict=True):
        cuts = 2**count if unordered else max(0, count - 1)
        answers += 2 * cuts  # missing values go left or right
    return math.log2(answers)


def told_bits(counts: IntArray, total: IntArray) -> Floats:
    """Return the bits that sets reveal about labels.

    Parameters
    ----------
    counts : ndarray of int64
        ``(classes, …)``: a set's records by class.
    total : ndarray of int64
        ``(classes,)``: all records by class.

    Returns
    -------
    ndarray of float64
        ``(…)``: 0 for no records and for all of them.
    """
    totals = total.reshape(-1, *[1] * (counts.ndim - 1)).astype(np.float64)
    inside = counts.astype(np.float64)
    return np.maximum(_divergence(inside, totals), _divergence(totals - inside, totals))


def _divergence(counts: Floats, totals: Floats) -> Floats:
    """Return the divergence of a set's labels from all labels, Σ p·log₂(p/q)."""
    share = counts / np.maximum(counts.sum(axis=0), 1.0)
    ratio = np.divide(share, totals / totals.sum(axis=0), out=np.ones_like(share), where=share > 0)
    divergence: Floats = (share * np.log2(ratio)).sum(axis=0)
    return divergence
