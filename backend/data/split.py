"""Splits one table into parties' files and a federation file, so that a federation can be simulated from any table.

A feature without a dictionary entry gets its column's name as meaning, marked ``(no meaning given)``, and its kind from its cells.
Columns that no party holds are left out; the federation's ``about`` lists them. What was read otherwise than it is written, and which
rows were left out, is said in notes.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

from backend.data.column_kinds import alike_texts, code_problems, guess, label_of, readable, refuse, short_forms
from backend.data.csv_file import FAULTS, TableText, examples, listed, repeated_columns, repeated_problems, shown
from backend.data.dates import ORDERS, as_days, date_of, orders_of
from backend.data.decimal_mark import POINT, like_a_number, plain
from backend.data.dictionary import MAX_MEANING, Feature, Kind
from backend.data.dictionary_file import read_dictionary, write_dictionary
from backend.data.federation import FILE_NAME, Federation, Party, load_federation, write_federation
from backend.data.label import Label
from backend.data.missing import is_no_outcome, looks_missing
from backend.data.number_forms import PERCENT, NumberForm, is_of_unit, written_number
from backend.data.party_file import check_party
from backend.data.table_file import AS_IT_IS, Reading, read_table_file, with_marks, with_plain_numbers
from backend.data.validation import field_problems
from backend.errors import FederationError
from backend.i18n import Text
from backend.jobs import work
from backend.remark import Remark

GUEST = "guest"  # the Guest's name in a federation made from one table
ROW_IDS = "id"  # the column of row numbers where the table has no ids
TO_FILL_IN = "dictionary.csv"  # written next to the federation file if meanings are missing
READ_SHARE = 0.5  # share of the work that reading the columns is; the rest is writing the files
SHARES = "shares"  # of numbers with and without %: those with it are hundredths of the others
SAME_SIGN = "same_sign"  # of numbers with and without a sign: all mean the same thing
EVERYWHERE = "*"  # in place of a column's name: every feature that has the text
# rows that may be left out → the code of why
LEFT_OUT = {
    "ragged": "left_out_ragged",
    "no-outcome": "left_out_without_outcome",
    "unclear-outcome": "left_out_unclear_outcome",
    "no-id": "left_out_without_id",
    "repeated-id": "left_out_repeated_id",
}


@dataclass(frozen=True)
class Division:
    """How one table is divided between the parties.

    Attributes
    ----------
    guest : sequence of str
        The Guest's columns.
    hosts : mapping of str to sequence of str
        Host name → its columns.
    id_column : str or None
        None makes the rows' numbers, from 1, the ids, in a column ``id``.
    positive : str or None
        Binary only: the label's cell text that means 1; None only if the label is 0/1, no/yes or false/true.
    task : {"binary", "classes", "number"} or None
        None reads it off the label: two different texts are binary; numbers are numbers, unless they are at most
        `MAX_CLASS_NUMBERS` different whole ones, which is refused as unclear; other texts are classes. Classes are
        numbered in the order of their texts, or of their values if all are numbers.
    dictionary : Path or None
        See `dictionary_file`; entries for columns that nobody holds are ignored, one for the label gives its meaning.
    name : str or None
        The federation's name; made from the table's if None.
    missing : mapping of str to sequence of str
        Column → texts that mean "no value" in it, beside those that the dictionary names; :data:`EVERYWHERE` stands for every
        feature that has the text.
    label_meaning : str or None
        What the label (binary: the positive one) says about a person; None takes the dictionary's entry for the label, if there is one.
    meanings : mapping of str to Feature
        Entries as of a dictionary, in place of those of the file.
    title : str
        Of the federation, for people; made from the table's name if empty.
    titles : mapping of str to str
        Party's name → its title for people, if it is not made from the name.
    reading : Reading
        What was said about the table's file.
    keep : sequence of str
        Columns that stay in the Guest's file without being a feature: sample weights, or dates.
    leave_out : collection of str
        Which rows are left out, by the names of :data:`LEFT_OUT`; of a repeated id the first row stays.
    one_spelling : collection of str
        Columns whose texts that differ in case or spaces alone are one text, written as most cells are; :data:`EVERYWHERE` stands for the
        label and every feature.
    days : mapping of str to str
        Columns of dates, which become days since the earliest year began → one of :data:`backend.data.dates.ORDERS`; "" if the cells
        prove it.
    signs : mapping of str to str
        Columns of numbers with and without one sign → what those without it mean: :data:`SHARES` or :data:`SAME_SIGN`.
    places, product : collection of str, str
        Where the people live and what the model is for, as in :class:`backend.data.federation.Federation`.
    """

    label: str
    guest: Sequence[str]
    hosts: Mapping[str, Sequence[str]]
    id_column: str | None = None
    positive: str | None = None
    task: str | None = None
    dictionary: Path | None = None
    name: str | None = None
    label_meaning: str | None = None
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    meanings: Mapping[str, Feature] = field(default_factory=dict)
    title: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)
    reading: Reading = AS_IT_IS
    keep: Sequence[str] = ()
    leave_out: Collection[str] = ()
    one_spelling: Collection[str] = ()
    days: Mapping[str, str] = field(default_factory=dict)
    signs: Mapping[str, str] = field(default_factory=dict)
    places: Collection[str] = ()
    product: str = ""


@dataclass(frozen=True, eq=False)
class Planned:
    """A federation that is made from one table, before anything is written.

    Attributes
    ----------
    text : TableText
        The table, its numbers with a decimal point.
    ids : tuple of str, ``(n_rows,)``
    keep : sequence of str
        Columns that stay in the Guest's file without being a feature.
    notes : tuple of Remark
        What was read otherwise than it is written, which rows and columns were left out, and which meanings were cut.
    """

    federation: Federation
    text: TableText = field(repr=False)
    ids: tuple[str, ...] = field(repr=False)
    notes: tuple[Remark, ...] = ()
    keep: Sequence[str] = ()


def split_table(
    table: Path,
    division: Division,
    out: Path,
    check_name: Callable[[str], None] = lambda name: None,
    name: str = "",
) -> Planned:
    """Write one CSV file per party and ``federation.toml`` into `out`.

    Parameters
    ----------
    table : Path
        A file with label and every party's columns, and ids if it has them: CSV, XLSX or Parquet.
    out : Path
        Made if missing; existing files are never overwritten. After an error nothing is left in it.
    check_name : callable
        Called with the federation's name before anything is written; may raise FederationError.
    name : str
        Name of the table in problems; empty = its file's name.

    Raises
    ------
    AmbiguousFile
        The table can be read in several ways, and the division does not say in which.
    FederationError
        With every problem found: file, field, found, expected, what to do.
    """
    planned = plan_table(read_table_file(table, name, division.reading), division)
    parties = [party.name for party in planned.federation.parties]
    refuse(_target_problems(out, parties))
    check_name(planned.federation.name)
    return replace(planned, federation=write_planned(planned, out))


def plan_table(text: TableText, division: Division) -> Planned:
    """Return how a table is divided, and how its columns are read; see :func:`split_table` for the errors."""
    id_column = division.id_column
    label = division.label
    hosts = division.hosts
    meanings = {**(read_dictionary(division.dictionary) if division.dictionary else {}), **division.meanings}
    parties = {GUEST: tuple(division.guest)} | {host: tuple(columns) for host, columns in hosts.items()}
    if GUEST in hosts:
        raise FederationError("host_called_guest", name=repr(GUEST))
    titles = division.titles
    problems = []
    for host in hosts:
        problems += field_problems("hosts", Party, _party(host, "id", [], titles), (shown(host),))
    refuse(problems + _column_problems(text, id_column, label, parties, division.keep))
    feature_columns = tuple(column for columns in parties.values() for column in columns)
    used_columns = {id_column, label, *feature_columns, *division.keep} - {None}
    refuse([*_fault_problems(text, used_columns), *repeated_problems(text, {str(column) for column in used_columns})])
    text, rows_left_out = without_rows(text, id_column, label, division.positive, division.leave_out)
    text, respelled = with_one_spelling(text, (label, *feature_columns), division.one_spelling)
    missing = _missing_texts(text, parties, division.missing)
    absent = {column: {*texts, *_missing_of(meanings.get(column))} for column, texts in missing.items()}
    text, dated, units = _with_days(text, feature_columns, division.days, absent)
    text, signed, shares = _with_one_sign(text, feature_columns, division.signs, absent)
    text, read, forms = _with_numbers(
        text, (label, *feature_columns, *division.keep), meanings, absent, division.reading.decimal
    )
    text = _as_shares(text, shares)
    for column in shares.keys() & forms.keys():
        forms[column] = replace(forms[column], sign="")  # a share has no unit
    read = [note for note in read if note.column not in shares]
    described = {}
    for number, (column, texts) in enumerate(missing.items(), start=1):
        entry = meanings.get(column)
        described[column] = _described(text, column, entry, texts, forms.get(column), units.get(column))
        if column in units and entry is not None and entry.unit and entry.unit != units[column]:
            dated.append(Remark("unit_became_days", {"unit": entry.unit, "days": units[column]}, column=column))
        work.reached(READ_SHARE * number / len(missing))
    sign = forms[label].sign if label in forms else ""
    outcome = label_of(text, label, division.task, division.positive, division.label_meaning, meanings.get(label), sign)
    checked = check_party(text, id_column, tuple(described.values()), outcome)
    refuse(
        [
            *checked.problems,
            *code_problems(text, [described[c] for c in described if c not in meanings or not _says_kind(meanings[c])]),
        ]
    )
    unused = [shown(column) for column in dict.fromkeys(text.header) if column not in {"", *used_columns}]
    stem = Path(text.name).stem
    about = f"Made from the one table {text.name}; the parties are simulated."
    data = {
        "name": division.name if division.name is not None else slug(stem),
        "title": division.title or readable(stem),
        "about": about + (f" Columns of nobody: {listed(unused, 20)}." if unused else ""),
        "places": list(division.places),
        "product": division.product,
        "label": outcome,
        "guest": _party(GUEST, id_column or ROW_IDS, [described[column] for column in division.guest], titles),
        "hosts": [
            _party(host, id_column or ROW_IDS, [described[column] for column in columns], titles)
            for host, columns in hosts.items()
        ],
    }
    refuse(field_problems(FILE_NAME, Federation, data))
    notes = (
        *text.notes,
        *rows_left_out,
        *respelled,
        *dated,
        *signed,
        *read,
        *_column_notes(text),
        *_cut_notes((*described.values(), meanings.get(label))),
    )
    return Planned(Federation.model_validate(data), text, checked.ids, notes, division.keep)


def write_planned(planned: Planned, out: Path) -> Federation:
    """Write a federation's files whole or not at all: next to `out` first, then into it, the federation file last."""
    federation = planned.federation
    text = planned.text
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    moved: list[Path] = []
    try:
        for number, party in enumerate(federation.parties):
            work.reached(READ_SHARE + (1 - READ_SHARE) * number / len(federation.parties))
            if party is federation.guest:
                guest_columns = (federation.label.column, *planned.keep)
            else:
                guest_columns = ()
            column_names = (*(feature.name for feature in party.features), *guest_columns)
            _write_csv(draft / party.file, {party.id: planned.ids} | {name: text.cells(name) for name in column_names})
        features = [feature for _, feature in federation.features()]
        if not all(feature.described for feature in features):
            write_dictionary(tuple(_to_fill_in(text, features, federation.label)), draft / TO_FILL_IN)
        write_federation(federation, draft)
        load_federation(draft)
        out.mkdir(exist_ok=True)
        for file in sorted(draft.iterdir(), key=lambda file: file.name == FILE_NAME):
            if (out / file.name).exists():
                raise FederationError("would_be_overwritten", folder=out.name, files=(file.name,))
            moved.append(file.rename(out / file.name))
    except BaseException:
        for file in moved:
            file.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return load_federation(out, check_tables=False)


def _fault_problems(text: TableText, used_columns: Collection[str | None]) -> list[Remark]:
    """Return a workbook's cells without a value; also rounded numbers, which may be ids or codes."""
    problems = []
    for row, faults in text.faults.items():
        for fault in faults:
            if (
                fault.column in used_columns and fault.kind != "float"
            ):  # an amount may be; ids and codes are checked with the party
                problems.append(Remark(FAULTS[fault.kind], {"cell": shown(fault.cell)}, text.lines[row], fault.column))
    return problems


def odd_rows(
    text: TableText, id_column: str | None, label: str | None, positive: str | None, reasons: Collection[str]
) -> dict[str, list[int]]:
    """Return the rows that can be left out, each for one reason: a name of :data:`LEFT_OUT` → rows.

    A row whose id an earlier row has that is not left out itself is a repeated one.
    """
    ids = text.cells(id_column) if id_column else None
    outcomes = text.cells(label) if label else None
    earlier_ids: set[str] = set()
    odd: dict[str, list[int]] = {}
    for row in range(len(text.rows)):
        reason = ""
        if "ragged" in reasons and row in text.ragged:
            reason = "ragged"
        elif outcomes is not None and outcomes[row] != positive:
            if "no-outcome" in reasons and is_no_outcome(outcomes[row]):
                reason = "no-outcome"
            elif "unclear-outcome" in reasons and looks_missing(outcomes[row]) and not is_no_outcome(outcomes[row]):
                reason = "unclear-outcome"
        if not reason and ids is not None:
            if "no-id" in reasons and not ids[row]:
                reason = "no-id"
            elif "repeated-id" in reasons and ids[row] in earlier_ids:
                reason = "repeated-id"
        if reason:
            odd.setdefault(reason, []).append(row)
        elif ids is not None and ids[row]:
            earlier_ids.add(ids[row])
    return odd


def without_rows(
    text: TableText, id_column: str | None, label: str | None, positive: str | None, reasons: Collection[str]
) -> tuple[TableText, list[Remark]]:
    """Return the table without the rows that are to be left out, and a note for each reason with the lines; see :func:`odd_rows`."""
    odd = odd_rows(text, id_column, label, positive, reasons)
    left_out = {row for rows in odd.values() for row in rows}
    if not left_out:
        return text, []
    notes = []
    for reason, rows in odd.items():
        values = {"n": len(rows), "why": Remark(LEFT_OUT[reason]), "lines": lines_of(text, rows)}
        notes.append(Remark("rows_left_out", values))
    return _of_rows(text, [row for row in range(len(text.rows)) if row not in left_out]), notes


def lines_of(text: TableText, rows: Sequence[int]) -> tuple[Remark, ...] | Remark:
    """Return the first lines of some rows, as values of a problem."""
    return examples([Remark("on_line", {"line": text.lines[row]}) for row in rows], len(rows))


def _of_rows(text: TableText, rows: Sequence[int]) -> TableText:
    """Return the table with some of its rows, which keep the numbers of their lines."""
    ragged = {}
    faults = {}
    for new, row in enumerate(rows):
        if row in text.ragged:
            ragged[new] = text.ragged[row]
        if row in text.faults:
            faults[new] = text.faults[row]
    kept_rows = [text.rows[row] for row in rows]
    lines = [text.lines[row] for row in rows]
    return replace(text, rows=kept_rows, lines=lines, ragged=ragged, faults=faults)


def with_one_spelling(
    text: TableText, columns: Sequence[str], wished: Collection[str]
) -> tuple[TableText, list[Remark]]:
    """Return the table with one spelling of texts that differ in case or spaces alone, and a note for each; see :class:`Division`."""
    unknown = [column for column in wished if column not in (EVERYWHERE, *columns)]
    refuse([Remark("one_spelling_of_nothing", {"file": text.name, "name": shown(column)}) for column in unknown])
    rows = text.rows
    notes = []
    for column in columns if EVERYWHERE in wished else [column for column in columns if column in wished]:
        counts = Counter(cell for cell in text.cells(column) if cell)
        spelled: dict[str, str] = {}
        alike_forms = alike_texts(counts)
        for alike in short_forms(counts):
            if any(set(alike) <= set(other_forms) for other_forms in alike_forms):
                continue
            alike_forms = [*(other_forms for other_forms in alike_forms if not set(other_forms) & set(alike)), alike]
        for alike in alike_forms:
            commonest = max(alike, key=lambda spelling: counts[spelling])
            others = tuple(spelling for spelling in alike if spelling != commonest)
            spelled |= dict.fromkeys(others, commonest)
            changed = sum(counts[spelling] for spelling in others)
            values = {"n": changed, "cells": tuple(map(shown, others)), "spelling": shown(commonest)}
            notes.append(Remark("spellings_joined", values, column=column))
        if spelled:
            index = text.header.index(column)
            rows = [[*row[:index], spelled.get(row[index], row[index]), *row[index + 1 :]] for row in rows]
    return replace(text, rows=rows), notes


def _with_days(
    text: TableText, columns: Sequence[str], wished: Mapping[str, str], absent: Mapping[str, Collection[str]]
) -> tuple[TableText, list[Remark], dict[str, Text]]:
    """Return the table with days in place of the dates of some columns, a note on each, and their units by column."""
    if wished:
        rows = [list(row) for row in text.rows]
    else:
        rows = text.rows
    notes = []
    units = {}
    problems = []
    for column, order in wished.items():
        where = {"file": text.name, "feature": shown(column)}
        if column not in columns:
            problems.append(Remark("days_of_nothing", where))
            continue
        cells = text.cells(column)
        dates = [cell for cell in dict.fromkeys(cells) if cell and cell not in absent[column]]
        orders = orders_of([cell for cell in dates if any(date_of(cell, date_order) for date_order in ORDERS)])
        if not order and len(orders) > 1:
            example = next(cell for cell in dates if date_of(cell, "dmy") != date_of(cell, "mdy"))
            readings = tuple(str(date_of(example, date_order)) for date_order in ORDERS)
            problems.append(Remark("date_order_unclear", {**where, "cell": shown(example), "dates": readings}))
            continue
        days, others = as_days(dates, order or next(iter(orders), ORDERS[0]))
        if days is None or others:
            wrong_cells = text.located({cells.index(cell): cell for cell in others})
            problems.append(Remark("cells_no_dates", {**where, "cells": wrong_cells}))
            continue
        index = text.header.index(column)
        for row, cell in enumerate(cells):
            if cell in days.numbers:
                rows[row][index] = days.numbers[cell]
        units[column] = days.unit
        changed = sum(cell in days.numbers for cell in cells)
        values = {"n": changed, "cell": shown(dates[0]), "number": days.numbers[dates[0]], "day": days.first}
        notes.append(Remark("dates_as_days", values, column=column))
    refuse(problems)
    return replace(text, rows=rows), notes, units


def _with_one_sign(
    text: TableText, columns: Sequence[str], wished: Mapping[str, str], absent: Mapping[str, Collection[str]]
) -> tuple[TableText, list[Remark], dict[str, set[int]]]:
    """Return the table with a sign in each number of some columns, notes on them, and the rows that become shares; see :class:`Division`.

    ``shares`` gives every number its sign, too, so that all are read alike; :func:`_as_shares` then divides those that had one.
    """
    rows = [list(row) for row in text.rows] if wished else text.rows
    notes = []
    shares: dict[str, set[int]] = {}
    for column, way in wished.items():
        if column not in columns:
            continue
        cells = text.cells(column)
        numbers = {}
        for row, cell in enumerate(cells):
            number = None if cell in absent[column] else written_number(cell)
            if number is not None and not number.zero:
                numbers[row] = number
        signs = {number.sign for number in numbers.values()} - {""}
        if len(signs) != 1:
            continue  # there is no sign, or several: refused where numbers are read
        (sign,) = signs
        bare = [row for row, number in numbers.items() if not number.sign]
        index = text.header.index(column)
        for row in bare:
            cell = cells[row]
            rows[row][index] = f"{cell[:-1]}{sign})" if cell.endswith(")") else f"{cell}{sign}"
        if way == SHARES and sign == PERCENT:
            shares[column] = {row for row, number in numbers.items() if number.sign}
            changed = sorted(shares[column])
            values = {"n": len(changed), "cell": shown(cells[changed[0]])}
            notes.append(Remark("percent_as_shares", values, column=column))
        elif bare:
            values = {"n": len(bare), "cell": shown(cells[bare[0]]), "sign": sign}
            notes.append(Remark("sign_assumed", values, column=column))
    return replace(text, rows=rows), notes, shares


def _as_shares(text: TableText, shares: Mapping[str, Collection[int]]) -> TableText:
    """Return the table with the numbers of some columns' rows divided by 100, exactly."""
    if shares:
        rows = [list(row) for row in text.rows]
    else:
        rows = text.rows
    for column, percents in shares.items():
        index = text.header.index(column)
        for row in percents:
            rows[row][index] = f"{Decimal(rows[row][index]).scaleb(-2):f}"
    return replace(text, rows=rows)


def _with_numbers(
    text: TableText,
    columns: Sequence[str],
    meanings: Mapping[str, Feature],
    absent: Mapping[str, Collection[str]],
    decimal: str,
) -> tuple[TableText, list[Remark], dict[str, NumberForm]]:
    """Return the table with every number as Python writes it, notes on the cells that are not written so, and the forms of columns.

    A code keeps its signs, its spaces and its comma.
    """
    numbers = []
    for column in columns:
        entry = meanings.get(column)
        if entry is None or not (entry.categories or (_says_kind(entry) and entry.kind is not Kind.NUMERIC)):
            numbers.append(column)
    # Signs are there while marks are decided: 1.200 € says less about them than 1.200.
    marked = with_marks(text, numbers, decimal)
    text, forms, problems = with_plain_numbers(marked, numbers, absent)
    refuse(problems)
    text, commas = _with_points(text, numbers)
    notes = []
    for column, form in forms.items():
        old_cells = marked.cells(column)
        new_cells = text.cells(column)
        changed = [row for row, cell in enumerate(old_cells) if cell in form.numbers]
        example = {"cell": shown(old_cells[changed[0]]), "number": new_cells[changed[0]]}
        notes.append(Remark("numbers_in_another_form", {"n": len(changed), **example}, column=column))
        below = [row for row in changed if old_cells[row] in form.bracketed]
        if below:
            example = {"cell": shown(old_cells[below[0]]), "number": new_cells[below[0]]}
            notes.append(Remark("numbers_below_zero", {"n": len(below), **example}, column=column))
    for column, rows in commas.items():
        example = {"cell": shown(marked.cells(column)[rows[0]]), "number": text.cells(column)[rows[0]]}
        if marked.marks.decimal == ",":
            code = "numbers_with_commas"
        else:
            code = "numbers_with_thousands"
        notes.append(Remark(code, {"n": len(rows), **example}, column=column))
    return text, notes, forms


def _with_points(text: TableText, columns: Sequence[str]) -> tuple[TableText, dict[str, list[int]]]:
    """Return the table with a decimal point in every column of numbers, and the rows that were written otherwise: column → rows."""
    if text.marks == POINT:
        return text, {}
    rows = [list(row) for row in text.rows]
    problems: list[Remark] = []
    changed: dict[str, list[int]] = {}
    for column in columns:
        cells = text.cells(column)
        index = text.header.index(column)
        numbers = plain(cells, text.marks)
        filled = [row for row, cell in enumerate(cells) if like_a_number(cell)]
        if 2 * sum(numbers[row] is not None for row in filled) <= len([cell for cell in cells if cell]):
            continue  # dates, codes, words
        for row in filled:
            if (number := numbers[row]) is None:
                values = {"cell": shown(cells[row]), "file": text.name}
                problems.append(Remark("number_written_otherwise", values, text.lines[row], column))
            elif number != cells[row]:
                rows[row][index] = number
                changed.setdefault(column, []).append(row)
    refuse(problems)
    return replace(text, rows=rows, marks=POINT), changed


def _missing_of(entry: Feature | None) -> tuple[str, ...]:
    """Return the texts that a dictionary says are missing."""
    return () if entry is None else entry.missing


def _column_notes(text: TableText) -> list[Remark]:
    """Return notes on unusable columns: those with the name of another one, and those without a name."""
    notes = []
    repeated = repeated_columns(text.header)
    if repeated:
        notes.append(Remark("repeated_columns_not_used", {"columns": tuple(map(shown, repeated)), "n": len(repeated)}))
    unnamed = tuple(number for number, column in enumerate(text.header, start=1) if not column)
    if unnamed:
        notes.append(Remark("unnamed_columns_not_used", {"numbers": unnamed, "n": len(unnamed)}))
    return notes


def _cut_notes(features: Iterable[Feature | None]) -> list[Remark]:
    """Return a note on each meaning that was longer than it may be."""
    return [
        Remark("meaning_cut", {"limit": MAX_MEANING}, column=feature.name)
        for feature in features
        if feature is not None and feature.meaning_cut
    ]


def _to_fill_in(text: TableText, features: Iterable[Feature], label: Label) -> Iterator[Feature]:
    """The features with the codes that their cells hold, and the label."""
    for feature in features:
        codes = sorted({cell for cell in text.cells(feature.name) if cell} - set(feature.missing))
        is_complete = feature.kind is not Kind.CATEGORICAL or feature.categories
        yield (
            feature if is_complete else feature.model_copy(update={"categories": {code: Text(code) for code in codes}})
        )
    yield Feature(name=label.column, meaning=label.meaning, unit=label.unit)


def _party(
    name: str, id_column: str, features: Iterable[Feature], titles: Mapping[str, str] = MappingProxyType({})
) -> dict[str, object]:
    return {
        "name": name,
        "title": titles.get(name) or readable(name),
        "file": f"{name}.csv",
        "id": id_column,
        "features": [feature.model_dump(mode="json") for feature in features],
    }


def _column_problems(
    text: TableText, id_column: str | None, label: str, parties: Mapping[str, Sequence[str]], keep: Sequence[str]
) -> list[Remark]:
    """Return why a column is missing or does not belong to one party."""
    problems = []
    file = {"file": text.name, "columns": text.header}
    if len(parties) < 2:
        problems.append(Remark("no_host_given"))
    if id_column == label:
        problems.append(Remark("label_is_id_column", {"label": shown(label)}))
    if id_column is None and ROW_IDS in text.header:
        problems.append(Remark("row_number_column_taken", {"file": text.name, "name": ROW_IDS}))
    if id_column is not None and id_column not in text.header:
        problems.append(Remark("no_such_id_column", {**file, "name": shown(id_column)}))
    if label not in text.header:
        problems.append(Remark("no_such_label_column", {**file, "label": shown(label)}))
    holder: dict[str, str] = {}
    party_columns = [(party, column) for party, columns in parties.items() for column in columns]
    party_columns += [(GUEST, column) for column in keep]
    for party, columns in parties.items():
        if not columns:
            problems.append(Remark("party_without_columns", {"party": party}))
    for party, column in party_columns:
        of_party: dict[str, object] = {"party": party, "name": shown(column)}
        if column in (id_column, label):
            role = Remark("id_column" if column == id_column else "label_column")
            problems.append(Remark("party_column_has_other_role", {**of_party, "role": role}))
        elif column not in text.header:
            problems.append(Remark("party_column_missing", {**of_party, **file}))
        elif column in holder:
            problems.append(Remark("party_column_taken", {**of_party, "holder": holder[column]}))
        holder.setdefault(column, party)
    return problems


def _target_problems(out: Path, parties: Iterable[str]) -> list[Remark]:
    if out.exists() and not out.is_dir():
        return [Remark("file_in_place_of_folder", {"folder": out.name})]
    files = (FILE_NAME, TO_FILL_IN, *(f"{party}.csv" for party in parties))
    existing = tuple(file for file in files if (out / file).exists())
    if not existing:
        return []
    return [Remark("would_be_overwritten", {"folder": out.name, "files": existing})]


def _missing_texts(
    text: TableText, parties: Mapping[str, Sequence[str]], wished: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Feature → texts that were said to be missing in it; raises FederationError if no cell is written so."""
    missing: dict[str, list[str]] = {column: [] for columns in parties.values() for column in columns}
    problems = []
    for column, marks in wished.items():
        for mark in marks:
            holders = [name for name in missing if column in (name, EVERYWHERE) and mark in set(text.cells(name))]
            if not holders:
                values = {"file": text.name, "text": shown(mark), "name": shown(column)}
                problems.append(Remark("missing_text_not_found", values))
            for name in holders:
                missing[name].append(mark)
    refuse(problems)
    return missing


def _described(
    text: TableText,
    column: str,
    entry: Feature | None,
    missing: Sequence[str],
    form: NumberForm | None,
    days: Text | None,
) -> Feature:
    """Return a column's feature: the dictionary's, its kind by its cells if no row says it, with the texts that are missing in it.

    A sign in front of or behind its numbers is its unit; that of dates is `days`.
    """
    if entry is not None and _says_kind(entry):
        feature = entry
    else:
        absent = (*entry.missing, *missing) if entry else missing
        feature = guess(text, column, absent, numbers=form is not None)
        if entry is not None:
            feature = entry.model_copy(update={"kind": Kind.CATEGORICAL if entry.categories else feature.kind})
    data = feature.model_dump() | {"missing": tuple(dict.fromkeys((*feature.missing, *missing)))}
    if form is not None and form.sign:
        if feature.unit and not is_of_unit(form.sign, feature.unit.en, feature.unit.zh):
            where = {"file": text.name, "feature": shown(column), "sign": form.sign, "unit": feature.unit}
            refuse([Remark("sign_is_not_unit", where)])
        data["unit"] = feature.unit or Text(form.sign)
    if days is not None:
        data |= {"unit": days, "kind": Kind.NUMERIC}
    refuse(field_problems(text.name, Feature, data, (shown(column),)))
    return Feature.model_validate(data)


def _says_kind(entry: Feature) -> bool:
    """Return whether a dictionary names the kind, which may be left out as all but name and meaning."""
    return "kind" in entry.model_fields_set


def slug(name: str) -> str:
    """Return a short name from a file's name."""
    slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return (slug if slug[:1].isalpha() else f"t_{slug}".rstrip("_"))[:31]


def _write_csv(file: Path, columns: Mapping[str, Sequence[str]]) -> None:
    with os.fdopen(
        os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8", newline=""
    ) as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
