"""SecureBoost at the Guest (Fed-EINI §II-A, eq. 1): encrypt gradients, read bin sums, pick splits; owners keep thresholds.

The growth below does not know whether the sums travelled encrypted: they arrive as integers, so plain numbers and ciphertexts
give the same tree. The Guest learns which joint training records go left at a Host's split (SecureBoost's own disclosure, kept in
memory for the run only); it never learns a threshold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from backend.crypto.cipher import PairKeySide
from backend.crypto.fixedpoint import GRADIENT_BITS, quantise
from backend.data.dictionary import Kind
from backend.protocols.channel import Conversation
from backend.protocols.messages import (
    AskBinSums,
    BinSums,
    FeatureBins,
    Gradients,
    SplitRows,
    TakeSplit,
    chunks,
    from_bitmap,
    to_bitmap,
)
from backend.protocols.training.binned import BinnedColumns
from backend.protocols.training.parameters import SecureBoostParameters, TreeProgress
from backend.trees.ensemble import GuestTree, Leaf, NodeKey, Rule, Split
from backend.trees.growth import BestSplit, GrowthRules, Histogram, best_split, leaf_weight, logistic_gradients
from backend.trees.metrics import measure

SCALE = 2.0**-GRADIENT_BITS
PIECE = 4096  # rows encrypted between two looks at the cancel flag: a second or two at 3,072 bits
IntArray = NDArray[np.int64]
Histograms = dict[tuple[str, str], Histogram]  # (party, feature) → sums


@dataclass
class _Node:
    """A node under growth: its joint records and its sums over the training rows."""

    number: int
    rows: NDArray[np.bool_]
    g: int
    h: int
    histograms: Histograms = field(default_factory=dict)


class SecureBoost:
    """Grows one model; every secret it holds is the Guest's.

    Parameters
    ----------
    conversation : Conversation
        With the Hosts that take part, after alignment and `StartTraining`.
    key : PairKeySide
    guest : str
    columns : BinnedColumns
        The Guest's own features over the joint records.
    host_bins : mapping of str to FeatureBins
        What each Host said about its features, in chain order.
    labels : ndarray of int8
        ``(n_joint,)`` 0/1.
    parts : ndarray of int8
        ``(n_joint,)`` 0 = training, 1 = validation, 2 = test.
    parameters : SecureBoostParameters
    """

    def __init__(
        self,
        conversation: Conversation,
        key: PairKeySide,
        guest: str,
        columns: BinnedColumns,
        host_bins: Mapping[str, FeatureBins],
        labels: NDArray[np.int8],
        parts: NDArray[np.int8],
        parameters: SecureBoostParameters,
    ) -> None:
        self._conversation, self._key, self._guest = conversation, key, guest
        self._columns, self._host_bins = columns, host_bins
        self._labels, self._parts, self._parameters = labels, parts, parameters
        self._training = parts == 0
        self._rules = GrowthRules(
            parameters.learning_rate, parameters.reg_lambda, parameters.gamma, parameters.min_child_weight
        )
        rate = float(np.clip(labels[self._training].mean(), 1e-6, 1 - 1e-6))
        self.base_score = float(quantise(np.log(rate / (1 - rate)), parameters.score_bits)) / (
            1 << parameters.score_bits
        )
        self.trees: list[GuestTree] = []
        self.rules: dict[NodeKey, Rule] = {}
        self.margins = np.full(len(labels), self.base_score)
        self.units = quantise(
            self.margins, parameters.score_bits
        )  # the same at the public scale, as it will be released
        self._g: IntArray = np.empty(0, dtype=np.int64)
        self._h: IntArray = np.empty(0, dtype=np.int64)

    def grow(self, on_tree: Callable[[TreeProgress], None]) -> None:
        """Grow all trees; `on_tree` is told after each.

        Raises
        ------
        Cancelled, PartyUnreachable, SecurityError
            See :meth:`Conversation.expect`.
        """
        began = time.perf_counter()
        best_loss, best_count, best_units = np.inf, 0, self.units
        for t in range(self._parameters.trees):
            self._send_gradients(t)
            leaf_values = self._grow_tree(t)
            self.margins = self.margins + leaf_values
            self.units = self.units + quantise(leaf_values, self._parameters.score_bits)
            progress = self._progress(t + 1, time.perf_counter() - began)
            on_tree(progress)
            if progress.log_loss_validation < best_loss:
                best_loss, best_count, best_units = progress.log_loss_validation, t + 1, self.units
            patience = self._parameters.early_stopping
            if patience and t + 1 - best_count >= patience:
                break
        if self._parameters.early_stopping:
            self._drop_after(best_count)
            self.units = best_units

    def _drop_after(self, count: int) -> None:
        self.trees = self.trees[:count]
        self.rules = {k: r for k, r in self.rules.items() if k[0] < count}

    def _send_gradients(self, tree: int) -> None:
        """Step 1: [[g]] and [[h]] of every training row, one ciphertext a row, the same bytes to every Host."""
        g, h = logistic_gradients(self._labels[self._training], self.margins[self._training])
        self._g = np.zeros(len(self._labels), dtype=np.int64)
        self._h = np.zeros(len(self._labels), dtype=np.int64)
        self._g[self._training], self._h[self._training] = quantise(g, GRADIENT_BITS), quantise(h, GRADIENT_BITS)
        if self._conversation.hosts:
            pairs = b"".join(self._encrypted_pieces(self._g[self._training], self._h[self._training]))
            self._conversation.broadcast(Gradients(self._conversation.name, tree, pairs))

    def _encrypted_pieces(self, g: IntArray, h: IntArray) -> Iterator[bytes]:
        for rows in chunks(len(g), PIECE):
            self._conversation.check()
            part = slice(rows.start, rows.stop)
            yield self._key.encrypt_pairs(g[part], h[part])

    def _grow_tree(self, tree: int) -> NDArray[np.float64]:
        """Grow one tree level by level; returns each joint record's leaf weight, ``(n_joint,)``."""
        root = _Node(0, np.ones(len(self._labels), dtype=bool), int(self._g.sum()), int(self._h.sum()))
        nodes: list[Split | Leaf | None] = [None]
        values = np.zeros(len(self._labels))
        self._fill_histograms([root])
        level = [root]
        for depth in range(self._parameters.depth + 1):
            below: list[tuple[_Node, _Node, _Node]] = []
            for node in level:
                found = self._best(node) if depth < self._parameters.depth else None
                if found is None:
                    weight = leaf_weight(node.g * SCALE, node.h * SCALE, self._rules)
                    nodes[node.number] = Leaf(weight, node.h * SCALE)
                    values[node.rows] = weight
                    continue
                party, feature, best = found
                left, right = self._split(tree, node, len(nodes), found)
                nodes[node.number] = Split(
                    party, feature, left.number, right.number, best.default_left, best.gain, node.h * SCALE
                )
                nodes += [None, None]
                below.append((node, left, right))
            if depth + 1 < self._parameters.depth:
                self._fill_children(below)
            level = [child for _, left, right in below for child in (left, right)]
        self.trees.append(GuestTree(tuple(n for n in nodes if n is not None)))
        return values

    def _best(self, node: _Node) -> tuple[str, str, BestSplit] | None:
        """Step 3: the best split over all parties; on a tie the first in party and feature order."""
        winner: tuple[str, str, BestSplit] | None = None
        for (party, feature), histogram in node.histograms.items():
            found = best_split(histogram, self._rules)
            if found is not None and (winner is None or found.gain > winner[2].gain):
                winner = (party, feature, found)
        return winner

    def _split(self, tree: int, node: _Node, number: int, found: tuple[str, str, BestSplit]) -> tuple[_Node, _Node]:
        """Step 4: the owner keeps the threshold and tells which records go left."""
        party, feature, best = found
        if party == self._guest:
            rule, goes_left = self._columns.take_split(feature, best.left_bins, best.default_left)
            self.rules[tree, node.number] = rule
            left_rows = goes_left & node.rows
        else:
            name = self._conversation.name
            self._conversation.send(
                party,
                TakeSplit(name, tree, node.number, feature, best.left_bins, best.default_left, to_bitmap(node.rows)),
            )
            answer = self._conversation.expect_each(SplitRows, [party])[party]
            left_rows = from_bitmap(answer.left, len(self._labels)) & node.rows
        left = _Node(number, left_rows, best.g_left, best.h_left)
        right = _Node(number + 1, node.rows & ~left_rows, node.g - best.g_left, node.h - best.h_left)
        return left, right

    def _fill_children(self, families: list[tuple[_Node, _Node, _Node]]) -> None:
        """Histogram subtraction: ask for the smaller child only, the other is parent minus child."""
        small = [min((left, right), key=lambda c: int((c.rows & self._training).sum())) for _, left, right in families]
        self._fill_histograms(small)
        for (parent, left, right), known in zip(families, small, strict=True):
            other = right if known is left else left
            other.histograms = {k: parent.histograms[k].minus(known.histograms[k]) for k in parent.histograms}
            parent.histograms = {}

    def _fill_histograms(self, nodes: list[_Node]) -> None:
        """Step 2: own sums in the clear, the Hosts' sums decrypted."""
        if not nodes:
            return
        hosts = [h for h, bins in self._host_bins.items() if bins.names]
        request = AskBinSums(
            self._conversation.name, tuple(n.number for n in nodes), tuple(to_bitmap(n.rows) for n in nodes)
        )
        for host in hosts:
            self._conversation.send(host, request)
        for node in nodes:
            node.histograms = self._own_histograms(node)
        answers = self._conversation.expect_each(BinSums, hosts)
        for host in hosts:
            for node, sums in zip(nodes, answers[host].sums, strict=True):
                node.histograms |= self._read_sums(host, sums)

    def _own_histograms(self, node: _Node) -> Histograms:
        rows = node.rows & self._training
        g, h = self._g[rows].astype(np.float64), self._h[rows].astype(np.float64)
        out: Histograms = {}
        for b in self._columns.bins:
            index = self._columns.index(b.feature.name)[rows]
            sum_g, sum_h = (np.bincount(index, weights=v, minlength=b.count + 1).astype(np.int64) for v in (g, h))
            out[self._guest, b.feature.name] = Histogram(sum_g, sum_h, SCALE, b.feature.kind is Kind.CATEGORICAL)
        return out

    def _read_sums(self, host: str, blob: bytes) -> Histograms:
        bins = self._host_bins[host]
        g, h = self._key.decrypt_sums(blob, sum(bins.bins) + len(bins.bins))
        out: Histograms = {}
        start = 0
        for name, count, categorical in zip(bins.names, bins.bins, bins.categorical, strict=True):
            end = start + count + 1
            out[host, name] = Histogram(g[start:end], h[start:end], SCALE, categorical)
            start = end
        return out

    def _progress(self, tree: int, seconds: float) -> TreeProgress:
        training, validation = (
            measure(self._labels[self._parts == part], self.margins[self._parts == part], "") for part in (0, 1)
        )
        return TreeProgress(
            tree,
            self._parameters.trees,
            training.log_loss,
            validation.log_loss,
            training.auc,
            validation.auc,
            seconds,
        )
