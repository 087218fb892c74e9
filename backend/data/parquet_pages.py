"""The pages of a Parquet file: what each says that it unpacks to, without unpacking it. Knows no values.

The footer says so too, but a reader goes by the pages, and a footer may lie. Both are written in Thrift's compact form
(parquet-format, PageHeader), of which this reads as much as a page's header needs.
"""

from __future__ import annotations

from typing import Any, BinaryIO

from backend.errors import FederationError

MAX_PAGE = 24_000_000  # bytes unpacked; writers make pages of 1 MB, some one a column of a million numbers: 8 MB
MAX_HEADER = 1 << 20  # bytes of a page's header, with the least and the greatest value of the page
WINDOW = 1 << 12  # bytes that most headers fit into
# fields of a page's header
UNPACKED = 2
PACKED = 3
# kinds of a field
STOP = 0
YES = 1
NO = 2
BYTE = 3
NUMBERS = (4, 5, 6)
DOUBLE = 7
BINARY = 8
LIST = 9
SET = 10
STRUCT = 12
LONG_LIST = 15  # a list whose length follows
MAX_DEPTH = 8  # of a header; statistics in a page have 2


class _Short(Exception):  # noqa: N818 - the window is to be made longer
    """The bytes end within a header."""


def check_pages(name: str, file: BinaryIO, footer: Any) -> None:
    """Check what the pages say against what the footer says.

    Raises
    ------
    FederationError
        A page is larger than any writer's, or the pages of a column unpack to more than its footer says.
    """
    for index in range(footer.num_row_groups):
        group = footer.row_group(index)
        for column in range(group.num_columns):
            _check_chunk(name, file, group.column(column))


def _check_chunk(name: str, file: BinaryIO, chunk: Any) -> None:
    start = chunk.data_page_offset
    if chunk.has_dictionary_page:
        first = chunk.dictionary_page_offset
    else:
        first = None
    if first is not None and 0 < first < start:
        start = first
    place = start
    end = start + chunk.total_compressed_size
    unpacked = 0
    while place < end:
        size, packed, length = _page(file, place)
        unpacked += size
        if size > MAX_PAGE:
            raise FederationError("page_too_large", file=name, found=size / 1e6, limit=MAX_PAGE / 1e6)
        if unpacked > chunk.total_uncompressed_size:
            raise FederationError("pages_larger_than_stated", file=name)
        place += length + packed


def _page(file: BinaryIO, place: int) -> tuple[int, int, int]:
    """Return what a page unpacks to, what it takes packed, and how long its header is, in bytes.

    Raises
    ------
    ValueError
        It is no header.
    """
    window = WINDOW
    while True:
        file.seek(place)
        data = file.read(window)
        reader = _Compact(data)
        try:
            fields = reader.whole_numbers()
        except _Short:
            if len(data) < window or window > MAX_HEADER:
                raise ValueError("a page without a header") from None
            window *= 8
            continue
        unpacked = fields.get(UNPACKED, -1)
        packed = fields.get(PACKED, -1)
        if unpacked < 0 or packed < 0:
            raise ValueError("a page without a size")
        return unpacked, packed, reader.at


class _Compact:
    """Thrift's compact form."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def whole_numbers(self) -> dict[int, int]:
        """Read a structure; return its fields that are whole numbers."""
        numbers: dict[int, int] = {}
        field = 0
        while True:
            head = self._byte()
            kind = head & 0x0F
            if kind == STOP:
                return numbers
            step = head >> 4
            field = field + step if step else _signed(self._varint())
            if kind in NUMBERS:
                numbers[field] = _signed(self._varint())
            else:
                self._skip(kind, depth=0)

    def _skip(self, kind: int, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ValueError("a header nested too deep")
        if kind in (YES, NO):
            return
        if kind == BYTE:
            self._take(1)
        elif kind in NUMBERS:
            self._varint()
        elif kind == DOUBLE:
            self._take(8)
        elif kind == BINARY:
            self._take(self._varint())
        elif kind in (LIST, SET):
            self._skip_list(depth)
        elif kind == STRUCT:
            self._skip_struct(depth)
        else:  # no header has a map
            raise ValueError("a header of unknown kind")

    def _skip_list(self, depth: int) -> None:
        head = self._byte()
        size = head >> 4
        if size == LONG_LIST:
            size = self._varint()
        kind = head & 0x0F
        if size > len(self._data):
            raise _Short
        for _ in range(size):
            self._skip(BYTE if kind in (YES, NO) else kind, depth + 1)

    def _skip_struct(self, depth: int) -> None:
        while True:
            head = self._byte()
            if head & 0x0F == STOP:
                return
            if not head >> 4:
                self._varint()
            self._skip(head & 0x0F, depth + 1)

    def _byte(self) -> int:
        self._take(1)
        return self._data[self.at - 1]

    def _take(self, count: int) -> None:
        if self.at + count > len(self._data):
            raise _Short
        self.at += count

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise ValueError("a number of more than 64 bits")


def _signed(number: int) -> int:
    """Return the number that zigzag wrote as `number`: 0, -1, 1, -2 …"""
    return number >> 1 if number % 2 == 0 else -(number >> 1) - 1
