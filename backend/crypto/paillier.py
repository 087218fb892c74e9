"""Paillier, with keys and ciphertexts that `phe` reads and writes, and the key owner's fast path.

A ciphertext is c = (1 + n)^m · r^n mod n² with 0 < c < n²; a plaintext is an integer, negative ones as n - |m|. Paillier is
IND-CPA secure under decisional composite residuosity (Paillier 1999), not IND-CCA2 as Fed-EINI §IV-A has it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from backend.crypto.bin_products import BinIndex, BinProducts
from backend.crypto.cipher import FoldPlan, IntArray, Parcel, Weighted, WholeFold
from backend.crypto.fixedpoint import PAIR_SLOT, join_pair, split_pair, split_slots
from backend.crypto.key_certificate import certify
from backend.crypto.maker_process import MakerProcess
from backend.crypto.obfuscators import Obfuscation, OwnerMaker, PublicMaker
from backend.crypto.pool import Pool
from backend.crypto.weighted_products import weighted_product
from backend.errors import ParameterError, SecurityError

KEY_BITS = 3072  # 128-bit security, NIST SP 800-57
KEY_BITS_FLOOR = 2048  # 112-bit security, NIST SP 800-57, through 2030
KEY_BITS_CEILING = 8192
DECRYPT_BATCH = 256  # ciphertexts decrypted in one call that holds no interpreter lock
WORTH_SHARING = 16_384  # ciphertexts from which on worker processes encrypt: some seconds' work
MESSAGE_ENTRIES = 2048  # ciphertexts a scoring message: 1.5 MiB at 3,072 bits, so a batch can be watched and stopped

Ciphertexts = list[list[mpz]]


@dataclass(frozen=True)
class PublicKey:
    """Modulus n; everything else follows from it."""

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
        return (int(self.n2.bit_length()) + 7) // 8

    def to_bytes(self) -> bytes:
        """Big-endian n."""
        return int(self.n).to_bytes((self.bits + 7) // 8, "big")

    @classmethod
    def from_bytes(cls, blob: bytes, floor: int = KEY_BITS_FLOOR) -> PublicKey:
        """Read and check a key that another party sent.

        Raises
        ------
        SecurityError
            The key is shorter than `floor` bits, longer than 8,192, even, prime, or has a factor below 2**16.
        """
        if len(blob) > KEY_BITS_CEILING // 8:
            raise SecurityError(f"The public key has {len(blob) * 8} bits; at most {KEY_BITS_CEILING} are accepted.")
        n = mpz(int.from_bytes(blob, "big"))
        if n.bit_length() < floor:
            raise SecurityError(
                f"The public key has {n.bit_length()} bits; at least {floor} are needed (NIST SP 800-57). Make a longer key."
            )
        if gmpy2.gcd(n, _SMALL_PRIMES) != 1 or gmpy2.is_prime(n) or gmpy2.is_square(n):
            raise SecurityError("The public key is not a product of two large primes; it was refused.")
        return cls(n)

    def cover(self, plaintext: int, obfuscator: mpz) -> mpz:
        """(1 + n)^m · r^n mod n² for an obfuscator r^n; (1 + n)^m = 1 + mn, and of m·r^n only the residue mod n counts."""
        return (obfuscator + self.n * (plaintext * obfuscator % self.n)) % self.n2

    def dump(self, ciphertexts: Iterable[mpz]) -> bytes:
        """Ciphertexts as fixed-width big-endian bytes."""
        width = self.width
        return b"".join(c.to_bytes(width, "big") for c in ciphertexts)

    def load(self, blob: bytes, count: int) -> list[mpz]:
        """Check and read `count` ciphertexts.

        Sizes are checked before any number is made; then 0 < c < n² and that no c shares a factor with n.

        Raises
        ------
        SecurityError
            The length is wrong or a ciphertext is outside the group.
        """
        width = self.width
        if len(blob) != count * width:
            raise SecurityError(
                f"{count} ciphertexts of {width} bytes were expected, {len(blob)} bytes came; the message was refused."
            )
        values = [mpz.from_bytes(blob[i : i + width], "big") for i in range(0, len(blob), width)]
        product, n, n2 = mpz(1), self.n, self.n2
        for c in values:
            if not 0 < c < n2:
                raise SecurityError("A ciphertext lies outside its group; the message was refused.")
            product = product * (c % n) % n
        if gmpy2.gcd(product, n) != 1:
            raise SecurityError("A ciphertext shares a factor with the key; the message was refused.")
        return values


_SMALL_PRIMES = gmpy2.primorial(1 << 16)


@dataclass(frozen=True)
class SecretKey:
    """The factors p and q; never shown in `repr`."""

    p: mpz = field(repr=False)
    q: mpz = field(repr=False)

    @classmethod
    def generate(cls, bits: int = KEY_BITS, floor: int = KEY_BITS_FLOOR) -> SecretKey:
        """Draw two primes of ``bits/2`` bits whose product has exactly `bits` bits.

        Raises
        ------
        SecurityError
            `bits` is below `floor` (2,048 outside tests), above 8,192 or odd.
        """
        if bits < floor or bits > KEY_BITS_CEILING or bits % 2:
            raise SecurityError(
                f"A key of {bits} bits was asked for; choose an even number from {floor} to 8,192 (default 3,072)."
            )
        while True:
            p, q = _random_prime(bits // 2), _random_prime(bits // 2)
            if p != q and (p * q).bit_length() == bits and gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1:
                return cls(max(p, q), min(p, q))

    @property
    def public(self) -> PublicKey:
        """The public half."""
        return PublicKey(self.p * self.q)

    def to_numbers(self) -> dict[str, str]:
        """The factors in hexadecimal, for the Guest's own key file."""
        return {"p": f"{int(self.p):x}", "q": f"{int(self.q):x}"}

    @classmethod
    def from_numbers(cls, numbers: dict[str, str], floor: int = KEY_BITS_FLOOR) -> SecretKey:
        """Inverse of :meth:`to_numbers`.

        Raises
        ------
        SecurityError
            The numbers are no usable key.
        """
        try:
            key = cls(mpz(int(numbers["p"], 16)), mpz(int(numbers["q"], 16)))
        except (KeyError, ValueError) as error:
            raise SecurityError("The key file is damaged; delete it, and a new key is made.") from error
        if not (gmpy2.is_prime(key.p) and gmpy2.is_prime(key.q)) or key.p == key.q or key.public.bits < floor:
            raise SecurityError("The key file holds no usable key; delete it, and a new key is made.")
        return key


def _random_prime(bits: int) -> mpz:
    while True:
        start = secrets.randbits(bits) | (3 << (bits - 2)) | 1
        prime = gmpy2.next_prime(start)
        if prime.bit_length() == bits:
            return prime


class PaillierKeySide:
    """The Guest's side: encrypts with obfuscators from its own factors, decrypts by the Chinese remainder theorem.

    Parameters
    ----------
    key : SecretKey
    pool : int, optional
        Obfuscators kept ready in the background once :meth:`Pool.fill` was called.
    obfuscation : {"full", "short"}
        How long the exponents of obfuscators are (:class:`OwnerMaker`).
    tables : Path, optional
        Where the tables for obfuscators are kept between runs.
    """

    scheme = "paillier"

    def __init__(
        self, key: SecretKey, pool: int = 0, obfuscation: Obfuscation = "full", tables: Path | None = None
    ) -> None:
        self._key, self._obfuscation, self._tables = key, obfuscation, tables
        self.public = key.public
        self.bits = self.public.bits
        self.limit = int(self.public.n // 2) - 1
        numbers = {"p": int(key.p), "q": int(key.q)}
        process = MakerProcess(numbers, self.public.width, obfuscation, tables)
        self.obfuscators = Pool(OwnerMaker(key.p, key.q, obfuscation, tables), process, pool)
        p, q = key.p, key.q
        self._p2, self._q2 = p * p, q * q
        n = self.public.n
        self._h_p = gmpy2.invert((gmpy2.powmod(1 + n, p - 1, self._p2) - 1) // p, p)
        self._h_q = gmpy2.invert((gmpy2.powmod(1 + n, q - 1, self._q2) - 1) // q, q)
        self._q_inverse = gmpy2.invert(q, p)

    def __repr__(self) -> str:
        return f"PaillierKeySide({self.bits} bits)"

    @cached_property
    def _certificate(self) -> bytes:
        return certify(self._key.p, self._key.q)

    @cached_property
    def seed(self) -> bytes:
        """What the owner draws from where it must be able to draw the same again; as secret as the key."""
        return sha256(
            b"seed" + self._key.p.to_bytes(self.public.width, "big") + self._key.q.to_bytes(self.public.width, "big")
        ).digest()

    def offer(self) -> bytes:
        """Public key as bytes, and the proof of its form (:mod:`backend.crypto.key_certificate`)."""
        return self.public.to_bytes() + self._certificate

    def parcel(self) -> Parcel:
        """The factors and where the tables are, for the party's own workers."""
        tables = "" if self._tables is None else str(self._tables)
        return {"scheme": self.scheme, "obfuscation": self._obfuscation, "tables": tables, **self._key.to_numbers()}

    @classmethod
    def from_parcel(cls, parcel: Parcel) -> PaillierKeySide:
        """The same side in another process."""
        key = SecretKey(mpz(int(str(parcel["p"]), 16)), mpz(int(str(parcel["q"]), 16)))
        tables = Path(str(parcel["tables"])) if parcel["tables"] else None
        return cls(key, 0, "short" if parcel["obfuscation"] == "short" else "full", tables)

    def rows_per_message(self, m: int) -> int:
        """As many as :data:`MESSAGE_ENTRIES` holds."""
        return max(1, MESSAGE_ENTRIES // m)

    def pieces(self, n: int, m: int) -> list[range]:
        """All entries in one message."""
        return [range(m)]

    def worth_sharing(self, n: int, m: int) -> bool:
        """From :data:`WORTH_SHARING` ciphertexts on."""
        return n * m >= WORTH_SHARING

    def encrypt_numbers(self, values: Sequence[int]) -> list[mpz]:
        """One fresh ciphertext per integer; raises ParameterError for one beyond the limit."""
        if any(abs(m) > self.limit for m in values):
            raise ParameterError(
                f"A number does not fit a plaintext of {self.bits} bits; use a longer key or a coarser scale."
            )
        fresh = self.obfuscators.take(len(values))
        return [self.public.cover(m, r) for m, r in zip(values, fresh, strict=True)]

    def decrypt_numbers(self, ciphertexts: Sequence[mpz]) -> list[int]:
        """The signed integers behind `ciphertexts`."""
        p, q, n = self._key.p, self._key.q, self.public.n
        plain: list[int] = []
        for start in range(0, len(ciphertexts), DECRYPT_BATCH):
            chunk = ciphertexts[start : start + DECRYPT_BATCH]
            at_p = gmpy2.powmod_base_list([c % self._p2 for c in chunk], p - 1, self._p2)
            at_q = gmpy2.powmod_base_list([c % self._q2 for c in chunk], q - 1, self._q2)
            for u, v in zip(at_p, at_q, strict=True):
                m_p = (u - 1) // p * self._h_p % p
                m_q = (v - 1) // q * self._h_q % q
                m = m_q + q * ((m_p - m_q) * self._q_inverse % p)
                plain.append(int(m - n if m > n // 2 else m))
        return plain

    def open(self, ciphertexts: Sequence[mpz]) -> list[tuple[int, mpz]]:
        """What is in ciphertexts and their randomness: c = (1 + n)^m·r^n mod n² with m and r modulo n, one pair only (n is certified)."""
        p, q, n = self._key.p, self._key.q, self.public.n
        exponent = gmpy2.invert(n, (p - 1) * (q - 1))
        opened = []
        for c, m in zip(ciphertexts, self.decrypt_numbers(ciphertexts), strict=True):
            at_p, at_q = (gmpy2.powmod_sec(c % prime, exponent % (prime - 1), prime) for prime in (p, q))
            opened.append((m, at_q + q * ((at_p - at_q) * self._q_inverse % p)))
        return opened

    def encrypt(self, values: IntArray) -> bytes:
        """``(n, m)`` integers → ``n·m`` ciphertexts, row by row (Fed-EINI Alg. 1, stage 2)."""
        return self.public.dump(self.encrypt_numbers([int(v) for v in values.ravel()]))

    def decrypt(self, blob: bytes, n: int) -> list[int]:
        """``n`` single numbers."""
        return self.decrypt_numbers(self.public.load(blob, n))

    def encrypt_pairs(self, g: IntArray, h: IntArray) -> bytes:
        """One ciphertext per row for both numbers."""
        return self.public.dump(self.encrypt_numbers([join_pair(int(a), int(b)) for a, b in zip(g, h, strict=True)]))

    def decrypt_sums(self, blob: bytes, n: int) -> tuple[IntArray, IntArray]:
        """``(Σg, Σh)`` of ``n`` bins from ciphertexts that hold several bins each."""
        slots = slots_per_ciphertext(self.bits)
        packed = self.decrypt_numbers(self.public.load(blob, -(-n // slots)))
        sums = [s for i, value in enumerate(packed) for s in split_slots(value, min(slots, n - i * slots))]
        pairs = np.array([split_pair(s) for s in sums], dtype=np.int64).reshape(n, 2)
        return pairs[:, 0], pairs[:, 1]


class PaillierPublicSide:
    """A Host's side: everything it can do with the Guest's public key.

    Parameters
    ----------
    key : PublicKey
    pool : int, optional
        Obfuscators kept ready in the background for refreshing.
    tables : Path, optional
        Where the Host keeps its own table for this key between runs.
    products : BinProducts, optional
        Who multiplies in training; default this process alone.
    """

    scheme = "paillier"

    def __init__(
        self, key: PublicKey, pool: int = 0, tables: Path | None = None, products: BinProducts | None = None
    ) -> None:
        self.key = key
        self.bits = key.bits
        process = MakerProcess({"n": int(key.n)}, key.width, "full", tables)
        self.obfuscators = Pool(PublicMaker(key.n, tables), process, pool)
        self._products = products or BinProducts()

    def load(self, blob: bytes, n: int, m: int) -> Ciphertexts:
        """``(n, m)`` checked ciphertexts."""
        flat = self.key.load(blob, n * m)
        return [flat[i : i + m] for i in range(0, n * m, m)] if m else [[] for _ in range(n)]

    def start_fold(self, keep: NDArray[np.bool_], plan: FoldPlan, added: Sequence[int] = ()) -> PaillierFold:
        """Begin a batch."""
        return PaillierFold(self, keep, plan, added)

    def load_pairs(self, blob: bytes, n: int) -> list[mpz]:
        """``n`` checked ciphertexts."""
        return self.key.load(blob, n)

    def bin_sums(self, pairs: list[mpz], nodes: Sequence[tuple[NDArray[np.intp], BinIndex]]) -> list[bytes]:
        """Encrypted sums by bin, several to a ciphertext, each refreshed before it leaves."""
        width = slots_per_ciphertext(self.bits)
        packed = self._products.packed_sums(self.key.n2, pairs, nodes, width, PAIR_SLOT)
        fresh = iter(self.obfuscators.take(sum(len(sums) for sums in packed)))
        n2 = self.key.n2
        return [self.key.dump(c * next(fresh) % n2 for c in sums) for sums in packed]

    def load_terms(self, blob: bytes, n: int) -> list[mpz]:
        """``n`` checked ciphertexts."""
        return self.key.load(blob, n)

    def weighted_sums(self, terms: Sequence[mpz], sums: Sequence[Weighted]) -> list[mpz]:
        """Σ coefficient · term for every sum; not refreshed, 1 for an empty one."""
        n2 = self.key.n2
        return [weighted_product([terms[i] for i in places], coefficients, n2) for places, coefficients in sums]

    def joined(self, values: Sequence[mpz], slot: int) -> mpz:
        """Σ 2^(slot·i) · value i in one ciphertext; not refreshed."""
        joined = mpz(1)
        for value in reversed(values):
            if joined != 1:  # nothing yet: empty sums at the end cost nothing
                joined = gmpy2.powmod(joined, mpz(1) << slot, self.key.n2)
            joined = joined * value % self.key.n2
        return joined

    def refreshed(self, values: Sequence[mpz]) -> bytes:
        """Each times an n-th residue of this Host's own, so that nothing shows how it was computed (SECURITY.md A1, A3)."""
        fresh = self.obfuscators.take(len(values))
        return self.key.dump(c * r % self.key.n2 for c, r in zip(values, fresh, strict=True))


class PaillierFold(WholeFold):
    """Multiplies the kept ciphertexts of each outgoing entry (a sum of plaintexts), then refreshes what was computed."""

    def __init__(self, side: PaillierPublicSide, keep: NDArray[np.bool_], plan: FoldPlan, added: Sequence[int]) -> None:
        super().__init__()
        self._side, self._keep, self._plan, self._added = side, keep, plan, added

    def fold(self, blob: bytes) -> bytes:
        """``(n, m)`` ciphertexts → ``(n, n_out)``."""
        plan, n2 = self._plan, self._side.key.n2
        batch = self._side.load(blob, *self._keep.shape)
        untouched = plan.untouched
        computed = [o for o in range(plan.n_out) if not untouched[o]]
        fresh = iter(self._side.obfuscators.take(len(batch) * len(computed)))
        counted = self._keep | ~np.asarray(plan.own, dtype=bool)
        out: list[mpz] = []
        for i, (row, kept) in enumerate(zip(batch, counted, strict=True)):
            sums = [mpz(1)] * plan.n_out
            for e in np.flatnonzero(kept).tolist():
                o = plan.target[e]
                sums[o] = row[e] if sums[o] == 1 else sums[o] * row[e] % n2
            for o in computed:
                sums[o] = sums[o] * next(fresh) % n2
            if len(self._added):  # to a refreshed sum, whose obfuscator stays as it is
                sums[0] = self._side.key.cover(self._added[i], sums[0])
            out += sums
        return self._side.key.dump(out)


def slots_per_ciphertext(bits: int) -> int:
    """Pairs of sums that fit one plaintext of `bits` bits, the sign's bit kept free."""
    return max(1, (bits - 2) // PAIR_SLOT)
