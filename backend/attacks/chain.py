"""A3: the next Host of a chain reads what this one kept, as FATE 1.x lets it. Plays the second Host; sees what the Guest sent, too.

With `phe` a Host multiplies the Guest's ciphertext c by its 0 or 1: c·0 is the number 1 and c·1 is c, for everybody to see.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import phe
from gmpy2 import mpz

from backend.attacks.keys import as_bit, fold, honest, matches, plan_of
from backend.attacks.result import AttackOutcome, attempt
from backend.crypto.paillier.keys import KEY_BITS_FLOOR


def run(seed: int, key_bits: int = KEY_BITS_FLOOR, entries: int = 128) -> AttackOutcome:
    """Read `entries` bits of the first Host from what it passes on."""
    draw = np.random.default_rng(seed)
    keys = honest(key_bits)
    n = keys.host.key.n
    kept = draw.random((1, entries)) < 0.5
    sent = keys.guest.encrypt_numbers(draw.integers(-1000, 1000, entries).tolist())

    def with_phe() -> tuple[int, int]:
        public = phe.PaillierPublicKey(int(n))
        products = [phe.EncryptedNumber(public, int(c)) * int(keep) for c, keep in zip(sent, kept[0], strict=True)]
        return matches(read(sent, [mpz(c.ciphertext(be_secure=False)) for c in products], n), kept)

    def shipped() -> tuple[int, int]:
        return matches(read(sent, fold(keys.host, sent, kept, plan_of(range(entries), entries)), n), kept)

    return AttackOutcome(
        attempt(with_phe), attempt(shipped), chance=0.5, setting={"key_bits": key_bits, "entries": entries}
    )


def read(sent: Sequence[mpz], passed_on: Sequence[mpz], n: mpz) -> list[bool]:
    """Which entries were kept: those that came through as they were, not those that became 1; else by what little a ciphertext shows."""
    return [
        after == before if after in (before, 1) else as_bit(before, n) == as_bit(after, n)
        for before, after in zip(sent, passed_on, strict=True)
    ]
