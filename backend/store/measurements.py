"""What was measured as evidence about a model, kept until it is measured again: numbers with their intervals, of groups only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import String, Text, create_engine, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from backend.errors import ModelError


@dataclass(frozen=True)
class Kept:
    """One measurement: its rows, and what it was made on (empty where that was not kept)."""

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

    def put(self, model: str, kind: str, feature: str, kept: Kept) -> None:
        """Keep what was measured; an older measurement of the same is replaced.

        Parameters
        ----------
        model : str
            Content hash of the Guest's partial model.
        kind : {"disparity", "proxies"}
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with Session(self._engine) as session, session.begin():
            body = json.dumps({"rows": kept.rows, "basis": kept.basis})
            session.merge(_Row(model=model, kind=kind, feature=feature, created=now, body=body))

    def of(self, model: str, kind: str) -> dict[str, Kept]:
        """Feature → what was measured; early homes kept rows alone."""
        with Session(self._engine) as session:
            query = select(_Row).where(_Row.model == model, _Row.kind == kind).order_by(_Row.feature)
            found = {row.feature: json.loads(row.body) for row in session.scalars(query)}
        return {name: Kept(body, {}) if isinstance(body, list) else Kept(**body) for name, body in found.items()}

    def close(self) -> None:
        """Release the database."""
        self._engine.dispose()
