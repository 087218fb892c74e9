"""Rows of a Host's database about one model, read for a pack and written from one, in one transaction. Knows nothing of a Guest's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, cast

from sqlalchemy import ColumnElement, Table, case, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from backend.errors import SecurityError
from backend.store.accountant import crowd_name
from backend.store.approvals import GRANTED
from backend.store.model_rows import NUMBER, Rows, check_columns, check_new, read_rows, write_rows
from backend.store.schema import AnswerRow, Approval, ArtefactRow, Base, CrowdRow, SecretRow

TABLES: tuple[type[Base], ...] = (ArtefactRow, Approval, AnswerRow, CrowdRow, SecretRow)
DITHER = "dither"  # the secret that a Host's dither follows from


def host_rows(session: Session, model_id: str, structure: str, guest: str) -> Rows:
    """Return what a Host holds about a model: its half, the day of its training, what was allowed, what was answered, the dither's secret.

    Answers are all that were given to this Guest: a person's account does not begin again in another home.
    """
    about: dict[type[Base], ColumnElement[bool]] = {
        ArtefactRow: ArtefactRow.model_id.in_((model_id, f"{model_id}.day", f"{model_id}.columns")),
        Approval: Approval.subject == structure,
        AnswerRow: AnswerRow.guest == guest,
        CrowdRow: CrowdRow.crowd.in_(select(AnswerRow.subject).where(AnswerRow.guest == guest)),
        SecretRow: SecretRow.name == DITHER,
    }
    rows = {}
    for table in TABLES:
        rows[table.__tablename__] = read_rows(session, table, about[table], numbers=table is Approval)
    for row in rows[SecretRow.__tablename__]:
        row["value"] = row["value"].hex()
    return rows


def write_host_rows(session: Session, rows: Rows, model_id: str, sign: Callable[[Approval], str]) -> None:
    """Write the rows of a Host's half.

    Parameters
    ----------
    sign : callable
        Signs a grant under the number that it gets here.

    Raises
    ------
    SecurityError
        If this home adds dither by another secret: asked at both homes, a Guest would average it away.
    """
    check_new(session, model_id)
    secrets = rows[SecretRow.__tablename__]
    for row in secrets:
        row["value"] = bytes.fromhex(row["value"])
        existing = session.get(SecretRow, row["name"])
        if existing is not None and existing.value != row["value"]:
            raise SecurityError("pack_of_other_dither")
    write_rows(session, ArtefactRow, rows[ArtefactRow.__tablename__])
    for row in rows[Approval.__tablename__]:
        approval = approval_of(row)
        session.add(approval)
        session.flush()
        if approval.state == GRANTED:
            approval.signature = sign(approval)
    answers = rows[AnswerRow.__tablename__]
    members = rows[CrowdRow.__tablename__]
    check_columns(AnswerRow, answers)
    check_columns(CrowdRow, members)
    _name_crowds(answers, members)
    for table, counted in ((AnswerRow, answers), (CrowdRow, members)):
        if counted:  # one statement for all: there may be a hundred thousand
            session.execute(_merging(table, session.get_bind().dialect.name), counted)
    write_rows(session, SecretRow, [row for row in secrets if session.get(SecretRow, row["name"]) is None])


def _name_crowds(answers: list[dict[str, Any]], members: list[dict[str, Any]]) -> None:
    """Name each crowd by its present members: a person erased in the other home has another pseudonym here."""
    crowds: defaultdict[str, list[str]] = defaultdict(list)
    for row in members:
        crowds[row["crowd"]].append(row["subject"])
    names = {crowd: crowd_name(people) for crowd, people in crowds.items()}
    for row in members:
        row["crowd"] = names[row["crowd"]]
    for row in answers:
        row["subject"] = names.get(row["subject"], row["subject"])


def _merging(counted: type[Base], dialect: str) -> sqlite.Insert | postgresql.Insert:
    """Return the statement that writes rows of a table, or keeps the larger of each count if a row is known."""
    table = cast("Table", counted.__table__)
    statement = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    larger = {}
    for column in table.columns:
        if not column.primary_key:
            new = statement.excluded[column.name]
            larger[column.name] = case((new > column, new), else_=column)
    keys = list(table.primary_key)
    if not larger:
        return statement.on_conflict_do_nothing(index_elements=keys)
    return statement.on_conflict_do_update(index_elements=keys, set_=larger)


def approval_of(row: Mapping[str, Any]) -> Approval:
    """Return a request as its row has it, without its number and signature."""
    fields = {"about" if name == "body" else name: value for name, value in row.items()}
    del fields[NUMBER], fields["signature"]
    return Approval(**fields)
