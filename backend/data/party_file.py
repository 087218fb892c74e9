"""One party's CSV file: ids, feature columns and, at the Guest, the label; collects every problem in it."""

from __future__ import annotations

import json
import shlex
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.data.csv_file import (
    SHOWN_EXAMPLES,
    TableText,
    expected_cells,
    listed,
    located,
    read_csv_groups,
    shown,
    to_column,
)
from backend.data.dictionary import Feature, Kind
from backend.data.label import Label
from backend.data.missing import is_no_outcome, looks_missing
from backend.errors import FederationError

AMOUNT = Feature(name="label", meaning="A label that is a number")


@dataclass(frozen=True, eq=False, slots=True)
class PartyFile:
    """The content of a party's file; complete only where `problems` is empty.

    Attributes
    ----------
    columns : dict of str to ndarray, each ``(n_rows,)``
    labels : ndarray of float64, ``(n_rows,)``
        0/1, the number of the class, or the value; ``(0,)`` without a label.
    problems : tuple of str
        One sentence each: file, column, found, expected, what to do.
    """

    ids: tuple[str, ...] = ()
    columns: dict[str, NDArray[np.generic]] = field(default_factory=dict, repr=False)
    labels: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    problems: tuple[str, ...] = ()


def read_party_file(
    path: Path, id_column: str | None, features: Sequence[Feature], label: Label | None = None
) -> PartyFile:
    """Read the id column, the features' columns and the label from a CSV file.

    Parameters
    ----------
    id_column : str or None
        None numbers the rows from 1.
    """
    with closing(read_csv_groups(path)) as groups:
        try:
            return _checked(groups, id_column, features, label)
        except FederationError as error:
            return PartyFile(problems=error.problems)


def check_party(
    text: TableText, id_column: str | None, features: Sequence[Feature], label: Label | None = None
) -> PartyFile:
    """As :func:`read_party_file`, of a table that was read."""
    return _checked(iter([text]), id_column, features, label)


def _checked(
    groups: Iterator[TableText], id_column: str | None, features: Sequence[Feature], label: Label | None
) -> PartyFile:
    """One group of rows after the other; no more of a group is kept than its values."""
    first = next(groups)
    named = (id_column, label and label.column)
    known = [feature for feature in features if feature.name in first.header]
    read = _Read(first.name, first.header, {column: [] for column in first.header if column in named})
    values: dict[str, list[NDArray[np.generic]]] = {feature.name: [] for feature in known}
    unread: dict[str, dict[int, str]] = {feature.name: {} for feature in known}
    once: dict[str, str] = {}  # of codes and outcomes, a text for all cells that have it
    for text in chain([first], groups):
        before = len(read.lines)
        for feature in known:
            cells = text.cells(feature.name)
            if feature.kind is Kind.CATEGORICAL:
                cells = [once.setdefault(cell, cell) for cell in cells]
            column, found = to_column(cells, feature)
            values[feature.name].append(column)
            unread[feature.name] |= {before + row: cell for row, cell in found.items()}
        for name, kept in read.texts.items():
            cells = text.cells(name)
            kept.extend(cells if name == id_column else [once.setdefault(cell, cell) for cell in cells])
        read.ragged.update({before + row: count for row, count in text.ragged.items()})
        read.lines.extend(text.lines)
    problems = _absent_columns(read, id_column, features, label) + _row_problems(read)
    ids: tuple[str, ...] = ()
    if id_column is None:
        ids = tuple(str(number) for number in range(1, len(read.lines) + 1))
    elif id_column in read.texts:
        ids = tuple(read.texts[id_column] if label and label.column == id_column else read.texts.pop(id_column))
        problems += _id_problems(read, id_column, ids)
    for feature in known:
        problems += _cell_problems(read, feature, unread[feature.name])
    columns = {feature.name: np.concatenate(values.pop(feature.name)) for feature in known}
    labels = np.zeros(0)
    if label is not None and label.column in read.texts:
        labels, more = _labels(read, label)
        problems += more
    return PartyFile(ids, columns, labels, tuple(problems))


@dataclass(frozen=True, eq=False, slots=True)
class _Read:
    """What is kept of a table's text: where its rows are, and the cells of ids and labels.

    Attributes
    ----------
    lines, ragged
        As :class:`backend.data.csv_file.TableText` has them.
    """

    name: str
    header: tuple[str, ...]
    texts: dict[str, list[str]]
    lines: array[int] = field(default_factory=partial(array, "q"))
    ragged: dict[int, int] = field(default_factory=dict)


def _examples(items: Sequence[str]) -> str:
    return listed(items, SHOWN_EXAMPLES)


def _absent_columns(read: _Read, id_column: str | None, features: Sequence[Feature], label: Label | None) -> list[str]:
    wanted = [("id column", id_column)] if id_column is not None else []
    wanted += [("label column", label.column)] if label else []
    wanted += [("feature", feature.name) for feature in features]
    return [
        f"{read.name}: there is no column {shown(column)} ({what}); the file has {listed(read.header)}. "
        "Correct the name in the federation file or add the column."
        for what, column in wanted
        if column not in read.header
    ]


def _row_problems(read: _Read) -> list[str]:
    if not read.lines:
        return [f"{read.name}: found a header and no rows, expected at least one row. Export the file again."]
    if not read.ragged:
        return []
    ragged = [f"{cells} on line {read.lines[row]}" for row, cells in read.ragged.items()]
    return [
        f"{read.name}: found rows with a wrong number of cells ({_examples(ragged)}), expected {len(read.header)} as "
        "in the header. Put quotation marks around cells that hold the separator."
    ]


def _id_problems(read: _Read, column: str, ids: Sequence[str]) -> list[str]:
    problems = []
    empty = [f"line {read.lines[row]}" for row, value in enumerate(ids) if not value]
    if empty:
        problems.append(
            f"{read.name}, column {shown(column)}: found no id on {_examples(empty)}, expected an id in every row. "
            "Fill it in or delete the row."
        )
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        repeats = []
        for line, value in zip(read.lines, ids, strict=True):
            if value and first.setdefault(value, line) != line:
                repeats.append(f"{shown(value)} on lines {first[value]} and {line}")
        if repeats:
            problems.append(
                f"{read.name}, column {shown(column)}: found the same id twice ({_examples(repeats)}), expected "
                "every id once. Keep one row per person."
            )
    return problems


def _cell_problems(read: _Read, feature: Feature, unread: dict[int, str]) -> list[str]:
    if not unread:
        return []
    marks = sorted({cell for cell in unread.values() if looks_missing(cell)})
    listed_marks = json.dumps(marks, ensure_ascii=False)
    advice = (
        f"If {listed([shown(mark) for mark in marks])} means that there is no value, say so: missing = {listed_marks} in "
        f"the federation file, or --missing {shlex.quote(f'{feature.name}={marks[0]}')} for init; "
        'a column of codes has kind = "categorical", and then it is one of them.'
        if marks
        else 'Correct the file, or set kind = "categorical" for a column of codes.'
    )
    return [
        f"{read.name}, column {shown(feature.name)} ({feature.kind}): found {located(unread, read.lines)}, expected "
        f"{expected_cells(feature)} or an empty cell. {advice}"
    ]


def _labels(read: _Read, label: Label) -> tuple[NDArray[np.float64], list[str]]:
    """The label's cells as numbers, ``(n_rows,)``, and what is wrong with them."""
    where = f"{read.name}, column {shown(label.column)} (label)"
    cells = read.texts[label.column]
    declared = {label.positive, *label.classes} - {""}  # never missing, even "none"
    held = {row: cell for row, cell in enumerate(cells) if cell in declared or not is_no_outcome(cell)}
    empty = [f"line {line}" for row, line in enumerate(read.lines) if row not in held]
    problems = []
    if empty:
        problems.append(
            f"{where}: found no value on {_examples(empty)}, expected a label in every row. Fill it in or delete the row."
        )
    if label.task == "number":
        labels, more = _amounts(read, where, cells, held)
    elif label.task == "classes":
        labels, more = _classes(read, where, cells, held, label.classes)
    else:
        labels, more = _two_outcomes(where, cells, held, label.positive)
    return labels, problems + (more if held else [])


def known_outcomes(text: TableText, label: Label, own: Collection[str]) -> tuple[NDArray[np.float64], list[str]]:
    """Outcomes as far as they are known, ``(n_rows,)`` with NaN for the others, and what is wrong with cells.

    Parameters
    ----------
    own : collection of str
        Cells of the Guest's own label column; of two outcomes no other text is one.
    """
    where = f"{text.name}, column {shown(label.column)} (label)"
    declared = {label.positive, *label.classes} - {""}
    cells = [cell if cell in declared or not is_no_outcome(cell) else "" for cell in text.cells(label.column)]
    if label.task == "number":
        column, wrong = to_column(cells, AMOUNT, text.marks)
        labels, expected = column.astype(np.float64), expected_cells(AMOUNT)
    else:
        names = label.classes or sorted({cell for cell in own if not is_no_outcome(cell)} | {label.positive})
        number = {name: float(i if label.classes else name == label.positive) for i, name in enumerate(names)}
        labels = np.array([number.get(cell, np.nan) for cell in cells], dtype=np.float64)
        wrong = {row: cell for row, cell in enumerate(cells) if cell and cell not in number}
        expected = f"one of {listed([shown(name) for name in names])}, or nothing where the outcome is not known"
    return labels, [f"{where}: found {text.located(wrong)}, expected {expected}. Correct the cell."] if wrong else []


def _two_outcomes(
    where: str, cells: Sequence[str], held: Mapping[int, str], positive: str
) -> tuple[NDArray[np.float64], list[str]]:
    values = sorted(set(held.values()))
    found = listed([shown(value) for value in values], 5)
    problems = []
    if len(values) != 2:
        problems.append(
            f"{where}: found {len(values)} different value{'s' if len(values) > 1 else ''} ({found}), expected "
            "exactly 2. Choose a column with two outcomes, merge the others, or choose another task: classes or number."
        )
    if positive not in values:
        problems.append(
            f"{where}: the positive value {shown(positive)} does not occur, found {found}. "
            "Set 'positive' to the value that means the bad outcome, written as in the file."
        )
    return np.array([cell == positive for cell in cells], dtype=np.float64), problems


def _classes(
    read: _Read, where: str, cells: Sequence[str], held: Mapping[int, str], classes: Sequence[str]
) -> tuple[NDArray[np.float64], list[str]]:
    number = {name: float(i) for i, name in enumerate(classes)}
    problems = []
    unknown = {row: cell for row, cell in held.items() if cell not in number}
    if unknown:
        problems.append(
            f"{where}: found {located(unknown, read.lines)}, expected one of the classes "
            f"{listed([shown(name) for name in classes])}. Correct the cell, or add the class to 'classes'."
        )
    absent = [shown(name) for name in classes if name not in set(held.values())]
    if absent:
        problems.append(
            f"{where}: found no row of {listed(absent)}, expected every class at least once. "
            "Delete the class from 'classes', or write it as in the file."
        )
    return np.array([number.get(cell, np.nan) for cell in cells], dtype=np.float64), problems


def _amounts(
    read: _Read, where: str, cells: Sequence[str], held: Mapping[int, str]
) -> tuple[NDArray[np.float64], list[str]]:
    column, unread = to_column(cells, AMOUNT)
    labels = column.astype(np.float64)
    if unread:
        return labels, [
            f"{where}: found {located(unread, read.lines)}, expected {expected_cells(AMOUNT)}. Correct the cell, or choose "
            "another task: binary or classes."
        ]
    if len(np.unique(labels[list(held)])) == 1:
        return labels, [
            f"{where}: found the same number in every row ({shown(next(iter(held.values())))}), expected at least 2 "
            "different ones. Choose a column whose values differ."
        ]
    return labels, []
