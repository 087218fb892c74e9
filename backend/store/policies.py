"""The policies of one Guest's models: every version that was proposed, and which one holds on a day. Knows no role."""

from __future__ import annotations

from datetime import date

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.errors import ParameterError
from backend.policy.bands import Policy
from backend.store.database import Database, timestamp
from backend.store.schema import PolicyVersion

__all__ = ["Policies", "PolicyVersion"]


class Policies:
    """Versions of policies by model; nothing that was proposed is lost."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def versions(self, model_id: str) -> tuple[PolicyVersion, ...]:
        """Return every version of a model's policy, oldest first."""
        return self._database.kept("policies", _by_model).get(model_id, ())

    def in_force(self, model_id: str, day: date) -> PolicyVersion | None:
        """Return the version that holds on a UTC day: the newest approved one whose first day has come; None if there is none."""
        for version in reversed(self.versions(model_id)):
            if version.state == "approved" and version.first_day <= day.isoformat():
                return version
        return None

    def proposed(self, model_id: str) -> PolicyVersion | None:
        """Return the version that waits for a second person; None if none does."""
        for version in reversed(self.versions(model_id)):
            if version.state == "proposed":
                return version
        return None

    def propose(
        self, model_id: str, policy: Policy, *, owner: str, reason: str, first_day: str, person: str
    ) -> PolicyVersion:
        """Store a new version; one that still waits is superseded."""
        with self._database.write() as session:
            stored = session.scalars(select(PolicyVersion).where(PolicyVersion.model_id == model_id)).all()
            for version in stored:
                if version.state == "proposed":
                    version.state = "superseded"
            proposed = PolicyVersion(
                model_id=model_id,
                version=1 + max((version.version for version in stored), default=0),
                body=policy.plain(),
                owner=owner,
                reason=reason,
                first_day=first_day,
                proposed_by=person,
                proposed=timestamp(),
            )
            session.add(proposed)
            session.flush()
            return proposed

    def approve(self, model_id: str, version: int, *, person: str, note: str = "") -> PolicyVersion:
        """Store that a second person approved a version.

        Raises
        ------
        ParameterError
            If this version does not wait for approval.
        """
        with self._database.write() as session:
            query = select(PolicyVersion).where(PolicyVersion.model_id == model_id, PolicyVersion.version == version)
            proposed = session.scalars(query).one_or_none()
            if proposed is None or proposed.state != "proposed":
                raise ParameterError("policy_does_not_wait", model=model_id, version=version)
            proposed.state = "approved"
            proposed.approved_by = person
            proposed.approved = timestamp()
            proposed.note = note
            session.flush()
            return proposed


def _by_model(session: Session) -> dict[str, tuple[PolicyVersion, ...]]:
    """Return model → its versions, oldest first."""
    versions: dict[str, tuple[PolicyVersion, ...]] = {}
    for version in session.scalars(select(PolicyVersion).order_by(PolicyVersion.number)):
        versions[version.model_id] = (*versions.get(version.model_id, ()), version)
    return versions
