"""Oddities of one table's columns: kinds, counts and ways to mend them, before the table is divided.

It counts cells, so only who holds the whole table can ask. A person chooses the mend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal

from pydantic import ValidationError

from backend.data.column_kinds import LEADING_ZERO, MAX_CODES, MIN_SIGNS, alike_texts, short_forms
from backend.data.csv_file import to_column
from backend.data.dates import ORDERS, date_of, orders_of
from backend.data.decimal_mark import Marks, plain
from backend.data.dictionary import Feature, Kind
from backend.data.missing import looks_missing
from backend.data.number_forms import PERCENT, number_form, written_number
from backend.data.overview import (
    MAX_FEW,
    MIN_SENTINELS,
    are_few,
    have_same_length,
    look_like_dates,
    numbers_of,
    sentinels,
    unlike_codes,
)
from backend.data.party_file import AMOUNT

Mend = Literal["missing", "one_spelling", "codes", "days_dmy", "days_mdy", "shares", "same_sign", "leave_out"]
MEND_BY_ORDER: dict[str, Mend] = {"dmy": "days_dmy", "mdy": "days_mdy"}  # order of a date → the mend that reads it so
MIN_DATES = 3  # different dates from which on a column with other texts is one of dates
SERIALS = (20_000, 60_000)  # whole numbers by which a workbook counts the days of 1954 to 2064
# days by which files say that there is none
NO_DAYS = frozenset(
    {
        date(1, 1, 1),
        date(1753, 1, 1),
        date(1899, 12, 30),
        date(1899, 12, 31),
        date(1900, 1, 1),
        date(1970, 1, 1),
        date(2099, 12, 31),
        date(2999, 12, 31),
        date(9999, 12, 31),
    }
)


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something odd about a column.

    Attributes
    ----------
    code : str
        ``missing_texts``, ``sentinels``, ``unreadable``, ``among_numbers``, ``no_dates``, ``serials``, ``no_days``, ``signs``,
        ``percents``, ``spellings``, ``short_forms``, ``dates``, ``many_codes``, ``with_digits``, ``unlike``, ``few``, ``same_length``,
        ``constant`` or ``empty``.
    blocks : bool
        Whether no federation can be made of the column as it is.
    mends : tuple of str
        Ways to mend it, the likeliest first.
    cells : dict of str to int
        Text → rows that have it; empty if it is about the whole column.
    """

    code: str
    blocks: bool
    mends: tuple[Mend, ...]
    cells: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Return how many rows it is about; 0 if it is about the whole column."""
        return sum(self.cells.values())


def oddities(counts: Mapping[str, int], kind: Kind, marks: Marks) -> tuple[Oddity, ...]:
    """Return what is odd about a column, what blocks first.

    Parameters
    ----------
    counts : mapping of str to int
        The column's texts, numbers without their signs → rows; no empty text.
    kind : Kind
        The kind that the column is taken for.
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
    signs = _of_signs(texts)
    if signs is not None:
        entries.append(signs)
    elif _holds_dates(texts):
        entries += _of_dates(texts, kind)
    elif kind is Kind.CATEGORICAL:
        entries += _of_codes(texts)
    elif kind is Kind.NUMERIC:
        entries += _of_numbers(texts)
    if len(texts) == 1:
        entries.append(Oddity("constant", False, ("leave_out",)))
    possible = []
    for oddity in entries:
        mends = tuple(mend for mend in oddity.mends if _can(mend, oddity))
        possible.append(replace(oddity, mends=mends))
    return tuple(sorted(possible, key=lambda oddity: not oddity.blocks))


def _can(mend: Mend, oddity: Oddity) -> bool:
    """Return whether a mend can be written down: a dictionary names texts for a missing value with ``;`` between them."""
    if mend != "missing":
        return True
    if not oddity.cells or any(";" in cell for cell in oddity.cells):
        return False
    try:
        Feature(name="feature", meaning="A feature", missing=tuple(oddity.cells))
    except ValidationError:  # a text is too long, or cannot be shown
        return False
    return True


def _of_signs(texts: Mapping[str, int]) -> Oddity | None:
    """Numbers of several signs, or with and without one; None if all are written alike."""
    examples = number_form(texts)
    if not isinstance(examples, tuple):
        return None
    with_sign = {}
    for cell, count in texts.items():
        number = written_number(cell)
        if number is not None and number.sign:
            with_sign[cell] = count
    without = {cell: count for cell, count in texts.items() if cell not in with_sign}
    fewer = min(with_sign, without, key=lambda cells: sum(cells.values()))
    signs = set()
    for cell in examples:
        number = written_number(cell)
        if number is not None:
            signs.add(number.sign)
    if signs == {"", PERCENT}:
        return Oddity("percents", True, ("shares", "same_sign", "missing", "leave_out"), fewer)
    if len(signs) == 2 and "" in signs:
        return Oddity("signs", True, ("same_sign", "missing", "leave_out"), fewer)
    return Oddity("signs", True, ("missing", "leave_out"), fewer)


def _holds_dates(texts: Mapping[str, int]) -> bool:
    """Return whether a column's texts are dates, most of them or at least half, or all but the days of a workbook."""
    if look_like_dates(texts):
        return True
    dated = [cell for cell in texts if any(date_of(cell, order) for order in ORDERS)]
    others = [cell for cell in texts if cell not in dated]
    return len(dated) >= MIN_DATES and (2 * len(dated) >= len(texts) or _are_serials(others))


def _are_serials(cells: Collection[str]) -> bool:
    return bool(cells) and all(cell.isdecimal() and SERIALS[0] <= int(cell) <= SERIALS[1] for cell in cells)


def _of_dates(texts: Mapping[str, int], kind: Kind) -> list[Oddity]:
    dated = [cell for cell in texts if any(date_of(cell, order) for order in ORDERS)]
    orders = orders_of(dated)
    entries = []
    if orders and len(dated) < len(texts):
        others = {cell: count for cell, count in texts.items() if cell not in dated}
        entries.append(Oddity("serials" if _are_serials(others) else "no_dates", False, ("missing",), others))
    entries += _of_no_days({cell: texts[cell] for cell in dated}, orders)
    blocks = kind is Kind.CATEGORICAL and len(texts) > MAX_CODES
    entries.append(Oddity("dates", blocks, (*(MEND_BY_ORDER[order] for order in orders), "leave_out")))
    return entries


def _of_no_days(dated: Mapping[str, int], orders: Collection[str]) -> list[Oddity]:
    """Return the days by which files say that there is none, if several rows have one and all other dates are later, or all are earlier."""
    days = {}
    for cell in dated:
        day = date_of(cell, next(iter(orders), ORDERS[0]))
        if day is not None:
            days[cell] = day
    others = [day for day in days.values() if day not in NO_DAYS]
    if not others:
        return []
    no_days = {}
    for cell, day in days.items():
        if day in NO_DAYS and dated[cell] >= MIN_SENTINELS and not min(others) <= day <= max(others):
            no_days[cell] = dated[cell]
    if no_days:
        return [Oddity("no_days", False, ("missing",), no_days)]
    return []


def _with_digits(texts: Mapping[str, int]) -> dict[str, int]:
    """Texts that begin with a digit and are no numbers, such as ``1k``, ``20-29`` and ``1/2``, if at least half of the texts are."""
    digit_texts = {}
    for cell, count in texts.items():
        if cell[:1].isdecimal() and not cell.isdecimal() and written_number(cell) is None:
            digit_texts[cell] = count
    if len(digit_texts) > 1 and 2 * len(digit_texts) >= len(texts):
        return digit_texts
    return {}


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
    return _of_names(texts)


def _of_names(texts: Mapping[str, int]) -> list[Oddity]:
    """Return what is odd about the few codes of a column, all of them texts that may stay as they are."""
    digits = _with_digits(texts)
    if digits:
        return [Oddity("with_digits", False, ("codes", "leave_out"), digits)]
    short: dict[str, int] = {}
    for alike in short_forms(texts):
        short |= {cell: texts[cell] for cell in alike}
    if short:
        return [Oddity("short_forms", False, ("one_spelling",), short)]
    unlike = unlike_codes(texts)
    if unlike:
        return [Oddity("unlike", False, ("missing",), unlike)]
    return []


def _with_points(texts: Mapping[str, int], marks: Marks) -> dict[str, int]:
    """Return the texts with a decimal point in each number, as a federation's files have them."""
    plain_texts: Counter[str] = Counter()
    for cell, number in zip(texts, plain(list(texts), marks), strict=True):
        plain_texts[cell if number is None else number] += texts[cell]
    return dict(plain_texts)


def _of_numbers(texts: Mapping[str, int]) -> list[Oddity]:
    _, unread = to_column(list(texts), AMOUNT)
    if unread:
        return [Oddity("unreadable", True, ("missing", "leave_out"), {cell: texts[cell] for cell in unread.values()})]
    numbers = numbers_of(texts)
    if have_same_length(numbers):
        return [Oddity("same_length", False, ("codes", "leave_out"))]
    if are_few(numbers):
        return [Oddity("few", False, ("codes",))]
    return []
