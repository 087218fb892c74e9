"""The suite's last run in a report: every test, and of its figures the worst."""

from __future__ import annotations

from backend.evaluation.validation.suite import Tested, Validation
from backend.reports import schema as report
from backend.reports.build.fill import fill

SHOWN = 3  # figures of a test


def validation(found: Validation | None) -> report.ValidationSection | None:
    """The section; None where the suite was not run."""
    if found is None:
        return None
    return fill(report.ValidationSection, found, tests=tuple(map(_test, found.tests)))


def _test(test: Tested) -> report.TestLine:
    rows = tuple(fill(report.FigureLine, judged, judged.figure) for judged in test.figures[:SHOWN])
    return fill(report.TestLine, test, figures=rows)
