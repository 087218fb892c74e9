"""The HTTP addresses: callers, requests, answers. The services do the work; their errors become problem bodies."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Scope

from backend.errors import GlassleafError, SampleError
from backend.ops.metrics import ProcessCounts
from backend.remark import Remark
from backend.results import ModelRecord, ScoreBatch
from backend.server.batch_files import BatchFiles, forget_old
from backend.server.batches import Batcher, PendingRequest
from backend.server.body import CheckedRoute
from backend.server.guard import Guard
from backend.server.problems import (
    MEDIA_TYPE,
    Problem,
    answer_http,
    answer_problem,
    answer_unusable,
    budget_spent,
    problem_of,
)
from backend.server.schema import (
    ColumnAnswer,
    ModelsAnswer,
    PersonAnswer,
    ProblemAnswer,
    ReasonsAnswer,
    ReasonsBody,
    ScoresAnswer,
    ScoresBody,
    model_answer,
)
from backend.server.tokens import Token, Tokens
from backend.services import Glassleaf
from backend.services.online import Online, OpenModel, with_what_if
from backend.services.reasons import Reasons, ReasonsRequest
from backend.services.roles import ANALYST
from backend.services.samples import AS_WRITTEN
from backend.services.scoring import KEY_BITS, Cipher

MAX_DEADLINE = 600_000  # ms
if TYPE_CHECKING:
    from backend.data.table import SampleSheet

INTERFACE = "1"  # grows with what is no longer understood
KEY_RETENTION = timedelta(hours=24)  # for which a key stands for its request
MAX_KEYS = 100_000  # of a caller
CODES: dict[int | str, dict[str, Any]] = {
    code: {"description": words, "content": {MEDIA_TYPE: {"schema": ProblemAnswer.model_json_schema()}}}
    for code, words in {
        202: "The model waits for its approval; nothing was asked",
        401: "No token, or none that is known",
        403: "The token does not reach this model",
        404: "No such model",
        409: "The Idempotency-Key stood for another request",
        413: "The request is too large",
        422: "The request cannot be used; nothing was asked",
        429: "A Host's budget is spent; `date` says when it answers again at the latest",
        503: "A Host does not answer, or the deadline has passed; repeat under the same key",
    }.items()
}
R = TypeVar("R")
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Deadline = Annotated[int, Header(alias="Deadline-Ms", ge=1, le=MAX_DEADLINE, description="Milliseconds to wait.")]


@dataclass(frozen=True)
class Settings:
    """How a server answers.

    Attributes
    ----------
    cipher : Cipher or None
        None = RLWE if it holds a model's scores, else Paillier.
    open_to_all : bool
        No tokens: this machine's own programs alone.
    """

    cipher: Cipher | None = None
    key_bits: int = KEY_BITS
    open_to_all: bool = False


@dataclass(frozen=True)
class Caller:
    """The caller; `name` is empty if no tokens are needed."""

    name: str
    token: Token | None

    @property
    def id(self) -> str:
        """Return what this caller's keys and answers are kept under: a token made again under an old name is another caller."""
        return "" if self.token is None else self.token.digest

    def check(self, model_id: str) -> None:
        """Raise Problem if the token does not reach the model."""
        if self.token is not None and not self.token.reaches(model_id):
            raise Problem("forbidden", Remark("token_without_model"))


@dataclass(eq=False)
class _Kept:
    """The request of a key: its hash, its question, and the answer once there is one."""

    digest: str
    until: datetime
    question: PendingRequest | None = None
    task: asyncio.Task[Reasons] | None = None

    def running(self) -> asyncio.Task[Reasons] | None:
        """Return the task that works on the reasons, or has found them; None if it was not started, or failed."""
        failed = self.task is not None and self.task.done() and self.task.exception() is not None
        return None if failed else self.task


class ServerState:
    """The state of the server while it runs: callers' keys, and a batcher for each caller and model."""

    def __init__(self, glassleaf: Glassleaf, settings: Settings, metrics: ProcessCounts) -> None:
        self.glassleaf = glassleaf
        self.settings = settings
        self.metrics = metrics
        self.tokens = Tokens(glassleaf.home)
        # by caller: many requests of one caller must not displace another's, which would be asked, and counted, twice
        self._kept: defaultdict[str, OrderedDict[tuple[str, ...], _Kept]] = defaultdict(OrderedDict)
        self._batchers: dict[tuple[str, str], Batcher] = {}
        self._acting: dict[str, Glassleaf] = {}
        self._reasons = asyncio.Semaphore(1)
        self._asked_reasons = 0
        forget_old(glassleaf.home)
        metrics.watch_queue("online", lambda: sum(batcher.waiting for batcher in list(self._batchers.values())))
        metrics.watch_queue("reasons", lambda: self._asked_reasons)

    def caller(self, request: Request) -> Caller:
        """Return the caller of a bearer token; raise Problem if it is unknown."""
        if self.settings.open_to_all and not self.tokens.all():
            return Caller("", None)
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            bearer = self.tokens.find(token.strip())
        else:
            bearer = None
        if bearer is None:
            challenge = {"WWW-Authenticate": 'Bearer realm="glassleaf"'}
            raise Problem("token", Remark("token_needed"), headers=challenge)
        return Caller(bearer.name, bearer)

    def services(self, caller: Caller) -> Glassleaf:
        """Return the services as this caller, for the audit log."""
        if not caller.name:
            return self.glassleaf
        if caller.name not in self._acting:
            self._acting[caller.name] = self.glassleaf.acting(f"token {caller.name}", ANALYST)
        return self._acting[caller.name]

    async def approved(self, caller: Caller, model_id: str) -> ModelRecord:
        """Return a model that may be asked; raises Problem otherwise."""
        caller.check(model_id)
        online = self.online(caller)
        record, approved = online.find(model_id) if online.fresh() else await in_thread(online.find, model_id)
        if not approved:
            raise Problem("approval", Remark("model_waits_for_approval", {"model": model_id}))
        return record

    def online(self, caller: Caller) -> Online:
        """Models, as this caller."""
        return self.services(caller).online

    async def batcher(self, caller: Caller, record: ModelRecord) -> Batcher:
        """Return the one of this caller and model."""
        key = caller.id, record.id
        if key not in self._batchers:
            how = self.settings.cipher, self.settings.key_bits
            opened = await in_thread(self.online(caller).open, record, *how)
            if key not in self._batchers:
                self._batchers[key] = Batcher(opened, self.metrics, BatchFiles(self.glassleaf.home, *key))
        return self._batchers[key]

    def kept(self, name: tuple[str, ...], body: str) -> _Kept:
        """Return the request of a key; raise Problem if the key was used for another request."""
        now = datetime.now(UTC)
        digest = sha256(body.encode()).hexdigest()
        requests_by_key = self._kept[name[0]]
        while requests_by_key and (len(requests_by_key) > MAX_KEYS or next(iter(requests_by_key.values())).until < now):
            requests_by_key.popitem(last=False)
        if name not in requests_by_key:
            requests_by_key[name] = _Kept(digest, now + KEY_RETENTION)
        entry = requests_by_key[name]
        if entry.digest != digest:
            raise Problem("key-reused", Remark("key_reused"))
        return entry

    def forget(self, name: tuple[str, ...]) -> None:
        """Forget the key of a request that asked nothing."""
        self._kept[name[0]].pop(name, None)

    async def reasons(self, services: Glassleaf, asking: ReasonsRequest) -> Reasons:
        """One question after the other."""
        self._asked_reasons += 1
        async with self._reasons:
            self._asked_reasons -= 1
            with self.metrics.timed("rank"):
                result = await in_thread(services.reasons.start(asking).get)
            services.reasons.handed_over(result)
            return result

    async def close(self) -> None:
        """End every conversation."""
        for batcher in self._batchers.values():
            await batcher.close()


def create_app(glassleaf: Glassleaf, settings: Settings, metrics: ProcessCounts | None = None) -> FastAPI:
    """The server's application over some services, which stay open when it ends; what it does is counted in `metrics`."""
    counted = metrics or ProcessCounts()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.server = ServerState(glassleaf, settings, counted)
        yield
        await app.state.server.close()

    app = FastAPI(title="Glassleaf", version=INTERFACE, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(Guard, is_known=_is_known, local_only=settings.open_to_all, answered=counted.count_answer)
    for error in (Problem, GlassleafError):
        app.add_exception_handler(error, answer_problem)
    app.add_exception_handler(RequestValidationError, answer_unusable)
    app.add_exception_handler(HTTPException, answer_http)
    router = APIRouter(route_class=CheckedRoute)
    _add_addresses(router)
    app.include_router(router)
    return app


# what waits for nothing is async: FastAPI hands the rest to threads, which takes longer than the work
async def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


At = Annotated[ServerState, Depends(_state)]


async def _caller(request: Request, state: At) -> Caller:
    return state.caller(request)


Who = Annotated[Caller, Depends(_caller)]


def _is_known(scope: Scope) -> bool:
    """Return whether a request, by its head alone, is of a caller; why not, the address says."""
    with suppress(Problem, GlassleafError):
        scope["app"].state.server.caller(Request(scope))
        return True
    return False


def _add_addresses(app: APIRouter) -> None:
    """GET /v1/models, POST …/scores and …/reasons."""

    @app.get("/v1/models", response_model=ModelsAnswer, responses={401: CODES[401]}, summary="Models that may be asked")
    async def models(state: At, caller: Who) -> ModelsAnswer:
        return await in_thread(_models, state, caller)

    @app.post("/v1/models/{model_id}/scores", response_model=ScoresAnswer, responses=CODES, summary="Score people")
    async def scores(
        model_id: str, request: ScoresBody, state: At, caller: Who, key: Key, deadline: Deadline = 30_000
    ) -> Response:
        return await _scores(state, caller, model_id, request, key, deadline / 1000)

    @app.post(
        "/v1/models/{model_id}/reasons",
        response_model=ReasonsAnswer,
        responses=CODES,
        summary="Name what raised scores",
    )
    async def reasons(
        model_id: str, request: ReasonsBody, state: At, caller: Who, key: Key, deadline: Deadline = 120_000
    ) -> Response:
        return await _reasons(state, caller, model_id, request, key, deadline / 1000)


def _models(state: ServerState, caller: Caller) -> ModelsAnswer:
    services = state.services(caller)
    answers = []
    for record, model_state in services.online.offered().values():
        if caller.token is None or caller.token.reaches(record.id):
            guest = services.federations.get(record.federation).guest
            columns = []
            for f in guest.features:
                columns.append(ColumnAnswer(name=f.name, meaning=f.meaning, kind=f.kind.value))
            answers.append(model_answer(record, model_state.name, model_state.state, columns))
    return ModelsAnswer(models=answers)


async def _scores(
    state: ServerState, caller: Caller, model_id: str, request: ScoresBody, key: str, seconds: float
) -> Response:
    record = await state.approved(caller, model_id)
    name = caller.id, record.id, "scores", key
    entry = state.kept(name, request.model_dump_json())
    batcher = await state.batcher(caller, record)
    people = tuple(person.person() for person in request.people)
    if entry.question is None:
        try:
            batcher.model.check(people)
        except GlassleafError as error:
            state.forget(name)
            raise problem_of(error) from error
        entry.question = batcher.ask(people, as_written=request.ids == AS_WRITTEN)
    elif entry.question.answer.done() and entry.question.answer.exception() is not None:
        batcher.again(entry.question)
    batch = await _in_time(state, name, entry.question, seconds)
    batch = with_line(batch, request.what_if)
    if batch.days and not any(score.scored for score in batch.scores):
        raise budget_spent(batch.scores[0].problem, datetime.now(UTC).date() + timedelta(days=batch.days))
    return Response(ScoresAnswer.of(batch).model_dump_json(), media_type="application/json")


def with_line(batch: ScoreBatch, what_if: float | None) -> ScoreBatch:
    """Return scores with what another line would say of each, if one was asked about; the decisions stay the policy's."""
    return replace(batch, scores=tuple(with_what_if(score, what_if) for score in batch.scores), what_if=what_if)


async def _in_time(state: ServerState, name: tuple[str, ...], question: PendingRequest, seconds: float) -> ScoreBatch:
    """Return the scores; what came to nothing before anything was asked leaves no trace of its key."""
    try:
        return await asyncio.wait_for(asyncio.shield(question.answer), seconds)
    except TimeoutError:
        if question.batch is None and not question.answer.done():
            question.dropped = True
            state.forget(name)
            raise Problem("deadline", Remark("deadline_before_asking")) from None
        raise Problem("deadline", Remark("hosts_still_work"), headers={"Retry-After": "1"}) from None
    except GlassleafError as error:
        if question.batch is None:
            state.forget(name)
        raise problem_of(error) from error


async def _reasons(
    state: ServerState, caller: Caller, model_id: str, request: ReasonsBody, key: str, seconds: float
) -> Response:
    record = await state.approved(caller, model_id)
    name = caller.id, record.id, "reasons", key
    entry = state.kept(name, request.model_dump_json())
    running = entry.running()
    if running is None:
        batcher = await state.batcher(caller, record)
        try:
            sheet = await in_thread(_usable, batcher.model, request)
        except (GlassleafError, Problem):
            if entry.task is None:
                state.forget(name)
            raise
        running = entry.running()
        if running is None:  # else the same request has come twice in the meantime
            cipher = state.settings.cipher or "rlwe"
            bits = state.settings.key_bits
            asking = ReasonsRequest(
                record.id,
                sheet,
                request.names,
                cipher,
                key_bits=bits,
                hold=True,
                against=request.against or "",
            )
            running = entry.task = asyncio.create_task(state.reasons(state.services(caller), asking))
    try:
        reasons = await asyncio.wait_for(asyncio.shield(running), seconds)
    except TimeoutError:
        raise Problem("deadline", Remark("hosts_still_work"), headers={"Retry-After": "1"}) from None
    except GlassleafError as error:
        raise problem_of(error) from error
    people = []
    for person in reasons.people:
        people.append(PersonAnswer.of(replace(person, score=with_what_if(person.score, request.what_if))))
    measured = {"against": reasons.against, "compared": reasons.compared}
    answer = ReasonsAnswer(model=record.id, cipher=reasons.cipher, people=people, **measured)
    return JSONResponse(answer.model_dump())


def _usable(model: OpenModel, request: ScoresBody) -> SampleSheet:
    """Return the people's sheet; raises Problem if one of them cannot be scored."""
    people = [person.person() for person in request.people]
    model.check(people)
    model.check_ids(people, as_written=request.ids == AS_WRITTEN)
    sheet = model.sheet(people)
    if sheet.problems:
        raise problem_of(
            SampleError(problems=[remark for row in sorted(sheet.problems) for remark in sheet.problems[row]])
        )
    return sheet


async def in_thread(work: Callable[..., R], *arguments: Any) -> R:
    """Run a call that waits for a file, a store or a Host, outside the event loop."""
    return await asyncio.get_running_loop().run_in_executor(None, partial(work, *arguments))
