"""Plain numbers behind the cipher interface: the oracle of every test and `--cipher none`. Protects nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.crypto.bin_products import BinIndex
from backend.crypto.cipher import FoldPlan, IntArray, Parcel, WholeFold
from backend.errors import SecurityError

MESSAGE_ENTRIES = 1 << 20  # numbers a scoring message: 8 MiB


class PlainKeySide:
    """The Guest's side without a cipher."""

    scheme = "none"
    bits = 0
    limit = (1 << 62) - 1

    def offer(self) -> bytes:
        """Nothing to offer."""
        return b""

    def parcel(self) -> Parcel:
        """Nothing but the name."""
        return {"scheme": self.scheme}

    def rows_per_message(self, m: int) -> int:
        """As many as :data:`MESSAGE_ENTRIES` holds."""
        return max(1, MESSAGE_ENTRIES // m)

    def pieces(self, n: int, m: int) -> list[range]:
        """All entries in one message."""
        return [range(m)]

    def worth_sharing(self, n: int, m: int) -> bool:
        """Never."""
        return False

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

    def start_fold(self, keep: NDArray[np.bool_], plan: FoldPlan) -> PlainFold:
        """Begin a batch."""
        return PlainFold(keep, plan)

    def load_pairs(self, blob: bytes, n: int) -> IntArray:
        """``(2, n)``: gradients, hessians."""
        return _load(blob, (n, 2)).T

    def bin_sums(self, pairs: IntArray, nodes: Sequence[tuple[NDArray[np.intp], BinIndex]]) -> list[bytes]:
        """All features' sums of every node, one after the other; exact, since every sum stays below 2**53."""
        return [
            _dump(np.concatenate([_by_bin(pairs[:, rows], index, count) for index, count in bins], axis=1))
            for rows, bins in nodes
        ]


class PlainFold(WholeFold):
    """Fed-EINI eq. 10/13 in plain arithmetic."""

    def __init__(self, keep: NDArray[np.bool_], plan: FoldPlan) -> None:
        super().__init__()
        self._keep, self._plan = keep, plan

    def fold(self, blob: bytes) -> bytes:
        """``(n, m)`` → ``(n, n_out)``."""
        batch = _load(blob, self._keep.shape)
        kept = np.where(np.asarray(self._plan.own, dtype=bool)[None, :] & ~self._keep, 0, batch)
        out = np.zeros((self._plan.n_out, len(batch)), dtype=np.int64)
        np.add.at(out, np.asarray(self._plan.target, dtype=np.intp), kept.T)
        return _dump(out.T)


def _by_bin(pairs: IntArray, index: NDArray[np.intp], count: int) -> IntArray:
    sums = [np.bincount(index, weights=part.astype(np.float64), minlength=count) for part in pairs]
    return np.stack(sums).astype(np.int64)


def _dump(values: IntArray) -> bytes:
    return np.ascontiguousarray(values, dtype="<i8").tobytes()


def _load(blob: bytes, shape: tuple[int, ...]) -> NDArray[np.int64]:
    expected = int(np.prod(shape)) * 8
    if len(blob) != expected:
        raise SecurityError(f"A vector of {expected} bytes was expected, {len(blob)} came; the message was refused.")
    return np.frombuffer(blob, dtype="<i8").astype(np.int64).reshape(shape)
