"""What is odd about the columns of one table, how often, and what mends it, before the table is divided.

It counts cells, so only who holds the whole table can ask. A person chooses the mend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from backend.data.column_kinds import LEADING_ZERO, MAX_CODES, MIN_SIGNS, alike_texts
from backend.data.csv_file import to_column
from backend.data.dates import ORDERS, date_of, orders_of
from backend.data.decimal_mark import Marks, plain
from backend.data.dictionary import Kind
from backend.data.missing import looks_missing
from backend.data.number_forms import number_form, written_number
from backend.data.overview import (
    MAX_FEW,
    are_few,
    have_same_length,
    look_like_dates,
    numbers_of,
    sentinels,
    unlike_codes,
)
from backend.data.party_file import AMOUNT

Mend = Literal["missing", "one_spelling", "codes", "days_dmy", "days_mdy", "leave_out"]
DAYS: dict[str, Mend] = {"dmy": "days_dmy", "mdy": "days_mdy"}  # order of a date → the mend that reads it so


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something odd about a column.

    Attributes
    ----------
    code : str
        ``missing_texts``, ``sentinels``, ``unreadable``, ``among_numbers``, ``no_dates``, ``signs``, ``spellings``, ``dates``,
        ``many_codes``, ``unlike``, ``few``, ``same_length``, ``constant`` or ``empty``.
    blocks : bool
        Whether no federation can be made of the column as it is.
    mends : tuple of str
        What a person may do, the likeliest first.
    cells : dict of str to int
        Text → rows that have it; empty if it is about the whole column.
    """

    code: str
    blocks: bool
    mends: tuple[Mend, ...]
    cells: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows it is about; 0 if it is about the whole column."""
        return sum(self.cells.values())


def oddities(counts: Mapping[str, int], kind: Kind, marks: Marks) -> tuple[Oddity, ...]:
    """Return what is odd about a column, what blocks first.

    Parameters
    ----------
    counts : mapping of str to int
        The column's texts, numbers without their signs → rows; no empty text.
    kind : Kind
        What the column is taken for.
    marks : Marks
        How numbers are written.
    """
    if not counts:
        return (Oddity("empty", False, ("leave_out",)),)
    absent = {cell: count for cell, count in counts.items() if looks_missing(cell)}
    texts = {cell: count for cell, count in counts.items() if cell not in absent}
    entries = []
    if absent:
        # Among numbers or dates they are no values; among codes they may be one.
        entries.append(Oddity("missing_texts", kind is not Kind.CATEGORICAL, ("missing",), absent))
    if kind is Kind.NUMERIC:
        texts = _with_points(texts, marks)
        apart = sentinels(texts)
        if apart:
            entries.append(Oddity("sentinels", False, ("missing",), apart))
            texts = {cell: count for cell, count in texts.items() if cell not in apart}
    if look_like_dates(texts):
        entries += _of_dates(texts, kind)
    elif kind is Kind.CATEGORICAL:
        entries += _of_codes(texts)
    elif kind is Kind.NUMERIC:
        entries += _of_numbers(texts)
    if len(texts) == 1:
        entries.append(Oddity("constant", False, ("leave_out",)))
    possible = [replace(oddity, mends=tuple(mend for mend in oddity.mends if _can(mend, oddity))) for oddity in entries]
    return tuple(sorted(possible, key=lambda oddity: not oddity.blocks))


def _can(mend: Mend, oddity: Oddity) -> bool:
    """Return whether a mend can be written down: a dictionary names texts for a missing value with ``;`` between them."""
    return mend != "missing" or (bool(oddity.cells) and not any(";" in cell for cell in oddity.cells))


def _of_dates(texts: Mapping[str, int], kind: Kind) -> list[Oddity]:
    dated = [cell for cell in texts if any(date_of(cell, order) for order in ORDERS)]
    orders = orders_of(dated)
    entries = []
    if orders and len(dated) < len(texts):
        others = {cell: count for cell, count in texts.items() if cell not in dated}
        entries.append(Oddity("no_dates", False, ("missing",), others))
    blocks = kind is Kind.CATEGORICAL and len(texts) > MAX_CODES
    entries.append(Oddity("dates", blocks, (*(DAYS[order] for order in orders), "leave_out")))
    return entries


def _of_codes(texts: Mapping[str, int]) -> list[Oddity]:
    spellings: dict[str, int] = {}
    for alike in alike_texts(texts):
        spellings |= {cell: texts[cell] for cell in alike}
    if spellings:
        return [Oddity("spellings", True, ("one_spelling",), spellings)]
    signed = set()
    for cell in texts:
        number = written_number(cell)
        if number is not None and number.sign:
            signed.add(cell)
    if len(signed) >= MIN_SIGNS and 2 * len(signed) > len(texts):
        others = {cell: count for cell, count in texts.items() if cell not in signed}
        return [Oddity("signs", True, ("missing", "leave_out"), others)]
    if len(texts) > MAX_CODES:
        return [Oddity("many_codes", True, ("leave_out", "codes"))]
    numbers = numbers_of(texts)
    padded = any(LEADING_ZERO.fullmatch(cell) for cell in texts)
    if len(numbers) > MAX_FEW and 2 * len(numbers) > len(texts) and not padded:
        _, unread = to_column(list(texts), AMOUNT)
        return [Oddity("among_numbers", True, ("missing", "codes"), {cell: texts[cell] for cell in unread.values()})]
    unlike = unlike_codes(texts)
    if unlike:
        return [Oddity("unlike", False, ("missing",), unlike)]
    return []


def _with_points(texts: Mapping[str, int], marks: Marks) -> dict[str, int]:
    """The texts with a decimal point in each number, as a federation's files have them."""
    plain_texts: Counter[str] = Counter()
    for cell, number in zip(texts, plain(list(texts), marks), strict=True):
        plain_texts[cell if number is None else number] += texts[cell]
    return dict(plain_texts)


def _of_numbers(texts: Mapping[str, int]) -> list[Oddity]:
    if isinstance(number_form(texts), tuple):
        with_sign = {}
        for cell, count in texts.items():
            number = written_number(cell)
            if number is not None and number.sign:
                with_sign[cell] = count
        without = {cell: count for cell, count in texts.items() if cell not in with_sign}
        fewer = min(with_sign, without, key=lambda cells: sum(cells.values()))
        return [Oddity("signs", True, ("missing", "leave_out"), fewer)]
    _, unread = to_column(list(texts), AMOUNT)
    if unread:
        return [Oddity("unreadable", True, ("missing", "leave_out"), {cell: texts[cell] for cell in unread.values()})]
    numbers = numbers_of(texts)
    if have_same_length(numbers):
        return [Oddity("same_length", False, ("codes", "leave_out"))]
    if are_few(numbers):
        return [Oddity("few", False, ("codes",))]
    return []
