"""What became of jobs, for whoever started them: also after a restart, and in another process of the same home.

Holds no input, and no result but figures that name nobody and lie nowhere else: how a job ended, and where what it found lies. No person
who was scored is in it, nor an account's name, of which there is a hash.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import Session

from backend.errors import ParameterError
from backend.remark import Remark, read_plain
from backend.store.database import Database, column_values
from backend.store.schema import JobRow, MeasurementRow

KEPT = timedelta(days=7)  # whoever started a job on a Friday finds on Monday how it ended
BEAT = 5.0  # seconds between two signs of life of a process with jobs
SILENT = timedelta(seconds=4 * BEAT)  # a process that gave none for so long is gone
_FOUND = "job"  # kind of measurement: what a user's job found
LoggedState = Literal["running", "done", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True)
class LoggedJob:
    """A job as the log has it.

    Attributes
    ----------
    user : str
        Hash of the account; empty if nobody signs in.
    name : str
        Under which it was started: its kind, and of work on one model its id after a colon.
    model : str
        The model that was chosen when it was started; empty if there was none.
    state : {"running", "done", "failed", "cancelled", "interrupted"}
    started, ended : str
        UTC, ISO 8601; `ended` is empty while it runs.
    failure : Remark or None
        Why it failed, where that can name nobody.
    result : str
        Where its result lies: a model's id, or a run of the Guest's journal.
    size : str
        What tells it from other work of its kind that takes longer or shorter; set once it has ended.
    seen : bool
        Its user knows that it has ended.
    """

    user: str
    name: str
    model: str
    process: str
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    state: LoggedState = "running"
    started: str = field(default_factory=lambda: _stamp(datetime.now(UTC)))
    ended: str = ""
    failure: Remark | None = None
    result: str = ""
    size: str = ""
    seen: bool = False

    @property
    def seconds(self) -> float:
        """From the start to the end; 0 while it runs."""
        if not self.ended:
            return 0.0
        return (datetime.fromisoformat(self.ended) - datetime.fromisoformat(self.started)).total_seconds()


class JobLog:
    """The jobs of one home."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, job: LoggedJob) -> None:
        """Write down that a job runs; raises ParameterError if another process runs one of that name for the same user."""
        now = datetime.now(UTC)
        with self._database.write() as session:
            session.execute(delete(JobRow).where(JobRow.started < _stamp(now - KEPT)))
            old = MeasurementRow.kind == _FOUND, MeasurementRow.created < _stamp(now - KEPT)
            session.execute(delete(MeasurementRow).where(*old))
            same = JobRow.user == job.user, JobRow.name == job.name
            for row in session.scalars(select(JobRow).where(*same, JobRow.state == "running")):
                if row.process != job.process and row.beat >= _stamp(now - SILENT):
                    raise ParameterError("job_runs_elsewhere")
            # what the new one replaces needs no look any more
            session.execute(update(JobRow).where(*same).values(seen=1))
            values = {**vars(job), "seen": int(job.seen)}
            del values["failure"]
            session.add(JobRow(**values, message="", beat=_stamp(now)))

    def alive(self, process: str) -> None:
        """A sign of life: the jobs of `process` still run."""
        mine = update(JobRow).where(JobRow.process == process, JobRow.state == "running")
        with self._database.write() as session:
            session.execute(mine.values(beat=_stamp(datetime.now(UTC))))

    def end(
        self,
        id_: str,
        state: LoggedState,
        failure: Remark | None = None,
        result: str = "",
        size: str = "",
    ) -> None:
        """Write down how a job ended that runs."""
        with self._database.write() as session:
            row = session.get(JobRow, id_)
            if row is not None and row.state == "running":
                row.state = state
                row.ended = _stamp(datetime.now(UTC))
                row.message = "" if failure is None else json.dumps(failure.plain())
                row.result = result
                row.size = size

    def keep(self, user: str, name: str, id_: str, result_text: str) -> None:
        """Keep what a job found, as text, in place of what the one before it of that name did."""
        body = json.dumps({"id": id_, "found": result_text})
        with self._database.write() as session:
            row = MeasurementRow(model=user, kind=_FOUND, feature=name, created=_stamp(datetime.now(UTC)), body=body)
            session.merge(row)

    def kept(self, user: str, name: str) -> tuple[LoggedJob, str] | None:
        """Return the last job of that name, where what it found is kept; and that."""
        newest = select(JobRow).where(JobRow.user == user, JobRow.name == name).order_by(JobRow.started.desc())

        def read(session: Session) -> tuple[LoggedJob, str] | None:
            body = session.scalar(select(MeasurementRow.body).where(*_found(user, name)))
            row = session.scalar(newest.limit(1)) if body else None
            if row is None:
                return None
            stored = json.loads(str(body))
            if stored["id"] == row.id:
                return (_logged(row), str(stored["found"]))
            return None

        return self._database.kept(("found", user, name), read)

    def drop(self, user: str, name: str) -> None:
        """Keep what the job of that name found no longer."""
        with self._database.write() as session:
            session.execute(delete(MeasurementRow).where(*_found(user, name)))

    def forget(self, id_: str) -> None:
        """Take out a job that did not begin."""
        with self._database.write() as session:
            session.execute(delete(JobRow).where(JobRow.id == id_))

    def leave(self, process: str) -> None:
        """`process` ends: what it still runs is interrupted."""
        with self._database.write() as session:
            mine = update(JobRow).where(JobRow.process == process, JobRow.state == "running")
            session.execute(mine.values(state="interrupted", ended=_stamp(datetime.now(UTC))))

    def of(self, user: str, now: datetime | None = None) -> list[LoggedJob]:
        """Return a user's jobs, newest first; those of a process that gave no sign of life are interrupted, when they last gave one."""
        silent = _stamp((now or datetime.now(UTC)) - SILENT)
        query = select(JobRow).where(JobRow.user == user).order_by(JobRow.started.desc())

        def read(session: Session) -> list[tuple[LoggedJob, str]]:
            return [(_logged(row), row.beat) for row in session.scalars(query)]

        jobs = self._database.kept(("jobs", user), read)
        return [
            replace(job, state="interrupted", ended=beat) if job.state == "running" and beat < silent else job
            for job, beat in jobs
        ]

    def note_seen(self, user: str, ids: list[str]) -> None:
        """The user knows how these ended."""
        with self._database.write() as session:
            session.execute(update(JobRow).where(JobRow.user == user, JobRow.id.in_(ids)).values(seen=1))


def _stamp(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")


def _found(user: str, name: str) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for the stored result of a user's job."""
    return MeasurementRow.model == user, MeasurementRow.kind == _FOUND, MeasurementRow.feature == name


def _logged(row: JobRow) -> LoggedJob:
    values = column_values(row)
    values.pop("beat")
    message = values.pop("message")
    failure = read_plain(json.loads(message)) if message else None
    return LoggedJob(**{**values, "failure": failure, "seen": bool(row.seen)})
