"""Obfuscators at one multiplication each, for what is encrypted around them: nothing there depends on how they are drawn.

Each is a true n-th residue, the one before times one of a few that were drawn: it encrypts zero, and none comes twice. It hides little.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from gmpy2 import mpz, powmod

from backend.crypto import pool
from backend.crypto.paillier.obfuscators import OwnerMaker, PublicMaker, random_unit

STEPS = 16
_lock = threading.Lock()
_walks: dict[mpz, tuple[list[mpz], list[mpz]]] = {}  # n: the steps, and where the walk is; one for all who have the key


def walked(n: mpz, count: int) -> list[mpz]:
    n2, made = n * n, []
    with _lock:
        if n not in _walks:
            steps = [powmod(random_unit(n), n, n2) for _ in range(STEPS)]
            _walks[n] = steps, steps[:1]
        steps, place = _walks[n]
        for _ in range(count):
            place[0] = place[0] * random.choice(steps) % n2
            made.append(place[0])
    return made


@contextmanager
def light_obfuscators() -> Iterator[None]:
    """Keys of this process take light obfuscators, and no second process makes any."""

    def by_owner(maker: OwnerMaker, count: int) -> list[mpz]:
        return walked(maker._p * maker._q, count)

    def by_others(maker: PublicMaker, count: int) -> list[mpz]:
        return walked(maker._n, count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "BULK", 1 << 30)
        for maker, make in ((OwnerMaker, by_owner), (PublicMaker, by_others)):
            for name in ("make", "make_unlocked"):
                patch.setattr(maker, name, make)
            patch.setattr(maker, "prepare", lambda self: None)
        yield
