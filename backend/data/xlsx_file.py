"""A sheet of an XLSX workbook as text: what its cells hold, never what a formula would give; its unpacked size is checked first."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from backend.data.csv_file import PACKED, Fault, FileLimits, TableText, check_header, shown
from backend.errors import AmbiguousFile, FederationError

if TYPE_CHECKING:
    from openpyxl import Workbook

MAX_PARTS = 1_000  # files inside the workbook
MAX_LINES = 1_048_576  # rows of a sheet, by Excel's own limit
EXACT = 10**15  # from here on Excel has rounded a number: it keeps 15 digits
PEEKED = 20  # rows that tell whether a sheet is empty
_CELL = re.compile(rb"<(?:\w+:)?c[\s/>]")


def parse_xlsx(name: str, data: bytes, limits: FileLimits, sheet: str = "") -> TableText:
    """Read one sheet; the only one with cells unless `sheet` names it.

    Raises
    ------
    AmbiguousFile
        Several sheets have cells, and none was named.
    FederationError
        It is no workbook, damaged, too large once unpacked, or the sheet is no table.
    """
    _check_packed(name, data, limits)
    try:
        import openpyxl  # noqa: PLC0415 - only who hands in a workbook needs it
    except ImportError:
        raise FederationError("openpyxl_missing", file=name) from None
    try:
        with warnings.catch_warnings():  # of styles and the like, which nobody reads here
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            title = _chosen_sheet(name, book, sheet, limits)
            formulas = _formulas(data, title, limits) if b"<f" in _all_sheets(data) else {}
            return _text(name, book[title].iter_rows, formulas, limits)
    except FederationError:
        raise
    except Exception as error:  # openpyxl raises whatever comes out of a damaged part
        raise FederationError("workbook_unreadable", file=name, reason=type(error).__name__) from error


def _check_packed(name: str, data: bytes, limits: FileLimits) -> None:
    """Raise FederationError where it is no workbook, or one that would unpack to too much."""
    max_bytes = limits.max_bytes * PACKED
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            parts = packed.infolist()
            unpacked = sum(part.file_size for part in parts)
            if len(parts) > MAX_PARTS:
                raise FederationError("too_many_parts", file=name, found=len(parts), limit=MAX_PARTS)
            if unpacked > max_bytes:
                raise FederationError("unpacks_too_large", file=name, found=unpacked / 1e6, limit=max_bytes / 1e6)
            if "[Content_Types].xml" not in packed.namelist() or not any(p.filename.startswith("xl/") for p in parts):
                raise FederationError("no_workbook", file=name)
            cells = 0
            for part in parts:
                if not part.filename.endswith((".xml", ".rels")):
                    continue
                text = packed.read(part)  # never more than the size that was checked
                if b"<!DOCTYPE" in text or b"<!ENTITY" in text or b"\0" in text[:64]:
                    raise FederationError("workbook_with_definitions", file=name)
                cells = max(cells, len(_CELL.findall(text)))
            if cells > limits.max_cells:
                raise FederationError("too_many_cells", file=name, found=cells, limit=limits.max_cells)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError, zlib.error):
        raise FederationError("workbook_damaged", file=name) from None


def _all_sheets(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return b"".join(packed.read(part) for part in packed.namelist() if part.startswith("xl/worksheets/"))


def _chosen_sheet(name: str, book: Workbook, sheet: str, limits: FileLimits) -> str:
    titles = [one.title for one in book.worksheets if one.sheet_state == "visible"]
    if sheet:
        if sheet not in titles:
            raise FederationError("no_such_sheet", file=name, sheet=shown(sheet), sheets=tuple(map(shown, titles)))
        return sheet
    filled = [title for title in titles if _first_rows(book[title], limits)]
    if len(filled) > 1:
        choices = {}
        for title in filled:
            choices[title] = tuple(" · ".join(row) for row in _first_rows(book[title], limits)[:3])
        sheets = tuple(map(shown, filled))
        raise AmbiguousFile("several_sheets", "sheet", choices, file=name, count=len(filled), sheets=sheets)
    if not filled:
        raise FederationError("workbook_empty", file=name)
    return filled[0]


def _first_rows(sheet: Any, limits: FileLimits) -> list[list[str]]:
    sheet.reset_dimensions()  # what a sheet says about its size may be wrong
    found = []
    for index, row in enumerate(sheet.iter_rows(max_col=min(12, limits.max_columns), values_only=True)):
        cells = [as_text(value) for value in row if value is not None]
        if cells:
            found.append(cells)
        if index >= PEEKED:
            break
    return found


def _formulas(data: bytes, title: str, limits: FileLimits) -> dict[tuple[int, int], str]:
    """Row and column, from 0, of each cell with a formula."""
    import openpyxl  # noqa: PLC0415 (as above)

    sheet = openpyxl.load_workbook(io.BytesIO(data), read_only=True)[title]
    sheet.reset_dimensions()
    return {
        (index, column): str(cell.value)[:40]
        for index, row in _bounded(sheet.iter_rows, limits)
        for column, cell in enumerate(row)
        if cell.data_type == "f"
    }


def _bounded(rows: Any, limits: FileLimits) -> Iterator[tuple[int, Any]]:
    """A sheet's rows with their places, from 0; no more and no wider ones than a table may have."""
    cells = 0
    for index, row in enumerate(rows(max_col=limits.max_columns + 1)):
        cells += len(row)
        if index >= MAX_LINES or cells > limits.max_cells + MAX_LINES:
            raise FederationError("sheet_too_large", rows=MAX_LINES, cells=limits.max_cells)
        yield index, row


def _text(name: str, rows: Any, formulas: dict[tuple[int, int], str], limits: FileLimits) -> TableText:
    """Header and rows with their cells as text."""
    header: tuple[str, ...] = ()
    found: list[list[str]] = []
    lines: list[int] = []
    ragged: dict[int, int] = {}
    faults: dict[int, tuple[Fault, ...]] = {}
    for index, row in _bounded(rows, limits):
        cells = [as_text(cell.value) for cell in row]
        while cells and not cells[-1] and (index, len(cells) - 1) not in formulas:
            cells.pop()
        if not cells:
            continue
        if not header:
            header = tuple(cells)
            check_header(name, header, limits)
            continue
        if len(found) == limits.max_rows:
            raise FederationError("too_many_rows", file=name, limit=limits.max_rows)
        if len(cells) > len(header):
            ragged[len(found)] = len(cells)
        for column, head in enumerate(header[: len(cells)]):
            if kind := _fault(row[column], (index, column) in formulas):
                shown_cell = formulas.get((index, column), "") if kind == "formula" else cells[column]
                faults[len(found)] = (*faults.get(len(found), ()), Fault(head, kind, shown_cell))
        found.append(cells[: len(header)] + [""] * (len(header) - len(cells)))
        lines.append(index + 1)
    if not header:
        raise FederationError("sheet_empty", file=name)
    return TableText(name, header, found, lines, ragged, faults)


def _fault(cell: Any, has_formula: bool) -> str:
    """Why a cell has no value that can be read; empty where it has one, or is empty."""
    value = cell.value
    if has_formula and value is None:
        return "formula"
    if cell.data_type == "e":
        return "error"
    rounded = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= EXACT
    return "rounded" if rounded else ""


def as_text(value: Any) -> str:
    """A cell's value as a CSV file would have it: no decimals where there are none, ISO dates, true and false."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    return value.isoformat() if isinstance(value, date | time) else str(value).strip()
