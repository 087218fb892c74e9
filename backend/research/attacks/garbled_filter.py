"""T2: the garbled Bloom filter of FL-DT as printed loses most ids. Plays both parties; an id that is lost counts as a success.

FL-DT eq. 6 overwrites the slots of an id, and with them shares of earlier ids. An error of insertion rather than an attack: nobody is
harmed but the result.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from backend.protocols.alignment.garbled_bloom import SALT, WORDS, FilterShape, Words, add_up, garble, hash_ids
from backend.research.attacks.result import AttackOutcome, count

HASHES = (3, 8, 32)  # slots per id


def run(seed: int, ids: int = 2000) -> AttackOutcome:
    """Lost ids when `ids` are inserted as printed, and as shipped."""
    draw = np.random.default_rng(seed)
    salt = draw.bytes(SALT)
    data = [f"customer {i}".encode() for i in range(ids)]

    def lost(shape: FilterShape, as_printed: bool) -> tuple[int, int]:
        prints, slots = hash_ids(data, salt, shape)
        secrets = np.column_stack([prints, np.arange(ids, dtype=np.uint32)])
        insert = overwrite if as_printed else garble
        restored = add_up(insert(slots, secrets, shape.slots), slots)
        return int((restored != secrets).any(axis=1).sum()), ids

    # Bloom's optimum: half of the slots are used
    shapes = {k: FilterShape(k, math.ceil(k * ids / math.log(2))) for k in HASHES}
    printed = {k: count(lost, shape, as_printed=True) for k, shape in shapes.items()}
    return AttackOutcome(
        printed[HASHES[-1]],
        count(lost, FilterShape.of(ids, ids), as_printed=False),
        chance=0.0,
        setting={"ids": ids, "hashes": HASHES[-1]},
        rates={f"lost_{k}_hashes": success.rate for k, success in printed.items()},
    )


def overwrite(slots: NDArray[np.intp], secrets: Words, m: int) -> Words:
    """FL-DT eq. 6 as printed: random shares, the last one fitted, each overwriting its slot."""
    draw = np.random.default_rng(m)
    garbled = draw.integers(0, 1 << 32, (m + 1, WORDS), dtype=np.uint32)
    garbled[m] = 0
    for row, secret in zip(slots, secrets, strict=True):
        places = row[row < m]
        shares = draw.integers(0, 1 << 32, (len(places), WORDS), dtype=np.uint32)
        shares[-1] = secret ^ np.bitwise_xor.reduce(shares[:-1], axis=0)
        garbled[places] = shares
    return garbled
