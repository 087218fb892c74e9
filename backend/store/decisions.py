"""Whom the Guest has scored in the last days: the sum and who decided, so that reasons can be asked without a second score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select, text

from backend.store.database import Database, execute_many, prepared
from backend.store.schema import DecisionRow

KEPT = timedelta(days=30)  # as long as a notice of adverse action may take, 12 CFR 1002.9(a)(1)
CHUNK = 400  # people a statement

_REMEMBER = text("""
INSERT INTO decisions (model_id, subject, own, units, absent, policy, created)
VALUES (:model_id, :subject, :own, :units, :absent, :policy, :created)
ON CONFLICT (model_id, subject) DO UPDATE
SET own = excluded.own, units = excluded.units, absent = excluded.absent, policy = excluded.policy, created = excluded.created
""")
_ABOUT = prepared(
    "SELECT model_id, policy, created FROM decisions WHERE subject = :subject ORDER BY model_id",
    "model_id",
    "policy",
    "created",
)


@dataclass(frozen=True, repr=False)
class StoredDecision:
    """One person's score, and which policy decided.

    Attributes
    ----------
    own : str
        SHA-256 of the Guest's values that the score was made of.
    units : int
        The sum as it was decrypted.
    absent : tuple of str
        Hosts that had no record of the person.
    policy : int
        Version.
    created : str
        UTC, ISO 8601.
    """

    subject: str
    own: str
    units: int
    absent: tuple[str, ...]
    policy: int
    created: str = ""


class Decisions:
    """The scores of one Guest; of each person and model the last one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def remember(self, model_id: str, decisions: Sequence[StoredDecision]) -> None:
        """Store scores of a model; those of before about the same people are replaced."""
        if not decisions:
            return
        now = datetime.now(UTC).isoformat(timespec="seconds")
        absent = {hosts: json.dumps(hosts) for hosts in {decision.absent for decision in decisions}}
        rows = []
        for decision in decisions:
            rows.append(
                {
                    "model_id": model_id,
                    "subject": decision.subject,
                    "own": decision.own,
                    "units": str(decision.units),
                    "absent": absent[decision.absent],
                    "policy": decision.policy,
                    "created": now,
                }
            )
        with self._database.write() as session:
            execute_many(session, _REMEMBER, rows)

    def of(self, model_id: str, subjects: Sequence[str], now: datetime | None = None) -> dict[str, StoredDecision]:
        """Return person → the last score by a model that is not older than :data:`KEPT`."""
        since = ((now or datetime.now(UTC)) - KEPT).isoformat(timespec="seconds")
        stored = {}
        with self._database.read() as session:
            for start in range(0, len(subjects), CHUNK):
                chunk = subjects[start : start + CHUNK]
                rows = select(DecisionRow).where(
                    DecisionRow.model_id == model_id, DecisionRow.subject.in_(chunk), DecisionRow.created >= since
                )
                for row in session.scalars(rows):
                    absent = tuple(json.loads(row.absent))
                    stored[row.subject] = StoredDecision(
                        row.subject, row.own, int(row.units), absent, row.policy, row.created
                    )
        return stored

    def about(self, person: str) -> list[tuple[str, int, str]]:
        """Return model, version of the policy and time of each score of a person."""
        with self._database.read() as session:
            return [(row.model_id, row.policy, row.created) for row in session.execute(_ABOUT, {"subject": person})]

    def forget(self, person: str) -> None:
        """Delete what is stored about a person."""
        with self._database.write() as session:
            session.execute(delete(DecisionRow).where(DecisionRow.subject == person))
