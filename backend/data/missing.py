"""Cells without a value: the texts that files use for them.

Knows no column: which texts are missing in one, its federation file says (docs/decisions/data.md).
"""

from __future__ import annotations

USUAL = frozenset({"na", "n/a", "null", "none", "nan", "?"})  # compared without case
OTHERS = frozenset(
    {
        "<na>",
        "nat",
        "-",
        "--",
        "\u2013",  # the longer dashes
        "\u2014",
        ".",
        "missing",
        "#n/a",
        "n.a.",
        "unknown",
        "unk",
        "not available",
        "未知",
        "缺失",
        "不详",
    }
)  # in use, too; never read as missing by themselves


def is_no_outcome(cell: str) -> bool:
    """Return whether a label's cell says that the outcome is not known; a text that is declared as an outcome says one all the same."""
    return not cell or cell.casefold() in USUAL


def looks_missing(cell: str) -> bool:
    """Return whether a text is one of those that files use for a missing value."""
    return cell.casefold() in USUAL | OTHERS
