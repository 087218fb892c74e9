"""What the Guest remembers of its scores: enough to ask for reasons later without a second score."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

from backend.data.table import PartyTable
from backend.results import ModelRecord, ScoreBatch
from backend.store.decisions import StoredDecision

if TYPE_CHECKING:
    from backend.data.table import SampleSheet
    from backend.services.workspace import Workspace


def own_digests(table: PartyTable, features: Iterable[str]) -> list[str]:
    """Return SHA-256 of each person's values of some features of the Guest, ``(n,)``."""
    names = sorted(features)
    columns = [table.columns[name].tolist() for name in names]
    begins = f"({names!r}, "  # of every person's text
    digests = []
    for row in range(len(table.ids)):
        values = [column[row] for column in columns]
        digests.append(sha256(f"{begins}{values!r})".encode()).hexdigest())
    return digests


def remember(
    workspace: Workspace, record: ModelRecord, sheet: SampleSheet, batch: ScoreBatch, features: Iterable[str]
) -> None:
    """Store the scores of a batch, of the people who have one; with Hosts' values that were typed in, nothing.

    Parameters
    ----------
    features : iterable of str
        Of the Guest, that the model uses.
    """
    if sheet.hosts:
        return
    digests = own_digests(sheet.guest, features)
    decisions = []
    for score, own in zip(batch.scores, digests, strict=True):
        if score.scored:
            decisions.append(StoredDecision(score.id, own, score.units, score.not_held_by, score.policy))
    workspace.decisions(record.federation).remember(record.id, decisions)
