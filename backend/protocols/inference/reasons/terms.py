"""What Guest and Hosts work out alike before reasons are asked for: how many numbers travel, at which scale, and how they are packed.

Holds no value, weight, cover or key, and nothing that depends on a person: that no message's size tells of anybody follows from here.

An *entry* is a set of Host conditions, as in scoring (:mod:`backend.trees.folding`). Per entry and point of the quadrature
(:mod:`backend.trees.shap`) there is one *base* number, which becomes the values of Host features, and some *packs*, each of which holds
one number for several features whose owner has done its part. All of them are multiplied by the same factor of a later Host.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from backend.errors import ParameterError, SecurityError
from backend.protocols.inference.ranking.shape import RankingShape

TERM_BITS = 26  # the Guest's numbers are multiples of 2^-26 of the margin's unit
COEFFICIENT_BITS = 22  # each Host's factors are multiples of 2^-22
MOST_NAMES = 8
PLAIN_BITS = 2048  # plain numbers are packed as under a key of that size


@dataclass(frozen=True)
class ReasonShape:
    """Sizes of a request for reasons.

    Attributes
    ----------
    features : tuple of int
        Features in use per party: the Guest's, then those of each Host of the chain.
    names : int
        Names to give at most.
    value_bits : int
        Every SHAP value, at the last scale, is smaller than 2^value_bits in absolute value.
    key_bits : int
        Of the Paillier modulus; 0 = plain numbers.

    Raises
    ------
    ParameterError
        A number is out of its range.
    """

    features: tuple[int, ...]
    names: int
    value_bits: int
    key_bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.names <= MOST_NAMES:
            raise ParameterError(f"{self.names} reasons were asked for; choose 1 to {MOST_NAMES}.")
        _ = self.ranking  # which checks the others

    @property
    def ranking(self) -> RankingShape:
        """Of all features' values."""
        return RankingShape(sum(self.features), self.names, self.value_bits, self.key_bits or PLAIN_BITS)

    @property
    def scale(self) -> int:
        """Bits after the point of a value when the last Host is done."""
        return TERM_BITS + COEFFICIENT_BITS * (len(self.features) - 1)

    @property
    def slot(self) -> int:
        """Bits of a feature in a pack: as in the ranking, which adds to packs as they are."""
        return self.ranking.slot

    def packs(self, party: int) -> list[int]:
        """How many features each pack of a party holds; a pack never crosses a border between ciphertexts of the ranking."""
        begin, end = sum(self.features[:party]), sum(self.features[: party + 1])
        most = self.ranking.slots[0]
        cuts = [begin, *(i for i in range(begin + 1, end) if i % most == 0), end]
        return [b - a for a, b in pairwise(cuts) if b > a]

    def packs_before(self, party: int) -> int:
        """Packs that a party gets per entry and point."""
        return sum(len(self.packs(p)) for p in range(party))

    def layout(self, party: int) -> list[int]:
        """Features per number that the last Host ranks: packs of earlier parties, then its own features one by one."""
        packs = [held for p in range(party) for held in self.packs(p)]
        return [*packs, *[1] * self.features[party]]


def unpacked(numbers: list[int], shape: ReasonShape) -> list[int]:
    """Decrypted packs and single numbers → a number a feature; raises SecurityError where one does not fit its slot."""
    out: list[int] = []
    half = 1 << (shape.slot - 1)
    for number, held in zip(numbers, shape.layout(len(shape.features) - 1), strict=True):
        rest = number
        for _ in range(held):
            low = (rest + half) % (2 * half) - half
            out.append(low)
            rest = (rest - low) >> shape.slot
        if rest:
            raise SecurityError(
                "A sum of contributions lies outside its slot; it was thrown away. Ask these Hosts what they run."
            )
    return out


def to_units(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], bits: int) -> list[int]:
    """Numbers rounded to multiples of 2^-bits."""
    return [int(v) for v in np.rint(values * float(1 << bits))]
