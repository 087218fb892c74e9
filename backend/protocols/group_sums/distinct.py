"""About how many distinct values a feature has, on a ladder: what tells a flag from a number, and no value."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

LADDER = (0, 1, 2, 10, 100, 1_000)  # the most values of each place; the last place has no end


def place_of(column: NDArray[np.generic]) -> int:
    """Return the place of a column's number of distinct values; missing ones do not count.

    Parameters
    ----------
    column : ndarray
        ``(n,)`` values; NaN or None if missing.

    Examples
    --------
    >>> place_of(np.array([1.0, 2.0, 2.0, np.nan]))
    2
    >>> place_of(np.arange(50.0))
    4
    """
    distinct = len(set(present_values(column).tolist()))
    return bisect_left(LADDER, distinct)


def present_values(column: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the values of a column without the missing ones, which are NaN or None."""
    if column.dtype == object:
        is_present = np.array([value is not None for value in column], dtype=bool)
    else:
        is_present = ~np.isnan(column.astype(np.float64))
    present: NDArray[np.generic] = column[is_present]
    return present


def range_of(place: int) -> tuple[int, int | None]:
    """Return the smallest and the largest number of distinct values of a place; None = no upper end.

    Examples
    --------
    >>> range_of(3), range_of(6)
    ((3, 10), (1001, None))
    """
    fewest = LADDER[place - 1] + 1 if place else 0
    largest = LADDER[place] if place < len(LADDER) else None
    return fewest, largest
