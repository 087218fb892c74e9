"""One party's CSV file: ids, feature columns and, at the Guest, the label; with every problem found on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.data.csv_file import (
    SHOWN_EXAMPLES,
    CsvText,
    expected_cells,
    is_missing,
    listed,
    read_csv,
    shown,
    to_column,
)
from backend.data.dictionary import Feature
from backend.errors import FederationError


@dataclass(frozen=True, eq=False, slots=True)
class PartyFile:
    """What was read of a party's file; complete only where `problems` is empty.

    Attributes
    ----------
    ids : tuple of str
    columns : dict of str to ndarray, each ``(n_rows,)``
    labels : ndarray of int8, ``(n_rows,)`` 0/1; ``(0,)`` where no label was asked for
    problems : tuple of str
        One sentence each: file, column, found, expected, what to do.
    """

    ids: tuple[str, ...] = ()
    columns: dict[str, NDArray[np.generic]] = field(default_factory=dict, repr=False)
    labels: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8), repr=False)
    problems: tuple[str, ...] = ()


def read_party_file(
    path: Path, id_column: str, features: Sequence[Feature], label: tuple[str, str] | None = None
) -> PartyFile:
    """Read the id column, the features' columns and the label from a CSV file.

    Parameters
    ----------
    path : Path
    id_column : str
    features : sequence of Feature
    label : (column, cell text that means 1), optional
    """
    try:
        text = read_csv(path)
    except FederationError as error:
        return PartyFile(problems=error.problems)
    problems = _absent_columns(text, id_column, features, label)
    problems += _row_problems(text)
    ids: tuple[str, ...] = ()
    if id_column in text.header:
        ids = tuple(text.cells(id_column))
        problems += _id_problems(text, id_column, ids)
    columns: dict[str, NDArray[np.generic]] = {}
    for feature in features:
        if feature.name in text.header:
            columns[feature.name], unread = to_column(text.cells(feature.name), feature)
            problems += _cell_problems(text, feature, unread)
    labels = np.zeros(0, dtype=np.int8)
    if label is not None and label[0] in text.header:
        cells = text.cells(label[0])
        problems += _label_problems(text, cells, *label)
        labels = np.fromiter((cell == label[1] for cell in cells), dtype=np.int8, count=len(cells))
    return PartyFile(ids, columns, labels, tuple(problems))


def _examples(places: Sequence[str]) -> str:
    """Name a few places and count the rest."""
    return listed(places, SHOWN_EXAMPLES)


def _absent_columns(
    text: CsvText, id_column: str, features: Sequence[Feature], label: tuple[str, str] | None
) -> list[str]:
    wanted = [("id column", id_column)]
    wanted += [("label column", label[0])] if label else []
    wanted += [("feature", feature.name) for feature in features]
    return [
        f"{text.name}: there is no column {shown(column)} ({what}); the file has {listed(text.header)}. "
        "Correct the name in the federation file or add the column."
        for what, column in wanted
        if column not in text.header
    ]


def _row_problems(text: CsvText) -> list[str]:
    if not text.rows:
        return [f"{text.name}: found a header and no rows, expected at least one row. Export the file again."]
    if not text.ragged:
        return []
    places = [f"{cells} on line {text.lines[row]}" for row, cells in text.ragged.items()]
    return [
        f"{text.name}: found rows with a wrong number of cells ({_examples(places)}), expected {len(text.header)} as "
        "in the "
        "header. Put quotation marks around cells that hold the separator."
    ]


def _id_problems(text: CsvText, column: str, ids: Sequence[str]) -> list[str]:
    problems = []
    empty = [f"line {text.lines[row]}" for row, value in enumerate(ids) if not value]
    if empty:
        problems.append(
            f"{text.name}, column {shown(column)}: found no id on {_examples(empty)}, expected an id in every row. "
            "Fill it in or delete the row."
        )
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        repeats = []
        for line, value in zip(text.lines, ids, strict=True):
            if value and first.setdefault(value, line) != line:
                repeats.append(f"{shown(value)} on lines {first[value]} and {line}")
        if repeats:
            problems.append(
                f"{text.name}, column {shown(column)}: found the same id twice ({_examples(repeats)}), expected "
                "every id "
                "once. Keep one row per person."
            )
    return problems


def _cell_problems(text: CsvText, feature: Feature, unread: dict[int, str]) -> list[str]:
    if not unread:
        return []
    places = [f"{shown(cell)} on line {text.lines[row]}" for row, cell in unread.items()]
    return [
        f"{text.name}, column {shown(feature.name)} ({feature.kind}): found {_examples(places)}, expected "
        f'{expected_cells(feature)} or an empty cell. Correct the file, or set kind = "categorical" for a column of '
        "codes."
    ]


def _label_problems(text: CsvText, cells: Sequence[str], column: str, positive: str) -> list[str]:
    where = f"{text.name}, column {shown(column)} (label)"
    problems = []
    known = {cell for cell in set(cells) if cell == positive or not is_missing(cell)}
    values = sorted(known)
    missing = [f"line {line}" for line, cell in zip(text.lines, cells, strict=True) if cell not in known]
    if missing:
        problems.append(
            f"{where}: found no value on {_examples(missing)}, expected a label in every row. Fill it in or delete "
            "the row."
        )
    found = listed([shown(value) for value in values], 5)
    if values and len(values) != 2:
        problems.append(
            f"{where}: found {len(values)} different value{'s' if len(values) > 1 else ''} ({found}), expected "
            "exactly 2. "
            "Choose a column with two outcomes or merge the others."
        )
    if values and positive not in values:
        problems.append(
            f"{where}: the positive value {shown(positive)} does not occur, found {found}. "
            "Set 'positive' to the value that means the bad outcome, written as in the file."
        )
    return problems
