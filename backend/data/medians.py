"""Which side of a party's own median a value is on. Stays with the party: what leaves of it is a bit under encryption, for a released name.

A value is *above* if it is larger than more than half of the others, and *below* if it is smaller than more than half. In
between, which with few distinct values is common, and if there is no value, it is neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature, Kind

Columns = Mapping[str, NDArray[np.generic]]
Medians = Mapping[str, tuple[float, float]]
"""Feature → lower and upper median of its values: the two in the middle, or twice the one."""


def medians(features: Sequence[Feature], columns: Columns, rows: NDArray[np.bool_]) -> dict[str, tuple[float, float]]:
    """Medians of every numeric and boolean feature that has a value among the records.

    Parameters
    ----------
    columns : mapping of str to ndarray
        ``(n,)`` each.
    rows : ndarray of bool
        ``(n,)``: the records that count, those of training.
    """
    by_feature: dict[str, tuple[float, float]] = {}
    for feature in features:
        if feature.kind is Kind.CATEGORICAL or feature.name not in columns:
            continue
        values = columns[feature.name][rows].astype(np.float64)
        values = values[~np.isnan(values)]
        if n := len(values):
            middle = np.partition(values, [(n - 1) // 2, n // 2])
            by_feature[feature.name] = float(middle[(n - 1) // 2]), float(middle[n // 2])
    return by_feature


def sides(names: Sequence[str], columns: Columns, of: Medians, n: int) -> NDArray[np.bool_]:
    """``(len(names), 2, n)``: whether each value is above, and whether it is below."""
    out = np.zeros((len(names), 2, n), dtype=bool)
    for i, name in enumerate(names):
        if name in of and name in columns:
            values = columns[name].astype(np.float64)
            low, high = of[name]
            out[i] = values > high, values < low  # a missing value, NaN, is neither
    return out


def moved(columns: Columns, of: Medians) -> dict[str, NDArray[np.generic]]:
    """Return the same columns with every value that is above or below moved to the median next to it."""
    return {
        name: np.clip(column.astype(np.float64), *of[name]) if name in of else column
        for name, column in columns.items()
    }
