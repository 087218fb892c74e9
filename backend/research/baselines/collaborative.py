"""Collaborative batch prediction (FL-DT §3.5): samples hop from owner to owner, all at once, in as many rounds as the longest path
changes hands.

A party walks every sample on while it owns the split, then hands each to the owner of the node it has reached. The paper has one
tree; here all trees go along. Who hands to whom in which round follows from the trees' shape, so that no party waits in vain; empty
messages are sent too. A leaf's owner is the Guest: Hosts know no weights. Discloses as much as multi-interactive. For comparison only.
"""

from __future__ import annotations

import numpy as np

from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.transport.channel import Session
from backend.protocols.transport.packing import chunks, from_numbers
from backend.research.baselines.guest import TOGETHER, GuestBatch, GuestPaths, InferenceOutcome, Ledger
from backend.research.baselines.host_answers import pass_on
from backend.research.baselines.messages import PassOn

GUEST = 0  # its index in Trees.parties


class Collaborative:
    """The Guest's part; `together` is the largest batch, in samples."""

    name = "collaborative"

    def __init__(self, paths: GuestPaths, together: int = TOGETHER) -> None:
        self._paths = paths
        self._together = together
        self._rounds = paths.trees.handovers()

    def run(self, model_id: str, table: PartyTable, conversation: Session) -> InferenceOutcome:
        """See :class:`backend.research.baselines.guest.Inference`."""
        paths = self._paths
        ledger = Ledger(paths, len(table.ids))
        for rows in chunks(len(table.ids), self._together):
            part = table.take(np.arange(rows.start, rows.stop))
            batch = GuestBatch(paths, model_id, part, conversation)
            self._follow(batch, conversation)
            ledger.add(rows, *batch.end())
        return ledger.outcome()

    def _follow(self, batch: GuestBatch, conversation: Session) -> None:
        trees = self._paths.trees
        inbox: dict[int, dict[str, PassOn]] = {}
        rows, nodes = batch.settle(*batch.at_roots(slice(None)))
        for here, handovers in enumerate(self._rounds, 1):
            for taker in sorted(taker for giver, taker in handovers if giver == GUEST):
                theirs = trees.owner[nodes] == taker
                message = pass_on(conversation.name, here, rows[theirs], nodes[theirs], batch.n, trees)
                conversation.send(trees.parties[taker], message)
            givers = {trees.parties[giver] for giver, taker in handovers if taker == GUEST}
            while givers - set(inbox.get(here, ())):  # a Host may be a round ahead of another
                sender, message = batch.expect(PassOn)
                if sender in inbox.setdefault(message.round, {}):
                    raise SecurityError("answered_out_of_turn", host=sender)
                inbox[message.round][sender] = message
            messages = inbox.pop(here, {}).values()
            rows = np.concatenate([np.zeros(0, dtype=np.intp), *(from_numbers(m.rows, batch.n) for m in messages)])
            nodes = np.concatenate([np.zeros(0, dtype=np.intp), *(from_numbers(m.nodes, len(trees)) for m in messages)])
            if len(rows) != len(nodes) or (trees.hop[nodes] != here).any():
                raise SecurityError("samples_at_other_nodes", round=here)
            rows, nodes = batch.settle(rows, nodes)
