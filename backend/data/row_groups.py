"""A table of any length in groups of rows: a CSV or Parquet file, or a table of a database. Read twice, never held whole.

Facts about the whole file are learnt in a first reading: how its numbers are written, and which ids it has twice. A group that is
not the same when it is read again is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.data.csv_file import (
    EXACT_FLOAT,
    GROUP,
    GROUP_CHARACTERS,
    TABLE,
    UTF_8,
    Fault,
    FileLimits,
    TableText,
    check_header,
    csv_groups,
    shown,
)
from backend.data.decimal_mark import MarkEvidence, Marks, chosen
from backend.data.federation import Federation
from backend.data.table import (
    MAX_COLUMNS,
    PartyTable,
    SampleSheet,
    check_columns,
    named_alike,
    number_columns,
    sheet_of,
)
from backend.data.table_file import (
    DECIMALS,
    ENCODINGS,
    JUDGED_LETTERS,
    PARQUET,
    Reading,
    codec_of,
    opened,
    row_of_cell,
    unclear_decimals,
)
from backend.errors import FederationError, SampleError
from backend.jobs import work

MAX_ROWS = 10_000_000  # 60 bytes a row are held: a fingerprint of its id, and its line
LONG_TABLE = FileLimits(max_bytes=1 << 42, max_rows=MAX_ROWS, max_columns=MAX_COLUMNS, max_cells=MAX_ROWS * MAX_COLUMNS)
"""Of a table that is read in groups."""


class TableSource(Protocol):
    """A table that can be read again and again."""

    @property
    def name(self) -> str:
        """Return what problems call it."""
        ...

    def groups(self) -> Generator[TableText, None, None]:
        """Its rows in groups, the same whenever it is read; raises FederationError if it is no table."""
        ...


@dataclass(frozen=True)
class LongFile:
    """A CSV or Parquet file.

    Attributes
    ----------
    encoding : str
        One of :data:`backend.data.table_file.ENCODINGS`, or empty: UTF-8.
    header_line : int
        Of a CSV file; lines above it are not read.
    """

    path: Path
    encoding: str = ""
    header_line: int = 1

    @property
    def name(self) -> str:
        """Return the file's own."""
        return self.path.name

    def groups(self) -> Generator[TableText, None, None]:
        """See :class:`TableSource`."""
        with opened(self.path) as file:
            start = file.read(JUDGED_LETTERS)
            file.seek(0)
            if start.startswith(PARQUET):
                from backend.data.parquet_file import parquet_groups  # noqa: PLC0415 - slow to import

                yield from parquet_groups(self.name, file, LONG_TABLE, GROUP, GROUP_CHARACTERS)
                return
            try:
                if self.encoding:
                    encoding = codec_of(self.encoding, start)
                else:
                    encoding = UTF_8
                yield from csv_groups(self.name, file, encoding, LONG_TABLE, GROUP, GROUP_CHARACTERS, self.header_line)
            except UnicodeDecodeError as error:
                raise FederationError(
                    "encoding_not_named", file=self.name, encoding=error.encoding, encodings=tuple(ENCODINGS)
                ) from None


@dataclass(frozen=True, repr=False)
class DatabaseTable:
    """A table or view of a database, in the order of `key`.

    Attributes
    ----------
    url : str
        SQLAlchemy's; its password is shown nowhere.
    table : str
        Its name, with its schema and a point before it if it has one.
    key : str
        Column of the ids.
    columns : tuple of str
        Other columns that are read; empty = all.
    """

    url: str
    table: str
    key: str
    columns: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the table's own."""
        return self.table

    def groups(self) -> Generator[TableText, None, None]:
        """See :class:`TableSource`."""
        from sqlalchemy import MetaData, Table, create_engine, select  # noqa: PLC0415 - slow to import
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 (as above)

        from backend.data.xlsx_file import as_text  # noqa: PLC0415 (as above)

        schema, _, name = self.table.rpartition(".")
        try:
            engine = create_engine(self.url)
        except (SQLAlchemyError, ImportError) as error:
            raise self._unusable(error) from None
        try:
            with engine.connect() as connection:
                table = Table(name, MetaData(), schema=schema or None, autoload_with=connection)
                read = [column for column in table.columns if self._reads(column.name.strip())]
                header = tuple(column.name.strip() for column in read)
                check_header(self.name, header, LONG_TABLE)
                keys = [column for column in read if column.name.strip().casefold() == self.key.casefold()]
                if len(keys) != 1:
                    raise FederationError("database_without_ids", table=self.name, column=shown(self.key))
                # the order of an id that is there twice
                others = [column for column in read if column is not keys[0]]
                result = connection.execution_options(yield_per=GROUP).execute(select(*read).order_by(keys[0], *others))
                n_before = 0
                for part in result.partitions():
                    rows = [[as_text(cell) for cell in row] for row in part]
                    lines = list(range(n_before + 1, n_before + len(rows) + 1))
                    yield TableText(self.name, header, rows, lines, {}, _beyond_float(header, part))
                    n_before += len(rows)
                    if n_before > MAX_ROWS:
                        raise FederationError("too_many_rows", file=self.name, limit=MAX_ROWS)
                if not n_before:
                    yield TableText(self.name, header, [], [], {})
        except SQLAlchemyError as error:
            raise self._unusable(error) from None
        finally:
            engine.dispose()

    def _reads(self, column: str) -> bool:
        return not self.columns or column in self.columns or column.casefold() == self.key.casefold()

    def _unusable(self, error: Exception) -> FederationError:
        """Without the error's own words, but for a driver's name: they may hold the password, or values."""
        if isinstance(error, ModuleNotFoundError):
            return FederationError("database_driver_missing", table=self.name, driver=error.name)
        return FederationError("database_unreadable", table=self.name, reason=type(error).__name__)


def read_database(table: DatabaseTable, limits: FileLimits = TABLE) -> tuple[TableText, str]:
    """Return the whole of a table as it is at this moment, and SHA-256 of what was read, in hexadecimal.

    Raises
    ------
    FederationError
        It cannot be read, or is larger than `limits`.
    """
    rows = list[list[str]]()
    version = sha256()
    faults: dict[int, tuple[Fault, ...]] = {}
    with closing(table.groups()) as groups:
        for part in groups:
            if not rows:
                header = part.header
                version.update(json.dumps(header).encode())
            faults.update({len(rows) + row: row_faults for row, row_faults in part.faults.items()})
            rows += part.rows
            version.update(json.dumps(part.rows).encode())
            if len(rows) > limits.max_rows:
                raise FederationError("too_many_rows", file=table.name, limit=limits.max_rows)
    return TableText(table.name, header, rows, list(range(1, len(rows) + 1)), {}, faults), version.hexdigest()


def _beyond_float(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[int, tuple[Fault, ...]]:
    """Return the floating-point cells that may have been several whole numbers."""
    faults = {}
    for place, row in enumerate(rows):
        odd = []
        for title, cell in zip(header, row, strict=True):
            if isinstance(cell, float) and abs(cell) >= EXACT_FLOAT:
                odd.append(Fault(title, "float", str(cell)))
        if odd:
            faults[place] = tuple(odd)
    return faults


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """Facts about a whole table.

    Attributes
    ----------
    marks : Marks
        How its numbers are written.
    digests : tuple of str
        SHA-256 of every group, in hexadecimal.
    repeats : ndarray of int64, ``(n, 2)``
        Rows whose id is in an earlier row, ascending, and the line of the first of them.
    """

    rows: int
    marks: Marks
    digests: tuple[str, ...]
    repeats: NDArray[np.int64]

    @property
    def digest(self) -> str:
        """SHA-256 of all that is in the table, in hexadecimal."""
        return sha256("".join(self.digests).encode()).hexdigest()

    def repeated(self, first: int, count: int) -> dict[int, int]:
        """Return the repeats among `count` rows from `first` on: row of these → line of the first with this id."""
        start, end = np.searchsorted(self.repeats[:, 0], [first, first + count])
        return {row - first: line for row, line in self.repeats[start:end].tolist()}


def survey(federation: Federation, source: TableSource, how: Reading) -> Survey:
    """Read a table for the first time.

    Raises
    ------
    AmbiguousFile
        The numbers can be read in several ways, and `how` does not say in which.
    FederationError, SampleError
        It is no table, too long, or has not the Guest's columns.
    """
    evidence = MarkEvidence()
    places = dict[str, int]()
    separator = ""
    digests: list[str] = []
    prints = list[NDArray[np.uint64]]()
    lines = list[NDArray[np.int64]]()
    with closing(source.groups()) as groups:
        for raw in groups:
            work.check()
            text = named_alike(raw, federation)
            check_columns(text, federation.guest)
            digests.append(_digest(text))
            separator = text.separator
            for column in number_columns(federation, text.header):
                evidence.add(dict.fromkeys(text.cells(column)))
                for cell in (*evidence.proof.values(), *evidence.unproved.values()):
                    if cell not in places:
                        places[cell] = row_of_cell(text, cell)
            prints.append(_fingerprints(text.cells(federation.guest.id)))
            lines.append(np.array(text.lines, dtype=np.int64))
    if how.decimal:
        marks: Marks | tuple[str, ...] = chosen(DECIMALS[how.decimal])
    else:
        marks = evidence.verdict(semicolons=separator == ";")
    if not isinstance(marks, Marks):
        raise unclear_decimals(source.name, {cell: places[cell] for cell in marks})
    return Survey(sum(map(len, lines)), marks, tuple(digests), _repeats(np.concatenate(prints), np.concatenate(lines)))


def sheets(
    federation: Federation, source: TableSource, surveyed: Survey, records: Callable[[], PartyTable], first: int = 0
) -> Generator[SampleSheet, None, None]:
    """The groups from the `first` on as sheets of samples; see :func:`backend.data.table.sheet_of`.

    Raises
    ------
    SampleError
        The table is not what it was when `surveyed` was learnt.
    """
    row = number = 0
    with closing(source.groups()) as groups:
        for raw in groups:
            count = len(raw.rows)
            if number >= len(surveyed.digests):
                raise _changed(source)
            if number >= first:
                text = named_alike(raw, federation)
                if _digest(text) != surveyed.digests[number]:
                    raise _changed(source)
                repeated = surveyed.repeated(row, count)
                yield sheet_of(federation, replace(text, marks=surveyed.marks), repeated, records=records)
            row = row + count
            number = number + 1
    if number < len(surveyed.digests):
        raise _changed(source)


def _changed(source: TableSource) -> SampleError:
    return SampleError("table_changed", file=source.name)


def _digest(text: TableText) -> str:
    content = [text.header, text.rows, sorted(text.ragged.items()), text.lines[:1]]
    return sha256(json.dumps(content).encode()).hexdigest()


def _fingerprints(ids: list[str]) -> NDArray[np.uint64]:
    """``(n, 2)``: 128 bits of each id's BLAKE2b; that two different ids have the same is less likely than 2^-80."""
    joined = b"".join(blake2b(sample_id.encode("utf-8", "surrogatepass"), digest_size=16).digest() for sample_id in ids)
    return np.frombuffer(joined, dtype=np.uint64).reshape(-1, 2)


def _repeats(prints: NDArray[np.uint64], lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """See :attr:`Survey.repeats`."""
    order = np.lexsort((prints[:, 1], prints[:, 0]))  # stable: of equal ones the first row comes first
    ordered = prints[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    of_first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    again = np.flatnonzero(~begins)
    pairs = np.stack([order[again], lines[order[of_first[again]]]], axis=1).astype(np.int64)
    return np.asarray(pairs[np.argsort(pairs[:, 0])])
