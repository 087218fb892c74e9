"""Fresh encryptions under the secret key s, as the Guest sends them: (m + t·e − a·s, a) modulo q, a crossing as a seed of 32 bytes.

As SEAL encrypts with a secret key, but for the seed's stream, AES-256 in counter mode, and the errors, which are drawn in numpy: two thirds
of SEAL's time went there. Transforms and products stay SEAL's (docs/decisions/encryption.md).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from backend.crypto.interface import IntArray
from backend.crypto.rlwe import seal
from backend.crypto.rlwe.flooding import times
from backend.crypto.rlwe.parameters import FRESH_ERROR, RlweParameters
from backend.crypto.rlwe.randomness import SEED_BYTES, stream_of
from backend.crypto.rlwe.ring import Ring, read, saved
from backend.crypto.rlwe.zeros import error
from backend.errors import SecurityError
from backend.jobs import work

TRANSFORMED_TOGETHER = 2  # polynomials; SEAL cannot transform fewer in one call


class SymmetricEncryption:
    """Encrypts under one secret key, as SEAL saves it."""

    def __init__(self, of: Ring, secret: bytes) -> None:
        key = seal.SecretKey()
        read(key, of.context, secret)
        residues = saved(key)[-of.residue_bytes - 8 * of.parameters.degree :]
        # what follows is modulo the prime set aside
        self._ring = of
        self._secret = of.transformed(np.frombuffer(residues[: of.residue_bytes], dtype="<u8"))

    def __repr__(self) -> str:
        return f"SymmetricEncryption({self._ring.parameters.name})"

    def encrypt(self, polynomials: Sequence[IntArray]) -> bytes:
        """Return ciphertexts, one after the other, of ``(k,)`` coefficients each, k ≤ N, from -t/2 to t/2. A job can stop in between."""
        ciphertexts: list[bytes] = []
        for i in range(0, len(polynomials), TRANSFORMED_TOGETHER):
            work.check()
            ciphertexts += self._encrypted(polynomials[i : i + TRANSFORMED_TOGETHER])
        return b"".join(ciphertexts)

    def _encrypted(self, polynomials: Sequence[IntArray]) -> list[bytes]:
        """Return a seed and c0 of each polynomial. Each SEAL ciphertext here holds two unrelated polynomials as its halves."""
        of = self._ring
        count = len(polynomials)
        seeds = [os.urandom(SEED_BYTES) for _ in polynomials]
        noisy = [_noisy(of.parameters, polynomial) for polynomial in polynomials]
        uniform = [expanded(seed, of.parameters) for seed in seeds]
        if count < TRANSFORMED_TOGETHER:
            noisy.append(bytes(len(noisy[0])))
            uniform.append(uniform[0])
        hidden = of.ciphertext_of(*uniform, transformed=True)
        of.evaluator.multiply_plain_inplace(hidden, self._secret)
        ciphertext = of.ciphertext_of(*noisy)
        of.evaluator.sub_inplace(ciphertext, hidden)
        body = memoryview(saved(ciphertext))[-TRANSFORMED_TOGETHER * of.residue_bytes :]
        return [seed + bytes(body[i * of.residue_bytes : (i + 1) * of.residue_bytes]) for i, seed in enumerate(seeds)]


def read_fresh(of: Ring, blob: bytes) -> Any:
    """A ciphertext of the Guest's; raises SecurityError if its end was filled up with zeros, or a residue is not below its prime."""
    if not any(blob[-SEED_BYTES:]):
        raise SecurityError("ciphertext_damaged")
    return of.ciphertext_of(blob[SEED_BYTES:], expanded(blob[:SEED_BYTES], of.parameters), transformed=True)


def expanded(seed: bytes, parameters: RlweParameters) -> bytes:
    """The a of a seed: uniform modulo every prime of q, transformed, as SEAL lays it out.

    Words of the stream lose the bits that the prime does not have; those that are still too large are replaced by the words that follow.
    """
    stream = stream_of(seed)
    out = []
    for modulus in parameters.moduli[:-1]:
        below = np.uint64((1 << modulus.bit_length()) - 1)
        words = np.frombuffer(stream(8 * parameters.degree), dtype="<u8") & below
        while (beyond := np.flatnonzero(words >= modulus)).size:
            words[beyond] = np.frombuffer(stream(8 * beyond.size), dtype="<u8") & below
        out.append(words.astype("<u8", copy=False).tobytes())
    return b"".join(out)


def _noisy(parameters: RlweParameters, message: IntArray) -> bytes:
    """Coefficients m + t·e modulo every prime of q."""
    t = parameters.plain_modulus
    short = error(parameters.degree)
    out = []
    if (FRESH_ERROR + 1) * t < min(parameters.moduli[:-1]):
        sums = short * t
        sums[: len(message)] += message
        for modulus in parameters.moduli[:-1]:
            out.append((sums + (sums < 0) * np.int64(modulus)).astype("<u8").tobytes())
        return b"".join(out)
    for modulus in parameters.moduli[:-1]:
        residues = times(np.abs(short).astype(np.uint64), t % modulus, modulus).astype(np.int64) * np.sign(short)
        residues[: len(message)] += message
        out.append((residues % modulus).astype("<u8").tobytes())
    return b"".join(out)
