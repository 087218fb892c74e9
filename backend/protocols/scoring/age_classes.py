"""Ages in classes: elderly people by the law's own edge, younger ones in classes of equal size. Stays with the party that holds the ages.

Elderly is who is 62 or older (12 CFR 1002.2(o)). That edge is public; those of the younger classes and every age stay with their owner.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature
from backend.protocols.group_sums.grouping import ELDERLY, MIN_GROUP, group, is_age

YOUNGER = 4  # classes of the others, at most


def age_classes(
    feature: Feature, column: NDArray[np.generic], min_size: int = MIN_GROUP
) -> tuple[NDArray[np.intp], ...]:
    """Records of each class: the elderly first, then the younger ones upwards; those without an age are in none.

    Parameters
    ----------
    feature : Feature
        A number of years.
    column : ndarray
        ``(n,)``; NaN if missing.

    Returns
    -------
    tuple of ndarray of int
        Places in `column`, at least `min_size` a class; empty if the elderly or the younger are fewer.
    """
    ages = column.astype(np.float64)
    elderly = np.flatnonzero(ages >= ELDERLY)
    younger = np.flatnonzero(ages < ELDERLY)
    if min(len(elderly), len(younger)) < min_size:
        return ()
    # an age has one bin less than is asked for, since the elderly are a group there
    grouped = group(feature, ages[younger], YOUNGER + is_age(feature), min_size)
    parts = tuple(younger[grouped.index == k] for k in range(len(grouped.groups))) or (younger,)
    return (elderly, *parts)
