"""Private set intersection by a garbled Bloom filter over oblivious transfer (FL-DT §3.3), with insertion that keeps its shares.

FL-DT eq. 6 writes every share of an id over what lies there, which destroys shares of ids before it. Here, as
Dong, Chen and Wen (2013) do it, an id takes over what is there and puts its last share if nothing is yet.
Only against parties that follow the protocol: a Guest that chose every slot would hold the whole filter and could try ids on it.

1. The Host draws a salt and garbles its ids: the slots h₁(y) … h_k(y) XOR to y's fingerprint and position         (eq. 4-6)
2. The Guest marks the slots of its own ids                                                                        (§3.3.2)
3. It gets the marked slots by oblivious transfer, and nothing of the others                                        (eq. 7)
4. It adds up the slots of each of its ids; if the fingerprint comes out, the Host holds the id.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.crypto.ristretto import ELEMENT
from backend.errors import FederationError, SecurityError
from backend.protocols.alignment.ids import HostIds, check_count, check_positions, encoded
from backend.protocols.alignment.oblivious_transfer import REPLIES, TransferReceiver, TransferSender
from backend.protocols.transport.packing import chunks

STATISTICAL_BITS = 40  # what may go wrong by chance does so with probability 2^-40 an alignment
SALT = 32  # bytes
WORDS = 3  # 32-bit words of a slot: two of fingerprint (64 ≥ 40 + log2(queries)), one of position
MIN_IDS = 1024  # ids that a filter is laid out for at least: in a small one the share of used slots would vary too much
MAX_IDS = 1 << 18  # ids; a filter of 22 million slots, 0.26 GiB. Diffie–Hellman takes more
PIECE = 1 << 16  # slots a message, about 0.1 s of work

Words = NDArray[np.uint32]


@dataclass(frozen=True)
class FilterShape:
    """How large a filter is: both parties work it out from the two numbers of records.

    Half of the slots are used at most, so k of them are all used by others with probability 2^-k. With k > 41 + log2(n) the
    chance that one of n ids finds no slot of its own, or lies wholly within slots that the Guest marked, is below 2^-40.

    Attributes
    ----------
    hashes : int
        k, slots of an id.
    slots : int
        m = k·n / ln 2 (Bloom's optimum: half of the slots are used).
    """

    hashes: int
    slots: int

    @classmethod
    def of(cls, guest: int, host: int) -> FilterShape:
        """For these numbers of records."""
        larger = max(guest, host)
        if larger > MAX_IDS:
            raise FederationError("too_many_for_bloom", records=larger, most=MAX_IDS)
        hashes = 1 + STATISTICAL_BITS + larger.bit_length()
        return cls(hashes, math.ceil(hashes * max(larger, MIN_IDS) / math.log(2)))


def hash_ids(ids: Sequence[bytes], salt: bytes, shape: FilterShape) -> tuple[Words, NDArray[np.intp]]:
    """Fingerprints ``(n, 2)`` and slots ``(n, k)`` (FL-DT eq. 5) by SHAKE-128.

    An id may hit a slot twice; the second hit points at slot m, which is always 0.
    """
    length = 8 * (1 + shape.hashes)
    stream = b"".join([hashlib.shake_128(salt + data).digest(length) for data in ids])
    numbers = np.frombuffer(stream, dtype="<u8").reshape(len(ids), 1 + shape.hashes)
    slots = np.sort((numbers[:, 1:] % shape.slots).astype(np.intp), axis=1)
    slots[:, 1:][slots[:, 1:] == slots[:, :-1]] = shape.slots
    return np.ascontiguousarray(numbers[:, :1]).view("<u4"), slots


def garble(slots: NDArray[np.intp], secrets: Words, m: int) -> Words:
    """A filter ``(m + 1, WORDS)`` in which the slots of every id add up (XOR) to its secret; slot m is 0.

    An id's last share goes if no id before it has a slot; all its other slots keep what they hold (random, or shares).

    Parameters
    ----------
    slots : ndarray, ``(n, k)``
        Slots of each id; m = none.
    secrets : ndarray of uint32, ``(n, WORDS)``

    Raises
    ------
    SecurityError
        An id has no slot that is free: probability below 2^-40 in a filter of :class:`FilterShape`.
    """
    n, k = slots.shape
    user = np.full(m + 1, n, dtype=np.intp)  # the first id that uses each slot
    np.minimum.at(user, slots.ravel(), np.repeat(np.arange(n), k))
    user[m] = n
    free = user[slots] == np.arange(n)[:, np.newaxis]
    if not free.any(axis=1).all():
        raise SecurityError("no_free_slot")
    last = slots[np.arange(n), free.argmax(axis=1)]
    garbled = np.frombuffer(bytearray(os.urandom(4 * WORDS * (m + 1))), dtype="<u4").reshape(m + 1, WORDS)
    garbled[last] = 0
    garbled[m] = 0
    for row, slot, secret in zip(slots, last.tolist(), secrets, strict=True):
        garbled[slot] = secret ^ np.bitwise_xor.reduce(garbled[row], axis=0)
    return garbled


def add_up(garbled: Words, slots: NDArray[np.intp]) -> Words:
    """``(n, WORDS)``: the slots of each id added up (XOR)."""
    total = garbled[slots[:, 0]]
    for column in slots.T[1:]:
        total ^= garbled[column]
    return total


class BloomGuest:
    """The Guest's side towards one Host."""

    def __init__(self, guest: str, ids: Sequence[str]) -> None:
        self._ids = encoded(ids, guest=guest)
        self._transfer = TransferReceiver()
        self._sent = self._taken = 0

    def open(self) -> bytes:
        """The offer of the base transfers."""
        return self._transfer.offer

    def opened(self, records: int, opening: bytes) -> int:
        """Step 2, and the end of the base transfers; returns the number of messages each way."""
        check_count(records)
        if len(opening) != SALT + REPLIES:
            raise SecurityError("other_number_of_bytes", asked=SALT + REPLIES, got=len(opening))
        shape = FilterShape.of(len(self._ids), records)
        self._transfer.accept(opening[SALT:])
        self._records = records
        self._spans = list(chunks(shape.slots, PIECE))
        self._prints, self._slots = hash_ids(self._ids, opening[:SALT], shape)
        self._marks = np.zeros(shape.slots + 1, dtype=bool)
        self._marks[self._slots] = True
        self._filter = np.zeros((shape.slots + 1, WORDS), dtype="<u4")
        return len(self._spans)

    def pieces(self) -> Iterator[bytes]:
        """Step 3, message by message: which slots it wants, hidden."""
        for number, span in enumerate(self._spans):
            self._sent += 1
            yield self._transfer.choose(number, self._marks[span.start : span.stop])

    def take(self, blob: bytes) -> None:
        """Step 3: the marked slots of one message."""
        if self._taken >= self._sent:
            raise SecurityError("answer_without_question")
        span = self._spans[self._taken]
        marks = self._marks[span.start : span.stop]
        self._filter[span.start : span.stop] = self._transfer.receive(
            self._taken, span.start, marks, blob, 4 * WORDS
        ).view("<u4")
        self._taken += 1

    def positions(self) -> NDArray[np.intp]:
        """Step 4: return the position of each id in the Host's list, ``(n,)``; -1 if it is not there."""
        if self._taken < len(self._spans):
            raise SecurityError("answers_missing", asked=len(self._spans), got=self._taken)
        restored = add_up(self._filter, self._slots)
        is_listed = (restored[:, :2] == self._prints).all(axis=1)
        return check_positions(np.where(is_listed, restored[:, 2].astype(np.intp), -1), self._records)


class BloomHost(HostIds):
    """A Host's side."""

    def open(self, records: int, opening: bytes) -> bytes:
        """Step 1, and the Host's part of the base transfers."""
        check_count(records)
        if len(opening) != ELEMENT:
            raise SecurityError("other_number_of_bytes", asked=ELEMENT, got=len(opening))
        shape = FilterShape.of(records, len(self._data))
        self._transfer = TransferSender(opening)
        salt = os.urandom(SALT)
        prints, slots = hash_ids([self._data[row] for row in self._order], salt, shape)
        secrets = np.column_stack([prints, np.arange(len(self._data), dtype=np.uint32)])
        self._filter = garble(slots, secrets, shape.slots)
        self._asked = records
        self._spans = list(chunks(shape.slots, PIECE))
        self._pieces = len(self._spans)
        return salt + self._transfer.replies

    def take(self, blob: bytes) -> bytes:
        """Step 3: some slots, each readable only if the Guest asked for it."""
        number = self._next()
        span = self._spans[number]
        strings = self._filter[span.start : span.stop].view(np.uint8)
        answer = self._transfer.send(number, span.start, strings, blob)
        self._answered += 1
        return answer
