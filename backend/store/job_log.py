"""How jobs ended, for the users who started them: also after a restart, and in another process of the same home.

Holds no input, and no result but figures without persons that are stored nowhere else: how a job ended, and its result's place. No person
who was scored is in it, nor an account's name, of which there is a hash.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import Session

from backend.errors import ParameterError
from backend.remark import Remark
from backend.store.database import Database
from backend.store.schema import JobState, LoggedJob, MeasurementRow, milliseconds

JOB_RETENTION = timedelta(days=7)  # a user who started a job on a Friday finds on Monday how it ended
BEAT = 5.0  # seconds between two signs of life of a process with jobs
SILENT = timedelta(seconds=4 * BEAT)  # a process that gave none for so long is gone
_FOUND = "job"  # kind of measurement: what a user's job found


class JobLog:
    """The jobs of one home."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, job: LoggedJob) -> None:
        """Write down that a job runs; raises ParameterError if another process runs one of that name for the same user."""
        now = datetime.now(UTC)
        with self._database.write() as session:
            session.execute(delete(LoggedJob).where(LoggedJob.started < milliseconds(now - JOB_RETENTION)))
            old = MeasurementRow.kind == _FOUND, MeasurementRow.created < milliseconds(now - JOB_RETENTION)
            session.execute(delete(MeasurementRow).where(*old))
            same = LoggedJob.user == job.user, LoggedJob.name == job.name
            for row in session.scalars(select(LoggedJob).where(*same, LoggedJob.state == "running")):
                if row.process != job.process and row.beat >= milliseconds(now - SILENT):
                    raise ParameterError("job_runs_elsewhere")
            # what the new one replaces needs no look any more
            session.execute(update(LoggedJob).where(*same).values(seen=True))
            session.add(replace(job, beat=milliseconds(now)))

    def alive(self, process: str) -> None:
        """A sign of life: the jobs of `process` still run."""
        mine = update(LoggedJob).where(LoggedJob.process == process, LoggedJob.state == "running")
        with self._database.write() as session:
            session.execute(mine.values(beat=milliseconds(datetime.now(UTC))))

    def end(
        self,
        id_: str,
        state: JobState,
        failure: Remark | None = None,
        result: str = "",
        size: str = "",
    ) -> None:
        """Write down how a job ended that runs."""
        with self._database.write() as session:
            row = session.get(LoggedJob, id_)
            if row is not None and row.state == "running":
                row.state = state
                row.ended = milliseconds(datetime.now(UTC))
                row.failure = failure
                row.result = result
                row.size = size

    def keep(self, user: str, name: str, id_: str, result_text: str) -> None:
        """Keep what a job found, as text, in place of what the one before it of that name did."""
        body = json.dumps({"id": id_, "found": result_text})
        with self._database.write() as session:
            row = MeasurementRow(
                model=user, kind=_FOUND, feature=name, created=milliseconds(datetime.now(UTC)), body=body
            )
            session.merge(row)

    def kept(self, user: str, name: str) -> tuple[LoggedJob, str] | None:
        """Return the last job of that name and its stored result; None without one."""
        newest = (
            select(LoggedJob).where(LoggedJob.user == user, LoggedJob.name == name).order_by(LoggedJob.started.desc())
        )

        def read(session: Session) -> tuple[LoggedJob, str] | None:
            body = session.scalar(select(MeasurementRow.body).where(*_found(user, name)))
            row = session.scalar(newest.limit(1)) if body else None
            if row is None:
                return None
            stored = json.loads(str(body))
            if stored["id"] == row.id:
                return (row, str(stored["found"]))
            return None

        return self._database.kept(("found", user, name), read)

    def drop(self, user: str, name: str) -> None:
        """Keep what the job of that name found no longer."""
        with self._database.write() as session:
            session.execute(delete(MeasurementRow).where(*_found(user, name)))

    def forget(self, id_: str) -> None:
        """Take out a job that did not begin."""
        with self._database.write() as session:
            session.execute(delete(LoggedJob).where(LoggedJob.id == id_))

    def leave(self, process: str) -> None:
        """`process` ends: what it still runs is interrupted."""
        with self._database.write() as session:
            mine = update(LoggedJob).where(LoggedJob.process == process, LoggedJob.state == "running")
            session.execute(mine.values(state="interrupted", ended=milliseconds(datetime.now(UTC))))

    def of(self, user: str, now: datetime | None = None) -> list[LoggedJob]:
        """Return a user's jobs, newest first; those of a process that gave no sign of life are interrupted, when they last gave one."""
        silent = milliseconds((now or datetime.now(UTC)) - SILENT)
        query = select(LoggedJob).where(LoggedJob.user == user).order_by(LoggedJob.started.desc())

        def read(session: Session) -> list[LoggedJob]:
            return list(session.scalars(query))

        jobs = []
        for job in self._database.kept(("jobs", user), read):
            interrupted = job.state == "running" and job.beat < silent
            jobs.append(replace(job, state="interrupted", ended=job.beat) if interrupted else job)
        return jobs

    def note_seen(self, user: str, ids: list[str]) -> None:
        """The user knows how these ended."""
        with self._database.write() as session:
            session.execute(update(LoggedJob).where(LoggedJob.user == user, LoggedJob.id.in_(ids)).values(seen=True))


def _found(user: str, name: str) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for the stored result of a user's job."""
    return MeasurementRow.model == user, MeasurementRow.kind == _FOUND, MeasurementRow.feature == name
