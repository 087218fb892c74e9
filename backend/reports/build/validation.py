"""The suite's last run, and the last monitoring run, in a report: every test with all of its figures."""

from __future__ import annotations

from backend.evaluation.validation.monitoring import Monitored
from backend.evaluation.validation.suite import Tested, Validation
from backend.reports import schema as report
from backend.reports.build.fill import fill, fill_each


def validation(found: Validation | None) -> report.ValidationSection | None:
    """The section; None if the suite was not run."""
    if found is None:
        return None
    return fill(report.ValidationSection, found, tests=tuple(map(_test, found.tests)))


def monitoring(found: Monitored | None) -> report.MonitoringSection | None:
    """The section; None if the model was not monitored."""
    if found is None:
        return None
    rows = fill_each(report.CalibrationLine, found.tenths)
    return fill(report.MonitoringSection, found, tests=tuple(map(_test, found.tests)), tenths=rows)


def _test(test: Tested) -> report.TestLine:
    rows = tuple(fill(report.FigureLine, judged, judged.figure) for judged in test.figures)
    return fill(report.TestLine, test, figures=rows)
