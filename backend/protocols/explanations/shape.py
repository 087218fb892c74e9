"""What Guest and Hosts work out alike before reasons are asked for: how many features, at which scale, and what is to be decrypted.

Holds no value, weight, cover or key, and nothing that depends on a person: so no message's size depends on a person.

An *entry* is a set of Host conditions, as in scoring (:mod:`backend.trees.folding`). Per entry and point of the quadrature
(:mod:`backend.trees.shap`) there is a number for every feature: for a Host's one the *base*, which is the same for all of them. How these
lie in ciphertexts depends on the cipher: :mod:`packs <backend.protocols.explanations.paillier_layout>`, or slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log2

import numpy as np
from numpy.typing import NDArray

from backend.crypto.rlwe.parameters import Load
from backend.errors import ParameterError
from backend.protocols.ranking.shape import RankingShape

TERM_BITS = 26  # the Guest's numbers are multiples of 2^-26 of the margin's unit
COEFFICIENT_BITS = 22  # each Host's factors are multiples of 2^-22
MAX_NAMES = 8
RANKED = 2  # times that one question is ranked: once, and once more if the answer was lost
ROUNDED_BITS = (
    8  # sums over a cohort are told to a multiple of 2^-8 of the margin's unit: 0.0001 of a mean over 50 people
)
MAGNITUDE_BITS = 12  # bits of a SHAP value before the point: 4,096 times a logit, or what weighs as much
SPILL_BITS = 3  # of a sum that a Guest can read although it did not announce them
MAX_UNITS = float(1 << 62)  # of a number that is encrypted; with a residue's half added it stays in 64 bits


@dataclass(frozen=True)
class ReasonShape:
    """Sizes of a request for reasons.

    Attributes
    ----------
    features : tuple of int
        Features in use per party: the Guest's, then those of each Host of the chain.
    names : int
        Reasons to give at most.
    groups : tuple of int
        The reason that each feature belongs to; of so many reasons all names are given, :data:`MAX_NAMES` at the most. A party's features
        of one reason have one drop. Empty = each is one.
    value_bits : int
        Every SHAP value, at the last scale, is smaller than 2^value_bits in absolute value.

    Raises
    ------
    ParameterError
        A number is out of its range.
    """

    features: tuple[int, ...]
    names: int
    value_bits: int
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.names <= MAX_NAMES:
            raise ParameterError("wrong_number_of_reasons", names=self.names, most=MAX_NAMES)
        _ = self.ranking  # which checks the others

    @property
    def ranking(self) -> RankingShape:
        """Of all features' values; drops and sides decide which are ranked."""
        merged = (MAX_NAMES, self.groups) if len(set(self.groups)) < len(self.groups) else ()
        return RankingShape(sum(self.features), self.names, self.value_bits, True, *merged)

    def groups_of(self, party: int) -> tuple[int, ...]:
        """Return the reason of each feature of a party, by its position; each one's own if none are merged."""
        begin = sum(self.features[:party])
        everybody = self.groups or tuple(range(sum(self.features)))
        return everybody[begin : begin + self.features[party]]

    @property
    def told(self) -> float:
        """What the names tell about a person at most, bits."""
        return names_bits(sum(self.features), self.ranking.max_names or self.names)

    @property
    def scale(self) -> int:
        """Bits after the point of a value when the last Host is done."""
        return TERM_BITS + COEFFICIENT_BITS * (len(self.features) - 1)

    @property
    def noise_bits(self) -> int:
        """Lowest bits of a cohort's sums that the last Host hides under uniform numbers."""
        return max(0, min(self.scale - ROUNDED_BITS, self.value_bits - 2))

    def sum_width(self, people: int) -> int:
        """Bits of a sum over so many people with its sign and the number that hides its lowest bits; above them all is random."""
        return self.value_bits + people.bit_length() + 2

    def sums_bits(self, people: int) -> float:
        """What sums over so many people tell at most, all together, to a Guest that encrypts what it likes."""
        return float(sum(self.features) * (self.sum_width(people) - self.noise_bits + SPILL_BITS))

    def largest_sum(self, people: int) -> int:
        """No sum over so many people has a larger absolute value when it leaves the last Host."""
        return (people << self.value_bits) + (1 << self.noise_bits)

    def load(self, rows: int, people: int = 0) -> Load:
        """What is to be worked out under residues: one person's blinded numbers, or sums over so many `people`.

        Parameters
        ----------
        rows : int
            Entries times points, and one for what no Host has to do with.
        """
        hosts = len(self.features) - 1
        features = sum(self.features)
        if not people:
            return Load(hosts, rows, features, 1, 1 << self.ranking.slot)
        # a single Host's factors meet the Guest's numbers once: that is an inner product, and takes no slots
        if hosts == 1:
            products = (self.features[0], COEFFICIENT_BITS)
        else:
            products = (0, 0)
        return Load(hosts, rows, features, people, (2 * people + 1) << self.value_bits, *products)


def names_bits(features: int, names: int) -> float:
    """Return the most bits that `names` names out of `features` features reveal about a person.

    They are log2 of the number of answers, for each time that the question may be ranked: a Guest may rank again with other numbers.
    There are fewer names if fewer contributions are above 0.

    Examples
    --------
    >>> names_bits(1, 1) == 2 * log2(2)
    True
    """
    max_names = max(min(names, features), 0)
    return RANKED * log2(sum(comb(max(features, 0), k) for k in range(max_names + 1)))


def units(values: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """Numbers as multiples of 2^-bits, rounded; raises ParameterError if one is too large for 64 bits."""
    rounded = np.rint(values * float(1 << bits))
    if np.abs(rounded).max(initial=0.0) >= MAX_UNITS:
        raise ParameterError("weights_too_large_for_reasons")
    return rounded.astype(np.int64)
