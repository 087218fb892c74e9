"""Draws what hides a reply, in numpy: uniform noise, and for sums in coefficients uniform numbers modulo q in all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.crypto.rlwe.parameters import RlweParameters
from backend.crypto.rlwe.randomness import random_bytes
from backend.crypto.rlwe.sum_parameters import LOW_BITS

Words = NDArray[np.uint64]
LIMB = np.uint64(32)
LOW = np.uint64((1 << 32) - 1)


def uniform(below: int, count: int) -> Words:
    """Return ``(count,)`` uniform integers from 0 to below - 1; words beyond the last whole multiple are redrawn."""
    limit = (1 << 64) // below * below
    words = np.frombuffer(random_bytes(8 * count), dtype="<u8").astype(np.uint64)
    while (beyond := np.flatnonzero(words > np.uint64(limit - 1))).size:
        words[beyond] = np.frombuffer(random_bytes(8 * beyond.size), dtype="<u8")
    return words % np.uint64(below)


def times(small: Words, factor: int, modulus: int) -> Words:
    """Return ``small·factor mod modulus`` for numbers below 2^32 and a modulus below 2^61.

    The quotient is below 2^32, so float64 gives it to within one; the remainder is exact modulo 2^64.
    """
    quotient = (small.astype(np.float64) * (factor / modulus)).astype(np.uint64)
    remainder = (small * np.uint64(factor) - quotient * np.uint64(modulus)).view(np.int64)
    remainder = np.where(remainder < 0, remainder + modulus, remainder)
    return np.where(remainder >= modulus, remainder - modulus, remainder).astype(np.uint64)


def hiding(parameters: RlweParameters, positions: NDArray[np.intp], span: int, addends: Sequence[int] = ()) -> bytes:
    """Return the coefficients that hide a reply, modulo every prime of q, as SEAL lays them out; all are new for each reply.

    Parameters
    ----------
    positions : ndarray of int
        Coefficients that the Guest reads: t·f is added to them, f uniform in a range of span·2^64 integers around 0. A number that is
        uniform modulo q is added to each other coefficient, so that neither the product nor its noise is left in it.
    span : int
        R: see :func:`backend.crypto.rlwe.sum_parameters.flood_range`.
    addends : sequence of int, optional
        ``(positions,)`` integers from 0 to t - 1 that are added to the coefficients that the Guest reads.
    """
    limbs = drawn(span, LOW_BITS // 32, len(positions))
    out = []
    for modulus in parameters.moduli[:-1]:
        numbers = uniform(modulus, parameters.degree)
        read = _residues(limbs, (span << LOW_BITS) >> 1, parameters.plain_modulus, modulus)
        if len(addends):
            read = (read + np.array([number % modulus for number in addends], dtype=np.uint64)) % np.uint64(modulus)
        numbers[positions] = read
        out.append(numbers.astype("<u8").tobytes())
    return b"".join(out)


def flood(parameters: RlweParameters) -> bytes:
    """Coefficients t·f modulo every prime of q, as SEAL lays them out; f is uniform from -F to F - 1, new for each reply."""
    limbs = drawn(*parameters.flood_range, parameters.degree)
    t = parameters.plain_modulus
    return b"".join(
        _residues(limbs, parameters.flood, t, modulus).astype("<u8").tobytes() for modulus in parameters.moduli[:-1]
    )


def drawn(top: int, words: int, count: int) -> tuple[Words, ...]:
    """`count` uniform integers from 0 to top·2^(32·words) - 1, as digits to the base 2^32, lowest first."""
    low = np.frombuffer(random_bytes(4 * words * count), dtype="<u4").reshape(words, count).astype(np.uint64)
    highest = uniform(top, count)
    return (*low, highest & LOW, highest >> LIMB)


def _residues(limbs: tuple[Words, ...], offset: int, t: int, modulus: int) -> Words:
    total = np.full(limbs[0].shape, -t * offset % modulus, dtype=np.uint64)
    for i, limb in enumerate(limbs):
        total = total + times(limb, (t << (32 * i)) % modulus, modulus)
    return total % np.uint64(modulus)
