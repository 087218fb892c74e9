"""Intervals that hold the truth with 95 %: of a share or mean, of two of them compared, of resampled figures, of many together."""

from __future__ import annotations

from math import ceil, hypot, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
Z = NormalDist().inv_cdf(TAILS[1])  # 1.96: standard errors on either side of a mean


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's interval (1927) of a share of `n` records; it claims no certainty where the share is 0 or 1."""
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half_width = Z / (1 + Z * Z / n) * ((share * (1 - share) + Z * Z / (4 * n)) / n) ** 0.5
    return min(share, max(0.0, middle - half_width)), max(share, min(1.0, middle + half_width))


def of_difference(share: float, n: int, reference: float, reference_n: int) -> tuple[float, float]:
    """Newcombe's interval (1998, method 10) of `share` less `reference`, shares of different records, from their Wilson intervals."""
    low, high = wilson(share, n)
    from_, to = wilson(reference, reference_n)
    apart = share - reference
    return apart - hypot(share - low, to - reference), apart + hypot(high - share, reference - from_)


def of_ratio(share: float, n: int, reference: float, reference_n: int) -> tuple[float, float]:
    """Return the interval of `share` over `reference` (above 0) from their Wilson intervals (Donner and Zou 2012, eq. 9 and 10)."""
    low, high = wilson(share, n)
    from_, to = wilson(reference, reference_n)
    product = share * reference
    below = low * (2 * share - low)
    under = to * (2 * reference - to)
    above = high * (2 * share - high)
    over = from_ * (2 * reference - from_)
    if low > 0:
        lower = below / (product + sqrt(product**2 - below * under))
    else:
        lower = 0.0
    return lower, (product + sqrt(product**2 - above * over)) / over


def of_mean(mean: float, deviation: float, n: int) -> tuple[float, float]:
    """Return the normal interval of a mean of `n` records with this standard deviation."""
    error = Z * deviation / sqrt(n)
    return mean - error, mean + error


def of_standardised(
    apart: float, deviation: float, n: int, other_deviation: float, other_n: int
) -> tuple[float, float, float] | None:
    """Standardised mean difference with its interval (Bonett 2008, eq. 5 and 6, two groups with variances of their own).

    Parameters
    ----------
    apart : float
        One group's mean less the other's.
    deviation, other_deviation : float
        Standard deviations of the two groups.

    Returns
    -------
    (value, low, high), or None if all scores are equal.
    """
    variance = deviation**2
    other_variance = other_deviation**2
    mean = (variance + other_variance) / 2
    if mean == 0:
        return None
    value = apart / sqrt(mean)
    spread = value**2 * (variance**2 / (n - 1) + other_variance**2 / (other_n - 1)) / (8 * mean**2)
    error = Z * sqrt(spread + variance / (mean * (n - 1)) + other_variance / (mean * (other_n - 1)))
    return value, value - error, value + error


def percentiles(draws: NDArray[np.float64], value: float) -> tuple[float, float]:
    """Percentile interval of resampled figures, widened to hold `value`; NaN draws are left out."""
    finite = draws[~np.isnan(draws)]
    if not len(finite):
        return value, value
    low, high = np.quantile(finite, TAILS)
    return min(float(low), value), max(float(high), value)


def mirrored(draws: NDArray[np.float64], value: float) -> tuple[float, float]:
    """Basic bootstrap interval (Davison and Hinkley 1997, eq. 5.6), widened to hold `value`: of a figure that samples make too large.

    A largest difference, as KS is, grows with the noise; resampled it grows once more, so that :func:`percentiles` are on the wrong side.
    """
    low, high = percentiles(draws, value)
    return 2 * value - high, 2 * value - low


def simultaneous(
    values: NDArray[np.float64], draws: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Intervals that hold the truths of all figures together: max-|t| over joint draws (Westfall and Young 1993, section 2.6).

    Each figure has the standard error of its draws; the one factor for all of them is the 95th percentile of the largest distance from
    `values`, in standard errors, within a draw. Figures whose draws are independent of those of the others, though the figures are not,
    get intervals that are wide enough: of normal figures, symmetric intervals hold together at least as often as if they were independent
    (Royen 2014; of single figures Šidák 1967).

    Parameters
    ----------
    values : ndarray of float64
        ``(figures,)``
    draws : ndarray of float64
        ``(draws, figures)``; a draw in which a figure is NaN is left out.

    Returns
    -------
    (low, high), ``(figures,)`` each; None if fewer than two draws are known.
    """
    finite = draws[~np.isnan(draws).any(axis=1)]
    if len(finite) < 2 or not len(values):
        return None
    errors = finite.std(axis=0, ddof=1)
    apart = np.abs(finite - values)
    largest = np.divide(apart, errors, out=np.zeros_like(apart), where=errors > 0).max(axis=1)
    factor = np.sort(largest)[min(len(finite), ceil(CONFIDENCE * (len(finite) + 1))) - 1]
    return values - factor * errors, values + factor * errors
