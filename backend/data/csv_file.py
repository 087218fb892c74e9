"""A table as text: header and cells, read from CSV, and cells as numbers, codes and yes/no.

Knows nothing of parties or people. Names unreadable cells by line, so that the file's owner can correct them.
"""

from __future__ import annotations

import csv
import io
import stat
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from backend.data.cells import has_invisible, visible
from backend.data.dates import COMPACT_DATE, days_in_a_sheet, first_day
from backend.data.decimal_mark import POINT, Marks, may_be_thousand, plain
from backend.data.dictionary import Feature, Kind
from backend.data.number_forms import PERCENT, is_of_unit, written_number
from backend.errors import AmbiguousFile, FederationError
from backend.jobs import work
from backend.remark import Remark

BOOLEANS = dict.fromkeys(("1", "true", "yes", "y", "1.0", "1,0", "是"), 1.0) | dict.fromkeys(
    ("0", "false", "no", "n", "0.0", "0,0", "否"), 0.0
)
UTF_8 = "utf-8-sig"  # with or without a byte order mark
GROUP = 8192  # rows that are read together of a long table; a whole number of lattice plaintexts
GROUP_CHARACTERS = 1 << 25  # of a group's cells, and a row's more
CHECKED = 4096  # rows read between two looks whether the work was stopped
SEPARATORS = ",;\t|"
PEEKED = 20  # rows that tell where a table's header is
MIN_WIDTH = 3  # cells of a row from which on a short first row is a title and no header
MAX_NAME = 500  # characters of a column's name
PACKED = 6  # a full sheet of samples is 5 MB as CSV and 25 MB as the XML of a workbook
MAX_ROW = 1_000_000  # characters of one row
SHOWN_CELL = 40  # characters of a cell that a problem repeats
# kind of a workbook's fault → code of its remark
FAULTS = {
    "formula": "formula_without_result",
    "error": "cell_shows_error",
    "rounded": "number_rounded",
    "float": "number_beyond_float",
}
OF_NAMES = ("rounded", "float")  # kinds of faults that matter if the cell is an id or a code, and not an amount
EXACT_FLOAT = 2**53  # from here on neighbouring whole numbers are one float of 64 bits
SHOWN_EXAMPLES = 3  # cells or lines that one problem names before it only counts


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How large a table's file may be; checked before and while it is read.

    Attributes
    ----------
    max_bytes : int
        Of the file; what is packed (XLSX, Parquet) may be :data:`PACKED` times as large once it is unpacked.
    max_cells : int
        Rows times columns of the header, so that short rows of a wide table cost no more than full ones.
    """

    max_bytes: int
    max_rows: int
    max_columns: int
    max_cells: int


TABLE = FileLimits(max_bytes=250_000_000, max_rows=1 << 20, max_columns=5_000, max_cells=20_000_000)
"""Of a party's table; it stays in memory."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A cell of a workbook without a value that could be read.

    Attributes
    ----------
    kind : {"formula", "error", "rounded", "float"}
        A formula without a stored result, an error such as ``#DIV/0!``, a number of more digits than a workbook
        keeps, or one that a floating-point column cannot tell from its neighbours.
    """

    column: str
    kind: str
    cell: str


@dataclass(frozen=True, eq=False, slots=True)
class TableText:
    """A table's cells as they are written, without the white space around them.

    Attributes
    ----------
    name : str
        The file's name as problems show it.
    rows : list of list of str
        One list a row, of at most ``len(header)`` cells: surplus cells are cut.
    lines : list of int
        The line on which each row starts (XLSX: the row's number), where the header is 1; of Parquet, which has no header line, the
        number of the record.
    ragged : dict of int to int
        Rows whose number of cells differs from the header's: row → cells found.
    faults : dict of int to tuple of Fault
        Rows with cells that have no value to be read.
    marks : Marks
        How numbers are written.
    separator : str
        Of a CSV file; empty if cells stand apart by themselves.
    notes : tuple of Remark
        Notes on cells that were read otherwise than they are written.
    """

    name: str
    header: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]
    ragged: dict[int, int]
    faults: dict[int, tuple[Fault, ...]] = field(default_factory=dict)
    marks: Marks = POINT
    separator: str = ""
    notes: tuple[Remark, ...] = ()

    def cells(self, column: str) -> list[str]:
        """One column's cells, ``(n_rows,)``, empty if a row is too short; `column` must be in the header."""
        index = self.header.index(column)
        return [row[index] if index < len(row) else "" for row in self.rows]

    def located(self, cells: Mapping[int, str]) -> tuple[Remark, ...] | Remark:
        """Return a few of some rows' cells with their lines, as values of a problem."""
        return located(cells, self.lines)


def located(cells: Mapping[int, str], lines: Sequence[int]) -> tuple[Remark, ...] | Remark:
    """Return a few of some rows' cells with the lines of these rows, as values of a problem."""
    first = islice(cells.items(), SHOWN_EXAMPLES)
    return examples(
        [Remark("cell_on_line", {"cell": shown(cell), "line": lines[row]}) for row, cell in first], len(cells)
    )


def examples(items: Sequence[Remark], total: int) -> tuple[Remark, ...] | Remark:
    """Return the first :data:`SHOWN_EXAMPLES` of `total` items, and how many more there are."""
    n_more = total - SHOWN_EXAMPLES
    if n_more <= 0:
        return tuple(items)
    return Remark("and_more", {"items": tuple(items[:SHOWN_EXAMPLES]), "rest": n_more})


def shown(text: str) -> str:
    """Return a cell for a problem's text: quoted, cut to `SHOWN_CELL` characters, control characters escaped."""
    return repr(text if len(text) <= SHOWN_CELL else text[: SHOWN_CELL - 1] + "…")


def listed(items: Sequence[str], max_items: int = 8) -> str:
    """Join items for a sentence; those beyond `max_items` are only counted."""
    n_more = len(items) - max_items
    return ", ".join(items[:max_items]) + (f" and {n_more} more" if n_more > 0 else "")


def read_csv(path: Path) -> TableText:
    """Read a CSV file; raises `FederationError` if it is absent, unreadable, too large or not a table."""
    return next(read_csv_groups(path, TABLE, TABLE.max_rows + 1, TABLE.max_bytes + 1))


def read_csv_groups(
    path: Path, limits: FileLimits = TABLE, max_rows: int = GROUP, max_characters: int = GROUP_CHARACTERS
) -> Generator[TableText, None, None]:
    """Read a CSV file in groups of consecutive rows; see :func:`csv_groups`."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would keep us waiting
            raise FederationError("no_regular_file", file=path.name)
        if status.st_size > limits.max_bytes:
            raise too_many_bytes(path.name, limits)
        with path.open("rb") as file:
            yield from csv_groups(path.name, file, UTF_8, limits, max_rows, max_characters)
    except FileNotFoundError:
        raise FederationError("no_such_table", file=path.name, folder=str(path.absolute().parent)) from None
    except UnicodeDecodeError:
        raise not_text(path.name, path.read_bytes(), UTF_8) from None
    except (OSError, ValueError) as error:  # ValueError: a name with a zero character
        reason = getattr(error, "strerror", None) or error
        raise FederationError("table_unreadable", file=path.name, reason=str(reason)) from None


def parse_csv(
    name: str, data: bytes, limits: FileLimits = TABLE, encoding: str = UTF_8, header_line: int = 1
) -> TableText:
    """Split a CSV file's bytes into header and rows; lines above `header_line` are not read.

    UTF-8 with or without a byte order mark, or the `encoding` that was named; the separator (comma, semicolon, tab or vertical bar) is the
    one that splits the header most.

    Raises
    ------
    FederationError
        Not UTF-8, larger than `limits`, no header, an empty or repeated column name, or a quotation mark that never closes.
    """
    if len(data) > limits.max_bytes:
        raise too_many_bytes(name, limits)
    try:
        file = io.BytesIO(data)
        return next(csv_groups(name, file, encoding, limits, limits.max_rows + 1, len(data) + 1, header_line))
    except UnicodeDecodeError:
        raise not_text(name, data, encoding) from None


def csv_groups(
    name: str,
    file: BinaryIO,
    encoding: str,
    limits: FileLimits,
    max_rows: int,
    max_characters: int,
    header_line: int = 1,
) -> Generator[TableText, None, None]:
    """A CSV file in groups of consecutive rows, at least one, of at most `max_rows`; a group ends early behind `max_characters`.

    Raises
    ------
    FederationError
        See :func:`parse_csv`; raised when the group is read.
    UnicodeDecodeError
        The bytes are no text in `encoding`.
    """
    separator = _separator(file.read(MAX_ROW), encoding, header_line)
    file.seek(0)
    header: tuple[str, ...] = ()
    group = TableText(name, (), [], [], {}, separator=separator)
    in_all = limits.max_rows
    n_before = 0
    characters = 0
    cleaned: list[int] = []
    with io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        for line, row in _parsed(name, text, separator, cleaned):
            if not header:
                if row != [""] and line >= header_line:
                    header = tuple(row)
                    check_header(name, header, limits)
                    in_all = min(in_all, limits.max_cells // len(header))
                    group = replace(group, header=header)
                continue
            if len(group.rows) % CHECKED == 0:
                work.check()
            if n_before + len(group.rows) == in_all:
                if in_all < limits.max_rows:
                    raise FederationError("too_many_rows_of_columns", file=name, columns=len(header), limit=in_all)
                raise FederationError("too_many_rows", file=name, limit=in_all)
            if len(group.rows) == max_rows or characters > max_characters:
                yield replace(group, notes=invisible_note(len(cleaned)))
                cleaned.clear()
                n_before = n_before + len(group.rows)
                characters = 0
                group = replace(group, rows=[], lines=[], ragged={})
            if len(row) != len(header):
                group.ragged[len(group.rows)] = len(row)
                del row[len(header) :]
            group.rows.append(row)
            group.lines.append(line)
            characters += sum(map(len, row))
    if not header:
        raise FederationError("file_empty", file=name)
    yield replace(group, notes=invisible_note(len(cleaned)))


def invisible_note(lines: int) -> tuple[Remark, ...]:
    """Return a note on the number of lines whose invisible characters were dropped; no note for 0."""
    if lines:
        return (Remark("invisible_characters_dropped", {"n": lines}),)
    return ()


def _parsed(name: str, text: TextIO, separator: str, cleaned: list[int]) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of every row that is not blank; nothing is held but the row that is being read.

    Lines that had invisible characters are added to `cleaned`.
    """
    n_characters = 0  # characters of the row that is being read

    def bounded() -> Iterator[str]:
        nonlocal n_characters
        while line := text.readline(MAX_ROW + 1):
            n_characters += len(line)
            if n_characters > MAX_ROW:
                raise FederationError("row_too_long", file=name, line=ended + 1, limit=MAX_ROW)
            if has_invisible(line):
                cleaned.append(ended + 1)
                line = visible(line)
            yield line

    ended = 0
    reader = csv.reader(bounded(), delimiter=separator, strict=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if cells:
                yield ended + 1, cells
            ended = reader.line_num
            n_characters = 0
    except csv.Error as error:
        raise FederationError("line_not_csv", file=name, line=ended + 1, reason=str(error)) from None


def too_many_bytes(name: str, limits: FileLimits) -> FederationError:
    """Return the refusal of a file that has too many bytes."""
    return FederationError("file_too_large", file=name, megabytes=limits.max_bytes / 1e6, bytes=limits.max_bytes)


def not_text(name: str, data: bytes, encoding: str) -> FederationError:
    """Return the refusal of bytes that are no text in `encoding`, with the first of them."""
    shown_as = "UTF-8" if encoding == UTF_8 else encoding
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        byte = data[error.start]
        line = data.count(b"\n", 0, error.start) + 1
    return FederationError("byte_not_text", file=name, line=line, byte=f"{byte:02x}", encoding=shown_as)


def header_choices(rows: Sequence[tuple[int, Sequence[str]]]) -> dict[str, tuple[str, ...]]:
    """Return the rows that may be the header if a title stands above it: line → the names that columns would have.

    Nothing if the first row may be the header itself.

    Parameters
    ----------
    rows : sequence of (int, sequence of str)
        The first rows that have a cell: line and cells.

    Examples
    --------
    >>> header_choices([(1, ["Customers", "", ""]), (3, ["id", "age", "late"]), (4, ["a", "31", "no"])])
    {'3': ('id · age · late',), '4': ('a · 31 · no',)}
    >>> header_choices([(1, ["id", "age", "late"]), (2, ["a", "31", "no"])])
    {}
    """
    filled = [sum(1 for cell in cells if cell) for _, cells in rows]
    widest = max(filled, default=0)
    if widest < MIN_WIDTH or 2 * filled[0] > widest:
        return {}
    choices: dict[str, tuple[str, ...]] = {}
    for (line, cells), count in zip(rows, filled, strict=True):
        if 2 * count > widest and len(choices) < 2:
            choices[str(line)] = (" · ".join(cell[:SHOWN_CELL] for cell in cells if cell),)
    return choices


def title_above_header(name: str, choices: dict[str, tuple[str, ...]]) -> AmbiguousFile:
    """Return the question in which row a table's header is; see :func:`header_choices`."""
    return AmbiguousFile("title_above_header", "header", choices, file=name, row=int(next(iter(choices))))


def first_csv_rows(data: bytes, encoding: str = UTF_8) -> list[tuple[int, list[str]]]:
    """Return the first rows of a CSV file that have a cell, with their lines, by the separator that splits one of them most."""
    head = visible(data[:MAX_ROW].decode(encoding, errors="replace"))
    lines = [(number, line) for number, line in enumerate(head.splitlines(), start=1) if line.strip()][:PEEKED]
    widest_rows: list[tuple[int, list[str]]] = []
    max_cells = 0
    for separator in SEPARATORS:
        rows = []
        for number, line in lines:
            rows.append((number, [cell.strip() for cell in _split_line(line, separator)]))
        cells = max((len(row) for _, row in rows), default=0)
        if cells > max_cells:
            widest_rows = rows
            max_cells = cells
    return widest_rows


def _split_line(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a cell longer than csv reads
        return []


def _separator(data: bytes, encoding: str, header_line: int = 1) -> str:
    """Return the separator that splits the first line with text from `header_line` on into the most cells; a comma if they tie."""
    lines = io.StringIO(visible(data[:MAX_ROW].decode(encoding, errors="replace")), newline="")
    for _ in range(header_line - 1):
        lines.readline()
    first = io.StringIO(lines.read().lstrip(), newline="").readline()

    return max(SEPARATORS, key=lambda separator: len(_split_line(first, separator)))


def check_header(name: str, header: tuple[str, ...], limits: FileLimits) -> None:
    """Raise FederationError if a table has too many columns, or most of them have no name."""
    if len(header) > limits.max_columns or max(map(len, header)) > MAX_NAME:
        raise FederationError(
            "too_many_columns", file=name, found=len(header), limit=limits.max_columns, letters=MAX_NAME
        )
    unnamed = tuple(number for number, column in enumerate(header, start=1) if not column)
    if 2 * len(unnamed) > len(header):
        raise FederationError("columns_without_name", file=name, n=len(unnamed), columns=len(header))


def repeated_columns(header: Sequence[str]) -> tuple[str, ...]:
    """Return the names that several columns have: none of these columns can be used."""
    return tuple(column for column, times in Counter(header).items() if column and times > 1)


def repeated_problems(text: TableText, used_columns: Collection[str]) -> list[Remark]:
    """Return a problem for the used columns whose name another column has, too."""
    repeated = tuple(shown(column) for column in repeated_columns(text.header) if column in used_columns)
    if repeated:
        return [Remark("column_repeated", {"file": text.name, "columns": repeated})]
    return []


def to_column(
    cells: Sequence[str], feature: Feature, marks: Marks = POINT
) -> tuple[NDArray[np.generic], dict[int, str]]:
    """Turn a column's cells into values.

    Parameters
    ----------
    cells : sequence of str, ``(n_rows,)``
    feature : Feature
        Its kind says how to read them, its `missing` which texts are no value; an empty cell never is one.
    marks : Marks
        How numbers are written.

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
    values = _numbers(cells, feature.kind, marks)
    unread = {}
    for row in np.flatnonzero(np.isnan(values)).tolist():
        if cells[row] not in absent:
            unread[row] = cells[row]
    if not feature.missing:
        return values, unread
    if feature.kind is Kind.NUMERIC:
        values[np.isin(values, _numbers(feature.missing, feature.kind, marks))] = np.nan
    else:
        values[[cell in absent for cell in cells]] = np.nan
    return values, unread


def with_forms(
    cells: Sequence[str], feature: Feature, marks: Marks
) -> tuple[NDArray[np.generic], dict[int, str], dict[int, str]]:
    """Turn cells into values as :func:`to_column` does, and read numbers with a sign of the feature's unit, spaces or brackets.

    An amount of money that may be a thousand by other marks than the file's, such as ``1.200 €``, is not read.

    Returns
    -------
    ndarray, ``(n_rows,)``
    dict of int to str
        Cells that could not be read: row → cell.
    dict of int to str
        Cells that were read in another form: row → cell.
    """
    column, unread = to_column(cells, feature, marks)
    if feature.kind is Kind.NUMERIC:
        first = first_day(feature.unit)
    else:
        first = None
    if first is not None:
        return _with_days(cells, column, unread, first)
    if feature.kind is not Kind.NUMERIC or not unread:
        return column, unread, {}
    numbers = {}
    for row, cell in unread.items():
        number = written_number(cell)
        if number is None or not is_of_unit(number.sign, feature.unit.en, feature.unit.zh):
            continue
        if number.sign in ("", PERCENT) or not may_be_thousand(number.text, marks):
            numbers[row] = number.text
    values, wrong = to_column(list(numbers.values()), feature, marks)
    still_unread = dict(unread)
    read = {}
    for place, row in enumerate(numbers):
        if place not in wrong:
            column[row] = values[place]
            read[row] = still_unread.pop(row)
    return column, still_unread, read


def _with_days(
    cells: Sequence[str], column: NDArray[np.generic], unread: Mapping[int, str], first: date
) -> tuple[NDArray[np.generic], dict[int, str], dict[int, str]]:
    """Read the dates of a column that counts days since `first`; 20240331 is a date, too, and no number of days."""
    dates = {}
    for row, cell in enumerate(cells):
        if row in unread or COMPACT_DATE.fullmatch(cell):
            dates[row] = cell
    days = days_in_a_sheet(dates, first)
    still_unread = {row: cell for row, cell in dates.items() if row not in days}
    read = {}
    for row, cell in dates.items():
        column[row] = days.get(row, np.nan)
        if row in days:
            read[row] = cell
    return column, still_unread, read


def _numbers(cells: Sequence[str], kind: Kind, marks: Marks) -> NDArray[np.float64]:
    """Return cells as numbers, NaN if they are not; an infinity is not a person's value."""
    if kind is Kind.BOOLEAN:
        return np.array([BOOLEANS.get(cell.casefold(), np.nan) for cell in cells], dtype=np.float64)
    import pandas as pd  # noqa: PLC0415 - slow to import

    values = pd.to_numeric(pd.Series(list[object](plain(cells, marks)), dtype=object), errors="coerce").to_numpy(
        dtype=np.float64, copy=True
    )
    values[np.isinf(values)] = np.nan
    return values


def expected_cells(feature: Feature) -> Remark:
    """Return what `to_column` reads."""
    return Remark("expected_yes_or_no" if feature.kind is Kind.BOOLEAN else "expected_number")
