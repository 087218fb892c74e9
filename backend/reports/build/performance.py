"""The model's quality as a report tells it: figures with intervals, calibration, ROC, stability; no line is about fewer than 20 people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from backend.evaluation.performance import Calibration, Performance
from backend.fairness.intervals import wilson
from backend.protocols.group_sums.grouping import MIN_GROUP
from backend.reports import schema as report
from backend.reports.build.rounded import share
from backend.reports.build.sources import Card

STEPS = 20  # of a curve, at most


def performance(card: Card | None) -> report.PerformanceSection | None:
    """What the card says of the part to believe; None where no scores are kept, or too few."""
    if card is None or card.part.n < MIN_GROUP:
        return None
    found = card.part
    return report.PerformanceSection(
        part=found.part,
        n=found.n,
        source=card.source,
        figures=tuple(
            report.EstimateLine(name=f.name, value=share(f.value), low=share(f.low), high=share(f.high))
            for f in found.figures
        ),
        calibration=tuple(
            report.CalibrationLine(**{name: share(value) for name, value in asdict(row).items()})
            for row in _large(found.calibration, shares=bool(found.counts))
        ),
        separation=_curve(found),
        stability=tuple(
            report.StabilityLine(reference=s.reference, part=s.part, n=s.n, psi=share(s.psi), chance=share(s.chance))
            for s in card.shifts
        ),
    )


def _large(rows: Sequence[Calibration], *, shares: bool) -> list[Calibration]:
    """Neighbours put together until each stands for enough people."""
    out: list[Calibration] = []
    for row in rows:
        out.append(_together(out.pop(), row, shares) if out and out[-1].n < MIN_GROUP else row)
    if len(out) > 1 and out[-1].n < MIN_GROUP:
        last = out.pop()
        out.append(_together(out.pop(), last, shares))
    return out


def _together(one: Calibration, other: Calibration, shares: bool) -> Calibration:
    n = one.n + other.n
    predicted, observed = (
        (one.n * a + other.n * b) / n for a, b in ((one.predicted, other.predicted), (one.observed, other.observed))
    )
    if shares:
        return Calibration(n, predicted, observed, *wilson(observed, n))
    half = math.hypot(*(row.n / n * (row.high - row.low) / 2 for row in (one, other)))
    return Calibration(n, predicted, observed, observed - half, observed + half)


def _curve(found: Performance) -> tuple[report.CutoffLine, ...]:
    """Points of ROC with enough people between each two, the widest gap (KS) among them where it is not at an end."""
    at = found.separation
    if at is None:
        return ()
    others, positive = found.counts
    above = [t * positive + f * others for t, f in zip(at.true_positive, at.false_positive, strict=True)]
    step = max(MIN_GROUP, found.n / STEPS)
    kept: list[int] = []
    for k in (at.widest, *range(len(above))):
        ends = (0.0, float(found.n), *(above[j] for j in kept))
        if all(abs(above[k] - end) >= step for end in ends):
            kept.append(k)
    return tuple(
        report.CutoffLine(
            cutoff=share(at.cutoffs[k]),
            true_positive=share(at.true_positive[k]),
            false_positive=share(at.false_positive[k]),
        )
        for k in sorted(kept)
    )
