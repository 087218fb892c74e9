"""Flags and whole numbers as few bytes, and long lists in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError


def to_bitmap(flags: NDArray[np.bool_]) -> bytes:
    """``(n,)`` flags as ⌈n/8⌉ bytes."""
    return np.packbits(flags).tobytes()


def from_bitmap(blob: bytes, n: int) -> NDArray[np.bool_]:
    """Inverse of :func:`to_bitmap`; raises SecurityError if the length is wrong."""
    if len(blob) != (n + 7) // 8:
        raise SecurityError("other_bitmap_bytes", asked=(n + 7) // 8, got=len(blob))
    return np.unpackbits(np.frombuffer(blob, dtype=np.uint8), count=n).astype(bool)


def to_numbers(values: NDArray[np.intp], below: int) -> bytes:
    """Whole numbers from 0 to below-1, little-endian, each in as few bytes (1, 2 or 4) as the largest one takes."""
    return values.astype(_width(below)).tobytes()


def from_numbers(blob: bytes, below: int) -> NDArray[np.intp]:
    """Inverse of :func:`to_numbers`; raises SecurityError if the length is wrong or a number is too large."""
    width = _width(below)
    if len(blob) % width.itemsize:
        raise SecurityError("numbers_of_other_width", width=width.itemsize, got=len(blob))
    values = np.frombuffer(blob, dtype=width).astype(np.intp)
    if len(values) and values.max() >= below:
        raise SecurityError("number_too_large", below=below, got=int(values.max()))
    return values


def _width(below: int) -> np.dtype[np.unsignedinteger[Any]]:
    return np.dtype("u1" if below <= 1 << 8 else "<u2" if below <= 1 << 16 else "<u4")


def chunks(n: int, size: int) -> Iterator[range]:
    """Ranges of at most `size` that cover 0 … n-1 (so that a message stays small and a job can be cancelled)."""
    return (range(start, min(start + size, n)) for start in range(0, n, size))
