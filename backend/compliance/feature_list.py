"""A list of columns as a bank has one before any federation exists: names, meanings, units and codes from a CSV file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.data.csv_file import TableText, read_csv
from backend.data.dictionary import Feature, Kind, cut
from backend.data.validation import field_problems, place
from backend.errors import GlassleafError, RulePackError
from backend.i18n import NO_MEANING, Text
from backend.remark import Remark

LIST_COLUMNS = ("name", "meaning", "meaning_zh", "unit", "codes")
_CODE = re.compile(r"^\s*([^:=：]{1,40}?)\s*[:=：]\s*(.+)$")
_PIECES = re.compile(r"[;；\n]")
_NEXT_CODE = re.compile(r"[,，](?=\s*[^:=：,，\s]{1,12}\s*[:=：])")  # a comma that a code follows
_COMMAS = re.compile("[,，、]")


@dataclass(frozen=True, slots=True)
class ListedFeature:
    """One column of a list: its line, the feature, and its cells in further columns."""

    line: int
    feature: Feature
    more: dict[str, str]


def read_feature_list(file: Path, more: Sequence[str] = (), may: Sequence[str] = ()) -> tuple[ListedFeature, ...]:
    """Read a list with the columns name, meaning, meaning_zh, unit and codes; all but the name may be absent.

    Codes are written as ``1: Married; 2: Single`` or ``{1: Married, 2: Single}``; what has no colon is a code's text alone. A text that is
    too long is cut (:func:`backend.data.dictionary.cut`), and tabs and line breaks in it are spaces.

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
        raise RulePackError(problems=error.remarks) from None
    header = [name.strip().casefold() for name in table.header]
    missing = [name for name in ("name", *more) if name not in header]
    unknown = [name for name in header if name not in (*LIST_COLUMNS, *more, *may)]
    if missing:
        raise RulePackError("list_lacks_column", file=table.name, column=missing[0], header=tuple(header))
    if unknown:
        expected = (*LIST_COLUMNS, *more)
        raise RulePackError("list_unknown_column", file=table.name, column=unknown[0], expected=expected)
    if not table.rows:
        raise RulePackError("list_without_rows", file=table.name)
    return _features(table, header, (*more, *may))


def _features(table: TableText, header: Sequence[str], more: Sequence[str]) -> tuple[ListedFeature, ...]:
    features = []
    problems: list[Remark] = []
    for line, cells in zip(table.lines, table.rows, strict=True):
        row = dict(zip(header, (*cells, *[""] * (len(header) - len(cells))), strict=True))
        name = row.get("name", "")
        if not name:
            problems.append(Remark("list_row_without_name", {"where": place(table.name, line)}))
            continue
        codes = _codes(row.get("codes", ""))
        english = _in_one_line(row.get("meaning", ""))
        data = {
            "name": name,
            "meaning": Text(english or f"{name} {NO_MEANING}", _in_one_line(row.get("meaning_zh", ""))),
            "unit": row.get("unit", ""),
            "kind": Kind.CATEGORICAL if codes else Kind.NUMERIC,
            "categories": codes,
        }
        unfit = field_problems(table.name, Feature, data, line=line)
        problems += unfit
        if not unfit:
            more_cells = {column: row.get(column, "") for column in more}
            features.append(ListedFeature(line, Feature.model_validate(data), more_cells))
    if problems:
        raise RulePackError(problems=problems)
    return tuple(features)


def _in_one_line(text: str) -> str:
    """Return a text as long as a dictionary holds it, with single spaces."""
    return cut(" ".join(text.split()))


def _codes(text: str) -> dict[str, str]:
    codes = {}
    inner = text.strip("{} ")
    if _PIECES.search(inner):
        between = _PIECES
    elif _CODE.match(inner):
        between = _NEXT_CODE
    else:
        between = _COMMAS
    for index, part in enumerate(piece.strip() for piece in between.split(inner)):
        if part:
            match = _CODE.match(part)
            code, meaning = (match[1], match[2]) if match else (f"#{index + 1}", part)
            codes[code.strip("\"' ")] = _in_one_line(meaning.strip("\"' "))
    return codes
