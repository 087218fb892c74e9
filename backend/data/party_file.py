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
    FAULTS,
    OF_NAMES,
    TableText,
    examples,
    expected_cells,
    located,
    read_csv_groups,
    repeated_columns,
    shown,
    to_column,
)
from backend.data.dictionary import Feature, Kind
from backend.data.label import Label
from backend.data.missing import is_no_outcome, looks_missing
from backend.data.whole_codes import without_decimals
from backend.errors import FederationError
from backend.remark import Remark

AMOUNT = Feature(name="label", meaning="A label that is a number")


@dataclass(frozen=True, eq=False, slots=True)
class PartyFile:
    """The content of a party's file; complete only if `problems` is empty.

    Attributes
    ----------
    columns : dict of str to ndarray, each ``(n_rows,)``
    labels : ndarray of float64, ``(n_rows,)``
        0/1, the number of the class, or the value; ``(0,)`` without a label.
    problems : tuple of Remark
        Each with file, column, what was found and what was expected.
    """

    ids: tuple[str, ...] = ()
    columns: dict[str, NDArray[np.generic]] = field(default_factory=dict, repr=False)
    labels: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    problems: tuple[Remark, ...] = ()


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
            return PartyFile(problems=error.remarks)


def check_party(
    text: TableText, id_column: str | None, features: Sequence[Feature], label: Label | None = None
) -> PartyFile:
    """See :func:`read_party_file`; of a table that was read."""
    return _checked(iter([text]), id_column, features, label)


def _checked(
    groups: Iterator[TableText], id_column: str | None, features: Sequence[Feature], label: Label | None
) -> PartyFile:
    """One group of rows after the other; no more of a group is kept than its values."""
    first = next(groups)
    text_columns = (id_column, label and label.column)
    by_name = {
        feature.name: feature for feature in features
    }  # one that is named twice is the federation file's problem
    present_features = [feature for name, feature in by_name.items() if name in first.header]
    read = _Read(first.name, first.header, {column: [] for column in first.header if column in text_columns})
    values: dict[str, list[NDArray[np.generic]]] = {feature.name: [] for feature in present_features}
    unread: dict[str, dict[int, str]] = {feature.name: {} for feature in present_features}
    faults: list[Remark] = []
    once: dict[str, str] = {}  # of codes and outcomes, a text for all cells that have it
    for text in chain([first], groups):
        n_before = len(read.lines)
        for feature in present_features:
            cells = text.cells(feature.name)
            if feature.kind is Kind.CATEGORICAL:
                cells = [once.setdefault(cell, cell) for cell in cells]
            column, unread_cells = to_column(cells, feature, text.marks)
            values[feature.name].append(column)
            unread[feature.name] |= {n_before + row: cell for row, cell in unread_cells.items()}
        for name, column_texts in read.texts.items():
            cells = text.cells(name)
            column_texts.extend(cells if name == id_column else [once.setdefault(cell, cell) for cell in cells])
        read.ragged.update({n_before + row: count for row, count in text.ragged.items()})
        read.lines.extend(text.lines)
        faults += _faults(text, id_column, by_name)
    problems = _absent_columns(read, id_column, features, label) + _row_problems(read) + faults
    ids: tuple[str, ...] = ()
    if id_column is None:
        ids = tuple(str(number) for number in range(1, len(read.lines) + 1))
    elif id_column in read.texts:
        ids = tuple(read.texts[id_column] if label and label.column == id_column else read.texts.pop(id_column))
        problems += _id_problems(read, id_column, ids)
    for feature in present_features:
        problems += _cell_problems(read, feature, unread[feature.name])
    columns = {}
    for feature in present_features:
        column = np.concatenate(values.pop(feature.name))
        if feature.kind is Kind.CATEGORICAL:
            column = without_decimals(column, feature.categories)
        columns[feature.name] = column
    labels = np.zeros(0)
    if label is not None and label.column in read.texts:
        labels, more = _labels(read, label)
        problems += more
    return PartyFile(ids, columns, labels, tuple(problems))


def _faults(text: TableText, id_column: str | None, features: Mapping[str, Feature]) -> list[Remark]:
    """Return the cells without a value that are read, and the numbers that may have been several, if they are ids or codes."""
    problems = []
    for row, faults in text.faults.items():
        for fault in faults:
            feature = features.get(fault.column)
            is_name = fault.column == id_column or (feature is not None and feature.kind is Kind.CATEGORICAL)
            if is_name or (feature is not None and fault.kind not in OF_NAMES):
                problems.append(Remark(FAULTS[fault.kind], {"cell": shown(fault.cell)}, text.lines[row], fault.column))
    return problems


# Not the table's text: of a long table only the cells of ids and labels are held, and the lines as packed numbers.
@dataclass(frozen=True, eq=False, slots=True)
class _Read:
    """The kept part of a table's text: the lines of its rows, and the cells of ids and labels.

    Attributes
    ----------
    lines, ragged
        See :class:`backend.data.csv_file.TableText`.
    """

    name: str
    header: tuple[str, ...]
    texts: dict[str, list[str]]
    lines: array[int] = field(default_factory=partial(array, "q"))
    ragged: dict[int, int] = field(default_factory=dict)


def _absent_columns(
    read: _Read, id_column: str | None, features: Sequence[Feature], label: Label | None
) -> list[Remark]:
    roles = []
    if id_column is not None:
        roles.append(("id_column", id_column))
    if label:
        roles.append(("label_column", label.column))
    roles += [("feature_column", feature.name) for feature in features]
    problems = []
    for role, name in roles:
        if name not in read.header:
            values = {"file": read.name, "name": shown(name), "role": Remark(role), "columns": read.header}
            problems.append(Remark("table_lacks_column", values))
    repeated = set(repeated_columns(read.header))
    columns = tuple(shown(name) for _, name in roles if name in repeated)
    if columns:
        problems.append(Remark("column_repeated", {"file": read.name, "columns": columns}))
    return problems


def _row_problems(read: _Read) -> list[Remark]:
    if not read.lines:
        return [Remark("table_without_rows", {"file": read.name})]
    if not read.ragged:
        return []
    rows = []
    for row, n in read.ragged.items():
        rows.append(Remark("cells_on_line", {"n": n, "line": read.lines[row]}))
    values = {"file": read.name, "rows": examples(rows, len(rows)), "expected": len(read.header)}
    return [Remark("rows_ragged", values)]


def _id_problems(read: _Read, column: str, ids: Sequence[str]) -> list[Remark]:
    problems = []
    empty = [Remark("on_line", {"line": read.lines[row]}) for row, value in enumerate(ids) if not value]
    where = {"file": read.name, "name": shown(column)}
    if empty:
        problems.append(Remark("rows_without_id", {**where, "lines": examples(empty, len(empty))}))
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        repeats = []
        for line, value in zip(read.lines, ids, strict=True):
            if value and first.setdefault(value, line) != line:
                repeats.append(Remark("id_on_lines", {"id": shown(value), "first": first[value], "line": line}))
        if repeats:
            problems.append(Remark("ids_repeated", {**where, "ids": examples(repeats, len(repeats))}))
    return problems


def _cell_problems(read: _Read, feature: Feature, unread: dict[int, str]) -> list[Remark]:
    if not unread:
        return []
    values: dict[str, object] = {
        "file": read.name,
        "feature": shown(feature.name),
        "kind": feature.kind.value,
        "cells": located(unread, read.lines),
        "expected": expected_cells(feature),
    }
    marks = sorted({cell for cell in unread.values() if looks_missing(cell)})
    if not marks:
        return [Remark("cells_unreadable", values)]
    values["texts"] = tuple(shown(mark) for mark in marks)
    values["missing"] = json.dumps(marks, ensure_ascii=False)
    values["option"] = shlex.quote(f"{feature.name}={marks[0]}")
    return [Remark("cells_look_missing", values)]


def _labels(read: _Read, label: Label) -> tuple[NDArray[np.float64], list[Remark]]:
    """Return the label's cells as numbers, ``(n_rows,)``, and what is wrong with them."""
    where = {"file": read.name, "label": shown(label.column)}
    cells = read.texts[label.column]
    declared = {label.positive, *label.classes} - {""}  # never missing, even "none"
    known_cells = {row: cell for row, cell in enumerate(cells) if cell in declared or not is_no_outcome(cell)}
    empty = [Remark("on_line", {"line": line}) for row, line in enumerate(read.lines) if row not in known_cells]
    problems = []
    if empty:
        problems.append(Remark("rows_without_label", {**where, "lines": examples(empty, len(empty))}))
    if label.task == "number":
        labels, more = _amounts(read, where, cells, known_cells)
    elif label.task == "classes":
        labels, more = _classes(read, where, cells, known_cells, label.classes)
    else:
        labels, more = _two_outcomes(where, cells, known_cells, label.positive)
    return labels, problems + (more if known_cells else [])


def known_outcomes(
    text: TableText, label: Label, guest_cells: Collection[str]
) -> tuple[NDArray[np.float64], list[Remark]]:
    """Outcomes as far as they are known, ``(n_rows,)`` with NaN for the others, and what is wrong with cells.

    Parameters
    ----------
    guest_cells : collection of str
        Cells of the Guest's own label column; of two outcomes no other text is one.
    """
    where = {"file": text.name, "label": shown(label.column)}
    declared = {label.positive, *label.classes} - {""}
    cells = []
    for cell in text.cells(label.column):
        is_known = cell in declared or not is_no_outcome(cell)
        cells.append(cell if is_known else "")
    if label.task == "number":
        column, wrong = to_column(cells, AMOUNT, text.marks)
        labels = column.astype(np.float64)
        expected = expected_cells(AMOUNT)
    else:
        names = label.classes or sorted({cell for cell in guest_cells if not is_no_outcome(cell)} | {label.positive})
        if label.classes:
            number = {name: float(i) for i, name in enumerate(names)}
        else:
            number = {name: float(name == label.positive) for name in names}
        labels = np.array([number.get(cell, np.nan) for cell in cells], dtype=np.float64)
        wrong = {row: cell for row, cell in enumerate(cells) if cell and cell not in number}
        expected = Remark("expected_known_outcome", {"names": tuple(shown(name) for name in names)})
    if not wrong:
        return labels, []
    return labels, [Remark("outcomes_unreadable", {**where, "cells": text.located(wrong), "expected": expected})]


def _two_outcomes(
    where: Mapping[str, str], cells: Sequence[str], known_cells: Mapping[int, str], positive: str
) -> tuple[NDArray[np.float64], list[Remark]]:
    values = sorted(set(known_cells.values()))
    texts = tuple(shown(value) for value in values)
    problems = []
    if len(values) != 2:
        problems.append(Remark("label_not_two_outcomes", {**where, "n": len(values), "values": texts}))
    if positive not in values:
        problems.append(Remark("positive_does_not_occur", {**where, "positive": shown(positive), "values": texts}))
    return np.array([cell == positive for cell in cells], dtype=np.float64), problems


def _classes(
    read: _Read, where: Mapping[str, str], cells: Sequence[str], known_cells: Mapping[int, str], classes: Sequence[str]
) -> tuple[NDArray[np.float64], list[Remark]]:
    number = {name: float(i) for i, name in enumerate(classes)}
    problems = []
    unknown = {row: cell for row, cell in known_cells.items() if cell not in number}
    if unknown:
        texts = tuple(shown(name) for name in classes)
        problems.append(Remark("class_unknown", {**where, "cells": located(unknown, read.lines), "classes": texts}))
    occurring = set(known_cells.values())
    absent = tuple(shown(name) for name in classes if name not in occurring)
    if absent:
        problems.append(Remark("class_does_not_occur", {**where, "classes": absent}))
    return np.array([number.get(cell, np.nan) for cell in cells], dtype=np.float64), problems


def _amounts(
    read: _Read, where: Mapping[str, str], cells: Sequence[str], known_cells: Mapping[int, str]
) -> tuple[NDArray[np.float64], list[Remark]]:
    column, unread = to_column(cells, AMOUNT)
    labels = column.astype(np.float64)
    if unread:
        values = {**where, "cells": located(unread, read.lines), "expected": expected_cells(AMOUNT)}
        return labels, [Remark("label_no_number", values)]
    if len(np.unique(labels[list(known_cells)])) == 1:
        return labels, [Remark("label_always_same", {**where, "cell": shown(next(iter(known_cells.values())))})]
    return labels, []
