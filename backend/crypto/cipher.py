"""The one vector interface that protocols see: a key owner's side and a public side, with bytes in between.

Shapes: a *batch* is ``n`` rows (samples) of ``m`` numbers (entries of a decision vector, Fed-EINI eq. 8); a *pair vector* is
``n`` pairs (gradient, hessian). What crosses is bytes of a length both sides can work out beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class FoldPlan:
    """How a Host turns the entries it gets into the entries it sends on (Fed-EINI eq. 10 and 13).

    Attributes
    ----------
    target : tuple of int
        ``(m,)``: entry e is added to outgoing entry ``target[e]``.
    own : tuple of bool
        ``(m,)``: whether entry e carries a condition of this Host, so that its 0/1 applies.
    n_out : int
        Number of outgoing entries.
    """

    target: tuple[int, ...]
    own: tuple[bool, ...]
    n_out: int

    @property
    def untouched(self) -> tuple[bool, ...]:
        """``(n_out,)``: outgoing entries that are one incoming entry with no condition of this Host: nothing was computed."""
        counts = [0] * self.n_out
        owned = [False] * self.n_out
        for e, o in enumerate(self.target):
            counts[o] += 1
            owned[o] = owned[o] or self.own[e]
        return tuple(c == 1 and not o for c, o in zip(counts, owned, strict=True))


class KeySide(Protocol):
    """What the Guest can do: it alone holds the secret key."""

    scheme: str
    bits: int

    def offer(self) -> bytes:
        """Public key as bytes for the Hosts."""
        ...

    def encrypt(self, values: IntArray) -> bytes:
        """Encrypt an ``(n, m)`` array of integers."""
        ...

    def decrypt(self, blob: bytes, n: int) -> list[int]:
        """Decrypt ``n`` single numbers."""
        ...

    def encrypt_pairs(self, g: IntArray, h: IntArray) -> bytes:
        """Encrypt ``(n,)`` gradients and ``(n,)`` hessians, one ciphertext a row; pieces can be joined end to end."""
        ...

    def decrypt_sums(self, blob: bytes, n: int) -> tuple[IntArray, IntArray]:
        """Decrypt ``n`` bin sums; returns ``(Σg, Σh)``, each ``(n,)``."""
        ...


class PublicSide(Protocol):
    """What a Host can do with the Guest's public key."""

    scheme: str
    bits: int

    def load(self, blob: bytes, n: int, m: int) -> Any:
        """Check and read an ``(n, m)`` batch."""
        ...

    def fold(self, batch: Any, keep: NDArray[np.bool_], plan: FoldPlan) -> bytes:
        """Mask by ``keep`` ``(n, m)`` 0/1, add by ``plan`` and re-randomise every computed number; ``(n, n_out)`` as bytes."""
        ...

    def load_pairs(self, blob: bytes, n: int) -> Any:
        """Check and read ``n`` encrypted pairs."""
        ...

    def bin_sums(self, pairs: Any, rows: NDArray[np.intp], bin_index: NDArray[np.intp], n_bins: int) -> Any:
        """Sum the pairs at ``rows`` by bin; ``bin_index`` is ``(len(rows),)``, the result has ``n_bins`` sums."""
        ...

    def dump_sums(self, sums: Any) -> bytes:
        """Pack and re-randomise bin sums for the Guest."""
        ...
