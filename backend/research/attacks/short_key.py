"""A9: a key short enough to be factored on screen. Plays a Host that wants to read what the Guest encrypted; knows the public key.

The toy key takes milliseconds, every 32 bits more several times as long; the 512 bits of Fed-EINI's measurements are still far from safe.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from flint import fmpz
from gmpy2 import mpz

from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierPublicKey, PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.registry import open_offer
from backend.errors import SecurityError
from backend.research.attacks.keys import honest_keys, jacobi_bit, matches
from backend.research.attacks.result import AttackOutcome, count

TOY_BITS = 96
LONGER = (128, 160)  # bits of more toy keys, for the figures
SMOOTH = 32  # bits of the factors looked for in a key that cannot be factored completely


def run(seed: int, key_bits: int = KEY_BITS_FLOOR, labels: int = 128, longer: Sequence[int] = LONGER) -> AttackOutcome:
    """Read 0/1 labels encrypted under a toy key, and under the shortest key that is accepted."""
    truth = np.random.default_rng(seed).random(labels) < 0.5
    numbers = truth.astype(int).tolist()
    toy = PaillierKeySide(PaillierSecretKey.generate(TOY_BITS, floor=TOY_BITS))
    under_toy = toy.encrypt_numbers(numbers)
    shipped = honest_keys(key_bits).guest
    under_shipped = shipped.encrypt_numbers(numbers)
    try:
        open_offer(toy.scheme, toy.offer(), KEY_BITS_FLOOR, 0, None, None)
        accepted = 1.0
    except SecurityError:
        accepted = 0.0
    return AttackOutcome(
        count(lambda: matches(read(toy.public, under_toy), truth)),
        count(lambda: matches(read(shipped.public, under_shipped), truth)),
        chance=0.5,
        setting={"toy_bits": TOY_BITS, "key_bits": key_bits, "labels": labels},
        rates={"toy_key_accepted": accepted},
        numbers={f"seconds_{bits}_bits": _seconds(bits) for bits in longer},
    )


def read(key: PaillierPublicKey, ciphertexts: Sequence[mpz]) -> list[bool]:
    """Factor the key and decrypt; if it cannot be factored, guess from the Jacobi symbol."""
    factors = _factors(key)
    if len(factors) < 2:
        return [jacobi_bit(c, key.n) for c in ciphertexts]
    owner = PaillierKeySide(PaillierSecretKey(max(factors), min(factors)))
    return [number == 1 for number in owner.decrypt_numbers(ciphertexts)]


def _factors(key: PaillierPublicKey) -> list[mpz]:
    n = fmpz(int(key.n))
    if key.bits <= max(TOY_BITS, *LONGER):
        factors = n.factor()
    else:
        factors = n.factor_smooth(SMOOTH)
    return [mpz(int(prime)) for prime, _ in factors]


def _seconds(bits: int) -> float:
    key = PaillierSecretKey.generate(bits, floor=bits).public
    began = time.perf_counter()
    _factors(key)
    return time.perf_counter() - began
