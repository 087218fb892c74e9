"""How numbers lie in RLWE ciphertexts, how many ciphertexts travel together, and what masks a reply. Knows no key and no plaintext.

One layout with two extremes. A ciphertext has N slots, a message has n samples, so G = N // n entries ride in one ciphertext: entry e
goes to ciphertext e // G, block e % G, and sample s of it to slot (e % G)·n + s. G large: all leaves of a few samples in one
ciphertext; G = 1: one leaf across thousands of samples. The last Host adds all ciphertexts up; the Guest adds the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import IntArray
from backend.crypto.rlwe.randomness import random_bytes
from backend.crypto.rlwe.ring import Ring
from backend.errors import ParameterError

PIECE_BYTES = 8 << 20  # of a message, so that a batch can be watched and stopped


def blocks_of(of: Ring, n: int) -> int:
    """G: entries that ride in one ciphertext."""
    if not 0 < n <= of.parameters.degree:
        raise ParameterError("people_exceed_ciphertext", people=n, most=of.parameters.degree)
    return of.parameters.degree // n


def cuts(ciphertexts: int, width: int) -> list[range]:
    """Which ciphertexts travel together; one empty piece if there are none."""
    step = max(1, PIECE_BYTES // width)
    return [range(i, min(i + step, ciphertexts)) for i in range(0, max(1, ciphertexts), step)]


def block_mask(of: Ring, n: int, addends: Sequence[int] = ()) -> IntArray:
    """Return ``(N,)`` uniform integers mod t, except that each sample's G slots sum to 0, or to its addend."""
    t = of.parameters.plain_modulus
    blocks = blocks_of(of, n)
    mask = _uniform(t, of.parameters.degree)
    slots_of_samples = mask[: blocks * n].reshape(blocks, n)
    totals = np.array(addends if len(addends) else [0], dtype=np.int64)
    slots_of_samples[-1] = (totals - slots_of_samples[:-1].sum(axis=0)) % t
    return mask


def _uniform(t: int, count: int) -> NDArray[np.int64]:
    limit = (1 << 64) // t * t
    while True:
        words = np.frombuffer(random_bytes(8 * count), dtype="<u8")
        if (words < limit).all():
            return (words % np.uint64(t)).astype(np.int64)
