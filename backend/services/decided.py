"""What the Guest remembers of its scores: enough to ask for reasons later without a second score."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from backend.results import ModelRecord, ScoreBatch

if TYPE_CHECKING:
    from backend.data.table import SampleSheet
    from backend.services.workspace import Workspace


def remember(
    workspace: Workspace, record: ModelRecord, sheet: SampleSheet, batch: ScoreBatch, features: Collection[str]
) -> None:
    """Store the scores of a batch, of the people who have one; with Hosts' values that were typed in, nothing.

    Parameters
    ----------
    features : collection of str
        Of the Guest, that the model uses.
    """
    if sheet.hosts:
        return
    digests = sheet.guest.digests(np.arange(len(sheet.ids)), features)
    scores = []
    for score, digest in zip(batch.scores, digests, strict=True):
        if score.scored:
            scores.append((score.id, digest, score.units, score.not_held_by, score.policy))
    workspace.decisions(record.federation).remember(record.id, scores)
