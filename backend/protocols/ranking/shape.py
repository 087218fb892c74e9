"""What both sides of a ranking work out alike: sizes of numbers, blinds and messages. Holds no value, blind, label or key; knows no cipher.

A number v becomes u = 2^tie_bits·(v - 1) + t + 2^(width - 1), t its position in a secret order: all u differ, ties are broken at
random, and the highest of u's `width` bits is 1 if v > 0. A plaintext holds some u, `slot` bits apart, and is blinded by an r that is
uniform modulo the plaintext's whole modulus M, so that what the Guest decrypts says nothing, whatever it sent. Digit by digit, u + r and
-r are shares of each u, unless u + r reaches M or a lower digit carries; each has a chance of 2^-(SLACK_BITS + 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from backend.crypto.garbling import Bits
from backend.errors import ParameterError, SecurityError

SLACK_BITS = 64  # all shares of 4,096 numbers are right but for a chance of 2^-52
MAX_NUMBERS = 4096  # features of a model; a message of 52 MB where values have 48 bits
# wires a number that say something of its side, of the Guest and of the Host
OWN = 4
OTHER = 2
MAX_BITS = 192  # of a value: a score's, times the factors of five Hosts


@dataclass(frozen=True)
class RankingShape:
    """Sizes of one ranking.

    Attributes
    ----------
    n : int
        Numbers to rank.
    k : int
        Names to give at most.
    value_bits : int
        Every number is smaller than 2^value_bits in absolute value: a bound that follows from the model, which nobody checks here.
    marked : bool
        Whether a second number and a side belong to each, and decide who is ranked (:func:`backend.protocols.ranking.circuit.eligible`).
    max_names, groups : int, tuple of int
        If there are groups, ``(n,)``: as many names are given as belong to k of them, `max_names` at the most.

    Raises
    ------
    ParameterError
        A size is outside its range.
    """

    n: int
    k: int
    value_bits: int
    marked: bool = False
    max_names: int = 0
    groups: tuple[int, ...] = ()
    tie_bits: int = field(init=False)
    width: int = field(init=False)

    def __post_init__(self) -> None:
        for name, limit in (("n", MAX_NUMBERS), ("k", MAX_NUMBERS), ("value_bits", MAX_BITS)):
            if not 1 <= getattr(self, name) <= limit:
                raise ParameterError("ranking_number_outside", name=name, got=getattr(self, name), most=limit)
        if self.groups and not (len(self.groups) == self.n and self.k <= self.max_names <= MAX_NUMBERS):
            raise ParameterError(
                "ranking_groups_do_not_fit", numbers=self.n, groups=len(self.groups), names=self.k, most=self.max_names
            )
        object.__setattr__(self, "tie_bits", (self.n - 1).bit_length())
        object.__setattr__(self, "width", self.value_bits + self.tie_bits + 1)

    @property
    def slot(self) -> int:
        """Bits from one u to the next."""
        return self.width + SLACK_BITS + 1

    @property
    def inputs(self) -> tuple[int, int]:
        """Wires of the Guest and of the Host."""
        numbers = self.width * self.n
        if self.marked:
            return (2 * numbers + OWN * self.n, 2 * numbers + OTHER * self.n)
        return (numbers, numbers)

    def sides(self, bits: Bits | None, rows: int) -> Bits:
        """What a side states beside its numbers, in a row: ``(rows, n)`` bits where the shape is marked; raises ParameterError else."""
        if (None if bits is None else bits.shape) != ((rows, self.n) if self.marked else None):
            raise ParameterError("ranking_sides_do_not_fit", numbers=self.n)
        if bits is None:
            return np.zeros(0, dtype=bool)
        return bits.ravel()

    def possible(self, names: Sequence[int]) -> bool:
        """Return whether a ranking can name these numbers."""
        if not self.groups:
            return len(names) <= self.k
        return len(names) <= self.max_names and len({self.groups[i] for i in names}) <= self.k

    def against(self, blind: int, digit: int = 0) -> int:
        """The Host's share of the u at a digit, where `blind` is added to all of them."""
        return -(blind >> (self.slot * digit)) % (1 << self.width)

    def bits(self, shares: Sequence[int]) -> Bits:
        """``(width, n)``: the lowest bits of each share, lowest first."""
        rows = [[share >> i & 1 for share in shares] for i in range(self.width)]
        return np.array(rows, dtype=bool)


def cut(blob: bytes, lengths: Sequence[int]) -> list[bytes]:
    """A message's parts; raises SecurityError if its length is wrong, before anything is read."""
    if len(blob) != sum(lengths):
        raise SecurityError("other_number_of_bytes", asked=sum(lengths), got=len(blob))
    ends = np.cumsum([0, *lengths]).tolist()
    return [blob[start:end] for start, end in pairwise(ends)]


class Turns:
    """The order of one side's steps, each taken once: a transfer answered twice would use its pads twice, and show both labels."""

    def __init__(self) -> None:
        self._next = 1

    def take(self, step: int) -> None:
        """Begin step 1, 2 … of this side; raises SecurityError out of turn."""
        if step != self._next:
            raise SecurityError("ranking_out_of_turn")
        self._next += 1
