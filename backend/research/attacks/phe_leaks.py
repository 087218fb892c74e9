"""A3, A4: what ciphertexts of `phe` show when they are used as in FATE 1.x. Plays the next Host of a chain, and a Host.

A3: a Host multiplies the Guest's ciphertext c by its 0 or 1; c·0 is the number 1 and c·1 is c, for the next Host to see, which saw what
the Guest sent. A4: every number travels with an exponent of its own: -14 or so for a leaf weight, 0 for the number 0 that stands for a
leaf that the Guest has ruled out (Fed-EINI eq. 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import phe
from gmpy2 import mpz

from backend.crypto.fixedpoint import quantise
from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.research.attacks.keys import fold, honest_keys, jacobi_bit, matches, plan_of
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import PARAMETERS

LEAVES = 128
LEAF_WEIGHTS = 0.2  # standard deviation, logits


def run_chain(seed: int, key_bits: int = KEY_BITS_FLOOR, entries: int = 128) -> AttackOutcome:
    """Read `entries` bits of the first Host from what it passes on."""
    draw = np.random.default_rng(seed)
    keys = honest_keys(key_bits)
    n = keys.host.key.n
    bits = draw.random((1, entries)) < 0.5
    sent = keys.guest.encrypt_numbers(draw.integers(-1000, 1000, entries).tolist())

    def with_phe() -> tuple[int, int]:
        public = phe.PaillierPublicKey(int(n))
        products = [phe.EncryptedNumber(public, int(c)) * int(keep) for c, keep in zip(sent, bits[0], strict=True)]
        return matches(read_kept(sent, [mpz(c.ciphertext(be_secure=False)) for c in products], n), bits)

    def shipped() -> tuple[int, int]:
        return matches(read_kept(sent, fold(keys.host, sent, bits, plan_of(range(entries), entries)), n), bits)

    return AttackOutcome(
        count(with_phe), count(shipped), chance=0.5, setting={"key_bits": key_bits, "entries": entries}
    )


def read_kept(sent: Sequence[mpz], passed_on: Sequence[mpz], n: mpz) -> list[bool]:
    """Return which entries were kept: an unchanged one was, one that became 1 was not; any other is guessed from its Jacobi symbol."""
    bits = []
    for received, forwarded in zip(sent, passed_on, strict=True):
        if forwarded in (received, 1):
            bits.append(forwarded == received)
        else:
            bits.append(jacobi_bit(received, n) == jacobi_bit(forwarded, n))
    return bits


def run_exponents(seed: int, key_bits: int = KEY_BITS_FLOOR) -> AttackOutcome:
    """Find the candidates among :data:`LEAVES` leaves from the decision vector on the wire."""
    draw = np.random.default_rng(seed)
    keys = honest_keys(key_bits)
    key = keys.host.key
    candidate = draw.random(LEAVES) < 0.5
    weights = draw.normal(0.0, LEAF_WEIGHTS, LEAVES)

    def with_phe() -> tuple[int, int]:
        public = phe.PaillierPublicKey(int(key.n))
        sent = []
        for w, c in zip(weights, candidate, strict=True):
            sent.append(public.encrypt(float(w) if c else 0))
        return matches([number.exponent != 0 for number in sent], candidate)

    def shipped() -> tuple[int, int]:
        units = np.where(candidate, quantise(weights, PARAMETERS.score_bits), 0)
        numbers = key.load(keys.guest.encrypt(units[None, :]), LEAVES)
        times = Counter(numbers)
        # zeros would show as equal numbers, or as a bare 1; else guessed from the Jacobi symbol
        return matches([c != 1 and times[c] == 1 and jacobi_bit(c, key.n) for c in numbers], candidate)

    return AttackOutcome(count(with_phe), count(shipped), chance=0.5, setting={"key_bits": key_bits, "leaves": LEAVES})
