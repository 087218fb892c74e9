"""A Host's answers in the protocols that Fed-EINI is compared with. They disclose its splits, so only a simulated Host gives them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError
from backend.protocols.transport.packing import from_numbers, to_bitmap, to_numbers
from backend.research.baselines.messages import AskWalk, PassOn, Walked
from backend.research.baselines.walk import Numbers, OwnSplits, Trees
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import Columns, HostModel


class HostPaths:
    """A Host's partial model as arrays, computed once per model."""

    def __init__(self, partial_model: HostModel) -> None:
        self.trees = Trees(partial_model.skeletons, partial_model.guest, partial_model.hosts)
        self.index = self.trees.parties.index(partial_model.host)
        self._splits = OwnSplits(self.trees, partial_model.rules)
        self._leaves = Conjunctions(partial_model.rules, own_conditions(partial_model.skeletons, partial_model.rules))

    def candidates(self, columns: Columns, has_record: NDArray[np.bool_]) -> bytes:
        """Return candidate leaves (Fed-EINI §III-A; the forest paper's Alg. 5 line 2) as a bitmap, sample by sample."""
        return to_bitmap(self._leaves.matrix(columns, len(has_record), has_record))

    def start(self, columns: Columns, has_record: NDArray[np.bool_]) -> HostWalk:
        """Begin a batch."""
        return HostWalk(self, self._splits, columns, has_record)


class HostWalk:
    """One batch of samples; every round of it is answered once."""

    def __init__(self, paths: HostPaths, splits: OwnSplits, columns: Columns, has_record: NDArray[np.bool_]) -> None:
        self._trees = paths.trees
        self._index = paths.index
        self._n = len(has_record)
        self._walk = splits.walk(columns, self._n, has_record)
        self._rounds = self._trees.handovers()
        self._inbox: dict[int, dict[str, PassOn]] = {}  # round → sender → what it handed over
        self._next = 1  # round to be walked

    def walked(self, ask: AskWalk) -> Walked:
        """Fed-EINI §II-C: where the samples go from here."""
        rows, nodes = self._positions(ask.rows, ask.nodes)
        reached = self._walk.on(rows, nodes, one_step=ask.one_step)
        return Walked(ask.conversation, to_numbers(reached, len(self._trees)))

    def take(self, sender: str, message: PassOn) -> Iterator[tuple[str, PassOn]]:
        """FL-DT §3.5: once a round and those before it are complete, walk on and hand every sample to its next owner."""
        if not 1 <= message.round <= len(self._rounds):
            raise SecurityError("round_beyond_model", round=message.round, rounds=len(self._rounds))
        inbox = self._inbox.setdefault(message.round, {})
        if sender not in self._givers(message.round) or sender in inbox:
            raise SecurityError("samples_out_of_turn", round=message.round)
        inbox[sender] = message
        while self._next <= len(self._rounds) and len(self._inbox.get(self._next, ())) == len(self._givers(self._next)):
            if self._inbox.get(self._next):
                yield from self._round(self._next)
            self._next += 1

    def _givers(self, round_: int) -> set[str]:
        """Who hands samples to this Host in a round."""
        return {self._trees.parties[giver] for giver, taker in self._rounds[round_ - 1] if taker == self._index}

    def _round(self, here: int) -> Iterator[tuple[str, PassOn]]:
        messages = self._inbox[here].values()
        positions = [self._positions(m.rows, m.nodes, here) for m in messages]
        rows, nodes = (np.concatenate(part) for part in zip(*positions, strict=True))
        nodes = self._walk.on(rows, nodes)
        conversation = next(iter(messages)).conversation
        takers = (taker for giver, taker in self._rounds[here] if giver == self._index)
        for taker in sorted(takers, reverse=True):  # the Guest last, so that its next round seldom overtakes this one
            theirs = self._trees.owner[nodes] == taker
            message = pass_on(conversation, here + 1, rows[theirs], nodes[theirs], self._n, self._trees)
            yield self._trees.parties[taker], message

    def _positions(self, rows: bytes, nodes: bytes, hop: int | None = None) -> tuple[Numbers, Numbers]:
        at = from_numbers(rows, self._n)
        where = from_numbers(nodes, len(self._trees))
        if len(at) != len(where):
            raise SecurityError("samples_without_node", samples=len(at), nodes=len(where))
        if (self._trees.owner[where] != self._index).any() or (hop and (self._trees.hop[where] != hop).any()):
            raise SecurityError("node_of_other_party")
        return at, where


def pass_on(conversation: str, round_: int, rows: Numbers, nodes: Numbers, n: int, trees: Trees) -> PassOn:
    """Positions of some of ``n`` samples as a message."""
    return PassOn(conversation, round_, to_numbers(rows, n), to_numbers(nodes, len(trees)))
