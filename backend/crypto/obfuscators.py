"""Obfuscators r^n mod n² for Paillier: fast and full-entropy.

The key owner works modulo p² and q², where the n-th residues are the p-th and q-th powers; anybody else works modulo n² with
the public key alone. Both hash fresh random exponents into the group G of n-th residues: e → ∏ b_j^(e_j) with BASES random
bases b_j, made from tables of digits. For e ≠ e' the quotient of two hashes is uniform in g·G, g the greatest common divisor of
the differences of the exponents. Two things follow, whatever the factors of p-1 and q-1 are (docs/decisions/0003): but for a
share 3·2^-BASES of all tables the bases generate G, and then, by the leftover hash lemma, log2|G| + SLACK_BITS bits of exponent
are within 2^-64 of uniform in G, even if the bases are known. No assumption but Paillier's own is needed, and only BASES costly
powers to set up.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from itertools import starmap
from typing import Protocol, cast

import gmpy2
from gmpy2 import mpz

BASES = 72  # tables whose bases do not generate G: 2^-70
SLACK_BITS = 130  # twice the statistical security parameter (2**-64 from uniform) and 2 for the constant
OWNER_WINDOW = 8  # bits a digit; per prime (|p|+130)/8·256 pairs of |p|-bit numbers: 41 MiB in all at 3,072 bits
PUBLIC_WINDOW = 6  # bits a digit; (|n|+130)/6·64 numbers of 2|n| bits: 25 MiB at 3,072 bits
QUIET_BATCH = 16  # obfuscators made in one call that holds no interpreter lock
FEW = 64  # until so many were wanted, setting up a table costs more than it saves


class Maker(Protocol):
    """Makes obfuscators."""

    def make(self, count: int) -> list[mpz]:
        """`count` fresh obfuscators, as fast as can be."""
        ...

    def make_quietly(self, count: int) -> list[mpz]:
        """`count` fresh obfuscators without holding the interpreter's lock."""
        ...

    def prepare(self) -> None:
        """Build the tables; safe to call from a background thread and more than once."""
        ...


class _PrimeTable:
    """Uniform p-th powers modulo p² from half-width tables.

    y^p mod p² depends on y mod p only, and y^p = y·(1 + p·f(y)) mod p², where f is the Fermat quotient, additive over products:
    f(uv) = f(u) + f(v), and f(y + kp) = f(y) - k/y mod p. So a table holds y (|p| bits) and f(y) (|p| bits), a product costs one
    multiplication of |p| by 2|p| bits per digit, and the power is put together once at the end.
    """

    def __init__(self, p: mpz, window: int) -> None:
        self.p, self.p2 = p, p * p
        self.rows: list[tuple[list[mpz], list[mpz]]] = []
        for digits in _digits_per_base(p, window):
            base = random_unit(p)
            quotient = (gmpy2.powmod(base, p - 1, self.p2) - 1) // p
            for _ in range(digits):
                base, quotient = self._add_row(base, quotient, 1 << window)

    def _add_row(self, base: mpz, base_quotient: mpz, size: int) -> tuple[mpz, mpz]:
        """Append base^0 … base^(size-1); returns base^size, the next row's base, both with their Fermat quotients."""
        p = self.p
        inverse = gmpy2.invert(base, p)
        y, quotient, y_inverse = mpz(1), mpz(0), mpz(1)
        values, quotients = [], []
        for _ in range(size):
            values.append(y)
            quotients.append(quotient)
            carry, y = gmpy2.f_divmod(y * base, p)
            y_inverse = y_inverse * inverse % p
            quotient = (quotient + base_quotient + carry * y_inverse) % p
        self.rows.append((values, quotients))
        return y, quotient

    def power(self, digits: bytes) -> mpz:
        """(∏ row[digit])^p mod p²."""
        p2 = self.p2
        product, quotient = mpz(1), mpz(0)
        for (values, quotients), digit in zip(self.rows, digits, strict=True):
            product = product * values[digit] % p2
            quotient += quotients[digit]
        return product * (1 + self.p * (quotient % self.p)) % p2


class OwnerMaker:
    """Obfuscators for the key owner, by the Chinese remainder theorem over p² and q²."""

    def __init__(self, p: mpz, q: mpz, window: int = OWNER_WINDOW) -> None:
        self._p, self._q, self._window = p, q, window
        self._p2, self._q2 = p * p, q * q
        self._q2_inverse = gmpy2.invert(self._q2, self._p2)
        self._tables: tuple[_PrimeTable, _PrimeTable] | None = None
        self._wanted = 0
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Build both tables once (about a second at 3,072 bits)."""
        with self._lock:
            if self._tables is None:
                self._tables = (_PrimeTable(self._p, self._window), _PrimeTable(self._q, self._window))

    def make(self, count: int) -> list[mpz]:
        """From the tables; the first few directly."""
        if self._tables is None and self._wanted + count <= FEW:
            self._wanted += count
            return self.make_quietly(count)
        self.prepare()
        at_p, at_q = cast(tuple[_PrimeTable, _PrimeTable], self._tables)
        draw_p, draw_q = _digits(len(at_p.rows), self._window), _digits(len(at_q.rows), self._window)
        return [self._join(at_p.power(draw_p()), at_q.power(draw_q())) for _ in range(count)]

    def make_quietly(self, count: int) -> list[mpz]:
        """x^p mod p² and y^q mod q² for uniform x and y, in C and without the interpreter's lock."""
        at_p = gmpy2.powmod_base_list([random_unit(self._p) for _ in range(count)], self._p, self._p2)
        at_q = gmpy2.powmod_base_list([random_unit(self._q) for _ in range(count)], self._q, self._q2)
        return list(starmap(self._join, zip(at_p, at_q, strict=True)))

    def _join(self, at_p: mpz, at_q: mpz) -> mpz:
        return at_q + self._q2 * ((at_p - at_q) * self._q2_inverse % self._p2)


class PublicMaker:
    """Obfuscators from the public key alone; a Host's refreshing. Never from a base that the Guest supplied."""

    def __init__(self, n: mpz, window: int = PUBLIC_WINDOW) -> None:
        self._n, self._n2, self._window = n, n * n, window
        self._rows: list[list[mpz]] | None = None
        self._wanted = 0
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Build the table once (two to three seconds at 3,072 bits, mostly outside the interpreter's lock)."""
        with self._lock:
            if self._rows is not None:
                return
            rows = []
            digits_per_base = _digits_per_base(self._n, self._window)
            for start, digits in zip(self.make_quietly(len(digits_per_base)), digits_per_base, strict=True):
                base = start
                for _ in range(digits):
                    row = [mpz(1)]
                    for _ in range((1 << self._window) - 1):
                        row.append(row[-1] * base % self._n2)
                    rows.append(row)
                    base = row[-1] * base % self._n2
            self._rows = rows

    def make(self, count: int) -> list[mpz]:
        """From the table; the first few directly."""
        if self._rows is None and self._wanted + count <= FEW:
            self._wanted += count
            return self.make_quietly(count)
        self.prepare()
        rows, n2 = self._rows or [], self._n2
        draw = _digits(len(rows), self._window)
        made = []
        for _ in range(count):
            product = mpz(1)
            for row, digit in zip(rows, draw(), strict=True):
                product = product * row[digit] % n2
            made.append(product)
        return made

    def make_quietly(self, count: int) -> list[mpz]:
        """r^n mod n² for uniform r, in C and without the interpreter's lock."""
        powers: list[mpz] = gmpy2.powmod_base_list([random_unit(self._n) for _ in range(count)], self._n, self._n2)
        return powers


def random_unit(n: mpz) -> mpz:
    """Uniform in the units modulo `n`."""
    while True:
        r = mpz(secrets.randbelow(int(n) - 1) + 1)
        if gmpy2.gcd(r, n) == 1:
            return r


def _digits_per_base(order: mpz, window: int) -> list[int]:
    """Digits of each base, as even as can be; fewer bases where a (test) key is too short for one digit each."""
    total = -(-(int(order.bit_length()) + SLACK_BITS) // window)
    bases = min(BASES, total)
    return [total // bases + (j < total % bases) for j in range(bases)]


def _digits(count: int, window: int) -> Callable[[], bytes]:
    """A source of fresh strings of `count` digits of `window` bits, a byte each."""
    keep = bytes(i & ((1 << window) - 1) for i in range(256))
    return lambda: secrets.token_bytes(count).translate(keep)
