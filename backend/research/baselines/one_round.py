"""One round in the clear (Yao et al. §3.2, Algorithm 5): every Host sends its candidate leaves, and the Guest intersects them.

The paper's line 2 has the Hosts send the comparison at each node; a candidate leaf stands for those on its path, and splits below a
branch not taken stay out of it. Discloses nearly every split decision of every Host to the Guest. For comparison only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from backend.data.table import PartyTable
from backend.protocols.transport.channel import Session
from backend.protocols.transport.packing import chunks, from_bitmap
from backend.protocols.transport.transcript import TranscriptEntry
from backend.research.baselines.disclosure import Learned, by_paths
from backend.research.baselines.guest import TOGETHER, GuestPaths, InferenceOutcome, Ledger
from backend.research.baselines.messages import AskCandidates, CandidateLeaves
from backend.research.baselines.walk import Numbers


class OneRound:
    """The Guest's side of Algorithm 5.

    Parameters
    ----------
    paths : GuestPaths
        The model as the Guest walks it.
    streaming : bool
        A round a sample, instead of a round a batch.
    together : int
        Largest batch, in samples; 1 when streaming.
    """

    def __init__(self, paths: GuestPaths, *, streaming: bool, together: int = TOGETHER) -> None:
        if streaming:
            self.name = "one-round-streaming"
        else:
            self.name = "one-round-batched"
        self._paths = paths
        self._together = 1 if streaming else together
        trees = paths.trees
        owners = {h: trees.parties.index(h) for h in paths.hosts}
        splits = {h: np.flatnonzero((trees.owner == p) & (trees.leaf < 0)) for h, p in owners.items()}
        self._below = {h: (trees.first[s], trees.last[s]) for h, s in splits.items()}

    def run(self, model_id: str, table: PartyTable, conversation: Session) -> InferenceOutcome:
        """See :class:`backend.research.baselines.guest.Inference`."""
        paths = self._paths
        n = len(table.ids)
        ledger = Ledger(paths, n)
        bitmaps: dict[str, list[bytes]] = {h: [] for h in paths.hosts}
        for rows in chunks(n, self._together):
            part = table.take(np.arange(rows.start, rows.stop))
            # line 1: ask
            for host in paths.hosts:
                conversation.send(host, AskCandidates(conversation.name, model_id, part.ids))
            candidates = paths.candidates(part.columns, len(rows))
            # line 2: every Host's candidates
            answers = conversation.expect_each(CandidateLeaves, paths.hosts)
            has_record = {h: from_bitmap(answers[h].held, len(rows)) for h in paths.hosts}
            for host in paths.hosts:
                candidates &= self._matrix(answers[host].leaves, len(rows))
                bitmaps[host].append(answers[host].leaves)
            # line 3: the one leaf that is left in every tree
            ledger.add(rows, paths.sole(candidates), has_record)
        return InferenceOutcome(ledger.outcome().scored, partial(self._learned, ledger.leaves, bitmaps))

    def _matrix(self, leaves: bytes, n: int) -> NDArray[np.bool_]:
        return from_bitmap(leaves, n * self._paths.trees.n_leaves).reshape(n, -1)

    def _learned(
        self, leaves: Numbers, bitmaps: dict[str, list[bytes]], transcript: Sequence[TranscriptEntry]
    ) -> tuple[Learned, ...]:
        paths = self._paths
        n = len(leaves)
        directions = 0
        for host, blobs in bitmaps.items():
            for rows, blob in zip(chunks(n, self._together), blobs, strict=True):
                directions += self._named(host, self._matrix(blob, len(rows)))
        mean = directions / n if n else 0.0
        return by_paths(paths.trees, paths.knowledge, leaves, paths.hosts, transcript, directions=mean, hosts_see=False)

    def _named(self, host: str, candidates: NDArray[np.bool_]) -> int:
        """Splits of a Host whose direction its candidates show: those with a candidate below."""
        first, last = self._below[host]
        upto = np.pad(candidates.cumsum(axis=1), ((0, 0), (1, 0)))
        return int((upto[:, last] > upto[:, first]).sum())
