"""One party's own columns, binned: what its histograms sum over and how its splits become rules. Never leaves the party."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.data.binning import Bins, make_bins
from backend.data.dictionary import Feature, Kind
from backend.errors import SecurityError
from backend.trees.ensemble import Columns, Rule


class BinnedColumns:
    """The joint records' bins at one party.

    Parameters
    ----------
    features : sequence of Feature
    columns : mapping of str to ndarray
        ``(n_joint,)`` each, in the joint order.
    training : ndarray of bool
        ``(n_joint,)``: rows the bins are made from.
    bins : int
        Most bins a feature.
    exclude : collection of str
        Features left out.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        columns: Columns,
        training: NDArray[np.bool_],
        bins: int,
        exclude: Collection[str] = (),
    ) -> None:
        kept = [f for f in features if f.name not in exclude]
        self.bins: tuple[Bins, ...] = tuple(make_bins(f, columns[f.name][training], bins) for f in kept)
        self._index = {b.feature.name: b.index(columns[b.feature.name]) for b in self.bins}

    def index(self, feature: str) -> NDArray[np.intp]:
        """``(n_joint,)`` bin of each joint record; the last bin holds missing values."""
        return self._index[feature]

    def take_split(self, feature: str, left_bins: Sequence[int], default_left: bool) -> tuple[Rule, NDArray[np.bool_]]:
        """The rule behind a split chosen by bins, and which joint records go left.

        Raises
        ------
        SecurityError
            The feature or a bin does not exist, or ordered bins have a gap.
        """
        bins = next((b for b in self.bins if b.feature.name == feature), None)
        if (
            bins is None
            or not left_bins
            or sorted(set(left_bins)) != list(left_bins)
            or not 0 <= left_bins[0] <= left_bins[-1] < bins.count
        ):
            raise SecurityError("A split by an unknown feature or bin was asked for; it was refused.")
        left = np.zeros(bins.count + 1, dtype=bool)
        left[list(left_bins)] = True
        left[-1] = default_left
        if bins.feature.kind is Kind.CATEGORICAL:
            chosen = frozenset(bins.categories[b] for b in left_bins)
            rule = Rule(
                feature, default_left, left_categories=chosen, right_categories=frozenset(bins.categories) - chosen
            )
        else:
            if len(left_bins) != left_bins[-1] + 1 or len(left_bins) == bins.count:
                raise SecurityError("A split of ordered bins with a gap was asked for; it was refused.")
            rule = Rule(feature, default_left, threshold=float(bins.cuts[left_bins[-1]]))
        return rule, left[self._index[feature]]
