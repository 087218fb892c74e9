"""Dates as people write them, and as days since a fixed day, which a model can learn from.

Reads the cells of one column. The cells together prove which reading of 03/04/2024 is meant, or a person says it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from backend.i18n import Text

ORDERS = ("dmy", "mdy")  # which comes first in 03/04/2024: the day, or the month
_FULL_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
# name → number as text
MONTHS = {name: str(number) for number, name in enumerate(_FULL_MONTHS, start=1)}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": "9"}
MAX_LETTERS = 40  # of a date with its time
_TIME = (
    r"(?:[ T](?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?: ?[AaPp][Mm])?)?"  # in no other zone than the table's
)
COMPACT_DATE = re.compile(r"(?P<year>(?:19|20)\d\d)(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])", re.ASCII)
_YEAR = r"(?P<year>\d{4})"
_MONTH = r"(?P<month>\d{1,2})"
_NAME = r"(?P<month>[A-Za-z]{3,9})"
_DAY = r"(?P<day>\d{1,2})"
_FORMS = (
    COMPACT_DATE,
    re.compile(rf"{_YEAR}(?P<mark>[-/.]){_MONTH}(?P=mark){_DAY}{_TIME}", re.ASCII),
    re.compile(rf"{_YEAR}年{_MONTH}月{_DAY}日{_TIME}", re.ASCII),
    re.compile(rf"{_DAY}[-. ]+{_NAME}[-., ]+{_YEAR}{_TIME}", re.ASCII),
    re.compile(rf"{_NAME}[. ]+{_DAY},? +{_YEAR}{_TIME}", re.ASCII),
)
_YEAR_LAST = {
    "dmy": re.compile(rf"{_DAY}(?P<mark>[-/.]){_MONTH}(?P=mark){_YEAR}{_TIME}", re.ASCII),
    "mdy": re.compile(rf"{_MONTH}(?P<mark>[-/.]){_DAY}(?P=mark){_YEAR}{_TIME}", re.ASCII),
}
_UNIT = re.compile(r"days since (\d{4}-\d{2}-\d{2})", re.ASCII)


def date_of(cell: str, order: str) -> date | None:
    """Return the date that a cell writes; None if it writes none.

    A year of two digits is no date here: it may be of this century or of the last one.

    Parameters
    ----------
    order : {"dmy", "mdy"}
        What comes first if the year comes last and the month is a number.

    Examples
    --------
    >>> str(date_of("2024-03-31", "dmy")), str(date_of("31.3.2024", "dmy")), str(date_of("31 Mar 2024", "mdy"))
    ('2024-03-31', '2024-03-31', '2024-03-31')
    >>> str(date_of("03/04/2024", "dmy")), str(date_of("03/04/2024", "mdy")), date_of("31/03/2024", "mdy")
    ('2024-04-03', '2024-03-04', None)
    >>> str(date_of("2024年3月31日", "dmy")), str(date_of("20240331", "dmy")), date_of("31/03/24", "dmy")
    ('2024-03-31', '2024-03-31', None)
    """
    if len(cell) > MAX_LETTERS:
        return None
    for form in (*_FORMS, _YEAR_LAST[order]):
        match = form.fullmatch(cell)
        if match is not None:
            month = MONTHS.get(match["month"].lower(), match["month"])
            try:
                return date(int(match["year"]), int(month), int(match["day"]))
            except ValueError:  # the day or the month does not exist
                return None
    return None


def orders_of(cells: Collection[str]) -> tuple[str, ...]:
    """Return the orders in which all cells are dates; one of them if both give the same dates.

    Cells with slashes prove nothing about cells with points: if these leave the order open, no order is returned.

    Examples
    --------
    >>> orders_of(["2024-03-31", "1 Apr 2024"]), orders_of(["03/04/2024", "31/03/2024"]), orders_of(["03/04/2024"])
    (('dmy',), ('dmy',), ('dmy', 'mdy'))
    >>> orders_of(["03/31/2024", "31/03/2024"]), orders_of([])
    ((), ())
    >>> orders_of(["3/31/2024", "2.4.2024"]), orders_of(["3/31/2024", "2024-04-02"])
    ((), ('mdy',))
    """
    possible = _readable(cells)
    alike: dict[str, list[str]] = {}
    for cell in cells:
        match = _YEAR_LAST["dmy"].fullmatch(cell)
        if match is not None:
            alike.setdefault(match["mark"], []).append(cell)
    if any(len(_readable(part)) > len(possible) for part in alike.values()):
        return ()
    return possible


def _readable(cells: Collection[str]) -> tuple[str, ...]:
    read = {order: [date_of(cell, order) for cell in cells] for order in ORDERS}
    possible = tuple(order for order in ORDERS if cells and None not in read[order])
    if len(possible) == len(ORDERS) and read["dmy"] == read["mdy"]:
        return ORDERS[:1]
    return possible


@dataclass(frozen=True, slots=True)
class Days:
    """The dates of a column as days since the first of January of the earliest year.

    A feature's unit is open to all parties, and the earliest date itself would be one person's value.

    Attributes
    ----------
    first : date
        Day 0.
    numbers : dict of str to str
        Cell → its number of days, a whole number of at least 0.
    """

    first: date
    numbers: dict[str, str]

    @property
    def unit(self) -> Text:
        """Return the unit of the numbers, by which a sheet of people is read, too."""
        return Text(f"days since {self.first}", f"自 {self.first} 起的天数")


def as_days(cells: Iterable[str], order: str) -> tuple[Days | None, tuple[str, ...]]:
    """Return a column's dates as days, and the cells that are no dates; no days if there is no date.

    Examples
    --------
    >>> days, others = as_days(["2024-03-31", "1.4.2024", "soon"], "dmy")
    >>> days.numbers, days.unit.en, others
    ({'2024-03-31': '90', '1.4.2024': '91'}, 'days since 2024-01-01', ('soon',))
    """
    read = {}
    others = []
    for cell in dict.fromkeys(cells):
        day = date_of(cell, order)
        if day is None:
            others.append(cell)
        else:
            read[cell] = day
    if not read:
        return None, tuple(others)
    first = min(read.values()).replace(month=1, day=1)
    return Days(first, {cell: str((day - first).days) for cell, day in read.items()}), tuple(others)


def first_day(unit: Text) -> date | None:
    """Return day 0 of a feature that counts days since one; None if its unit is another.

    Examples
    --------
    >>> str(first_day(Text("days since 2019-01-02"))), first_day(Text("days"))
    ('2019-01-02', None)
    """
    match = _UNIT.fullmatch(unit.en)
    if match is None:
        return None
    try:
        return date.fromisoformat(match[1])
    except ValueError:
        return None


def days_in_a_sheet(cells: Mapping[int, str], first: date) -> dict[int, float]:
    """Return the days since `first` of the cells of a sheet that are dates: row → days.

    A date that can be read in two ways is read only if the other cells of the sheet prove the order.

    Examples
    --------
    >>> days_in_a_sheet({0: "2024-01-02", 1: "03/04/2024"}, date(2024, 1, 1))
    {0: 1.0}
    >>> days_in_a_sheet({0: "31/01/2024", 1: "03/02/2024"}, date(2024, 1, 1))
    {0: 30.0, 1: 33.0}
    """
    dated = [cell for cell in cells.values() if any(date_of(cell, order) for order in ORDERS)]
    orders = orders_of(dated)
    days = {}
    for row, cell in cells.items():
        readings = {date_of(cell, order) for order in orders or ORDERS}
        day = next(iter(readings))
        if len(readings) == 1 and day is not None:
            days[row] = float((day - first).days)
    return days
