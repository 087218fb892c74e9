"""Rows of the Guest's database about one model, read for a pack and written from one, in one transaction."""

from __future__ import annotations

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from backend.store.model_rows import Rows, check_new, read_rows, write_rows
from backend.store.model_states import APPROVED, IN_USE
from backend.store.schema import (
    ArtefactRow,
    Base,
    MeasurementRow,
    ModelState,
    ModelStep,
    PolicyVersion,
    RecordRow,
    ReviewRow,
    SignOff,
)

# In the order in which rows may be written: what names another row comes after it.
TABLES: tuple[type[Base], ...] = (
    ArtefactRow,
    RecordRow,
    ModelState,
    ModelStep,
    PolicyVersion,
    ReviewRow,
    SignOff,
    MeasurementRow,
)


def guest_rows(session: Session, model_id: str, content_hash: str) -> Rows:
    """Return what the Guest holds about a model: both artefacts, record, name and steps, policies, reviews, sign-offs, measurements."""
    about: dict[type[Base], ColumnElement[bool]] = {
        ArtefactRow: ArtefactRow.model_id.in_((model_id, f"{model_id}.parts")),
        RecordRow: RecordRow.model_id == model_id,
        ModelState: ModelState.model_id == model_id,
        ModelStep: ModelStep.model_id == model_id,
        PolicyVersion: PolicyVersion.model_id == model_id,
        ReviewRow: ReviewRow.model == content_hash,
        SignOff: SignOff.model == content_hash,
        MeasurementRow: MeasurementRow.model == content_hash,
    }
    return {table.__tablename__: read_rows(session, table, about[table]) for table in TABLES}


def write_guest_rows(session: Session, rows: Rows, model_id: str, content_hash: str) -> None:
    """Write the rows of a Guest's model; a model in use comes as an approved one if another is in use here."""
    check_new(session, model_id)
    in_use = session.scalars(select(ModelState.model_id).where(ModelState.state == IN_USE)).first()
    names = {name.casefold() for name in session.scalars(select(ModelState.name)) if name}
    for row in rows[ModelState.__tablename__]:
        if in_use is not None and row["state"] == IN_USE:
            row["state"] = APPROVED
        if row["name"].casefold() in names:
            row["name"] = ""
    session.execute(delete(MeasurementRow).where(MeasurementRow.model == content_hash))
    for table in TABLES:
        write_rows(session, table, rows[table.__tablename__])
