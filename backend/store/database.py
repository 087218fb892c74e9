"""How a party's databases are opened: an SQLite file in the party's folder, or a database URL. Knows no table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.pool import NullPool

from backend.errors import ModelError


def open_database(where: Path | str, file: str, tables: type[DeclarativeBase]) -> Engine:
    """Open a database and create the tables that it does not have yet.

    Parameters
    ----------
    where : Path or str
        A folder (SQLite in `file`) or a database URL such as ``postgresql+psycopg://…``.

    Raises
    ------
    ModelError
        The database cannot be opened.
    """
    if isinstance(where, Path):
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        where = f"sqlite:///{where / file}"
    # SQLite connects per session: cheap, and no file stays open behind a store that nobody closed
    engine = create_engine(where, **({"poolclass": NullPool} if where.startswith("sqlite") else {}))
    try:
        tables.metadata.create_all(engine)
    except SQLAlchemyError as error:
        raise ModelError(
            f"The database {where!r} cannot be opened: {type(error).__name__}. Check that it is writable."
        ) from error
    return engine


def column_values(row: DeclarativeBase) -> dict[str, Any]:
    """Column → value of one row."""
    return {column.key: getattr(row, column.key) for column in row.__table__.columns}


def timestamp() -> str:
    """Now: UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
