"""A Host during training: adds up ciphertexts that it cannot read, keeps the thresholds. Knows no label, no gradient, no weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import half_slot
from backend.crypto.interface import BinIndex, NodePublicSide, NodeSumming, PairPublicSide
from backend.data.dictionary import Feature, Kind
from backend.data.medians import Medians, medians
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.training.binned import BinnedColumns
from backend.protocols.training.growth_record import GrowthRecord, Terms, least_people
from backend.protocols.training.messages import (
    AskBinSums,
    AskNodeSums,
    BinSums,
    FeatureBins,
    Gradients,
    MoreGradients,
    NodePairs,
    SplitRows,
    StartTraining,
    TakeSplit,
)
from backend.protocols.training.pair_pieces import IncomingPairs
from backend.protocols.training.parameters import BINS
from backend.protocols.training.row_sets import Flags, pack_rows, unpack_rows
from backend.protocols.transport.codec import encode
from backend.protocols.transport.packing import from_bitmap
from backend.trees.ensemble import NodeKey, SplitRule


class HostTraining:
    """One training at one Host.

    Parameters
    ----------
    rows : ndarray of int
        The Host's joint rows, in the common order.
    group_size : int
        Fewest people in a node about which it answers.
    named : float
        Share of a node's people whom sums may name; 0 = people need no protection.
    terms : Terms, optional
        What was approved; None = this Host asks nobody.

    Attributes
    ----------
    medians : Medians
        Over the joint training records.
    request : str
        The Guest's name for it; empty where it will not go on after a break.
    """

    def __init__(
        self,
        table: PartyTable,
        features: Sequence[Feature],
        rows: NDArray[np.intp],
        start: StartTraining,
        cipher: PairPublicSide | NodePublicSide,
        *,
        group_size: int = 1,
        named: float = 0.0,
        terms: Terms | None = None,
    ) -> None:
        if not BINS[0] <= start.bins <= BINS[1]:
            raise SecurityError("bins_outside_limits", bins=start.bins, low=BINS[0], high=BINS[1])
        self._n, self.request = len(rows), start.request
        self._training = unpack_rows(start.training, self._n)
        self._group_size = group_size
        self._named = named
        self.growth = GrowthRecord(terms, self._training)
        columns = table.take(rows).columns
        self._columns = BinnedColumns(
            features, columns, self._training, start.bins, start.exclude, hide_order=start.hide_order
        )
        self.medians: Medians = medians(features, columns, self._training)
        self._cipher = cipher
        self._sent = np.zeros(self._n, dtype=bool)  # rows that have encrypted pairs
        self._position = np.zeros(self._n, dtype=np.intp)  # joint row → index among them
        self._pairs: IncomingPairs | None = None
        self._node: tuple[AskNodeSums, NodeSumming] | None = None  # whose rows are coming in
        self.rules: dict[NodeKey, SplitRule] = {}

    def digest(self, start: StartTraining) -> str:
        """SHA-256 of what was asked for and of the binned records: what the answers follow from, in hexadecimal."""
        digest = sha256(encode(replace(start, conversation="")))
        for b in self._columns.bins:
            digest.update(repr((b.feature.name, b.cuts.tolist(), b.categories)).encode())
            digest.update(self._columns.index(b.feature.name).astype("<i8").tobytes())
        return digest.hexdigest()

    def feature_bins(self, conversation: str) -> FeatureBins:
        """All that the Guest needs about the bins: their number."""
        bins = self._columns.bins
        return FeatureBins(
            conversation,
            tuple(b.feature.name for b in bins),
            tuple(b.count for b in bins),
            tuple(b.feature.kind is Kind.CATEGORICAL for b in bins),
            self._group_size,
            self._named,
        )

    def take_gradients(self, message: Gradients) -> None:
        """Replace the last encrypted pairs; the first piece of them."""
        if not isinstance(self._cipher, PairPublicSide):
            raise SecurityError("gradients_under_node_key")
        self._sent = unpack_rows(message.rows, self._n)
        if (self._sent & ~self._training).any():
            raise SecurityError("no_training_rows")
        self._position = np.cumsum(self._sent) - 1
        self._pairs = IncomingPairs(self._cipher, int(self._sent.sum()), len(message.pairs))
        self._pairs.add(message.pairs)

    def take_more(self, message: MoreGradients) -> None:
        """Take the next piece of them."""
        if self._pairs is None:
            raise SecurityError("piece_out_of_order")
        self._pairs.add(message.pairs)

    def bin_sums(self, message: AskBinSums) -> BinSums:
        """Per node and batch: refreshed encrypted sums by bin of the requested features."""
        if not isinstance(self._cipher, PairPublicSide) or self._pairs is None:
            raise SecurityError("sums_without_gradients")
        pairs = self._pairs.batches
        half = half_slot(int(np.count_nonzero(self._sent)))
        parts = (message.trees, message.nodes, message.rows, message.features, message.batches, message.parents)
        wanted = sorted({b for batches in message.batches for b in batches})
        if len({len(part) for part in parts}) > 1 or not set(wanted) <= set(range(len(pairs))):
            raise SecurityError("sums_without_gradients")
        places = zip(message.trees, message.nodes, message.parents, message.rows, message.batches, strict=True)
        for tree, node, parent, rows, batches in places:
            counted = self._checked_rows(rows)
            self.growth.begin_sums(tree, node, parent, counted, self._least(2 * half * len(batches)))
        asked = list(zip(message.rows, message.features, message.batches, strict=True))
        nodes = []
        for rows, features, _ in asked:
            nodes.append(self._of_sent(self._checked_rows(rows), features))
        sums: dict[tuple[int, int], bytes] = {}
        for batch in wanted:
            using = [i for i, (_, _, batches) in enumerate(asked) if batch in batches]
            made = self._cipher.bin_sums(pairs[batch], [nodes[i] for i in using], half)
            sums |= {(i, batch): blob for i, blob in zip(using, made, strict=True)}
        answer = tuple(tuple(sums[i, b] for b in batches) for i, (_, _, batches) in enumerate(asked))
        return BinSums(message.conversation, message.trees, message.nodes, answer)

    def _least(self, bits: int) -> int:
        """Return the fewest people in a node whose sums carry so many bits."""
        return least_people(self._group_size, self._named, bits)

    def _checked_rows(self, rows_asked: bytes) -> Flags:
        """Return a node's rows, all of which have pairs."""
        inside = unpack_rows(rows_asked, self._n)
        if (inside & ~self._sent).any():
            raise SecurityError("sums_over_other_rows")
        return inside

    def _of_sent(self, inside: Flags, features_asked: bytes) -> tuple[NDArray[np.intp], BinIndex]:
        """Indices of a node's rows among the pairs, and their bins by each requested feature."""
        return self._position[np.flatnonzero(inside)], self._bins(inside, features_asked)

    def _bins(self, inside: Flags, features_asked: bytes) -> BinIndex:
        """The bins of a node's rows by each requested feature."""
        asked = from_bitmap(features_asked, len(self._columns.bins))
        chosen = [b for b, used in zip(self._columns.bins, asked, strict=True) if used]
        return [(self._columns.index(b.feature.name)[inside], b.count + 1) for b in chosen]

    def start_node(self, message: AskNodeSums) -> None:
        """Begin the sums of a node whose rows come next; what was begun before is dropped."""
        self._node = None
        if not isinstance(self._cipher, NodePublicSide):
            raise SecurityError("rows_under_pair_key")
        inside = unpack_rows(message.rows, self._n)
        if (inside & ~self._training).any():
            raise SecurityError("no_training_rows")
        least = self._least(self._cipher.number_bits * message.numbers)
        bins = self._bins(inside, message.features)
        summing = self._cipher.start_sums(bins, message.block, message.numbers)
        self.growth.begin_sums(message.tree, message.node, message.parent, inside, least)
        self._node = message, summing

    def take_node(self, message: NodePairs) -> BinSums | None:
        """Take rows of the node that was begun; its sums once all have come."""
        if self._node is None:
            raise SecurityError("node_rows_unasked")
        asked, summing = self._node
        self._node = None  # a piece that is refused ends the node
        summing.add(message.pairs)
        if summing.complete:
            return BinSums(message.conversation, (asked.tree,), (asked.node,), ((summing.finish(),),))
        self._node = asked, summing
        return None

    def take_split(self, message: TakeSplit, *, repeated: bool = False) -> SplitRows:
        """Store the threshold of a split; answer which of the node's joint records go left.

        Parameters
        ----------
        repeated : bool
            Whether the same split was taken before the training was broken off; then its sums are not asked for again.
        """
        inside = unpack_rows(message.rows, self._n)
        if not repeated:
            self.growth.begin_split(message.tree, message.node, message.parent, inside, self._group_size)
        rule, left = self._columns.take_split(message.feature, message.left_bins, message.default_left)
        self.growth.split(message.tree, message.node, message.parent, inside, left)
        self.rules[message.tree, message.node] = rule
        return SplitRows(message.conversation, message.tree, message.node, pack_rows(left[inside]))

    def keep_trees(self, count: int) -> None:
        """Forget the rules of trees that early stopping dropped."""
        self.rules = {key: rule for key, rule in self.rules.items() if key[0] < count}
