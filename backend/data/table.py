"""A party's table in memory, the Guest's labels, and sheets of samples to be scored.

A table's `repr` shows its party and shape, never a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.data.csv_file import CsvText, Limits, expected_cells, listed, parse_csv, read_csv, shown, to_column
from backend.data.federation import Federation, Party, capped
from backend.data.party_file import read_party_file
from backend.errors import FederationError, SampleError

MAX_COLUMNS = 200
MAX_CELL = 500  # characters


@dataclass(frozen=True, eq=False, repr=False)
class PartyTable:
    """What one party holds about each id.

    Attributes
    ----------
    ids : tuple of str, ``(n_rows,)``
    columns : dict of str to ndarray, each ``(n_rows,)``
        float64 with NaN for missing (numeric; boolean as 0 and 1), or object: str, None for missing (categorical).
    """

    party: str
    ids: tuple[str, ...]
    columns: dict[str, NDArray[np.generic]]

    def __repr__(self) -> str:
        return f"PartyTable({self.party!r}, {len(self.ids)} rows × {len(self.columns)} columns)"

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Id → row; of a repeated id (only a sample sheet can have one) the first."""
        last = len(self.ids) - 1
        return {value: last - back for back, value in enumerate(reversed(self.ids))}

    def take(self, rows: NDArray[np.intp]) -> PartyTable:
        """The table with these rows, in this order."""
        ids = tuple(self.ids[row] for row in rows)
        return PartyTable(self.party, ids, {name: column[rows] for name, column in self.columns.items()})


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
    problems : dict of int to str
        Row → why it cannot be scored. Such a row stays in the sheet; unreadable values are missing.
    notes : tuple of str
        What was ignored or filled in.
    """

    ids: tuple[str, ...] = field(repr=False)
    guest: PartyTable
    hosts: dict[str, PartyTable]
    problems: dict[int, str] = field(repr=False)
    notes: tuple[str, ...]


def read_table(federation: Federation, party: str) -> PartyTable:
    """Read a party's features (never the label); raises `FederationError` with every problem of its file."""
    holder = federation.party(party)
    read = read_party_file(federation.folder / holder.file, holder.id, holder.features)
    if read.problems:
        raise FederationError(capped(read.problems))
    return PartyTable(party, read.ids, read.columns)


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
        raise FederationError(capped(read.problems))
    return read.labels


def read_samples(
    federation: Federation,
    source: bytes | Path,
    *,
    hosts_allowed: bool = True,
    max_rows: int = 5000,
    max_bytes: int = 5_000_000,
) -> SampleSheet:
    """Read a CSV of samples: the Guest's id column and feature columns, and optionally Hosts' columns, in any order.

    A sheet without any Guest feature stands for the Guest's own records of these ids. A row that cannot be read gets
    a problem and never stops the others.

    Parameters
    ----------
    source : bytes or Path
        The sheet itself or its file.
    hosts_allowed : bool
        False ignores Hosts' columns, with a note.

    Raises
    ------
    SampleError
        The sheet as a whole is not usable: too large, not CSV, no id column, no rows, some Guest columns absent.
    """
    text = _sheet(source, max_rows, max_bytes)
    guest = federation.guest
    if guest.id not in text.header:
        raise SampleError(
            f"{text.name}: there is no id column {shown(guest.id)}; the sheet has {listed(text.header)}. "
            "Add the column with an id in every row."
        )
    absent = [feature.name for feature in guest.features if feature.name not in text.header]
    if absent and len(absent) < len(guest.features):
        raise SampleError(
            f"{text.name}: found no column for {listed([shown(name) for name in absent])}, expected every feature of {guest.title}. Add "
            f"the columns (cells may be empty), or give ids alone to score {guest.title}'s own records."
        )
    ids = tuple(text.cells(guest.id))
    problems = _sheet_problems(text, ids)
    notes = _ignored(federation, text, hosts_allowed)
    if absent:
        own, unread = _own_records(federation, ids)
        notes.append(f"The sheet holds no features of {guest.title}: its own records of these ids are used.")
    else:
        own, unread = _columns(text, guest, ids)
    hosts: dict[str, PartyTable] = {}
    for host in federation.hosts if hosts_allowed else ():
        held = [feature.name for feature in host.features if feature.name in text.header]
        if held:
            hosts[host.name], more = _columns(text, host, ids)
            unread = _joined(unread, more)
            notes += _partly_held(host, held)
    notes += [note for party in (guest, *federation.hosts) for note in _undisclosed(party, hosts | {guest.name: own})]
    return SampleSheet(ids, own, hosts, dict(sorted((unread | problems).items())), tuple(notes))


def sample_from_values(federation: Federation, sample_id: str, values: Mapping[str, str | float | None]) -> SampleSheet:
    """One typed-in sample: the Guest's feature values by name; None, an empty text or an absent name is missing.

    A value that cannot be read makes a problem of row 0. Raises `SampleError` for a name that is no Guest feature.
    """
    guest = federation.guest
    names = [feature.name for feature in guest.features]
    strangers = [shown(name) for name in values if name not in names]
    if strangers:
        raise SampleError(
            f"found values for {listed(strangers)}, expected only {guest.title}'s features: {listed(names)}. Leave the others out."
        )
    header = (guest.id, *names)
    cells = ["" if (value := values.get(name)) is None else str(value).strip() for name in names]
    text = CsvText("sample", header, [[sample_id.strip(), *cells]], [1], {})
    ids = (sample_id.strip(),)
    own, unread = _columns(text, guest, ids)
    notes = tuple(_undisclosed(guest, {guest.name: own}))
    return SampleSheet(ids, own, {}, unread | _sheet_problems(text, ids), notes)


def _sheet(source: bytes | Path, max_rows: int, max_bytes: int) -> CsvText:
    """Read the sheet; its size is checked before and while it is taken apart."""
    limits = Limits(max_bytes, max_rows, MAX_COLUMNS, max_rows * MAX_COLUMNS)
    try:
        text = read_csv(source, limits) if isinstance(source, Path) else parse_csv("samples", source, limits)
    except FederationError as error:
        raise SampleError(str(error)) from None
    if not text.rows:
        raise SampleError(f"{text.name}: found a header and no rows, expected at least one sample. Add a row.")
    return text


def _sheet_problems(text: CsvText, ids: Sequence[str]) -> dict[int, str]:
    """Rows that cannot be scored, whatever their features."""
    problems: dict[int, str] = {}
    first: dict[str, int] = {}
    for row, value in enumerate(ids):
        if any(len(cell) > MAX_CELL for cell in text.rows[row]):
            problems[row] = f"found a cell with more than {MAX_CELL} characters. Shorten it."
        elif row in text.ragged:
            problems[row] = (
                f"found {text.ragged[row]} cells, expected {len(text.header)} as in the header. Correct the line."
            )
        elif not value:
            problems[row] = "found no id, expected an id in every row. Fill it in."
        elif value in first:
            problems[row] = (
                f"found the id {shown(value)} a second time (first on line {text.lines[first[value]]}), expected every id once. Delete one "
                "of the rows."
            )
        first.setdefault(value, row)
    return problems


def _columns(text: CsvText, party: Party, ids: tuple[str, ...]) -> tuple[PartyTable, dict[int, str]]:
    """A party's part of the sheet; a column that the sheet does not have is missing throughout."""
    columns: dict[str, NDArray[np.generic]] = {}
    unreadable: dict[int, list[str]] = {}
    for feature in party.features:
        cells = text.cells(feature.name) if feature.name in text.header else [""] * len(ids)
        columns[feature.name], unread = to_column(cells, feature)
        for row, cell in unread.items():
            sentence = f"column {shown(feature.name)}: found {shown(cell)}, expected {expected_cells(feature)}"
            unreadable.setdefault(row, []).append(f"{sentence} or an empty cell")
    return PartyTable(party.name, ids, columns), {
        row: f"{'; '.join(found)}. Correct the row." for row, found in unreadable.items()
    }


def _joined(first: Mapping[int, str], second: Mapping[int, str]) -> dict[int, str]:
    """Both parties' problems, row by row."""
    rows = first.keys() | second.keys()
    return {row: " ".join(part[row] for part in (first, second) if row in part) for row in rows}


def _own_records(federation: Federation, ids: tuple[str, ...]) -> tuple[PartyTable, dict[int, str]]:
    """The Guest's own records of these ids; an id it does not hold has missing values and a problem."""
    table = read_table(federation, federation.guest.name)
    held = np.array([table.row_of.get(value, -1) for value in ids], dtype=np.intp)
    columns: dict[str, NDArray[np.generic]] = {}
    for name, column in table.columns.items():
        blank: Any = None if column.dtype == object else np.nan
        columns[name] = np.where(held < 0, blank, column[held])
    unknown = {
        int(row): f"{federation.guest.title} holds no record with the id {shown(ids[row])}, expected one of its ids. "
        "Give its feature columns or a known id."
        for row in np.flatnonzero(held < 0)
    }
    return PartyTable(federation.guest.name, ids, columns), unknown


def _ignored(federation: Federation, text: CsvText, hosts_allowed: bool) -> list[str]:
    """Notes on the sheet's columns that are not used."""
    guest, label = federation.guest, federation.label.column
    notes = []
    if label in text.header:
        notes.append(f"The label column {shown(label)} is ignored.")
    of_hosts = {feature.name for host in federation.hosts for feature in host.features} - {label}
    held = [shown(column) for column in text.header if column in of_hosts]
    if held and not hosts_allowed:
        notes.append(f"The Hosts' columns {listed(held)} are ignored: the Hosts use their own records.")
    known = of_hosts | {feature.name for feature in guest.features} | {guest.id, label}
    strangers = [shown(column) for column in text.header if column not in known]
    if strangers:
        notes.append(f"Columns that are no feature are ignored: {listed(strangers)}.")
    return notes


def _partly_held(host: Party, held: Sequence[str]) -> list[str]:
    absent = [shown(feature.name) for feature in host.features if feature.name not in held]
    if not absent:
        return [f"The sheet plays {host.title}: its own records are not used."]
    return [f"The sheet plays {host.title}: its own records are not used; {listed(absent)} count as missing."]


def _undisclosed(party: Party, tables: Mapping[str, PartyTable]) -> list[str]:
    """Notes on codes that a party's dictionary does not list."""
    notes = []
    for feature in party.features:
        if party.name in tables and feature.categories:
            codes = {str(code) for code in tables[party.name].columns[feature.name] if code is not None}
            strange = sorted(codes - feature.categories.keys())
            if strange:
                notes.append(
                    f"Column {shown(feature.name)}: {listed([shown(code) for code in strange], 3)} is none of the disclosed codes "
                    f"({listed(list(feature.categories))}); a code that the model has not seen counts as missing."
                )
    return notes
