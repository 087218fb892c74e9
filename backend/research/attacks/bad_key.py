"""A2: ciphertexts and keys that no honest Guest makes. Plays a malicious Guest towards the shipped Host.

A ciphertext that p divides makes every product with it divisible by p: one bit per reply, refreshed or not. A key n = p_1·p_2·…·q where
each p_i divides q - 1 has gcd(n, φ(n)) > 1: raised to the power (q - 1)/p_i every n-th power is 1 modulo q, so that the factor with which
the Host refreshes its reply vanishes, and an element of order p_i that the Guest put in comes back.
"""

from __future__ import annotations

from math import prod

import gmpy2
import numpy as np
from gmpy2 import mpz

from backend.crypto.paillier.key_certificate import challenges
from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierPublicKey
from backend.crypto.registry import open_offer
from backend.errors import SecurityError
from backend.research.attacks.keys import (
    element_of_order,
    fold,
    fold_alone,
    honest_keys,
    host_of,
    jacobi_bit,
    logarithm,
    matches,
    plan_of,
)
from backend.research.attacks.result import AttackOutcome, count

SAMPLES = 128  # one a reply
ENTRIES = 4  # per sample; the first one is bad
DIGIT = 16  # bits of the Host read by one factor p_i
SLACK = 64  # bits of q - 1 beside the factors p_i


def run_ciphertexts(seed: int, key_bits: int = KEY_BITS_FLOOR) -> AttackOutcome:
    """Read a bit of the Host from each of :data:`SAMPLES` replies by ciphertexts that share a factor with an honest key."""
    draw = np.random.default_rng(seed)
    keys = honest_keys(key_bits)
    key = keys.host.key
    p = keys.secret.p
    keep = draw.random((SAMPLES, ENTRIES)) < 0.5
    sent = keys.guest.encrypt_numbers(draw.integers(-1000, 1000, SAMPLES * ENTRIES).tolist())
    sent[::ENTRIES] = [c * p % key.n2 for c in sent[::ENTRIES]]

    def unchecked() -> tuple[int, int]:
        replies = []
        for i, obfuscator in enumerate(keys.host.obfuscators.take(SAMPLES)):
            ours = [sent[i * ENTRIES + j] for j in np.flatnonzero(keep[i]).tolist()]
            replies.append(prod(ours, start=obfuscator) % key.n2)
        return matches([reply % p == 0 for reply in replies], keep[:, 0])

    def checked() -> tuple[int, int]:
        try:
            replies = fold(keys.host, sent, keep, plan_of([0] * ENTRIES, 1))
        except SecurityError:  # no reply: the Guest guesses
            guesses = [jacobi_bit(c, key.n) for c in keys.guest.encrypt_numbers([0] * SAMPLES)]
            return matches(guesses, keep[:, 0])
        return matches([reply % p == 0 for reply in replies], keep[:, 0])

    return AttackOutcome(
        count(unchecked), count(checked), chance=0.5, setting={"key_bits": key_bits, "replies": SAMPLES}
    )


def run_key(seed: int, key_bits: int = KEY_BITS_FLOOR) -> AttackOutcome:
    """Read some hundred bits of the Host from one refreshed reply under a key that it accepts if it asks for no certificate."""
    draw = np.random.default_rng(seed)
    small, q = leaky_key(draw, key_bits)
    key = PaillierPublicKey(prod(small, start=q))
    host = host_of(key)
    entries = DIGIT * len(small)
    keep = draw.random(entries) < 0.5
    generators = [element_of_order(draw, q, [p]) for p in small]
    sent = [_beyond(gmpy2.powmod(g, 1 << j, q), q, key, draw) for g in generators for j in range(DIGIT)]

    def read() -> tuple[int, int]:
        reply = fold_alone(host, sent, keep)
        bits: list[bool] = []
        for p, g in zip(small, generators, strict=True):
            part = (q - 1) // p
            digits = logarithm(gmpy2.powmod(g, part, q), gmpy2.powmod(reply, part, q), q, DIGIT)
            bits += [bool(digits >> j & 1) for j in range(DIGIT)]
        return matches(bits, keep)

    def certified() -> tuple[int, int]:
        try:
            open_offer("paillier", key.to_bytes() + forged(small, q), min(key.bits, KEY_BITS_FLOOR), 0, None, None)
        except SecurityError:  # no reply: the Guest guesses
            return matches([jacobi_bit(c, key.n) for c in sent], keep)
        return read()

    return AttackOutcome(count(read), count(certified), chance=0.5, setting={"key_bits": key.bits, "bits": entries})


def forged(small: list[mpz], q: mpz) -> bytes:
    """A certificate that is valid for every challenge with an n-th root; few have one, and all would have to."""
    n = mpz(prod(small, start=q))
    order = gmpy2.lcm(q - 1, mpz(prod(p - 1 for p in small)))
    while (common := gmpy2.gcd(order, n)) != 1:
        order //= common
    roots = [gmpy2.powmod(challenge, gmpy2.invert(n, order), n) for challenge in challenges(n)]
    return b"".join(int(root).to_bytes((n.bit_length() + 7) // 8, "big") for root in roots)


def leaky_key(draw: np.random.Generator, bits: int) -> tuple[list[mpz], mpz]:
    """Primes p_i just above those that a Host's search for small factors finds, and a prime q ≡ 1 modulo each; `bits` or more in all."""
    small: list[mpz] = []
    while 2 * sum(p.bit_length() - 1 for p in small) + SLACK < bits:
        p = gmpy2.next_prime(mpz(int(draw.integers(1 << (DIGIT + 1), 1 << (DIGIT + 4)))))
        if p not in small:
            small.append(p)
    step = 2 * mpz(prod(small))
    start = mpz(int.from_bytes(draw.bytes(SLACK // 8), "big")) | 1 << (SLACK - 1)
    q = step * start + 1
    while not gmpy2.is_prime(q):
        q += step
    return small, q


def _beyond(residue: mpz, q: mpz, key: PaillierPublicKey, draw: np.random.Generator) -> mpz:
    """A ciphertext that looks like any other and is `residue` modulo q."""
    while True:
        c = (residue + q * mpz(int.from_bytes(draw.bytes(key.width), "big"))) % key.n2
        if gmpy2.gcd(c, key.n) == 1:
            return c
