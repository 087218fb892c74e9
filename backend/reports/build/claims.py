"""The report's claims: findings with their decisions, what was measured of groups, models retrained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields

from backend.fairness.evidence import Evidence
from backend.reports import schema as report
from backend.reports.build.fill import fill, fill_each
from backend.reports.build.sources import Sources
from backend.reports.model_comparison import OutcomePair, SideBySide, Sizes


def evidenced(
    sources: Sources,
    claim: str,
    measures_by_feature: Mapping[str, tuple[Evidence, ...]] | None,
    carried: Iterable[tuple[str, tuple[Evidence, ...] | None]],
) -> tuple[report.Evidenced, ...] | None:
    """Return what was measured, feature by feature; None if nothing was.

    Parameters
    ----------
    measures_by_feature : mapping of str to tuple of Evidence or None
        By feature; None = what the findings carry.
    carried : iterable of (str, tuple of Evidence or None)
        The features of findings, with what these carry.
    """
    if measures_by_feature is None:
        measures_of = {name: rows for name, rows in carried if rows is not None}
    else:
        measures_of = dict(measures_by_feature)
    measures_of |= {name: () for (about, name), basis in sources.bases.items() if about == claim and basis.refused}
    lines = tuple(
        fill(
            report.Evidenced,
            sources.feature(name),
            feature=name,
            on=sources.bases.get((claim, name)),
            measures=rows,
        )
        for name, rows in measures_of.items()
    )
    if lines or measures_by_feature is not None:
        return lines
    return None


def retrained(sources: Sources, pair: SideBySide) -> report.Retrained:
    """Return two models side by side, every figure as the report writes it."""
    first = pair.before
    second = pair.after
    sizes = ((f.name, getattr(first.sizes, f.name), getattr(second.sizes, f.name)) for f in fields(Sizes))
    return fill(
        report.Retrained,
        pair,
        before=first.record.id,
        after=second.record.id,
        before_sha256=first.record.content_hash,
        after_sha256=second.record.content_hash,
        created=second.record.created,
        figures=fill_each(report.Pair, pair.figures),
        structure=tuple(
            report.Pair(name=name, before=first_size, after=second_size) for name, first_size, second_size in sizes
        ),
        gain=tuple(fill(report.GainPair, shift, sources.feature(shift.feature)) for shift in pair.shifts),
        outcomes=tuple(_outcome(sources, pair, outcome) for outcome in pair.outcomes),
        leak=fill_each(report.Pair, pair.leaks),
    )


def _outcome(sources: Sources, both: SideBySide, pair: OutcomePair) -> report.OutcomePairLine:
    cutoff = (both.before if pair.before else both.after).cutoff(pair.feature)
    return fill(report.OutcomePairLine, pair, sources.feature(pair.feature), cutoff=cutoff)
