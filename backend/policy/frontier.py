"""What a line would mean: acceptance, bad rate and profit along the cut-off, from a model's measured rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """What one accepted person brings or costs, in one currency.

    Attributes
    ----------
    gain : float
        From an accepted person with the good outcome.
    loss : float
        From an accepted person with the bad outcome; a positive number.
    """

    gain: float
    loss: float


@dataclass(frozen=True)
class LinePoint:
    """What happens if people are declined at or above one cut-off.

    Attributes
    ----------
    accepted : float
        Share of all people below the cut-off.
    bad_rate : float
        Share of the bad outcome among the accepted; NaN if nobody is accepted.
    profit : float
        A person who applies; NaN without costs.
    """

    cutoff: float
    accepted: float
    bad_rate: float
    profit: float


def line_point(cutoff: float, true_rate: float, false_rate: float, base_rate: float, costs: Costs | None) -> LinePoint:
    """Return what one cut-off means.

    Parameters
    ----------
    true_rate, false_rate : float
        Share of the bad and of the good people at or above the cut-off.
    base_rate : float
        Share of the bad outcome among all.
    """
    accepted_bad = base_rate * (1.0 - true_rate)
    accepted_good = (1.0 - base_rate) * (1.0 - false_rate)
    accepted = accepted_bad + accepted_good
    bad_rate = accepted_bad / accepted if accepted > 0.0 else math.nan
    profit = math.nan
    if costs is not None:
        profit = costs.gain * accepted_good - costs.loss * accepted_bad
    return LinePoint(cutoff, accepted, bad_rate, profit)


def frontier(
    cutoffs: Sequence[float],
    true_rates: Sequence[float],
    false_rates: Sequence[float],
    base_rate: float,
    costs: Costs | None = None,
) -> tuple[LinePoint, ...]:
    """Return what each cut-off means, lowest cut-off first."""
    points = []
    for cutoff, true_rate, false_rate in zip(cutoffs, true_rates, false_rates, strict=True):
        points.append(line_point(cutoff, true_rate, false_rate, base_rate, costs))
    return tuple(sorted(points, key=lambda point: point.cutoff))


def at_line(points: Sequence[LinePoint], cutoff: float) -> LinePoint:
    """Return the measured point whose cut-off is nearest to a line."""
    return min(points, key=lambda point: abs(point.cutoff - cutoff))


def most_profitable(points: Sequence[LinePoint]) -> LinePoint | None:
    """Return the point with the largest profit; None without costs."""
    priced = [point for point in points if not math.isnan(point.profit)]
    return max(priced, key=lambda point: point.profit, default=None)
