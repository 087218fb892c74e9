"""Obfuscators r^n mod n² for Paillier: fast and full-entropy.

The key owner works modulo p² and q², where the n-th residues are the p-th and q-th powers; any other party works modulo n² with the
public key alone. Both hash fresh random exponents into the group G of n-th residues: e → ∏ b_j^(e_j) with BASES random
bases b_j, made from tables of digits. For e ≠ e' the quotient of two hashes is uniform in g·G, g the greatest common divisor of
the differences of the exponents. Two things follow, whatever the factors of p-1 and q-1 are (docs/decisions/encryption.md): but for a
share 3·2^-BASES of all tables the bases generate G, and then, by the leftover hash lemma, log2|G| + SLACK_BITS bits of exponent
are within 2^-64 of uniform in G, even if the bases are known. No assumption but Paillier's own is needed, and only BASES costly
powers to set up. Since known bases do no harm, tables may be kept in a file beside the key.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from itertools import repeat, starmap
from operator import mod, mul
from pathlib import Path
from typing import Literal

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from backend.crypto.paillier.keys import from_blob, to_blob
from backend.crypto.table_file import read_table, write_table
from backend.jobs import work
from backend.jobs.memory import give_back

BASES = 72  # tables whose bases do not generate G: 2^-70
SLACK_BITS = 130  # twice the statistical security parameter (2**-64 from uniform) and 2 for the constant
# obfuscation "short": exponents of |p|/2 bits per prime (512 at 2,048, 768 at 3,072), docs/decisions/encryption.md
SHORT_SHARE = 2
OWNER_MEMORY = 160 << 20  # bytes of tables at the key owner: windows of 11 bits at 2,048, of 10 at 3,072
PUBLIC_MEMORY = 64 << 20  # bytes of tables at a Host, per key
OBJECT = 48  # bytes of an mpz beside its digits, including its list entry
WINDOWS = range(4, 13)  # bits per digit
WITHOUT_TABLE_UP_TO = 64  # obfuscators; for fewer, building a table costs more than it saves
FEW_KEPT = 3  # the same for reading a table from its file
SHORT_BITS = 1024  # shorter keys are for arithmetic, not for secrets
WITHOUT_TABLE_SHORT_KEY = 4096  # the same for a short key: its powers take hardly longer than looking up their products

Obfuscation = Literal["full", "short"]
Quotients = NDArray[np.uint32]  # (2**window, limbs): one number per row, lowest limb first


class _PrimeTable:
    """Uniform p-th powers modulo p² from half-width tables.

    y^p mod p² depends on y mod p only, and y^p = y·(1 + p·f(y)) mod p², where f is the Fermat quotient, additive over products:
    f(uv) = f(u) + f(v), and f(y + kp) = f(y) - k/y mod p. So a table holds y (|p| bits) and f(y) (|p| bits), a product costs one
    multiplication of |p| by 2|p| bits per digit, and the power is assembled once at the end. The quotients are only ever added: they
    are kept in limbs of 32 bits and summed in 64.
    """

    def __init__(self, p: mpz, rows: list[tuple[list[mpz], Quotients]]) -> None:
        self.p = p
        self.p2 = p * p
        self.rows = rows

    @classmethod
    def draw(cls, p: mpz, window: int, bits: int) -> _PrimeTable:
        """Random bases and their powers for `bits` bits of exponent."""
        table = cls(p, [])
        for digits in _digits_per_base(bits, window):
            base = random_unit(p)
            quotient = (gmpy2.powmod(base, p - 1, table.p2) - 1) // p
            for _ in range(digits):
                work.check()
                base, quotient = table._add_row(base, quotient, 1 << window)
        return table

    def _add_row(self, base: mpz, base_quotient: mpz, size: int) -> tuple[mpz, mpz]:
        """Append base^0 … base^(size-1); returns base^size, the next row's base, both with their Fermat quotients."""
        p = self.p
        width = _width(self.p)
        inverse = gmpy2.invert(base, p)
        y = mpz(1)
        quotient = mpz(0)
        y_inverse = mpz(1)
        values = []
        quotients = []
        for _ in range(size):
            values.append(y)
            quotients.append(quotient.to_bytes(width, "little"))
            carry, y = gmpy2.f_divmod(y * base, p)
            y_inverse = y_inverse * inverse % p
            quotient = (quotient + base_quotient + carry * y_inverse) % p
        self.rows.append((values, _limbs(b"".join(quotients), size)))
        return y, quotient

    def powers(self, digits: Iterator[NDArray[np.uint16]]) -> list[mpz]:
        """(∏ row[digit])^p mod p², several at a time: row by row, so that a row is fetched into the processor's cache once."""
        p = self.p
        p2 = self.p2
        first = next(digits)
        products = [self.rows[0][0][d] for d in first.tolist()]
        sums = self.rows[0][1][first].astype(np.uint64)
        for (values, quotients), row in zip(self.rows[1:], digits, strict=True):
            products = _times(products, values, row, p2)
            sums += quotients[row]
        return [y * (1 + p * (s % p)) % p2 for y, s in zip(products, _carry(sums), strict=True)]

    def dump(self) -> list[bytes]:
        """Values and quotients of every row, in turn."""
        width = _width(self.p)
        return [
            part for values, quotients in self.rows for part in (to_blob(values, width, "little"), quotients.tobytes())
        ]

    @classmethod
    def load(cls, p: mpz, parts: list[bytes]) -> _PrimeTable:
        """Inverse of :meth:`dump`."""
        width = _width(p)
        rows = []
        for values, quotients in zip(parts[::2], parts[1::2], strict=True):
            numbers = from_blob(values, width, "little")
            rows.append((numbers, _limbs(quotients, len(numbers))))
        return cls(p, rows)


class OwnerMaker:
    """Obfuscators for the key owner, by the Chinese remainder theorem over p² and q².

    Parameters
    ----------
    obfuscation : {"full", "short"}
        ``short`` draws exponents of half the length: twice as fast, and hidden by one more assumption (docs/decisions/encryption.md).
    file : Path, optional
        Where tables are kept between runs; as secret as the key.
    """

    def __init__(self, p: mpz, q: mpz, obfuscation: Obfuscation = "full", file: Path | None = None) -> None:
        self._p = p
        self._q = q
        self._file = file
        self._bits = [_exponent_bits(prime, obfuscation) for prime in (p, q)]
        self._window = _window(sum(self._bits), 2 * _width(max(p, q)) + OBJECT, OWNER_MEMORY)
        self._p2 = p * p
        self._q2 = q * q
        self._q2_inverse = gmpy2.invert(self._q2, self._p2)
        self._tables: tuple[_PrimeTable, _PrimeTable] | None = None
        self._made = 0
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Read both tables, or build them once (a second or two at 3,072 bits)."""
        self._prepared()

    def _prepared(self) -> tuple[_PrimeTable, _PrimeTable]:
        with self._lock:
            if self._tables is None:
                self._tables = self._read() or self._build()
            return self._tables

    def release(self) -> None:
        """Drop both tables where a file has them."""
        with self._lock:
            if self._tables is not None and self._file is not None and self._file.exists():
                self._tables = None
                self._made = 0
                give_back()

    def _build(self) -> tuple[_PrimeTable, _PrimeTable]:
        at_p, at_q = (
            _PrimeTable.draw(prime, self._window, bits)
            for prime, bits in zip((self._p, self._q), self._bits, strict=True)
        )
        if self._file is not None:
            write_table(self._file, self._name(), at_p.dump() + at_q.dump())
        return at_p, at_q

    def _read(self) -> tuple[_PrimeTable, _PrimeTable] | None:
        parts = read_table(self._file, self._name())
        if parts is None:
            return None
        of_p = -(-self._bits[0] // self._window) * 2
        return _PrimeTable.load(self._p, parts[:of_p]), _PrimeTable.load(self._q, parts[of_p:])

    def _name(self) -> str:
        return f"owner {self._p} {self._q} {self._bits} {self._window}"

    def make(self, count: int) -> list[mpz]:
        """From the tables; the first few without them."""
        if self._tables is None and self._made + count <= _few(self._p * self._q, self._file):
            self._made += count
            return self.make_unlocked(count)
        tables = self._prepared()
        if count == 0:
            return []
        at_p, at_q = (t.powers(_digits(len(t.rows), count, self._window)) for t in tables)
        return list(starmap(self._join, zip(at_p, at_q, strict=True)))

    def make_unlocked(self, count: int) -> list[mpz]:
        """x^p mod p² and y^q mod q² for uniform x and y, in C and with the interpreter lock released."""
        at_p = gmpy2.powmod_base_list([random_unit(self._p) for _ in range(count)], self._p, self._p2)
        at_q = gmpy2.powmod_base_list([random_unit(self._q) for _ in range(count)], self._q, self._q2)
        return list(starmap(self._join, zip(at_p, at_q, strict=True)))

    def _join(self, at_p: mpz, at_q: mpz) -> mpz:
        return at_q + self._q2 * ((at_p - at_q) * self._q2_inverse % self._p2)


class PublicMaker:
    """Obfuscators from the public key alone, for a Host's refreshing; never from a base that the Guest supplied.

    Parameters
    ----------
    file : Path, optional
        Where the Host keeps its own table for this key between runs.
    """

    def __init__(self, n: mpz, file: Path | None = None) -> None:
        self._n = n
        self._n2 = n * n
        self._file = file
        self._bits = _exponent_bits(n, "full")
        self._window = _window(self._bits, _width(self._n2) + OBJECT, PUBLIC_MEMORY)
        self._rows: list[list[mpz]] | None = None
        self._made = 0
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Read the table, or build it once (two to three seconds at 3,072 bits, mostly with the interpreter lock released)."""
        self._prepared()

    def _prepared(self) -> list[list[mpz]]:
        with self._lock:
            if self._rows is None:
                table = read_table(self._file, self._name())
                width = _width(self._n2)
                if table is None:
                    self._rows = self._build()
                else:
                    self._rows = [from_blob(row, width, "little") for row in table]
            return self._rows

    def release(self) -> None:
        """Drop the table where a file has it."""
        with self._lock:
            if self._rows is not None and self._file is not None and self._file.exists():
                self._rows = None
                self._made = 0
                give_back()

    def _build(self) -> list[list[mpz]]:
        rows = []
        digits_per_base = _digits_per_base(self._bits, self._window)
        for start, digits in zip(self.make_unlocked(len(digits_per_base)), digits_per_base, strict=True):
            base = start
            for _ in range(digits):
                work.check()
                row = [mpz(1)]
                for _ in range((1 << self._window) - 1):
                    row.append(row[-1] * base % self._n2)
                rows.append(row)
                base = row[-1] * base % self._n2
        if self._file is not None:
            width = _width(self._n2)
            write_table(self._file, self._name(), [to_blob(row, width, "little") for row in rows])
        return rows

    def _name(self) -> str:
        return f"public {self._n} {self._bits} {self._window}"

    def make(self, count: int) -> list[mpz]:
        """From the table; the first few without it."""
        if self._rows is None and self._made + count <= _few(self._n, self._file):
            self._made += count
            return self.make_unlocked(count)
        rows = self._prepared()
        n2 = self._n2
        products = [mpz(1)] * count
        for row, digits in zip(rows, _digits(len(rows), count, self._window), strict=True):
            products = _times(products, row, digits, n2)
        return products

    def make_unlocked(self, count: int) -> list[mpz]:
        """r^n mod n² for uniform r, in C and with the interpreter lock released."""
        powers: list[mpz] = gmpy2.powmod_base_list([random_unit(self._n) for _ in range(count)], self._n, self._n2)
        return powers


def random_unit(n: mpz) -> mpz:
    """Uniform in the units modulo `n`."""
    while True:
        r = mpz(secrets.randbelow(int(n) - 1) + 1)
        if gmpy2.gcd(r, n) == 1:
            return r


def _exponent_bits(order: mpz, obfuscation: Obfuscation) -> int:
    bits = int(order.bit_length())
    if obfuscation == "full":
        return bits + SLACK_BITS
    return bits // SHORT_SHARE


def _window(bits: int, entry: int, memory: int) -> int:
    """The widest digit whose tables, with entries of `entry` bytes, fit the memory."""
    fitting = [w for w in WINDOWS if -(-bits // w) * (entry << w) <= memory]
    return max(fitting, default=WINDOWS.start)


def _few(n: mpz, file: Path | None) -> int:
    if file is not None and file.exists():
        return FEW_KEPT
    if n.bit_length() >= SHORT_BITS:
        return WITHOUT_TABLE_UP_TO
    return WITHOUT_TABLE_SHORT_KEY


def _digits_per_base(bits: int, window: int) -> list[int]:
    """Digits of each base, evenly distributed; fewer bases where a (test) key is too short for one digit each."""
    total = -(-bits // window)
    bases = min(BASES, total)
    return [total // bases + (j < total % bases) for j in range(bases)]


def _digits(rows: int, count: int, window: int) -> Iterator[NDArray[np.uint16]]:
    """`rows` times `count` fresh digits of `window` bits."""
    mask = np.uint16((1 << window) - 1)
    for _ in range(rows):
        yield np.frombuffer(secrets.token_bytes(2 * count), dtype="<u2") & mask


def _times(products: list[mpz], values: list[mpz], digits: NDArray[np.uint16], modulus: mpz) -> list[mpz]:
    """Each product times its digit's entry; `map` spares the interpreter a tenth of the time."""
    return list(map(mod, map(mul, products, map(values.__getitem__, digits.tolist())), repeat(modulus)))


def _width(number: mpz) -> int:
    """Bytes of a number below `number`, in whole limbs of 32 bits."""
    return -(-int(number.bit_length()) // 32) * 4


def _limbs(blob: bytes, size: int) -> Quotients:
    return np.frombuffer(blob, dtype="<u4").reshape(size, -1)


def _carry(sums: NDArray[np.uint64]) -> list[mpz]:
    """The numbers behind sums of limbs, ``(count, limbs)``."""
    low = sums.astype("<u4")
    high = (sums >> np.uint64(32)).astype("<u4")
    return [
        mpz.from_bytes(a.tobytes(), "little") + (mpz.from_bytes(b.tobytes(), "little") << 32)
        for a, b in zip(low, high, strict=True)
    ]
