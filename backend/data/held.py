"""A table's values and the rows of its ids, in as little memory as they need to be exact."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

CODES = 1 << 16  # different texts of a column that are numbered


class HeldColumns(Mapping[str, NDArray[np.generic]]):
    """Columns by name, each given as :class:`backend.data.table.PartyTable` has it, in an array of its own.

    A number is held in 2 or 4 bytes if that holds every number of its column exactly, a code as its place among the column's codes.
    """

    def __init__(self, columns: Mapping[str, NDArray[np.generic]]) -> None:
        self._held = {name: _smallest(column) for name, column in columns.items()}

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        values, codes = self._held[name]
        return _given(values) if codes is None else values[codes]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def take(self, rows: NDArray[np.intp], names: Collection[str] | None = None) -> dict[str, NDArray[np.generic]]:
        """Return these rows, in this order, of some columns, or of all."""
        columns: dict[str, NDArray[np.generic]] = {}
        for name in self._held if names is None else names:
            values, codes = self._held[name]
            if codes is None:
                columns[name] = _given(values[rows])
            else:
                columns[name] = values[codes[rows]]
        return columns


def _smallest(column: NDArray[np.generic]) -> tuple[NDArray[np.generic], NDArray[np.integer] | None]:
    """Values, and of a column of codes which of them each row has."""
    if column.dtype != object:
        return _shortest(column), None
    number: dict[str | None, int] = {}
    codes = np.fromiter((number.setdefault(value, len(number)) for value in column), np.int32, len(column))
    if len(number) > CODES:
        return column, None
    values = np.empty(len(number), dtype=object)
    values[:] = list(number)
    return values, codes.astype(np.min_scalar_type(max(len(number) - 1, 0)))


def _shortest(column: NDArray[np.generic]) -> NDArray[np.generic]:
    for kind in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            short = column.astype(kind)
        if np.array_equal(short.astype(column.dtype), column, equal_nan=True):
            return short
    return column


def _given(values: NDArray[np.generic]) -> NDArray[np.generic]:
    if values.dtype == object:
        return values
    return values.astype(np.float64)


class RowsOf(Mapping[str, int]):
    """Id → row, of a repeated id the first; 12 bytes an id, where a dict takes 80."""

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = ids
        hashes = self._hashes(ids)
        self._order = np.argsort(hashes, kind="stable").astype(np.int32 if len(ids) < 1 << 31 else np.int64)
        self._sorted = hashes[self._order]

    def __reduce__(self) -> tuple[type[RowsOf], tuple[Sequence[str]]]:
        """Build the index again when it is unpickled: another process hashes texts otherwise, and would find no id."""
        return RowsOf, (self._ids,)

    @staticmethod
    def _hashes(ids: Sequence[str]) -> NDArray[np.int64]:
        return np.fromiter(map(hash, ids), np.int64, len(ids))

    def of(self, ids: Sequence[str]) -> NDArray[np.intp]:
        """``(n,)``: the row of each; -1 if there is none."""
        if not len(self._order):
            return np.full(len(ids), -1, dtype=np.intp)
        starts = np.searchsorted(self._sorted, self._hashes(ids))
        rows = self._order[np.minimum(starts, len(self._order) - 1)].astype(np.intp)
        for i, (sample_id, row) in enumerate(zip(ids, rows.tolist(), strict=True)):
            if self._ids[row] != sample_id:  # another one has its hash, or comes behind it
                rows[i] = self._among(sample_id, int(starts[i]))
        return rows

    def _among(self, sample_id: str, at: int) -> int:
        """Return the row of an id among the ids with its hash, from place `at` on; -1 if it is not one of them."""
        hash_value = hash(sample_id)
        while at < len(self._order) and self._sorted[at] == hash_value:
            row = int(self._order[at])
            if self._ids[row] == sample_id:
                return row
            at += 1
        return -1

    def __getitem__(self, sample_id: str) -> int:
        if isinstance(sample_id, str):
            row = self._among(sample_id, int(np.searchsorted(self._sorted, hash(sample_id))))
        else:
            row = -1
        if row < 0:
            raise KeyError(sample_id)
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(self._ids))

    def __len__(self) -> int:
        return len(set(self._ids))
