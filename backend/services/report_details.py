"""The operator's details for a model's report: stored with the model at the Guest, with every earlier version, and logged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from backend.errors import GlassleafError, ParameterError
from backend.reports.details import BY_PARTY, FIELD_GROUPS, checked, from_toml, missing, to_toml
from backend.reports.schema import DetailsSection
from backend.results import ModelRecord
from backend.services.audit import Auditor, Note, recorded
from backend.services.registry import Registry
from backend.services.workspace import Workspace

__all__ = ["BY_PARTY", "FIELD_GROUPS", "DetailsSection", "ReportDetails", "Version"]


@dataclass(frozen=True)
class Version:
    """The details of one time; `time` in UTC, ISO 8601."""

    time: str
    person: str
    details: DetailsSection


class ReportDetails:
    """Details of a home's models."""

    def __init__(self, workspace: Workspace, models: Registry, auditor: Auditor) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor

    def get(self, model_id: str) -> DetailsSection | None:
        """Return the current details; None if none were provided."""
        versions = self.history(model_id)
        return versions[-1].details if versions else None

    def history(self, model_id: str) -> tuple[Version, ...]:
        """Return every version, oldest first."""
        record = self._models.get(model_id)
        store = self._workspace.guest_store(record.federation)
        if not store.content_hash(_artefact(record)):
            return ()
        body = json.loads(store.artefact(_artefact(record)))
        return tuple(Version(v["time"], v["person"], DetailsSection(**v["details"])) for v in body)

    def parties(self, model_id: str) -> tuple[str, ...]:
        """Names of the parties, each of which has something to say about its data."""
        record = self._models.get(model_id)
        return (record.guest, *record.hosts)

    def missing(self, model_id: str) -> tuple[str, ...]:
        """Return the fields that are not provided."""
        return missing(self.get(model_id), self.parties(model_id))

    def template(self, model_id: str, language: str = "en") -> str:
        """Return the current details as TOML, each under its question; empty fields are to be filled in."""
        return to_toml(self.get(model_id) or DetailsSection(), self.parties(model_id), language)

    def keep_toml(self, model_id: str, text: str) -> DetailsSection:
        """See :meth:`keep`; from a file in the form of :meth:`template`: what it leaves out becomes empty."""
        return self.keep(model_id, from_toml(text, self.parties(model_id)).model_dump())

    @recorded("details")
    def keep(self, note: Note, model_id: str, values: Mapping[str, Any]) -> DetailsSection:
        """Keep details in place of the current ones, which stay as an earlier version.

        Raises
        ------
        ParameterError
            An unknown field or party, a text that is too long, or a challenger that is no other model of the federation.
        """
        record = self._models.get(model_id)
        details = checked(values, self.parties(record.id))
        details = details.model_copy(update={"challenger": self._challenger(record, details.challenger)})
        earlier = self.history(record.id)
        stood = (earlier[-1].details if earlier else DetailsSection()).model_dump()
        changed = sorted(name for name, value in details.model_dump().items() if value != stood[name])
        if not changed:
            raise ParameterError("details_unchanged")
        time = datetime.now(UTC).isoformat(timespec="seconds")
        versions = [*earlier, Version(time, self._auditor.actor, details)]
        text = json.dumps([{**vars(version), "details": version.details.model_dump()} for version in versions])
        note.about(record, changed=changed, details_sha256=sha256(details.model_dump_json().encode()).hexdigest())

        def keep() -> None:
            self._workspace.guest_store(record.federation).put_artefact(_artefact(record), text)

        note.keep = keep
        return details

    def _challenger(self, record: ModelRecord, challenger_id: str) -> str:
        """Return the challenger's whole id."""
        if not challenger_id:
            return ""
        try:
            challenger = self._models.get(challenger_id)
        except GlassleafError as error:
            raise ParameterError("challenger_unknown", why=error.remarks[0]) from None
        if challenger.federation != record.federation or challenger.id == record.id:
            raise ParameterError("challenger_elsewhere", model=challenger.id, federation=record.federation)
        return challenger.id


def _artefact(record: ModelRecord) -> str:
    """Name of the artefact that holds every version."""
    return f"{record.id}.details"
