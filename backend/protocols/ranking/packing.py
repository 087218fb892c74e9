"""A ranking's numbers under Paillier: several blinded ones in a ciphertext. Each class holds its own side's key, and never the other's."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import gmpy2
from gmpy2 import mpz

from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.errors import ParameterError
from backend.protocols.ranking.shape import RankingShape
from backend.protocols.transport.packing import chunks


@dataclass(frozen=True)
class RankingPacking:
    """How blinded numbers lie in plaintexts; both sides work it out.

    Attributes
    ----------
    key_bits : int
        Size of the Paillier modulus.

    Raises
    ------
    ParameterError
        A blinded number does not fit a plaintext.
    """

    shape: RankingShape
    key_bits: int

    def __post_init__(self) -> None:
        if self.slot > self.key_bits - 2:
            raise ParameterError("key_too_short_to_rank", slot=self.slot, key_bits=self.key_bits)

    @property
    def slot(self) -> int:
        """Bits from one number to the next."""
        return self.shape.slot

    @property
    def slots(self) -> list[int]:
        """How many numbers each ciphertext holds; the sign's bit of a plaintext is kept free."""
        full = (self.key_bits - 2) // self.slot
        return [len(part) for part in chunks(self.shape.n, full)]

    def join(self, numbers: Sequence[int]) -> list[int]:
        """Return plaintexts of ``(n,)`` numbers below 2^width, the first number lowest."""
        remaining = iter(numbers)
        return [sum(next(remaining) << (self.slot * s) for s in range(count)) for count in self.slots]

    def split(self, packed: Sequence[int]) -> list[int]:
        """Return the digits of plaintexts from 0 to n - 1; the inverse of :meth:`join`."""
        digit = (1 << self.slot) - 1
        counts = zip(packed, self.slots, strict=True)
        return [number >> (self.slot * s) & digit for number, count in counts for s in range(count)]


class PackedBlinds:
    """The Host's side.

    Parameters
    ----------
    values_enc : sequence of mpz, ``(n,)``
        Checked ciphertexts under that key; the caller vouches that every value keeps the shape's bound.
    """

    def __init__(self, side: PaillierPublicSide, values_enc: Sequence[mpz], packing: RankingPacking) -> None:
        if (len(values_enc), side.bits) != (packing.shape.n, packing.key_bits):
            raise ParameterError(
                "numbers_do_not_fit_ranking",
                count=len(values_enc),
                bits=side.bits,
                numbers=packing.shape.n,
                asked=packing.key_bits,
            )
        self._side = side
        self._values_enc = tuple(values_enc)
        self._packing = packing

    def blinded(self, addends: Sequence[int]) -> tuple[bytes, list[int]]:
        """Return 2^tie_bits·v + addend in slots, several a ciphertext, each refreshed and blinded modulo n; and the Host's shares.

        No addend is smaller than 2^tie_bits·|v|.
        """
        packing = self._packing
        key = self._side.key
        ties = mpz(1) << packing.shape.tie_bits
        values_enc = iter(self._values_enc)
        blinded_enc = []
        shares = list[int]()
        fresh = self._side.obfuscators.take(len(packing.slots))
        for count, plain, obfuscator in zip(packing.slots, packing.join(addends), fresh, strict=True):
            blind = secrets.randbelow(int(key.n))
            packed_enc = self._side.joined([next(values_enc) for _ in range(count)], packing.slot)
            mask_enc = key.encrypt_with(plain + blind, obfuscator)
            blinded_enc.append(gmpy2.powmod(packed_enc, ties, key.n2) * mask_enc % key.n2)
            shares += [packing.shape.against(blind, s) for s in range(count)]
        return key.dump(blinded_enc), shares


class PackedOpener:
    """The Guest's side."""

    def __init__(self, key: PaillierKeySide, packing: RankingPacking) -> None:
        if key.bits != packing.key_bits:
            raise ParameterError("key_of_other_length", bits=key.bits, asked=packing.key_bits)
        self._key = key
        self._packing = packing

    def opened(self, blob: bytes) -> list[int]:
        """The Guest's shares of what :meth:`PackedBlinds.blinded` made, in the lowest bits of a number each.

        Raises SecurityError if the message has a wrong length, or holds what is no ciphertext.
        """
        n = int(self._key.public.n)
        numbers = self._key.decrypt(blob, len(self._packing.slots))
        return self._packing.split([number % n for number in numbers])
