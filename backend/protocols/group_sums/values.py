"""Marks: small numbers of a record that are to be summed, several to an encrypted pair. Arithmetic that both sides share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import GRADIENT_BITS
from backend.errors import ParameterError

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Slot:
    """Where one mark lies: in which number (two to a pair), from which bit on, and how many bits its sum may take."""

    number: int
    shift: int
    width: int


def slots(largest: Sequence[int], records: int) -> tuple[Slot, ...]:
    """A slot for each mark, so that no sum of `records` of them runs into the next; both sides work it out alike.

    Parameters
    ----------
    largest : sequence of int
        Per mark the largest value it may have; the smallest is 0.

    Raises
    ------
    ParameterError
        A mark is too large for a number of :data:`GRADIENT_BITS` bits.
    """
    layout: list[Slot] = []
    number = shift = filled = 0
    for top in largest:
        if not 0 < top <= 1 << GRADIENT_BITS:
            raise ParameterError(f"A mark of up to {top:,} was to be summed; from 1 to 2^{GRADIENT_BITS} can be.")
        if filled + (top << shift) > 1 << GRADIENT_BITS:
            number, shift, filled = number + 1, 0, 0
        width = (top * records).bit_length()
        layout.append(Slot(number, shift, width))
        filled, shift = filled + (top << shift), shift + width
    return tuple(layout)


def pack(marks: Sequence[Counts], layout: Sequence[Slot]) -> list[tuple[Counts, Counts]]:
    """Marks, ``(n,)`` each, as pairs of ``(n,)`` numbers to be encrypted together."""
    if not marks:
        return []
    numbers = np.zeros((2 * (layout[-1].number // 2 + 1), len(marks[0])), dtype=np.int64)
    for mark, slot in zip(marks, layout, strict=True):
        numbers[slot.number] += mark << slot.shift
    return [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)]


def unpack(sums: Sequence[tuple[Counts, Counts]], layout: Sequence[Slot]) -> Counts:
    """Sums of pairs, ``(groups,)`` each, as ``(marks, groups)`` sums of marks."""
    numbers = [number for pair in sums for number in pair]
    return np.stack([(numbers[p.number] >> p.shift) & ((1 << p.width) - 1) for p in layout])
