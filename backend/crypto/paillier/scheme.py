"""Paillier's two sides: the Guest encrypts and decrypts with its factors, a Host computes under the public key.

Paillier is IND-CPA secure under decisional composite residuosity (Paillier 1999), not IND-CCA2 as Fed-EINI §IV-A has it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from backend.crypto.fixedpoint import HALF_SLOT, join_pair, split_pair, split_slots
from backend.crypto.interface import BinIndex, FoldPlan, IntArray, Weighted, WholeFold, WorkerPayload
from backend.crypto.paillier.bin_products import BinProducts
from backend.crypto.paillier.key_certificate import certify
from backend.crypto.paillier.keys import PaillierPublicKey, PaillierSecretKey
from backend.crypto.paillier.obfuscator_process import ObfuscatorProcess
from backend.crypto.paillier.obfuscators import Obfuscation, OwnerMaker, PublicMaker
from backend.crypto.paillier.weighted_products import weighted_product
from backend.crypto.pool import Pool
from backend.errors import ParameterError
from backend.jobs import work

DECRYPT_BATCH = 64  # ciphertexts decrypted in one call that releases the interpreter lock: half a second
PARALLEL_MIN = 16_384  # ciphertexts from which on worker processes encrypt: some seconds of work
# ciphertexts per scoring message: 1.5 MiB at 3,072 bits, so a batch shows progress and can be cancelled
MESSAGE_ENTRIES = 2048

Ciphertexts = list[list[mpz]]


class PaillierKeySide:
    """The Guest's side: encrypts with obfuscators from its own factors, decrypts by the Chinese remainder theorem.

    Parameters
    ----------
    pool : int, optional
        Obfuscators kept ready in the background once :meth:`Pool.fill` was called.
    obfuscation : {"full", "short"}
        How long the exponents of obfuscators are (:class:`OwnerMaker`).
    tables : Path, optional
        Where the tables for obfuscators are kept between runs.
    """

    scheme = "paillier"

    def __init__(
        self, key: PaillierSecretKey, pool: int = 0, obfuscation: Obfuscation = "full", tables: Path | None = None
    ) -> None:
        self._key = key
        self._obfuscation = obfuscation
        self._tables = tables
        self.public = key.public
        self.bits = self.public.bits
        self.limit = int(self.public.n // 2) - 1
        self.room = 1 << (self.bits - 2)
        numbers = {"p": int(key.p), "q": int(key.q)}
        first_process = ObfuscatorProcess(numbers, self.public.width, obfuscation, tables)
        second_process = ObfuscatorProcess(numbers, self.public.width, obfuscation, tables, second=True)
        self.obfuscators = Pool(OwnerMaker(key.p, key.q, obfuscation, tables), first_process, pool, second_process)
        p = key.p
        q = key.q
        self._p2 = p * p
        self._q2 = q * q
        # Paillier 1999 §7: h_p = L_p(g^(p-1) mod p²)^-1 mod p with L_p(u) = (u - 1)/p and g = 1 + n
        n = self.public.n
        self._h_p = gmpy2.invert((gmpy2.powmod(1 + n, p - 1, self._p2) - 1) // p, p)
        self._h_q = gmpy2.invert((gmpy2.powmod(1 + n, q - 1, self._q2) - 1) // q, q)

    def __repr__(self) -> str:
        return f"PaillierKeySide({self.bits} bits)"

    @cached_property
    def _certificate(self) -> bytes:
        return certify(self._key.p, self._key.q)

    @cached_property
    def seed(self) -> bytes:
        """Seed of the owner's reproducible draws; as secret as the key."""
        return sha256(b"seed" + self.public.dump([self._key.p, self._key.q])).digest()

    def offer(self) -> bytes:
        """Public key as bytes, and the proof of its form (:mod:`backend.crypto.paillier.key_certificate`)."""
        return self.public.to_bytes() + self._certificate

    def worker_payload(self) -> WorkerPayload:
        """The factors and where the tables are, for the party's own workers."""
        tables = "" if self._tables is None else str(self._tables)
        return {"scheme": self.scheme, "obfuscation": self._obfuscation, "tables": tables, **self._key.to_numbers()}

    @classmethod
    def from_worker_payload(cls, payload: WorkerPayload) -> PaillierKeySide:
        """The same side in another process."""
        key = PaillierSecretKey(mpz(int(str(payload["p"]), 16)), mpz(int(str(payload["q"]), 16)))
        if payload["tables"]:
            tables = Path(str(payload["tables"]))
        else:
            tables = None
        return cls(key, 0, "short" if payload["obfuscation"] == "short" else "full", tables)

    def rows_per_message(self, m: int) -> int:
        """As many as :data:`MESSAGE_ENTRIES` holds."""
        return max(1, MESSAGE_ENTRIES // m)

    def pieces(self, n: int, m: int) -> list[range]:
        """All entries in one message."""
        return [range(m)]

    def should_parallelise(self, n: int, m: int) -> bool:
        """From :data:`PARALLEL_MIN` ciphertexts on."""
        return n * m >= PARALLEL_MIN

    def encrypt_numbers(self, values: Sequence[int]) -> list[mpz]:
        """One fresh ciphertext per integer; raises ParameterError for one beyond the limit."""
        if any(abs(m) > self.limit for m in values):
            raise ParameterError("number_exceeds_plaintext", bits=self.bits)
        fresh = self.obfuscators.take(len(values))
        return [self.public.encrypt_with(m, r) for m, r in zip(values, fresh, strict=True)]

    def decrypt_numbers(self, ciphertexts: Sequence[mpz]) -> list[int]:
        """The signed integers behind `ciphertexts`."""
        p = self._key.p
        q = self._key.q
        n = self.public.n
        plain: list[int] = []
        for start in range(0, len(ciphertexts), DECRYPT_BATCH):
            work.check()
            chunk = ciphertexts[start : start + DECRYPT_BATCH]
            at_p = gmpy2.powmod_base_list([c % self._p2 for c in chunk], p - 1, self._p2)
            at_q = gmpy2.powmod_base_list([c % self._q2 for c in chunk], q - 1, self._q2)
            for u, v in zip(at_p, at_q, strict=True):
                # m_p = L_p(c^(p-1) mod p²)·h_p mod p, the same mod q, then both combined (Paillier 1999 §7)
                m = self._key.combine((u - 1) // p * self._h_p % p, (v - 1) // q * self._h_q % q)
                plain.append(int(m - n if m > n // 2 else m))  # the upper half are negative numbers
        return plain

    def open(self, ciphertexts: Sequence[mpz]) -> list[tuple[int, mpz]]:
        """Plaintexts and randomness: the only m and r modulo n with c = (1 + n)^m·r^n mod n² (n is certified, so r is unique)."""
        opened = []
        for c, m in zip(ciphertexts, self.decrypt_numbers(ciphertexts), strict=True):
            work.check()
            opened.append((m, self._key.nth_root(c)))
        return opened

    def encrypt(self, values: IntArray) -> bytes:
        """``(n, m)`` integers → ``n·m`` ciphertexts, row by row (Fed-EINI Alg. 1, stage 2)."""
        return self.public.dump(self.encrypt_numbers([int(v) for v in values.ravel()]))

    def decrypt(self, blob: bytes, n: int) -> list[int]:
        """``n`` single numbers."""
        return self.decrypt_numbers(self.public.load(blob, n))

    def encrypt_pairs(self, g: IntArray, h: IntArray, half: int = HALF_SLOT) -> bytes:
        """One ciphertext per row for both numbers."""
        joined = [join_pair(int(a), int(b), half) for a, b in zip(g, h, strict=True)]
        return self.public.dump(self.encrypt_numbers(joined))

    def decrypt_sums(self, blob: bytes, n: int, half: int = HALF_SLOT) -> tuple[IntArray, IntArray]:
        """``(Σg, Σh)`` of ``n`` bins from ciphertexts that hold several bins each."""
        slots = slots_per_ciphertext(self.bits, half)
        packed = self.decrypt_numbers(self.public.load(blob, -(-n // slots)))
        sums = (s for i, value in enumerate(packed) for s in split_slots(value, min(slots, n - i * slots), 2 * half))
        pairs = np.array([split_pair(s, half) for s in sums], dtype=np.int64).reshape(n, 2)
        return pairs[:, 0], pairs[:, 1]

    def encrypt_joined(self, values: Sequence[int], half: int) -> bytes:
        """One ciphertext a number."""
        return self.public.dump(self.encrypt_numbers(values))

    def decrypt_joined(self, blob: bytes, n: int, half: int) -> list[int]:
        """``n`` sums, from a ciphertext each."""
        low = (1 << 2 * half) - 1
        return [value & low for value in self.decrypt_numbers(self.public.load(blob, n))]


class PaillierPublicSide:
    """A Host's side: everything it can do with the Guest's public key.

    Parameters
    ----------
    pool : int, optional
        Obfuscators kept ready in the background for refreshing.
    tables : Path, optional
        Where the Host keeps its own table for this key between runs.
    products : BinProducts, optional
        Who multiplies in training; default this process alone.
    """

    scheme = "paillier"

    def __init__(
        self, key: PaillierPublicKey, pool: int = 0, tables: Path | None = None, products: BinProducts | None = None
    ) -> None:
        self.key = key
        self.bits = key.bits
        self.room = 1 << (self.bits - 2)
        numbers = {"n": int(key.n)}
        first_process = ObfuscatorProcess(numbers, key.width, "full", tables)
        second_process = ObfuscatorProcess(numbers, key.width, "full", tables, second=True)
        self.obfuscators = Pool(PublicMaker(key.n, tables), first_process, pool, second_process)
        self._products = products or BinProducts()

    def load(self, blob: bytes, n: int, m: int) -> Ciphertexts:
        """``(n, m)`` checked ciphertexts."""
        flat = self.key.load(blob, n * m)
        if m:
            return [flat[i : i + m] for i in range(0, n * m, m)]
        return [[] for _ in range(n)]

    def start_fold(self, keep: NDArray[np.bool_], plan: FoldPlan, addends: Sequence[int] = ()) -> PaillierFold:
        """Begin a batch."""
        return PaillierFold(self, keep, plan, addends)

    def load_pairs(self, blob: bytes, n: int, previous: list[mpz] | None = None) -> list[mpz]:
        """Return ``n`` checked ciphertexts behind the `previous` ones."""
        return [*(previous or ()), *self.key.load(blob, n)]

    def bin_sums(
        self,
        pairs: list[mpz],
        nodes: Sequence[tuple[NDArray[np.intp], BinIndex]],
        half: int = HALF_SLOT,
        *,
        alone: bool = False,
    ) -> list[bytes]:
        """Return encrypted sums by bin, several to a ciphertext, each refreshed before it leaves; the bits above them are random."""
        width = 1 if alone else slots_per_ciphertext(self.bits, half)
        packed = self._products.packed_sums(self.key.n2, pairs, nodes, width, 2 * half)
        n_ciphertexts = sum(len(sums) for sums in packed)
        fresh = iter(self.obfuscators.take(n_ciphertexts))
        n2 = self.key.n2
        out = []
        for sums, (_, bins) in zip(packed, nodes, strict=True):
            total = sum(count for _, count in bins)
            masks = []
            for i in range(0, total, width):
                masks.append(self._mask(2 * half * min(width, total - i)))
            masks_enc = (self.key.encrypt_with(mask, next(fresh)) for mask in masks)
            out.append(self.key.dump(c * mask_enc % n2 for c, mask_enc in zip(sums, masks_enc, strict=True)))
        return out

    def _mask(self, used_bits: int) -> int:
        """Return random bits above the lowest `used_bits` of a plaintext, which stays positive, so that nothing can be read there."""
        free_bits = self.bits - 2 - used_bits
        if free_bits <= 0:
            return 0
        return secrets.randbits(free_bits) << used_bits

    def load_terms(self, blob: bytes, n: int) -> list[mpz]:
        """``n`` checked ciphertexts."""
        return self.key.load(blob, n)

    def weighted_sums(self, terms: Sequence[mpz], sums: Sequence[Weighted]) -> list[mpz]:
        """Σ coefficient · term for every sum; not refreshed, 1 for an empty one."""
        n2 = self.key.n2
        return [weighted_product([terms[i] for i in indices], coefficients, n2) for indices, coefficients in sums]

    def joined(self, values: Sequence[mpz], slot: int) -> mpz:
        """Σ 2^(slot·i) · value i in one ciphertext; not refreshed."""
        joined = mpz(1)
        for value in reversed(values):
            if joined != 1:  # leading empty sums cost nothing
                joined = gmpy2.powmod(joined, mpz(1) << slot, self.key.n2)
            joined = joined * value % self.key.n2
        return joined

    def refreshed(self, values: Sequence[mpz], addends: Sequence[int] = ()) -> bytes:
        """Multiply each value by a fresh n-th residue of this Host, so that it does not show how it was computed (docs/attacks.md A1, A3).

        `addends` are integers that are added to the plaintexts, ``(n,)`` or empty.
        """
        fresh = self.obfuscators.take(len(values))
        if len(addends):
            fresh = [self.key.encrypt_with(number, r) for number, r in zip(addends, fresh, strict=True)]
        return self.key.dump(c * r % self.key.n2 for c, r in zip(values, fresh, strict=True))


class PaillierFold(WholeFold):
    """Multiplies the kept ciphertexts of each outgoing entry, which adds plaintexts (Fed-EINI eq. 10 and 13), then refreshes."""

    def __init__(
        self, side: PaillierPublicSide, keep: NDArray[np.bool_], plan: FoldPlan, addends: Sequence[int]
    ) -> None:
        super().__init__()
        self._side = side
        self._keep = keep
        self._plan = plan
        self._added = addends

    def fold(self, blob: bytes) -> bytes:
        """``(n, m)`` ciphertexts → ``(n, n_out)``."""
        plan = self._plan
        n2 = self._side.key.n2
        batch = self._side.load(blob, *self._keep.shape)
        untouched = plan.untouched
        computed = [o for o in range(plan.n_out) if not untouched[o]]
        fresh = iter(self._side.obfuscators.take(len(batch) * len(computed)))
        counted = self._keep | ~np.asarray(plan.is_own, dtype=bool)
        out: list[mpz] = []
        for i, (row, keep) in enumerate(zip(batch, counted, strict=True)):
            sums = [mpz(1)] * plan.n_out
            for e in np.flatnonzero(keep).tolist():
                o = plan.target[e]
                sums[o] = row[e] if sums[o] == 1 else sums[o] * row[e] % n2
            for o in computed:
                sums[o] = sums[o] * next(fresh) % n2
            if len(self._added):  # c·(1 + n)^a: a is added to a refreshed sum, whose obfuscator stays
                sums[0] = self._side.key.encrypt_with(self._added[i], sums[0])
            out += sums
        return self._side.key.dump(out)


def slots_per_ciphertext(bits: int, half: int) -> int:
    """Pairs of sums per plaintext of `bits` bits; one bit is for the sign."""
    return max(1, (bits - 2) // (2 * half))
