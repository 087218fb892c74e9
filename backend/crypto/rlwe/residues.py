"""RLWE for numbers longer than a slot: a residue number system with one key per prime. The Guest's side and a Host's.

A number is its residues modulo distinct primes t_1 … t_R, one key each; sums and products are computed residue by residue, and the Chinese
remainder theorem recovers the result, exact within a range of T = t_1 ⋯ t_R integers. Which sets and how many follow from the computation
(:func:`backend.crypto.rlwe.product_parameters.keys_for`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import Fold, FoldPlan, IntArray, check_length
from backend.crypto.rlwe.fresh import read_fresh
from backend.crypto.rlwe.layout import blocks_of
from backend.crypto.rlwe.parameters import MAX_RESIDUES, Load
from backend.crypto.rlwe.product_parameters import keys_for
from backend.crypto.rlwe.public import RlwePublicSide
from backend.crypto.rlwe.ring import written
from backend.crypto.rlwe.scheme import RlweKeySide
from backend.errors import ParameterError, SecurityError

LENGTH_BYTES = 4  # before each key of an offer
Weighed = list[list[Any | None]]  # by key: ciphertexts, None if nothing is left


def from_residues(residues: Sequence[Sequence[int]], moduli: Sequence[int]) -> list[int]:
    """Return integers from their residues (Chinese remainder theorem).

    Parameters
    ----------
    residues : sequence of sequence of int, ``(R, n)``
    moduli : sequence of int, ``(R,)``
        Distinct primes.

    Returns
    -------
    list of int
        ``(n,)``, from 0 to ∏ moduli - 1.
    """
    modulus = prod(moduli)
    lifts = [modulus // t * pow(modulus // t, -1, t) for t in moduli]  # 1 mod t, 0 mod the other primes
    return [
        sum(r * lift for r, lift in zip(column, lifts, strict=True)) % modulus for column in zip(*residues, strict=True)
    ]


class ResidueKeySide:
    """The Guest's side.

    Parameters
    ----------
    sides : sequence of RlweKeySide
        Of sets that differ in t alone.

    Attributes
    ----------
    modulus : int
        T.
    """

    scheme = "rlwe-residues"

    def __init__(self, sides: Sequence[RlweKeySide]) -> None:
        self.sides = tuple(sides)
        self.parameters = tuple(side.parameters for side in sides)
        self._moduli = [p.plain_modulus for p in self.parameters]
        self.bits = sides[0].bits
        self.modulus = prod(self._moduli)
        self.limit = (self.modulus - 1) // 2

    def __repr__(self) -> str:
        return f"ResidueKeySide({', '.join(p.name for p in self.parameters)})"

    def check(self, load: Load) -> None:
        """Raise ParameterError if these are not the keys for this load."""
        if self.parameters != keys_for(load):
            raise ParameterError("keys_of_other_parameters")

    def offer(self) -> bytes:
        """Every key's offer behind its length."""
        offers = [side.offer() for side in self.sides]
        return b"".join(len(offer).to_bytes(LENGTH_BYTES, "big") + offer for offer in offers)

    def encrypt(self, values: IntArray | NDArray[np.object_]) -> bytes:
        """``(n, k)`` integers of any size that fits the array → ``⌈k/G⌉`` ciphertexts per key; the sums are over k."""
        out = []
        for side in self.sides:
            t = side.parameters.plain_modulus
            out.append(side.encrypt((values + side.limit) % t - side.limit))
        return b"".join(out)

    def decrypt(self, blob: bytes, n: int) -> list[int]:
        """``n`` sums from -limit to limit; raises SecurityError if the message is none."""
        width = self.sides[0].reply_width
        check_length(blob, len(self.sides), width)
        parts = [blob[i : i + width] for i in range(0, len(blob), width)]
        residues = [side.decrypt(part, n) for side, part in zip(self.sides, parts, strict=True)]
        return [v if v <= self.limit else v - self.modulus for v in from_residues(residues, self._moduli)]


class ResiduePublicSide:
    """A Host's side.

    Attributes
    ----------
    modulus : int
        T.

    Raises
    ------
    SecurityError
        It is no offer of one to eight keys whose sets differ in t alone.
    """

    scheme = "rlwe-residues"

    def __init__(self, offered: bytes) -> None:
        self.sides = [RlwePublicSide(part) for part in _parts(offered)]
        self.parameters = tuple(side.ring.parameters for side in self.sides)
        kinds = {(p.degree, p.data_bits) for p in self.parameters}
        if len(kinds) != 1 or len(set(self.parameters)) < len(self.sides):
            raise SecurityError("residue_keys_differ")
        self._ring = self.sides[0].ring
        self.modulus = prod(p.plain_modulus for p in self.parameters)
        self.bits = self._ring.parameters.degree
        self.room = 0  # no score is sent under these keys

    def __repr__(self) -> str:
        return f"ResiduePublicSide({', '.join(p.name for p in self.parameters)})"

    def check(self, load: Load) -> None:
        """Raise SecurityError if these are not the keys for this load."""
        expected = keys_for(load)
        if self.parameters != expected:
            raise SecurityError(
                "other_number_of_keys",
                asked=len(expected),
                sets=", ".join(p.name for p in expected),
                got=len(self.sides),
                received=", ".join(p.name for p in self.parameters),
            )

    def start_fold(self, keep: NDArray[np.bool_], plan: FoldPlan, addends: Sequence[int] = ()) -> Fold:
        """Refuse: scoring uses one key."""
        raise SecurityError("key_for_reasons_only")

    def weighted(self, blob: bytes, factors: NDArray[np.int64], fresh: bool) -> Weighed:
        """Check ciphertexts and multiply number by number.

        Parameters
        ----------
        factors : ndarray of int64
            ``(n, k)``, as the Guest's numbers, or those of the Host before, are laid out.
        fresh : bool
            Whether the ciphertexts come from the Guest.

        Raises
        ------
        SecurityError
            The message has another length or holds what is no ciphertext.
        """
        n, k = factors.shape
        blocks = blocks_of(self._ring, n)
        if fresh:
            width = self._ring.seeded_width
        else:
            width = self._ring.full_width
        starts = range(0, k, blocks)
        check_length(blob, len(starts) * len(self.sides), width)
        parts = iter(blob[i : i + width] for i in range(0, len(blob), width))
        out: Weighed = []
        for side in self.sides:
            slots = (factors % side.ring.parameters.plain_modulus).T
            ring = side.ring
            cuts = [slots[i : i + blocks].ravel() for i in starts]
            out.append(
                [
                    ring.times(read_fresh(ring, part) if fresh else ring.ciphertext(part, ring.first), cut)
                    for part, cut in zip(islice(parts, len(cuts)), cuts, strict=True)
                ]
            )
        return out

    def total(self, weighted: Weighed, previous: Weighed | None = None) -> Weighed:
        """Return the sum of all ciphertexts by key, plus the `previous` sums."""
        out: Weighed = []
        for i, (side, ciphertexts) in enumerate(zip(self.sides, weighted, strict=True)):
            summed = None if previous is None else previous[i][0]
            for ciphertext in ciphertexts:
                summed = side.ring.plus(summed, ciphertext)
            out.append([summed])
        return out

    def refreshed(self, weighted: Weighed) -> bytes:
        """Return re-randomised ciphertexts for the next Host."""
        width = self._ring.full_width
        blobs = []
        for side, row in zip(self.sides, weighted, strict=True):
            for ciphertext in row:
                fresh = side.refreshed(ciphertext)
                blobs.append(self._ring.pad(written(fresh), width))
        return b"".join(blobs)

    def reply(self, total: Weighed, n: int, addends: Sequence[int] = ()) -> bytes:
        """Return masked and flooded sums for the Guest, plus `addends`, ``(n,)`` integers or empty."""
        moduli = [side.ring.parameters.plain_modulus for side in self.sides]
        return b"".join(
            side.reply(row[0], n, [number % t for number in addends])
            for side, row, t in zip(self.sides, total, moduli, strict=True)
        )


def _parts(offered: bytes) -> list[bytes]:
    """The keys of an offer."""
    parts = []
    at = 0
    while at < len(offered):
        start = at + LENGTH_BYTES
        at = start + int.from_bytes(offered[at:start], "big")
        parts.append(offered[start:at])
    if at != len(offered) or not 1 <= len(parts) <= MAX_RESIDUES:
        raise SecurityError("wrong_number_of_residue_keys", most=MAX_RESIDUES)
    return parts
