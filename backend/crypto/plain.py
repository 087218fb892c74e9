"""Plaintext behind the cipher interface: the oracle of every test and `--cipher none`. Protects nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import HALF_SLOT
from backend.crypto.interface import BinIndex, FoldPlan, IntArray, Weighted, WholeFold, WorkerPayload
from backend.errors import SecurityError

MESSAGE_ENTRIES = 1 << 20  # numbers per scoring message: 8 MiB
MAX_WIDTH = 1024  # bytes per number, as a ciphertext's


class PlainKeySide:
    """The Guest's side without a cipher."""

    scheme = "none"
    bits = 0
    limit = (1 << 4096) - 1  # as large as any key's
    room = 0
    seed = b""

    def offer(self) -> bytes:
        """Nothing to offer."""
        return b""

    def worker_payload(self) -> WorkerPayload:
        """Nothing but the name."""
        return {"scheme": self.scheme}

    def rows_per_message(self, m: int) -> int:
        """As many as :data:`MESSAGE_ENTRIES` holds."""
        return max(1, MESSAGE_ENTRIES // m)

    def pieces(self, n: int, m: int) -> list[range]:
        """All entries in one message."""
        return [range(m)]

    def should_parallelise(self, n: int, m: int) -> bool:
        """Never."""
        return False

    def encrypt(self, values: IntArray) -> bytes:
        """``(n, m)`` integers, little-endian, 8 bytes each or as many as the largest takes."""
        return _dump(values)

    def decrypt(self, blob: bytes, n: int) -> list[int]:
        """``n`` integers."""
        return [int(v) for v in _load(blob, (n,))]

    def encrypt_pairs(self, g: IntArray, h: IntArray, half: int = HALF_SLOT) -> bytes:
        """Gradient and hessian, row by row."""
        return _dump(np.stack([g, h], axis=1))

    def decrypt_sums(self, blob: bytes, n: int, half: int = HALF_SLOT) -> tuple[IntArray, IntArray]:
        """``(Σg, Σh)``, each ``(n,)``."""
        sums = _load(blob, (2, n))
        return sums[0], sums[1]

    def encrypt_joined(self, values: Sequence[int], half: int) -> bytes:
        """High and low half, row by row."""
        low = (1 << half) - 1
        return _dump(np.array([[value >> half, value & low] for value in values], dtype=np.int64))

    def decrypt_joined(self, blob: bytes, n: int, half: int) -> list[int]:
        """``n`` integers."""
        high, low = _load(blob, (2, n)).tolist()
        return [(a << half) + b for a, b in zip(high, low, strict=True)]


class PlainPublicSide:
    """A Host's side without a cipher."""

    scheme = "none"
    bits = 0
    room = 0

    def start_fold(self, keep: NDArray[np.bool_], plan: FoldPlan, addends: Sequence[int] = ()) -> PlainFold:
        """Begin a batch."""
        return PlainFold(keep, plan, addends)

    def load_pairs(self, blob: bytes, n: int, previous: IntArray | None = None) -> IntArray:
        """Return gradients and hessians, ``(2, n)``, behind the `previous` ones."""
        pairs = _load(blob, (n, 2)).T
        if previous is None:
            return pairs
        return np.concatenate([previous, pairs], axis=1)

    def bin_sums(
        self,
        pairs: IntArray,
        nodes: Sequence[tuple[NDArray[np.intp], BinIndex]],
        half: int = HALF_SLOT,
        *,
        alone: bool = False,
    ) -> list[bytes]:
        """All features' sums of every node, one after the other; exact, since every sum stays below 2**53."""
        return [
            _dump(np.concatenate([_by_bin(pairs[:, rows], index, count) for index, count in bins], axis=1))
            for rows, bins in nodes
        ]

    def load_terms(self, blob: bytes, n: int) -> list[int]:
        """``n`` integers."""
        return [int(v) for v in _load(blob, (n,))]

    def weighted_sums(self, terms: Sequence[int], sums: Sequence[Weighted]) -> list[int]:
        """Σ coefficient · term for every sum."""
        return [sum(int(c) * terms[i] for i, c in zip(*weighted, strict=True)) for weighted in sums]

    def joined(self, values: Sequence[int], slot: int) -> int:
        """Σ 2^(slot·i) · value i."""
        return sum(value << (slot * i) for i, value in enumerate(values))

    def refreshed(self, values: Sequence[int], addends: Sequence[int] = ()) -> bytes:
        """Return the values as they are, or plus `addends`."""
        numbers = list(values)
        if len(addends):
            numbers = [value + addend for value, addend in zip(values, addends, strict=True)]
        return _dump(np.array(numbers, dtype=object))


class PlainFold(WholeFold):
    """Fed-EINI eq. 10/13 in plain arithmetic."""

    def __init__(self, keep: NDArray[np.bool_], plan: FoldPlan, addends: Sequence[int]) -> None:
        super().__init__()
        self._keep = keep
        self._plan = plan
        self._added = addends

    def fold(self, blob: bytes) -> bytes:
        """``(n, m)`` → ``(n, n_out)``."""
        batch = _load(blob, self._keep.shape)
        is_own = np.asarray(self._plan.is_own, dtype=bool)
        kept_values = np.where(is_own[None, :] & ~self._keep, 0, batch)
        out = np.zeros((self._plan.n_out, len(batch)), dtype=batch.dtype)
        np.add.at(out, np.asarray(self._plan.target, dtype=np.intp), kept_values.T)
        if len(self._added):
            out = out.astype(object) + np.array(self._added, dtype=object)
        return _dump(out.T)


def _by_bin(pairs: IntArray, index: NDArray[np.intp], count: int) -> IntArray:
    sums = []
    for part in pairs:
        sums.append(np.bincount(index, weights=part.astype(np.float64), minlength=count))
    return np.stack(sums).astype(np.int64)


def _dump(values: NDArray[Any]) -> bytes:
    if values.dtype != object:
        return np.ascontiguousarray(values, dtype="<i8").tobytes()
    numbers = [int(v) for v in values.ravel()]
    # one word would mean int64, whose sums may overflow
    words = max([2, *(1 + abs(v).bit_length() // 64 for v in numbers)])
    return b"".join(v.to_bytes(8 * words, "little", signed=True) for v in numbers)


def _load(blob: bytes, shape: tuple[int, ...]) -> NDArray[Any]:
    count = int(np.prod(shape))
    width = len(blob) // count if count else 0
    if len(blob) != width * count or width % 8 or (count and not 0 < width <= MAX_WIDTH):
        raise SecurityError("other_plain_bytes", count=count, got=len(blob))
    if width <= 8:
        return np.frombuffer(blob, dtype="<i8").astype(np.int64).reshape(shape)
    out = np.empty(count, dtype=object)
    for i in range(count):
        out[i] = int.from_bytes(blob[i * width : (i + 1) * width], "little", signed=True)
    return out.reshape(shape)
