"""A party's table in memory, the Guest's labels, and sheets of samples to be scored.

A table's `repr` shows its party and shape, never a value.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.data.cells import plain_cell
from backend.data.csv_file import (
    FAULTS,
    OF_NAMES,
    FileLimits,
    TableText,
    read_csv,
    read_csv_groups,
    repeated_problems,
    shown,
    to_column,
    with_forms,
)
from backend.data.dates import first_day
from backend.data.decimal_mark import Marks, like_a_number, plain
from backend.data.dictionary import Feature, Kind
from backend.data.federation import Federation, Party, capped
from backend.data.held import HeldColumns, RowsOf
from backend.data.id_forms import KnownIds
from backend.data.number_forms import is_of_unit, written_number
from backend.data.party_file import known_outcomes, read_party_file
from backend.data.table_file import AS_IT_IS, Reading, read_table_file, with_marks
from backend.errors import AmbiguousFile, FederationError, NotAvailable, SampleError
from backend.i18n import joined
from backend.remark import Remark

MAX_COLUMNS = 200
MAX_CELL = 500  # characters
SAMPLES = FileLimits(max_bytes=5_000_000, max_rows=5_000, max_columns=MAX_COLUMNS, max_cells=5_000 * MAX_COLUMNS)
"""Of a sheet of samples."""
WEIGHT_RANGE = (
    1 << 20
)  # a weight is at least 2**10 of the 2**30 units that the largest has, so within a thousandth of what it was
WEIGHT = Feature(name="weight", meaning="weight")
MAX_WEIGHT = 1_000_000_000  # an amount of money is possible; squares of sums stay far below what a float64 holds


@dataclass(frozen=True, eq=False, repr=False)
class PartyTable:
    """One party's values for each id.

    Attributes
    ----------
    ids : tuple of str, ``(n_rows,)``
    columns : mapping of str to ndarray, each ``(n_rows,)``
        float64 with NaN for missing (numeric; boolean as 0 and 1), or object: str, None for missing (categorical).
    """

    party: str
    ids: tuple[str, ...]
    columns: Mapping[str, NDArray[np.generic]]

    def __repr__(self) -> str:
        return f"PartyTable({self.party!r}, {len(self.ids)} rows × {len(self.columns)} columns)"

    @cached_property
    def row_of(self) -> RowsOf:
        """Id → row; of a repeated id (only a sample sheet can have one) the first."""
        return RowsOf(self.ids)

    @cached_property
    def known_ids(self) -> KnownIds:
        """Return the ids, to be found by another writing, too."""
        return KnownIds(self.ids, self.row_of)

    def take(self, rows: NDArray[np.intp]) -> PartyTable:
        """Return the table with these rows, in this order."""
        ids = tuple(self.ids[row] for row in rows)
        columns = self.columns
        if isinstance(columns, HeldColumns):
            selected = columns.take(rows)
        else:
            selected = {name: columns[name][rows] for name in columns}
        return PartyTable(self.party, ids, selected)

    def columns_of(
        self, rows: NDArray[np.intp], names: Collection[str] | None = None
    ) -> dict[str, NDArray[np.generic]]:
        """Return these rows, in this order, of some columns, or of all."""
        columns = self.columns
        if isinstance(columns, HeldColumns):
            return columns.take(rows, names)
        return {name: columns[name][rows] for name in (columns if names is None else names)}

    def digests(self, rows: NDArray[np.intp], names: Collection[str]) -> list[str]:
        """Return SHA-256 of each row's values of some columns, ``(n,)``, in hexadecimal; the columns' names are part of it."""
        ordered = sorted(names)
        columns = self.columns_of(rows, ordered)
        numeric = [columns[name] for name in ordered if columns[name].dtype != object]
        texts = [columns[name].tolist() for name in ordered if columns[name].dtype == object]
        numbers = np.column_stack([np.zeros((len(rows), 0)), *numeric]).astype("<f8")
        begins = sha256(repr(ordered).encode())
        digests = []
        for place in range(len(rows)):
            digest = begins.copy()
            digest.update(numbers[place].tobytes())
            codes = [column[place] for column in texts]
            digest.update(repr(codes).encode())
            digests.append(digest.hexdigest())
        return digests


@dataclass(frozen=True, eq=False)
class SampleSheet:
    """Samples to be scored, row by row.

    Attributes
    ----------
    ids : tuple of str, ``(n_rows,)``
        A row without an id has an empty one and a problem.
    guest : PartyTable, ``n_rows`` rows
    hosts : dict of str to PartyTable, ``n_rows`` rows each
        The Hosts whose columns the sheet holds, in place of these Hosts' own records.
    problems : dict of int to tuple of Remark
        Row → why it cannot be scored. Such a row stays in the sheet; unreadable values are missing.
    notes : tuple of Remark
        Notes on what was ignored or filled in.
    marks : dict of int to tuple of Remark
        Row that can be scored → what in it was not understood.
    """

    ids: tuple[str, ...] = field(repr=False)
    guest: PartyTable
    hosts: dict[str, PartyTable]
    problems: dict[int, tuple[Remark, ...]] = field(repr=False)
    notes: tuple[Remark, ...]
    marks: dict[int, tuple[Remark, ...]] = field(default_factory=dict, repr=False)

    @property
    def usable(self) -> int:
        """Return how many rows can be scored."""
        return len(self.ids) - len(self.problems)

    def take(self, rows: Sequence[int]) -> SampleSheet:
        """Return the sheet with these rows alone, in this order."""
        row_index = np.array(rows, dtype=np.intp)
        guest = self.guest.take(row_index)
        hosts = {name: table.take(row_index) for name, table in self.hosts.items()}
        problems = {i: self.problems[row] for i, row in enumerate(rows) if row in self.problems}
        marks = {i: self.marks[row] for i, row in enumerate(rows) if row in self.marks}
        return SampleSheet(guest.ids, guest, hosts, problems, self.notes, marks)

    def problem(self, row: int, language: str = "en") -> str:
        """Return why a row cannot be scored, as a text; empty if it can."""
        return joined(*(remark.sentence(language) for remark in self.problems.get(row, ())))


def read_table(federation: Federation, party: str) -> PartyTable:
    """Read a party's features (never the label).

    Raises
    ------
    FederationError
        With every problem of the file.
    NotAvailable
        It is at another company.
    """
    holder = federation.party(party)
    if holder not in federation.here:
        raise NotAvailable(party)
    read = read_party_file(federation.folder / holder.file, holder.id, holder.features)
    if read.problems:
        raise FederationError(problems=capped(read.problems))
    return PartyTable(party, read.ids, HeldColumns(read.columns))


def records_version(content: str, features: Sequence[Feature]) -> str:
    """Version of a party's records, a hash: of the hash of its table's `content`, and of how its cells are read."""
    read = sorted([f.name, f.kind, *f.missing] for f in features)
    return sha256(json.dumps([content, read]).encode()).hexdigest()


class OwnRecords:
    """A party's table, read at its first use: people with their own columns are scored without it."""

    def __init__(self, federation: Federation, party: str) -> None:
        self._federation = federation
        self._party = party
        self._reading = threading.Lock()
        self._table: PartyTable | None = None

    def __call__(self) -> PartyTable:
        """Return the table; raises as :func:`read_table`."""
        with self._reading:
            if self._table is None:
                self._table = read_table(self._federation, self._party)
            return self._table


def read_labels(federation: Federation) -> NDArray[np.float64]:
    """Read the Guest's labels.

    Returns
    -------
    ndarray of float64, ``(n_guest_rows,)``
        0/1 (binary), number of the class (classes) or value (number, finite, in the label's unit), aligned with
        ``read_table(federation, guest).ids``.

    Raises
    ------
    FederationError
        With every problem of the file: a missing label, an unknown class, no number, no two different labels …
    """
    guest = federation.guest
    read = read_party_file(federation.folder / guest.file, guest.id, (), federation.label)
    if read.problems:
        raise FederationError(problems=capped(read.problems))
    return read.labels


def read_times(federation: Federation) -> NDArray[np.str_] | None:
    """When each of the Guest's records is from; None if the federation has no time column.

    Returns
    -------
    ndarray of str, ``(n_guest_rows,)``
        Days, months or years in ISO form, all of one kind, so that they sort as time does.

    Raises
    ------
    FederationError
        The column is missing, or a cell is not a day, month or year, or of another kind than the first one.
    """
    if not federation.time:
        return None
    text = read_csv(federation.folder / federation.guest.file)
    where = {"file": text.name, "time": shown(federation.time)}
    if federation.time not in text.header:
        raise FederationError("no_time_column", **where)
    cells = text.cells(federation.time)
    wrong = []
    for line, cell in zip(text.lines, cells, strict=True):
        if not _is_time(cell, len(cells[0])):
            wrong.append(line)
    if wrong:
        raise FederationError("no_time_in_cell", **where, line=wrong[0])
    return np.array(cells, dtype=np.str_)


def weight_columns(federation: Federation, exclude: Collection[str] = ()) -> tuple[str, ...]:
    """Return the columns of the Guest's file that may hold sample weights: nothing else yet, or a number that is left out of training."""
    guest = federation.guest
    with closing(read_csv_groups(federation.folder / guest.file)) as groups:
        header = next(groups).header
    used_columns = {guest.id, federation.label.column, federation.time}
    used_columns |= {
        feature.name for feature in guest.features if feature.kind is not Kind.NUMERIC or feature.name not in exclude
    }
    return tuple(column for column in header if column not in used_columns)


def read_weights(federation: Federation, column: str, exclude: Collection[str] = ()) -> NDArray[np.float64]:
    """Read how much each of the Guest's records counts.

    Parameters
    ----------
    exclude : collection of str
        Features that are left out of training.

    Returns
    -------
    ndarray of float64, ``(n_guest_rows,)``
        Above 0, none less than the largest divided by :data:`WEIGHT_RANGE`; aligned with ``read_table(federation, guest).ids``.

    Raises
    ------
    FederationError
        The column is missing or something else already, or with every row whose weight cannot be used.
    """
    guest = federation.guest
    text = read_csv(federation.folder / guest.file)
    columns = weight_columns(federation, exclude)
    if column not in columns:
        if column in text.header:
            code = "weights_have_other_role"
        else:
            code = "no_weight_column"
        raise FederationError(code, file=text.name, name=shown(column), columns=tuple(map(shown, columns)))
    cells = text.cells(column)
    read, unread = to_column(cells, WEIGHT)
    weights = read.astype(np.float64)
    possible = weights[weights <= MAX_WEIGHT]
    min_weight = float(possible.max(initial=0.0)) / WEIGHT_RANGE
    problems = []
    for row, weight in enumerate(weights.tolist()):
        if row in unread or not min_weight <= weight <= MAX_WEIGHT or weight <= 0:
            problems.append(_weight_problem(cells[row], weight, text.lines[row], column, min_weight))
    if problems:
        raise FederationError(problems=capped(problems))
    return weights


def _weight_problem(cell: str, weight: float, line: int, column: str, min_weight: float) -> Remark:
    """Return why a record cannot have the weight in its cell, which was read as `weight`."""
    if not cell:
        return Remark("weight_missing", {}, line, column)
    if np.isnan(weight):
        return Remark("weight_not_a_number", {"cell": shown(cell)}, line, column)
    if weight <= 0:
        return Remark("weight_not_positive", {"cell": shown(cell)}, line, column)
    if weight > MAX_WEIGHT:
        return Remark("weight_too_large", {"cell": shown(cell), "most": MAX_WEIGHT}, line, column)
    return Remark("weight_too_small", {"cell": shown(cell), "least": min_weight, "times": WEIGHT_RANGE}, line, column)


def _is_time(cell: str, length: int) -> bool:
    """Return whether a cell is an ISO day, month or year with this number of characters."""
    try:
        date.fromisoformat(cell + "0000-01-01"[len(cell) :])
    except ValueError:
        return False
    return len(cell) == length and length in (4, 7, 10)


def read_samples(
    federation: Federation,
    source: bytes | Path,
    *,
    name: str = "samples",
    how: Reading = AS_IT_IS,
    limits: FileLimits = SAMPLES,
) -> SampleSheet:
    """Read a sheet of samples: the Guest's id column and feature columns, and optionally Hosts' columns, in any order.

    A sheet without any Guest feature stands for the Guest's own records of these ids. A row that cannot be read gets
    a problem and never stops the others.

    Parameters
    ----------
    source : bytes or Path
        The sheet itself or its file: CSV, XLSX or Parquet.
    name : str
        Name of the sheet in problems; a file's own name if `source` is one.
    how : Reading
        The user's answers about the file.

    Raises
    ------
    AmbiguousFile
        The file can be read in several ways.
    SampleError
        The sheet as a whole is not usable: too large, no table, no id column, no rows, some Guest columns absent.
    """
    text = _sheet_text(federation, source, name, how, limits)
    return sheet_of(federation, text, _repeated(text.cells(federation.guest.id), text.lines))


def read_later_sheet(
    federation: Federation, source: bytes | Path, *, name: str = "samples", how: Reading = AS_IT_IS, label: str = ""
) -> tuple[SampleSheet, NDArray[np.float64]]:
    """Return a sheet of the Guest's columns, and what has become of its people as far as that is known; Hosts' columns are ignored.

    Parameters
    ----------
    label : str
        Column of the outcomes, written as in the Guest's file; empty = the federation's label if the sheet has it.

    Returns
    -------
    sheet : SampleSheet
    outcomes : ndarray of float64, ``(n_rows,)``
        As :func:`read_labels`, NaN if none is known.

    Raises
    ------
    AmbiguousFile, SampleError
        As :func:`read_samples`; or `label` is no column of the sheet, or a feature, or an outcome cannot be read.
    """
    outcome_label = federation.label.model_copy(update={"column": label or federation.label.column})
    if label in (federation.guest.id, *(feature.name for _, feature in federation.features())):
        raise SampleError("feature_is_no_outcome", name=shown(label))
    number = (outcome_label.column,) if outcome_label.task == "number" else ()
    text = _sheet_text(federation, source, name, how, SAMPLES, number)
    sheet = sheet_of(federation, text, _repeated(text.cells(federation.guest.id), text.lines), hosts_allowed=False)
    unsaid_codes = ("label_ignored",) if outcome_label.column == federation.label.column else ()
    sheet = replace(sheet, notes=tuple(note for note in sheet.notes if note.code not in unsaid_codes))
    if outcome_label.column not in text.header:
        if label:
            raise SampleError("sheet_lacks_column", file=text.name, name=shown(label), columns=text.header)
        return sheet, np.full(len(sheet.ids), np.nan)
    guest_cells = read_csv(federation.folder / federation.guest.file).cells(federation.label.column)
    outcomes, problems = known_outcomes(text, outcome_label, set(guest_cells))
    if problems:
        raise SampleError(problems=capped(problems))
    return sheet, outcomes


def _sheet_text(
    federation: Federation,
    source: bytes | Path,
    name: str,
    how: Reading,
    limits: FileLimits,
    numbers: Sequence[str] = (),
) -> TableText:
    """Return a sheet's cells under the federation's names, its columns checked."""
    try:
        text = read_table_file(source, source.name if isinstance(source, Path) else name, how, limits)
        text = named_alike(text, federation)
        present = [column for column in numbers if column in text.header]
        text = with_marks(text, [*number_columns(federation, text.header), *present], how.decimal)
    except AmbiguousFile:
        raise
    except FederationError as error:
        raise SampleError(problems=error.remarks) from None
    check_columns(text, federation.guest)
    return text


def sheet_of(
    federation: Federation,
    text: TableText,
    repeated: Mapping[int, int],
    *,
    hosts_allowed: bool = True,
    records: Callable[[], PartyTable] | None = None,
) -> SampleSheet:
    """Return the samples of a table, or of a group of its rows.

    Parameters
    ----------
    text : TableText
        With the federation's names for its columns, and its marks.
    repeated : mapping of int to int
        Row whose id is in an earlier row → the line of the first of them.
    records : callable, optional
        The Guest's own, for a table of ids alone; default those of its file.
    """
    guest = federation.guest
    ids = tuple(text.cells(guest.id))
    problems = _sheet_problems(text, ids, federation, repeated)
    notes = [*text.notes, *_ignored(federation, text, hosts_allowed)]
    if any(feature.name in text.header for feature in guest.features):
        guest_table, unread, read = _columns(text, guest, ids)
        notes += read
    else:
        guest_table, unread = _own_records(federation, text, ids, records)
        notes.append(_about("guest_records_used", guest))
    hosts: dict[str, PartyTable] = {}
    for host in federation.hosts if hosts_allowed else ():
        host_columns = [feature.name for feature in host.features if feature.name in text.header]
        if host_columns:
            hosts[host.name], more, read = _columns(text, host, ids)
            notes += read
            unread = _joined(unread, more)
            notes.append(_partly_held(host, host_columns))
    notes += [
        note for party in (guest, *federation.hosts) for note in _undisclosed(party, hosts | {guest.name: guest_table})
    ]
    return SampleSheet(ids, guest_table, hosts, dict(sorted((unread | problems).items())), tuple(notes))


def sample_from_values(federation: Federation, sample_id: str, values: Mapping[str, str | float | None]) -> SampleSheet:
    """One typed-in sample: the Guest's feature values by name; None, an empty text or an absent name is missing.

    A value that cannot be read makes a problem of row 0. Raises `SampleError` for a name that is no Guest feature.
    """
    guest = federation.guest
    names = [feature.name for feature in guest.features]
    strangers = [shown(name) for name in values if name not in names]
    if strangers:
        title = guest.title
        raise SampleError("no_features_of_guest", names=tuple(strangers), party=title, features=tuple(names))
    header = (guest.id, *names)
    cells = []
    for name in names:
        value = values.get(name)
        cells.append("" if value is None else str(value).strip())
    text = TableText("sample", header, [[sample_id.strip(), *cells]], [0], {})
    ids = (sample_id.strip(),)
    guest_table, unread, read = _columns(text, guest, ids)
    notes = (*read, *_undisclosed(guest, {guest.name: guest_table}))
    return SampleSheet(ids, guest_table, {}, unread | _sheet_problems(text, ids, federation, {}), notes)


def _about(code: str, party: Party, row: int = 0, **values: object) -> Remark:
    """Return a remark that names a party by its title."""
    return Remark(code, {"party": party.title, **values}, row)


def named_alike(text: TableText, federation: Federation) -> TableText:
    """Return the table with the federation's names for columns that differ from them in upper and lower case alone.

    Cells that were written so that no spreadsheet runs them are as they were before (:mod:`backend.data.cells`).

    Raises
    ------
    SampleError
        A name may stand for two columns.
    """
    text = _with_plain_cells(text)
    known_names = {
        federation.guest.id,
        federation.label.column,
        *(feature.name for _, feature in federation.features()),
    }
    alike: dict[str, list[str]] = {}
    for name in sorted(known_names):
        alike.setdefault(name.casefold(), []).append(name)
    renamed: dict[str, str] = {}
    for column in text.header:
        names = alike.get(column.casefold(), [])
        same_name = []
        for column_name in text.header:
            if column_name.casefold() == column.casefold():
                same_name.append(column_name)
        if names and not known_names.issuperset(same_name) and (len(same_name) > 1 or len(names) > 1):
            columns = tuple(map(shown, same_name))
            meanings = tuple(map(shown, names))
            raise SampleError("columns_unclear", file=text.name, columns=columns, meant=meanings)
        if column in known_names or not names:
            renamed[column] = column
        else:
            renamed[column] = names[0]
    header = tuple(renamed[column] for column in text.header)
    repeated = repeated_problems(text, known_names - {federation.label.column})
    if repeated:
        raise SampleError(problems=repeated)
    faults = {}
    for row, row_faults in text.faults.items():
        faults[row] = tuple(replace(fault, column=renamed[fault.column]) for fault in row_faults)
    return replace(text, header=header, faults=faults)


def _with_plain_cells(text: TableText) -> TableText:
    """Return the table with its cells as they were before they were written so that no spreadsheet runs them."""
    rows = [[plain_cell(cell) for cell in row] for row in text.rows]
    faults = {}
    for row, row_faults in text.faults.items():
        faults[row] = tuple(replace(fault, column=plain_cell(fault.column)) for fault in row_faults)
    return replace(text, header=tuple(map(plain_cell, text.header)), rows=rows, faults=faults)


def number_columns(federation: Federation, header: Sequence[str]) -> list[str]:
    """Columns of a table that hold numbers."""
    return [
        feature.name for _, feature in federation.features() if feature.kind is Kind.NUMERIC and feature.name in header
    ]


def check_columns(text: TableText, guest: Party) -> None:
    """Raise SampleError if a sheet has no rows, no ids, or a part of the Guest's features."""
    if not text.rows:
        raise SampleError("sheet_without_rows", file=text.name)
    if guest.id not in text.header:
        raise SampleError("sheet_without_ids", file=text.name, name=shown(guest.id), columns=text.header)
    absent = tuple(shown(feature.name) for feature in guest.features if feature.name not in text.header)
    if absent and len(absent) < len(guest.features):
        title = guest.title
        raise SampleError("sheet_lacks_features", file=text.name, names=absent, n=len(absent), party=title)


def _repeated(ids: Sequence[str], lines: Sequence[int]) -> dict[int, int]:
    """Row whose id is in an earlier row → the line of the first of them."""
    first: dict[str, int] = {}
    return {row: lines[first[value]] for row, value in enumerate(ids) if first.setdefault(value, row) != row}


def _sheet_problems(
    text: TableText, ids: Sequence[str], federation: Federation, repeated: Mapping[int, int]
) -> dict[int, tuple[Remark, ...]]:
    """Rows that cannot be scored, whatever their features."""
    problems: dict[int, tuple[Remark, ...]] = {}
    for row, (value, line) in enumerate(zip(ids, text.lines, strict=True)):
        if max(map(len, text.rows[row]), default=0) > MAX_CELL:
            problems[row] = (Remark("cell_too_long", {"most": MAX_CELL}, line),)
        elif row in text.ragged:
            values = {"found": text.ragged[row], "expected": len(text.header)}
            problems[row] = (Remark("row_ragged", values, line),)
        elif not value:
            problems[row] = (Remark("row_without_id", {}, line),)
        elif row in repeated:
            problems[row] = (Remark("id_repeated", {"id": shown(value), "first": repeated[row]}, line),)
        elif faults := _faults(text, row, federation):
            problems[row] = faults
    return problems


def _faults(text: TableText, row: int, federation: Federation) -> tuple[Remark, ...]:
    """Return a workbook's cells without a value, in columns that are read; a rounded number matters if it is a name."""
    kinds = {feature.name: feature.kind for _, feature in federation.features()}
    kinds[federation.guest.id] = Kind.CATEGORICAL
    return tuple(
        Remark(FAULTS[fault.kind], {"cell": shown(fault.cell)}, text.lines[row], fault.column)
        for fault in text.faults.get(row, ())
        if fault.column in kinds and (fault.kind not in OF_NAMES or kinds[fault.column] is Kind.CATEGORICAL)
    )


def _columns(
    text: TableText, party: Party, ids: tuple[str, ...]
) -> tuple[PartyTable, dict[int, tuple[Remark, ...]], list[Remark]]:
    """Return a party's part of the sheet, unreadable cells by row, and notes on numbers in another form.

    A column that the sheet does not have is missing in every row.
    """
    columns: dict[str, NDArray[np.generic]] = {}
    unreadable: dict[int, list[Remark]] = {}
    notes = []
    for feature in party.features:
        if feature.name in text.header:
            cells = text.cells(feature.name)
        else:
            cells = [""] * len(ids)
        columns[feature.name], unread, read = with_forms(cells, feature, text.marks)
        for row, cell in unread.items():
            remark = _unreadable(cell, feature, text.marks)
            unreadable.setdefault(row, []).append(replace(remark, row=text.lines[row], column=feature.name))
        if read:
            row, cell = next(iter(read.items()))
            example = {"cell": shown(cell), "number": f"{columns[feature.name][row]:.15g}"}
            notes.append(Remark("numbers_in_another_form", {"n": len(read), **example}, column=feature.name))
        if feature.kind is Kind.NUMERIC:
            notes += _with_other_marks(cells, columns[feature.name], feature.name, text.marks)
    return PartyTable(party.name, ids, columns), {row: tuple(remarks) for row, remarks in unreadable.items()}, notes


def _with_other_marks(cells: Sequence[str], numbers: NDArray[np.generic], name: str, marks: Marks) -> list[Remark]:
    """Return a note if numbers have a decimal comma, or commas between thousands."""
    rows = []
    for row, number in enumerate(plain(cells, marks)):
        if number is not None and number != cells[row] and like_a_number(cells[row]):
            rows.append(row)
    if not rows:
        return []
    if marks.decimal == ",":
        code = "numbers_with_commas"
    else:
        code = "numbers_with_thousands"
    example = {"cell": shown(cells[rows[0]]), "number": f"{numbers[rows[0]]:.15g}"}
    return [Remark(code, {"n": len(rows), **example}, column=name)]


def _unreadable(cell: str, feature: Feature, marks: Marks) -> Remark:
    """Return why a cell is not a value of its feature."""
    if feature.kind is Kind.BOOLEAN:
        return Remark("cell_not_yes_or_no", {"cell": shown(cell)})
    if first_day(feature.unit) is not None:
        return Remark("cell_not_one_day", {"cell": shown(cell), "unit": feature.unit})
    if like_a_number(cell):
        return Remark("cell_without_point" if marks.decimal == "." else "cell_without_comma", {"cell": shown(cell)})
    number = written_number(cell)
    if number is not None and not is_of_unit(number.sign, feature.unit.en, feature.unit.zh):
        if feature.unit:
            unit = Remark("has_unit", {"unit": feature.unit})
        else:
            unit = Remark("has_no_unit")
        return Remark("cell_of_another_unit", {"cell": shown(cell), "sign": number.sign, "unit": unit})
    return Remark("cell_not_a_number", {"cell": shown(cell)})


def _joined(
    first: Mapping[int, tuple[Remark, ...]], second: Mapping[int, tuple[Remark, ...]]
) -> dict[int, tuple[Remark, ...]]:
    """Both parties' problems, row by row."""
    return {row: first.get(row, ()) + second.get(row, ()) for row in first.keys() | second.keys()}


def _own_records(
    federation: Federation, text: TableText, ids: tuple[str, ...], records: Callable[[], PartyTable] | None
) -> tuple[PartyTable, dict[int, tuple[Remark, ...]]]:
    """Return the Guest's own records of these ids; an id it does not hold has missing values and a problem."""
    if records:
        table = records()
    else:
        table = read_table(federation, federation.guest.name)
    guest_rows = table.row_of.of(ids)
    columns: dict[str, NDArray[np.generic]] = {}
    for name, column in table.take(guest_rows).columns.items():
        blank: Any = None if column.dtype == object else np.nan
        columns[name] = np.where(guest_rows < 0, blank, column)
    unknown: dict[int, tuple[Remark, ...]] = {
        int(row): (_about("id_not_at_guest", federation.guest, text.lines[row], id=shown(ids[row])),)
        for row in np.flatnonzero(guest_rows < 0)
    }
    return PartyTable(federation.guest.name, ids, columns), unknown


def _ignored(federation: Federation, text: TableText, hosts_allowed: bool) -> list[Remark]:
    """Notes on the sheet's columns that are not used."""
    guest = federation.guest
    label = federation.label.column
    notes = []
    if label in text.header:
        notes.append(Remark("label_ignored", {"name": shown(label)}))
    of_hosts = {feature.name for host in federation.hosts for feature in host.features} - {label}
    host_columns = tuple(shown(column) for column in text.header if column in of_hosts)
    if host_columns and not hosts_allowed:
        notes.append(Remark("host_columns_ignored", {"columns": host_columns}))
    known_columns = of_hosts | {feature.name for feature in guest.features} | {guest.id, label}
    strangers = tuple(shown(column) for column in text.header if column not in known_columns)
    if strangers:
        notes.append(Remark("columns_ignored", {"columns": strangers}))
    return notes


def _partly_held(host: Party, host_columns: Sequence[str]) -> Remark:
    absent = tuple(shown(feature.name) for feature in host.features if feature.name not in host_columns)
    if absent:
        return _about("host_partly_simulated", host, columns=absent)
    return _about("host_simulated", host)


def _undisclosed(party: Party, tables: Mapping[str, PartyTable]) -> list[Remark]:
    """Notes on codes that a party's dictionary does not list."""
    notes = []
    for feature in party.features:
        if party.name in tables and feature.categories:
            codes = {str(code) for code in tables[party.name].columns[feature.name] if code is not None}
            strange = sorted(codes - feature.categories.keys())
            if strange:
                codes_found = tuple(shown(code) for code in strange)
                values = {"name": feature.name, "codes": codes_found, "known": tuple(feature.categories)}
                notes.append(Remark("codes_not_listed", values))
    return notes
