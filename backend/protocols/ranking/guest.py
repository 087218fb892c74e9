"""The Guest's side of a ranking: it can decrypt, and learns the names. Must not know the Host's blinds, order or labels.

Steps, each a message (the protocol and its argument: docs/reasons.md):

1. Guest → Host   the offer of the base transfers                                         :meth:`RankingGuest.open`
2. Host → Guest   their answer, and every number blinded, encrypted
3. Guest → Host   which labels it needs for the blinded numbers' bits, hidden              :meth:`RankingGuest.choose`
4. Host → Guest   the labels, hidden but for those; its own; the garbled circuit
5. The Guest evaluates: the positions of the k largest, as a set                             :meth:`RankingGuest.names`

In a *marked* ranking a second number and a side belong to each, blinded and shared like the first. They decide which numbers are ranked
at all (:func:`backend.protocols.ranking.circuit.eligible`), and nothing else of them is told.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from backend.crypto.garbling import LABEL, Bits, Evaluator, read_labels
from backend.errors import SecurityError
from backend.protocols.alignment.oblivious_transfer import REPLIES, TransferReceiver
from backend.protocols.ranking.circuit import lengths, outputs
from backend.protocols.ranking.shape import OWN, RankingShape, Turns, cut


class RankingGuest:
    """One ranking.

    Parameters
    ----------
    opened : callable
        The encrypted numbers of step 2 → ``(n,)`` numbers whose lowest bits are shares; raises SecurityError if they are no ciphertexts.
    sides : ndarray of bool, optional
        ``(4, n)``, where the shape is marked: this side's shares of above and of below; whether it asks about below; whether it asks
        about neither.
    """

    def __init__(self, opened: Callable[[bytes], list[int]], shape: RankingShape, sides: Bits | None = None) -> None:
        self._opened = opened
        self._shape = shape
        self._sides = shape.sides(sides, OWN)
        self._transfer = TransferReceiver()
        self._turns = Turns()

    def open(self) -> bytes:
        """Step 1."""
        self._turns.take(1)
        return self._transfer.offer

    def choose(self, shares: bytes) -> bytes:
        """Steps 2 and 3: decrypt u + r, of which the lowest bits are this side's share of u.

        Raises SecurityError if the message came out of turn, has a wrong length, or holds what is no group element or ciphertext.
        """
        self._turns.take(2)
        replies, blinded_enc = cut(shares, (REPLIES, max(0, len(shares) - REPLIES)))
        if self._shape.marked:
            half = len(blinded_enc) // 2
        else:
            half = len(blinded_enc)
        if self._shape.marked:
            parts = [blinded_enc[:half], blinded_enc[half:]]
        else:
            parts = [blinded_enc]
        blinded = [self._opened(part) for part in parts]
        self._transfer.accept(replies)
        self._choices = np.concatenate([*(self._shape.bits(numbers).ravel() for numbers in blinded), self._sides])
        return self._transfer.choose_either(0, self._choices)

    def names(self, circuit: bytes) -> tuple[int, ...]:
        """Steps 4 and 5: the positions of the k largest numbers above 0, ascending; fewer if fewer are above 0.

        Raises
        ------
        SecurityError
            If the message came out of turn, has a wrong length or was damaged, or the Host has garbled another circuit: more names come
            than were asked for.
        """
        self._turns.take(3)
        shape = self._shape
        transferred, theirs, tables, decoding = cut(circuit, lengths(shape))
        guest_labels = self._transfer.receive_either(0, 0, self._choices, transferred, LABEL).tobytes()
        gates = Evaluator(tables)
        left, right = (
            read_labels(labels, count) for labels, count in zip((guest_labels, theirs), shape.inputs, strict=True)
        )
        bits = gates.decode(outputs(gates, left, right, shape), decoding)
        names = tuple(int(i) for i in np.flatnonzero(bits))
        if not shape.possible(names):
            raise SecurityError("impossible_names")
        return names
