"""Dossiers as the Guest has them: taken in if the signature fits, stored by Host, shown and reported."""

from __future__ import annotations

import json

from backend.crypto.signing import read_public
from backend.errors import ParameterError, SecurityError
from backend.reports.dossier import digest, previous, read
from backend.reports.schema import DossierSection
from backend.services.audit import Auditor, Note, recorded
from backend.services.workspace import Workspace

MAX_CHARACTERS = 2_000_000  # of a file


class Dossiers:
    """What Hosts have signed about their columns."""

    def __init__(self, workspace: Workspace, auditor: Auditor) -> None:
        self._workspace = workspace
        self._auditor = auditor

    def of(self, federation: str) -> tuple[DossierSection, ...]:
        """Return the newest dossier of each Host that gave one, in the federation's order."""
        store = self._workspace.guest_store(federation)
        hosts = [host.name for host in self._workspace.federation(federation).hosts]
        return tuple(previous(store.artefact(_artefact(h))) for h in hosts if store.content_hash(_artefact(h)))

    def lacking(self, federation: str) -> tuple[str, ...]:
        """Hosts without a dossier."""
        hosts_with_dossier = {dossier.host for dossier in self.of(federation)}
        return tuple(h.name for h in self._workspace.federation(federation).hosts if h.name not in hosts_with_dossier)

    @recorded("dossier")
    def take(self, note: Note, federation: str, text: str, public_key: str = "") -> DossierSection:
        """Take a Host's dossier in, in place of an earlier one.

        Parameters
        ----------
        public_key : str
            The Host's, hexadecimal or PEM, got by another way than the file; empty = the one that signed its first dossier, or any
            for a first one.

        Raises
        ------
        ParameterError
            The file is no dossier of this federation, or is older than the one that is kept.
        SecurityError
            The signature does not fit, or another key made it.
        """
        if len(text) > MAX_CHARACTERS:
            raise ParameterError("dossier_too_long", letters=len(text), most=MAX_CHARACTERS)
        definition = self._workspace.federation(federation)
        dossier = read(text, definition)
        note.federation = federation
        note.body = {"host": dossier.host, "dossier_sha256": digest(dossier), "public_key": dossier.public_key}
        stored = next((d for d in self.of(federation) if d.host == dossier.host), None)
        if public_key:
            expected = read_public(public_key)
        elif stored:
            expected = stored.public_key
        else:
            expected = dossier.public_key
        if dossier.public_key != expected:
            raise SecurityError("dossier_of_other_key", host=dossier.host, key=expected[:16])
        if stored and dossier.day < stored.day:
            raise ParameterError("dossier_older", day=dossier.day, stored=stored.day)

        def keep() -> None:
            body = json.dumps(dossier.model_dump(mode="json"))
            self._workspace.guest_store(federation).put_artefact(_artefact(dossier.host), body)

        note.keep = keep
        return dossier


def _artefact(host: str) -> str:
    """Name of the artefact that holds a Host's dossier; no model's id has a dot."""
    return f"dossier.{host}"
