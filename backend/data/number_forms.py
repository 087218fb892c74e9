"""Numbers as people write them: with a sign of percent or money, with spaces between thousands, in brackets below zero.

Reads one cell or the cells of one column. Knows no table, and leaves decimal marks to :mod:`backend.data.decimal_mark`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

PERCENT = "%"
MAX_LETTERS = 60  # of a number; the pattern takes long for a thousand spaces in brackets
MIN_NUMBERS = 11  # different numbers from which on a few other texts do not make a column one of codes
ODD_SHARE = 0.1  # share of a column's cells that may be something else, and is then refused by its lines
# sign as it is written → how the house writes it; only signs of one thing are one sign
SIGNS = {
    "%": PERCENT,
    "％": PERCENT,
    "$": "$",
    "US$": "$",
    "USD": "$",
    "€": "€",
    "EUR": "€",
    "£": "£",
    "GBP": "£",
    "¥": "¥",
    "￥": "¥",
    "元": "¥",
    "CNY": "¥",
    "RMB": "¥",
    "CHF": "CHF",
}
_SIGN = "|".join(re.escape(sign) for sign in sorted(SIGNS, key=len, reverse=True))
_SPACE = " \u00a0\u2009\u202f"  # also those that do not break a line
_BETWEEN = rf"[{_SPACE}'’]"  # between thousands and never before decimals
_MINUS = "-−"  # the second is the typographer's
_NUMBER = rf"[1-9]\d{{0,2}}(?:{_BETWEEN}\d{{3}})+(?:[.,]\d*)?|\d[\d.,]*|[.,]\d+"
_WRITTEN = re.compile(
    rf"(?P<open>\()?[{_SPACE}]*(?P<minus>[-+−])?[{_SPACE}]*(?:(?P<before>{_SIGN})[{_SPACE}]*(?P<inner>[-−])?[{_SPACE}]*)?"
    rf"(?P<number>{_NUMBER})[{_SPACE}]*(?P<behind>[-−])?(?P<after>{_SIGN})?[{_SPACE}]*(?P<close>\))?",
    re.ASCII,
)
_GAP = re.compile(_BETWEEN)
_ZEROS = re.compile(r"(?<![\d.,])0+(?=\d)")
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number as a cell has it.

    Attributes
    ----------
    text : str
        The number with its decimal marks, without sign, spaces and brackets; a minus comes first.
    sign : str
        Of percent or money, as :data:`SIGNS` writes it; empty if there is none.
    bracketed : bool
        Whether brackets mean that it is below zero.
    """

    text: str
    sign: str
    bracketed: bool

    @property
    def zero(self) -> bool:
        """Return whether it is zero, which is the same in every unit."""
        return not self.text.strip("+-0.,")


def written_number(cell: str) -> WrittenNumber | None:
    """Return the number that a cell writes; None if it writes none, or says twice that it is below zero.

    Examples
    --------
    >>> written_number("12,5 %")
    WrittenNumber(text='12,5', sign='%', bracketed=False)
    >>> written_number("($1,200.50)")
    WrittenNumber(text='-1,200.50', sign='$', bracketed=True)
    >>> written_number("1 234 €").text, written_number("1'234.5").text, written_number("300,50-").text
    ('1234', '1234.5', '-300,50')
    >>> written_number("12 years"), written_number("-(3)"), written_number("1 23"), written_number("5-")
    (None, None, None, None)
    """
    if len(cell) > MAX_LETTERS:
        match = None
    else:
        match = _WRITTEN.fullmatch(cell)
    if match is None:
        return None
    part = match.groupdict()
    bracketed = part["open"] is not None
    if bracketed != (part["close"] is not None):
        return None
    if part["before"] and part["after"]:
        return None
    negatives = [name for name in ("minus", "inner", "behind") if part[name]]
    if len(negatives) + bracketed > 1:
        return None
    if part["behind"] and part["number"].isdigit():
        return None  # "5-" is a mark at school; "1.234,50-" is an amount
    below_zero = bracketed or any(part[name] in _MINUS for name in negatives)
    text = _GAP.sub("", part["number"])
    sign = SIGNS.get(part["before"] or part["after"] or "", "")
    return WrittenNumber("-" + text if below_zero else text, sign, bracketed)


def is_of_unit(sign: str, *units: str) -> bool:
    """Return whether a number with a sign is in one of some units: "€" is, in "EUR"; a number without a sign is in any.

    Examples
    --------
    >>> is_of_unit("€", "EUR"), is_of_unit("$", "AUD"), is_of_unit("%", ""), is_of_unit("", "years")
    (True, False, False, True)
    """
    return not sign or sign in {SIGNS.get(unit.strip().upper(), unit.strip()) for unit in units}


@dataclass(frozen=True, slots=True)
class NumberForm:
    """How the numbers of a column are written, if they are not plain.

    Attributes
    ----------
    numbers : dict of str to str
        Cell → its number, with the decimal marks of the file.
    sign : str
        Of percent or money, in all numbers but zero; empty if there is none.
    bracketed : tuple of str
        Cells that are below zero because they stand in brackets.
    """

    numbers: dict[str, str]
    sign: str
    bracketed: tuple[str, ...]


def number_form(counts: Mapping[str, int]) -> NumberForm | tuple[str, ...] | None:
    """Return how a column's numbers are written.

    Parameters
    ----------
    counts : mapping of str to int
        The column's texts that may be values → cells.

    Returns
    -------
    NumberForm
        Nearly all cells are numbers of one sign, and some are not plain.
    tuple of str
        An example of each sign, if there are several ("12%" and "0.12"): which one is meant, the cells do not tell.
    None
        The column has only plain numbers, or other texts than numbers.

    Examples
    --------
    >>> number_form({"12 %": 3, "7 %": 2, "0": 1}).numbers
    {'12 %': '12', '7 %': '7'}
    >>> number_form({"12%": 3, "0.12": 4}), number_form({"(20,30)": 5, "(30,40)": 4}), number_form({"12": 4})
    (('12%', '0.12'), None, None)
    """
    read = {}
    for cell in counts:
        number = written_number(cell)
        if number is not None:
            read[cell] = number
    changed = {cell: number.text for cell, number in read.items() if number.text != cell.removeprefix("+")}
    odd = sum(count for cell, count in counts.items() if cell not in read and not _PLAIN.fullmatch(cell))
    if not changed or (odd and (len(read) < MIN_NUMBERS or odd > ODD_SHARE * sum(counts.values()))):
        return None
    bracketed = tuple(cell for cell, number in read.items() if number.bracketed)
    if len(bracketed) == len(read):
        return None  # a list, or bounds of an interval: no number beside them says that brackets mean below zero
    examples: dict[str, str] = {}
    for cell, number in read.items():
        if not number.zero:
            examples.setdefault(number.sign, cell)
    if len(examples) > 1:
        return tuple(examples.values())
    sign = next(iter(examples), "")
    if sign:  # 05% is a number; without a sign 05 may be a code
        changed = {cell: _ZEROS.sub("", number) for cell, number in changed.items()}
    return NumberForm(changed, sign, bracketed)
