"""Writes the table of docs/validation.md from the suite's data file; `python -m docs.validation`.

With `--check` it writes nothing and fails when the table is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from backend.evaluation.validation.suite import MeasureLimits, Test, standard
from backend.i18n import Catalogue
from docs.page import write_or_check

TARGET = Path(__file__).with_name("validation.md")
START, END = "<!-- tests -->\n", "<!-- end -->"


def render() -> str:
    """The page with its table as it should be."""
    page = TARGET.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    return before + START + table() + END + rest.partition(END)[2]


def table() -> str:
    """A row a test: what it asks, its thresholds, where they come from."""
    head = "| test | floor | thresholds | source and reason |\n|---|---|---|---|\n"
    return head + "".join(_row(test) for test in standard().tests)


def _row(test: Test) -> str:
    say = Catalogue("en")
    asks = f"`{test.id}`: {say(f'validation.what_{test.id}')}"
    limits = "<br>".join(_limit(limit) for limit in test.limit)
    return f"| {asks} | {'yes' if test.floor else 'no'} | {limits} | {test.source}. {test.reason} |\n"


def _limit(limit: MeasureLimits) -> str:
    side = "below" if limit.sense == "min" else "above"
    ends = [f"{name} {side} {end:g}" for name, end in (("warns", limit.warn), ("fails", limit.fail)) if end is not None]
    return f"`{limit.measure}` {', '.join(ends)}"


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, TARGET, render(), "suite.toml"))
