"""Reads the Universal Binary JSON that XGBoost writes; anything else in it is an error that names the byte.

Numbers are big-endian. Lengths are checked against the bytes that are left before anything is made of them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from backend.data.csv_file import shown
from backend.errors import ModelError
from backend.remark import Remark
from backend.trees.importers.reading import damaged

MAX_DEPTH = 32  # XGBoost's own files nest 9 deep
_NUMBERS = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d"}  # marker → struct's format
_CONSTANTS = {"T": True, "F": False, "Z": None}


def parse_ubjson(name: str, data: bytes) -> Any:
    """UBJ as Python's own values; raises ModelError with the byte at which it is damaged."""
    reader = _Reader(name, data)
    value = reader.value(0)
    if reader.at != len(data):
        raise reader.error(Remark("found_more_bytes", {"count": len(data) - reader.at}), Remark("found_end_of_file"))
    return value


@dataclass
class _Reader:
    """A position in the file."""

    name: str
    data: bytes
    at: int = 0

    def error(self, found: object, expected: object) -> ModelError:
        return damaged(f"{self.name}, byte {self.at:,}", found, expected)

    def take(self, n: int) -> bytes:
        if not 0 <= n <= len(self.data) - self.at:
            raise self.error(n, f"0 … {len(self.data) - self.at:,}")
        self.at += n
        return self.data[self.at - n : self.at]

    def marker(self) -> str:
        return self.take(1).decode("latin-1")

    def peek(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def number(self, kind: str) -> Any:
        return struct.unpack(_NUMBERS[kind], self.take(struct.calcsize(_NUMBERS[kind])))[0]

    def length(self) -> int:
        kind = self.marker()
        if kind not in "iUIlL":
            raise self.error(shown(kind), Remark("expected_length"))
        return int(self.number(kind))

    def text(self) -> str:
        raw = self.take(self.length())
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.error(Remark("found_no_utf8"), "UTF-8") from None

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise self.error(Remark("found_deep_nesting", {"limit": MAX_DEPTH}), Remark("expected_model"))
        kind = self.marker()
        if kind in _NUMBERS:
            return self.number(kind)
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind == "S":
            return self.text()
        if kind == "[":
            return self.array(depth)
        if kind == "{":
            return self.object(depth)
        raise self.error(shown(kind), Remark("expected_something"))

    def array(self, depth: int) -> list[Any]:
        kind = ""
        if self.peek() == b"$":
            self.take(1)
            kind = self.marker()
            if kind not in _NUMBERS or self.peek() != b"#":
                raise self.error(shown(kind), Remark("expected_numbers"))
        if self.peek() != b"#":
            values = []
            while self.peek() != b"]":
                values.append(self.value(depth + 1))
            self.take(1)
            return values
        self.take(1)
        n = self.length()
        size = struct.calcsize(_NUMBERS[kind]) if kind else 1
        if not 0 <= n <= (len(self.data) - self.at) // size:
            raise self.error(n, f"0 … {(len(self.data) - self.at) // size:,}")
        if not kind:
            return [self.value(depth + 1) for _ in range(n)]
        return list(struct.unpack(f">{n}{_NUMBERS[kind][1]}", self.take(n * size)))

    def object(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while self.peek() != b"}":
            key = self.text()
            if key in values:
                raise self.error(Remark("found_twice", {"text": shown(key)}), Remark("expected_key_once"))
            values[key] = self.value(depth + 1)
        self.take(1)
        return values
