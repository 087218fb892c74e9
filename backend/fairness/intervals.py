"""Intervals that hold the truth with 95 %: Wilson's of a share, and percentiles of resampled figures. Knows no record."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
Z = NormalDist().inv_cdf(TAILS[1])  # 1.96: standard errors on either side of a mean


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's interval (1927) of a share of `n` records; it claims no certainty where the share is 0 or 1."""
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half_width = Z / (1 + Z * Z / n) * ((share * (1 - share) + Z * Z / (4 * n)) / n) ** 0.5
    return min(share, max(0.0, middle - half_width)), max(share, min(1.0, middle + half_width))


def percentiles(drawn: NDArray[np.float64], value: float) -> tuple[float, float]:
    """Percentile interval of resampled figures, widened to hold `value`; NaN draws are left out."""
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return value, value
    low, high = np.quantile(known, TAILS)
    return min(float(low), value), max(float(high), value)
