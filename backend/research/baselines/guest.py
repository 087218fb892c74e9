"""The Guest's side of the protocols that Fed-EINI is compared with: its partial model as arrays, one interface, batches.

In these protocols the Guest learns the leaf of every tree. They are used in comparisons only, never to score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.scoring.guest import Scored, Timings
from backend.protocols.scoring.packing import Packing
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import from_bitmap
from backend.protocols.transport.transcript import TranscriptEntry
from backend.research.baselines.disclosure import Knowledge, Learned, by_paths
from backend.research.baselines.messages import StartWalk
from backend.research.baselines.walk import Numbers, OwnSplits, Trees
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import Columns, GuestModel

M = TypeVar("M", bound=Message)
TOGETHER = 1 << 14  # largest batch, in samples


@dataclass(frozen=True)
class InferenceOutcome:
    """The result of a protocol.

    Attributes
    ----------
    scored : Scored
        In the units of Fed-EINI.
    learned : callable
        The conversation's whole transcript → what the Guest, then each participating Host, learned. Computed on demand, so that it
        does not count as the protocol's work.
    """

    scored: Scored
    learned: Callable[[Sequence[TranscriptEntry]], tuple[Learned, ...]]


class Inference(Protocol):
    """A protocol that scores samples with a model whose splits lie at several parties; bound to a model."""

    name: str

    def run(self, model_id: str, table: PartyTable, conversation: Session) -> InferenceOutcome:
        """Score every row of the Guest's `table`; raises SecurityError if a Host refused."""


class GuestPaths:
    """The Guest's partial model as arrays, computed once per model.

    Attributes
    ----------
    hosts : tuple of str
        Hosts that own a split, in chain order.
    units : ndarray of int64, or of Python's integers where several outputs share a number
        ``(n_leaves,)``: leaf weights at the public scale.
    base : int
        Base score at the same scale.
    """

    def __init__(self, model: GuestModel) -> None:
        self.trees = Trees(model.skeletons, model.guest, model.hosts)
        self.splits = OwnSplits(self.trees, model.rules)
        owners = set(self.trees.owner.tolist())
        self.hosts = tuple(h for i, h in enumerate(model.hosts, 1) if i in owners)
        self._packing = Packing(model)
        self.units = self._packing.of_leaves()
        self.base = self._packing.base
        self.knowledge = Knowledge(self.trees)
        self._leaves = Conjunctions(model.rules, own_conditions(model.skeletons, model.rules))
        self._spans = np.array([(self.trees.first[r], self.trees.last[r]) for r in self.trees.roots]).reshape(-1, 2)

    def candidates(self, columns: Columns, n: int) -> NDArray[np.bool_]:
        """``(n, n_leaves)``: leaves that the Guest cannot rule out."""
        return self._leaves.matrix(columns, n)

    def sums(self, leaves: Numbers) -> list[int]:
        """``(n, n_trees)`` leaves → ``n`` scores in units."""
        return [int(v) for v in self.base + self.units[leaves].sum(axis=1)]

    def sole(self, candidates: NDArray[np.bool_]) -> Numbers:
        """``(n, n_leaves)`` → ``(n, n_trees)``: the one candidate of every tree.

        Raises SecurityError if a tree has none or several, so that a Host's answer cannot be true (Fed-EINI Proposition 1).
        """
        out = np.empty((len(candidates), len(self._spans)), dtype=np.intp)
        for t, (first, last) in enumerate(self._spans):
            here = candidates[:, first:last]
            if (here.sum(axis=1) != 1).any():
                raise SecurityError("leaves_do_not_meet")
            out[:, t] = first + here.argmax(axis=1)
        return out

    def tells(self, columns: Columns, n: int) -> NDArray[np.float64]:
        """``(n,)``: upper bound on the bits that a score discloses, log₂ of the number of leaf combinations or of sums, if smaller."""
        candidates = self.candidates(columns, n)
        packing = self._packing
        by_slot = np.zeros((packing.slots, self.trees.n_leaves), dtype=np.int64)
        by_slot[packing.slot, packing.leaf] = packing.unit
        combinations = np.zeros(n)
        span = np.zeros((packing.slots, n))
        for first, last in self._spans:
            here = candidates[:, first:last]
            combinations += np.log2(here.sum(axis=1))
            for s, units in enumerate(by_slot[:, first:last]):
                span[s] += np.where(here, units, units.min()).max(axis=1) - np.where(here, units, units.max()).min(
                    axis=1
                )
        bits: NDArray[np.float64] = np.minimum(combinations, np.log2(span + 1).sum(axis=0))
        return bits


class GuestBatch:
    """A batch of samples on their way through the trees, at the Guest.

    Parameters
    ----------
    part : PartyTable
        ``n`` samples.
    """

    def __init__(self, paths: GuestPaths, model_id: str, part: PartyTable, conversation: Session) -> None:
        self._paths = paths
        self._conversation = conversation
        self.n = len(part.ids)
        self._walk = paths.splits.walk(part.columns, self.n)
        self._leaves = np.full((self.n, len(paths.trees.roots)), -1, dtype=np.intp)
        self._held: dict[str, NDArray[np.bool_]] = {}
        for host in paths.hosts:
            conversation.send(host, StartWalk(conversation.name, model_id, part.ids))

    def at_roots(self, trees: slice) -> tuple[Numbers, Numbers]:
        """Every sample at the root of these trees: ``(rows, nodes)``."""
        roots = self._paths.trees.roots[trees]
        return np.repeat(np.arange(self.n), len(roots)), np.tile(roots, self.n)

    def settle(self, rows: Numbers, nodes: Numbers) -> tuple[Numbers, Numbers]:
        """Walk through the Guest's own splits and record the leaves reached; returns the samples at a Host's split."""
        trees = self._paths.trees
        nodes = self._walk.on(rows, nodes)
        at_leaf = trees.leaf[nodes] >= 0
        self._leaves[rows[at_leaf], trees.tree[nodes[at_leaf]]] = trees.leaf[nodes[at_leaf]]
        return rows[~at_leaf], nodes[~at_leaf]

    def expect(self, kind: type[M]) -> tuple[str, M]:
        """The next message of class `kind`; answers about records held may come in between."""
        while True:
            sender, message = self._conversation.expect(Message)
            if isinstance(message, kind):
                return sender, message
            self._note(sender, message)

    def end(self) -> tuple[Numbers, dict[str, NDArray[np.bool_]]]:
        """``(n, n_trees)`` leaves, and which Host holds which sample."""
        while len(self._held) < len(self._paths.hosts):
            self._note(*self._conversation.expect(HeldRecords))
        if (self._leaves < 0).any():
            raise SecurityError("samples_without_leaf")
        return self._leaves, self._held

    def _note(self, sender: str, message: Message) -> None:
        if not isinstance(message, HeldRecords) or sender in self._held or sender not in self._paths.hosts:
            raise SecurityError("answered_out_of_turn", host=sender)
        self._held[sender] = from_bitmap(message.held, self.n)


class Ledger:
    """Collects batches."""

    def __init__(self, paths: GuestPaths, n: int) -> None:
        self._paths = paths
        self.leaves = np.empty((n, len(paths.trees.roots)), dtype=np.intp)
        self._held = {h: np.ones(n, dtype=bool) for h in paths.hosts}

    def add(self, rows: range, leaves: Numbers, has_record: dict[str, NDArray[np.bool_]]) -> None:
        """Add one batch."""
        self.leaves[rows.start : rows.stop] = leaves
        for host, flags in has_record.items():
            self._held[host][rows.start : rows.stop] = flags

    def outcome(self) -> InferenceOutcome:
        """The scores, and what the paths disclose; nothing was encrypted."""
        paths = self._paths
        scored = Scored(paths.sums(self.leaves), self._held, 0, Timings())
        return InferenceOutcome(scored, partial(by_paths, paths.trees, paths.knowledge, self.leaves, paths.hosts))
