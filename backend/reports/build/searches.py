"""The report's searches for less discriminatory alternatives: every model that was tried, at each decision."""

from __future__ import annotations

from collections.abc import Iterable

from backend.fairness.alternatives import DecidedModels, Search
from backend.reports import schema as report
from backend.reports.build.fill import fill
from backend.reports.build.sources import Sources


def searches(sources: Sources) -> Iterable[report.SearchLine]:
    """Return a line for each search and decision."""
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
            )


def _alternatives(search: Search, decided: DecidedModels) -> Iterable[report.AlternativeLine]:
    for tried, point in zip(search.tried, decided.points, strict=True):
        yield report.AlternativeLine(tried=tried, point=point, group=search.group_in_words(point.group))
