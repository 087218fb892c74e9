"""Rows of a party's database about one model, in a form that another home of the party can take over. Knows no party's tables.

A row is taken as its table has it, but for numbers that the database gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, insert, select
from sqlalchemy.orm import Session

from backend.errors import ParameterError
from backend.store.schema import ArtefactRow, Base

Rows = dict[str, list[dict[str, Any]]]  # table → its rows, column by column
NUMBER = "number"  # a column that the database fills


def read_rows(
    session: Session, table: type[Base], about: ColumnElement[bool], *, numbers: bool = False
) -> list[dict[str, Any]]:
    """Return rows of a table in the order of their keys; with `numbers` those that the database gave, too."""
    columns = table.__table__.columns
    left_out = () if numbers else (NUMBER,)
    keys = [column for column in columns if column.primary_key]
    rows = session.execute(select(*columns).where(about).order_by(*keys)).mappings()
    return [{name: value for name, value in row.items() if name not in left_out} for row in rows]


def check_new(session: Session, model_id: str) -> None:
    """Raise ParameterError if the model is here already."""
    if session.get(ArtefactRow, model_id) is not None:
        raise ParameterError("pack_here_already", model=model_id)


def write_rows(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows; a table's columns are those of this version, or nothing is written."""
    check_columns(table, rows)
    if rows:
        session.execute(insert(table), [dict(row) for row in rows])


def check_columns(table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ParameterError if a row's columns are not those of this version."""
    expected = {column.name for column in table.__table__.columns} - {NUMBER}
    for row in rows:
        if set(row) != expected:
            raise ParameterError("pack_rows_differ", table=table.__tablename__)
