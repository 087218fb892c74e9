"""A Host during training: sums what it cannot read, keeps the thresholds. Knows no label, no gradient, no weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.bin_products import BinIndex
from backend.crypto.cipher import PairPublicSide
from backend.data.dictionary import Feature, Kind
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.messages import (
    AskBinSums,
    BinSums,
    FeatureBins,
    Gradients,
    SplitRows,
    StartTraining,
    TakeSplit,
    from_bitmap,
    to_bitmap,
)
from backend.protocols.training.binned import BinnedColumns
from backend.trees.ensemble import NodeKey, Rule


class HostTraining:
    """One training at one Host.

    Parameters
    ----------
    table : PartyTable
        The Host's records.
    features : sequence of Feature
    rows : ndarray of int
        The Host's joint rows, in the common order.
    start : StartTraining
    cipher : PairPublicSide
    """

    def __init__(
        self,
        table: PartyTable,
        features: Sequence[Feature],
        rows: NDArray[np.intp],
        start: StartTraining,
        cipher: PairPublicSide,
    ) -> None:
        self._n = len(rows)
        self._training = from_bitmap(start.training, self._n)
        self._place = np.cumsum(self._training) - 1  # joint row → place among the training rows
        self._columns = BinnedColumns(features, table.take(rows).columns, self._training, start.bins, start.exclude)
        self._cipher = cipher
        self._pairs: Any = None
        self.rules: dict[NodeKey, Rule] = {}

    def feature_bins(self, conversation: str) -> FeatureBins:
        """What the Guest has to know of the bins: how many."""
        bins = self._columns.bins
        return FeatureBins(
            conversation,
            tuple(b.feature.name for b in bins),
            tuple(b.count for b in bins),
            tuple(b.feature.kind is Kind.CATEGORICAL for b in bins),
        )

    def take_gradients(self, message: Gradients) -> None:
        """Keep this tree's encrypted pairs."""
        self._pairs = self._cipher.load_pairs(message.pairs, int(self._training.sum()))

    def bin_sums(self, message: AskBinSums) -> BinSums:
        """Per node: encrypted sums of all features' bins, refreshed."""
        if self._pairs is None:
            raise SecurityError("Bin sums were asked for before any gradients came.")
        nodes = [self._node(rows) for rows in message.rows]
        return BinSums(message.conversation, message.nodes, tuple(self._cipher.bin_sums(self._pairs, nodes)))

    def _node(self, bitmap: bytes) -> tuple[NDArray[np.intp], BinIndex]:
        """Places of a node's training rows among the pairs, and each feature's bins of them."""
        rows = np.flatnonzero(from_bitmap(bitmap, self._n) & self._training)
        bins = [(self._columns.index(b.feature.name)[rows], b.count + 1) for b in self._columns.bins]
        return self._place[rows], bins

    def take_split(self, message: TakeSplit) -> SplitRows:
        """Keep the threshold of a split; tell which of the node's joint records go left."""
        rule, left = self._columns.take_split(message.feature, message.left_bins, message.default_left)
        self.rules[message.tree, message.node] = rule
        inside = from_bitmap(message.rows, self._n)
        return SplitRows(message.conversation, message.tree, message.node, to_bitmap(left & inside))

    def keep_trees(self, count: int) -> None:
        """Forget the rules of trees that early stopping dropped."""
        self.rules = {key: rule for key, rule in self.rules.items() if key[0] < count}
