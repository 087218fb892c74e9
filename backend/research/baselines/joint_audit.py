"""Which leaves the Hosts of a simulation leave open to some records, in the clear: what the leak meter and a release are measured on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.protocols.transport.channel import Session
from backend.protocols.transport.packing import chunks, from_bitmap
from backend.research.baselines.messages import AskCandidates, CandidateLeaves
from backend.trees.ensemble import GuestModel

BATCH = 512  # records that are asked about in one message


def joint_audit(
    conversation: Session, model_id: str, model: GuestModel, ids: Sequence[str], batch: int = BATCH
) -> NDArray[np.bool_]:
    """Ask the Hosts of a simulation which leaves they leave open to some records. Only a simulated Host answers.

    Returns
    -------
    ndarray of bool
        ``(len(ids), n_leaves)``: leaves that no Host rules out, trees in order, leaves left to right.
    """
    owners = {fork.owner for skeleton in model.skeletons for fork in skeleton.forks.values()}
    hosts = tuple(host for host in model.hosts if host in owners)
    leaves = np.ones((len(ids), model.n_leaves), dtype=bool)
    for rows in chunks(len(ids), batch):
        queried = tuple(ids[rows.start : rows.stop])
        for host in hosts:
            conversation.send(host, AskCandidates(conversation.name, model_id, queried))
        for answer in conversation.expect_each(CandidateLeaves, hosts).values():
            open_leaves = from_bitmap(answer.leaves, len(queried) * model.n_leaves)
            leaves[rows.start : rows.stop] &= open_leaves.reshape(len(queried), -1)
    return leaves
