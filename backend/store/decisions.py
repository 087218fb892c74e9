"""People whom the Guest has scored in the last days: sum and policy, so that reasons can be asked without a second score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select, text

from backend.store.database import Database, execute_many, prepared
from backend.store.schema import StoredDecision

__all__ = ["Decisions", "StoredDecision"]

DECISION_RETENTION = timedelta(days=30)  # as long as a notice of adverse action may take, 12 CFR 1002.9(a)(1)
PEOPLE_A_STATEMENT = 400  # people a statement

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


class Decisions:
    """The scores of one Guest; of each person and model the last one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def remember(self, model_id: str, scores: Sequence[tuple[str, str, int, tuple[str, ...], int]]) -> None:
        """Store scores of a model; those of before about the same people are replaced.

        Parameters
        ----------
        scores : sequence of tuple
            Person, digest of the Guest's values, sum, Hosts without a record, version of the policy: the columns of
            :class:`StoredDecision`, of which thousands would take longer to make than to store.
        """
        if not scores:
            return
        now = datetime.now(UTC).isoformat(timespec="seconds")
        absent_text: dict[tuple[str, ...], str] = {}
        rows = []
        for subject, digest, units, absent, policy in scores:
            if absent not in absent_text:
                absent_text[absent] = json.dumps(absent)
            rows.append(
                {
                    "model_id": model_id,
                    "subject": subject,
                    "own": digest,
                    "units": str(units),
                    "absent": absent_text[absent],
                    "policy": policy,
                    "created": now,
                }
            )
        with self._database.write() as session:
            execute_many(session, _REMEMBER, rows)

    def of(self, model_id: str, subjects: Sequence[str], now: datetime | None = None) -> dict[str, StoredDecision]:
        """Return person → the last score by a model that is not older than :data:`DECISION_RETENTION`."""
        since = ((now or datetime.now(UTC)) - DECISION_RETENTION).isoformat(timespec="seconds")
        stored: dict[str, StoredDecision] = {}
        with self._database.read() as session:
            for start in range(0, len(subjects), PEOPLE_A_STATEMENT):
                chunk = subjects[start : start + PEOPLE_A_STATEMENT]
                rows = select(StoredDecision).where(
                    StoredDecision.model_id == model_id,
                    StoredDecision.subject.in_(chunk),
                    StoredDecision.created >= since,
                )
                for decision in session.scalars(rows):
                    stored[decision.subject] = decision
        return stored

    def about(self, person: str) -> list[tuple[str, int, str]]:
        """Return model, version of the policy and time of each score of a person."""
        with self._database.read() as session:
            return [(row.model_id, row.policy, row.created) for row in session.execute(_ABOUT, {"subject": person})]

    def forget(self, person: str) -> None:
        """Delete what is stored about a person."""
        with self._database.write() as session:
            session.execute(delete(StoredDecision).where(StoredDecision.subject == person))
