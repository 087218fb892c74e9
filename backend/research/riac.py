"""RIAC, the forest paper's cipher: BROKEN, kept to be timed in comparisons and broken in the attack lab. It must protect nothing.

Yao et al., App. C eq. 5-7. Ciphertexts alone give 0/1 plaintexts away (docs/attacks.md T1, :mod:`backend.research.attacks.riac_labels`).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

import gmpy2
from gmpy2 import mpz

from backend.errors import ParameterError

BITS = 1024  # of the last modulus; the paper gives no sizes
ROUNDS = 5
HEADROOM = 64  # bits between successive moduli, at least, so that sums do not wrap around
MIN_BITS = 128  # of the first modulus

Pair = tuple[mpz, mpz]  # c1, c2


@dataclass(frozen=True)
class RiacKey:
    """BROKEN: the Randomized Iterative Affine Cipher. A few dozen ciphertexts of 0/1 labels suffice to decrypt them at once.

    Attributes
    ----------
    moduli : tuple of mpz
        n_0 < n_1 < …; the last is public, since sums are reduced by it, the others are secret.
    factors : tuple of mpz
        a_i, prime to n_i; secret.
    r, s : mpz
        Secret, below n_0; h = s·r mod n_0 (eq. 7).
    """

    moduli: tuple[mpz, ...] = field(repr=False)
    factors: tuple[mpz, ...] = field(repr=False)
    r: mpz = field(repr=False)
    s: mpz = field(repr=False)

    @classmethod
    def generate(cls, bits: int = BITS, rounds: int = ROUNDS) -> RiacKey:
        """Draw a key whose moduli grow evenly from ``bits/2`` to `bits` bits.

        Raises ParameterError if there are fewer than two rounds, or no room for them.
        """
        if rounds < 2 or bits // 2 < max(MIN_BITS, HEADROOM * (rounds - 1)):
            raise ParameterError("riac_key_too_short", bits=bits, rounds=rounds, least=2 * MIN_BITS, each=2 * HEADROOM)
        sizes = [bits // 2 + (bits - bits // 2) * i // (rounds - 1) for i in range(rounds)]
        moduli = tuple(mpz(secrets.randbits(size) | 1 << (size - 1) | 1) for size in sizes)
        return cls(moduli, tuple(_unit(n) for n in moduli), _unit(moduli[0]), _unit(moduli[0]))

    @property
    def modulus(self) -> mpz:
        """The public modulus, needed to add ciphertexts."""
        return self.moduli[-1]

    def encrypt(self, values: Sequence[int]) -> list[Pair]:
        """Eq. 7 with a fresh y for each value, then the rounds of eq. 6."""
        n = self.moduli[0]
        h = self.s * self.r % n
        out = []
        for x in values:
            y = mpz(secrets.randbelow(int(n)))
            c1 = y * self.s % n
            c2 = (x + y * h) % n
            for factor, modulus in zip(self.factors, self.moduli, strict=True):
                c1 = factor * c1 % modulus
                c2 = factor * c2 % modulus
            out.append((c1, c2))
        return out

    def decrypt(self, pairs: Sequence[Pair]) -> list[int]:
        """The rounds backwards, then c2 - r·c1 mod n_0 (eq. 7); the upper half of the residues are negative numbers."""
        n = self.moduli[0]
        inverses = [gmpy2.invert(a, m) for a, m in zip(self.factors, self.moduli, strict=True)]
        out = []
        for c1, c2 in pairs:
            for inverse, modulus in zip(reversed(inverses), reversed(self.moduli), strict=True):
                c1, c2 = inverse * c1 % modulus, inverse * c2 % modulus  # noqa: PLW2901 - the rounds, one by one
            x = (c2 - self.r * c1) % n
            out.append(int(x - n if x > n // 2 else x))
        return out


def add(left: Pair, right: Pair, modulus: mpz) -> Pair:
    """Ciphertext of a sum; the number of additions must stay far below 2**HEADROOM."""
    return (left[0] + right[0]) % modulus, (left[1] + right[1]) % modulus


def _unit(n: mpz) -> mpz:
    while True:
        a = mpz(secrets.randbelow(int(n)))
        if gmpy2.gcd(a, n) == 1:
            return a
