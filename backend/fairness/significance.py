"""Whether groups differ by more than chance: exact or normal for two shares, a permutation for several, Welch's test of two means."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

PERMUTATIONS = 2000
MIN_EXPECTED = 5  # of each cell of a table of two shares, for the normal distribution to do (Cochran 1954)


def of_two_shares(counted: int, n: int, other_counted: int, other_n: int) -> float:
    """Two-sided p-value of two shares of different records: normal with the pooled share, Fisher's exact test where a count is small.

    Parameters
    ----------
    counted, n, other_counted, other_n : int
        How many of how many records in the two groups.
    """
    total, of = counted + other_counted, n + other_n
    if total in (0, of):
        return 1.0
    if min(total, of - total) * min(n, other_n) / of < MIN_EXPECTED:
        from scipy.stats import fisher_exact  # noqa: PLC0415 - slow to import, and few runs need it

        return float(fisher_exact([[counted, n - counted], [other_counted, other_n - other_counted]]).pvalue)
    pooled = total / of
    z = (counted / n - other_counted / other_n) / sqrt(pooled * (1 - pooled) * (1 / n + 1 / other_n))
    return 2 * NormalDist().cdf(-abs(z))


def of_two_means(apart: float, deviation: float, n: int, other_deviation: float, other_n: int) -> float:
    """Two-sided p-value of two means `apart` (Welch 1947), from standard deviations and numbers of records."""
    own, other = deviation**2 / n, other_deviation**2 / other_n
    if own + other == 0:
        return 1.0 if apart == 0 else 0.0
    from scipy.stats import t  # noqa: PLC0415 - slow to import, and few runs need it

    freedom = (own + other) ** 2 / (own**2 / (n - 1) + other**2 / (other_n - 1))
    return float(2 * t.sf(abs(apart) / sqrt(own + other), freedom))


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
