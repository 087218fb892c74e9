"""The one vector interface that protocols see: a key owner's side and a public side, with bytes in between.

Shapes: a *batch* is ``n`` rows (samples) of ``m`` numbers (entries of a decision vector, Fed-EINI eq. 8); a *pair vector* is
``n`` pairs (gradient, hessian). Messages are bytes whose length both sides know beforehand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import HALF_SLOT
from backend.errors import SecurityError

IntArray = NDArray[np.signedinteger[Any]]  # int32 or int64
BinIndex = list[tuple[NDArray[np.intp], int]]  # per feature: the bin of each row (k,), and the number of bins
Weighted = tuple[Sequence[int], Sequence[int]]  # of one sum: indices of the terms, and their signed coefficients
WorkerPayload = dict[str, str | int | bytes]  # a key side as a party's own worker process rebuilds it


@dataclass(frozen=True)
class FoldPlan:
    """How a Host turns the entries it gets into the entries it sends on (Fed-EINI eq. 10 and 13).

    Attributes
    ----------
    target : tuple of int
        ``(m,)``: entry e is added to outgoing entry ``target[e]``.
    is_own : tuple of bool
        ``(m,)``: whether entry e carries a condition of this Host, so that its 0/1 applies.
    n_out : int
        Number of outgoing entries; 1 at the last Host.
    origin : tuple of int
        ``(n_entries,)``: per entry that the Guest encrypted, the entry of this Host that it has become.
    index : int
        This Host's position in the chain, from 0.
    """

    target: tuple[int, ...]
    is_own: tuple[bool, ...]
    n_out: int
    origin: tuple[int, ...]
    index: int
    hosts: int

    @property
    def last(self) -> bool:
        """Whether the result goes to the Guest."""
        return self.index + 1 == self.hosts

    @property
    def untouched(self) -> tuple[bool, ...]:
        """``(n_out,)``: outgoing entries that are a single incoming entry without a condition of this Host, so nothing was computed."""
        counts = [0] * self.n_out
        owned = [False] * self.n_out
        for e, o in enumerate(self.target):
            counts[o] += 1
            owned[o] = owned[o] or self.is_own[e]
        return tuple(c == 1 and not o for c, o in zip(counts, owned, strict=True))


class KeySide(Protocol):
    """The Guest's side in scoring; it alone holds the secret key.

    Attributes
    ----------
    scheme : {"paillier", "rlwe", "none"}
    bits : int
        Size of the key: bits of n (Paillier), ring degree (RLWE), 0 (none).
    limit : int
        Largest absolute sum that can be decrypted.
    room : int
        A sum is read modulo this, as far as the last Host may fill it with random numbers; 0 = it may not.
    """

    scheme: str
    bits: int
    limit: int
    room: int

    @property
    def seed(self) -> bytes:
        """Return the seed of the owner's reproducible draws."""

    def offer(self) -> bytes:
        """Public key as bytes for the Hosts."""

    def rows_per_message(self, m: int) -> int:
        """Samples of ``m`` entries that travel together."""

    def pieces(self, n: int, m: int) -> list[range]:
        """The ``m`` entries of ``n`` samples, split into messages."""

    def should_parallelise(self, n: int, m: int) -> bool:
        """Whether ``n`` samples of ``m`` entries are worth the overhead of worker processes."""

    def encrypt(self, values: IntArray) -> bytes:
        """Encrypt one piece: ``(n, len(piece))`` integers."""

    def decrypt(self, blob: bytes, n: int) -> list[int]:
        """Decrypt ``n`` sums, as the last Host sends them."""

    def worker_payload(self) -> WorkerPayload:
        """Everything a worker process of the same party needs to rebuild the side; secret."""


@runtime_checkable
class PairKeySide(KeySide, Protocol):
    """A key side that can also train."""

    def encrypt_pairs(self, g: IntArray, h: IntArray, half: int = HALF_SLOT) -> bytes:
        """Encrypt ``(n,)`` gradients and ``(n,)`` hessians, one ciphertext a row; pieces can be joined end to end.

        Parameters
        ----------
        half : int
            Bits of half a pair, the same for pairs and their sums (:func:`backend.crypto.fixedpoint.half_slot`).
        """

    def decrypt_sums(self, blob: bytes, n: int, half: int = HALF_SLOT) -> tuple[IntArray, IntArray]:
        """Decrypt ``n`` bin sums; returns ``(Σg, Σh)``, each ``(n,)``."""

    def encrypt_joined(self, values: Sequence[int], half: int) -> bytes:
        """Encrypt numbers that fill both halves of a pair: none negative, and no sum of theirs longer than 2·half - 1 bits.

        Parameters
        ----------
        half : int
            At most :func:`backend.crypto.fixedpoint.longest_half` of the key.
        """

    def decrypt_joined(self, blob: bytes, n: int, half: int) -> list[int]:
        """Decrypt ``n`` bin sums of such numbers."""


@runtime_checkable
class NodeKeySide(Protocol):
    """A key owner's side that trains by encrypting the rows of one node at a time, many to a ciphertext."""

    scheme: str
    bits: int

    def offer(self) -> bytes:
        """Public key as bytes for the Hosts."""

    @property
    def number_bits(self) -> int:
        """Bits that a sum of numbers holds at most."""

    def flags_a_number(self, rows: int) -> int:
        """How many sums of so many 0/1 fit one number."""

    def block(self, rows: int, hosts: Sequence[Sequence[int]], numbers: int) -> int:
        """Rows that share a ciphertext: `hosts` has the bins of each feature asked for, by Host."""

    def encrypt(self, values: IntArray, block: int) -> Iterator[bytes]:
        """Encrypt ``(numbers, rows)`` integers, piece by piece; raises ParameterError if their sums could run over."""

    def decrypt(self, blob: bytes, rows: int, counts: Sequence[int], block: int, numbers: int) -> IntArray:
        """Decrypt ``(numbers, bins)`` sums; raises SecurityError if `blob` holds none."""


TrainingKeySide = PairKeySide | NodeKeySide  # what gradients are encrypted under


class NodeSumming(Protocol):
    """The sums of one node at a Host."""

    complete: bool

    def add(self, blob: bytes) -> None:
        """Take the next piece; raises SecurityError if it is none, or there was no next one."""

    def finish(self) -> bytes:
        """The sums, ready to be sent."""


@runtime_checkable
class NodePublicSide(Protocol):
    """A Host's side that sums the rows of one node at a time."""

    @property
    def number_bits(self) -> int:
        """Bits that a sum of numbers holds at most."""

    def start_sums(self, bins: BinIndex, block: int, numbers: int) -> NodeSumming:
        """Begin a node: per feature the bin of each row; raises SecurityError if its sums could not be hidden."""


class Fold(Protocol):
    """One batch at one Host: pieces come in, are masked and added up (Fed-EINI eq. 10 and 13)."""

    def add(self, blob: bytes) -> None:
        """Check, mask and add the next piece, in order; raises SecurityError if it is not one."""

    def finish(self) -> Iterator[bytes]:
        """Re-randomised: one piece with ``n`` scores from the last Host, else pieces for the next."""


class PublicSide(Protocol):
    """A Host's side in scoring, under the Guest's public key; attributes as of :class:`KeySide`."""

    scheme: str
    bits: int
    room: int

    def start_fold(self, keep: NDArray[np.bool_], plan: FoldPlan, addends: Sequence[int] = ()) -> Fold:
        """Begin a batch whose 0/1 are `keep` ``(n, m)``; the last Host adds `addends`, ``(n,)`` or empty, to the scores."""


@runtime_checkable
class PairPublicSide(PublicSide, Protocol):
    """A public side that can also train."""

    def load_pairs(self, blob: bytes, n: int, previous: Any = None) -> Any:
        """Check and read ``n`` encrypted pairs; return them behind the `previous` ones."""

    def bin_sums(
        self,
        pairs: Any,
        nodes: Sequence[tuple[NDArray[np.intp], BinIndex]],
        half: int = HALF_SLOT,
        *,
        alone: bool = False,
    ) -> list[bytes]:
        """Sum pairs by bin and re-randomise the sums; a sum tells no more of its pairs than two halves hold.

        Parameters
        ----------
        nodes : sequence of (ndarray of int, BinIndex)
            Per tree node: ``(k,)`` indices of pairs, and per feature the bin of each, ``(k,)``, with the number of bins.
        alone : bool
            Each in a ciphertext of its own, which none runs out of; else several share what they hold together.

        Returns
        -------
        list of bytes
            Per node, all features' sums one after the other.
        """


@runtime_checkable
class WeightedPublicSide(PublicSide, Protocol):
    """A public side that can multiply encrypted numbers by its own numbers (reasons)."""

    def load_terms(self, blob: bytes, n: int) -> Any:
        """Check and read ``n`` encrypted numbers."""

    def weighted_sums(self, terms: Any, sums: Sequence[Weighted]) -> Any:
        """Σ coefficient · term for every sum; not refreshed."""

    def joined(self, values: Any, slot: int) -> Any:
        """Σ 2^(slot·i) · value i as one number; not refreshed."""

    def refreshed(self, values: Any, addends: Sequence[int] = ()) -> bytes:
        """Return re-randomised numbers, ready to be sent, each plus one of `addends`."""


def check_length(blob: bytes, count: int, size: int) -> None:
    """Raise SecurityError if a message is not `count` items of `size` bytes, before any of them is read."""
    if len(blob) != count * size:
        raise SecurityError("other_ciphertext_bytes", count=count, size=size, got=len(blob))


class WholeFold(ABC):
    """A fold whose batch comes in one piece."""

    def __init__(self) -> None:
        self._folded: bytes | None = None

    @abstractmethod
    def fold(self, blob: bytes) -> bytes:
        """Check, mask, add and re-randomise the whole batch."""

    def add(self, blob: bytes) -> None:
        """Take the one piece."""
        if self._folded is not None:
            raise SecurityError("piece_too_many")
        self._folded = self.fold(blob)

    def finish(self) -> Iterator[bytes]:
        """The one piece that goes on."""
        if self._folded is None:
            raise SecurityError("pieces_missing", missing=1)
        yield self._folded
