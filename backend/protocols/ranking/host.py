"""The Host's side of a ranking: it holds encrypted numbers and garbles. Must not know the secret key, a number or a name.

The steps are those of :mod:`backend.protocols.ranking.guest`, by number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend.crypto.garbling import Garbler
from backend.protocols.alignment.ids import secret_order
from backend.protocols.alignment.oblivious_transfer import TransferSender
from backend.protocols.ranking.circuit import select
from backend.protocols.ranking.shape import RankingShape, Turns


class RankingHost:
    """One ranking.

    Parameters
    ----------
    blinded : callable
        ``(n,)`` integers → the encrypted numbers u, 2^tie_bits·v plus the integer each, blinded over the whole plaintext, as they may
        leave; and this side's share of each u. The caller vouches that every value keeps the shape's bound.
    shape : RankingShape
    """

    def __init__(self, blinded: Callable[[Sequence[int]], tuple[bytes, list[int]]], shape: RankingShape) -> None:
        self._blinded, self._shape = blinded, shape
        self._turns = Turns()

    def share(self, offer: bytes) -> bytes:
        """Steps 1 and 2: answer the offer; draw the secret order, and have blinds drawn; encrypted u + r for the Guest.

        Raises
        ------
        SecurityError
            The message came out of turn or the offer is no group element.
        """
        self._turns.take(1)
        shape = self._shape
        self._transfer = TransferSender(offer)
        lift = (1 << (shape.width - 1)) - (1 << shape.tie_bits)
        blinded_enc, self._shares = self._blinded([t + lift for t in secret_order(shape.n).tolist()])
        return self._transfer.replies + blinded_enc

    def garble(self, choices: bytes) -> bytes:
        """Steps 3 and 4: garble the circuit; both labels of the Guest's wires go by oblivious transfer.

        Raises
        ------
        SecurityError
            The message came out of turn or has a wrong length.
        """
        self._turns.take(2)
        shape, gates = self._shape, Garbler()
        left, right = (gates.wires(shape.width, shape.n) for _ in range(2))
        transferred = self._transfer.send_either(0, 0, gates.pairs(left), choices)
        theirs = gates.labels(right, shape.bits(self._shares))
        decoding = gates.decoding(select(gates, left, right, shape.k))
        return transferred + theirs + gates.tables + decoding
