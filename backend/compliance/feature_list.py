"""A list of columns as a bank has one before any federation exists: names, meanings, units and codes from a CSV file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from backend.data.csv_file import TableText, read_csv, shown
from backend.data.dictionary import Feature, Kind
from backend.errors import GlassleafError, RulePackError
from backend.i18n import NO_MEANING, Text

COLUMNS = ("name", "meaning", "meaning_zh", "unit", "codes")
_CODE = re.compile(r"^\s*([^:=：]{1,40}?)\s*[:=：]\s*(.+)$")
_PIECES = re.compile(r"[;；\n]")
_NEXT_CODE = re.compile(r"[,，](?=\s*[^:=：,，\s]{1,12}\s*[:=：])")  # a comma that a code follows
_COMMAS = re.compile("[,，、]")


@dataclass(frozen=True, slots=True)
class ListedFeature:
    """One column of a list: the line it stands on, the feature, and its cells in further columns."""

    line: int
    feature: Feature
    more: dict[str, str]


def read_feature_list(file: Path, more: Sequence[str] = (), may: Sequence[str] = ()) -> tuple[ListedFeature, ...]:
    """Read a list with the columns name, meaning, meaning_zh, unit and codes; all but the name may be absent.

    Codes are written as ``1: Married; 2: Single`` or ``{1: Married, 2: Single}``; what has no colon is a code's text alone.

    Parameters
    ----------
    more, may : sequence of str
        Columns that have to be there besides, and that may be.

    Raises
    ------
    RulePackError
        With every problem: line, found, what to do.
    """
    try:
        table = read_csv(file)
    except GlassleafError as error:
        raise RulePackError(str(error)) from None
    header = [name.strip().casefold() for name in table.header]
    missing = [name for name in ("name", *more) if name not in header]
    unknown = [name for name in header if name not in (*COLUMNS, *more, *may)]
    if missing:
        raise RulePackError(f"{table.name}: found no column {missing[0]!r} in {shown(', '.join(header))}. Add it.")
    if unknown:
        expected = ", ".join((*COLUMNS, *more))
        raise RulePackError(
            f"{table.name}: found the column {shown(unknown[0])}, expected {expected}. Rename or delete it."
        )
    if not table.rows:
        raise RulePackError(f"{table.name}: found a header and no row below it. Add a row a column of your table.")
    return _features(table, header, (*more, *may))


def _features(table: TableText, header: Sequence[str], more: Sequence[str]) -> tuple[ListedFeature, ...]:
    found, problems = [], []
    for line, cells in zip(table.lines, table.rows, strict=True):
        row = dict(zip(header, (*cells, *[""] * (len(header) - len(cells))), strict=True))
        name = row.get("name", "")
        if not name:
            problems.append(f"{table.name}, line {line}: found no name. Write the column's name.")
            continue
        codes = _codes(row.get("codes", ""))
        try:
            feature = Feature(
                name=name,
                meaning=Text(row.get("meaning") or f"{name} {NO_MEANING}", row.get("meaning_zh", "")),
                unit=row.get("unit", ""),
                kind=Kind.CATEGORICAL if codes else Kind.NUMERIC,
                categories=codes,
            )
        except ValidationError as error:
            first = error.errors()[0]
            where = str(first["loc"][0])
            problems.append(f"{table.name}, line {line}, {where}: found {shown(row.get(where, ''))}; {first['msg']}.")
            continue
        found.append(ListedFeature(line, feature, {column: row.get(column, "") for column in more}))
    if problems:
        raise RulePackError("\n".join(problems))
    return tuple(found)


def _codes(text: str) -> dict[str, str]:
    codes = {}
    inner = text.strip("{} ")
    between = _PIECES if _PIECES.search(inner) else _NEXT_CODE if _CODE.match(inner) else _COMMAS
    for index, part in enumerate(piece.strip() for piece in between.split(inner)):
        if part:
            match = _CODE.match(part)
            code, meaning = (match[1], match[2]) if match else (f"#{index + 1}", part)
            codes[code.strip("\"' ")] = meaning.strip("\"' ")
    return codes
