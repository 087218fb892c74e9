"""Sums and maxima over every window of a row, without a difference that could cancel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def windows(values: NDArray[Any], reach: int, operation: np.ufunc = np.add) -> NDArray[Any]:
    """Return the sum or maximum of each window of ``2·reach + 1``, ``(n + 2·reach,)``, the first centred `reach` before the row.

    Each window is the end of one block and the beginning of the next, so that no subtraction loses digits.
    """
    length = 2 * reach + 1
    empty = -np.inf if operation is np.maximum else 0
    n = len(values) + 2 * reach
    blocks = np.full(-(-(n + 2 * reach) // length) * length, empty, dtype=values.dtype)
    blocks[2 * reach : 2 * reach + len(values)] = values
    lines = blocks.reshape(-1, length)
    prefix = operation.accumulate(lines, axis=1).ravel()
    suffix = operation.accumulate(lines[:, ::-1], axis=1)[:, ::-1].ravel()
    results = prefix[2 * reach : 2 * reach + n].copy()
    crossing = np.arange(n) % length != 0  # the others are whole blocks
    results[crossing] = operation(results[crossing], suffix[:n][crossing])
    return results
