"""A piece of a batch, multiplied by a Host's 0/1 and added up: what one of the Host's own workers does. Knows no key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.rlwe.fresh import read_fresh
from backend.crypto.rlwe.ring import Ring, ring, written


@dataclass(frozen=True, repr=False)
class Piece:
    """Ciphertexts that travelled together.

    Attributes
    ----------
    name : str
        Of the parameter set.
    blob : bytes
        The ciphertexts, one after the other.
    fresh : bool
        Whether they come from the Guest, else from another Host.
    kept : tuple of (ndarray of bool or None)
        For each its slots' 0/1; None if this Host has no say.
    targets : tuple of int
        For each the sum that it is added to.
    """

    name: str
    blob: bytes
    fresh: bool
    keep: tuple[NDArray[np.bool_] | None, ...]
    targets: tuple[int, ...]


def folded(of: Ring, piece: Piece) -> dict[int, Any]:
    """Sums by target; a target whose ciphertexts are all multiplied by 0 has none."""
    width = of.seeded_width if piece.fresh else of.full_width
    sums: dict[int, Any] = {}
    for i, (keep, target) in enumerate(zip(piece.keep, piece.targets, strict=True)):
        part = piece.blob[i * width : (i + 1) * width]
        if piece.fresh:
            ciphertext = read_fresh(of, part)
        else:
            ciphertext = of.ciphertext(part, of.first)
        if keep is not None:
            ciphertext = of.times(ciphertext, keep.astype(np.int64))
        sums[target] = of.plus(sums.get(target), ciphertext)
    return {target: summed for target, summed in sums.items() if summed is not None}


def folded_apart(piece: Piece) -> dict[int, bytes]:
    """The same in another process of the Host's: sums as SEAL saves them. They are not refreshed, so they stay inside the Host."""
    return {target: written(summed) for target, summed in folded(ring(piece.name), piece).items()}
