"""One party's models: its partial models, and the records about them.

A database is opened for one party, so a Host's artefacts cannot be reached through the Guest's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from sqlalchemy import delete, or_, select

from backend.errors import ModelError
from backend.store.database import Database, prepared
from backend.store.schema import ArtefactRow, KeptHead, RecordRow, SecretRow
from backend.store.trainings import HostTrainings

SECRET_BYTES = 32
# after a model's id: artefacts that hold the day of its training, and columns as counted then
_DAY = ".day"
_COLUMNS = ".columns"
SEALED = (
    ".sealed"  # after a model's id: an artefact that holds which share of scores may fit one path before it is opened
)
AGREED_NAMES = "agreed names"  # the secret that names of models in agreements are made with
# made once: to put a statement together takes longer than to execute it
_RECORD = prepared("SELECT body FROM records WHERE model_id = :model", "body")
_HASH = prepared("SELECT content_hash FROM artefacts WHERE model_id = :model", "content_hash")
_SECRET = prepared("SELECT value FROM secrets WHERE name = :name", "value")
PSEUDONYMS = "pseudonyms"  # the secret that pseudonyms are made with


class PartyStore:
    """One party's stored data about models."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.trainings = HostTrainings(database)

    def put_artefact(self, model_id: str, text: str) -> str:
        """Store a partial model and its content hash, which is returned; storing it again changes nothing."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        with self._database.write() as session:
            session.merge(ArtefactRow(model_id=model_id, text=text, content_hash=digest))
        return digest

    def artefact(self, model_id: str) -> str:
        """Text of a partial model.

        Raises ModelError if the model is unknown here, or the text does not have the hash it was stored with.
        """
        with self._database.read() as session:
            row = session.get(ArtefactRow, model_id)
        if row is None:
            raise ModelError("model_not_stored", model=model_id)
        if hashlib.sha256(row.text.encode()).hexdigest() != row.content_hash:
            raise ModelError("model_changed", model=model_id)
        return row.text

    def model_ids(self) -> list[str]:
        """Return the ids of all artefacts, sorted; data attached to a model have a point in the name."""
        with self._database.read() as session:
            return list(session.scalars(select(ArtefactRow.model_id).order_by(ArtefactRow.model_id)))

    def content_hash(self, model_id: str) -> str:
        """Return the hash that an artefact was stored with; empty if there is none."""
        about = {"model": model_id}
        return self._database.kept(("hash", model_id), lambda session: session.execute(_HASH, about).scalar()) or ""

    def put_training(self, model_id: str, day: date, columns: str) -> None:
        """Store the day on which a model was trained and the columns as counted then, unless an earlier training is known."""
        if not self.content_hash(f"{model_id}{_DAY}"):
            with self._database.write():
                self.put_artefact(f"{model_id}{_DAY}", day.isoformat())
                self.put_artefact(f"{model_id}{_COLUMNS}", columns)

    def trained_here(self, model_id: str) -> bool:
        """Return whether a model's training is noted here; an imported one has none."""
        return bool(self.content_hash(f"{model_id}{_DAY}"))

    def open(self, model_id: str, released_as: str, text: str) -> None:
        """Store a half as an open one; what was counted at its training goes with it. A sealed one is deleted."""
        with self._database.write():
            day = self.artefact(f"{model_id}{_DAY}")
            columns = self.artefact(f"{model_id}{_COLUMNS}")
            if self.content_hash(f"{model_id}{SEALED}"):
                self.drop(model_id)
            self.put_artefact(f"{released_as}{_DAY}", day)
            self.put_artefact(f"{released_as}{_COLUMNS}", columns)
            self.put_artefact(released_as, text)

    def drop(self, model_id: str) -> None:
        """Delete a sealed half and the data attached to it."""
        attached = ArtefactRow.model_id.startswith(f"{model_id}.", autoescape=True)
        with self._database.write() as session:
            session.execute(delete(ArtefactRow).where(or_(ArtefactRow.model_id == model_id, attached)))

    def trainings_counted(self) -> dict[str, tuple[str, str]]:
        """Model → the day of its training, and the columns as counted then."""
        with self._database.read() as session:
            rows = session.execute(
                select(ArtefactRow.model_id, ArtefactRow.text).where(
                    or_(*(ArtefactRow.model_id.endswith(end, autoescape=True) for end in (_DAY, _COLUMNS)))
                )
            )
            texts = {row.model_id: row.text for row in rows}
        days = {name.removesuffix(_DAY): day for name, day in texts.items() if name.endswith(_DAY)}
        return {model: (day, texts[f"{model}{_COLUMNS}"]) for model, day in days.items()}

    def put_record(self, model_id: str, body: dict[str, Any]) -> None:
        """Store what is known about a model."""
        with self._database.write() as session:
            session.merge(RecordRow(model_id=model_id, created=str(body["created"]), body=json.dumps(body)))

    def record(self, model_id: str) -> str | None:
        """Return the record of one model as the JSON text that was stored; None if there is none."""
        about = {"model": model_id}
        return self._database.kept(("record", model_id), lambda session: session.execute(_RECORD, about).scalar())

    def records(self) -> list[str]:
        """Return all records, newest first, each as the JSON text that was stored."""
        query = select(RecordRow.body).order_by(RecordRow.created.desc(), RecordRow.model_id)
        return list(self._database.kept("records", lambda session: tuple(session.scalars(query))))

    def put_audit_head(self, whose: str, head: KeptHead) -> None:
        """Keep one more head of another party's audit log; of two for one number, the first one stays."""
        with self._database.write() as session:
            if session.get(KeptHead, (head.number, whose)) is None:
                session.add(replace(head, whose=whose))

    def audit_heads(self, whose: str, below: int, max_heads: int) -> list[KeptHead]:
        """Return the newest `max_heads` heads of another party's audit log with numbers below `below`, newest first."""
        query = select(KeptHead).where(KeptHead.whose == whose, KeptHead.number < below)
        with self._database.read() as session:
            rows = session.scalars(query.order_by(KeptHead.number.desc()).limit(max_heads))
            return list(rows)

    def secret(self, name: str) -> bytes:
        """Return a long-term secret of the party, drawn when it is first asked for."""
        with self._database.read() as session:
            value: bytes | None = session.execute(_SECRET, {"name": name}).scalar()
        if value is None:
            with self._database.write() as session:
                row = session.get(SecretRow, name)
                if row is None:
                    row = SecretRow(name=name, value=secrets.token_bytes(SECRET_BYTES))
                    session.add(row)
                    session.flush()
                return row.value
        return value

    def agreed_name(self, structure: str) -> str:
        """Return the name of a model in an agreement: HMAC-SHA-256 of its structure under this party's secret, against guessing."""
        return hmac.digest(self.secret(AGREED_NAMES), structure.encode(), "sha256").hex()

    def pseudonym(self, person: str) -> str:
        """Return an erased person's pseudonym: HMAC-SHA-256 of the id under this party's secret; it begins with a space, as no id does."""
        return _pseudonym(self.secret(PSEUDONYMS), person)

    def pseudonyms(self, people: Iterable[str]) -> dict[str, str]:
        """Return pseudonym → person; empty if no person was ever erased."""
        with self._database.read() as session:
            secret: bytes | None = session.execute(_SECRET, {"name": PSEUDONYMS}).scalar()
        if secret is None:
            return {}
        return {_pseudonym(secret, person): person for person in people}


def _pseudonym(secret: bytes, person: str) -> str:
    return f" {hmac.digest(secret, person.encode(errors='surrogatepass'), 'sha256').hex()}"


def memory_store(texts: Mapping[str, str] | None = None) -> PartyStore:
    """Return a store that is forgotten with the process; `texts` are partial models by model id."""
    store = PartyStore(Database())
    for model_id, text in (texts or {}).items():
        store.put_artefact(model_id, text)
    return store
