"""The Host's side of a ranking: it holds encrypted numbers and garbles. Must not know the secret key, a number or a name.

The steps are those of :mod:`backend.protocols.ranking.guest`, by number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from backend.crypto.garbling import Bits, Garbler
from backend.protocols.alignment.ids import secret_order
from backend.protocols.alignment.oblivious_transfer import TransferSender
from backend.protocols.ranking.circuit import outputs
from backend.protocols.ranking.shape import OTHER, RankingShape, Turns

Blinded = Callable[[Sequence[int]], tuple[bytes, list[int]]]


@dataclass(frozen=True, repr=False)
class MarkedNumbers:
    """What belongs to the numbers of a marked ranking.

    Attributes
    ----------
    blinded : callable
        As of :class:`RankingHost`, of the second numbers.
    sides : ndarray of bool
        ``(2, n)``: this side's shares of above and of below.
    """

    blinded: Blinded
    sides: Bits


class RankingHost:
    """One ranking.

    Parameters
    ----------
    blinded : callable
        ``(n,)`` integers → the encrypted numbers u, 2^tie_bits·v plus the integer each, blinded over the whole plaintext, as they may
        leave; and this side's share of each u. The caller vouches that every value keeps the shape's bound.
    marks : MarkedNumbers, optional
        Where the shape is marked.
    """

    def __init__(self, blinded: Blinded, shape: RankingShape, marks: MarkedNumbers | None = None) -> None:
        self._blinded = (blinded, *([marks.blinded] if marks else []))
        self._shape = shape
        self._sides = shape.sides(marks.sides if marks else None, OTHER)
        self._turns = Turns()

    def share(self, offer: bytes) -> bytes:
        """Steps 1 and 2: answer the offer; draw the secret order, and have blinds drawn; encrypted u + r for the Guest.

        Raises SecurityError if the message came out of turn or the offer is no group element.
        """
        self._turns.take(1)
        shape = self._shape
        self._transfer = TransferSender(offer)
        lift = (1 << (shape.width - 1)) - (1 << shape.tie_bits)
        blinds = []
        for blinded in self._blinded:
            blinds.append(blinded([t + lift for t in secret_order(shape.n).tolist()]))
        self._shares = [shares for _, shares in blinds]
        return self._transfer.replies + b"".join(blinded_enc for blinded_enc, _ in blinds)

    def garble(self, choices: bytes) -> bytes:
        """Steps 3 and 4: garble the circuit; both labels of the Guest's wires go by oblivious transfer.

        Raises SecurityError if the message came out of turn, has a wrong length, or chooses otherwise in some columns than in others.
        """
        self._turns.take(2)
        shape = self._shape
        gates = Garbler()
        left, right = (gates.wires(count) for count in shape.inputs)
        transferred = self._transfer.send_either(0, 0, gates.pairs(left), choices)
        host_bits = np.concatenate([*(shape.bits(shares).ravel() for shares in self._shares), self._sides])
        theirs = gates.labels(right, host_bits)
        decoding = gates.decoding(outputs(gates, left, right, shape))
        return transferred + theirs + gates.tables + decoding
