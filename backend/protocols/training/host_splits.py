"""A Host during training: adds up ciphertexts that it cannot read, keeps the thresholds. Knows no label, no gradient, no weight.

What may be asked for is decided before (:mod:`backend.protocols.training.host`); here are the records that were opened.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import half_slot
from backend.crypto.interface import BinIndex, NodePublicSide, NodeSumming, PairPublicSide
from backend.data.dictionary import Feature, Kind
from backend.data.medians import Medians, medians
from backend.errors import SecurityError
from backend.protocols.training.binned import BinnedColumns, Shuffled
from backend.protocols.training.host_history import TrainingHistory
from backend.protocols.training.messages import (
    AskBinSums,
    AskNodeSums,
    BinSums,
    FeatureBins,
    NodePairs,
    SplitRows,
    StartTraining,
    TakeSplit,
)
from backend.protocols.training.row_sets import Flags, pack_rows
from backend.protocols.transport.packing import from_bitmap
from backend.trees.ensemble import Columns, NodeKey, SplitRule


class HostTraining:
    """One training at one Host, with its records.

    Parameters
    ----------
    features : sequence of Feature
        Those that the training may use.
    columns : mapping of str to ndarray
        ``(n_joint,)`` each, in the common order.
    history : TrainingHistory
        What came so far; this class adds what it answers.
    shuffled : callable, optional
        See :class:`backend.protocols.training.binned.BinnedColumns`.

    Attributes
    ----------
    medians : Medians
        Over the joint training records.
    rules : dict of (tree, node) to SplitRule
        Of the splits that the Guest has named.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        columns: Columns,
        start: StartTraining,
        history: TrainingHistory,
        *,
        shuffled: Shuffled | None = None,
    ) -> None:
        self._history = history
        self._columns = BinnedColumns(features, columns, history.training, start.bins, shuffled=shuffled)
        self.medians: Medians = medians(features, columns, history.training)
        self._position = np.zeros(len(history.training), dtype=np.intp)  # joint row → index among those sent
        self._node: tuple[AskNodeSums, NodeSumming] | None = None  # whose rows are coming in
        self.rules: dict[NodeKey, SplitRule] = {}

    def feature_bins(self, conversation: str) -> FeatureBins:
        """All that the Guest needs about the bins: their number."""
        bins = self._columns.bins
        return FeatureBins(
            conversation,
            tuple(b.feature.name for b in bins),
            tuple(b.count for b in bins),
            tuple(b.feature.kind is Kind.CATEGORICAL for b in bins),
            self._history.group_size,
            self._history.named,
        )

    def take_gradients(self, cipher: PairPublicSide, sent: Flags, pairs: Sequence[bytes]) -> None:
        """Replace the last encrypted pairs; `pairs` is the first piece of them."""
        self._position = np.cumsum(sent) - 1
        self._history.begin_pairs(cipher, sent, len(pairs)).add(pairs)

    def bin_sums(self, cipher: PairPublicSide, message: AskBinSums, counted: Sequence[Flags]) -> BinSums:
        """Return refreshed encrypted sums by bin of the requested features, by node and batch.

        Parameters
        ----------
        counted : sequence of ndarray of bool
            By node, ``(n_joint,)``: its rows.
        """
        history = self._history
        if history.pairs is None:
            raise SecurityError("sums_without_gradients")
        pairs = history.pairs.batches
        half = half_slot(int(np.count_nonzero(history.sent)))
        nodes = []
        for rows, features in zip(counted, message.features, strict=True):
            nodes.append(self._of_sent(rows, features))
        sums: dict[tuple[int, int], bytes] = {}
        for batch in sorted({b for batches in message.batches for b in batches}):
            using = [i for i, batches in enumerate(message.batches) if batch in batches]
            sums_of_nodes = cipher.bin_sums(pairs[batch], [nodes[i] for i in using], half)
            sums |= {(i, batch): blob for i, blob in zip(using, sums_of_nodes, strict=True)}
        answer = tuple(tuple(sums[i, b] for b in batches) for i, batches in enumerate(message.batches))
        return BinSums(message.conversation, message.trees, message.nodes, answer)

    def _of_sent(self, inside: Flags, features_asked: bytes) -> tuple[NDArray[np.intp], BinIndex]:
        """Indices of a node's rows among the pairs, and their bins by each requested feature."""
        return self._position[np.flatnonzero(inside)], self._bins(inside, features_asked)

    def _bins(self, inside: Flags, features_asked: bytes) -> BinIndex:
        """Return the bins of a node's rows by each requested feature."""
        is_requested = from_bitmap(features_asked, len(self._columns.bins))
        requested = [b for b, is_used in zip(self._columns.bins, is_requested, strict=True) if is_used]
        return [(self._columns.index(b.feature.name)[inside], b.count + 1) for b in requested]

    def start_node(self, cipher: NodePublicSide, message: AskNodeSums, inside: Flags) -> None:
        """Begin the sums of a node whose rows come next; what was begun before is dropped."""
        self._node = None
        bins = self._bins(inside, message.features)
        self._node = message, cipher.start_sums(bins, message.block, message.numbers)

    def take_node(self, message: NodePairs) -> BinSums | None:
        """Take rows of the node that was begun; return its sums once all rows have arrived."""
        if self._node is None:
            raise SecurityError("node_rows_unasked")
        request, summing = self._node
        self._node = None  # a piece that is refused ends the node
        summing.add(message.pairs)
        if summing.complete:
            return BinSums(message.conversation, (request.tree,), (request.node,), ((summing.finish(),),))
        self._node = request, summing
        return None

    def take_split(self, message: TakeSplit, inside: Flags) -> SplitRows:
        """Store the threshold of a split; answer which of the node's joint records, `inside`, go left."""
        rule, goes_left = self._columns.take_split(message.feature, message.left_bins, message.default_left)
        self._history.growth.split(message.tree, message.node, message.parent, inside, goes_left)
        self._history.splits.add((message.tree, message.node))
        self.rules[message.tree, message.node] = rule
        return SplitRows(message.conversation, message.tree, message.node, pack_rows(goes_left[inside]))
