"""One party's own columns, binned: what its histograms sum over and how its splits become rules. Never leaves the party."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.data.binning import Bins, make_bins
from backend.data.dictionary import Feature, Kind
from backend.errors import SecurityError
from backend.trees.ensemble import Columns, SplitRule

Shuffled = Callable[[str, Sequence[int]], list[int]]
"""Feature and numbers → the numbers in a random order."""


class BinnedColumns:
    """The joint records' bins at one party, as others may number them.

    Parameters
    ----------
    columns : mapping of str to ndarray
        ``(n_joint,)`` each, in the joint order.
    training : ndarray of bool
        ``(n_joint,)``: rows the bins are made from.
    bins : int
        Largest number of bins per feature.
    shuffled : callable, optional
        Feature and numbers → the numbers in a random order. Then a feature's bins are numbered upwards or downwards at random, and
        categories in a random order, so that the party that chooses splits by bins does not learn which side is the upper one (Yao et
        al. App. B). Either way a cut is a run of bins without gaps. None = bins are numbered upwards.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        columns: Columns,
        training: NDArray[np.bool_],
        bins: int,
        *,
        shuffled: Shuffled | None = None,
    ) -> None:
        self.bins: tuple[Bins, ...] = tuple(make_bins(f, columns[f.name][training], bins) for f in features)
        self._true = {b.feature.name: _numbering(b, shuffled) for b in self.bins}
        self._index = {
            b.feature.name: np.argsort(self._true[b.feature.name])[b.index(columns[b.feature.name])] for b in self.bins
        }

    def index(self, feature: str) -> NDArray[np.intp]:
        """``(n_joint,)`` bin of each joint record; the last bin holds missing values."""
        return self._index[feature]

    def take_split(
        self, feature: str, left_bins: Sequence[int], default_left: bool
    ) -> tuple[SplitRule, NDArray[np.bool_]]:
        """Return the rule of a split that was chosen by bins, and which joint records go left.

        Raises SecurityError if the feature or a bin does not exist, or ordered bins have a gap.
        """
        bins = next((b for b in self.bins if b.feature.name == feature), None)
        if (
            bins is None
            or not left_bins
            or sorted(set(left_bins)) != list(left_bins)
            or not 0 <= left_bins[0] <= left_bins[-1] < bins.count
        ):
            raise SecurityError("unknown_split")
        is_left = np.zeros(bins.count + 1, dtype=bool)
        is_left[list(left_bins)] = True
        is_left[-1] = default_left
        true = self._true[feature]
        if bins.feature.kind is Kind.CATEGORICAL:
            left_categories = frozenset(bins.categories[true[b]] for b in left_bins)
            rule = SplitRule(
                feature,
                default_left,
                left_categories=left_categories,
                right_categories=frozenset(bins.categories) - left_categories,
            )
        else:
            if len(left_bins) != left_bins[-1] + 1 or len(left_bins) == bins.count:
                raise SecurityError("split_with_gap")
            below = min(true[left_bins[-1]], true[left_bins[-1] + 1])  # the cut is above this bin
            rule = SplitRule(feature, default_left, threshold=float(bins.cuts[below]), above=bool(true[0] > 0))
        return rule, is_left[self._index[feature]]


def _numbering(bins: Bins, shuffled: Shuffled | None) -> NDArray[np.intp]:
    """``(count + 1,)``: the bin behind each number; missing values stay last."""
    true = np.arange(bins.count + 1)
    if shuffled is None:
        return true
    if bins.feature.kind is Kind.CATEGORICAL:
        true[:-1] = shuffled(bins.feature.name, range(bins.count))
    elif shuffled(bins.feature.name, (0, 1))[0]:
        true[:-1] = true[-2::-1]
    return true
