"""Bins of one party's columns: what a histogram sums over and what a split's rule is made from. Stays with the party."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature, Kind


@dataclass(frozen=True)
class Bins:
    """One feature's bins; the last index of a histogram, ``count``, is the bin of missing values.

    Attributes
    ----------
    cuts : ndarray
        Numeric and boolean features, ``(count-1,)`` ascending: value x lies in bin ``#{cuts ≤ x}``.
    categories : tuple of str
        Categorical features, ``(count,)``: the category of each bin.
    """

    feature: Feature
    cuts: NDArray[np.float64]
    categories: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Bins without the one for missing values."""
        if self.feature.kind is Kind.CATEGORICAL:
            return len(self.categories)
        return len(self.cuts) + 1

    def index(self, column: NDArray[np.generic]) -> NDArray[np.intp]:
        """Bin of each value, ``(n,)``; missing and (for categories) never seen or rare values are ``count``."""
        if self.feature.kind is Kind.CATEGORICAL:
            number = {c: i for i, c in enumerate(self.categories)}
            return np.array([number.get(v, self.count) for v in column], dtype=np.intp)
        values = column.astype(np.float64)
        bins = np.searchsorted(self.cuts, values, side="right")
        return np.where(np.isnan(values), self.count, bins).astype(np.intp)


def make_bins(feature: Feature, column: NDArray[np.generic], max_bins: int) -> Bins:
    """Bins from the training rows: equal-frequency cuts half-way between neighbouring values, or the commonest categories.

    Parameters
    ----------
    column : ndarray
        ``(n,)`` training values.
    max_bins : int
        Categories beyond the commonest `max_bins` count as missing.
    """
    if feature.kind is Kind.CATEGORICAL:
        names, counts = np.unique([str(v) for v in column if v is not None], return_counts=True)
        commonest = sorted(zip(-counts, names, strict=True))[:max_bins]
        return Bins(feature, np.empty(0), tuple(sorted(str(name) for _, name in commonest)))
    values = column.astype(np.float64)
    values = np.sort(values[~np.isnan(values)])
    distinct, first = np.unique(values, return_index=True)
    if len(distinct) > max_bins:
        ranks = np.round(np.arange(1, max_bins) * len(values) / max_bins).astype(np.intp)
        starts = np.unique(np.searchsorted(first, ranks, side="left"))
        starts = starts[(starts > 0) & (starts < len(distinct))]
    else:
        starts = np.arange(1, len(distinct))
    return Bins(feature, (distinct[starts - 1] + distinct[starts]) / 2)
