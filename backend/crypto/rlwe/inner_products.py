"""Inner products of encrypted rows with one Host's factors, as coefficients of polynomial products modulo X^N + 1. Both sides.

The Guest has rows of *own* numbers, one a feature of its own, and a *base* a row. Over all rows of all people it gets Σ own·factor, the
factor of a row being the Host's and the same for all own features, and Σ base·part for every feature of the Host's, and nothing else.

A block is s = N // own rows: g(X) = Σ_f Σ_i own_{f,i}·X^(f·s + i), the Host's polynomial is b(X) = Σ_i factor_i·X^(s−1−i), and coefficient
f·s + s−1 of g·b is f's sum: i − i' is a multiple of s only if i = i', and what wraps round at N ends below s−1. Of the base a block is
N rows, multiplied by a polynomial for each of the Host's features, whose sum is coefficient N−1. Why a reply shows no more:
docs/decisions/reasons.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import IntArray, check_length
from backend.crypto.rlwe import seal
from backend.crypto.rlwe.bin_sums import sealed
from backend.crypto.rlwe.fresh import read_fresh
from backend.crypto.rlwe.public import RlwePublicSide
from backend.crypto.rlwe.residues import ResidueKeySide, ResiduePublicSide, from_residues
from backend.crypto.rlwe.ring import Ring, saved
from backend.crypto.rlwe.sum_parameters import flood_range

Totals = list[list[Any | None]]  # by key: the sum of the Guest's own features, then one a feature of the Host's


def blocks_of_rows(numbers: IntArray, size: int) -> IntArray:
    """``(features, rows)`` → ``(blocks, features · size)``: the rows of each block, feature by feature; rows that are missing are 0."""
    features, rows = numbers.shape
    count = -(-rows // size)
    padded = np.zeros((features, count * size), dtype=np.int64)
    padded[:, :rows] = numbers
    return padded.reshape(features, count, size).transpose(1, 0, 2).reshape(count, features * size)


def own_positions(features: int, degree: int) -> NDArray[np.intp]:
    """Return the coefficients that are the sums of the Guest's `features` own features, ``(features,)``."""
    size = degree // features
    return np.arange(features) * size + size - 1


def _centred(numbers: IntArray, t: int) -> IntArray:
    residues = numbers % t
    return np.where(residues > t // 2, residues - t, residues)


class RowKey:
    """The Guest's side, for a number of its own features and of the Host's, the `others`."""

    def __init__(self, key: ResidueKeySide, guest_features: int, others: int) -> None:
        self._key = key
        self._guest_features = guest_features
        self._others = others

    def encrypt(self, guest_rows: IntArray, base: IntArray) -> bytes:
        """Encrypt ``(guest_features, rows)`` and ``(rows,)`` integers: by key, blocks of the Guest's numbers, then of the base."""
        degree = self._key.bits
        polynomials = [
            *blocks_of_rows(guest_rows, degree // self._guest_features),
            *blocks_of_rows(base[np.newaxis], degree),
        ]
        blobs = []
        for side in self._key.sides:
            t = side.parameters.plain_modulus
            blobs.append(side.encrypt_coefficients([_centred(polynomial, t) for polynomial in polynomials]))
        return b"".join(blobs)

    def decrypt(self, blob: bytes) -> list[int]:
        """Return the sums of the Guest's features, then of the Host's, from -limit to limit.

        Raises SecurityError if `blob` is not such a message.
        """
        key = self._key
        width = self._key.sides[0].full_width
        check_length(blob, len(key.sides) * (1 + self._others), width)
        parts = iter(blob[i : i + width] for i in range(0, len(blob), width))
        positions = own_positions(self._guest_features, key.bits)
        last = np.array([key.bits - 1], dtype=np.intp)
        residues = []
        for side in key.sides:
            sums = side.decrypt_coefficients(next(parts), positions)
            for _ in range(self._others):
                sums += side.decrypt_coefficients(next(parts), last)
            residues.append([number % side.parameters.plain_modulus for number in sums])
        totals = from_residues(residues, [p.plain_modulus for p in key.parameters])
        return [number if number <= key.limit else number - key.modulus for number in totals]


class RowProducts:
    """The Host's side; parameters as of :class:`RowKey`, for the Guest's public keys."""

    def __init__(self, side: ResiduePublicSide, guest_features: int, others: int) -> None:
        self._sides = side.sides
        self._degree = side.bits
        self._guest_features = guest_features
        self._others = others
        # keys differ in t alone: their ciphertexts are polynomials modulo the same primes, and meet the same small factors
        self._ring = side.sides[0].ring

    def add(self, blob: bytes, factors: IntArray, parts: IntArray, previous: Totals | None) -> Totals:
        """Multiply and add up.

        Parameters
        ----------
        blob : bytes
            The Guest's ciphertexts, see :meth:`RowKey.encrypt`.
        factors : ndarray of int64
            ``(rows,)``, for the Guest's own features.
        parts : ndarray of int64
            ``(others, rows)``, for the base.
        previous : Totals, optional
            The totals so far; changed in place.

        Raises
        ------
        SecurityError
            The message has another length, or a part of it is not a ciphertext.
        """
        by_feature = blocks_of_rows(factors[np.newaxis], self._degree // self._guest_features)[:, ::-1]
        by_base = blocks_of_rows(parts, self._degree).reshape(-1, self._others, self._degree)[:, :, ::-1]
        width = self._sides[0].ring.seeded_width
        check_length(blob, len(self._sides) * (len(by_feature) + len(by_base)), width)
        totals: Totals = previous or [[None] * (1 + self._others) for _ in self._sides]
        count = len(by_feature) + len(by_base)
        of_own = ((slice(0, 1), numbers[np.newaxis]) for numbers in by_feature)
        of_base = ((slice(1, None), lines) for lines in by_base)
        for i, (rows, lines) in enumerate(chain(of_own, of_base)):
            factors_of_block = [_transformed(self._ring, line) for line in lines]
            for key, total in enumerate(totals):
                at = (key * count + i) * width
                ciphertext = read_fresh(self._ring, blob[at : at + width])
                total[rows] = [
                    _plus(self._ring, sum_of_row, ciphertext, factor)
                    for sum_of_row, factor in zip(total[rows], factors_of_block, strict=True)
                ]
        return totals

    def replies(self, totals: Totals, addends: Sequence[int] = ()) -> bytes:
        """Return the sums as they may go to the Guest, by key, each plus one of `addends`."""
        return b"".join(self._sealed(side, total, addends) for side, total in zip(self._sides, totals, strict=True))

    def _sealed(self, side: RlwePublicSide, total: list[Any | None], addends: Sequence[int]) -> bytes:
        span = flood_range(side.ring.parameters, self._guest_features)
        last = np.array([self._degree - 1], dtype=np.intp)
        positions = [own_positions(self._guest_features, self._degree), *[last] * self._others]
        if side.ring is self._ring:
            under_key = total
        else:
            under_key = [_moved(side.ring, ciphertext) for ciphertext in total]
        numbers = addends or [0] * (self._guest_features + self._others)
        residues = [number % side.ring.parameters.plain_modulus for number in numbers]
        addends_of_sums = [residues[: self._guest_features], *([number] for number in residues[self._guest_features :])]
        parts = zip(under_key, positions, addends_of_sums, strict=True)
        return b"".join(sealed(side.zeros, ciphertext, places, span, plus) for ciphertext, places, plus in parts)


def _moved(ring: Ring, total: Any | None) -> Any | None:
    """The same polynomials as a ciphertext in another key's ring."""
    if total is None:
        return None
    return ring.ciphertext_of(saved(total)[-2 * ring.residue_bytes :], transformed=True)


def _transformed(ring: Ring, line: IntArray) -> tuple[Any, bool]:
    """Return a polynomial to multiply by, and whether it stands for 0, which SEAL refuses to multiply by."""
    nothing = not line.any()
    plain = ring.plaintext(np.ones_like(line) if nothing else line)
    ring.evaluator.transform_to_ntt_inplace(plain, ring.first)
    return plain, nothing


def _plus(ring: Ring, total: Any | None, ciphertext: Any, factor: tuple[Any, bool]) -> Any | None:
    """Return a sum and the ciphertext times the factor; a factor of 0 takes as long as another, and its product is dropped."""
    plain, nothing = factor
    product = seal.Ciphertext()
    ring.evaluator.multiply_plain(ciphertext, plain, product)
    if nothing:
        ring.evaluator.add_inplace(product, product)
        return total
    return ring.plus(total, product)
