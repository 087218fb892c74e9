"""What a line would mean: acceptance, outcomes and profit along the cut-off, of people whose outcome is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.policy.bands import Side, Task

STEPS = 99  # lines that are looked at: every percent, or every hundredth of the people

Floats = NDArray[np.float64]


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
    """What one line would mean.

    Attributes
    ----------
    cutoff : float
    accepted : float
        Two outcomes, a number: share of all people who are accepted. Classes: share who are not referred to a person.
    outcome : float
        Among these. Two outcomes: share of the bad one. Classes: share whose most probable class is wrong. A number: its mean. NaN if
        there is nobody.
    profit : float
        A person who applies; NaN without costs.
    """

    cutoff: float
    accepted: float
    outcome: float
    profit: float


def frontier(
    values: Floats,
    outcomes: Floats,
    *,
    task: Task = "binary",
    declines: Side = "above",
    costs: Costs | None = None,
    cutoffs: Sequence[float] = (),
) -> tuple[LinePoint, ...]:
    """Return what each line means, lowest first.

    Parameters
    ----------
    values : ndarray of float64
        ``(n,)``: probability of the bad outcome, that of the most probable class, or the number.
    outcomes : ndarray of float64
        ``(n,)``: 1 = bad, 1 = the class was wrong, or the number that it turned out to be.
    declines : {"above", "below"}
        Of a number.
    costs : Costs, optional
        Of two outcomes.
    cutoffs : sequence of float
        Default: :data:`STEPS` of them over the whole range.
    """
    if len(cutoffs):
        lines = sorted(cutoffs)
    else:
        lines = _lines(values, task)
    points = []
    for line in lines:
        accepted = _accepted(values, line, task, declines)
        count = int(accepted.sum())
        if count:
            outcome = float(outcomes[accepted].mean())
        else:
            outcome = math.nan
        profit = math.nan
        if costs is not None and task == "binary":
            bad = float(outcomes[accepted].sum())
            profit = (costs.gain * (count - bad) - costs.loss * bad) / len(values)
        points.append(LinePoint(float(line), count / len(values), outcome, profit))
    return tuple(points)


def at_line(points: Sequence[LinePoint], cutoff: float) -> LinePoint:
    """Return the point whose cut-off is nearest to a line."""
    return min(points, key=lambda point: abs(point.cutoff - cutoff))


def most_profitable(points: Sequence[LinePoint]) -> LinePoint | None:
    """Return the point with the largest profit; None without costs."""
    priced = [point for point in points if not math.isnan(point.profit)]
    return max(priced, key=lambda point: point.profit, default=None)


def _lines(values: Floats, task: Task) -> list[float]:
    if task == "number":
        lines: list[float] = np.unique(np.quantile(values, np.arange(1, STEPS + 1) / (STEPS + 1))).tolist()
        return lines
    return [step / (STEPS + 1) for step in range(1, STEPS + 1)]


def _accepted(values: Floats, line: float, task: Task, declines: Side) -> NDArray[np.bool_]:
    """Return who is accepted, as :meth:`backend.policy.bands.Policy.band` says; of classes, who is not referred."""
    if task == "classes":
        return values >= line
    return values < line if declines == "above" else values > line
