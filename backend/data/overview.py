"""How the table of a federation was read: kinds, units, codes, what is missing, and who counts as positive; for the holder of all tables.

Counts cells, so it is for the person who split one table, and nothing of it is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.data.csv_file import BOOLEANS, TableText, to_column
from backend.data.dictionary import Feature, Kind
from backend.data.dictionary_file import read_dictionary
from backend.data.federation import Federation
from backend.data.id_forms import alike_note
from backend.data.missing import looks_missing
from backend.data.whole_codes import without_decimals
from backend.i18n import Text
from backend.remark import Remark

MAX_FEW = 10  # different whole numbers up to which a column of numbers may be one of codes
MIN_SENTINELS = 2  # records with one number from which on it may stand for a missing value
MIN_DATES = 0.9  # share of a column's texts from which on they are dates
MIN_CODE_DIGITS = 5  # digits that all numbers of a column have, from which on they may be codes such as zip codes
MOSTLY = 0.9  # share of a column's records from which on the others are asked about
SHIPPED = tuple(sorted(Path(str(files("assets"))).glob("*/dictionary.csv")))
_SENTINEL = re.compile(
    r"-(9+|1|8+)(\.0*)?|9{2,}(\.0*)?|9[678](\.0*)?"
)  # numbers by which files say that there is no value
_DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2})|(\d{1,2}[- ])?[A-Za-z]{3,9}[- ](\d{4}|\d{2})"
    r"|(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))([ T]\d{1,2}:\d{2}.*)?"
)


@dataclass(frozen=True)
class ColumnReading:
    """One feature as it was read.

    Attributes
    ----------
    described : bool
        Whether the meaning was given, and is not the column's name.
    codes : dict of str to int
        Categorical and boolean: text → records, the commonest first.
    low, high : float
        Numeric: NaN if no cell holds a number.
    missing : dict of str to int
        Text that counts as missing → records; the empty text is the empty cell.
    unclear : dict of str to int
        Text that often means a missing value and is a category here, or a number such as -999 that stands apart from the others →
        records.
    unlike : dict of str to int
        Code that is written unlike most others of its column → records: a number among texts, ``S`` among yes and no.
    constant, empty, dates, few, same_length : bool
        One value only; none at all; texts or numbers that look like dates; so few whole numbers that they may be codes; whole numbers
        that have all the same number of digits, as zip codes have.
    """

    party: str
    name: str
    kind: Kind
    unit: Text
    described: bool
    codes: dict[str, int]
    low: float
    high: float
    missing: dict[str, int]
    unclear: dict[str, int]
    unlike: dict[str, int]
    constant: bool
    empty: bool
    dates: bool
    few: bool
    same_length: bool

    @property
    def asked_about(self) -> bool:
        """Return whether a person has to look at what the column holds."""
        return bool(self.unclear or self.unlike or self.dates or self.few or self.same_length)


@dataclass(frozen=True)
class Overview:
    """A federation's features and its label as they were read.

    Attributes
    ----------
    outcomes : dict of str to int
        The label's text → records, in the order of the classes, the positive one last; empty for a number.
    dictionary : str
        A shipped dictionary that describes most of the columns; empty if none does, or all are described.
    notes : tuple of Remark
        What was read otherwise than it is written, what was left out, and ids that are alike.
    """

    federation: str
    task: str
    label: str
    label_meaning: Text
    positive: str
    outcomes: dict[str, int]
    columns: tuple[ColumnReading, ...]
    dictionary: str
    notes: tuple[Remark, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return how the table was read as a document for a machine; NaN is a number that there is not."""
        return {
            "federation": self.federation,
            "task": self.task,
            "label": {
                "column": self.label,
                "meaning": asdict(self.label_meaning),
                "outcomes": self.outcomes,
                "positive": self.positive,
                "declined": self.positive,
            },
            "columns": [asdict(column) for column in self.columns],
            "notes": [{**note.plain(), "sentence": note.sentence()} for note in self.notes],
            "unclear": [column.name for column in self.columns if column.asked_about],
        }


def overview(federation: Federation, text: TableText, ids: Sequence[str], notes: Sequence[Remark] = ()) -> Overview:
    """Return how the one table was read that a federation is made from.

    Parameters
    ----------
    text : TableText
        The table as it was divided.
    ids : sequence of str, ``(n_rows,)``
    notes : sequence of Remark
        What was read otherwise than it is written, and what was left out.
    """
    columns = tuple(_column(text, party, feature) for party, feature in federation.features())
    label = federation.label
    if label.task != "number":
        counted = Counter(text.cells(label.column))
    else:
        counted = Counter()
    order = label.classes or sorted(counted, key=lambda outcome: (outcome == label.positive, outcome))
    bare = [column.name for column in columns if not column.described]
    return Overview(
        federation=federation.name,
        task=label.task,
        label=label.column,
        label_meaning=label.meaning,
        positive=label.positive,
        outcomes={outcome: counted[outcome] for outcome in order},
        columns=columns,
        dictionary=str(next((file for file in SHIPPED if _describes(file, bare)), "")),
        notes=(*notes, *alike_note(ids)),
    )


def look_like_dates(cells: Iterable[str]) -> bool:
    """Return whether most of the different texts are dates."""
    texts = set(cells)
    return bool(texts) and sum(_DATE.fullmatch(text) is not None for text in texts) >= MIN_DATES * len(texts)


def _column(text: TableText, party: str, feature: Feature) -> ColumnReading:
    cells = text.cells(feature.name)
    values, _ = to_column(cells, feature)
    if feature.kind is Kind.CATEGORICAL:
        absent = np.array([value is None for value in values], dtype=bool)
    else:
        absent = np.isnan(values.astype(np.float64))
    counts = Counter(cell for cell, gone in zip(cells, absent, strict=True) if not gone)
    if feature.kind is Kind.CATEGORICAL:
        codes = without_decimals(values, feature.categories).tolist()
        counts = Counter(code for code in codes if code is not None)
    coded = feature.kind is not Kind.NUMERIC
    if coded:
        numbers = np.empty(0)
    else:
        numbers = np.unique(values.astype(np.float64)[~absent])
    unclear = {cell: count for cell, count in counts.items() if looks_missing(cell) and cell not in feature.categories}
    if feature.kind is Kind.NUMERIC:
        unclear = sentinels(counts)
    return ColumnReading(
        party=party,
        name=feature.name,
        kind=feature.kind,
        unit=feature.unit,
        described=feature.described,
        codes=dict(counts.most_common()) if coded else {},
        low=float(numbers[0]) if len(numbers) else float("nan"),
        high=float(numbers[-1]) if len(numbers) else float("nan"),
        missing=dict(Counter(cell for cell, gone in zip(cells, absent, strict=True) if gone)),
        unclear=unclear,
        unlike=unlike_codes({cell: n for cell, n in counts.items() if cell not in feature.categories}) if coded else {},
        constant=(len(counts) if coded else len(numbers)) == 1,
        empty=not counts,
        dates=look_like_dates(counts),
        few=are_few(numbers),
        same_length=have_same_length(numbers),
    )


def are_few(numbers: NDArray[np.float64]) -> bool:
    """Return whether there are so few different whole numbers that they may be codes; `numbers` without repetition."""
    return 2 < len(numbers) <= MAX_FEW and not np.any(numbers % 1)


def have_same_length(numbers: NDArray[np.float64]) -> bool:
    """Return whether many whole numbers have all the same number of digits; `numbers` in their order."""
    if len(numbers) <= MAX_FEW or numbers[0] < 10 ** (MIN_CODE_DIGITS - 1) or np.any(numbers % 1):
        return False
    return len(str(int(numbers[0]))) == len(str(int(numbers[-1])))


def unlike_codes(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the codes that are written unlike most others of their column, with their counts.

    These are the few numbers among texts, the other texts of a column that holds mostly yes and no, and the rarer of two ways to write
    yes and no.

    Examples
    --------
    >>> unlike_codes({"Y": 737, "0": 729, "N": 580, "T": 53}), unlike_codes({"1": 5, "2": 5, "3+": 5})
    ({'0': 729}, {})
    >>> unlike_codes({"N": 2052, "Y": 41, "S": 3, "A": 1}), unlike_codes({"yes": 8, "no": 7, "1": 2, "0": 3})
    ({'S': 3, 'A': 1}, {'1': 2, '0': 3})
    """
    texts = [cell for cell in counts if not looks_missing(cell)]
    _, no_numbers = to_column(texts, Feature(name="code", meaning="A code"))
    numbers = [cell for row, cell in enumerate(texts) if row not in no_numbers]
    if numbers and 2 * len(numbers) <= len(texts) and len(numbers) < len(texts):
        return {cell: counts[cell] for cell in numbers}
    plain = [cell for cell in texts if cell.casefold() in BOOLEANS]
    if len({BOOLEANS[cell.casefold()] for cell in plain}) < 2:
        return {}
    if sum(counts[cell] for cell in plain) < MOSTLY * sum(counts[cell] for cell in texts):
        return {}
    return {cell: counts[cell] for cell in texts if cell not in plain}


def sentinels(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the cells such as -999 or 9999 that stand apart from a column's other numbers, with their counts.

    Examples
    --------
    >>> sentinels({"-999": 10, "3": 5, "47": 5}), sentinels({"99": 2, "12": 3, "71": 4})
    ({'-999': 10}, {})
    >>> sentinels({"-1": 80, "7": 5, "871": 1}), sentinels({"98": 4, "96": 2, "0": 90, "3": 5})
    ({'-1': 80}, {'98': 4, '96': 2})
    """
    marked = {cell: count for cell, count in counts.items() if _SENTINEL.fullmatch(cell) and count >= MIN_SENTINELS}
    if not marked:
        return {}
    numbers = numbers_of(counts)
    others = numbers[~np.isin(numbers, [float(cell) for cell in marked])]
    if len(others) < 2:
        return {}
    low = float(others.min())
    high = float(others.max())
    apart = {}
    for cell, count in marked.items():
        # A sentinel is the only negative number, or farther from the other numbers than these are from each other.
        distance = max(low - float(cell), float(cell) - high)
        if float(cell) < 0 <= low or distance > high - low:
            apart[cell] = count
    return apart


def numbers_of(cells: Iterable[str]) -> NDArray[np.float64]:
    """Return the different numbers among some cells, in their order, ``(n,)``."""
    column, _ = to_column(list(cells), Feature(name="amount", meaning="An amount"))
    values: NDArray[np.float64] = column.astype(np.float64)
    return np.unique(values[~np.isnan(values)])


def _describes(file: Path, columns: Sequence[str]) -> bool:
    return len(columns) > 2 and 2 * len(set(columns) & read_dictionary(file).keys()) > len(columns)
