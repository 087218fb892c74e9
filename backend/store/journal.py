"""Questions of the Guest whose answers were not delivered yet: written before they are sent, so that a killed Guest repeats the bytes.

Holds ciphertexts under the Guest's own key until the answer has come, then the scores, until whoever asked has them. What nobody fetched
is deleted after :data:`RUN_RETENTION` (docs/decisions/gate.md). Ciphertexts lie beside a database that is a file, since to pass some
megabytes through one costs more than to encrypt them (docs/decisions/faults.md).
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from sqlalchemy import delete, func, select, text
from sqlalchemy.orm import Session

from backend.errors import QuestionRefused, SecurityError, StoreError
from backend.ops.atomic_file import write_first
from backend.store.database import Database, prepared
from backend.store.schema import RunBatchRow, RunPieceRow, RunRow, StatedRow
from backend.store.trainings import GuestTraining, guest_training

RUN_RETENTION = timedelta(days=1)
# made once: to put a statement together takes longer than to execute it
_NAMED = prepared(
    "SELECT number, request, answer FROM run_batches WHERE run = :run ORDER BY number", "number", "request", "answer"
)
_NAME = text("INSERT INTO run_batches (run, number, request) VALUES (:run, :number, :request)")
_OPEN = prepared("SELECT run FROM runs WHERE run = :run", "run")
_ASKING = prepared("SELECT run FROM runs WHERE question = :question ORDER BY created", "run")
_BEGIN = text("INSERT INTO runs (run, question, created) VALUES (:run, :question, :now)")
_WANTED = text("UPDATE runs SET created = :now WHERE run = :run AND question = :question")
_HANDED_OVER = text("DELETE FROM runs WHERE run = :run")
_TOO_OLD = prepared("DELETE FROM runs WHERE created < :before RETURNING run", "run")
_TOO_OLD_STATED = text("DELETE FROM stated WHERE created < :before")
_STATE = text(
    "INSERT INTO stated (digest, created, body) VALUES (:digest, :created, :body) "
    "ON CONFLICT (digest) DO UPDATE SET created = excluded.created, body = excluded.body"
)
SWEEP_SECONDS = 60.0  # seconds after which old statements and messages without a run are looked for again
SENT = "questions"  # folder next to the database: RUN-BATCH-PIECE.sent
STATED = timedelta(days=90)  # an auditor who comes once a quarter needs none that is older


@dataclass(frozen=True, repr=False)
class Batch:
    """One batch of a run.

    Attributes
    ----------
    sent : tuple of bytes
        The first messages of those that were, or will be, sent; none once it is answered.
    answer : bytes, optional
        The result that the Guest worked out from the answer.
    """

    request: str
    sent: tuple[bytes, ...]
    answer: bytes | None


class Run:
    """One scoring as its journal has it, under a name of its own."""

    def __init__(self, database: Database, name: str, stated: list[tuple[str, str]] | None = None) -> None:
        self._database = database
        self.name = name
        self._sent = _SentFiles.of(database)
        self._stated = [] if stated is None else stated

    def wanted(self) -> None:
        """Keep the run for another :data:`RUN_RETENTION`: the caller still waits."""
        with self._database.write() as session:
            row = session.get(RunRow, self.name)
            if row is not None:
                row.created = datetime.now(UTC).isoformat()

    def batch(self, number: int) -> Batch:
        """Return a batch as far as it got; one that was not begun gets its request's name."""
        return self.batches([number])[number]

    def batches(self, numbers: Collection[int]) -> dict[int, Batch]:
        """Return the same of several, in one transaction."""
        with self._database.read() as session:
            named_batches = self._begun(session, numbers)
        if len(named_batches) == len(set(numbers)):
            return named_batches
        with self._database.write() as session:
            self._check_open(session)
            named_batches = self._begun(session, numbers)
            return named_batches | _named(session, self.name, set(numbers) - named_batches.keys())

    def _begun(self, session: Session, numbers: Collection[int]) -> dict[int, Batch]:
        """Those of some batches that have a name."""
        rows = session.execute(_NAMED, {"run": self.name}).all()
        number_set = set(numbers)
        return {
            row.number: Batch(row.request, self._pieces(session, row.number), row.answer)
            for row in rows
            if row.number in number_set
        }

    def _pieces(self, session: Session, number: int) -> tuple[bytes, ...]:
        if self._sent is not None:
            return tuple(self._sent.pieces(self.name, number))
        sent = select(RunPieceRow.sent).where(RunPieceRow.run == self.name, RunPieceRow.number == number)
        return tuple(session.scalars(sent.order_by(RunPieceRow.piece)))

    def sending(self, number: int, piece: int, sent: bytes) -> bytes:
        """Store a message before it is sent; return the message to send: another process's if that was first."""
        if self._sent is not None:
            with self._database.read() as session:
                self._check_open(session)
            return self._sent.put(self.name, number, piece, sent)
        with self._database.write() as session:
            row = session.get(RunPieceRow, (self.name, number, piece))
            if row is None:
                self._check_open(session)
                row = RunPieceRow(run=self.name, number=number, piece=piece, sent=sent)
                session.add(row)
            return row.sent

    def _check_open(self, session: Session) -> None:
        if session.execute(_OPEN, {"run": self.name}).first() is None:
            raise QuestionRefused("question_answered_elsewhere")

    def answered(self, number: int, answer: bytes, *, request: str = "", statement: str = "") -> None:
        """Store the result and the statement about the request; the sent bytes are no longer needed."""
        with self._database.write() as session:
            if statement:
                _state(session, [(_of_answer(request), statement)])
            row = session.get(RunBatchRow, (self.name, number))
            if row is not None:  # another process may have handed the run over
                row.answer = answer
            self._delete(session, RunPieceRow, number)
        self._forget_sent(number)

    def state(self, request: str, statement: str, *, soon: bool = False) -> None:
        """Write down how an answer came about, for an auditor who has drawn some of it.

        Parameters
        ----------
        soon : bool
            With the next question, or by :meth:`Journal.settle`: for one question after the other.
        """
        if soon:
            self._stated.append((_of_answer(request), statement))
            return
        with self._database.write() as session:
            _state(session, [(_of_answer(request), statement)])

    def drop(self, number: int) -> None:
        """Forget a batch that will never be answered: it is asked again, if at all."""
        with self._database.write() as session:
            self._delete(session, RunPieceRow, number)
            self._delete(session, RunBatchRow, number)
        self._forget_sent(number)

    def _delete(self, session: Session, table: type[RunPieceRow] | type[RunBatchRow], number: int) -> None:
        session.execute(delete(table).where(table.run == self.name, table.number == number))

    def _forget_sent(self, number: int) -> None:
        if self._sent is not None:
            self._sent.forget(f"{self.name}-{number}-")


def _of_answer(request: str) -> str:
    """Return the name under which a statement about an answer is stored: the request's does not show in it."""
    return sha256(f"answer {request}".encode()).hexdigest()


def _state(session: Session, statements: Sequence[tuple[str, str]]) -> None:
    """Store statements by their digests."""
    now = datetime.now(UTC).isoformat()
    session.execute(_STATE, [{"digest": digest, "created": now, "body": body} for digest, body in statements])


def _named(session: Session, run: str, numbers: Collection[int]) -> dict[int, Batch]:
    """Give batches that were not begun their requests' names."""
    new_batches = {number: Batch(secrets.token_hex(16), (), None) for number in numbers}
    if new_batches:
        names = [{"run": run, "number": number, "request": batch.request} for number, batch in new_batches.items()]
        session.execute(_NAME, names)
    return new_batches


class _SentFiles:
    """Messages that were, or are about to be, sent: a file each, whole or not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of(cls, database: Database) -> _SentFiles | None:
        """Return the messages next to a database; None if the database is not a file."""
        if database.folder is None:
            return None
        return cls(database.folder / SENT)

    def put(self, run: str, number: int, piece: int, sent: bytes) -> bytes:
        """Keep a message unless there is one; returns the one that is kept."""
        file = self._file(run, number, piece)
        try:
            return sent if write_first(file, sent) else file.read_bytes()
        except OSError as error:
            raise StoreError("journal_not_written", folder=str(file.parent), reason=error.strerror or "-") from error

    def pieces(self, run: str, number: int) -> Iterator[bytes]:
        """The first messages of a batch, as far as there are."""
        piece = 0
        while (file := self._file(run, number, piece)).exists():
            yield file.read_bytes()
            piece += 1

    def _file(self, run: str, number: int, piece: int) -> Path:
        return self._folder / f"{run}-{number}-{piece}.sent"

    def forget(self, begins: str) -> None:
        """Delete what has a name that begins so."""
        for name in self.names():
            if name.startswith(begins):
                (self._folder / name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Of all files."""
        try:
            return sorted(file.name for file in self._folder.iterdir())
        except FileNotFoundError:
            return []

    def forget_all_but(self, session: Session) -> None:
        """Delete messages that no longer belong to a run."""
        if not (stored_runs := {name.partition("-")[0] for name in self.names()}):
            return
        for run in stored_runs - set(session.scalars(select(RunRow.run).where(RunRow.run.in_(stored_runs)))):
            self.forget(f"{run}-")


def forget_sent(database: Database) -> None:
    """Delete messages whose run is forgotten."""
    if (sent := _SentFiles.of(database)) is not None and sent.names():
        with database.write() as session:
            sent.forget_all_but(session)


class Journal:
    """The runs of one Guest."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sent = _SentFiles.of(database)
        self._busy: set[str] = set()
        self._done: set[str] = set()
        self._stated: list[tuple[str, str]] = []  # of scores, by digest
        self._swept = (
            -SWEEP_SECONDS
        )  # when old statements and messages without a run, which a kill leaves, were looked for
        self._lock = threading.Lock()

    def run(self, question: str, batches: int = 0, *, fresh: bool = False) -> Run:
        """Return the undelivered run with this question that no worker owns, or a new one.

        Two callers of this process with the same question at once get two runs; :meth:`ended` releases a run.

        Parameters
        ----------
        question : str
            SHA-256 of the model, the samples and the cipher, in hexadecimal.
        batches : int
            That will be asked about: they get their names in the same transaction.
        fresh : bool
            Always make a new run: earlier ones, perhaps of another process at work, stay as they are.
        """
        now = datetime.now(UTC)
        with self._lock:
            with self._database.write() as session:
                self._forget_done(session)
                self._write_stated(session)
                old = session.execute(_TOO_OLD, {"before": (now - RUN_RETENTION).isoformat()}).all()
                sweeps = bool(old) or time.monotonic() - self._swept > SWEEP_SECONDS
                if sweeps:
                    session.execute(_TOO_OLD_STATED, {"before": (now - STATED).isoformat()})
                runs = session.execute(_ASKING, {"question": question}).scalars()
                if fresh:
                    open_run = None
                else:
                    open_run = next((name for name in runs if name not in self._busy), None)
                about = {"run": open_run or secrets.token_hex(16), "question": question, "now": now.isoformat()}
                # it is wanted again: its day counts from now
                session.execute(_WANTED if open_run else _BEGIN, about)
                run = Run(self._database, about["run"], self._stated)
                if open_run:
                    run.batches(range(batches))
                else:
                    _named(session, run.name, range(batches))
            self._busy.add(run.name)
            self._forgotten(all_others=sweeps)
        return run

    def broken_off(self, question: str) -> list[Run]:
        """Return the undelivered runs with this question that no worker of this process owns, the oldest first."""
        with self._database.read() as session:
            runs = session.execute(_ASKING, {"question": question}).scalars().all()
        return [Run(self._database, name) for name in runs if name not in self._busy]

    def ended(self, run: Run | None) -> None:
        """Release a run: the next caller with the same question continues it."""
        if run is not None:
            self._busy.discard(run.name)

    def state(self, terms: bytes, values: Mapping[str, float | str | None]) -> None:
        """Write down which values terms were made with, for an auditor who may have drawn them."""
        with self._database.write() as session:
            _state(session, [(sha256(terms).hexdigest(), json.dumps(values))])

    def stated(self, terms: bytes) -> dict[str, float | str | None]:
        """Return which values terms were made with; raise SecurityError if that is no longer known."""
        with self._database.read() as session:
            row = session.get(StatedRow, sha256(terms).hexdigest())
        if row is None:
            raise SecurityError("terms_not_stated")
        values: dict[str, float | str | None] = json.loads(row.body)
        return values

    def state_answer(self, request: str, statement: str) -> None:
        """See :meth:`Run.state`; about a question without a run: of sums, by the name of its conversation."""
        with self._database.write() as session:
            _state(session, [(_of_answer(request), statement)])

    def stated_answer(self, request: str) -> str | None:
        """Return the statement about a request's answer; None if it is missing or was deleted."""
        self.settle()
        with self._database.read() as session:
            row = session.get(StatedRow, _of_answer(request))
        return None if row is None else row.body

    def training(self, guest: str, question: str) -> GuestTraining:
        """Return the training that was broken off, or a new one; see :func:`backend.store.trainings.guest_training`."""
        return guest_training(self._database, guest, question)

    def waits(self, run: str) -> bool:
        """Return whether what a run came to was not yet handed over."""
        with self._database.read() as session:
            return session.get(RunRow, run) is not None

    def kept(self) -> tuple[int, int, int]:
        """Return the numbers of runs, of messages without an answer, and of batches whose scores were not delivered yet."""
        waiting = RunBatchRow.answer.is_not(None)
        counts = (
            select(func.count()).select_from(RunRow),
            select(func.count()).select_from(RunPieceRow),
            select(func.count()).select_from(RunBatchRow).where(waiting),
        )
        with self._database.read() as session:
            runs, sent, answered = (session.scalars(count).one() for count in counts)
        return runs, sent + len(self._sent.names() if self._sent is not None else ()), answered

    def handed_over_soon(self, run: str) -> None:
        """See :meth:`handed_over`; done with the next question or by :meth:`settle`."""
        with self._lock:
            self._done.add(run)

    def settle(self) -> None:
        """Forget runs that were handed over since the last question."""
        with self._lock:
            if self._done or self._stated:
                with self._database.write() as session:
                    self._forget_done(session)
                    self._write_stated(session)
                self._forgotten(all_others=False)

    def _write_stated(self, session: Session) -> None:
        statements = list(self._stated)
        if statements:
            _state(session, statements)
            del self._stated[: len(statements)]

    def _forget_done(self, session: Session) -> None:
        if self._done:
            session.execute(_HANDED_OVER, [{"run": run} for run in self._done])

    def _forgotten(self, *, all_others: bool) -> None:
        """Delete the messages of ended runs. A kill in between leaves messages without a run, never a run without its messages."""
        ended_runs = self._done
        self._done = set()
        if all_others:
            self._swept = time.monotonic()
        if self._sent is None:
            return
        for run in ended_runs:
            self._sent.forget(f"{run}-")
        if all_others:
            with self._database.read() as session:
                self._sent.forget_all_but(session)

    def handed_over(self, run: str) -> None:
        """Delete the run: the caller has the scores."""
        with self._database.write() as session:
            session.execute(_HANDED_OVER, {"run": run})
        if self._sent is not None:
            self._sent.forget(f"{run}-")
