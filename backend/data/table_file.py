"""A table that a user hands in, whatever its form: CSV, XLSX or Parquet. The command line and the pages read it here alone.

If a file can be read in several ways (encoding, decimals, which sheet), the user is asked; nothing is guessed.
"""

from __future__ import annotations

import re
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from backend.data.csv_file import (
    TABLE,
    UTF_8,
    FileLimits,
    TableText,
    first_csv_rows,
    header_choices,
    parse_csv,
    shown,
    title_above_header,
    too_many_bytes,
)
from backend.data.decimal_mark import chosen, decided, plain
from backend.data.id_forms import AS_WRITTEN
from backend.data.missing import looks_missing
from backend.data.number_forms import NumberForm, number_form, written_number
from backend.errors import AmbiguousFile, FederationError, ParameterError
from backend.remark import Remark

# as offered: Python's, which reads what Excel adds to it
ENCODINGS = {"utf-16": "utf-16", "gbk": "gb18030", "latin-1": "cp1252"}
DECIMALS = {"point": ".", "comma": ","}
SUFFIXES = ("csv", "tsv", "txt", "xlsx", "parquet")
SHOWN_LINES = 3
SHOWN_LETTERS = 160
FOREIGN = re.compile(r"[^\x00-\x7f]")  # letters that tell encodings apart
JUDGED_LETTERS = 10_000  # letters, or bytes, from which an encoding is judged
HEADER = re.compile(r"[1-9]\d{0,3}", re.ASCII)  # the number of a row
ZIP = b"PK\x03\x04"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PARQUET = b"PAR1"


@dataclass(frozen=True, slots=True)
class Reading:
    """A user's answers about a file that leaves them open; empty if none were given.

    Attributes
    ----------
    encoding : str
        One of :data:`ENCODINGS`, of a CSV file that is not UTF-8.
    decimal : str
        One of :data:`DECIMALS`.
    sheet : str
        A workbook's sheet.
    header : str
        The number of the row that has the columns' names, if a title stands above it.
    ids : str
        ``as-written``: the ids of a sheet of samples are meant as they are, whatever the Guest knows.
    """

    encoding: str = ""
    decimal: str = ""
    sheet: str = ""
    header: str = ""
    ids: str = ""

    def __post_init__(self) -> None:
        answers = (
            ("encoding", self.encoding, tuple(ENCODINGS)),
            ("decimal", self.decimal, tuple(DECIMALS)),
            ("ids", self.ids, (AS_WRITTEN,)),
        )
        for what, value, choices in answers:
            if value and value not in choices:
                raise ParameterError("unknown_reading", what=what, value=shown(value), choices=tuple(choices))
        if self.header and not HEADER.fullmatch(self.header):
            raise ParameterError("header_not_a_row", value=shown(self.header))


AS_IT_IS = Reading()


def read_table_file(
    source: bytes | Path, name: str = "", how: Reading = AS_IT_IS, limits: FileLimits = TABLE
) -> TableText:
    """Read a table from its bytes or its file.

    Parameters
    ----------
    name : str
        Its name in problems; empty = a path's own name.

    Raises
    ------
    AmbiguousFile
        The encoding is not UTF-8 and was not named, several sheets have cells and none was named, or a title stands above the header.
    FederationError
        It is absent, too large, damaged or no table.
    """
    if isinstance(source, Path):
        name = name or source.name
        source = _bytes_of(source, limits)
    if len(source) > limits.max_bytes:
        raise too_many_bytes(name, limits)
    if source.startswith(ZIP):
        from backend.data.xlsx_file import parse_xlsx  # noqa: PLC0415 - seldom needed

        return parse_xlsx(name, source, limits, how.sheet, int(how.header or 0))
    if source.startswith(PARQUET):
        from backend.data.parquet_file import parse_parquet  # noqa: PLC0415 - slow to import

        return parse_parquet(name, source, limits)
    if source.startswith(OLE):
        raise FederationError("old_workbook", file=name)
    if not how.encoding and not _is_utf8(source):
        if b"\0" in source and not _may_be_utf16(source):
            line = source.count(b"\n", 0, source.index(b"\0")) + 1
            raise FederationError("zero_byte_in_text", file=name, line=line)
        raise _unclear_encoding(name, source)
    if how.encoding:
        encoding = codec_of(how.encoding, source)
    else:
        encoding = UTF_8
    if not how.header:
        choices = header_choices(first_csv_rows(source, encoding))
        if choices:
            raise title_above_header(name, choices)
    return parse_csv(name, source, limits, encoding, int(how.header or 1))


def with_marks(text: TableText, columns: Iterable[str], decimal: str = "") -> TableText:
    """Return the table with how its numbers are written: as was said, else as the cells of `columns` prove together.

    Raises
    ------
    AmbiguousFile
        They prove neither a decimal point nor a decimal comma, or both.
    """
    if decimal:
        return replace(text, marks=chosen(DECIMALS[decimal]))
    cells = (cell for column in columns for cell in dict.fromkeys(text.cells(column)))
    decision = decided(cells, semicolons=text.separator == ";")
    if not isinstance(decision, tuple):
        return replace(text, marks=decision)
    raise unclear_decimals(text.name, {cell: row_of_cell(text, cell) for cell in decision})


def with_plain_numbers(
    text: TableText, columns: Iterable[str], absent: Mapping[str, Collection[str]] | None = None
) -> tuple[TableText, dict[str, NumberForm], list[Remark]]:
    """Return the table with numbers that have neither signs nor spaces nor brackets; decimal marks stay.

    Parameters
    ----------
    absent : mapping of str to collection of str, optional
        Column → texts that mean a missing value in it.

    Returns
    -------
    TableText
    dict of str to NumberForm
        Column → how its numbers are written; only columns whose numbers were not plain.
    list of Remark
        A problem for each column whose numbers have several signs, by their lines.
    """
    rows = text.rows
    forms = {}
    problems = []
    for column in columns:
        cells = text.cells(column)
        counts = Counter(cell for cell in cells if cell and not looks_missing(cell))
        for mark in (absent or {}).get(column, ()):
            counts.pop(mark, None)
        form = number_form(counts)
        if isinstance(form, tuple):
            examples = text.located({cells.index(cell): cell for cell in form})
            values = {"file": text.name, "feature": shown(column), "cells": examples}
            problems.append(Remark("number_signs_differ", values))
        elif form is not None:
            if rows is text.rows:
                rows = [list(row) for row in text.rows]
            forms[column] = form
            index = text.header.index(column)
            for row, cell in enumerate(cells):
                if cell in form.numbers:
                    rows[row][index] = form.numbers[cell]
    return replace(text, rows=rows), forms, problems


def unclear_decimals(name: str, rows: Mapping[str, int]) -> AmbiguousFile:
    """Return the question how decimals are written, by the one or two cells that leave it open and their rows."""
    cells = tuple(rows)
    choices = {}
    for mark, letter in DECIMALS.items():
        lines = []
        for cell in cells:
            number = written_number(cell)
            text = cell if number is None else number.text
            lines.append(f"{cell} → {plain([text], chosen(letter))[0] or '?'}")
        choices[mark] = tuple(lines)
    if len(cells) == 2:
        examples = tuple(Remark("cell_in_row", {"cell": shown(cell), "row": row}) for cell, row in rows.items())
        return AmbiguousFile("decimal_marks_differ", "decimal", choices, file=name, cells=examples)
    cell = cells[0]
    return AmbiguousFile("decimal_mark_unclear", "decimal", choices, file=name, row=rows[cell], cell=shown(cell))


def row_of_cell(text: TableText, cell: str) -> int:
    """Return the line of the first row that has a cell."""
    return next(line for line, row in zip(text.lines, text.rows, strict=True) if cell in row)


def _bytes_of(path: Path, limits: FileLimits) -> bytes:
    """Return a regular file's bytes, one more than is allowed at most."""
    with opened(path) as file:
        try:
            return file.read(limits.max_bytes + 1)
        except OSError as error:
            raise _unreadable(path, error) from None


def opened(path: Path) -> BinaryIO:
    """Return a regular file, open to be read; raises FederationError if it is absent or cannot be."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would keep us waiting
            raise FederationError("no_regular_file", file=path.name)
        return path.open("rb")
    except FileNotFoundError:
        raise FederationError("no_such_table", file=path.name, folder=str(path.absolute().parent)) from None
    except (OSError, ValueError) as error:  # ValueError: a name with a zero character
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> FederationError:
    reason = getattr(error, "strerror", None) or error
    return FederationError("table_unreadable", file=path.name, reason=str(reason))


def codec_of(encoding: str, start: bytes) -> str:
    """Return Python's name for an encoding. `start` shows the byte order of UTF-16 without a mark: a Latin letter has its zero first."""
    codec = ENCODINGS[encoding]
    judged = start[:JUDGED_LETTERS]
    if encoding == "utf-16" and not judged.startswith((BOM_UTF16_BE, BOM_UTF16_LE)):
        if judged[::2].count(0) > judged[1::2].count(0):
            return f"{codec}-be"
        return f"{codec}-le"
    return codec


def _is_utf8(data: bytes) -> bool:
    """Return whether bytes are text in UTF-8. No table holds a zero byte; UTF-16 is full of them."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _may_be_utf16(data: bytes) -> bool:
    """Return whether bytes with a zero are likely UTF-16: every second byte of Latin letters, commas and line ends is zero there."""
    if data.startswith((BOM_UTF16_BE, BOM_UTF16_LE)):
        return True
    judged = data[:JUDGED_LETTERS]
    if 5 * judged.count(0) < len(judged) and _is_utf8(data.replace(b"\0", b"")):
        return False
    try:
        text = data.decode(codec_of("utf-16", data))
    except UnicodeDecodeError:
        return False
    return "\n" in text or "\r" in text


def _unclear_encoding(name: str, data: bytes) -> FederationError:
    """Return what some lines would say in each encoding that fits all bytes, the most plausible one first."""
    texts: dict[str, str] = {}
    for encoding in ENCODINGS:
        try:
            text = data.decode(codec_of(encoding, data))
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            texts[encoding] = text
    likely = sorted(texts, key=lambda encoding: _plausible(encoding, texts[encoding]), reverse=True)
    choices = {encoding: _telling_lines(texts[encoding]) for encoding in likely}
    if not choices:
        return FederationError("no_known_encoding", file=name)
    lines = "; ".join(f"{encoding}: {lines[-1]}" for encoding, lines in choices.items())
    return AmbiguousFile("encoding_unclear", "encoding", choices, file=name, encodings=tuple(choices), lines=lines)


def _plausible(encoding: str, text: str) -> float:
    """Return how much of a decoded table's text looks written rather than misread, 0..1: it orders what is asked and decides nothing."""
    if encoding == "utf-16":  # of single bytes misread in pairs no line end is left
        return 1.0 if "\n" in text or "\r" in text else 0.0
    foreign = {match.start() for match in islice(FOREIGN.finditer(text), JUDGED_LETTERS)}
    if encoding == "gbk":
        good = sum(_common(text[place]) for place in foreign)
    else:  # accented letters stand alone; Chinese read as Latin-1 comes in pairs of them
        good = sum(not {place - 1, place + 1} & foreign for place in foreign)
    return good / max(1, len(foreign))


def _common(letter: str) -> bool:
    """Return whether it is one of GB/T 2312's marks or of its 3,755 most used characters (rows 1 to 3 and 16 to 55)."""
    try:
        row = letter.encode("gb2312")[0] - 0xA0
    except UnicodeEncodeError:
        return False
    return row <= 3 or 16 <= row <= 55


def _telling_lines(text: str) -> tuple[str, ...]:
    """Return the first lines in which encodings differ, filled up with others; in their order."""
    lines = [line for line in text.splitlines() if line.strip()]
    telling = [index for index, line in enumerate(lines) if not line.isascii()][:SHOWN_LINES]
    more = [index for index in range(min(len(lines), 2 * SHOWN_LINES)) if index not in telling]
    indices = sorted([*telling, *more[: SHOWN_LINES - len(telling)]])
    return tuple(
        "".join(letter if letter.isprintable() else " " for letter in lines[index][:SHOWN_LETTERS]) for index in indices
    )
