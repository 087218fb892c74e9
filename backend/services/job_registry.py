"""Jobs by user: what runs, what has ended, what is still to be seen. Nothing of one user is ever another's.

Jobs and their results lie in this process, so many and so long that memory stays bounded; how a job ended stands in the home's database
too (:mod:`backend.store.job_log`), for after a restart, with its result if that is stored nowhere else
(:mod:`backend.services.kept_results`).
"""

from __future__ import annotations

import atexit
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from backend.errors import GlassleafError, StoreError
from backend.jobs import Job
from backend.jobs.memory import give_back
from backend.ops.atomic_file import held_alone
from backend.remark import Remark
from backend.results import ModelRecord, ScoreBatch
from backend.services.kept_results import keeps, read_result, write_result

if TYPE_CHECKING:
    from pathlib import Path

    from backend.services.workspace import Workspace
    from backend.store.job_log import JobLog
    from backend.store.schema import LoggedJob

MAX_HELD = 12  # ended jobs of a user whose results stay in memory
HELD_IN_ALL = 100
LONG_JOB_SECONDS = 5.0  # seconds of a job that may have left much behind
HELD_FOR = 24 * 3600.0  # seconds: as long as the Guest's journal keeps an answer
ABOUT_PEOPLE = ("score", "reasons")  # the reason of a failure may name a person, so it is not stored
State = Literal["running", "elsewhere", "done", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True)
class Upload:
    """A file that a job works on, kept until the job has ended.

    Attributes
    ----------
    name : str
        The file's.
    """

    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class JobStatus:
    """A job as its user sees it.

    Attributes
    ----------
    name, model : str
        Under which it was started, and the model that was chosen then.
    state : {"running", "elsewhere", "done", "failed", "cancelled", "interrupted"}
        "elsewhere": in another process of this home.
    job : Job or None
        In this process; None if its result is not held any more.
    started : str
        UTC, ISO 8601.
    result : str
        Place of its result: a model's id, or a run of the Guest's journal.
    failure : Remark or None
        Why it failed, as far as that was written down.
    waits : bool
        Its scores wait in the Guest's journal: the same request again gets them.
    """

    name: str
    model: str
    state: State
    job: Job[Any] | None
    started: str
    result: str
    failure: Remark | None
    seen: bool
    waits: bool = False

    @property
    def kind(self) -> str:
        """Return what sort of work it is."""
        return kind_of(self.name)


@dataclass(eq=False)
class _Held:
    """A job of this process."""

    id: str
    job: Job[Any]
    about: object
    upload: Upload | None


class JobRegistry:
    """The jobs of a home's users in this process."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.process = secrets.token_hex(16)
        self._held: dict[tuple[str, str], _Held] = {}  # by user and name
        self._lock = threading.RLock()
        self._beating = self._closed = self._present = False
        self._presence = ExitStack()
        atexit.register(self.close)

    def of(self, account: str) -> UserJobs:
        """Return the jobs of an account; empty = no sign-in is needed, and all who use the home are one user."""
        return UserJobs(self, sha256(account.encode()).hexdigest() if account else "")

    def log(self) -> JobLog:
        """Return what is written down about jobs."""
        from backend.store.job_log import JobLog  # noqa: PLC0415 (the services are imported without a database)

        return JobLog(self._workspace.home_database())

    def waits(self, run: str) -> bool:
        """Return whether the scores of a run wait in a Guest's journal."""
        names = (federation.name for federation in self._workspace.federations()) if run else ()
        return any(self._workspace.journal(name).waits(run) for name in names)

    def close(self) -> None:
        """Note jobs that still run here as interrupted."""
        with self._lock:
            running = any(entry.job.state == "running" for entry in self._held.values())
            self._held.clear()
            self._closed = True
        if running:
            self.log().leave(self.process)
        self._presence.close()

    def gone(self, process: str) -> bool:
        """Return whether another process of this machine was killed: its lock file is free. Its jobs are noted as interrupted."""
        file = self._lock_file(process)
        if process == self.process or not file.exists():
            return False  # on another machine its silence tells
        try:
            with held_alone(file):
                self.log().leave(process)
        except StoreError:
            return False
        return True

    def _lock_file(self, process: str) -> Path:
        return self._workspace.home / f"jobs-{process}.lock"

    def _be_present(self) -> None:
        """From the first job on, others of this machine can tell that this process is there."""
        if not self._present:
            self._present = True
            self._workspace.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._presence.enter_context(held_alone(self._lock_file(self.process)))

    def begin(
        self, user: str, name: str, model: str, start: Callable[[], Job[Any]], about: object, upload: Upload | None
    ) -> Job[Any]:
        """Begin a job of a user, unless one of that name runs here; see :meth:`UserJobs.start`."""
        from backend.store.schema import LoggedJob  # noqa: PLC0415 (as above)

        with self._lock:
            existing = self._held.get((user, name))
            if existing is not None and existing.job.state == "running":
                return existing.job
            self._held.pop((user, name), None)
            logged = LoggedJob(user, name, model, self.process)
            log = self.log()
            seconds_by_size = self.last_run_seconds(user, kind_of(name))
            for earlier_job in log.of(user):
                if earlier_job.state == "running":
                    self.gone(earlier_job.process)
            log.begin(logged)
            self._be_present()
            try:
                job = start()
            except BaseException:
                log.forget(logged.id)
                raise
            job.eta.last_run_seconds = seconds_by_size.get(job.size, 0.0)
            entry = self._held[user, name] = _Held(logged.id, job, about, upload)
            self._prune()
            self._beat()
        job.then(partial(self._ended, entry, user, name))
        return job

    def _ended(self, entry: _Held, user: str, name: str) -> None:
        """Release the job's file; store how the job ended, and its result if results of its kind are stored."""
        entry.upload = None
        job = entry.job
        kind = kind_of(name)
        if job.failure is not None and job.state == "failed" and kind not in ABOUT_PEOPLE:
            failure = job.failure.remarks[0]
        else:
            failure = None
        if not self._closed:
            if job.result is None:
                result_text = None
            else:
                result_text = write_result(kind, job.result)
            if result_text is not None:
                self.log().keep(user, name, entry.id, result_text)
            self.log().end(entry.id, job.state, failure, _place(job.result), job.size)
        give_back(collect=job.seconds >= LONG_JOB_SECONDS)

    def find(self, user: str, name: str) -> Job[Any] | None:
        """Return the last job of that name: of this process, or one that ended in another process, if its result is stored."""
        entry = self.held(user).get(name)
        if entry is not None:
            return entry.job
        if keeps(kind_of(name)):
            stored = self.log().kept(user, name)
        else:
            stored = None
        if stored is None or stored[0].state == "running" or stored[0].state == "interrupted":
            return None
        logged = stored[0]
        result = read_result(kind_of(name), stored[1])
        if result is None:
            return None
        if logged.failure is None:
            failure = None
        else:
            failure = GlassleafError.of(logged.failure)
        job: Job[Any] = Job.ended(result, stored[0].state, failure)
        with self._lock:
            existing = self._held.setdefault((user, name), _Held(logged.id, job, None, None))
            self._prune()
        return existing.job

    def last_run_seconds(self, user: str, kind: str) -> dict[str, float]:
        """Return the seconds that the last work of a kind took that ended well, by its size."""
        seconds_by_size: dict[str, float] = {}
        for logged in reversed(self.log().of(user)):  # the newest comes last, and stays
            if kind_of(logged.name) == kind and logged.state == "done":
                seconds_by_size[logged.size] = logged.seconds
        return seconds_by_size

    def held(self, user: str) -> dict[str, _Held]:
        """Name → job of a user, in this process."""
        with self._lock:
            self._prune()
            return {name: entry for (whose, name), entry in self._held.items() if whose == user}

    def drop(self, user: str, name: str) -> None:
        """Hold a job no longer, nor what it found; how it ends, or has just ended, is no news."""
        with self._lock:
            entry = self._held.pop((user, name), None)
        if entry is not None:
            self.log().note_seen(user, [entry.id])
        if keeps(kind_of(name)):
            self.log().drop(user, name)

    def _prune(self) -> None:
        """Drop what ended too long ago, or is too many; what runs stays."""
        of_user: dict[str, int] = {}
        ended = []
        for key, entry in self._held.items():
            if entry.job.state != "running":
                ended.append((entry.job.seconds_ago, key))
        for many, (ago, (user, name)) in enumerate(sorted(ended), start=1):
            of_user[user] = of_user.get(user, 0) + 1
            if ago > HELD_FOR or of_user[user] > MAX_HELD or many > HELD_IN_ALL:
                del self._held[user, name]

    def _beat(self) -> None:
        """Give signs of life as long as anything runs."""
        if not self._beating:
            self._beating = True
            threading.Thread(target=self._beats, name="glassleaf-jobs", daemon=True).start()

    def _beats(self) -> None:
        from backend.store.job_log import BEAT  # noqa: PLC0415 (as above)

        while True:
            time.sleep(BEAT)
            with self._lock:
                self._beating = any(entry.job.state == "running" for entry in self._held.values())
            if not self._beating:
                return
            try:
                self.log().alive(self.process)
            except StoreError:  # no job ends for that
                continue


class UserJobs:
    """The jobs of one user."""

    def __init__(self, registry: JobRegistry, user: str) -> None:
        self._registry = registry
        self._user = user

    def start(
        self,
        name: str,
        begin: Callable[[], Job[Any]],
        *,
        model: str = "",
        about: object = None,
        upload: Upload | None = None,
    ) -> Job[Any]:
        """Begin a job, or return the one that runs under `name`.

        Parameters
        ----------
        name : str
            What sort of work it is; of work on one model with its id after a colon.
        model : str
            The model that is chosen; after the colon of `name`, if not given.
        about : object, optional
            The request, for a user who comes back: no person's data.
        upload : Upload, optional
            The file it works on, for a user who comes back before it has ended.

        Raises
        ------
        GlassleafError
            What `begin` raises, or another process of the home runs such a job for the same user.
        """
        return self._registry.begin(self._user, name, model or name.partition(":")[2], begin, about, upload)

    def find(self, name: str) -> Job[Any] | None:
        """Return the job that was started last under `name`, running or ended; None if neither it nor its result is held."""
        return self._registry.find(self._user, name)

    def about(self, name: str) -> Any:
        """Return what the job under `name` was asked for."""
        entry = self._registry.held(self._user).get(name)
        return None if entry is None else entry.about

    def upload(self, name: str) -> Upload | None:
        """Return the file that the job under `name` works on; None once it has ended."""
        entry = self._registry.held(self._user).get(name)
        return None if entry is None else entry.upload

    def all(self) -> tuple[JobStatus, ...]:
        """Return all that is known, newest first: in this process, in others of the home, and from before a restart."""
        return tuple(
            JobStatus(
                logged.name,
                logged.model,
                state,
                job,
                logged.started,
                logged.result,
                logged.failure,
                logged.seen,
                job is None and not logged.seen and self._registry.waits(logged.result),
            )
            for logged, job, state in self._known()
        )

    def _known(self) -> Iterator[tuple[LoggedJob, Job[Any] | None, State]]:
        """Yield each job of the user: its entry in the log, the job if it is held here, and its state."""
        jobs = {entry.id: entry.job for entry in self._registry.held(self._user).values()}
        for logged in self._registry.log().of(self._user):
            job = jobs.get(logged.id)
            if job is not None:
                yield logged, job, job.state
            elif logged.state == "running":
                yield logged, None, "interrupted" if self._registry.gone(logged.process) else "elsewhere"
            else:
                yield logged, None, logged.state

    def note_seen(self, *names: str) -> None:
        """The user knows how these have ended; what still runs is left as it is."""
        unseen = ((logged, state) for logged, _, state in self._known() if logged.name in names and not logged.seen)
        ended = [logged.id for logged, state in unseen if state not in ("running", "elsewhere")]
        if ended:
            self._registry.log().note_seen(self._user, ended)

    def forget(self, name: str) -> None:
        """Hold an ended job no longer; one that runs is asked to stop first."""
        job = self.find(name)
        if job is not None and job.state == "running":
            job.cancel()
        self._registry.drop(self._user, name)
        self.note_seen(name)


def kind_of(name: str) -> str:
    """``evidence:m123`` → ``evidence``."""
    return name.partition(":")[0]


def _place(result: object) -> str:
    """Return the place of a result after a restart; empty if there is none, or if it is the page of the request."""
    if isinstance(result, ModelRecord):
        return result.id
    return result.run if isinstance(result, ScoreBatch) else ""
