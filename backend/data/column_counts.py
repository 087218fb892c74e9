"""A column counted by its own tenths or codes, as its owner keeps it to see later how far the column has moved. Stays with its owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature, Kind

Column = NDArray[np.generic]


def reference_of(feature: Feature, column: Column) -> dict[str, Any]:
    """Return what drift is measured against: a column's own tenths, or its codes, with counts. Stays with its owner."""
    present_values = present(column)
    if feature.kind is Kind.NUMERIC:
        if len(present_values):
            cuts = np.unique(np.quantile(present_values.astype(np.float64), np.linspace(0.1, 0.9, 9)))
        else:
            cuts = np.array([])
        return {"cuts": cuts.tolist(), "counts": counts_as(feature, present_values, cuts.tolist()).tolist()}
    codes = sorted({str(value) for value in present_values.tolist()})
    return {"cuts": codes, "counts": counts_as(feature, present_values, codes).tolist()}


def counts_as(feature: Feature, present_values: Column, cuts: Sequence[Any]) -> NDArray[np.intp]:
    """Values in the bins of a reference, ``(len(cuts) + 1,)``; the last one of codes is of those that it does not know."""
    if feature.kind is Kind.NUMERIC:
        index = np.searchsorted(np.array(cuts, dtype=np.float64), present_values.astype(np.float64), side="right")
    else:
        index_of = {code: k for k, code in enumerate(cuts)}
        index = np.array([index_of.get(str(value), len(cuts)) for value in present_values.tolist()], dtype=np.intp)
    return np.bincount(index, minlength=len(cuts) + 1)


def present(column: Column) -> Column:
    """Return the values that there are."""
    if column.dtype == object:
        return np.array([value for value in column.tolist() if value is not None], dtype=object)
    values = column.astype(np.float64)
    return values[~np.isnan(values)]
