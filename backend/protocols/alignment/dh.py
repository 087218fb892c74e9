"""Private set intersection by Diffie–Hellman: the Guest has the Host's keyed hash computed on ids that the Host cannot see.

The keyed hash is the OPRF of RFC 9497 with ristretto255 and SHA-512 (mode 0x00): 2HashDH of Jarecki, Kiayias and Krawczyk.

1. The Guest hashes each id to the group and blinds it: r·H(x), a fresh r an id                 (RFC 9497 §3.3.1, Blind)
2. The Host multiplies by its key, drawn for this alignment: k·r·H(x)                                   (BlindEvaluate)
3. The Guest takes the blind off and hashes: F(x) = Hash(x, k·H(x))                                          (Finalize)
4. The Host sends F(y) of its own ids, cut to 16 bytes, in a secret order; the Guest looks for its own among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.crypto.ristretto import (
    ELEMENT,
    hash_to_group,
    invert,
    multiply,
    multiply_each,
    over_threads,
    random_scalars,
    split,
)
from backend.errors import SecurityError
from backend.protocols.alignment.ids import HostIds, check_count, encoded

SUITE = b"OPRFV1-\x00-ristretto255-SHA512"  # RFC 9497 §3.1 and §4.1
DOMAIN = b"HashToGroup-" + SUITE
TAG = 16  # bytes of F(y); two ids collide with probability 2^-128, some of 2^22 · 2^22 pairs with 2^-84
PIECE = 2048  # ids a message, about 0.1 s of work: so soon can a job be stopped


def blind(data: bytes, scalar: bytes) -> bytes:
    """RFC 9497 §3.3.1, Blind: r·H(x). Uniform whatever x is, so that no computing power finds x in it."""
    return multiply(scalar, hash_to_group(data, DOMAIN))


def finalize(data: bytes, element: bytes) -> bytes:
    """RFC 9497 §3.3.1, Finalize, once the blind is off: 64 bytes from x and k·H(x)."""
    framed = len(data).to_bytes(2) + data + ELEMENT.to_bytes(2) + element
    return hashlib.sha512(framed + b"Finalize").digest()


def share(n: int, number: int, pieces: int) -> range:
    """Which of `n` items travel in message `number` of `pieces`."""
    return range(n * number // pieces, n * (number + 1) // pieces)


def pieces_for(guest: int, host: int) -> int:
    """Messages each way."""
    return -(-max(guest, host) // PIECE)


class BlindedIds:
    """The Guest's ids, blinded once for all Hosts, as far as they have been asked for."""

    def __init__(self, guest: str, ids: Sequence[str]) -> None:
        self.ids = encoded(ids, guest=guest)
        self._blinded = bytearray()
        self._inverses = bytearray()

    def blinded(self, span: range) -> bytes:
        """The blinded elements of these ids, end to end."""
        fresh = self.ids[len(self._blinded) // ELEMENT : span.stop]
        for element, inverse in over_threads(_blind_each, fresh):
            self._blinded += element
            self._inverses += inverse
        return bytes(self._blinded[span.start * ELEMENT : span.stop * ELEMENT])

    def tags(self, span: range, evaluated: bytes) -> bytes:
        """F(x) of these ids, cut to 16 bytes, from what a Host made of their blinded elements."""
        inverses = split(bytes(self._inverses[span.start * ELEMENT : span.stop * ELEMENT]), len(span))
        ids = self.ids[span.start : span.stop]
        return b"".join(over_threads(_tag_each, list(zip(ids, inverses, split(evaluated, len(span)), strict=True))))


def _blind_each(share: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Step 1: of each id the blinded element, and the inverse of its blind."""
    scalars = random_scalars(len(share))
    elements = multiply_each(scalars, [hash_to_group(data, DOMAIN) for data in share])
    return list(zip(elements, invert(scalars), strict=True))


def _tag_each(share: Sequence[tuple[bytes, bytes, bytes]]) -> list[bytes]:
    """Step 3: F, cut, from ids, scalars and elements; steps 2 and 4 are the same where the element is the id's own."""
    ids, scalars, elements = zip(*share, strict=True)
    return [finalize(*pair)[:TAG] for pair in zip(ids, multiply_each(scalars, elements), strict=True)]


class DhGuest:
    """The Guest's side towards one Host; the sides towards several Hosts may share `ids`."""

    def __init__(self, ids: BlindedIds) -> None:
        self._ids = ids
        self._sent = self._taken = 0
        self._own = bytearray()
        self._listed = bytearray()

    def open(self) -> bytes:
        """Nothing needs to be agreed on."""
        return b""

    def opened(self, records: int, opening: bytes) -> int:
        """Take note of how many records the Host has; returns the number of messages each way."""
        check_count(records)
        if opening:
            raise SecurityError("opening_not_empty", got=len(opening))
        self._records = records
        self._pieces = pieces_for(len(self._ids.ids), records)
        return self._pieces

    def pieces(self) -> Iterator[bytes]:
        """Step 1, message by message."""
        for number in range(self._pieces):
            self._sent += 1
            yield self._ids.blinded(share(len(self._ids.ids), number, self._pieces))

    def take(self, blob: bytes) -> None:
        """Step 3, and the part of the Host's list that came along."""
        if self._taken >= self._sent:
            raise SecurityError("answer_without_question")
        span = share(len(self._ids.ids), self._taken, self._pieces)
        part = share(self._records, self._taken, self._pieces)
        middle = ELEMENT * len(span)
        if len(blob) != middle + TAG * len(part):
            raise SecurityError("other_number_of_bytes", asked=middle + TAG * len(part), got=len(blob))
        self._own += self._ids.tags(span, blob[:middle])
        self._listed += blob[middle:]
        self._taken += 1

    def positions(self) -> NDArray[np.intp]:
        """Step 4: return the position of each id in the Host's list, ``(n,)``; -1 if it is not there."""
        if self._taken < self._pieces:
            raise SecurityError("answers_missing", asked=self._pieces, got=self._taken)
        guest_tags = np.frombuffer(self._own, dtype=f"S{TAG}")
        listed = np.frombuffer(self._listed, dtype=f"S{TAG}")
        order = np.argsort(listed)
        in_order = listed[order]
        if (in_order[1:] == in_order[:-1]).any():
            raise SecurityError("record_listed_twice")
        places = np.minimum(np.searchsorted(in_order, guest_tags), len(order) - 1)
        return np.where(in_order[places] == guest_tags, order[places], -1)


class DhHost(HostIds):
    """A Host's side."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(ids)
        self._key = random_scalars(1)[0]

    def open(self, records: int, opening: bytes) -> bytes:
        """Take note of how many records the Guest has."""
        check_count(records)
        if opening:
            raise SecurityError("opening_not_empty", got=len(opening))
        self._asked = records
        self._pieces = pieces_for(records, len(self._data))
        return b""

    def take(self, blob: bytes) -> bytes:
        """Step 2, and the next part of step 4."""
        number = self._next()
        span = share(self._asked, number, self._pieces)
        part = share(len(self._data), number, self._pieces)
        evaluated = over_threads(self._evaluate_each, split(blob, len(span)))
        tags = over_threads(self._list_each, [self._data[row] for row in self._order[part.start : part.stop]])
        self._answered += 1
        return b"".join(evaluated + tags)

    def _evaluate_each(self, share: Sequence[bytes]) -> list[bytes]:
        return multiply_each([self._key] * len(share), share)

    def _list_each(self, share: Sequence[bytes]) -> list[bytes]:
        return _tag_each([(data, self._key, hash_to_group(data, DOMAIN)) for data in share])
