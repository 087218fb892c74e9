"""Names and addresses on notices: stored with the federation at the Guest, with every earlier version, and logged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from backend.errors import ParameterError
from backend.reports.notice_details import (
    AGENCY,
    NoticeParty,
    checked,
    fields_of,
    from_toml,
    label_of,
    missing,
    of_file,
    stated,
    to_toml,
)
from backend.services.audit import Auditor, Note, recorded
from backend.services.workspace import Workspace

if TYPE_CHECKING:
    from backend.data.federation import Federation

__all__ = ["AGENCY", "NoticeDetails", "NoticeParty", "fields_of", "label_of"]

ARTEFACT = "notice.details"  # of a federation's Guest; no model's id has a full stop


class NoticeDetails:
    """The facts that notices of a home's federations state about their parties."""

    def __init__(self, workspace: Workspace, auditor: Auditor) -> None:
        self._workspace = workspace
        self._auditor = auditor

    def federation(self, name: str) -> Federation:
        """Return the federation as notices state it."""
        versions = self._versions(name)
        parties = versions[-1]["parties"] if versions else {}
        return stated(
            self._workspace.federation(name), {p: NoticeParty.model_validate(fields) for p, fields in parties.items()}
        )

    def of(self, name: str) -> dict[str, NoticeParty]:
        """Return the current details, by party."""
        return of_file(self.federation(name))

    def missing(self, name: str, language: str) -> tuple[tuple[str, str], ...]:
        """Party and field of what a notice in that language would call not provided."""
        return missing(self.federation(name), language)

    def template(self, name: str, language: str = "en") -> str:
        """Return the current details as TOML; empty fields are to be filled in."""
        return to_toml(self.federation(name), language)

    def keep_toml(self, name: str, text: str) -> None:
        """See :meth:`keep`; from a file in the form of :meth:`template`."""
        self._keep(name, from_toml(text, self._workspace.federation(name)))

    def keep(self, name: str, details: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep fields by party in place of the earlier ones; what is empty or left out is as the federation file has it.

        Raises
        ------
        ParameterError
            An unknown party or field, a text that is too long, or nothing that was not there.
        """
        self._keep(name, checked(details, self._workspace.federation(name)))

    @recorded("notice-details")
    def _keep(self, note: Note, name: str, details: Mapping[str, NoticeParty]) -> None:
        federation = self._workspace.federation(name)
        file = of_file(federation)
        old_details = self.of(name)
        new_details = of_file(stated(federation, details))
        changed = [party for party, party_details in new_details.items() if party_details != old_details[party]]
        if not changed:
            raise ParameterError("nothing_changed")
        # what says the same as the file follows it when it is changed
        body: dict[str, dict[str, Any]] = {}
        for party, party_details in details.items():
            fields = {}
            for field, value in party_details:
                if value and value != getattr(file[party], field):
                    fields[field] = value
            # That a party is no agency is stated, too, if the file says otherwise.
            agency = party_details.reporting_agency
            if agency not in (None, file[party].reporting_agency):
                fields[AGENCY] = agency
            body[party] = fields
        version = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "person": self._auditor.actor,
            "parties": body,
        }
        text = json.dumps([*self._versions(name), version])
        note.federation = name
        note.body = {
            "changed": changed,
            "details_sha256": sha256(json.dumps(body, sort_keys=True).encode()).hexdigest(),
        }

        def keep() -> None:
            self._workspace.guest_store(name).put_artefact(ARTEFACT, text)

        note.keep = keep

    def _versions(self, name: str) -> list[dict[str, Any]]:
        store = self._workspace.guest_store(name)
        return json.loads(store.artefact(ARTEFACT)) if store.content_hash(ARTEFACT) else []
