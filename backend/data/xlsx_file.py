"""A sheet of an XLSX workbook as text: what its cells hold, never what a formula would give; its unpacked size is checked first."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from backend.data.cells import has_invisible, visible
from backend.data.csv_file import (
    PACKED,
    PEEKED,
    Fault,
    FileLimits,
    TableText,
    check_header,
    header_choices,
    invisible_note,
    shown,
    title_above_header,
)
from backend.errors import AmbiguousFile, FederationError
from backend.remark import Remark

if TYPE_CHECKING:
    from openpyxl import Workbook

MAX_PARTS = 1_000  # files inside the workbook
MAX_LINES = 1_048_576  # rows of a sheet, by Excel's own limit
EXACT = 10**15  # from here on Excel has rounded a number: it keeps 15 digits
MAX_SHEETS = 200
MAX_MERGED = 10_000  # areas of merged cells in a sheet
MAX_DENSITY = 100  # bytes unpacked for one packed; a sheet that repeats one row has some 40
DENSE_FROM = 50_000_000  # bytes unpacked, from where on the density counts
PIECE_BYTES = 1 << 20  # bytes of a part that are looked at together
OVERLAP = 128  # bytes of a piece that are looked at with the next, too
_CELL = re.compile(rb"<(?:\w{1,20}:)?c[\s/>]")
_MERGED = re.compile(
    rb"<(?:\w{1,20}:)?mergeCell\s[^>]{0,40}?ref=[\"']([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})[\"']", re.ASCII
)
_SHEET = re.compile(rb"<(?:\w{1,20}:)?sheet[\s/>]")


def parse_xlsx(name: str, data: bytes, limits: FileLimits, sheet: str = "", header_row: int = 0) -> TableText:
    """Read one sheet; the only one with cells unless `sheet` names it.

    Cells that are merged have the value of the first of them, as a person sees it; above the header only downwards. `header_row` is 0
    if nobody said in which row the columns' names are.

    Raises
    ------
    AmbiguousFile
        Several sheets have cells, and none was named; or a title stands above the header.
    FederationError
        It is no workbook, damaged, too large once unpacked, or the sheet is no table.
    """
    has_formulas = _check_packed(name, data, limits)
    try:
        import openpyxl  # noqa: PLC0415 - only who hands in a workbook needs it
    except ImportError:
        raise FederationError("openpyxl_missing", file=name) from None
    try:
        with warnings.catch_warnings():  # of styles and the like, which are not read here
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            title = _chosen_sheet(name, book, sheet, limits)
            if has_formulas:
                formulas = _formulas(data, title, limits)
            else:
                formulas = {}
            merged = _merged(data, book[title], limits)
            if not header_row:
                rows = _first_rows(book[title], limits)
                fill = _Filled(merged)
                for number, cells in rows:
                    fill(number - 1, cells, across=False)
                choices = header_choices(rows)
                if choices:
                    raise title_above_header(name, choices)
            book[title].reset_dimensions()  # what a sheet says about its size may be wrong
            return _text(name, book[title].iter_rows, formulas, merged, limits, header_row)
    except FederationError:
        raise
    except Exception as error:  # openpyxl raises whatever comes out of a damaged part
        raise FederationError("workbook_unreadable", file=name, reason=type(error).__name__) from error


def _check_packed(name: str, data: bytes, limits: FileLimits) -> bool:
    """Return whether a sheet has formulas; raise FederationError if it is not a workbook, or one that would unpack to too much.

    Parts are read a piece at a time, so that no more of them is in memory than a piece.
    """
    max_bytes = limits.max_bytes * PACKED
    formulas = False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            parts = packed.infolist()
            unpacked = sum(part.file_size for part in parts)
            if len(parts) > MAX_PARTS:
                raise FederationError("too_many_parts", file=name, found=len(parts), limit=MAX_PARTS)
            if unpacked > max_bytes:
                raise FederationError("unpacks_too_large", file=name, found=unpacked / 1e6, limit=max_bytes / 1e6)
            check_density(name, len(data), unpacked)
            if "[Content_Types].xml" not in packed.namelist() or not any(p.filename.startswith("xl/") for p in parts):
                raise FederationError("no_workbook", file=name)
            for part in parts:
                if part.filename.endswith((".xml", ".rels")):
                    has_formulas = _check_part(name, packed, part, limits)
                    formulas = formulas or (has_formulas and part.filename.startswith("xl/worksheets/"))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError, zlib.error):
        raise FederationError("workbook_damaged", file=name) from None
    return formulas


def check_density(name: str, packed: int, unpacked: int) -> None:
    """Raise FederationError if a file unpacks to much more than any table does."""
    if unpacked > DENSE_FROM and unpacked > MAX_DENSITY * packed:
        raise FederationError("packed_too_densely", file=name, packed=packed / 1e6, found=unpacked / 1e6)


def _check_part(name: str, packed: zipfile.ZipFile, part: zipfile.ZipInfo, limits: FileLimits) -> bool:
    """Return whether a part of the workbook has formulas; raise FederationError if it holds what no workbook does, or too much."""
    cells = sheets = 0
    formulas = False
    tail = b""
    with packed.open(part) as file:
        while piece := file.read(PIECE_BYTES):
            text = tail + piece
            if b"<!DOCTYPE" in text or b"<!ENTITY" in text or (not tail and b"\0" in text[:64]):
                raise FederationError("workbook_with_definitions", file=name)
            # what starts in the tail was seen with the piece before
            cells += len(_CELL.findall(text)) - len(_CELL.findall(tail))
            sheets += len(_SHEET.findall(text)) - len(_SHEET.findall(tail))
            formulas = formulas or b"<f" in text
            if cells > limits.max_cells:
                raise FederationError("more_cells_than_allowed", file=name, limit=limits.max_cells)
            if sheets > MAX_SHEETS and part.filename == "xl/workbook.xml":
                raise FederationError("too_many_sheets", file=name, found=sheets, limit=MAX_SHEETS)
            tail = text[-OVERLAP:]
    return formulas


def _chosen_sheet(name: str, book: Workbook, sheet: str, limits: FileLimits) -> str:
    titles = []
    for worksheet in book.worksheets:
        if worksheet.sheet_state == "visible":
            titles.append(worksheet.title)
    if sheet:
        if sheet not in titles:
            raise FederationError("no_such_sheet", file=name, sheet=shown(sheet), sheets=tuple(map(shown, titles)))
        return sheet
    filled = [title for title in titles if _first_rows(book[title], limits)]
    if len(filled) > 1:
        choices = {}
        for title in filled:
            rows = _first_rows(book[title], limits)[:3]
            choices[title] = tuple(" · ".join(cell for cell in cells if cell) for _, cells in rows)
        sheets = tuple(map(shown, filled))
        raise AmbiguousFile("several_sheets", "sheet", choices, file=name, count=len(filled), sheets=sheets)
    if not filled:
        raise FederationError("workbook_empty", file=name)
    return filled[0]


def _first_rows(sheet: Any, limits: FileLimits) -> list[tuple[int, list[str]]]:
    """Return the first rows that have a cell: number of the row, from 1, and its first cells."""
    sheet.reset_dimensions()  # what a sheet says about its size may be wrong
    first_rows = []
    for index, row in enumerate(sheet.iter_rows(max_col=min(12, limits.max_columns), values_only=True)):
        cells = [as_text(value) for value in row]
        if any(cells):
            first_rows.append((index + 1, cells))
        if index >= PEEKED:
            break
    return first_rows


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
    for index, row in enumerate(rows()):
        cells += len(row)
        if len(row) > limits.max_columns and any(cell.value is not None for cell in row[limits.max_columns :]):
            raise FederationError("sheet_too_wide", columns=limits.max_columns, row=index + 1)
        if index >= MAX_LINES or cells > limits.max_cells + MAX_LINES:
            raise FederationError("sheet_too_large", rows=MAX_LINES, cells=limits.max_cells)
        yield index, row


@dataclass(frozen=True, slots=True)
class _Merged:
    """Cells of a sheet that are merged into one: rows and columns from 0, the last ones too."""

    top: int
    left: int
    bottom: int
    right: int


def _merged(data: bytes, sheet: Any, limits: FileLimits) -> dict[int, dict[_Merged, None]]:
    """Return which cells are merged, by their first row; what a sheet lists behind its rows."""
    from openpyxl.utils import column_index_from_string  # noqa: PLC0415 (as above)

    areas: dict[int, dict[_Merged, None]] = {}
    count = 0
    with zipfile.ZipFile(io.BytesIO(data)) as packed, packed.open(str(sheet._worksheet_path)) as file:
        tail = b""
        while piece := file.read(PIECE_BYTES):
            text = tail + piece
            for left, top, right, bottom in _MERGED.findall(text):
                first = _Merged(
                    int(top) - 1,
                    column_index_from_string(left.decode()) - 1,
                    int(bottom) - 1,
                    column_index_from_string(right.decode()) - 1,
                )
                beside_table = first.left >= limits.max_columns
                # What ends in the tail was found with the piece before.
                if not beside_table and first not in areas.setdefault(first.top, {}):
                    areas[first.top][first] = None
                    count += 1
            if count > MAX_MERGED:
                raise FederationError("too_many_merged_cells", file=sheet.title, limit=MAX_MERGED)
            tail = text[-OVERLAP:]
    return areas


class _Filled:
    """Gives the cells of a row that are merged with others the value of the first of them."""

    def __init__(self, merged: Mapping[int, Iterable[_Merged]]) -> None:
        self._merged = merged
        self._open: dict[int, tuple[_Merged, str]] = {}  # by the first column: merged cells do not overlap

    def __call__(self, index: int, cells: list[str], *, across: bool) -> int:
        """Fill the cells of row `index` in place, sideways only if `across`; return how many were filled."""
        for area in self._merged.get(index, ()):
            self._open[area.left] = area, cells[area.left] if area.left < len(cells) else ""
        self._open = {left: (area, value) for left, (area, value) in self._open.items() if area.bottom >= index}
        filled = 0
        for area, value in self._open.values():
            cells += [""] * (area.left + 1 - len(cells))
            for column in range(area.left, min(area.right if across else area.left, len(cells) - 1) + 1):
                if value and not cells[column]:
                    cells[column] = value
                    filled += 1
        return filled


def _text(
    name: str,
    rows: Any,
    formulas: dict[tuple[int, int], str],
    merged: Mapping[int, Iterable[_Merged]],
    limits: FileLimits,
    header_row: int,
) -> TableText:
    """Header and rows with their cells as text."""
    fill = _Filled(merged)
    filled = 0
    cleaned = 0
    header: tuple[str, ...] = ()
    table_rows: list[list[str]] = []
    lines: list[int] = []
    ragged: dict[int, int] = {}
    faults: dict[int, tuple[Fault, ...]] = {}
    for index, row in _bounded(rows, limits):
        cells = [as_text(cell.value) for cell in row]
        if any(isinstance(cell.value, str) and has_invisible(cell.value) for cell in row):
            cleaned += 1
        if merged and header:
            cells += [""] * (len(header) - len(cells))
        filled += fill(index, cells, across=bool(header)) * bool(header)
        while cells and not cells[-1] and (index, len(cells) - 1) not in formulas:
            cells.pop()
        if not cells:
            continue
        if not header:
            if index + 1 < header_row:
                continue
            header = tuple(cells)
            check_header(name, header, limits)
            continue
        if len(table_rows) == limits.max_rows:
            raise FederationError("too_many_rows", file=name, limit=limits.max_rows)
        if len(cells) > len(header):
            ragged[len(table_rows)] = len(cells)
        # A cell that got its value from another one is not the row's own.
        for column, head in enumerate(header[: min(len(cells), len(row))]):
            if kind := _fault(row[column], (index, column) in formulas):
                shown_cell = formulas.get((index, column), "") if kind == "formula" else cells[column]
                faults[len(table_rows)] = (*faults.get(len(table_rows), ()), Fault(head, kind, shown_cell))
        table_rows.append(cells[: len(header)] + [""] * (len(header) - len(cells)))
        lines.append(index + 1)
    if not header:
        raise FederationError("sheet_empty", file=name)
    notes = (Remark("merged_cells_filled", {"n": filled}),) if filled else ()
    return TableText(name, header, table_rows, lines, ragged, faults, notes=(*notes, *invisible_note(cleaned)))


def _fault(cell: Any, has_formula: bool) -> str:
    """Return why a cell has no value that can be read; empty if it has one, or is empty."""
    value = cell.value
    if has_formula and value is None:
        return "formula"
    if cell.data_type == "e":
        return "error"
    rounded = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= EXACT
    return "rounded" if rounded else ""


def as_text(value: Any) -> str:
    """Return a cell's value as a CSV file would have it: no decimals if there are none, ISO dates, true and false."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    return value.isoformat() if isinstance(value, date | time) else visible(str(value)).strip()
