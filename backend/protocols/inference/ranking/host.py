"""The Host's side of a ranking: it holds encrypted numbers and garbles. Must not know the secret key, a number or a name.

The steps are those of :mod:`backend.protocols.inference.ranking.guest`, by number.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

from backend.crypto.garbling import Garbler
from backend.crypto.paillier import PaillierPublicSide
from backend.protocols.alignment.ids import secret_order
from backend.protocols.alignment.oblivious_transfer import TransferSender
from backend.protocols.inference.ranking.circuit import select
from backend.protocols.inference.ranking.shape import SLACK_BITS, RankingShape, Turns


class RankingHost:
    """One ranking.

    Parameters
    ----------
    side : PaillierPublicSide
        The Guest's public key.
    values_enc : sequence of mpz, ``(n,)``
        Checked ciphertexts under that key; the caller vouches that every value keeps the shape's bound.
    shape : RankingShape
    """

    def __init__(self, side: PaillierPublicSide, values_enc: Sequence[mpz], shape: RankingShape) -> None:
        shape.check(len(values_enc), side.bits)
        self._side, self._values_enc, self._shape = side, tuple(values_enc), shape
        self._turns = Turns()

    def share(self, offer: bytes) -> bytes:
        """Steps 1 and 2: answer the offer; draw the secret order and the blinds; encrypted u + r for the Guest.

        Raises
        ------
        SecurityError
            The message came out of turn or the offer is no group element.
        """
        self._turns.take(1)
        shape = self._shape
        self._transfer = TransferSender(offer)
        blinds = [secrets.randbits(shape.width + SLACK_BITS) for _ in range(shape.n)]
        self._shares = [-r % (1 << shape.width) for r in blinds]
        lift = (1 << (shape.width - 1)) - (1 << shape.tie_bits)
        added = [t + lift + r for t, r in zip(secret_order(shape.n).tolist(), blinds, strict=True)]
        return self._transfer.replies + self._side.key.dump(self._blinded(added))

    def _blinded(self, added: Sequence[int]) -> list[mpz]:
        """2^tie_bits·v + added in slots, several to a ciphertext, each refreshed; no `added` is smaller than 2^tie_bits·|v|."""
        shape, key = self._shape, self._side.key
        slot, ties = mpz(1) << shape.slot, mpz(1) << shape.tie_bits
        values_enc, blinded_enc = iter(self._values_enc), []
        fresh = self._side.obfuscators.take(len(shape.slots))
        for held, plain, obfuscator in zip(shape.slots, shape.join(added), fresh, strict=True):
            packed_enc = mpz(1)
            for value_enc in reversed([next(values_enc) for _ in range(held)]):
                packed_enc = gmpy2.powmod(packed_enc, slot, key.n2) * value_enc % key.n2
            blinded_enc.append(gmpy2.powmod(packed_enc, ties, key.n2) * key.cover(plain, obfuscator) % key.n2)
        return blinded_enc

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
