"""A Parquet file as text; its rows, columns and unpacked size are checked in its footer before any work."""

from __future__ import annotations

from collections.abc import Generator
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from backend.data.cells import has_invisible, visible
from backend.data.csv_file import (
    EXACT_FLOAT,
    PACKED,
    Fault,
    FileLimits,
    TableText,
    check_header,
    invisible_note,
    shown,
)
from backend.data.parquet_pages import check_pages
from backend.data.xlsx_file import as_text, check_density
from backend.errors import FederationError

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TEXT = 131_072  # bytes of a cell, as Python's reader of CSV has it
# type of a column → from here on neighbouring whole numbers are one value of it
EXACT_FLOATS = {"halffloat": 2**11, "float": 2**24, "double": EXACT_FLOAT}
BATCH = 512  # rows that are unpacked at once, so that no short file becomes a long one unseen


def parse_parquet(name: str, data: bytes, limits: FileLimits) -> TableText:
    """Read a flat table.

    Raises
    ------
    FederationError
        It is damaged, too large once unpacked, or a column holds lists, records or bytes.
    """
    return next(parquet_groups(name, BytesIO(data), limits, limits.max_rows + 1, limits.max_bytes * PACKED))


def parquet_groups(
    name: str, file: BinaryIO, limits: FileLimits, max_rows: int, max_unpacked: int
) -> Generator[TableText, None, None]:
    """Read a Parquet file in groups, at least one, of at most `max_rows` rows, and of `max_unpacked` bytes and a batch more."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - only who hands in Parquet needs it
        from pyarrow import parquet  # noqa: PLC0415 (as above)
    except ImportError:
        raise FederationError("pyarrow_missing", file=name) from None
    try:
        table = parquet.ParquetFile(file)
        file.seek(0, SEEK_END)
        _check_footer(name, table.metadata, limits, file.tell())
        check_pages(name, file, table.metadata)
        header = tuple(visible(column).strip() for column in table.schema_arrow.names)
        check_header(name, header, limits)
        _check_types(name, table.schema_arrow)
        # texts stay one copy each: a long one in every row is then no longer in memory than in the file
        table = parquet.ParquetFile(file, read_dictionary=_texts(table.schema_arrow))
        rows: list[list[str]] = []
        faults: dict[int, tuple[Fault, ...]] = {}
        n_before = n_bytes = unpacked = cleaned = 0
        for batch in table.iter_batches(BATCH, use_threads=False):
            size = _unpacked(name, batch)
            n_bytes += size
            if n_bytes > limits.max_bytes * PACKED or n_before + len(rows) + batch.num_rows > limits.max_rows:
                raise FederationError("unpacks_larger_than_stated", file=name, limit=limits.max_rows)
            if len(rows) + batch.num_rows > max_rows or unpacked > max_unpacked:
                lines = list(range(n_before + 1, n_before + len(rows) + 1))
                yield TableText(name, header, rows, lines, {}, faults, notes=invisible_note(cleaned))
                n_before = n_before + len(rows)
                cleaned = 0
                rows = []
                unpacked = 0
                faults = {}
            for title, column in zip(header, batch.columns, strict=True):
                for row, fault in _beyond_float(title, column).items():
                    faults[len(rows) + row] = (*faults.get(len(rows) + row, ()), fault)
            columns = [_cells(column) for column in batch.columns]
            for values in zip(*columns, strict=True):
                cells = list(values)
                if any(has_invisible(cell) for cell in cells):
                    cleaned += 1
                    cells = [visible(cell).strip() for cell in cells]
                rows.append(cells)
            unpacked += size
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise FederationError("parquet_unreadable", file=name, reason=type(error).__name__) from None
    lines = list(range(n_before + 1, n_before + len(rows) + 1))
    yield TableText(name, header, rows, lines, {}, faults, notes=invisible_note(cleaned))


def _beyond_float(title: str, column: pa.Array) -> dict[int, Fault]:
    """Return the cells of a floating-point column that may have been several whole numbers."""
    from pyarrow import compute, types  # noqa: PLC0415 (as above)

    if not types.is_floating(column.type):
        return {}
    limit = EXACT_FLOATS[str(column.type)]
    largest = compute.max(compute.abs(column)).as_py()
    if largest is None or largest < limit:
        return {}
    faults = {}
    for row, value in enumerate(column.to_pylist()):
        if value is not None and abs(value) >= limit:
            faults[row] = Fault(title, "float", as_text(value))
    return faults


def rows_of(file: Path) -> int:
    """Return how many rows a file says that it has; raises FederationError if it cannot be read."""
    try:
        import pyarrow as pa  # noqa: PLC0415 (as above)
        from pyarrow import parquet  # noqa: PLC0415 (as above)

        return int(parquet.read_metadata(file).num_rows)
    except ImportError:
        return 0  # the reader's error says what to install
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FederationError("parquet_unreadable", file=file.name, reason=type(error).__name__) from None


def _check_footer(name: str, footer: Any, limits: FileLimits, packed: int) -> None:
    """Raise FederationError if the file says that it holds more than is allowed."""
    if footer.num_row_groups < limits.max_rows:
        groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    else:
        groups = []
    rows = footer.num_rows
    unpacked = sum(group.total_byte_size for group in groups)
    if rows > limits.max_rows or (footer.num_row_groups and not groups):
        raise FederationError("too_many_rows_found", file=name, found=rows, limit=limits.max_rows)
    if rows * footer.num_columns > limits.max_cells:
        raise FederationError("too_many_cells", file=name, found=rows * footer.num_columns, limit=limits.max_cells)
    if unpacked > limits.max_bytes * PACKED or rows < 0 or unpacked < 0:
        limit = limits.max_bytes * PACKED / 1e6
        raise FederationError("unpacks_too_large", file=name, found=unpacked / 1e6, limit=limit)
    check_density(name, packed, unpacked)
    if footer.num_columns == 0:
        raise FederationError("table_without_columns", file=name)


def _texts(schema: pa.Schema) -> list[str]:
    """Return the names of the columns of texts."""
    return [field.name for field in schema if _is_text(field.type)]


def _unpacked(name: str, batch: pa.RecordBatch) -> int:
    """Return the bytes that a batch's cells have; raise FederationError if a text is longer than any table's."""
    from pyarrow import compute, types  # noqa: PLC0415 (as above)

    total = 0
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not types.is_dictionary(field.type) or not _is_text(field.type.value_type):
            total += column.nbytes
            continue
        lengths = compute.binary_length(column.dictionary)
        longest = compute.max(lengths).as_py() or 0
        if longest > MAX_TEXT:
            raise FederationError("cell_too_large", file=name, name=shown(field.name), limit=MAX_TEXT)
        total += compute.sum(lengths.take(column.indices)).as_py() or 0
    return total


def _is_text(kind: pa.DataType) -> bool:
    from pyarrow import types  # noqa: PLC0415 (as above)

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_types(name: str, schema: pa.Schema) -> None:
    """Raise FederationError if a column's cells are no single values."""
    from pyarrow import types  # noqa: PLC0415 (as above)

    def plain(kind: pa.DataType) -> bool:
        inner = kind.value_type if types.is_dictionary(kind) else kind
        texts = types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner)
        numbers = types.is_integer(inner) or types.is_floating(inner) or types.is_decimal(inner)
        return bool(texts or numbers or types.is_boolean(inner) or types.is_temporal(inner) or types.is_null(inner))

    odd = [f"{shown(field.name)} ({field.type})" for field in schema if not plain(field.type)]
    if odd:
        raise FederationError("no_single_values", file=name, columns=tuple(odd))


def _cells(column: pa.Array) -> list[str]:
    """Return a column's values as texts; a missing one, and one that is no number, is empty."""
    import pyarrow as pa  # noqa: PLC0415 (as above)

    if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    if pa.types.is_time(column.type) or pa.types.is_duration(column.type) or pa.types.is_interval(column.type):
        column = column.cast(pa.string())
    if _is_text(column.type):
        return ["" if value is None else value.strip() for value in column.to_pylist()]
    return ["" if value is None or value != value else as_text(value) for value in column.to_pylist()]  # noqa: PLR0124 - NaN
