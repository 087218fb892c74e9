"""Honest keys for the attack lab, made once a size, and the shipped Host's fold in one call. Holds a Guest's secret; is nobody's party."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from backend.crypto.interface import FoldPlan
from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierPublicKey, PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide


@dataclass(frozen=True)
class Keys:
    """A key as a Guest draws it, and the sides that are built on it as they are shipped, without pools in the background."""

    secret: PaillierSecretKey
    guest: PaillierKeySide
    host: PaillierPublicSide


@lru_cache(maxsize=4)
def honest(bits: int) -> Keys:
    """The key of this size; the same for every attack of a run."""
    secret = PaillierSecretKey.generate(bits, floor=min(bits, KEY_BITS_FLOOR))
    return Keys(secret, PaillierKeySide(secret), host_of(secret.public))


def host_of(key: PaillierPublicKey) -> PaillierPublicSide:
    """A Host that was offered `key` and has looked at it; keys below the floor are for tests."""
    return PaillierPublicSide(PaillierPublicKey.from_bytes(key.to_bytes(), floor=min(key.bits, KEY_BITS_FLOOR)))


def as_bit(ciphertext: mpz, n: mpz) -> bool:
    """What a ciphertext shows to anybody without a key: its Jacobi symbol, which follows from its obfuscator alone."""
    return bool(gmpy2.jacobi(ciphertext % n, n) == 1)


def plan_of(target: Sequence[int], n_out: int) -> FoldPlan:
    """One Host's part: every entry carries a condition of it; one outgoing entry makes it the last Host, more the first of two."""
    own = (True,) * len(target)
    return FoldPlan(tuple(target), own, n_out, tuple(range(len(target))), 0, 1 if n_out == 1 else 2)


def fold(host: PaillierPublicSide, sent: Sequence[mpz], kept: NDArray[np.bool_], plan: FoldPlan) -> list[mpz]:
    """What the shipped Host makes of ``n·m`` ciphertexts when its 0/1 are `kept`, ``(n, m)``; SecurityError where it refuses."""
    folding = host.start_fold(kept, plan)
    folding.add(host.key.dump(sent))
    (blob,) = folding.finish()
    return host.key.load(blob, len(kept) * plan.n_out)


def fold_alone(host: PaillierPublicSide, sent: Sequence[mpz], kept: NDArray[np.bool_]) -> mpz:
    """The reply to one sample, ``(m,)``, of a Host that is the only one."""
    return fold(host, sent, kept[None, :], plan_of([0] * len(sent), 1))[0]


def matches(found: Sequence[bool], truth: NDArray[np.bool_]) -> tuple[int, int]:
    """How many bits are right, of how many."""
    return int((np.asarray(found, dtype=bool) == truth.ravel()).sum()), truth.size
