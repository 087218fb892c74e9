"""Fresh encryptions of zero under the Guest's public key: what a Host adds to whatever it computed before that leaves. Holds no secret.

(b·v + c0, a·v + t·e₁) for the public key (b, a), a ternary v and a short e₁ that are drawn again each time, and a c0 that the caller draws:
short noise, or a flood (Lyubashevsky, Peikert and Regev, EUROCRYPT 2010). SEAL's own encryption under a public key also works modulo the
prime that it sets aside, and divides that out again (docs/decisions/encryption.md).
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.rlwe import seal
from backend.crypto.rlwe.flooding import times
from backend.crypto.rlwe.parameters import ERROR_BITS, RlweParameters, short_enough
from backend.crypto.rlwe.randomness import random_bytes
from backend.crypto.rlwe.ring import Ring, read, ring
from backend.errors import SecurityError

CACHED_KEYS = 16  # keys, of half a megabyte each; a request for reasons takes up to eight
# of a key, once its Host is to keep some ready: about what one person's question takes, of up to a megabyte each
FRESH = 8
QUIET_SECONDS = (
    0.03  # seconds after the last one was taken until more are made: the answer that it went into goes first
)
LOW = np.uint64((1 << ERROR_BITS) - 1)


def error(count: int) -> NDArray[np.int64]:
    """Draw ``(count,)`` from SEAL's centred binomial: the ones of 21 bits less those of 21 others; variance 10.5."""
    words = np.frombuffer(random_bytes(8 * count), dtype="<u8")
    ones = np.bitwise_count(words & LOW)
    others = np.bitwise_count(words >> np.uint64(ERROR_BITS) & LOW)
    noise_terms: NDArray[np.int64] = ones.astype(np.int64) - others.astype(np.int64)
    return noise_terms


def noise(parameters: RlweParameters, short: NDArray[np.int64]) -> bytes:
    """Coefficients t·e modulo every prime of q, as SEAL lays them out."""
    size = np.abs(short).astype(np.uint64)
    below = short < 0
    out = []
    for modulus in parameters.moduli[:-1]:
        residues = times(size, parameters.plain_modulus % modulus, modulus)
        out.append(np.where(below, np.uint64(modulus) - residues, residues).astype("<u8").tobytes())
    return b"".join(out)


def ternary(count: int) -> NDArray[np.int64]:
    """Draw ``(count,)`` uniformly from -1, 0 and 1; bytes of 255 are redrawn."""
    coefficients = np.frombuffer(random_bytes(count), dtype=np.uint8).copy()
    while (beyond := np.flatnonzero(coefficients == 255)).size:
        coefficients[beyond] = np.frombuffer(random_bytes(beyond.size), dtype=np.uint8)
    return (coefficients % 3).astype(np.int64) - 1


class Zeros:
    """Makes them under one key; see :func:`zeros_under`.

    Each is used once. After :meth:`keep_ready`, what was taken is made again in idle time, by a thread that then ends.
    """

    def __init__(self, of: Ring, key: Any) -> None:
        self.ring = of
        count = len(of.parameters.moduli) * of.parameters.degree
        # of either half, what holds modulo q and the prime set aside holds modulo q
        residues = []
        for start in (0, count):
            residues.append([key[i] for i in range(start, start + count - of.parameters.degree)])
        self._key = of.ciphertext_of(np.array(residues, dtype="<u8").tobytes(), transformed=True)
        self._ready: deque[Any] = deque(maxlen=FRESH)
        self._keeps = False
        self._taken = 0.0
        self._owner = os.getpid()
        self._filling: threading.Thread | None = None

    @property
    def ready(self) -> int:
        """How many are on hand."""
        return len(self._ready)

    def keep_ready(self) -> None:
        """Have up to :data:`FRESH` on hand from the first on that is taken."""
        self._keeps = True

    def make(self, c0: bytes | None = None) -> Any:
        """Return a fresh encryption of 0 with `c0`, by default noise, added to its first half."""
        if c0 is not None:
            return self._made(c0)
        if self._owner != os.getpid():  # forked: the parent process uses the stock
            self._ready = deque(maxlen=FRESH)
            self._filling = None
            self._owner = os.getpid()
        try:
            ciphertext = self._ready.popleft()
        except IndexError:
            ciphertext = self._made()
        self._taken = time.monotonic()
        if self._keeps and (self._filling is None or not self._filling.is_alive()):
            self._filling = threading.Thread(target=self._fill_soon, name="zeros")
            self._filling.start()
        return ciphertext

    def fill(self) -> None:
        """Make what is missing, now."""
        while len(self._ready) < FRESH:
            self._ready.append(self._made())

    def _fill_soon(self) -> None:
        remaining = self._taken + QUIET_SECONDS - time.monotonic()
        while remaining > 0:
            time.sleep(remaining)
            remaining = self._taken + QUIET_SECONDS - time.monotonic()
        self.fill()

    def _made(self, c0: bytes | None = None) -> Any:
        of = self.ring
        parameters = self.ring.parameters
        while True:
            v = ternary(parameters.degree)
            short = error(parameters.degree)
            if short_enough(parameters.degree, int(np.count_nonzero(v)), int(np.abs(short).sum())):
                break
        plain = of.plaintext(v)
        ciphertext = seal.Ciphertext()
        of.evaluator.transform_to_ntt_inplace(plain, of.first)
        of.evaluator.multiply_plain(self._key, plain, ciphertext)
        if c0 is None:
            first = noise(parameters, error(parameters.degree))
        else:
            first = c0
        of.evaluator.add_inplace(ciphertext, of.ciphertext_of(first + noise(parameters, short)))
        return ciphertext


@lru_cache(maxsize=CACHED_KEYS)
def zeros_under(offered: bytes) -> Zeros:
    """Those under a Guest's key, which is read once and kept: that takes as long as ten of them.

    Raises SecurityError if the parameter set is unknown, or the key is none of it, or hides nothing.
    """
    name, _, key = offered.partition(b"\n")
    of = ring(name.decode("ascii", "replace"))
    public = seal.PublicKey()
    if len(key) > of.key_width:
        raise SecurityError("rlwe_key_too_long", bytes=len(key), parameters=of.parameters.name, most=of.key_width)
    read(public, of.context, key)
    if not seal.is_valid_for(public, of.context) or public.data().is_transparent():
        raise SecurityError("key_hides_nothing")
    return Zeros(of, public.data())
