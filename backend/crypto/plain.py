"""Plain numbers behind the cipher interface: the oracle of every test and `--cipher none`. Protects nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backend.crypto.cipher import FoldPlan, IntArray
from backend.errors import SecurityError


class PlainKeySide:
    """The Guest's side without a cipher."""

    scheme = "none"
    bits = 0

    def offer(self) -> bytes:
        """Nothing to offer."""
        return b""

    def encrypt(self, values: IntArray) -> bytes:
        """``(n, m)`` integers as little-endian int64."""
        return _dump(values)

    def decrypt(self, blob: bytes, n: int) -> list[int]:
        """``n`` integers."""
        return [int(v) for v in _load(blob, (n,))]

    def encrypt_pairs(self, g: IntArray, h: IntArray) -> bytes:
        """Gradient and hessian, row by row."""
        return _dump(np.stack([g, h], axis=1))

    def decrypt_sums(self, blob: bytes, n: int) -> tuple[IntArray, IntArray]:
        """``(Σg, Σh)``, each ``(n,)``."""
        sums = _load(blob, (2, n))
        return sums[0], sums[1]


class PlainPublicSide:
    """A Host's side without a cipher."""

    scheme = "none"
    bits = 0

    def load(self, blob: bytes, n: int, m: int) -> IntArray:
        """``(n, m)`` integers."""
        return _load(blob, (n, m))

    def fold(self, batch: IntArray, keep: NDArray[np.bool_], plan: FoldPlan) -> bytes:
        """Fed-EINI eq. 10/13 in plain arithmetic."""
        kept = np.where(np.asarray(plan.own)[None, :] & ~keep, 0, batch)
        out = np.zeros((plan.n_out, len(batch)), dtype=np.int64)
        np.add.at(out, np.asarray(plan.target, dtype=np.intp), kept.T)
        return _dump(out.T)

    def load_pairs(self, blob: bytes, n: int) -> IntArray:
        """``(2, n)``: gradients, hessians."""
        return _load(blob, (n, 2)).T

    def bin_sums(self, pairs: IntArray, rows: NDArray[np.intp], bin_index: NDArray[np.intp], n_bins: int) -> IntArray:
        """``(2, n_bins)``; exact, since every sum stays below 2**53."""
        sums = [np.bincount(bin_index, weights=part[rows].astype(np.float64), minlength=n_bins) for part in pairs]
        return np.stack(sums).astype(np.int64)

    def dump_sums(self, sums: list[IntArray]) -> bytes:
        """All features' sums, one after the other."""
        return _dump(np.concatenate(sums, axis=1))


def _dump(values: IntArray) -> bytes:
    return np.ascontiguousarray(values, dtype="<i8").tobytes()


def _load(blob: bytes, shape: tuple[int, ...]) -> IntArray:
    expected = int(np.prod(shape)) * 8
    if len(blob) != expected:
        raise SecurityError(f"A vector of {expected} bytes was expected, {len(blob)} came; the message was refused.")
    return np.frombuffer(blob, dtype="<i8").astype(np.int64).reshape(shape)
