"""The model's quality in a report: figures with intervals, calibration, ROC, stability; no line is about fewer than 20 people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from backend.data.rounding import rounded
from backend.evaluation.performance import Calibration, Performance
from backend.fairness.intervals import wilson
from backend.protocols.group_sums.grouping import MIN_GROUP
from backend.reports import schema as report
from backend.reports.build.fill import fill
from backend.reports.build.sources import Card

MAX_STEPS = 20  # of a curve


def performance(card: Card | None) -> report.PerformanceSection | None:
    """Return the card's part to rely on; None if no scores are kept, or too few."""
    if card is None or card.part.n < MIN_GROUP:
        return None
    return fill(
        report.PerformanceSection,
        card.part,
        source=card.source,
        calibration=tuple(merged(card.part.calibration, shares=bool(card.part.counts))),
        separation=_curve(card.part),
        stability=card.shifts,
    )


def merged(rows: Sequence[Calibration], *, shares: bool) -> list[Calibration]:
    """Neighbouring rows merged until each is of enough people.

    Parameters
    ----------
    shares : bool
        Whether the outcomes are shares (of a label), whose intervals are Wilson's, rather than means of numbers.
    """
    out: list[Calibration] = []
    for row in rows:
        out.append(_merge(out.pop(), row, shares) if out and out[-1].n < MIN_GROUP else row)
    if len(out) > 1 and out[-1].n < MIN_GROUP:
        last = out.pop()
        out.append(_merge(out.pop(), last, shares))
    return out


def _merge(first: Calibration, second: Calibration, shares: bool) -> Calibration:
    n = first.n + second.n
    weights = [row.n if row.weight is None else row.weight for row in (first, second)]
    total = sum(weights)
    predicted = (weights[0] * first.predicted + weights[1] * second.predicted) / total
    observed = (weights[0] * first.observed + weights[1] * second.observed) / total
    weight = squares = None
    if first.squares is not None and second.squares is not None:
        weight = float(total)
        squares = first.squares + second.squares
    if shares:
        low, high = wilson(observed, n if squares is None else total**2 / squares)
    else:
        # The errors of two independent means add in quadrature, each weighted by its share of the weight.
        rows = zip((first, second), weights, strict=True)
        spread = math.hypot(*(weight_of_row / total * (row.high - row.low) / 2 for row, weight_of_row in rows))
        low = observed - spread
        high = observed + spread
    return Calibration(n, predicted, observed, low, high, weight, squares)


def _curve(part: Performance) -> tuple[report.CutoffLine, ...]:
    """Points of ROC with enough people between each two, the widest gap (KS) among them if it is not at an end."""
    roc = part.separation
    if roc is None:
        return ()
    above = roc.people
    step = max(MIN_GROUP, part.n / MAX_STEPS)
    indices: list[int] = []
    for k in (roc.widest, *range(len(above))):
        ends = (0.0, float(part.n), *(above[j] for j in indices))
        if all(abs(above[k] - end) >= step for end in ends):
            indices.append(k)
    axes = {"cutoff": roc.cutoffs, "true_positive": roc.true_positive, "false_positive": roc.false_positive}
    return tuple(report.CutoffLine(**{name: rounded(axis[k]) for name, axis in axes.items()}) for k in sorted(indices))
