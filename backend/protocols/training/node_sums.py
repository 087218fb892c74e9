"""Bin sums of nodes at the Guest, for every algorithm: encrypted pairs go out, sums come in as integers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import half_slot
from backend.crypto.interface import NodeKeySide, PairKeySide
from backend.data.dictionary import Kind
from backend.errors import SecurityError
from backend.jobs import work
from backend.protocols.training.binned import BinnedColumns
from backend.protocols.training.checks import check_histograms
from backend.protocols.training.growing import Flags, Growing, GrowingNode, Histograms, IntArray, TreeJob, Wanted
from backend.protocols.training.growth_record import least_people
from backend.protocols.training.joint import Joint
from backend.protocols.training.label_bound import choice_bits
from backend.protocols.training.messages import (
    AskBinSums,
    AskNodeSums,
    BinSums,
    FeatureBins,
    Gradients,
    MoreGradients,
    NodePairs,
)
from backend.protocols.training.node_numbers import NodeNumbers
from backend.protocols.training.pair_pieces import pieces
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import Message
from backend.protocols.transport.packing import chunks, to_bitmap
from backend.trees.growth import Histogram
from backend.trees.outputs import Floats

CHUNK_ROWS = 512  # rows encrypted between two reports: a second or two at 3,072 bits, on two cores
# A request is full at so many nodes, products (rows times features) or sums (bins): half a minute of a Host's work at 3,072 bits.
MAX_NODES = 32
MAX_PRODUCTS = 1 << 22
MAX_SUMS = 1 << 14

A = TypeVar("A")
M = TypeVar("M", bound=Message)


class NodeSums:
    """Fills the histograms of nodes; `host_bins` are of the Hosts that have features, in chain order."""

    def __init__(self, joint: Joint, columns: BinnedColumns, host_bins: Mapping[str, FeatureBins]) -> None:
        self._joint = joint
        self._columns = columns
        self._host_bins = host_bins
        self._session = joint.conversation
        self._guest = joint.guest
        self._channels = np.empty((0, len(joint.parts)))
        self._flags: list[bool] = []  # channels that hold nothing but 0 and 1
        self._not_negative = np.empty(0, dtype=bool)
        self._key = joint.key
        self._half = 0

    def send(
        self,
        batches: Sequence[tuple[IntArray, IntArray]],
        *,
        tree: int = 0,
        rows: Flags | None = None,
        guest_only: bool = False,
    ) -> None:
        """Step 1: send the numbers behind the next trees' sums, one ciphertext per row and batch, the same bytes to every Host.

        Under a key that encrypts node by node nothing is sent yet.

        Parameters
        ----------
        batches : sequence of (ndarray of int64, ndarray of int64)
            ``(n_joint,)`` each, the second not negative: see :func:`backend.crypto.fixedpoint.join_pair` for their size.
        tree : int
            The first tree that they are for.
        rows : ndarray of bool, optional
            ``(n_joint,)``: training rows that are sent, so the only ones that may count; default all training rows.
        guest_only : bool
            The next trees ask no Host: nothing is sent.
        """
        sent = self._joint.training if rows is None else rows
        self._channels = np.array([channel for pair in batches for channel in pair], dtype=np.float64)
        self._flags = [bool(((channel == 0) | (channel == 1)).all()) for channel in self._channels]
        self._not_negative = np.asarray((self._channels >= 0).all(axis=1))
        if guest_only or not self._host_bins or not isinstance(self._key, PairKeySide):
            return
        joint_rows = np.flatnonzero(sent)
        name = self._session.name
        self._half = half_slot(len(joint_rows))
        n_ciphertexts = max(1, len(joint_rows) * len(batches))
        for piece in pieces(len(joint_rows), len(batches), self._key.bits):
            some = joint_rows[piece.start : piece.stop]
            blobs = []
            for i, (g, h) in enumerate(batches):
                n_done = piece.start * len(batches) + i * len(some)
                with work.part(n_done / n_ciphertexts, (n_done + len(some)) / n_ciphertexts):
                    blobs.append(b"".join(self._encrypted(self._key, g[some], h[some])))
            pairs = tuple(blobs)
            is_later = piece.start > 0
            message = MoreGradients(name, pairs) if is_later else Gradients(name, tree, pack_rows(sent), pairs)
            for host in self._host_bins:
                self._session.send(host, message)

    def _encrypted(self, key: PairKeySide, first: IntArray, second: IntArray) -> Iterator[bytes]:
        for rows in chunks(len(first), CHUNK_ROWS):
            work.reached(rows.start / len(first))
            part = slice(rows.start, rows.stop)
            yield key.encrypt_pairs(first[part], second[part], self._half)

    def of_rows(self, job: TreeJob) -> IntArray:
        """``(channels,)``: a job's sums over all its rows."""
        return self.of_some(job, np.flatnonzero(job.rows))

    def of_some(self, job: TreeJob, rows: NDArray[np.intp]) -> IntArray:
        """``(channels,)``: a job's sums over those of some rows that count; exact, as integers below 2**53."""
        counted = rows[job.rows[rows]]
        sums: IntArray = self._values(job, counted).sum(axis=1).astype(np.int64)
        return sums

    def not_negative(self, job: TreeJob) -> Flags:
        """``(channels,)``: which of a job's channels hold no negative number."""
        flags: Flags = self._not_negative[_channels_of(job)]
        return flags

    def _values(self, job: TreeJob, rows: NDArray[np.intp]) -> Floats:
        """``(channels, len(rows))``: a job's channels of some rows."""
        values: Floats = self._channels[np.array(_channels_of(job))[:, None], rows]
        return values

    def fill(self, nodes: Sequence[Wanted]) -> None:
        """Step 2: fill the nodes' histograms, with the Guest's sums in plaintext and the Hosts' sums decrypted."""
        pending: dict[str, deque[list[Wanted]]] = {host: deque() for host in self._host_bins}
        key = self._key
        if isinstance(key, NodeKeySide):
            blocks = self._send_nodes(key, nodes, pending)
        else:
            for host in self._host_bins:
                for piece in self._pieces(host, nodes):
                    self._session.send(host, self._request(host, piece))
                    pending[host].append(piece)
        for tree, node in nodes:
            node.histograms = self._own_histograms(tree, node)
        for host, piece, answer in answers(self._session, BinSums, pending):
            if isinstance(key, NodeKeySide):
                self._read_node(key, host, piece[0], blocks, answer)
                continue
            blobs = [len(tree.job.batches) for tree, _ in piece]
            if (answer.trees, answer.nodes) != _numbers(piece) or [len(sums) for sums in answer.sums] != blobs:
                raise SecurityError("answered_out_of_turn", host=host)
            for (tree, node), sums in zip(piece, answer.sums, strict=True):
                node.histograms |= self._checked(host, tree.job, node, self._read_sums(key, host, tree.job, sums))

    def _send_nodes(
        self, key: NodeKeySide, nodes: Sequence[Wanted], pending: Mapping[str, deque[list[Wanted]]]
    ) -> dict[tuple[int, int], int]:
        """Send the rows of each node, encrypted once for all Hosts; return the number of rows a ciphertext, by tree and node."""
        blocks: dict[tuple[int, int], int] = {}
        for i, (tree, node) in enumerate(nodes):
            counts = {host: self._counts(host, tree.job) for host in self._host_bins}
            hosts = [host for host, bin_counts in counts.items() if bin_counts]
            if node.untold or not hosts:
                continue
            work.check()
            rows = np.flatnonzero(tree.counted(node))
            numbers = self._numbers_of(key, tree.job)
            values = numbers.join(self._values(tree.job, rows).astype(np.int64))
            block = key.block(len(rows), [counts[host] for host in hosts], len(values))
            blocks[tree.job.number, node.number] = block
            inside = pack_rows(tree.counted(node))
            for host in hosts:
                uses = to_bitmap(self._uses(tree.job, host))
                name = self._session.name, tree.job.number, node.number
                self._session.send(host, AskNodeSums(*name, inside, uses, block, len(values), node.parent))
                pending[host].append([nodes[i]])
            for pairs in key.encrypt(values, block):
                work.check()
                for host in hosts:
                    self._session.send(host, NodePairs(self._session.name, pairs))
        return blocks

    def _counts(self, host: str, job: TreeJob) -> list[int]:
        """Return the number of bins of each feature of a Host that a tree may use, including the bin of missing values."""
        bins = self._host_bins[host].bins
        return [count + 1 for count, is_used in zip(bins, self._uses(job, host), strict=True) if is_used]

    def _numbers_of(self, key: NodeKeySide, job: TreeJob) -> NodeNumbers:
        """How a job's channels share numbers; the same for all its nodes."""
        rows = int(np.count_nonzero(job.rows))
        flags = [self._flags[c] for c in _channels_of(job)]
        return NodeNumbers.of(flags, rows, key.flags_a_number(rows))

    def _read_node(
        self, key: NodeKeySide, host: str, requested: Wanted, blocks: Mapping[tuple[int, int], int], answer: BinSums
    ) -> None:
        """Read a Host's sums of one node."""
        tree, node = requested
        name = tree.job.number, node.number
        if (answer.trees, answer.nodes) != ((name[0],), (name[1],)) or [len(sums) for sums in answer.sums] != [1]:
            raise SecurityError("answered_out_of_turn", host=host)
        numbers = self._numbers_of(key, tree.job)
        rows = int(np.count_nonzero(tree.counted(node)))
        shape = self._counts(host, tree.job), blocks[name], len(numbers.channels)
        sums = numbers.split(key.decrypt(answer.sums[0][0], rows, *shape))
        node.histograms |= self._checked(host, tree.job, node, self._histograms(host, tree.job, sums))

    def _checked(self, host: str, job: TreeJob, node: GrowingNode, histograms: Histograms) -> Histograms:
        """Return a Host's histograms of a node once each adds up to the node's sums."""
        by_name = {feature: histogram for (_, feature), histogram in histograms.items()}
        check_histograms(host, by_name, node.sums, self.not_negative(job))
        return histograms

    def least_people(self, job: TreeJob) -> int:
        """Return the fewest people in a node of a job about which every Host answers (:func:`growth_record.least_people`)."""
        if isinstance(self._key, NodeKeySide):
            bits = self._key.number_bits * len(self._numbers_of(self._key, job).channels)
        else:
            bits = 2 * self._half * len(job.batches)
        floors = []
        for answer in self._host_bins.values():
            floors.append(least_people(answer.least, answer.named, bits))
        return max(floors, default=1)

    def choice_bits(self, job: TreeJob, host: str) -> float:
        """Return the most bits that a Host learns from the split of one node of a job; see :func:`label_bound.choice_bits`."""
        if host not in self._host_bins:
            return 0.0
        bins = self._host_bins[host]
        uses = self._uses(job, host)
        counts = [count for count, is_used in zip(bins.bins, uses, strict=True) if is_used]
        categorical = [unordered for unordered, is_used in zip(bins.categorical, uses, strict=True) if is_used]
        return choice_bits(counts, categorical)

    def asks(self, job: TreeJob, node: GrowingNode) -> bool:
        """Whether a Host is asked for a node's sums, and so told which records are in it."""
        return not node.untold and any(self._uses(job, host).any() for host in self._host_bins)

    def _pieces(self, host: str, nodes: Sequence[Wanted]) -> Iterator[list[Wanted]]:
        """Yield the nodes of each request to a Host, so that each request is answered within a minute."""
        piece: list[Wanted] = []
        products = sums = 0
        counts = np.array(self._host_bins[host].bins) + 1
        for tree, node in nodes:
            uses = self._uses(tree.job, host)
            if node.untold or not uses.any():
                continue
            piece.append((tree, node))
            batches = len(tree.job.batches)
            products += int(np.count_nonzero(tree.job.rows[node.rows])) * int(uses.sum()) * batches
            sums += int(counts[uses].sum()) * batches
            if len(piece) == MAX_NODES or products >= MAX_PRODUCTS or sums >= MAX_SUMS:
                yield piece
                piece = []
                products = 0
                sums = 0
        if piece:
            yield piece

    def _request(self, host: str, piece: Sequence[Wanted]) -> AskBinSums:
        rows = [pack_rows(tree.counted(node)) for tree, node in piece]
        features = [to_bitmap(self._uses(tree.job, host)) for tree, _ in piece]
        return AskBinSums(
            self._session.name,
            *_numbers(piece),
            rows=tuple(rows),
            features=tuple(features),
            batches=tuple(tree.job.batches for tree, _ in piece),
            parents=tuple(node.parent for _, node in piece),
        )

    def _uses(self, job: TreeJob, host: str) -> Flags:
        """Which of a Host's features a tree may use, in the order of its `FeatureBins`."""
        return np.array([not job.guest_only and job.uses(host, name) for name in self._host_bins[host].names])

    def _own_histograms(self, tree: Growing, node: GrowingNode) -> Histograms:
        job = tree.job
        rows = node.rows[job.rows[node.rows]]
        channels = self._values(job, rows)
        out: Histograms = {}
        for b in self._columns.bins:
            if job.uses(self._guest, b.feature.name):
                index = self._columns.index(b.feature.name)[rows]
                sums = np.stack([np.bincount(index, weights=c, minlength=b.count + 1) for c in channels])
                out[self._guest, b.feature.name] = Histogram(sums.astype(np.int64), b.feature.kind is Kind.CATEGORICAL)
        return out

    def _read_sums(self, key: PairKeySide, host: str, job: TreeJob, blobs: Sequence[bytes]) -> Histograms:
        n = sum(self._counts(host, job))
        return self._histograms(
            host, job, np.concatenate([np.stack(key.decrypt_sums(blob, n, self._half)) for blob in blobs])
        )

    def _histograms(self, host: str, job: TreeJob, sums: IntArray) -> Histograms:
        """Return the histograms in ``(channels, bins)`` sums of a Host's features, one after the other."""
        bins = self._host_bins[host]
        uses = self._uses(job, host)
        out: Histograms = {}
        begin = 0
        for name, count, categorical, is_used in zip(bins.names, bins.bins, bins.categorical, uses, strict=True):
            if is_used:
                end = begin + count + 1
                out[host, name] = Histogram(sums[: job.criterion.channels, begin:end], categorical)
                begin = end
        return out


def answers(session: Session, kind: type[M], pending: Mapping[str, deque[A]]) -> Iterator[tuple[str, A, M]]:
    """Yield the Hosts' answers as they arrive, each with that Host's pending request.

    Raises SecurityError if a Host answers without a pending request.
    """
    while any(pending.values()):
        host, answer = session.expect(kind)
        if not pending.get(host):
            raise SecurityError("answered_out_of_turn", host=host)
        yield host, pending[host].popleft(), answer


def _channels_of(job: TreeJob) -> list[int]:
    """The channels that a job's criterion reads, of those sent last."""
    return [c for b in job.batches for c in (2 * b, 2 * b + 1)][: job.criterion.channels]


def _numbers(piece: Sequence[Wanted]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Trees and nodes of a message."""
    return tuple(tree.job.number for tree, _ in piece), tuple(node.number for _, node in piece)
