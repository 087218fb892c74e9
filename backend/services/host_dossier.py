"""The Host's side of a dossier: its form, and the file that it signs. Runs where the Host's table and folder are."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from backend.crypto.signing import SigningKey
from backend.data.federation import Party
from backend.data.table import PartyTable, read_table
from backend.errors import ParameterError
from backend.evaluation.column_summary import drift, summary
from backend.ops.atomic_file import write_whole
from backend.reports.dossier import DossierFile, answers_of, sign, template, to_text
from backend.services.workspace import Workspace
from backend.store.key_file import kept_key
from backend.store.party_store import PartyStore

FORM = "dossier.toml"
REFERENCE_FILE = "dossier-reference.json"
SIGNED = "dossier-signed.json"
# of two dossiers of other records: who joins or leaves a day later is not to be read off their difference
DAYS_BETWEEN = 28


class HostDossier:
    """One Host's dossier."""

    def __init__(self, workspace: Workspace, federation: str, host: str) -> None:
        self._workspace = workspace
        self._federation = workspace.federation(federation)
        if host not in [party.name for party in self._federation.hosts]:
            raise ParameterError(
                "unknown_host",
                name=host,
                federation=federation,
                known=tuple(party.name for party in self._federation.hosts),
            )
        self._party: Party = self._federation.party(host)
        self._folder: Path = workspace.home / "parties" / federation / host

    def template(self, language: str = "en") -> str:
        """Return the form, with what was signed last."""
        form = self._folder / FORM
        if form.exists():
            answers = answers_of(form.read_text(encoding="utf-8"), self._party)
        else:
            answers = {}
        return template(self._party, answers, language)

    def sign(self, text: str, *, today: date | None = None) -> DossierFile:
        """Sign a form that is filled in; what is measured comes from the Host's own table, and drift since each training of a model.

        Raises
        ------
        ParameterError
            The form has gaps; or the records have changed within :data:`DAYS_BETWEEN` days of the last signature.
        """
        day = today or datetime.now(UTC).date()
        answers = answers_of(text, self._party)
        table = read_table(self._federation, self._party.name)
        now = _digest(table)
        last = self._last()
        if last and now != last["records"]:
            past = (day - date.fromisoformat(last["day"])).days
            if past < DAYS_BETWEEN:
                raise ParameterError("dossiers_too_close", days=past, least=DAYS_BETWEEN)
        measured = {f.name: summary(f, table.columns[f.name]) for f in self._party.features}
        references, trained = self._trainings()
        since = []
        for training_day, columns in references:
            drifts = {f.name: drift(f, table.columns[f.name], columns.get(f.name)) for f in self._party.features}
            since.append((training_day, drifts))
        dossier = sign(
            self._federation.name, self._party, answers, measured, day.isoformat(), since, trained, self._key()
        )
        write_whole(self._folder / FORM, text.encode())
        write_whole(self._folder / SIGNED, to_text(dossier).encode())
        write_whole(self._folder / REFERENCE_FILE, json.dumps({"day": day.isoformat(), "records": now}).encode())
        return dossier

    def signed(self) -> str:
        """Return the file that was signed last; raises ParameterError if there is none."""
        file = self._folder / SIGNED
        if not file.exists():
            raise ParameterError("no_dossier_signed", host=self._party.name)
        return file.read_text(encoding="utf-8")

    def public_key(self) -> str:
        """Return what the Host's signatures are checked with, hexadecimal."""
        return self._key().public

    def _last(self) -> dict[str, str] | None:
        """Day and records of the last signature."""
        file = self._folder / REFERENCE_FILE
        stored: dict[str, Any] = json.loads(file.read_bytes()) if file.exists() else {}
        if "records" in stored:
            return stored
        last: dict[str, str] | None = stored.get("last")
        return last

    def _trainings(self) -> tuple[list[tuple[str, dict[str, Any]]], dict[str, int]]:
        """Days and columns as they were counted at trainings, each once, ascending; and model → its place among them."""
        counted = {}
        for model, training in self._store().trainings_counted().items():
            _, columns = training
            if columns:
                counted[model] = training
        distinct = sorted(set(counted.values()))
        references = [(day, json.loads(columns)) for day, columns in distinct]
        place_of = {model: distinct.index(training) for model, training in sorted(counted.items())}
        return references, place_of

    def _store(self) -> PartyStore:
        return PartyStore(self._workspace.runtime(self._federation.name).operator.database(self._party.name))

    def _key(self) -> SigningKey:
        numbers, _ = kept_key(self._folder / "signing.key", lambda: SigningKey.generate().to_numbers())
        return SigningKey.from_numbers(numbers)


def _digest(table: PartyTable) -> str:
    """SHA-256 of all records, in any order of the rows; stays with the Host."""
    columns = [table.columns[name].tolist() for name in sorted(table.columns)]
    rows = sorted(repr(row) for row in zip(table.ids, *columns, strict=True))
    return sha256("\n".join(rows).encode()).hexdigest()
