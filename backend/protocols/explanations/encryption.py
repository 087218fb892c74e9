"""How the Guest encrypts one person's numbers and reads what comes back: packed under Paillier, in slots under RLWE. Knows no Host's 0/1.

What a Host does with it: :mod:`backend.protocols.explanations.weighting`. Each cipher has a class with the same three methods.
"""

from __future__ import annotations

import numpy as np

from backend.crypto.interface import IntArray, KeySide
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.rlwe.inner_products import RowKey
from backend.crypto.rlwe.residues import ResidueKeySide
from backend.errors import ParameterError
from backend.protocols.explanations.guest_terms import Compiled, CompiledTerms
from backend.protocols.explanations.paillier_layout import PaillierLayout, checked_sums
from backend.protocols.explanations.shape import COEFFICIENT_BITS, ReasonShape
from backend.protocols.ranking.packing import PackedOpener
from backend.trees.ensemble import Columns

ReasonKey = KeySide | ResidueKeySide


def paillier_numbers(compiled: Compiled, layout: PaillierLayout, columns: Columns) -> list[int]:
    """Base, packs and constant of one person, columns ``(1,)`` each; the constant is at the last scale, for no Host multiplies it."""
    terms = compiled.encode(columns)
    lift = COEFFICIENT_BITS * len(compiled.chain)
    constant = [number << lift for number in terms.constant[0].tolist()]
    return [*terms.base[0].tolist(), *layout.packed(terms.own.ravel().tolist()), *layout.packed(constant)]


class PaillierEncryption:
    """Paillier, or plaintext: base, packs and constant, one ciphertext each.

    Attributes
    ----------
    ciphertexts : int
        That the Guest encrypts a person.
    together : int
        People of a cohort whose numbers share a message.
    """

    together = 1

    def __init__(self, key: KeySide, compiled: Compiled, shape: ReasonShape) -> None:
        self._key = key
        self._compiled = compiled
        self._layout = PaillierLayout(shape, key.bits)
        width = len(self._layout.packs(0))
        self.ciphertexts = (compiled.rows - 1) * (1 + width) + width

    def encrypted(self, columns: Columns, people: int = 1) -> bytes:
        """One person's numbers, columns ``(1,)`` each."""
        numbers = paillier_numbers(self._compiled, self._layout, columns)
        row = np.empty((1, len(numbers)), dtype=object)  # integers of any size as one row of a batch
        row[0] = numbers
        return self._key.encrypt(row)

    def opened(self, blob: bytes) -> list[int]:
        """Shares of one person's numbers, in the lowest bits of a number a feature; raises SecurityError if the message is none."""
        return PackedOpener(_ranked_under(self._key), self._layout.packing).opened(blob)

    def sums(self, blob: bytes, people: int) -> list[int]:
        """Sums over a cohort, a number a feature; raises SecurityError if the message is not such sums."""
        numbers = self._key.decrypt(blob, len(self._layout.layout(len(self._compiled.chain))))
        return checked_sums(self._layout.shape, self._layout.unpacked(numbers), people, 1 << self._layout.plain_bits)


class RlweEncryption:
    """RLWE: a slot for every feature, entry and point, and one for the constant, which every Host multiplies by 1.

    Methods as in :class:`PaillierEncryption`; `people` are those of a cohort, 0 = one person's names. Of a cohort, several people's rows
    lie one after the other.

    Raises
    ------
    ParameterError
        The keys are not those of such a request.
    """

    def __init__(self, key: ResidueKeySide, compiled: Compiled, shape: ReasonShape, people: int) -> None:
        load = shape.load(compiled.rows, people)
        key.check(shape.load(compiled.key_rows, people))
        self._key = key
        self._compiled = compiled
        self._shape = shape
        self.together = load.together(key.bits)
        self.ciphertexts = len(key.parameters) * load.ciphertexts(key.bits)

    def encrypted(self, columns: Columns, people: int = 1) -> bytes:
        """Encrypt ``(features, rows)``: the Guest's numbers for its features, and the base for the Hosts' features."""
        guest_rows, base = self._numbers(columns, people)
        return self._key.encrypt(np.concatenate([guest_rows, np.tile(base, (sum(self._shape.features[1:]), 1))]))

    def _numbers(self, columns: Columns, people: int) -> tuple[IntArray, IntArray]:
        """Return the Guest's numbers, ``(own features, rows)``, and the base, ``(rows,)``; a person has entries · points + 1 rows."""
        terms = self._compiled.encode(columns, people)
        guest_numbers = np.concatenate([terms.own, terms.constant[:, np.newaxis]], axis=1)
        return guest_numbers.reshape(people * self._compiled.rows, guest_numbers.shape[2]).T, np.pad(
            terms.base, ((0, 0), (0, 1))
        ).ravel()

    def opened(self, blob: bytes) -> list[int]:
        """Blinded numbers may be any residues modulo T."""
        return [number % self._key.modulus for number in self._key.decrypt(blob, sum(self._shape.features))]

    def sums(self, blob: bytes, people: int) -> list[int]:
        """One sum a feature."""
        numbers = self._key.decrypt(blob, sum(self._shape.features))
        return checked_sums(self._shape, numbers, people, self._key.modulus)


class RowEncryption(RlweEncryption):
    """RLWE, for a cohort at a single Host: inner products, where own features and the base lie side by side."""

    def __init__(self, key: ResidueKeySide, compiled: Compiled, shape: ReasonShape, people: int) -> None:
        super().__init__(key, compiled, shape, people)
        self._rows = RowKey(key, *shape.features)

    def encrypted(self, columns: Columns, people: int = 1) -> bytes:
        """Own numbers and the base, each in blocks."""
        return self._rows.encrypt(*self._numbers(columns, people))

    def sums(self, blob: bytes, people: int) -> list[int]:
        """One sum a feature."""
        return checked_sums(self._shape, self._rows.decrypt(blob), people, self._key.modulus)


TermEncryption = PaillierEncryption | RlweEncryption


class PersonEncryption:
    """For the names of one person: contributions, and behind them drops; attributes as of :class:`PaillierEncryption`."""

    together = 1

    def __init__(self, key: ReasonKey, compiled: CompiledTerms, shape: ReasonShape) -> None:
        self._parts = encryption_of(key, compiled, shape), encryption_of(key, compiled.drops(shape.groups), shape)
        self.ciphertexts = sum(part.ciphertexts for part in self._parts)

    def encrypted(self, columns: Columns, people: int = 1) -> bytes:
        """One person's numbers, columns ``(1,)`` each."""
        return b"".join(part.encrypted(columns, people) for part in self._parts)

    def opened(self, blob: bytes) -> list[int]:
        """As the parts do, of either."""
        return self._parts[0].opened(blob)


def encryption_of(key: ReasonKey, compiled: Compiled, shape: ReasonShape, people: int = 0) -> TermEncryption:
    """How a key encrypts; `people` of a cohort, 0 for names.

    Raises ParameterError if the key does not suit: names are ranked under Paillier or RLWE only, and RLWE's sets depend on the request.
    """
    if isinstance(key, ResidueKeySide):
        kind = RowEncryption if shape.load(compiled.rows, people).guest_features else RlweEncryption
        return kind(key, compiled, shape, people)
    if not people:
        _ranked_under(key)
    return PaillierEncryption(key, compiled, shape)


def _ranked_under(key: KeySide) -> PaillierKeySide:
    if not isinstance(key, PaillierKeySide):
        raise ParameterError("cipher_cannot_rank", cipher=key.scheme)
    return key
