"""What was measured as evidence about a model, kept until it is measured anew: numbers with their intervals, of groups only."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import String, Text, create_engine, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from backend.errors import ModelError


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
    """One party's measurements.

    Parameters
    ----------
    where : Path or str
        A folder (SQLite in ``measurements.db``) or a database URL.
    """

    def __init__(self, where: Path | str) -> None:
        if isinstance(where, Path):
            where.mkdir(parents=True, exist_ok=True, mode=0o700)
            where = f"sqlite:///{where / 'measurements.db'}"
        pool = {"poolclass": NullPool} if where.startswith("sqlite") else {}
        self._engine = create_engine(where, **pool)
        try:
            _Base.metadata.create_all(self._engine)
        except SQLAlchemyError as error:
            raise ModelError(f"The measurements {where!r} cannot be opened: {type(error).__name__}.") from error

    def put(self, model: str, kind: str, feature: str, rows: list[dict[str, Any]]) -> None:
        """Keep what was measured; an older measurement of the same is replaced.

        Parameters
        ----------
        model : str
            Content hash of the Guest's half.
        kind : {"disparity", "proxies"}
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with Session(self._engine) as session, session.begin():
            session.merge(_Row(model=model, kind=kind, feature=feature, created=now, body=json.dumps(rows)))

    def of(self, model: str, kind: str) -> dict[str, list[dict[str, Any]]]:
        """Feature → what was measured."""
        with Session(self._engine) as session:
            query = select(_Row).where(_Row.model == model, _Row.kind == kind).order_by(_Row.feature)
            return {row.feature: json.loads(row.body) for row in session.scalars(query)}

    def close(self) -> None:
        """Release the database."""
        self._engine.dispose()
