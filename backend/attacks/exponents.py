"""A4: a Host reads the Guest's candidate leaves from exponents that travel in the clear, as in FATE 1.x. Plays the Host.

`phe` sends every number with an exponent of its own: -14 or so for a leaf weight, 0 for the number 0 that stands for a leaf that the
Guest has ruled out (Fed-EINI eq. 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import phe
from gmpy2 import mpz

from backend.attacks.keys import as_bit, honest, matches
from backend.attacks.result import AttackOutcome, attempt
from backend.crypto.fixedpoint import quantise
from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.protocols.training.parameters import SecureBoostParameters

SPREAD = 0.2  # of leaf weights, logits


def run(seed: int, key_bits: int = KEY_BITS_FLOOR, leaves: int = 128) -> AttackOutcome:
    """Name the candidates among `leaves` leaves from the decision vector on the wire."""
    draw = np.random.default_rng(seed)
    keys = honest(key_bits)
    key = keys.host.key
    candidate = draw.random(leaves) < 0.5
    weights = draw.normal(0.0, SPREAD, leaves)

    def with_phe() -> tuple[int, int]:
        public = phe.PaillierPublicKey(int(key.n))
        sent = [public.encrypt(float(w) if c else 0) for w, c in zip(weights, candidate, strict=True)]
        return matches([number.exponent != 0 for number in sent], candidate)

    def shipped() -> tuple[int, int]:
        units = np.where(candidate, quantise(weights, SecureBoostParameters().score_bits), 0)
        blob = keys.guest.encrypt(units[None, :])
        width = len(blob) // leaves
        numbers = [mpz.from_bytes(blob[at : at + width], "big") for at in range(0, len(blob), width)]
        return matches(read(numbers, key.n), candidate)

    return AttackOutcome(
        attempt(with_phe), attempt(shipped), chance=0.5, setting={"key_bits": key_bits, "leaves": leaves}
    )


def read(numbers: Sequence[mpz], n: mpz) -> list[bool]:
    """Which numbers are no zeros, where no exponent travels: not those that come again, nor a bare 1; else by what little they show."""
    times = Counter(numbers)
    return [c != 1 and times[c] == 1 and as_bit(c, n) for c in numbers]
