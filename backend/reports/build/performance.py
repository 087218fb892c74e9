"""The model's quality in a report: figures with intervals, calibration, ROC, stability; no line is about fewer than 20 people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from backend.evaluation.performance import Calibration, Performance
from backend.fairness.intervals import wilson
from backend.protocols.group_sums.grouping import MIN_GROUP
from backend.reports import schema as report
from backend.reports.build.fill import fill, fill_each, rounded
from backend.reports.build.sources import Card

MAX_STEPS = 20  # of a curve


def performance(card: Card | None) -> report.PerformanceSection | None:
    """The card's part to rely on; None where no scores are kept, or too few."""
    if card is None or card.part.n < MIN_GROUP:
        return None
    return fill(
        report.PerformanceSection,
        card.part,
        source=card.source,
        figures=fill_each(report.EstimateLine, card.part.figures),
        calibration=fill_each(report.CalibrationLine, merged(card.part.calibration, shares=bool(card.part.counts))),
        separation=_curve(card.part),
        stability=fill_each(report.StabilityLine, card.shifts),
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


def _merge(one: Calibration, other: Calibration, shares: bool) -> Calibration:
    n = one.n + other.n
    predicted, observed = (
        (one.n * a + other.n * b) / n for a, b in ((one.predicted, other.predicted), (one.observed, other.observed))
    )
    if shares:
        return Calibration(n, predicted, observed, *wilson(observed, n))
    # The errors of two independent means add in quadrature, each weighted by its share of the people.
    spread = math.hypot(*(row.n / n * (row.high - row.low) / 2 for row in (one, other)))
    return Calibration(n, predicted, observed, observed - spread, observed + spread)


def _curve(part: Performance) -> tuple[report.CutoffLine, ...]:
    """Points of ROC with enough people between each two, the widest gap (KS) among them where it is not at an end."""
    roc = part.separation
    if roc is None:
        return ()
    others, positive = part.counts
    above = [t * positive + f * others for t, f in zip(roc.true_positive, roc.false_positive, strict=True)]
    step = max(MIN_GROUP, part.n / MAX_STEPS)
    kept: list[int] = []
    for k in (roc.widest, *range(len(above))):
        ends = (0.0, float(part.n), *(above[j] for j in kept))
        if all(abs(above[k] - end) >= step for end in ends):
            kept.append(k)
    axes = {"cutoff": roc.cutoffs, "true_positive": roc.true_positive, "false_positive": roc.false_positive}
    return tuple(report.CutoffLine(**{name: rounded(axis[k]) for name, axis in axes.items()}) for k in sorted(kept))
