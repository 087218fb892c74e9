"""The report's searches for less discriminatory alternatives: every model that was tried, at each decision."""

from __future__ import annotations

from collections.abc import Iterable

from backend.fairness.alternatives import DecidedModels, IntervalFigure, Point, Search
from backend.reports import schema as report
from backend.reports.build.fill import fill
from backend.reports.build.sources import Sources


def searches(sources: Sources) -> Iterable[report.SearchLine]:
    """A line a search and decision."""
    for search in sources.searches:
        reference = search.groups[search.reference]
        for decided in search.decisions:
            yield fill(
                report.SearchLine,
                search,
                decided,
                sources.feature(search.attribute),
                reference=search.group_in_words(reference),
                alternatives=tuple(_alternatives(search, decided)),
                choice=search.choice and fill(report.ChoiceLine, search.choice),
            )


def _alternatives(search: Search, decided: DecidedModels) -> Iterable[report.AlternativeLine]:
    for tried, point in zip(search.tried, decided.points, strict=True):
        yield fill(
            report.AlternativeLine,
            point,
            tried,
            group=search.group_in_words(point.group),
            **_figures(point),
        )


def _figures(point: Point) -> dict[str, report.IntervalLine | None]:
    names = ("auc", "auc_change", "auc_together", "ks", "gap", "ratio", "gap_change", "gap_together")
    return {name: _line(getattr(point, name)) for name in names}


def _line(figure: IntervalFigure | None) -> report.IntervalLine | None:
    return None if figure is None else fill(report.IntervalLine, figure)
