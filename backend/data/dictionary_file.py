"""A feature dictionary as a CSV file: one row a feature, as ``init --dictionary`` reads it.

Columns: name, meaning, meaning_zh, unit, unit_zh, kind, expected_direction, sensitivity, categories and categories_zh
(``code=label;code=label``), reason and reason_zh (the same, of above, below and either),
missing (``text;text``). Only name and meaning must be there. A meaning that is too long is cut, and the account of the table says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from backend.data.cells import csv_text, plain_cell
from backend.data.csv_file import TableText, read_csv, repeated_problems, shown
from backend.data.dictionary import Feature, cut
from backend.data.validation import field_problems, place
from backend.errors import FederationError
from backend.i18n import Text
from backend.remark import Remark

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
    "bounds",
)
NEEDED = ("name", "meaning")
PLAIN = ("name", "kind", "expected_direction", "sensitivity")
BILINGUAL = ("meaning", "unit")  # columns that may have a Chinese one, too
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
    """See :func:`read_dictionary`; of a table that was read."""
    problems = []
    for column in NEEDED:
        if column not in text.header:
            problems.append(Remark("dictionary_lacks_column", {"file": text.name, "name": column, "columns": COLUMNS}))
    for column in text.header:
        if column not in COLUMNS:
            unknown = {"file": text.name, "name": shown(column), "columns": COLUMNS}
            problems.append(Remark("dictionary_unknown_column", unknown))
    problems += repeated_problems(text, COLUMNS)
    if problems:
        raise FederationError(problems=problems)
    features: dict[str, Feature] = {}
    for index, line in enumerate(text.lines):
        if index in text.ragged:
            ragged = {"where": place(text.name, line), "found": text.ragged[index], "expected": len(text.header)}
            problems.append(Remark("dictionary_ragged_row", ragged))
            continue
        cells = {column: plain_cell(cell.strip()) for column, cell in zip(text.header, text.rows[index], strict=True)}
        entry, unread = _entry(text.name, line, cells)
        of_row = [*unread, *field_problems(text.name, Feature, entry, line=line)]
        if cells["name"] in features:
            repeated = {"where": place(text.name, line), "name": shown(cells["name"])}
            of_row.append(Remark("dictionary_repeats_feature", repeated))
        if not of_row:
            features[cells["name"]] = Feature.model_validate(entry)
        problems += of_row
    if problems:
        raise FederationError(problems=problems)
    return features


def features_from(entries: Mapping[str, Mapping[str, str]]) -> dict[str, Feature]:
    """Return features from a dictionary's cells by name; raise FederationError with every problem."""
    features: dict[str, Feature] = {}
    problems: list[Remark] = []
    for name, cells in entries.items():
        entry, unread = _entry(shown(name), 0, {**cells, "name": name})
        of_entry = [*unread, *field_problems(shown(name), Feature, entry)]
        problems += of_entry
        if not of_entry:
            features[name] = Feature.model_validate(entry)
    if problems:
        raise FederationError(problems=problems)
    return features


def cells_of(feature: Feature) -> dict[str, str]:
    """Return a dictionary's cells about a feature, without its name."""
    cells = {
        "kind": feature.kind.value,
        "expected_direction": feature.expected_direction.value,
        "sensitivity": feature.sensitivity,
        "missing": ";".join(text for text in feature.missing if ";" not in text),
        "bounds": ";".join(str(bound) for bound in feature.bounds or ()),
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


def _entry(file: str, line: int, cells: dict[str, str]) -> tuple[dict[str, object], list[Remark]]:
    """Return a row's cells as a feature's fields, and what cannot be read; empty cells leave the default."""
    entry: dict[str, object] = {}
    problems: list[Remark] = []
    for column in PLAIN:
        if cells.get(column):
            entry[column] = cells[column]
    for column in BILINGUAL:
        text = Text(cells.get(column, ""), cells.get(column + CHINESE, ""))
        if column == "meaning":
            text = Text(cut(text.en), cut(text.zh))
        if text:
            entry[column] = text
    for column in CODED:
        english, unread = _codes(place(file, line, [column]), cells.get(column, ""))
        problems += unread
        chinese, unread = _codes(place(file, line, [column + CHINESE]), cells.get(column + CHINESE, ""))
        problems += unread
        unknown = [code for code in chinese if column == "categories" and code not in english]
        if unknown:
            where = place(file, line, [column + CHINESE])
            expected = Remark("expected_listed_codes")
            problems.append(
                Remark("field_does_not_fit", {"where": where, "found": shown(unknown[0]), "expected": expected})
            )
        codes = {**english, **chinese}
        if codes:
            entry[column] = {code: Text(english.get(code, ""), chinese.get(code, "")) for code in codes}
    missing = [text.strip() for text in cells.get("missing", "").split(";") if text.strip()]
    if missing:
        entry["missing"] = missing
    if cells.get("bounds"):
        entry["bounds"] = [text.strip() for text in cells["bounds"].split(";")]
    return entry, problems


def _codes(where: str | Remark, cell: str) -> tuple[dict[str, str], list[Remark]]:
    """Return the meaning of each code, and the problems of what cannot be read."""
    categories: dict[str, str] = {}
    problems = []
    for part in filter(None, (part.strip() for part in cell.split(";"))):
        code, equals, label = (piece.strip() for piece in part.partition("="))
        if not equals or not code or not label:
            problems.append(Remark("no_code_and_label", {"where": where, "found": shown(part)}))
        elif code in categories:
            problems.append(Remark("code_repeated", {"where": where, "code_text": shown(code)}))
        categories[code] = label
    return categories, problems


def write_dictionary(features: Sequence[Feature], path: Path) -> None:
    """Write a dictionary to be filled in; codes of a feature are left out if one holds a separator: it could not be read back."""
    with path.open("w", encoding="utf-8", newline="") as target:
        rows = [{"name": feature.name} | cells_of(feature) for feature in features]
        target.write(csv_text([COLUMNS, *([row[column] for column in COLUMNS] for row in rows)]))
