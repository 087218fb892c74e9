"""Writes the tables of docs/rule-lists.md: the unseen list as it is measured now, and each list at its first look.

Counts of first looks are in `docs/rule-lists.csv`; shares and intervals are worked out. `python -m docs.rule_lists`; with `--check` it
writes nothing and fails when the page is stale.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from backend.cli.rules import MEASURES, PARTS
from backend.compliance.recall import Recall, RecallTotals, WilsonShare, measure
from backend.fairness.intervals import wilson
from bench.tables import markdown
from docs.page import write_or_check

TARGET = Path(__file__).with_name("rule-lists.md")
END = "<!-- end -->"
FIRST_LOOKS = Path(__file__).with_name("rule-lists.csv")
TITLES = {
    "statute": "named by a statute: flagged or asked about",
    "statute_flagged": "flagged alone",
    "proxies": "proxies: flagged or asked about",
    "proxies_flagged": "flagged alone",
    "precision": "flags that are right",
    "precision_asked": "flags and questions that are right",
    "questions": "columns with a question",
    "questions_right": "questions that are right",
    "silent": "attributes and proxies passed in silence",
    "not_understood": "others listed as not understood",
}
# what the first looks count: title, hits and of how many (fields of the CSV file)
SHARES = (("statute", "statute", "statute_of"), ("proxies", "proxies", "proxies_of"), ("flags right", "right", "flags"))


def render(totals: RecallTotals) -> str:
    """The page with both tables as they should be."""
    page = TARGET.read_text(encoding="utf-8")
    for name, table in (("unseen", unseen(totals)), ("first looks", first_looks())):
        before, _, rest = page.partition(f"<!-- {name} -->\n")
        page = f"{before}<!-- {name} -->\n{table}{END}{rest.partition(END)[2]}"
    return page


def unseen(totals: RecallTotals) -> str:
    """The totals that `glassleaf rules measure` prints, a row a measure; its file's hash."""
    parts = [part for part in totals.parts if part.part in ("all", "new")]
    header = [f"list 15, words {totals.words}", *(f"{part.language}, {PARTS[part.part]}" for part in parts)]
    rows = [["columns", *(f"{part.rows:,}" for part in parts)]]
    rows += [[TITLES[name], *(_measured(part, name) for part in parts)] for name in MEASURES]
    return f"{markdown(header, rows)}\n\nSHA-256 of the list: `{totals.sha256}`.\n"


def first_looks() -> str:
    """A row a list, English beside Chinese, from the recorded counts."""
    with FIRST_LOOKS.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    header = ["list", "words", *(f"{title}, {language}" for title, _, _ in SHARES for language in ("en", "zh"))]
    rows = []
    for english, chinese in zip(lines[::2], lines[1::2], strict=True):
        row = [english["list"], english["words"]]
        for _, hits, of in SHARES:
            row += [_share(int(line[hits]), int(line[of])) for line in (english, chinese)]
        rows.append(row)
    return f"{markdown(header, rows)}\n"


def _measured(part: Recall, name: str) -> str:
    found: WilsonShare = getattr(part, name)
    return _share(found.hits, found.n)


def _share(hits: int, of: int) -> str:
    low, high = wilson(hits / of, of)
    return f"{hits}/{of:,}, {hits / of:.1%} ({100 * low:.0f}–{100 * high:.0f}%)"


if __name__ == "__main__":
    sys.exit(
        write_or_check(__doc__, TARGET, render(measure()), "rule-lists.csv or what `glassleaf rules measure` prints")
    )
