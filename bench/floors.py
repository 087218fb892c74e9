"""Lower bounds of the time of a scoring: the arithmetic operations counted, times the measured cost of one on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import gmpy2
from gmpy2 import mpz

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.obfuscators import OwnerMaker, PublicMaker, random_unit
from backend.crypto.rlwe.zeros import Zeros
from bench.cases import Case
from bench.engines import rlwe_sides

Floors = dict[tuple[str, str], tuple[float, str]]  # (party's part, stage) → seconds, in words
GUEST = "guest"
HOST = "host"
ROUNDS = 7
EACH = 200


def each(function: Callable[[], object], times: int = EACH) -> float:
    """Median seconds of one call among many."""
    means = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(times):
            function()
        means.append((time.perf_counter() - began) / times)
    return median(means)


class PaillierFloor:
    """Modular multiplications of the key owner (|p| by 2|p| bits, modulo p²), of a Host (modulo n²), and squarings within a power.

    Attributes
    ----------
    costs : dict of str to float
        Seconds of one of each.
    """

    def __init__(self, secret: PaillierSecretKey) -> None:
        p = secret.p
        n = secret.public.n
        p2 = p * p
        n2 = n * n
        small = mpz(999)
        rest = random_unit(n)
        power = mpz(1) << int(p.bit_length())
        single = random_unit(p)
        square = random_unit(p2)
        a = random_unit(n2)
        b = random_unit(n2)
        self.costs = {
            "half_width": each(lambda: square * single % p2),
            "squaring": each(lambda: gmpy2.powmod(square, power, p2), 1) / (int(power).bit_length() - 1),
            "host": each(lambda: a * b % n2),
            "cover": each(lambda: (a + n * (small * rest % n)) % n2),
        }
        self._bits = int(p.bit_length())
        owner = OwnerMaker(p, secret.q)
        public = PublicMaker(n)
        self._owner_digits = sum(-(-bits // owner._window) for bits in owner._bits)
        self._host_digits = -(-public._bits // public._window)

    def of(self, case: Case, n: int, kept: int, warm: bool) -> Floors:
        """Floors for `n` samples of which `kept` numbers in all are multiplied into sums, by one Host."""
        sent = n * case.guest.folding.n_entries
        per_number = 0 if warm else self._owner_digits
        per_refresh = 1 if warm else self._host_digits
        decrypt = 2 * self._bits * n
        return {
            (GUEST, "encrypt"): (
                sent * (per_number * self.costs["half_width"] + self.costs["cover"]),
                f"{sent:,} × ({per_number} multiplications mod p² or q² + 1 mod n)",
            ),
            (HOST, "fold"): (kept * self.costs["host"], f"{kept:,} multiplications mod n²"),
            (HOST, "refresh"): (n * per_refresh * self.costs["host"], f"{n:,} × {per_refresh} multiplications mod n²"),
            (GUEST, "decrypt"): (decrypt * self.costs["squaring"], f"{decrypt:,} squarings mod p² or q²"),
        }


class RlweFloor:
    """Number-theoretic transforms of one polynomial modulo one prime.

    Attributes
    ----------
    costs : dict of str to float
        Seconds of one.
    """

    def __init__(self, zeros: Zeros) -> None:
        ring = zeros.ring
        zero = zeros.make()
        self._primes = len(ring.parameters.data_bits)

        def back_and_forth() -> None:
            ring.evaluator.transform_from_ntt_inplace(zero)
            ring.evaluator.transform_to_ntt_inplace(zero)

        self.costs = {"transform": each(back_and_forth, 20) / (4 * self._primes)}
        self._width = ring.seeded_width

    def of(self, batches: int, bytes_up: int, warm: bool) -> Floors:
        """Floors for vectors of `bytes_up` bytes in all, sent to one Host in so many batches."""
        k = self._primes
        sent = bytes_up // self._width
        zero = 0 if warm else 3 * k  # v, e₁ and the flood
        steps = "mask, switch to one prime" if warm else "zero under the public key, mask, switch to one prime"
        counts = {
            (GUEST, "encrypt"): (sent, 2 * k + 1, "encoding, noise and message"),
            (HOST, "fold"): (sent, k + 1, "encoding and mask"),
            (HOST, "refresh"): (batches, zero + 3 * k + 1, steps),
            (GUEST, "decrypt"): (batches, 2, "back and decoding"),
        }
        return {
            stage: (times * number * self.costs["transform"], f"{times:,} × {number} transforms: {what}")
            for stage, (times, number, what) in counts.items()
        }


def rlwe_batch(case: Case, people: int) -> dict[str, Any]:
    """What one batch takes at least on one core under RLWE, all parties together, nothing made in advance; and what that counts."""
    zeros = rlwe_sides(case).hosts[0].zeros
    ring = zeros.ring
    entries = case.guest.folding.n_entries
    sent = -(-entries // (ring.parameters.degree // people))
    floors = RlweFloor(zeros).of(1, sent * ring.seeded_width, warm=False)
    spent = sum(seconds for seconds, _ in floors.values())
    words = f"transforms of {sent:,} ciphertexts for {people:,} people: encryption, folding, sealing, decryption"
    return {"people": people, "seconds": spent, "counts": words}


def copied(count: int) -> float:
    """Seconds to copy `count` bytes once, in blocks of 1 MiB."""
    source = bytearray(1 << 20)
    return each(lambda: bytes(source)) * count / len(source)
