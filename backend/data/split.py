"""Splits one table into parties' files and a federation file, so that a federation can be simulated from any table.

What the table does not say is guessed and said to be guessed: a feature without a dictionary entry gets its column's
name as meaning with ``(no meaning given)``, its kind comes from its cells. Columns of nobody are left out; the
federation's ``about`` lists them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from backend.data.csv_file import BOOLEANS, CsvText, is_missing, listed, read_csv, shown, to_column
from backend.data.dictionary import Feature, Kind
from backend.data.dictionary_file import read_dictionary
from backend.data.federation import FILE_NAME, Federation, Party, capped, load_federation, write_federation
from backend.data.party_file import read_party_file
from backend.data.validation import sentences
from backend.errors import FederationError

GUEST = "guest"  # the Guest's name in a federation made from one table
MOST_CODES = 100  # different texts up to which an undescribed column is taken for a categorical one
NO_MEANING = "(no meaning given)"
POSITIVE = ("1", "yes", "true")  # taken for the positive label where none is named, compared without case


def split_table(
    table: Path,
    *,
    id_column: str,
    label: str,
    positive: str | None,
    guest: Sequence[str],
    hosts: Mapping[str, Sequence[str]],
    dictionary: Path | None,
    out: Path,
    name: str | None = None,
    label_meaning: str | None = None,
) -> Federation:
    """Write one CSV file per party and ``federation.toml`` into `out`.

    Parameters
    ----------
    table : Path
        A CSV file with ids, label and every party's columns.
    id_column, label : str
    positive : str or None
        The label's cell text that means 1; None where the label is 0/1, no/yes or false/true.
    guest : sequence of str
        The Guest's columns.
    hosts : mapping of str to sequence of str
        Host name → its columns.
    dictionary : Path or None
        See `dictionary_file`; entries for columns that nobody holds are ignored, one for the label gives its meaning.
    out : Path
        Made where absent; files that are there already are never overwritten.
    name : str or None
        The federation's name; made from the table's where None.
    label_meaning : str or None
        What the positive label says about a person; None takes the dictionary's entry for the label, if there is one.

    Raises
    ------
    FederationError
        With every problem found: file, field, found, expected, what to do.
    """
    text = read_csv(table)
    meanings = read_dictionary(dictionary) if dictionary else {}
    parties = {GUEST: tuple(guest)} | {host: tuple(columns) for host, columns in hosts.items()}
    if GUEST in hosts:
        raise FederationError(f"hosts: found a Host called {GUEST!r}, which is the Guest's name here. Rename the Host.")
    problems = [
        problem for host in hosts for problem in sentences(f"hosts {shown(host)}", Party, _party(host, "id", []))
    ]
    problems += _column_problems(text, id_column, label, parties)
    _refuse(problems or _target_problems(out, parties))
    described = {
        column: meanings.get(column) or _guess(text, column) for columns in parties.values() for column in columns
    }
    chosen = positive if positive is not None else _positive(text, label)
    checked = read_party_file(table, id_column, tuple(described.values()), (label, chosen))
    _refuse([*checked.problems, *_code_problems(text, [described[c] for c in described if c not in meanings])])
    unused = [shown(column) for column in text.header if column not in {id_column, label, *described}]
    described_label = meanings[label].meaning if label in meanings else ""
    about = f"Made from the one table {table.name}; the parties are simulated."
    data = {
        "name": name if name is not None else _slug(table.stem),
        "title": _readable(table.stem),
        "about": about + (f" Columns of nobody: {listed(unused, 20)}." if unused else ""),
        "label": {
            "column": label,
            "positive": chosen,
            "meaning": label_meaning or described_label or f"{_readable(label)} is {chosen} {NO_MEANING}",
            "meaning_zh": meanings[label].meaning_zh if label in meanings else "",
        },
        "guest": _party(GUEST, id_column, [described[column] for column in guest]),
        "hosts": [
            _party(host, id_column, [described[column] for column in columns]) for host, columns in hosts.items()
        ],
    }
    _refuse(sentences(FILE_NAME, Federation, data))
    out.mkdir(parents=True, exist_ok=True)
    for party, columns in parties.items():
        _write_csv(out / f"{party}.csv", text, (id_column, *columns, *((label,) if party == GUEST else ())))
    write_federation(Federation.model_validate(data), out)
    return load_federation(out)


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise FederationError(capped(problems))


def _party(name: str, id_column: str, features: Iterable[Feature]) -> dict[str, object]:
    return {
        "name": name,
        "title": _readable(name),
        "file": f"{name}.csv",
        "id": id_column,
        "features": [feature.model_dump(mode="json") for feature in features],
    }


def _column_problems(text: CsvText, id_column: str, label: str, parties: Mapping[str, Sequence[str]]) -> list[str]:
    """Whether every column is there and belongs to one party."""
    problems = []
    if len(parties) < 2:
        problems.append("hosts: found no Host, expected at least one. Give one as --host name=COLUMN,COLUMN.")
    if id_column == label:
        problems.append(
            f"label: found {shown(label)}, which is the id column too. Name the column that holds the outcome."
        )
    if id_column not in text.header:
        problems.append(
            f"{text.name}: there is no id column {shown(id_column)}; the table has {listed(text.header, 12)}. "
            "Name the column that tells the rows apart, or add one that numbers them."
        )
    if label not in text.header:
        problems.append(
            f"{text.name}: there is no label column {shown(label)}; the table has {listed(text.header, 12)}. "
            "Name the column that holds the outcome."
        )
    holder: dict[str, str] = {}
    for party, columns in parties.items():
        if not columns:
            problems.append(
                f"{party}: found no columns, expected at least one. Name its columns or leave the party out."
            )
        for column in columns:
            if column in (id_column, label):
                role = "the id column" if column == id_column else "the label"
                problems.append(
                    f"{party}: found {shown(column)}, which is {role}; every party's ids are added. Leave it out."
                )
            elif column not in text.header:
                problems.append(
                    f"{party}: found {shown(column)}, which {text.name} does not have; it has "
                    f"{listed(text.header, 12)}. "
                    "Correct the name."
                )
            elif column in holder:
                problems.append(
                    f"{party}: found {shown(column)}, which {holder[column]} holds already; expected every column at "
                    "one "
                    "party. Leave it out at one of them."
                )
            holder.setdefault(column, party)
    return problems


def _target_problems(out: Path, parties: Iterable[str]) -> list[str]:
    if out.exists() and not out.is_dir():
        return [f"{out.name}: found a file, expected a folder to write into. Choose another place."]
    there = [file for file in (FILE_NAME, *(f"{party}.csv" for party in parties)) if (out / file).exists()]
    if not there:
        return []
    return [f"{out.name}: found {listed(there)}, which would be overwritten. Choose another folder or delete them."]


def _guess(text: CsvText, column: str) -> Feature:
    """A feature for a column that no dictionary describes: yes/no, numbers or codes, by its cells."""
    cells = text.cells(column)
    values = {cell.casefold() for cell in set(cells) if not is_missing(cell)}
    meaning = f"{_readable(column)} {NO_MEANING}"[:500]
    if len(values) == 2 and values <= BOOLEANS.keys():
        kind = Kind.BOOLEAN
    else:
        unread = to_column(cells, Feature(name="as numbers", meaning=meaning, kind=Kind.NUMERIC))[1]
        kind = Kind.CATEGORICAL if unread else Kind.NUMERIC
    return Feature.model_construct(name=column, meaning=meaning, kind=kind)


def _code_problems(text: CsvText, guessed: Iterable[Feature]) -> list[str]:
    """Columns taken for codes that hold too many different texts to be codes."""
    problems = []
    for feature in guessed:
        codes = {cell: None for cell in text.cells(feature.name) if not is_missing(cell)}
        if feature.kind is Kind.CATEGORICAL and len(codes) > MOST_CODES:
            unread = to_column(text.cells(feature.name), feature.model_copy(update={"kind": Kind.NUMERIC}))[1]
            row, cell = next(iter(unread.items()))
            problems.append(
                f"{text.name}, column {shown(feature.name)}: found {len(codes)} different texts, expected numbers or "
                "at most "
                f"{MOST_CODES} codes. Leave the column out, or correct {shown(cell)} on line {text.lines[row]} if it "
                "holds "
                "numbers, or describe it in a dictionary."
            )
    return problems


def _positive(text: CsvText, label: str) -> str:
    """The one cell text of the label that plainly means 1."""
    values = sorted({cell for cell in text.cells(label) if not is_missing(cell)})
    plain = [value for value in values if value.casefold() in POSITIVE]
    if len(plain) != 1:
        raise FederationError(
            f"{text.name}, column {shown(label)} (label): found {listed([shown(value) for value in values], 5)}; "
            "which value "
            "is the positive one cannot be told. Name it with --positive."
        )
    return plain[0]


def _readable(name: str) -> str:
    """A column's or file's name as words: ``LIMIT_BAL`` → ``Limit bal``, ``paidOnTime`` → ``Paid on time``."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", name).strip() or name
    words = [
        word if word.isupper() and len(word) < 4 and not name.isupper() else word.lower() for word in spaced.split()
    ]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def _slug(name: str) -> str:
    """A short name from a file's name."""
    slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return (slug if slug[:1].isalpha() else f"t_{slug}".rstrip("_"))[:31]


def _write_csv(file: Path, text: CsvText, columns: Sequence[str]) -> None:
    cells = [text.cells(column) for column in columns]
    with file.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*cells, strict=True))
