"""How the numbers of reasons lie in Paillier ciphertexts, or in plaintext: sizes that both sides work out. Holds no number and no key.

Per entry and point there is one *base* number, which becomes the values of Host features, and some *packs*, each of which holds one
number for several features whose owner has done its part. All of them are multiplied by the same factor of a later Host.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from backend.crypto.fixedpoint import hidden_above, narrow
from backend.errors import SecurityError
from backend.protocols.explanations.shape import ReasonShape
from backend.protocols.ranking.packing import RankingPacking

PLAIN_BITS = 2048  # plaintexts are packed as under a key of that size


@dataclass(frozen=True)
class PaillierLayout:
    """Sizes under one key.

    Attributes
    ----------
    key_bits : int
        Of the Paillier modulus; 0 = plaintext.

    Raises
    ------
    ParameterError
        A number does not fit a plaintext.
    """

    shape: ReasonShape
    key_bits: int

    def __post_init__(self) -> None:
        _ = self.packing  # which checks the key

    @cached_property
    def packing(self) -> RankingPacking:
        """Of the ranking, which adds to packs as they are."""
        return RankingPacking(self.shape.ranking, self.key_bits or PLAIN_BITS)

    @property
    def slot(self) -> int:
        """Bits of a feature in a pack."""
        return self.packing.slot

    def packs(self, party: int) -> list[int]:
        """How many features each pack of a party holds; a pack never crosses a border between ciphertexts of the ranking."""
        features = self.shape.features
        begin = sum(features[:party])
        end = sum(features[: party + 1])
        full = self.packing.slots[0]
        cuts = [begin, *(i for i in range(begin + 1, end) if i % full == 0), end]
        return [b - a for a, b in pairwise(cuts) if b > a]

    def packs_before(self, party: int) -> int:
        """How many packs a party gets per entry and point."""
        return sum(len(self.packs(p)) for p in range(party))

    def layout(self, party: int) -> list[int]:
        """Return the number of features in each number that the last Host ranks: packs of earlier parties, then its features one by one."""
        packs = [size for p in range(party) for size in self.packs(p)]
        return [*packs, *[1] * self.shape.features[party]]

    def packed(self, numbers: list[int]) -> list[int]:
        """Return packs, row by row, of one number a Guest feature, row by row."""
        values = iter(numbers)
        rows = len(numbers) // max(1, self.shape.features[0])
        return [sum(next(values) << (self.slot * i) for i in range(size)) for size in self.packs(0) * rows]

    @property
    def plain_bits(self) -> int:
        """Bits of a plaintext that may be used, its sign left out."""
        return (self.key_bits or PLAIN_BITS) - 2

    def unpacked(self, numbers: list[int]) -> list[int]:
        """Return a number a feature from decrypted packs and single numbers, each with what the last Host added above it."""
        out: list[int] = []
        for number, size in zip(numbers, self.layout(len(self.shape.features) - 1), strict=True):
            for i in range(size):
                last = i == size - 1
                above = number >> (self.slot * i)
                out.append(above if last else above & ((1 << self.slot) - 1))
        return out


def checked_sums(shape: ReasonShape, numbers: list[int], people: int, room: int) -> list[int]:
    """Return sums over a cohort without what the last Host added above them.

    Parameters
    ----------
    numbers : list of int
        One a feature, as it was decrypted.
    room : int
        A number is read modulo this.

    Raises
    ------
    SecurityError
        If a sum is larger than so many people's values can be.
    """
    width = shape.sum_width(people)
    hidden = hidden_above(width, room)
    sums = [narrow(number % room, width) if hidden else number for number in numbers]
    if any(abs(total) > shape.largest_sum(people) for total in sums):
        raise SecurityError("impossible_sums")
    return sums
