"""A1: a Host's choices read from a reply that was not refreshed. Plays a Guest that chose its key and its obfuscators.

The Guest makes p - 1 and q - 1 from small primes and the j-th obfuscator g^(2^j). The product of the kept ciphertexts is g^E modulo n,
whatever was encrypted, and the binary digits of E are the Host's 0/1 (Pohlig and Hellman find E prime by prime). A Guest with an honest
key reads the path of a few trees, too: it compares the reply with products of its own ciphertexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod

import gmpy2
import numpy as np
from gmpy2 import mpz

from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierPublicKey
from backend.research.attacks.keys import element_of_order, fold_alone, honest_keys, host_of, logarithm, matches
from backend.research.attacks.result import AttackOutcome, count

SMALL = (1 << 8, 1 << 12)  # the primes that p - 1 and q - 1 are made of
# of the honest key's reply
TREES = 8
LEAVES = 4
REPLIES = 4


def run(seed: int, key_bits: int = KEY_BITS_FLOOR, entries: int = 1600) -> AttackOutcome:
    """Read `entries` bits of a Host from one reply; a fifth fewer than `key_bits`, so that E stays below the order of g."""
    draw = np.random.default_rng(seed)
    smooth = SmoothKey.draw(draw, key_bits)
    keep = draw.random(entries) < 0.5
    host = host_of(smooth.key)
    base = gmpy2.powmod(smooth.generator, smooth.key.n, smooth.key.n2)
    n2 = smooth.key.n2
    sent = []
    for weight in draw.integers(-1000, 1000, entries).tolist():
        sent.append(smooth.key.encrypt_with(weight, base))
        base = base * base % n2

    def read(reply: mpz) -> tuple[int, int]:
        exponent = smooth.logarithm(reply)
        return matches([exponent.bit_test(j) for j in range(entries)], keep)

    rates = _with_an_honest_key(draw, key_bits)
    kept_only = np.flatnonzero(keep).tolist()
    return AttackOutcome(
        # Fed-EINI eq. 10 as printed: the product of the kept ciphertexts, not refreshed
        count(lambda: read(product_of(sent, kept_only, n2))),
        count(lambda: read(fold_alone(host, sent, keep))),
        chance=0.5,
        setting={"key_bits": key_bits, "bits": entries, "honest_trees": TREES},
        rates=rates,
    )


class SmoothKey:
    """A key with which the Guest can take discrete logarithms.

    Attributes
    ----------
    key : PaillierPublicKey
        Looks like any other.
    generator : mpz
        Its order is the product of all small primes.
    """

    def __init__(self, factors: Sequence[tuple[mpz, list[int]]], generator: mpz) -> None:
        self._factors = factors
        self.key = PaillierPublicKey(factors[0][0] * factors[1][0])
        self.generator = generator

    @classmethod
    def draw(cls, draw: np.random.Generator, bits: int) -> SmoothKey:
        """Primes of ``bits/2`` bits, no small prime used twice."""
        small = [p for p in range(*SMALL) if gmpy2.is_prime(p)]
        shuffled = draw.permutation(small).tolist()
        factors = [_smooth_prime(draw, shuffled[half::2], bits // 2) for half in (0, 1)]
        generators = [element_of_order(draw, *factor) for factor in factors]
        (p, _), (q, _) = factors
        return cls(factors, generators[0] + p * ((generators[1] - generators[0]) * gmpy2.invert(p, q) % q))

    def logarithm(self, reply: mpz) -> mpz:
        """E with reply ≡ g^(n·E) mod n, small prime by small prime (Pohlig–Hellman); meaningless where the reply is no such power."""
        exponent = mpz(0)
        modulus = mpz(1)
        for prime, small in self._factors:
            base = gmpy2.powmod(self.generator, self.key.n, prime)
            for ell in small:
                part = (prime - 1) // ell
                roots = gmpy2.powmod(base, part, prime), gmpy2.powmod(reply, part, prime)
                digit = logarithm(*roots, prime, SMALL[1].bit_length())
                exponent += modulus * ((digit - exponent) * gmpy2.invert(modulus, ell) % ell)
                modulus *= ell
        return exponent


def _smooth_prime(draw: np.random.Generator, small: list[int], bits: int) -> tuple[mpz, list[int]]:
    """Draw a prime of `bits` bits, the two highest set, that is 1 + twice a product of different `small` primes."""
    low = mpz(3) << (bits - 2)
    high = mpz(1) << bits
    while True:
        factors: list[int] = []
        remaining_primes = iter(draw.permutation(small).tolist())
        while 2 * prod(factors) < low >> SMALL[1].bit_length():
            factors.append(next(remaining_primes))
        for ell in remaining_primes:
            candidate = 2 * mpz(prod(factors)) * ell + 1
            if low <= candidate < high and gmpy2.is_prime(candidate):
                return candidate, [*factors, ell]


def product_of(numbers: Sequence[mpz], positions: Sequence[int], n2: mpz) -> mpz:
    """Return the product of the numbers at `positions` modulo n²."""
    return reduce(lambda total, j: total * numbers[j] % n2, positions, mpz(1))


def _with_an_honest_key(draw: np.random.Generator, key_bits: int) -> dict[str, float]:
    """Return the rates of identified paths, without and with refreshing, if the Guest's key and obfuscators are honest."""
    keys = honest_keys(key_bits)
    identified = {False: 0, True: 0}
    for _ in range(REPLIES):
        path = tuple((np.arange(TREES) * LEAVES + draw.integers(0, LEAVES, TREES)).tolist())
        keep = np.isin(np.arange(TREES * LEAVES), path)
        sent = keys.guest.encrypt_numbers(draw.integers(-1000, 1000, TREES * LEAVES).tolist())
        for refreshed in identified:
            if refreshed:
                reply = fold_alone(keys.host, sent, keep)
            else:
                reply = product_of(sent, path, keys.host.key.n2)
            identified[refreshed] += path_of(sent, reply, keys.host.key.n2) == path
    return {"honest_key_off": identified[False] / REPLIES, "honest_key_on": identified[True] / REPLIES}


def path_of(sent: Sequence[mpz], reply: mpz, n2: mpz) -> tuple[int, ...] | None:
    """Return one leaf per tree whose ciphertexts multiply to `reply`, by meeting in the middle; None if no combination does."""
    trees = [range(first, first + LEAVES) for first in range(0, TREES * LEAVES, LEAVES)]
    products = {product_of(sent, path, n2): path for path in product(*trees[: TREES // 2])}
    inverses = [gmpy2.invert(c, n2) for c in sent]
    for path in product(*trees[TREES // 2 :]):
        quotient = reply * product_of(inverses, path, n2) % n2
        if quotient in products:
            return products[quotient] + path
    return None
