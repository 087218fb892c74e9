"""Table 7 of Yao et al.: their cipher RIAC beside Paillier. RIAC is BROKEN (docs/attacks.md T1); it is timed, never used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median

import gmpy2
import numpy as np
import phe

from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.research import riac
from bench.engines import fill
from bench.paper.data import SEED, Table
from bench.setting import REPEATS, fresh_folder, progress
from bench.tables import Results
from bench.timing import interleaved, seconds_of

BITS = 2048
NUMBERS = 1000  # "an average of 1000 plaintext numbers randomly drawn from N(0, 10^8)", appendix D.2
DEVIATION = 1e4
TEXTBOOK_NUMBERS = 20  # phe, one by one
QUICK_NUMBERS = 10
QUICK_REPEATS = 2
OPERATIONS = ("scalar", "addition", "decryption", "encryption")  # the order of the table


def measure(tables: Mapping[str, Table], quick: bool) -> Results:
    """Seconds a number: RIAC, Paillier by `phe` number by number, Paillier as this project encrypts and decrypts a list."""
    progress("forest: RIAC beside Paillier")
    rng = np.random.default_rng(SEED)
    values = rng.normal(0, DEVIATION, QUICK_NUMBERS if quick else NUMBERS).astype(np.int64).tolist()
    factors = np.abs(rng.normal(0, DEVIATION, len(values))).astype(np.int64).tolist()
    secret = PaillierSecretKey.generate(BITS, min(BITS, KEY_BITS_FLOOR))
    with fresh_folder() as folder:
        key = PaillierKeySide(secret, tables=folder / "owner.tables")
        fill(key.obfuscators)
        key.encrypt_numbers(values)  # builds the tables
        few = min(TEXTBOOK_NUMBERS, len(values))
        operations = {
            "riac": _riac(riac.RiacKey.generate(), values, factors),
            "glassleaf": _ours(key, values, factors),
            "phe": _phe(secret, values[:few], factors[:few]),
        }
        tasks = {(name, op): partial(seconds_of, task) for name, own in operations.items() for op, task in own.items()}
        seconds = interleaved(tasks, QUICK_REPEATS if quick else REPEATS)
    counts = {"riac": len(values), "glassleaf": len(values), "phe": few}
    each = {name: {op: median(seconds[name, op]) / count for op in OPERATIONS} for name, count in counts.items()}
    return {"bits": BITS, "riac_bits": riac.BITS, "numbers": len(values), "seconds_each": each}


def _riac(key: riac.RiacKey, values: list[int], factors: list[int]) -> dict[str, Callable[[], object]]:
    pairs = key.encrypt(values)
    n = key.modulus
    _same(key.decrypt(pairs), values)
    return {
        "scalar": lambda: [(k * a % n, k * b % n) for k, (a, b) in zip(factors, pairs, strict=True)],
        "addition": lambda: [riac.add(left, right, n) for left, right in zip(pairs, reversed(pairs), strict=True)],
        "decryption": lambda: key.decrypt(pairs),
        "encryption": lambda: key.encrypt(values),
    }


def _ours(key: PaillierKeySide, values: list[int], factors: list[int]) -> dict[str, Callable[[], object]]:
    ciphertexts = key.encrypt_numbers(values)
    n2 = key.public.n2
    _same(key.decrypt_numbers(ciphertexts), values)
    return {
        "scalar": lambda: [gmpy2.powmod(c, k, n2) for k, c in zip(factors, ciphertexts, strict=True)],
        "addition": lambda: [a * b % n2 for a, b in zip(ciphertexts, reversed(ciphertexts), strict=True)],
        "decryption": lambda: key.decrypt_numbers(ciphertexts),
        "encryption": lambda: key.encrypt_numbers(values),
    }


def _phe(secret: PaillierSecretKey, values: list[int], factors: list[int]) -> dict[str, Callable[[], object]]:
    public = phe.PaillierPublicKey(int(secret.public.n))
    private = phe.PaillierPrivateKey(public, int(secret.p), int(secret.q))
    ciphertexts = [public.encrypt(v) for v in values]
    return {
        "scalar": lambda: [c * k for k, c in zip(factors, ciphertexts, strict=True)],
        "addition": lambda: [a + b for a, b in zip(ciphertexts, reversed(ciphertexts), strict=True)],
        "decryption": lambda: [private.decrypt(c) for c in ciphertexts],
        "encryption": lambda: [public.encrypt(v) for v in values],
    }


def _same(decrypted: list[int], expected: list[int]) -> None:
    """Raise ArithmeticError if a cipher does not give back what it encrypted."""
    if decrypted != expected:
        raise ArithmeticError("A cipher does not give back the numbers that it encrypted.")
