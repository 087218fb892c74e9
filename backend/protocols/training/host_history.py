"""What a Host's rules know of a training: its terms, which joint records are meant, what came and how its trees grew. Knows no value."""

from __future__ import annotations

import numpy as np

from backend.crypto.interface import PairPublicSide
from backend.errors import SecurityError
from backend.protocols.training.growth_record import GrowthRecord, Terms, least_people
from backend.protocols.training.messages import StartTraining
from backend.protocols.training.pair_pieces import IncomingPairs
from backend.protocols.training.row_sets import Flags, unpack_rows
from backend.trees.ensemble import NodeKey


class TrainingHistory:
    """One training at one Host, as far as its messages tell.

    Parameters
    ----------
    start : StartTraining
        The message that began it.
    n_joint : int
        Joint records.
    terms : Terms, optional
        What was approved; None = this Host asks nobody.
    group_size : int
        Fewest people in a node about which the Host answers.
    named : float
        Share of a node's people whom sums may name; 0 = people need no protection.
    stores_nodes : bool
        Whether what is asked about each node is stored, so that after a break it is asked in the same way.
    has_ended : bool
        Whether the training has given its model, to which no tree is added.

    Attributes
    ----------
    request : str
        The Guest's name for it; empty = it will not go on after a break.
    training : ndarray of bool
        ``(n_joint,)``: training rows.
    sent : ndarray of bool
        ``(n_joint,)``: rows that have encrypted pairs.
    pairs : IncomingPairs, optional
        The Guest's ciphertexts.
    splits : set of (tree, node)
        Which nodes this Host has split.
    """

    def __init__(
        self,
        start: StartTraining,
        n_joint: int,
        *,
        terms: Terms | None = None,
        group_size: int = 1,
        named_share: float = 0.0,
        stores_nodes: bool = False,
        has_ended: bool = False,
    ) -> None:
        self.request = start.request
        self.training = unpack_rows(start.training, n_joint)
        self.group_size = group_size
        self.named = named_share
        self.stores_nodes = stores_nodes
        self.has_ended = has_ended
        self.growth = GrowthRecord(terms, self.training)
        self.sent = np.zeros(n_joint, dtype=bool)
        self.pairs: IncomingPairs | None = None
        self.splits: set[NodeKey] = set()

    def rows(self, blob: bytes) -> Flags:
        """Return a set of joint records as flags, ``(n_joint,)``."""
        return unpack_rows(blob, len(self.training))

    def training_rows(self, blob: bytes) -> Flags:
        """Return a set of training rows; raises SecurityError if another record is in it."""
        rows = self.rows(blob)
        if (rows & ~self.training).any():
            raise SecurityError("no_training_rows")
        return rows

    def sent_rows(self, blob: bytes) -> Flags:
        """Return a node's rows; raises SecurityError if one of them has no pair."""
        rows = self.rows(blob)
        if (rows & ~self.sent).any():
            raise SecurityError("sums_over_other_rows")
        return rows

    def begin_pairs(self, cipher: PairPublicSide, sent: Flags, batches: int) -> IncomingPairs:
        """Replace the last encrypted pairs by those of the rows in `sent`, which come next."""
        self.sent = sent
        self.pairs = IncomingPairs(cipher, int(sent.sum()), batches)
        return self.pairs

    def least(self, bits: int) -> int:
        """Return the fewest people in a node whose sums carry so many bits."""
        return least_people(self.group_size, self.named, bits)
