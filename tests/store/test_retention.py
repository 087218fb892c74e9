"""How long rows are kept: every table has a period and a reason, and what is older goes, nothing else."""

from datetime import UTC, date, datetime, time, timedelta

import pytest
from sqlalchemy import func, select

from backend.store.accountant import WINDOW_DAYS, Accountant, Limits, Question
from backend.store.audit_log import AuditLog
from backend.store.database import Database
from backend.store.journal import Journal
from backend.store.party_store import PartyStore
from backend.store.request_log import RequestLog
from backend.store.retention import REQUEST_DAYS, RETENTION, expire
from backend.store.schema import AnswerRow, Base, LoggedRow, QuestionRow, RunBatchRow, RunPieceRow, RunRow, SecretRow
from backend.store.trainings import HostTrainings, Note

EARLY = {"runs", "answers", "questions", "trainings"}


def rows(database, table):
    with database.read() as session:
        return session.scalars(select(func.count()).select_from(table)).one()


def now():
    """When it is asked: a whole run of the tests may have passed since this file was read."""
    return datetime.now(UTC)


@pytest.fixture
def database():
    database = Database()
    Accountant(database, Limits(1)).count(Question("bank", "r", "score", "s", ("a", "b")))
    RequestLog(database, rate=1.0).note("m", ["a"], b"k", [b"body"])
    journal = Journal(database)
    run = journal.run("0" * 64)
    run.batch(0)
    run.sending(0, 0, b"sent")
    journal.state(b"sent", {"age": 1.0})
    AuditLog(database).add("score", {}, "ana", "operator")
    PartyStore(database).secret("dither")
    HostTrainings(database).note("bank", [Note("t", "0" * 64, "training_changed")])
    return database


def test_every_table_has_a_period_a_reason_and_where_it_expires_a_column():
    assert set(RETENTION) == set(Base.metadata.tables)
    for table, period in RETENTION.items():
        assert period.why
        assert not period.column or period.column in Base.metadata.tables[table].c
        assert not period.column or period.days


def test_nothing_goes_before_its_time(database):
    assert expire(database, now()) == {} and rows(database, AnswerRow) == 2


@pytest.mark.parametrize(
    ("days", "gone"),
    [
        (1.01, {"runs"}),
        (WINDOW_DAYS - 1, {"runs"}),
        (WINDOW_DAYS, EARLY),
        (REQUEST_DAYS + 1, EARLY | {"requests", "stated"}),
        (10_000, EARLY | {"requests", "stated"}),
    ],
)
def test_what_is_older_goes_and_nothing_else(database, days, gone):
    deleted = expire(database, now() + timedelta(days=days))
    assert set(deleted) == gone and all(deleted.values())
    assert expire(database, now() + timedelta(days=days)) == {}
    assert {table: rows(database, table) > 0 for table in (AnswerRow, LoggedRow)} == {
        AnswerRow: "answers" not in gone,
        LoggedRow: "requests" not in gone,
    }
    assert rows(database, RunRow) == rows(database, RunBatchRow) == rows(database, RunPieceRow) == 0
    assert len(AuditLog(database).entries()) == 1 and rows(database, SecretRow) == 1


def test_the_account_and_its_retention_agree_on_the_last_day_that_counts(database):
    for days in (WINDOW_DAYS - 1, WINDOW_DAYS):
        later = now() + timedelta(days=days)
        account = Accountant(database, Limits(1), today=later.date)
        expire(database, later)
        refused = account.spent(Question("bank", "", "score", "s", ("a",))).tolist()
        assert refused == [days < WINDOW_DAYS]


def test_an_answer_that_nobody_fetches_is_kept_for_a_day_though_nobody_asks_any_more(database):
    account = Accountant(database, Limits(1))
    account.reply_to("bank", "r", "digest")
    account.keep_reply("bank", "r", b"answer")
    with database.read() as session:
        asked = datetime.combine(date.fromordinal(session.scalars(select(QuestionRow.day)).one()), time(12), UTC)
    for days, reply in ((1, b"answer"), (2, None), (WINDOW_DAYS - 1, None)):
        expire(database, asked + timedelta(days=days))
        assert account.reply_to("bank", "r", "digest") == reply
    assert account.count(Question("bank", "r", "score", "s", ("a", "b"))).tolist() == [False, False]
    assert rows(database, AnswerRow) == 2
