"""How long each table of a party's database keeps a row, and why; deletes what is older. Knows no row's meaning beyond its age."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import CursorResult, Integer, delete

from backend.store.accountant import SCORED_DAYS, WINDOW_DAYS, drop_crowds, drop_replies
from backend.store.database import Database
from backend.store.decisions import DECISION_RETENTION as DECISIONS_KEPT
from backend.store.job_log import JOB_RETENTION as JOBS_KEPT
from backend.store.journal import RUN_RETENTION, STATED, forget_sent
from backend.store.schema import Base

REQUEST_DAYS = 90  # an auditor who comes once a quarter sees every request of the sample
BUSINESS_DAYS = 761  # 25 months, 12 CFR 1002.12(b): as long as what a creditor keeps of an application


@dataclass(frozen=True)
class Period:
    """How long a table's rows are kept.

    Attributes
    ----------
    days : int or None
        None = no limit.
    column : str
        Column of a row's age; empty if rows have no limit, or are deleted with another table's.
    """

    days: int | None
    why: str
    column: str = ""


RETENTION = {
    "answers": Period(WINDOW_DAYS, "the window in which a Host's answers about a person count", "day"),
    "crowds": Period(WINDOW_DAYS, "with the last answer about them: many people who were asked about together"),
    "questions": Period(
        WINDOW_DAYS,
        "as long as a question may be repeated without being counted again; an answer nobody fetched, a day",
        "day",
    ),
    "scored_records": Period(SCORED_DAYS, "as long as reasons may be asked for a score of the same record", "day"),
    "requests": Period(REQUEST_DAYS, "until they are audited, and no longer than a quarter", "day"),
    "runs": Period(
        RUN_RETENTION.days, "whoever asked fetches the scores after a crash within a day, or asks again", "created"
    ),
    "run_batches": Period(RUN_RETENTION.days, "with their run"),
    "run_pieces": Period(RUN_RETENTION.days, "until the answer is there, at most as long as their run"),
    "trainings": Period(
        WINDOW_DAYS, "as long as a Host knows a question: a training goes on, and is not counted again", "created"
    ),
    "stated": Period(STATED.days, "until an auditor who may have drawn the terms or scores has been there", "created"),
    "decisions": Period(
        DECISIONS_KEPT.days, "as long as reasons for a score may be asked without a second one", "created"
    ),
    "jobs": Period(JOBS_KEPT.days, "until whoever started one has seen how it ended; names no person", "started"),
    "receipts": Period(
        BUSINESS_DAYS, "until two parties have compared what they sent each other; of nobody in particular", "created"
    ),
    "approval_uses": Period(
        WINDOW_DAYS, "how much of an approval was used, a day; no longer than what was answered", "day"
    ),
    "approvals": Period(
        None, "what this party's operator allowed, to whom and until when; names no person that was scored"
    ),
    "artefacts": Period(
        None,
        "the model, which part of the training each joint record had, what the operator says of it, and what Hosts signed of their columns",
    ),
    "records": Period(None, "what is known about the model"),
    "sealed_models": Period(None, "a trained model that waits to be released; whoever trained it may discard it"),
    "model_states": Period(None, "what the model is called, who answers for it, whether it may be used"),
    "policies": Period(None, "evidence about decisions: which line was in force, who proposed and who approved it"),
    "model_steps": Period(None, "evidence about the model: who submitted, approved or retired it, and why"),
    "measurements": Period(None, "evidence about the model, of groups; measured again, it is replaced"),
    "reviews": Period(None, "evidence about the model: who decided what, and why"),
    "signoffs": Period(None, "evidence about the model: who stated what"),
    "audit": Period(None, "a chain of hashes: no entry can go without breaking it; names no person that was scored"),
    "audit_heads": Period(None, "what the other party's log is checked against"),
    "secrets": Period(None, "dither must never change for a person, and a pseudonym must be found again"),
    "federations": Period(None, "which federations the home has"),
}
"""Table → how long its rows are kept."""


def expire(database: Database, now: datetime | None = None) -> dict[str, int]:
    """Delete every row that is older than its table's period, and undelivered answers; return the number of rows by table, if any."""
    now = now or datetime.now(UTC)
    deleted = dict[str, int]()
    with database.write() as session:
        drop_replies(session, now.date().toordinal())
        for name, period in RETENTION.items():
            if period.days is None or not period.column:
                continue
            table = Base.metadata.tables[name]
            column = table.c[period.column]
            until = now - timedelta(days=period.days)
            if isinstance(column.type, Integer):
                old = column <= until.toordinal()
            else:
                old = column < until.isoformat()
            result = session.execute(delete(table).where(old))
            if isinstance(result, CursorResult) and result.rowcount:
                deleted[name] = result.rowcount
        drop_crowds(session)
    forget_sent(database)
    return deleted
