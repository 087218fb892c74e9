"""People of several requests scored together: requests within some milliseconds go to the Hosts as one question.

Programs that ask one person after the other come back as soon as they are answered: once all who were answered or left waiting are there
again, no other caller is waited for.

A request that was once put into a batch stays in it. Where the batch failed, a repeat under the same key sends the same batch again, which
the Guest's journal knows, so that no Host counts it twice (docs/decisions/scale.md). So does the same request after the server was
killed: questions of batches are in files until their answers are delivered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from backend.errors import GlassleafError, SampleError
from backend.ops.metrics import ProcessCounts
from backend.results import ScoreBatch
from backend.server.batch_files import AskedPeople, BatchFiles, drop
from backend.services.online import OpenModel, Person

if TYPE_CHECKING:
    from backend.data.table import SampleSheet
    from backend.remark import Remark

BATCH_WAIT_SECONDS = 0.008  # seconds that the first of a batch waits for others
IDLE_SECONDS = 1.0  # seconds without a question after which what was handed over is put aside
MAX_PEOPLE = 32  # people of a batch, if not one request alone has more
_log = logging.getLogger("glassleaf")


@dataclass(eq=False, repr=False)
class PendingRequest:
    """One request's people.

    Attributes
    ----------
    answer : Future of ScoreBatch
        Their scores, in their order; or what went wrong.
    batch : RequestBatch or None
        That it went to the Hosts in.
    dropped : bool
        No caller waits for it and nothing was asked.
    came : float
        When, by ``time.perf_counter``.
    """

    people: tuple[Person, ...]
    answer: asyncio.Future[ScoreBatch]
    batch: RequestBatch | None = None
    dropped: bool = False
    as_written: bool = False
    came: float = 0.0


@dataclass(eq=False, repr=False)
class RequestBatch:
    """Requests that are one question to the Hosts; `sheet` is made once.

    Attributes
    ----------
    file : Path or None
        Its file until its answers are delivered.
    unclaimed : int
        Requests of a killed server that were not repeated yet.
    score_batch : ScoreBatch or None
        The scores of all of it.
    """

    questions: tuple[PendingRequest, ...]
    sheet: SampleSheet | None = None
    parts: dict[PendingRequest, slice] = field(default_factory=dict)
    file: Path | None = None
    unclaimed: int = 0
    score_batch: ScoreBatch | None = None


class Batcher:
    """The requests of one caller about one model; everything but the work itself runs in the event loop."""

    def __init__(
        self,
        model: OpenModel,
        metrics: ProcessCounts,
        files: BatchFiles,
        wait: float = BATCH_WAIT_SECONDS,
        max_people: int = MAX_PEOPLE,
    ) -> None:
        self._model = model
        self._files = files
        self._left: dict[str, list[tuple[PendingRequest, RequestBatch]]] = {}
        self._metrics = metrics
        self._wait = wait
        self._max_people = max_people
        self._waiting: deque[PendingRequest] = deque()
        self._again: deque[RequestBatch] = deque()
        self._some = asyncio.Event()
        self._full = asyncio.Event()
        # requests that a batch's end left, and until when they are likely to be back
        self._asking = 0
        self._back_by = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="glassleaf-online")
        self._telling: asyncio.Future[None] | None = None
        self._take_up()
        self._task = asyncio.create_task(self._work())

    @property
    def model(self) -> OpenModel:
        """Return what is asked."""
        return self._model

    @property
    def waiting(self) -> int:
        """Requests that are in no batch yet, and batches that are to be sent again."""
        return len(self._waiting) + len(self._again)

    def ask(self, people: tuple[Person, ...], *, as_written: bool = False) -> PendingRequest:
        """Queue a request; one that a server before this one was killed over is in its batch already."""
        recovered = self._left.get(AskedPeople(people, as_written).name)
        if recovered:
            earlier_question, batch = recovered.pop()
            batch.unclaimed -= 1
            asyncio.get_running_loop().run_in_executor(self._thread, self._put_aside, batch)
            return earlier_question
        answer: asyncio.Future[ScoreBatch] = asyncio.get_running_loop().create_future()
        question = PendingRequest(people, answer, as_written=as_written, came=time.perf_counter())
        self._waiting.append(question)
        self._rouse()
        return question

    def _take_up(self) -> None:
        """Have batches of a server that was killed sent again, which the Guest's journal knows."""
        loop = asyncio.get_running_loop()
        for file, requests in self._files.left():
            questions = tuple(
                PendingRequest(earlier_request.people, loop.create_future(), as_written=earlier_request.as_written)
                for earlier_request in requests
            )
            batch = RequestBatch(questions, file=file, unclaimed=len(questions))
            for question, request in zip(questions, requests, strict=True):
                question.batch = batch
                self._left.setdefault(request.name, []).append((question, batch))
            self._again.append(batch)
            self._rouse()

    def again(self, question: PendingRequest) -> None:
        """Queue a request whose batch failed, with all that was in it."""
        batch = question.batch
        if batch is None:
            question.answer = asyncio.get_running_loop().create_future()
            self._waiting.append(question)
        else:
            for batch_question in batch.questions:
                if batch_question.answer.done():
                    batch_question.answer = asyncio.get_running_loop().create_future()
            self._again.append(batch)
        self._rouse()

    async def close(self) -> None:
        """Finish what is at work; what waits is given up."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        if self._telling is not None:
            await self._telling
        await asyncio.get_running_loop().run_in_executor(self._thread, self._model.close)
        self._thread.shutdown()

    def _rouse(self) -> None:
        self._some.set()
        back = time.monotonic() < self._back_by and len(self._waiting) >= self._asking
        if back or sum(len(question.people) for question in self._waiting) >= self._max_people:
            self._full.set()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._question()
            if not self._again:
                await self._others()
            batch = self._again.popleft() if self._again else self._next()
            if not (self._again or self._waiting):
                self._some.clear()
            if batch.questions:
                await loop.run_in_executor(self._thread, self._score, batch, loop.call_soon_threadsafe)
                self._back_by = time.monotonic() + self._wait
                self._begin_telling()

    async def _others(self) -> None:
        """Wait until a batch is full, all recent callers are back, or the waiting time has passed."""
        self._full.clear()
        self._rouse()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._full.wait(), self._wait)

    async def _question(self) -> None:
        """Wait for a question; after a while without one put delivered batches aside."""
        try:
            await asyncio.wait_for(self._some.wait(), IDLE_SECONDS)
        except TimeoutError:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._settle)
            self._begin_telling()
            await self._some.wait()

    def _settle(self) -> None:
        try:
            self._model.settle()
        except Exception as error:  # it is tried again with the next question
            _log.error("What was handed over could not be put aside: %s", type(error).__name__)

    def _begin_telling(self) -> None:
        """Send Hosts the audit log's head; the next question does not wait for it."""
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().run_in_executor(None, self._tell)

    def _tell(self) -> None:
        try:
            self._model.tell()
        except Exception as error:  # as above
            _log.error("Hosts could not be told where the audit log stands: %s", type(error).__name__)

    def _next(self) -> RequestBatch:
        """Return a batch of the requests that waited longest; no person is twice in a question."""
        batch_questions: list[PendingRequest] = []
        postponed: list[PendingRequest] = []
        ids: set[str] = set()
        for question in self._waiting:
            question_ids = {person.id.strip() for person in question.people}
            fits = not batch_questions or len(ids) + len(question.people) <= self._max_people
            if question.dropped:
                continue
            if fits and not question_ids & ids:
                batch_questions.append(question)
                ids |= question_ids
            else:
                postponed.append(question)
        self._waiting = deque(postponed)
        batch = RequestBatch(tuple(batch_questions))
        for question in batch_questions:
            question.batch = batch
            self._metrics.took("queue", time.perf_counter() - question.came)
        return batch

    def _score(self, batch: RequestBatch, in_loop: Callable[..., object]) -> None:
        """In the thread: a sheet of all, then their scores; every request gets its own, or what went wrong."""
        try:
            if batch.sheet is None:
                self._prepare(batch, in_loop)
            if batch.sheet is None:
                return
            if batch.file is None:
                batch.file = self._files.keep(
                    [AskedPeople(batch_question.people, batch_question.as_written) for batch_question in batch.parts]
                )
            with self._metrics.timed("question"):
                score_batch = self._model.score(batch.sheet)
            self._count(score_batch)
            notes = {question: self._model.notes(score_batch.scores[part]) for question, part in batch.parts.items()}
        except Exception as error:
            if not isinstance(error, GlassleafError):
                _log.error("A batch of scores failed: %s", type(error).__name__)  # its text may hold data
            for question in batch.parts or batch.questions:
                in_loop(_fail, question, error)
            return
        batch.score_batch = score_batch
        in_loop(self._hand_over, batch, score_batch, notes)
        self._put_aside(batch)

    def _put_aside(self, batch: RequestBatch) -> None:
        """In the thread: once everybody has the scores, the journal and the disk forget the batch."""
        if batch.score_batch is None or batch.unclaimed:
            return
        score_batch = batch.score_batch
        batch.score_batch = None
        try:
            self._model.handed_over(score_batch)
            drop(batch.file)
        except Exception as error:  # they have their scores
            _log.error("A batch of scores could not be put aside: %s", type(error).__name__)

    def _hand_over(
        self, batch: RequestBatch, score_batch: ScoreBatch, notes: Mapping[PendingRequest, tuple[Remark, ...]]
    ) -> None:
        """In the loop: every request gets its own scores."""
        self._asking = len(self._waiting) + len(batch.parts)
        for question, part in batch.parts.items():
            question.batch = None
            if not question.answer.done():
                question.answer.set_result(replace(score_batch, scores=score_batch.scores[part], notes=notes[question]))

    def _count(self, score_batch: ScoreBatch) -> None:
        """Count and log one question, without the people it was about."""
        failed = sum(not score.scored for score in score_batch.scores)
        self._metrics.count_people(len(score_batch.scores) - failed, failed)
        for stage in score_batch.stages:
            self._metrics.took(stage.name, stage.seconds)
        about = {
            "run": score_batch.run,
            "people": len(score_batch.scores),
            "failed": failed,
            "seconds": round(score_batch.seconds, 4),
        }
        _log.info("People were scored.", extra=about)

    def _prepare(self, batch: RequestBatch, in_loop: Callable[..., object]) -> None:
        """One sheet of all requests that can be used whole; the others are refused, and nothing is asked about their people."""
        sheet = self._model.sheet([person for question in batch.questions for person in question.people])
        rows: list[int] = []
        first_row = 0
        for question in batch.questions:
            question_rows = range(first_row, first_row + len(question.people))
            first_row = question_rows.stop
            problems = []
            for row in question_rows:
                for remark in sheet.problems.get(row, ()):
                    problems.append(replace(remark, row=row - question_rows.start + 1))
            refusal = SampleError(problems=problems) if problems else self._refusal(question)
            if refusal is not None:
                question.batch = None
                in_loop(_fail, question, refusal)
            else:
                batch.parts[question] = slice(len(rows), len(rows) + len(question_rows))
                rows += question_rows
        if rows:
            batch.sheet = sheet.take(rows)

    def _refusal(self, question: PendingRequest) -> GlassleafError | None:
        """Return why a request's ids stop it before anything is asked, or None."""
        try:
            self._model.check_ids(question.people, as_written=question.as_written)
        except GlassleafError as error:
            return error
        return None


def _fail(question: PendingRequest, error: Exception) -> None:
    if not question.answer.done():
        question.answer.set_exception(error)
        question.answer.exception()  # a caller who no longer waits is no fault
