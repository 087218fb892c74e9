"""Keys for the attack lab, the shipped Host's fold in one call, and logarithms in small groups. Holds a Guest's secret; is no party."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from backend.crypto.interface import FoldPlan
from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierPublicKey, PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide


@dataclass(frozen=True)
class AttackKeys:
    """A key as a Guest draws it, and the sides built on it as they are shipped, without pools in the background."""

    secret: PaillierSecretKey
    guest: PaillierKeySide
    host: PaillierPublicSide


@lru_cache(maxsize=4)
def honest_keys(bits: int) -> AttackKeys:
    """The key of this size; the same for every attack of a run."""
    secret = PaillierSecretKey.generate(bits, floor=min(bits, KEY_BITS_FLOOR))
    return AttackKeys(secret, PaillierKeySide(secret), host_of(secret.public))


def host_of(key: PaillierPublicKey) -> PaillierPublicSide:
    """A Host that was offered `key` and has checked it; keys below the floor are for tests."""
    return PaillierPublicSide(PaillierPublicKey.from_bytes(key.to_bytes(), floor=min(key.bits, KEY_BITS_FLOOR)))


def jacobi_bit(ciphertext: mpz, n: mpz) -> bool:
    """What a ciphertext shows to anybody without a key: its Jacobi symbol, which depends on its obfuscator alone."""
    return bool(gmpy2.jacobi(ciphertext % n, n) == 1)


def plan_of(target: Sequence[int], n_out: int) -> FoldPlan:
    """A Host with a condition on every entry; one outgoing entry makes it the last Host, more the first of two."""
    return FoldPlan(tuple(target), (True,) * len(target), n_out, tuple(range(len(target))), 0, 1 if n_out == 1 else 2)


def fold(host: PaillierPublicSide, sent: Sequence[mpz], keep: NDArray[np.bool_], plan: FoldPlan) -> list[mpz]:
    """Return the shipped Host's reply to ``n·m`` ciphertexts if its 0/1 are `keep`, ``(n, m)``; raises SecurityError if it refuses."""
    folding = host.start_fold(keep, plan)
    folding.add(host.key.dump(sent))
    (blob,) = folding.finish()
    return host.key.load(blob, len(keep) * plan.n_out)


def fold_alone(host: PaillierPublicSide, sent: Sequence[mpz], keep: NDArray[np.bool_]) -> mpz:
    """Return the only Host's reply to one sample, ``(m,)``."""
    return fold(host, sent, keep[None, :], plan_of([0] * len(sent), 1))[0]


def matches(guesses: Sequence[bool], truth: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the number of right bits, and of all bits."""
    is_right = np.asarray(guesses, dtype=bool) == truth.ravel()
    return int(is_right.sum()), truth.size


def element_of_order(draw: np.random.Generator, prime: mpz, factors: Sequence[int | mpz]) -> mpz:
    """An element modulo `prime` whose order is the product of `factors`, different primes that divide ``prime - 1``."""
    order = mpz(prod(factors))
    while True:
        random = mpz(int.from_bytes(draw.bytes(32), "big")) + 2
        g = gmpy2.powmod(random, (prime - 1) // order, prime)
        if all(gmpy2.powmod(g, order // factor, prime) != 1 for factor in factors):
            return g


def logarithm(base: mpz, target: mpz, modulus: mpz, bits: int) -> int:
    """The exponent below 2**bits that takes `base` to `target`, by baby and giant steps; 0 if there is none."""
    size = 1 << -(-bits // 2)
    exponents: dict[mpz, int] = {}
    power = mpz(1)
    for exponent in range(size):
        exponents.setdefault(power, exponent)
        power = power * base % modulus
    giant_step = gmpy2.invert(power, modulus)
    for giant in range(size):
        if target in exponents:
            return giant * size + exponents[target]
        target = target * giant_step % modulus
    return 0
