"""Multi-interactive inference (Fed-EINI §II-C): the Guest asks the owner of every split which way a sample goes. Fed-EINI's baseline.

Discloses every path to the Guest, and to each Host which samples meet its splits. For comparison only.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.transport.channel import Session
from backend.protocols.transport.packing import chunks, from_numbers, to_numbers
from backend.research.baselines.guest import TOGETHER, GuestBatch, GuestPaths, InferenceOutcome, Ledger
from backend.research.baselines.messages import AskWalk, Walked
from backend.research.baselines.walk import Numbers, Trees

Pace = Literal["node", "tree", "level"]


class MultiInteractive:
    """Three modes of one protocol.

    ``node``
        Sample by sample, tree by tree, node by node: the paper's Figures 1 and 2, read for one sample at a time.
    ``tree``
        Tree by tree and node by node, all samples of a message together: the paper's O(K·depth) rounds (§IV-B) whatever the samples.
    ``level``
        All trees and samples together, and a Host walks on while it owns the next split, as FATE 1.x does it: O(depth) rounds.
        (FATE sends every sample to every Host in each round; here a Host gets those that stand at its splits.)

    Parameters
    ----------
    mode : {"node", "tree", "level"}
    together : int
        Largest batch, in samples; 1 under ``node``.
    """

    def __init__(self, paths: GuestPaths, mode: Pace, together: int = TOGETHER) -> None:
        self.name = f"multi-interactive-{mode}"
        self._paths = paths
        self._one_step = mode != "level"
        self._together = 1 if mode == "node" else together
        every = range(len(paths.trees.roots))
        if self._one_step:
            self._trees = [slice(t, t + 1) for t in every]
        else:
            self._trees = [slice(0, len(every))]

    def run(self, model_id: str, table: PartyTable, conversation: Session) -> InferenceOutcome:
        """See :class:`backend.research.baselines.guest.Inference`."""
        ledger = Ledger(self._paths, len(table.ids))
        for rows in chunks(len(table.ids), self._together):
            part = table.take(np.arange(rows.start, rows.stop))
            batch = GuestBatch(self._paths, model_id, part, conversation)
            for trees in self._trees:
                self._walk(batch, trees, conversation)
            ledger.add(rows, *batch.end())
        return ledger.outcome()

    def _walk(self, batch: GuestBatch, which: slice, conversation: Session) -> None:
        trees = self._paths.trees
        rows, nodes = batch.settle(*batch.at_roots(which))
        while len(rows):
            owner = trees.owner[nodes]
            rows_of_host = {}
            for p in np.unique(owner):
                rows_of_host[trees.parties[p]] = np.flatnonzero(owner == p)
            for host, some in rows_of_host.items():
                at = to_numbers(rows[some], batch.n), to_numbers(nodes[some], len(trees))
                conversation.send(host, AskWalk(conversation.name, self._one_step, *at))
            while rows_of_host:
                sender, answer = batch.expect(Walked)
                if sender not in rows_of_host:
                    raise SecurityError("answered_out_of_turn", host=sender)
                some = rows_of_host.pop(sender)
                nodes[some] = _reached(trees, nodes[some], from_numbers(answer.nodes, len(trees)), sender)
            rows, nodes = batch.settle(rows, nodes)


def _reached(trees: Trees, old_nodes: Numbers, new_nodes: Numbers, host: str) -> Numbers:
    """Return a Host's answer; raise SecurityError unless it leads every sample further down its tree."""
    if (
        new_nodes.shape != old_nodes.shape
        or ((trees.tree[new_nodes] != trees.tree[old_nodes]) | (trees.depth[new_nodes] <= trees.depth[old_nodes])).any()
    ):
        raise SecurityError("samples_led_elsewhere", host=host)
    return new_nodes
