"""Cells of tables that people open in a spreadsheet: written in one way, and read back as they were.

A spreadsheet runs a cell that begins with a sign such as ``=`` as a formula, also from a CSV file. An apostrophe before it makes it text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

SIGNS = tuple("=+-@＝＋－＠\t\r\n")  # some spreadsheets take the full-width ones, too
MARK = "'"
# marks of direction, spaces of no width and byte order marks: invisible, and left behind by copying from a page or a spreadsheet
INVISIBLE = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


def cell_text(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula.

    >>> cell_text("=1+1"), cell_text("-1.5"), cell_text("'=1+1"), cell_text("o'clock")
    ("'=1+1", '-1.5', "''=1+1", "o'clock")
    """
    signed = text.lstrip(MARK)[:1] in SIGNS
    if signed and not _is_number(text):
        return MARK + text
    return text


def plain_cell(text: str) -> str:
    """Return what :func:`cell_text` made a cell of.

    >>> plain_cell("'=1+1"), plain_cell("''=1+1"), plain_cell("'o")
    ('=1+1', "'=1+1", "'o")
    """
    if text[:1] == MARK and text.lstrip(MARK)[:1] in SIGNS:
        return text[1:]
    return text


def has_invisible(text: str) -> bool:
    """Return whether a text has characters of :data:`INVISIBLE`."""
    return not text.isascii() and INVISIBLE.search(text) is not None


def visible(text: str) -> str:
    """Return a text without characters of :data:`INVISIBLE`."""
    if has_invisible(text):
        return INVISIBLE.sub("", text)
    return text


def csv_text(rows: Iterable[Iterable[str]]) -> str:
    """Return rows as lines of CSV, each cell by :func:`cell_text`."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([cell_text(cell) for cell in row] for row in rows)
    return out.getvalue()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
