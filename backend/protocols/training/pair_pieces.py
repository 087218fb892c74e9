"""Encrypted pairs of many records travel in pieces, of as many records as both sides work out alike. Knows no number behind a pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from backend.crypto.interface import PairPublicSide
from backend.errors import SecurityError
from backend.protocols.transport.packing import chunks

# of ciphertexts in a message, about: so much both sides hold a few times over, however many records there are
PIECE_BYTES = 1 << 22


def pieces(records: int, batches: int, bits: int) -> Iterator[range]:
    """The records of each piece; there is a first one in any case, whose message says of whom they are.

    Parameters
    ----------
    batches : int
        Pairs of a record.
    bits : int
        Of the key; 0 = nothing is encrypted, so that a pair is two int64.
    """
    if not records or not batches:
        return iter((range(records),))
    return chunks(records, max(1, PIECE_BYTES // (batches * (2 * bits // 8 or 16))))


class IncomingPairs:
    """Pairs as a Host takes them in.

    Parameters
    ----------
    records : int
        Who have pairs.
    batches : int
        Pairs of each.
    """

    def __init__(self, cipher: PairPublicSide, records: int, batches: int) -> None:
        self._cipher = cipher
        self._pairs = [None] * batches
        self._due: list[range] | None = [*pieces(records, batches, cipher.bits)][::-1]

    def add(self, piece: Sequence[bytes]) -> None:
        """Take the next piece; a refused piece ends the transfer.

        Raises
        ------
        SecurityError
            The piece is out of order, or does not hold ciphertexts.
        """
        due = self._due
        self._due = None
        if not due or len(piece) != len(self._pairs):
            raise SecurityError("piece_out_of_order")
        n = len(due.pop())
        previous = self._pairs
        self._pairs = [self._cipher.load_pairs(blob, n, of) for blob, of in zip(piece, previous, strict=True)]
        self._due = due

    @property
    def batches(self) -> list[Any]:
        """The pairs of all records, batch by batch; raises SecurityError before the last piece has come."""
        if self._due is None or self._due:
            raise SecurityError("pairs_incomplete")
        return self._pairs
