"""Whether groups differ by more than chance: exact or normal for two shares, a permutation for several, Welch's test of two means."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

PERMUTATIONS = 2000
MIN_EXPECTED = 5  # of each cell of a table of two shares, for the normal distribution to do (Cochran 1954)
TIED = 1e-9  # by how much the logarithms of two chances differ where only rounding tells them apart


def of_two_shares(counted: int, n: int, other_counted: int, other_n: int) -> float:
    """Two-sided p-value of two shares of different records: normal with the pooled share, Fisher's exact test where a count is small.

    Parameters
    ----------
    counted, n, other_counted, other_n : int
        How many of how many records in the two groups.
    """
    total = counted + other_counted
    of = n + other_n
    if total in (0, of):
        return 1.0
    if min(total, of - total) * min(n, other_n) / of < MIN_EXPECTED:
        return _exact(counted, n, total, of)
    pooled = total / of
    z = (counted / n - other_counted / other_n) / sqrt(pooled * (1 - pooled) * (1 / n + 1 / other_n))
    return 2 * NormalDist().cdf(-abs(z))


def _exact(counted: int, n: int, total: int, of: int) -> float:
    """Fisher's exact test, two-sided: the chance of all tables with these margins that are no likelier than the one that was seen."""
    first = max(0, total - (of - n))
    last = min(n, total)
    k = np.arange(first, last)
    # from one table to the next, as logarithms: the ways to choose them have thousands of digits
    steps = np.log((n - k) * (total - k)) - np.log((k + 1) * (of - n - total + k + 1))
    likely = np.concatenate([[0.0], np.cumsum(steps)])
    chances = np.exp(likely - likely.max())
    as_seldom = likely <= likely[counted - first] + TIED
    return float(chances[as_seldom].sum() / chances.sum())


def of_two_means(apart: float, deviation: float, n: int, other_deviation: float, other_n: int) -> float:
    """Two-sided p-value of two means `apart` (Welch 1947), from standard deviations and numbers of records."""
    variance = deviation**2 / n
    other_variance = other_deviation**2 / other_n
    if variance + other_variance == 0:
        return 1.0 if apart == 0 else 0.0
    from scipy.special import stdtr  # noqa: PLC0415 - slow to import, and few runs need it; scipy.stats takes 50 MB

    freedom = (variance + other_variance) ** 2 / (variance**2 / (n - 1) + other_variance**2 / (other_n - 1))
    return float(2 * stdtr(freedom, -abs(apart) / sqrt(variance + other_variance)))


def by_chance(counted: NDArray[np.int64], behind: NDArray[np.int64], draw: np.random.Generator) -> float:
    """p-value of the widest difference between any two rates, by permuting who is in which group.

    Parameters
    ----------
    counted, behind : ndarray of int64, ``(groups,)``
        Records that a rate counts, and that it counts among.
    """
    permuted = draw.multivariate_hypergeometric(behind, int(counted.sum()), size=PERMUTATIONS) / behind
    apart = np.ptp(counted / behind) * (1 - 1e-9)
    # the groups as they are count as one
    return float((1 + np.sum(np.ptp(permuted, axis=1) >= apart)) / (1 + PERMUTATIONS))
