"""How a file writes its numbers: with a decimal point or a decimal comma; decided for the whole file, or not at all. Knows no column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from backend.data.number_forms import PERCENT, written_number

OTHER = {".": ",", ",": "."}
_LIKE = re.compile(r"[+-]?[.,]*\d[\d.,]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Marks:
    """The mark before the decimals and, if a file has one, the mark between thousands.

    Attributes
    ----------
    decimal : {".", ","}
    thousands : str
        The other one, or empty: then a number with it cannot be read.
    """

    decimal: str = "."
    thousands: str = ""


POINT = Marks()


def chosen(decimal: str) -> Marks:
    """Return the marks of a file for a stated decimal mark; the other mark is between thousands."""
    return Marks(decimal, OTHER[decimal])


def like_a_number(cell: str) -> bool:
    """Return whether a text is made of digits, points and commas alone, as numbers are that some file can read."""
    return _LIKE.fullmatch(cell) is not None


def plain(cells: Sequence[str], marks: Marks) -> Sequence[str | None]:
    """Cells with their numbers as Python writes them; None if a number breaks the file's way of writing."""
    if marks == POINT:
        return cells
    number = _number(marks)

    def one(cell: str) -> str | None:
        if "," not in cell and "." not in cell:
            return cell
        if not number.fullmatch(cell):
            return None
        return (cell.replace(marks.thousands, "") if marks.thousands else cell).replace(marks.decimal, ".")

    return [one(cell) for cell in cells]


@dataclass
class MarkEvidence:
    """Evidence of cells about the marks, one cell after the other.

    Attributes
    ----------
    proof, unproved : dict of str to str
        Decimal mark → the first cell that proves it, or that may have it.
    grouped : set of str
        Decimal marks that were seen with the other one between thousands.
    amounts : dict of str to str
        Decimal mark → the first amount of money that has three decimals if this is the mark, and else is a thousand.
    """

    proof: dict[str, str] = field(default_factory=dict)
    grouped: set[str] = field(default_factory=set)
    unproved: dict[str, str] = field(default_factory=dict)
    amounts: dict[str, str] = field(default_factory=dict)

    def add(self, cells: Iterable[str]) -> None:
        """Look at more cells."""
        for cell in cells:
            if "," not in cell and "." not in cell:
                continue
            number = None if like_a_number(cell) else written_number(cell)
            text = cell if number is None else number.text
            for mark in OTHER:
                if _groups(mark).fullmatch(text):
                    self.grouped.add(mark)
                    self.proof.setdefault(mark, cell)
                elif _number(Marks(mark)).fullmatch(text):
                    (self.unproved if _OPEN[mark].fullmatch(text) else self.proof).setdefault(mark, cell)
                if number is not None and number.sign not in ("", PERCENT) and _OPEN[mark].fullmatch(text):
                    self.amounts.setdefault(mark, cell)

    def verdict(self, *, semicolons: bool = False) -> Marks | tuple[str, ...]:
        """Return the marks that all cells together prove, or the cells that leave it open; see :func:`decided`."""
        if len(self.proof) == 2:
            return tuple(self.proof.values())
        if not self.proof and (unproved := self.unproved.get(",") or (semicolons and self.unproved.get("."))):
            return (unproved,)
        mark = next(iter(self.proof), ".")
        if mark in self.grouped:
            return Marks(mark, OTHER[mark])
        if mark in self.amounts:  # money hardly ever has three decimals
            return (self.amounts[mark],)
        return Marks(mark)


def decided(cells: Iterable[str], *, semicolons: bool = False) -> Marks | tuple[str, ...]:
    """Return the marks that all cells together prove, or the cells that leave it open.

    ``1,5`` proves a comma, ``1.5`` a point and ``1,234.5`` both marks; ``1,234`` proves nothing, for it may be one or a thousand. If no
    number has a comma, a point stands before decimals; only if `semicolons` separate the cells, as Excel does where the comma is the
    decimal mark, ``1.234`` proves no more than ``1,234``; neither does ``1.234 €``, for money hardly ever has three decimals.
    """
    evidence = MarkEvidence()
    evidence.add(cells)
    return evidence.verdict(semicolons=semicolons)


# a thousand, or one and some decimals
_OPEN = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}") for mark in OTHER}


def may_be_thousand(text: str, marks: Marks) -> bool:
    """Return whether a number has three decimals by a file's marks, and is a thousand if the file has other marks.

    Examples
    --------
    >>> may_be_thousand("1.200", POINT), may_be_thousand("1.20", POINT), may_be_thousand("1.200", Marks(".", ","))
    (True, False, False)
    """
    return not marks.thousands and _OPEN[marks.decimal].fullmatch(text) is not None


@cache
def _number(marks: Marks) -> re.Pattern[str]:
    point = re.escape(marks.decimal)
    if marks.thousands:
        integer = rf"(?:\d+|[1-9]\d{{0,2}}(?:{re.escape(marks.thousands)}\d{{3}})+)"
    else:
        integer = r"\d+"
    return re.compile(rf"[+-]?(?:{integer}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?", re.ASCII)


@cache
def _groups(decimal: str) -> re.Pattern[str]:
    """Numbers that show which mark is between thousands: one of both kinds, or twice the same."""
    point = re.escape(decimal)
    group = re.escape(OTHER[decimal])
    head = r"[+-]?[1-9]\d{0,2}"
    return re.compile(rf"{head}(?:{group}\d{{3}})+{point}\d*|{head}(?:{group}\d{{3}}){{2,}}", re.ASCII)
