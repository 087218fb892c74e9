"""Draws what hides a reply of sums by bin, in numpy: uniform noise, and uniform numbers for all coefficients but the sums."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from backend.crypto.rlwe.parameters import RlweParameters
from backend.crypto.rlwe.sum_parameters import LOW_BITS, flood_range

Words = NDArray[np.uint64]
LIMB = np.uint64(32)
LOW = np.uint64((1 << 32) - 1)


def uniform(below: int, count: int) -> Words:
    """``(count,)`` uniform integers from 0 to below - 1; words beyond a whole multiple are redrawn."""
    whole = (1 << 64) // below * below
    words = np.frombuffer(os.urandom(8 * count), dtype="<u8").astype(np.uint64)
    while (beyond := np.flatnonzero(words > np.uint64(whole - 1))).size:
        words[beyond] = np.frombuffer(os.urandom(8 * beyond.size), dtype="<u8")
    return words % np.uint64(below)


def times(small: Words, factor: int, modulus: int) -> Words:
    """``small·factor mod modulus`` for numbers below 2^32 and a modulus below 2^61.

    The quotient is below 2^32, so float64 gives it to within one; the rest is exact modulo 2^64.
    """
    quotient = (small.astype(np.float64) * (factor / modulus)).astype(np.uint64)
    rest = (small * np.uint64(factor) - quotient * np.uint64(modulus)).view(np.int64)
    rest = np.where(rest < 0, rest + modulus, rest)
    return np.where(rest >= modulus, rest - modulus, rest).astype(np.uint64)


def hiding(parameters: RlweParameters, shown: NDArray[np.intp]) -> bytes:
    """Coefficients u + t·f of what is added to a reply, modulo every prime of q, as SEAL lays them out.

    Parameters
    ----------
    shown : ndarray of int
        Coefficients that are not masked.

    Notes
    -----
    u is uniform modulo t, 0 where the sums are; f is uniform in a range of R·2^64 integers around 0. Both are new for each reply.
    """
    t, degree, span = parameters.plain_modulus, parameters.degree, flood_range(parameters)
    masked = uniform(t, degree)
    masked[shown] = 0
    top, low = uniform(span, degree), np.frombuffer(os.urandom(8 * degree), dtype="<u8").astype(np.uint64)
    limbs = (low & LOW, low >> LIMB, top & LOW, top >> LIMB)
    offset = (span << LOW_BITS) >> 1
    return b"".join(_residues(masked, limbs, offset, t, modulus) for modulus in parameters.moduli[:-1])


def _residues(masked: Words, limbs: tuple[Words, ...], offset: int, t: int, modulus: int) -> bytes:
    total = masked + np.uint64(-t * offset % modulus)
    for i, limb in enumerate(limbs):
        total = total + times(limb, (t << (32 * i)) % modulus, modulus)
    return (total % np.uint64(modulus)).astype("<u8").tobytes()
