"""T2: the garbled Bloom filter of FL-DT as printed loses most ids. Plays both parties; what counts as success is an id that is lost.

FL-DT eq. 6 writes each share of an id over what lies in its slot, and with it shares of ids before it. An error of insertion rather
than an attack: nobody is harmed but the result.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from backend.attacks.result import AttackOutcome, Attempt, attempt
from backend.protocols.alignment.garbled_bloom import SALT, WORDS, FilterShape, Words, add_up, garble, hash_ids

HASHES = (3, 8, 32)  # slots an id


def run(seed: int, ids: int = 2000) -> AttackOutcome:
    """Lost ids when `ids` are inserted as printed, and as shipped."""
    draw = np.random.default_rng(seed)
    salt, data = draw.bytes(SALT), [f"customer {i}".encode() for i in range(ids)]

    def lost(shape: FilterShape, as_printed: bool) -> tuple[int, int]:
        prints, slots = hash_ids(data, salt, shape)
        secrets = np.column_stack([prints, np.arange(ids, dtype=np.uint32)])
        insert = overwrite if as_printed else garble
        found = add_up(insert(slots, secrets, shape.slots), slots)
        return int((found != secrets).any(axis=1).sum()), ids

    printed: dict[int, Attempt] = {}
    for k in HASHES:
        shape = FilterShape(k, math.ceil(k * ids / math.log(2)))  # Bloom's optimum: half of the slots are used
        printed[k] = attempt(lost, shape, as_printed=True)
    return AttackOutcome(
        printed[HASHES[-1]],
        attempt(lost, FilterShape.of(ids, ids), as_printed=False),
        chance=0.0,
        setting={"ids": ids, "hashes": HASHES[-1]},
        rates={f"lost_{k}_hashes": found.rate for k, found in printed.items()},
    )


def overwrite(slots: NDArray[np.intp], secrets: Words, m: int) -> Words:
    """FL-DT eq. 6 as printed: random shares, the last one fitted, each written over what lies in its slot."""
    draw = np.random.default_rng(m)
    garbled = draw.integers(0, 1 << 32, (m + 1, WORDS), dtype=np.uint32)
    garbled[m] = 0
    for row, secret in zip(slots, secrets, strict=True):
        own = row[row < m]
        shares = draw.integers(0, 1 << 32, (len(own), WORDS), dtype=np.uint32)
        shares[-1] = secret ^ np.bitwise_xor.reduce(shares[:-1], axis=0)
        garbled[own] = shares
    return garbled
