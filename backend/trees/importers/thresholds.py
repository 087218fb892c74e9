"""The libraries' comparisons as ours: for each, the float64 T for which ``value < T`` decides every finite float64 value alike.

XGBoost and scikit-learn's older trees round a value to float32 (to nearest, ties to even) before they compare it.
"""

from __future__ import annotations

import math

import numpy as np

LARGEST = float(np.finfo(np.float64).max)
_BEYOND = 2.0**128  # where float32 would go on after its largest number; half-way values round to infinity


def below_float32(threshold: float) -> float:
    """``float32(value) < float32(threshold)`` as ``value < T``."""
    with np.errstate(over="ignore"):
        top = np.float32(threshold)
    if top == -np.inf:
        return -LARGEST
    with np.errstate(over="ignore"):
        under = np.nextafter(top, np.float32(-np.inf))
    low = -_BEYOND if np.isinf(under) else float(under)
    high = _BEYOND if np.isinf(top) else float(top)
    middle = (low + high) / 2.0  # exact: one bit more than float32 has
    tie_goes_up = bool(under.view(np.uint32) & 1)
    if tie_goes_up:
        return middle
    return math.nextafter(middle, math.inf)


def at_most_float32(threshold: float) -> float:
    """``float32(value) <= threshold``, the threshold a float64, as ``value < T``."""
    with np.errstate(over="ignore"):
        nearest = np.float32(threshold)
        if float(nearest) > threshold:
            floor = np.nextafter(nearest, np.float32(-np.inf))
        else:
            floor = nearest
        return below_float32(float(np.nextafter(floor, np.float32(np.inf))))


def at_most(threshold: float) -> float:
    """``value <= threshold`` as ``value < T``; never infinite, which JSON cannot hold."""
    above = math.nextafter(threshold, math.inf)
    if math.isinf(above):
        return math.copysign(LARGEST, above)
    return above
