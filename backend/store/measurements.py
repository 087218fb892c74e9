"""Measured evidence about models, kept until it is measured again: figures of groups with their intervals, never of a person."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import String, Text, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from backend.store.database import open_database, timestamp


@dataclass(frozen=True)
class Kept:
    """One measurement: its rows, and the data it was made on (empty where that was not recorded)."""

    rows: list[dict[str, Any]]
    basis: dict[str, Any]


class _Base(DeclarativeBase):
    pass


class _Row(_Base):
    __tablename__ = "measurements"
    model: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20), primary_key=True)
    feature: Mapped[str] = mapped_column(String(200), primary_key=True)
    created: Mapped[str] = mapped_column(String(40))
    body: Mapped[str] = mapped_column(Text)


class Measurements:
    """One party's measurements; `where` is a folder (SQLite in ``measurements.db``) or a database URL."""

    def __init__(self, where: Path | str) -> None:
        self._engine = open_database(where, "measurements.db", _Base)

    def put(self, model: str, kind: str, feature: str, kept: Kept) -> None:
        """Store a measurement in place of an older one of the same kind.

        Parameters
        ----------
        model : str
            Content hash of the Guest's partial model.
        kind : str
            E.g. ``disparity``, ``proxies``.
        """
        row = _Row(model=model, kind=kind, feature=feature, created=timestamp(), body=json.dumps(vars(kept)))
        with Session(self._engine) as session, session.begin():
            session.merge(row)

    def of(self, model: str, kind: str) -> dict[str, Kept]:
        """Feature → measurement."""
        with Session(self._engine) as session:
            query = select(_Row).where(_Row.model == model, _Row.kind == kind).order_by(_Row.feature)
            bodies = {row.feature: json.loads(row.body) for row in session.scalars(query)}
        # early versions stored the rows alone
        return {name: Kept(body, {}) if isinstance(body, list) else Kept(**body) for name, body in bodies.items()}

    def close(self) -> None:
        """Release the database."""
        self._engine.dispose()
