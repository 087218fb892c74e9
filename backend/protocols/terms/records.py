"""The rows and columns that a Host's gate opens for one message, and how a rule says which. A handler has nothing else of a table.

Only the gate makes :class:`Records`: it alone has the Host's table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from backend.data.table import PartyTable
from backend.trees.ensemble import Columns

Flags = NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class Rows:
    """Which rows and columns of the Host's table a message needs.

    Attributes
    ----------
    ids : tuple of str, optional
        People by id, ``(n,)``; of some there may be no record.
    rows : ndarray of int, optional
        Row numbers, ``(n,)``. If neither ids nor rows are given: every row.
    columns : collection of str, optional
        Names of features; None = all of the Host's.
    charged : bool
        Whether these are the people that the message is charged for: of those over a limit nothing is opened.
    """

    ids: tuple[str, ...] | None = None
    rows: NDArray[np.intp] | None = None
    columns: Collection[str] | None = None
    charged: bool = False


@dataclass(frozen=True, repr=False)
class Records:
    """Rows and columns that were opened.

    Attributes
    ----------
    ids : tuple of str
        ``(n,)``.
    has_record : ndarray of bool
        ``(n,)``: whether there is a record of each person; the values of people without one have no meaning.
    columns : mapping of str to ndarray
        Feature → ``(n,)`` values.
    """

    ids: tuple[str, ...]
    has_record: Flags
    columns: Columns


Opened = Mapping[str, Records]
"""Name that a rule gave to rows → the records."""


@dataclass(frozen=True, repr=False)
class Roster:
    """Who has a record at a Host: ids and row numbers, no value. A rule may look at it."""

    _table: PartyTable = field(repr=False)

    def __len__(self) -> int:
        return len(self._table.ids)

    def held(self, ids: Sequence[str]) -> Flags:
        """Return whether there is a record of each person, ``(n,)``."""
        has_record: Flags = self._table.row_of.of(ids) >= 0
        return has_record

    def ids(self, rows: NDArray[np.intp] | None = None) -> tuple[str, ...]:
        """Return the ids of some rows, or of all."""
        if rows is None:
            return self._table.ids
        return tuple(self._table.ids[row] for row in rows.tolist())

    def versions(self, ids: Sequence[str], columns: Collection[str]) -> dict[str, str]:
        """Return id → SHA-256 of the person's values of some columns, of those who have a record."""
        rows = self._table.row_of.of(ids)
        digests = self._table.digests(rows, columns)
        return {person: digest for person, row, digest in zip(ids, rows, digests, strict=True) if row >= 0}

    def digest(self, rows: NDArray[np.intp], columns: Collection[str]) -> str:
        """Return SHA-256 of some values, in hexadecimal: whether they are those of before, and nothing else of them."""
        digest = sha256()
        for name in columns:
            values = self._table.columns[name][rows]
            if values.dtype == object:
                content = repr(values.tolist()).encode()
            else:
                content = values.astype("<f8").tobytes()
            digest.update(repr((name, len(content))).encode() + content)
        return digest.hexdigest()


def open_rows(table: PartyTable, rows_asked: Rows, spent: Flags | None = None) -> Records:
    """Return the rows and columns that were asked for, and no others.

    Parameters
    ----------
    spent : ndarray of bool, optional
        ``(n,)``: people over a limit; they count as people without a record.
    """
    if rows_asked.ids is not None:
        rows = table.row_of.of(rows_asked.ids)
        has_record = rows >= 0
        if rows_asked.charged and spent is not None and len(spent) == len(has_record):
            has_record = has_record & ~spent
        return Records(
            rows_asked.ids, has_record, _scattered(table.columns_of(rows[has_record], rows_asked.columns), has_record)
        )
    if rows_asked.rows is not None:
        ids = tuple(table.ids[row] for row in rows_asked.rows.tolist())
        has_record = np.ones(len(ids), dtype=bool)
        return Records(ids, has_record, table.columns_of(rows_asked.rows, rows_asked.columns))
    if rows_asked.columns is None:
        columns = table.columns
    else:
        columns = {name: table.columns[name] for name in rows_asked.columns}
    return Records(table.ids, np.ones(len(table.ids), dtype=bool), columns)


def _scattered(columns: dict[str, NDArray[np.generic]], has_record: Flags) -> Columns:
    """Return columns with a missing value for people without a record, ``(n,)`` each."""
    if has_record.all():
        return columns
    all_columns: dict[str, NDArray[np.generic]] = {}
    for name, column in columns.items():
        values = np.full(len(has_record), None if column.dtype == object else np.nan, dtype=column.dtype)
        values[has_record] = column
        all_columns[name] = values
    return all_columns
