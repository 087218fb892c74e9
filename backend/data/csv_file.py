"""CSV files as text: encoding, separator, header and cells, and cells as numbers, codes and yes/no.

Knows nothing of parties or people. Names unreadable cells by line, so that the file's owner can correct them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature, Kind
from backend.errors import FederationError

BOOLEANS = {"1": 1.0, "true": 1.0, "yes": 1.0, "1.0": 1.0, "0": 0.0, "false": 0.0, "no": 0.0, "0.0": 0.0}
SEPARATORS = ",;\t"
SHOWN_CELL = 40  # characters of a cell that a problem repeats
SHOWN_EXAMPLES = 3  # cells or lines that one problem names before it only counts


@dataclass(frozen=True, eq=False, slots=True)
class CsvText:
    """A CSV file's cells as they are written, without the white space around them.

    Attributes
    ----------
    name : str
        The file's name as problems show it.
    rows : list of list of str
        ``(n_rows, len(header))``; a row with too few cells is filled up with empty ones, surplus cells are cut.
    lines : list of int
        The line on which each row starts; the header is on line 1.
    ragged : dict of int to int
        Rows whose number of cells differs from the header's: row → cells found.
    """

    name: str
    header: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]
    ragged: dict[int, int]

    def cells(self, column: str) -> list[str]:
        """One column's cells, ``(n_rows,)``; `column` must be in the header."""
        index = self.header.index(column)
        return [row[index].strip() for row in self.rows]

    def located(self, cells: Mapping[int, str]) -> str:
        """A few of some rows' cells with their lines, for a problem's text."""
        return listed([f"{shown(cell)} on line {self.lines[row]}" for row, cell in cells.items()], SHOWN_EXAMPLES)


def shown(text: str) -> str:
    """A cell for a problem's text: quoted, cut to `SHOWN_CELL` characters, control characters escaped."""
    return repr(text if len(text) <= SHOWN_CELL else text[: SHOWN_CELL - 1] + "…")


def listed(items: Sequence[str], max_items: int = 8) -> str:
    """Join items for a sentence; those beyond `max_items` are only counted."""
    rest = len(items) - max_items
    return ", ".join(items[:max_items]) + (f" and {rest} more" if rest > 0 else "")


def read_csv(path: Path) -> CsvText:
    """Read a CSV file; raises `FederationError` where it is absent, unreadable or not a table."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise FederationError(
            f"{path.name}: no such file in {path.parent}; expected a CSV file. Put it there or correct 'file'."
        ) from None
    except OSError as error:
        raise FederationError(
            f"{path.name}: cannot be read ({error.strerror}); expected a readable CSV file. Check its permissions."
        ) from None
    return parse_csv(path.name, data)


def parse_csv(name: str, data: bytes) -> CsvText:
    """Split a CSV file's bytes into header and rows.

    UTF-8 with or without a byte order mark; the separator (comma, semicolon or tab) is the one that splits the header most.

    Raises
    ------
    FederationError
        Not UTF-8, no header, an empty or repeated column name, or a quotation mark that never closes.
    """
    text = _decode(name, data)
    separator = _separator(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    header: tuple[str, ...] = ()
    rows: list[list[str]] = []
    lines: list[int] = []
    ended = 0
    try:
        for row in reader:
            if row:
                if header:
                    rows.append(row)
                    lines.append(ended + 1)
                else:
                    header = tuple(cell.strip() for cell in row)
            ended = reader.line_num
    except csv.Error as error:
        raise FederationError(
            f"{name}, line {ended + 1}: the row that starts here is not CSV ({error}); expected every quotation mark to be closed and "
            "doubled inside a quoted cell. Correct the line."
        ) from None
    _check_header(name, header)
    width = len(header)
    ragged = {i: len(row) for i, row in enumerate(rows) if len(row) != width}
    for i in ragged:
        rows[i] = (rows[i] + [""] * width)[:width]
    return CsvText(name, header, rows, lines, ragged)


def _decode(name: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FederationError(
            f"{name}, line {line}: found a byte that is not UTF-8 (0x{data[error.start]:02x}); expected UTF-8 text. "
            "Save the file as 'CSV UTF-8'."
        ) from None
    if not text.strip():
        raise FederationError(
            f"{name}: the file is empty; expected a header line and at least one row. Export it again."
        )
    return text


def _separator(text: str) -> str:
    """The separator that splits the first line with text into the most cells; a comma where they tie."""
    first = text.lstrip().split("\n", 1)[0]
    return max(SEPARATORS, key=lambda separator: len(next(csv.reader([first], delimiter=separator), [])))


def _check_header(name: str, header: tuple[str, ...]) -> None:
    problems = []
    empty = [str(number) for number, column in enumerate(header, start=1) if not column]
    if empty:
        problems.append(
            f"{name}, header: column {listed(empty)} has no name; expected a name for every column. Name it or delete the column."
        )
    repeated = sorted({column for column in header if column and header.count(column) > 1})
    if repeated:
        problems.append(
            f"{name}, header: found {listed([shown(column) for column in repeated])} more than once, expected every "
            "column name once. Rename or delete the repeated column."
        )
    if problems:
        raise FederationError(problems)


def to_column(cells: Sequence[str], feature: Feature) -> tuple[NDArray[np.generic], dict[int, str]]:
    """Turn a column's cells into values.

    Parameters
    ----------
    cells : sequence of str, ``(n_rows,)``
    feature : Feature
        Its kind says how to read them, its `missing` which texts are no value; an empty cell never is one.

    Returns
    -------
    ndarray, ``(n_rows,)``
        float64 with NaN for missing (numeric; boolean as 0 and 1), or object: str, None for missing (categorical).
    dict of int to str
        Cells that could not be read: row → cell. Their values are missing.
    """
    absent = {"", *feature.missing}
    if feature.kind is Kind.CATEGORICAL:
        column = np.empty(len(cells), dtype=object)
        column[:] = [None if cell in absent else cell for cell in cells]
        return column, {}
    values, marks = _numbers(cells, feature.kind), _numbers(feature.missing, feature.kind)
    unread = {row: cells[row] for row in np.flatnonzero(np.isnan(values)).tolist() if cells[row] not in absent}
    values[np.isin(values, marks) if feature.kind is Kind.NUMERIC else [cell in absent for cell in cells]] = np.nan
    return values, unread


def _numbers(cells: Sequence[str], kind: Kind) -> NDArray[np.float64]:
    """Cells as numbers, NaN where they are none; an infinity is no value of a person."""
    if kind is Kind.BOOLEAN:
        return np.array([BOOLEANS.get(cell.casefold(), np.nan) for cell in cells], dtype=np.float64)
    import pandas as pd  # noqa: PLC0415 - slow to import

    values = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").to_numpy(dtype=np.float64, copy=True)
    values[np.isinf(values)] = np.nan
    return values


def expected_cells(feature: Feature) -> str:
    """The values that `to_column` reads, in words."""
    return "yes or no (1/0, true/false)" if feature.kind is Kind.BOOLEAN else "a finite number with a decimal point"
