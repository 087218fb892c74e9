"""Paillier's keys and ciphertexts as numbers and bytes; what another party sent is checked here.

A ciphertext is c = (1 + n)^m · r^n mod n² with 0 < c < n² (Paillier 1999, with g = 1 + n); a plaintext is an integer, negative ones
as n - |m|. `phe` reads and writes the same numbers.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import gmpy2
from gmpy2 import mpz

from backend.crypto.interface import check_length
from backend.errors import SecurityError
from backend.jobs import work

KEY_BITS = 3072  # 128-bit security, NIST SP 800-57
KEY_BITS_FLOOR = 2048  # 112-bit security, NIST SP 800-57, through 2030
KEY_BITS_CEILING = 8192


def to_blob(numbers: Iterable[mpz], width: int, order: Literal["big", "little"] = "big") -> bytes:
    """Numbers end to end, `width` bytes each."""
    return b"".join(number.to_bytes(width, order) for number in numbers)


def from_blob(blob: bytes, width: int, order: Literal["big", "little"] = "big") -> list[mpz]:
    """Inverse of :func:`to_blob`."""
    return [mpz.from_bytes(blob[i : i + width], order) for i in range(0, len(blob), width)]


def byte_width(number: mpz) -> int:
    """Bytes that `number` takes."""
    return (int(number.bit_length()) + 7) // 8


@dataclass(frozen=True)
class PaillierPublicKey:
    """The modulus n; everything else follows from it."""

    n: mpz
    n2: mpz = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n2", self.n * self.n)

    @property
    def bits(self) -> int:
        """Size of n."""
        return int(self.n.bit_length())

    @property
    def width(self) -> int:
        """Bytes of one ciphertext on the wire."""
        return byte_width(self.n2)

    def to_bytes(self) -> bytes:
        """Big-endian n."""
        return int(self.n).to_bytes(byte_width(self.n), "big")

    @classmethod
    def from_bytes(cls, blob: bytes, floor: int = KEY_BITS_FLOOR) -> PaillierPublicKey:
        """Read and check a key that another party sent.

        Raises SecurityError if the key is shorter than `floor` bits, longer than 8,192, even, prime, or has a factor below 2**16.
        """
        if len(blob) > KEY_BITS_CEILING // 8:
            raise SecurityError("key_too_long", bits=len(blob) * 8, most=KEY_BITS_CEILING)
        n = mpz(int.from_bytes(blob, "big"))
        if n.bit_length() < floor:
            raise SecurityError("key_too_short", bits=n.bit_length(), least=floor)
        if gmpy2.gcd(n, _SMALL_PRIMES) != 1 or gmpy2.is_prime(n) or gmpy2.is_square(n):
            raise SecurityError("key_not_two_primes")
        return cls(n)

    def encrypt_with(self, plaintext: int, obfuscator: mpz) -> mpz:
        """(1 + n)^m · r^n mod n² for an obfuscator r^n.

        (1 + n)^m = 1 + m·n mod n² by the binomial theorem, so no power is needed; of m·r^n only the residue mod n counts, since it is
        multiplied by n.
        """
        return (obfuscator + self.n * (plaintext * obfuscator % self.n)) % self.n2

    def dump(self, ciphertexts: Iterable[mpz]) -> bytes:
        """Ciphertexts as fixed-width big-endian bytes."""
        return to_blob(ciphertexts, self.width)

    def load(self, blob: bytes, count: int) -> list[mpz]:
        """Check and read `count` ciphertexts.

        Sizes are checked before any number is made; then 0 < c < n² and that no c shares a factor with n.

        Raises
        ------
        SecurityError
            The length is wrong or a ciphertext is outside the group.
        """
        check_length(blob, count, self.width)
        values = from_blob(blob, self.width)
        product = mpz(1)
        n = self.n
        n2 = self.n2
        for c in values:
            if not 0 < c < n2:
                raise SecurityError("ciphertext_outside_group")
            product = product * (c % n) % n
        if gmpy2.gcd(product, n) != 1:
            raise SecurityError("ciphertext_shares_factor")
        return values


_SMALL_PRIMES = gmpy2.primorial(1 << 16)


@dataclass(frozen=True)
class PaillierSecretKey:
    """The factors p and q; never shown in `repr`."""

    p: mpz = field(repr=False)
    q: mpz = field(repr=False)

    @cached_property
    def _q_inverse(self) -> mpz:
        return gmpy2.invert(self.q, self.p)

    def combine(self, at_p: mpz, at_q: mpz) -> mpz:
        """The number below n with these residues mod p and q (Chinese remainder theorem, Garner's formula)."""
        return at_q + self.q * ((at_p - at_q) * self._q_inverse % self.p)

    def nth_root(self, residue: mpz) -> mpz:
        """The r below n with r^n = `residue` mod n, unique because gcd(n, φ(n)) = 1; in constant time."""
        p = self.p
        q = self.q
        exponent = gmpy2.invert(p * q, (p - 1) * (q - 1))
        at_p, at_q = (gmpy2.powmod_sec(residue % prime, exponent % (prime - 1), prime) for prime in (p, q))
        return self.combine(at_p, at_q)

    @classmethod
    def generate(cls, bits: int = KEY_BITS, floor: int = KEY_BITS_FLOOR) -> PaillierSecretKey:
        """Draw two primes of ``bits/2`` bits whose product has exactly `bits` bits.

        Raises SecurityError if `bits` is below `floor` (2,048 outside tests), above 8,192 or odd.
        """
        if bits < floor or bits > KEY_BITS_CEILING or bits % 2:
            raise SecurityError("key_length_outside_range", bits=bits, least=floor)
        while True:
            p = _random_prime(bits // 2)
            q = _random_prime(bits // 2)
            if p != q and (p * q).bit_length() == bits and gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1:
                return cls(max(p, q), min(p, q))

    @property
    def public(self) -> PaillierPublicKey:
        """The public key."""
        return PaillierPublicKey(self.p * self.q)

    def to_numbers(self) -> dict[str, str]:
        """The factors in hexadecimal, for the Guest's own key file."""
        return {"p": f"{int(self.p):x}", "q": f"{int(self.q):x}"}

    @classmethod
    def from_numbers(cls, numbers: dict[str, str], floor: int = KEY_BITS_FLOOR) -> PaillierSecretKey:
        """Inverse of :meth:`to_numbers`; raises SecurityError if the numbers are no usable key."""
        try:
            key = cls(mpz(int(numbers["p"], 16)), mpz(int(numbers["q"], 16)))
        except (KeyError, ValueError) as error:
            raise SecurityError("key_file_damaged") from error
        if not (gmpy2.is_prime(key.p) and gmpy2.is_prime(key.q)) or key.p == key.q or key.public.bits < floor:
            raise SecurityError("key_file_damaged")
        return key


def _random_prime(bits: int) -> mpz:
    while True:
        work.check()
        start = secrets.randbits(bits) | (3 << (bits - 2)) | 1
        prime = gmpy2.next_prime(start)
        if prime.bit_length() == bits:
            return prime
