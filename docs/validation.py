"""Writes the table of docs/validation.md from the suite's data file; `python -m docs.validation`.

With `--check` it writes nothing and fails when the table is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from backend.evaluation.validation.suite import Limit, Test, standard
from backend.i18n import Catalogue

TARGET = Path(__file__).with_name("validation.md")
START, END = "<!-- tests -->\n", "<!-- end -->"


def main() -> int:
    """Write the table, or compare it with what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the table is stale")
    page = TARGET.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    wanted = before + START + table() + END + rest.partition(END)[2]
    if not parser.parse_args().check:
        TARGET.write_text(wanted, encoding="utf-8")
        return 0
    if wanted == page:
        return 0
    sys.stderr.write("The table of docs/validation.md does not fit suite.toml. Run `python -m docs.validation`.\n")
    return 1


def table() -> str:
    """A row a test: what it asks, its thresholds, where they come from."""
    head = "| test | floor | thresholds | source and reason |\n|---|---|---|---|\n"
    return head + "".join(_row(test) for test in standard().tests)


def _row(test: Test) -> str:
    say = Catalogue("en")
    asks = f"`{test.id}`: {say(f'validation.what_{test.id}')}"
    limits = "<br>".join(_limit(limit) for limit in test.limit)
    return f"| {asks} | {'yes' if test.floor else 'no'} | {limits} | {test.source}. {test.reason} |\n"


def _limit(limit: Limit) -> str:
    side = "below" if limit.sense == "min" else "above"
    ends = [f"{name} {side} {end:g}" for name, end in (("warns", limit.warn), ("fails", limit.fail)) if end is not None]
    how = {"": "", "fail": " (fails by its whole interval)", "both": " (by its whole interval)"}[limit.certain]
    return f"`{limit.measure}` {', '.join(ends)}{how}"


if __name__ == "__main__":
    sys.exit(main())
