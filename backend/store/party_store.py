"""One party's own database: its partial models, the records about them, other parties' audit heads and finished score jobs.

A store is opened for one party, so whoever holds the Guest's store cannot reach a Host's artefacts through it.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, String, Text, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from backend.errors import ModelError
from backend.store.audit_log import KeptHead
from backend.store.database import column_values, open_database


class _Base(DeclarativeBase):
    pass


class _Artefact(_Base):
    """A party's partial model, as canonical JSON."""

    __tablename__ = "artefacts"
    model_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    content_hash: Mapped[str] = mapped_column(String(64))
    text: Mapped[str] = mapped_column(Text)


class _Record(_Base):
    """What the Guest knows about a model beside its partial model: metrics, parameters, how it was trained."""

    __tablename__ = "records"
    model_id: Mapped[str] = mapped_column(String(40), ForeignKey("artefacts.model_id"), primary_key=True)
    created: Mapped[str] = mapped_column(String(40))
    body: Mapped[str] = mapped_column(Text)


class _ScoreJob(_Base):
    """A finished score job: number of rows, duration, protocol; no score and no id."""

    __tablename__ = "score_jobs"
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    model_id: Mapped[str] = mapped_column(String(40))
    created: Mapped[str] = mapped_column(String(40))
    body: Mapped[str] = mapped_column(Text)


class _UnsignedHead(_Base):
    """The last head of another party's audit log that this party received before heads were signed (until 0.2); only read."""

    __tablename__ = "audit_heads"
    whose: Mapped[str] = mapped_column(String(200), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger)
    hash: Mapped[str] = mapped_column(String(64))


class _AuditHead(_Base):
    """A head of another party's audit log; every one that this party received."""

    __tablename__ = "signed_audit_heads"
    whose: Mapped[str] = mapped_column(String(200), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    hash: Mapped[str] = mapped_column(String(64))
    public_key: Mapped[str] = mapped_column(String(64))
    signature: Mapped[str] = mapped_column(String(128))


class PartyStore:
    """The database of one party; `where` is a folder (SQLite in ``store.db``) or a database URL."""

    def __init__(self, where: Path | str) -> None:
        self._engine = open_database(where, "store.db", _Base)

    def put_artefact(self, model_id: str, text: str, content_hash: str) -> None:
        """Store a partial model under its content hash; storing it again changes nothing."""
        with Session(self._engine) as session, session.begin():
            session.merge(_Artefact(model_id=model_id, text=text, content_hash=content_hash))

    def artefact(self, model_id: str) -> str:
        """Text of a partial model.

        Raises
        ------
        ModelError
            The model is unknown here, or the text does not have the hash it was stored with.
        """
        with Session(self._engine) as session:
            row = session.get(_Artefact, model_id)
        if row is None:
            raise ModelError(f"The model {model_id} is not in this party's store; train it again.")
        if hashlib.sha256(row.text.encode()).hexdigest() != row.content_hash:
            raise ModelError(
                f"The stored partial model of {model_id} does not have its content hash: it was changed. Train it again."
            )
        return row.text

    def put_record(self, model_id: str, body: dict[str, Any]) -> None:
        """Store what is known about a model."""
        created = str(body["created"])
        with Session(self._engine) as session, session.begin():
            session.merge(_Record(model_id=model_id, created=created, body=json.dumps(body)))

    def records(self) -> list[str]:
        """All records, newest first, each as the JSON text that was stored."""
        with Session(self._engine) as session:
            return list(session.scalars(select(_Record.body).order_by(_Record.created.desc(), _Record.model_id)))

    def put_score_job(self, model_id: str, body: dict[str, Any]) -> None:
        """Record a finished score job."""
        created = datetime.now(UTC).isoformat(timespec="seconds")
        with Session(self._engine) as session, session.begin():
            session.add(_ScoreJob(model_id=model_id, created=created, body=json.dumps(body)))

    def score_jobs(self, model_id: str) -> list[dict[str, Any]]:
        """Finished score jobs of a model, newest first."""
        with Session(self._engine) as session:
            query = select(_ScoreJob).where(_ScoreJob.model_id == model_id).order_by(_ScoreJob.number.desc())
            return [{"created": row.created, **json.loads(row.body)} for row in session.scalars(query)]

    def put_audit_head(self, whose: str, head: KeptHead) -> None:
        """Keep one more head of another party's audit log; of two for one number, the first one stays."""
        with Session(self._engine) as session, suppress(IntegrityError), session.begin():
            session.add(_AuditHead(whose=whose, **asdict(head)))

    def audit_heads(self, whose: str, below: int, most: int) -> list[KeptHead]:
        """The newest `most` heads of another party's audit log with numbers below `below`, newest first."""
        kept: list[KeptHead] = []
        with Session(self._engine) as session:
            for table in (_AuditHead, _UnsignedHead):
                query = select(table).where(table.whose == whose, table.number < below)
                rows = session.scalars(query.order_by(table.number.desc()).limit(most - len(kept)))
                kept += [KeptHead(**{k: v for k, v in column_values(row).items() if k != "whose"}) for row in rows]
        return kept

    def close(self) -> None:
        """Release the database."""
        self._engine.dispose()
