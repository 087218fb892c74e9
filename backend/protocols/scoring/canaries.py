"""Canaries: secret numbers that ride above every score, so that only a sum of one leaf a tree comes back whole (docs/attacks.md, A7).

Every candidate leaf of a tree carries the tree's number in bits that no score reaches. Whichever leaf a Host keeps, the numbers of all
trees add up to what is expected; a multiple of an entry, or one more than was asked for, does not. No Host can tell that they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

CANARY_BITS = (
    40  # of a tree's number: what a Host changes passes with a probability of 2^-40; sums over trees stay below 2^63
)
_BYTES = CANARY_BITS // 8


def canaries(seed: bytes, model_id: str, ids: Sequence[str], trees: int) -> NDArray[np.int64]:
    """``(trees, n)`` numbers of some people, a keyed function of model and person, so that an auditor can be shown them again.

    Parameters
    ----------
    seed : bytes
        The Guest's secret.
    """
    out = np.empty((trees, len(ids)), dtype=np.int64)
    for i, person in enumerate(ids):
        drawn = shake_256(seed + f"canary\0{model_id}\0{person}".encode()).digest(trees * _BYTES)
        bytes_ = np.zeros((trees, 8), dtype=np.uint8)
        bytes_[:, :_BYTES] = np.frombuffer(drawn, dtype=np.uint8).reshape(trees, _BYTES)
        out[:, i] = bytes_.view("<i8").ravel()
    return out
