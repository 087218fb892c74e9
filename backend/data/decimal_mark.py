"""How a file writes its numbers: with a decimal point or a decimal comma; decided for the whole file, or not at all. Knows no column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

OTHER = {".": ",", ",": "."}
_LIKE = re.compile(r"[+-]?[.,]*\d[\d.,]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Marks:
    """What stands before the decimals and, where a file has it, between the thousands.

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
    """The marks of a file of which somebody said how it writes decimals; the other mark then stands between thousands."""
    return Marks(decimal, OTHER[decimal])


def like_a_number(cell: str) -> bool:
    """Whether a text is made of digits, points and commas alone, as numbers are that some file can read."""
    return _LIKE.fullmatch(cell) is not None


def plain(cells: Sequence[str], marks: Marks) -> Sequence[str | None]:
    """Cells with their numbers as Python writes them; None where a number breaks the file's way of writing."""
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
    """What cells prove about the marks, as they come."""

    proof: dict[str, str] = field(default_factory=dict)
    grouped: set[str] = field(default_factory=set)
    unproved: dict[str, str] = field(default_factory=dict)

    def add(self, cells: Iterable[str]) -> None:
        """Look at more cells."""
        for cell in cells:
            if "," not in cell and "." not in cell:
                continue
            for mark in OTHER:
                if _groups(mark).fullmatch(cell):
                    self.grouped.add(mark)
                    self.proof.setdefault(mark, cell)
                elif _number(Marks(mark)).fullmatch(cell):
                    (self.unproved if _OPEN[mark].fullmatch(cell) else self.proof).setdefault(mark, cell)

    def verdict(self, *, semicolons: bool = False) -> Marks | tuple[str, ...]:
        """The marks that all cells together prove, or the cells that leave it open; see :func:`decided`."""
        if len(self.proof) == 2:
            return tuple(self.proof.values())
        if not self.proof and (unproved := self.unproved.get(",") or (semicolons and self.unproved.get("."))):
            return (unproved,)
        mark = next(iter(self.proof), ".")
        return Marks(mark, OTHER[mark] if mark in self.grouped else "")


def decided(cells: Iterable[str], *, semicolons: bool = False) -> Marks | tuple[str, ...]:
    """The marks that all cells together prove, or the cells that leave it open.

    ``1,5`` proves a comma, ``1.5`` a point and ``1,234.5`` both marks; ``1,234`` proves nothing, for it may be one or a thousand. Where no
    number has a comma, a point stands before decimals; only where `semicolons` separate the cells, as Excel does where the comma is the
    decimal mark, ``1.234`` proves no more than ``1,234``.
    """
    evidence = MarkEvidence()
    evidence.add(cells)
    return evidence.verdict(semicolons=semicolons)


# a thousand, or one and some decimals
_OPEN = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}") for mark in OTHER}


@cache
def _number(marks: Marks) -> re.Pattern[str]:
    point = re.escape(marks.decimal)
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{re.escape(marks.thousands)}\d{{3}})+)" if marks.thousands else r"\d+"
    return re.compile(rf"[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?", re.ASCII)


@cache
def _groups(decimal: str) -> re.Pattern[str]:
    """Numbers that show which mark stands between thousands: one of both kinds, or twice the same."""
    point, group = re.escape(decimal), re.escape(OTHER[decimal])
    head = r"[+-]?[1-9]\d{0,2}"
    return re.compile(rf"{head}(?:{group}\d{{3}})+{point}\d*|{head}(?:{group}\d{{3}}){{2,}}", re.ASCII)
