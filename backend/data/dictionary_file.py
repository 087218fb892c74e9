"""A feature dictionary as a CSV file: one row a feature, as ``init --dictionary`` reads it.

Columns: name, meaning, meaning_zh, unit, unit_zh, kind, expected_direction, sensitivity, categories and categories_zh
(``code=label;code=label``), reason and reason_zh (the same, of above, below and either),
missing (``text;text``). Only name and meaning must be there.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from backend.data.csv_file import TableText, listed, read_csv, shown
from backend.data.dictionary import Feature
from backend.data.validation import sentences
from backend.errors import FederationError
from backend.i18n import Text

COLUMNS = (
    "name",
    "meaning",
    "meaning_zh",
    "unit",
    "unit_zh",
    "kind",
    "expected_direction",
    "sensitivity",
    "categories",
    "categories_zh",
    "reason",
    "reason_zh",
    "missing",
)
NEEDED = ("name", "meaning")
PLAIN = ("name", "kind", "expected_direction", "sensitivity")
BILINGUAL = ("meaning", "unit")  # columns with a Chinese one beside them
CODED = ("categories", "reason")  # the same, of code=label pairs
CHINESE = "_zh"  # ends the name of a Chinese column


def read_dictionary(path: Path) -> dict[str, Feature]:
    """Read a dictionary: feature name → feature, in the file's order.

    Raises
    ------
    FederationError
        With every problem: a missing or unknown column, a feature named twice, a field that is not usable.
    """
    return parse_dictionary(read_csv(path))


def parse_dictionary(text: TableText) -> dict[str, Feature]:
    """As :func:`read_dictionary`, of a table that was read."""
    problems = [
        f"{text.name}: there is no column {shown(column)}, expected {listed(COLUMNS)}. Add the column."
        for column in NEEDED
        if column not in text.header
    ]
    problems += [
        f"{text.name}: found an unknown column {shown(column)}, expected {listed(COLUMNS)}. Rename or delete it."
        for column in text.header
        if column not in COLUMNS
    ]
    if problems:
        raise FederationError(problems)
    features: dict[str, Feature] = {}
    for index, line in enumerate(text.lines):
        where = f"{text.name}, line {line}"
        if index in text.ragged:
            problems.append(
                f"{where}: found {text.ragged[index]} cells, expected {len(text.header)} as in the header. "
                "Put quotation marks around cells that hold the separator."
            )
            continue
        cells = {column: cell.strip() for column, cell in zip(text.header, text.rows[index], strict=True)}
        entry, unread = _entry(where, cells)
        found = [*unread, *sentences(where, Feature, entry)]
        if cells["name"] in features:
            found.append(
                f"{where}: found {shown(cells['name'])} a second time, expected every feature once. Delete one row."
            )
        if not found:
            features[cells["name"]] = Feature.model_validate(entry)
        problems += found
    if problems:
        raise FederationError(problems)
    return features


def features_from(entries: Mapping[str, Mapping[str, str]]) -> dict[str, Feature]:
    """Features from what a dictionary's cells say about each, beside its name; raises FederationError with every problem."""
    features: dict[str, Feature] = {}
    problems: list[str] = []
    for name, cells in entries.items():
        where = f"column {shown(name)}"
        entry, unread = _entry(where, {**cells, "name": name})
        found = [*unread, *sentences(where, Feature, entry)]
        problems += found
        if not found:
            features[name] = Feature.model_validate(entry)
    if problems:
        raise FederationError(problems)
    return features


def cells_of(feature: Feature) -> dict[str, str]:
    """What a dictionary's cells say about a feature, beside its name."""
    cells = {
        "kind": feature.kind.value,
        "expected_direction": feature.expected_direction.value,
        "sensitivity": feature.sensitivity,
        "missing": ";".join(text for text in feature.missing if ";" not in text),
    }
    for column in BILINGUAL:
        text = getattr(feature, column)
        cells[column] = text.en
        cells[column + CHINESE] = text.zh
    for column in CODED:
        texts = getattr(feature, column)
        cells[column] = _pairs({code: text.en for code, text in texts.items()})
        cells[column + CHINESE] = _pairs({code: text.zh for code, text in texts.items()})
    return {column: cells[column] for column in COLUMNS if column != "name"}


def _pairs(labels: Mapping[str, str]) -> str:
    """Return code=label pairs as a cell, without empty labels; nothing if one of them holds a separator."""
    if any(set(";=") & {*code, *label} for code, label in labels.items()):
        return ""
    return ";".join(f"{code}={label}" for code, label in labels.items() if label)


def _entry(where: str, cells: dict[str, str]) -> tuple[dict[str, object], list[str]]:
    """Return a row's cells as a feature's fields, and what cannot be read; empty cells leave the default."""
    entry: dict[str, object] = {}
    problems = []
    for column in PLAIN:
        if cells.get(column):
            entry[column] = cells[column]
    for column in BILINGUAL:
        text = Text(cells.get(column, ""), cells.get(column + CHINESE, ""))
        if text:
            entry[column] = text
    for column in CODED:
        english, unread = _codes(f"{where}, {column}", cells.get(column, ""))
        problems += unread
        chinese, unread = _codes(f"{where}, {column}{CHINESE}", cells.get(column + CHINESE, ""))
        problems += unread
        unknown = [code for code in chinese if column == "categories" and code not in english]
        if unknown:
            problems.append(
                f"{where}, {column}{CHINESE}: found {shown(unknown[0])}, expected codes that 'categories' has too. Correct it."
            )
        codes = {**english, **chinese}
        if codes:
            entry[column] = {code: Text(english.get(code, ""), chinese.get(code, "")) for code in codes}
    missing = [text.strip() for text in cells.get("missing", "").split(";") if text.strip()]
    if missing:
        entry["missing"] = missing
    return entry, problems


def _codes(where: str, cell: str) -> tuple[dict[str, str], list[str]]:
    """What codes stand for, and what cannot be read."""
    categories: dict[str, str] = {}
    problems = []
    for part in filter(None, (part.strip() for part in cell.split(";"))):
        code, equals, label = (piece.strip() for piece in part.partition("="))
        if not equals or not code or not label:
            problems.append(
                f"{where}: found {shown(part)}, expected code=label pairs between semicolons. Correct the pair."
            )
        elif code in categories:
            problems.append(f"{where}: found the code {shown(code)} twice, expected it once. Delete one.")
        categories[code] = label
    return categories, problems


def write_dictionary(features: Sequence[Feature], path: Path) -> None:
    """Write a dictionary to be filled in; codes of a feature are left out where one holds a separator, which none could read."""
    with path.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for feature in features:
            writer.writerow({"name": feature.name} | cells_of(feature))
