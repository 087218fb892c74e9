"""What the Guest has asked and not yet handed over: written before it is sent, so that a killed Guest repeats the same bytes.

Holds ciphertexts under the Guest's own key until the answer has come, then the scores, until whoever asked has them. What nobody fetched
is deleted after :data:`KEPT` (docs/decisions/0016-questions.md).
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from backend.errors import QuestionRefused, SecurityError
from backend.store.database import Database
from backend.store.schema import RunBatchRow, RunPieceRow, RunRow, StatedRow
from backend.store.trainings import GuestTraining, guest_training

KEPT = timedelta(days=1)
STATED = timedelta(days=90)  # an auditor who comes once a quarter has drawn none that is older


@dataclass(frozen=True, repr=False)
class Batch:
    """One batch of a run.

    Attributes
    ----------
    request : str
        Its name at the Hosts.
    sent : tuple of bytes
        The first messages of those that were, or will be, sent; none once it is answered.
    answer : bytes, optional
        What the Guest worked out of the answer.
    """

    request: str
    sent: tuple[bytes, ...]
    answer: bytes | None


class Run:
    """One scoring as its journal has it.

    Attributes
    ----------
    name : str
        Unique.
    """

    def __init__(self, database: Database, name: str) -> None:
        self._database, self.name = database, name

    def wanted(self) -> None:
        """Whoever asked still waits: it is kept for another :data:`KEPT`."""
        with self._database.write() as session:
            row = session.get(RunRow, self.name)
            if row is not None:
                row.created = datetime.now(UTC).isoformat()

    def batch(self, number: int) -> Batch:
        """A batch as far as it got; one that was not begun gets its request's name."""
        with self._database.write() as session:
            row = session.get(RunBatchRow, (self.name, number))
            if row is None:
                self._check_open(session)
                row = RunBatchRow(run=self.name, number=number, request=secrets.token_hex(16), answer=None)
                session.add(row)
            sent = select(RunPieceRow.sent).where(RunPieceRow.run == self.name, RunPieceRow.number == number)
            return Batch(row.request, tuple(session.scalars(sent.order_by(RunPieceRow.piece))), row.answer)

    def sending(self, number: int, piece: int, sent: bytes) -> bytes:
        """Write down what is about to be sent; returns what is to be sent, another process's message where it was first."""
        with self._database.write() as session:
            row = session.get(RunPieceRow, (self.name, number, piece))
            if row is None:
                self._check_open(session)
                row = RunPieceRow(run=self.name, number=number, piece=piece, sent=sent)
                session.add(row)
            return row.sent

    def _check_open(self, session: Session) -> None:
        if session.get(RunRow, self.name) is None:
            raise QuestionRefused("Another process asked the same at this moment and has the answer. Try again.")

    def answered(self, number: int, answer: bytes) -> None:
        """Write down what came of it; what was sent is not needed any more."""
        with self._database.write() as session:
            row = session.get(RunBatchRow, (self.name, number))
            if row is not None:  # another process may have handed the run over
                row.answer = answer
            self._delete(session, RunPieceRow, number)

    def drop(self, number: int) -> None:
        """Forget a batch that will never be answered: it is asked again, if at all."""
        with self._database.write() as session:
            self._delete(session, RunPieceRow, number)
            self._delete(session, RunBatchRow, number)

    def _delete(self, session: Session, table: type[RunPieceRow] | type[RunBatchRow], number: int) -> None:
        session.execute(delete(table).where(table.run == self.name, table.number == number))


class Journal:
    """The runs of one Guest."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    def run(self, question: str) -> Run:
        """The run that asks this question and was not handed over; a new one where there is none that nobody is at work on.

        Two of this process that ask the same at once are two questions; :meth:`ended` tells that nobody is at work on a run any more.

        Parameters
        ----------
        question : str
            SHA-256 of the model, the samples and the cipher, in hexadecimal.
        """
        now = datetime.now(UTC)
        with self._lock, self._database.write() as session:
            session.execute(delete(RunRow).where(RunRow.created < (now - KEPT).isoformat()))
            session.execute(delete(StatedRow).where(StatedRow.created < (now - STATED).isoformat()))
            runs = session.scalars(select(RunRow).where(RunRow.question == question).order_by(RunRow.created))
            known = next((run for run in runs if run.run not in self._busy), None)
            if known is None:
                known = RunRow(run=secrets.token_hex(16), question=question, created=now.isoformat())
                session.add(known)
            known.created = now.isoformat()  # whoever asks again wants it: a day counts from now
            self._busy.add(known.run)
            return Run(self._database, known.run)

    def ended(self, run: Run | None) -> None:
        """Nobody of this process is at work on the run: whoever asks the same goes on with it."""
        if run is not None:
            self._busy.discard(run.name)

    def state(self, terms: bytes, values: Mapping[str, float | str | None]) -> None:
        """Write down which values terms were made with, for an auditor who may have drawn them."""
        row = StatedRow(
            digest=sha256(terms).hexdigest(), created=datetime.now(UTC).isoformat(), body=json.dumps(values)
        )
        with self._database.write() as session:
            session.merge(row)

    def stated(self, terms: bytes) -> dict[str, float | str | None]:
        """Which values terms were made with; raises SecurityError where that is not known (any more)."""
        with self._database.read() as session:
            row = session.get(StatedRow, sha256(terms).hexdigest())
        if row is None:
            raise SecurityError("The Guest cannot state with which values these terms were made.")
        values: dict[str, float | str | None] = json.loads(row.body)
        return values

    def training(self, guest: str, question: str) -> GuestTraining:
        """The training that was broken off, or a new one; see :func:`backend.store.trainings.guest_training`."""
        return guest_training(self._database, guest, question)

    def waits(self, run: str) -> bool:
        """Whether what a run came to was not yet handed over."""
        with self._database.read() as session:
            return session.get(RunRow, run) is not None

    def kept(self) -> tuple[int, int, int]:
        """Runs, messages that wait for their answer, and batches whose scores wait to be handed over; none of them names a person."""
        waiting = RunBatchRow.answer.is_not(None)
        counts = (
            select(func.count()).select_from(RunRow),
            select(func.count()).select_from(RunPieceRow),
            select(func.count()).select_from(RunBatchRow).where(waiting),
        )
        with self._database.read() as session:
            runs, sent, answered = (session.scalars(count).one() for count in counts)
        return runs, sent, answered

    def handed_over(self, run: str) -> None:
        """Whoever asked has the scores: forget the run."""
        with self._database.write() as session:
            session.execute(delete(RunRow).where(RunRow.run == run))
