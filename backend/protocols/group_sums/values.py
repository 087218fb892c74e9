"""Marks: small numbers of a record that are to be summed, as many to a ciphertext as it holds. Arithmetic that both sides share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import GRADIENT_BITS, longest_half
from backend.errors import ParameterError

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Slot:
    """Where one mark lies: in which number (one to a ciphertext), from which bit on, and how many bits its sum may take."""

    number: int
    shift: int
    width: int


def slots(largest: Sequence[int], records: int, bits: int) -> tuple[Slot, ...]:
    """A slot for each mark, so that no sum of `records` of them runs into the next; both sides work it out alike.

    Parameters
    ----------
    largest : sequence of int
        Per mark the largest value it may have; the smallest is 0.
    bits : int
        Of the key; 0 = nothing is encrypted.

    Raises
    ------
    ParameterError
        A mark is larger than 2^:data:`GRADIENT_BITS`.
    """
    room = 2 * longest_half(bits) - 1  # one bit is for the sign
    layout: list[Slot] = []
    number = shift = 0
    for top in largest:
        if not 0 < top <= 1 << GRADIENT_BITS:
            raise ParameterError("mark_too_large", top=top, bits=GRADIENT_BITS)
        width = (top * records).bit_length()
        if shift + width > room:
            number = number + 1
            shift = 0
        layout.append(Slot(number, shift, width))
        shift += width
    return tuple(layout)


def half_of(layout: Sequence[Slot]) -> int:
    """Bits of half a pair that holds any number of the layout, its sums and a sign."""
    return max((slot.shift + slot.width for slot in layout), default=0) // 2 + 1


def carried(numbers: int, half: int) -> int:
    """Bits of a group's sums, of so many numbers a record in pairs of halves of so many bits."""
    return numbers * 2 * half


def pack(marks: Sequence[Counts], largest: Sequence[int], layout: Sequence[Slot]) -> list[list[int]]:
    """Marks, ``(n,)`` each, as lists of ``n`` numbers to be encrypted.

    Raises ParameterError if a mark is not what its largest value says: its sum would run into the next.
    """
    if not marks:
        return []
    numbers = np.zeros((layout[-1].number + 1, len(marks[0])), dtype=object)
    for mark, top, slot in zip(marks, largest, layout, strict=True):
        if len(mark) and not 0 <= mark.min() <= mark.max() <= top:
            raise ParameterError("mark_outside_range", least=int(mark.min()), most=int(mark.max()), top=top)
        numbers[slot.number] += mark.astype(object) << slot.shift
    out: list[list[int]] = numbers.tolist()
    return out


def unpack(sums: Sequence[Sequence[int]], layout: Sequence[Slot]) -> Counts:
    """Sums of numbers, one a group, as ``(marks, groups)`` sums of marks."""
    parts = []
    for p in layout:
        parts.append([(total >> p.shift) & ((1 << p.width) - 1) for total in sums[p.number]])
    return np.array(parts, dtype=np.int64)
