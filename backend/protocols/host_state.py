"""What a Host keeps between messages: open conversations, its partial models, and how often it may still answer. No weight is in it."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar, cast

import msgpack
import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import FoldPlan, PublicSide
from backend.data.table import PartyTable
from backend.errors import HostBusy, SecurityError
from backend.protocols.baselines.host_answers import HostPaths
from backend.protocols.scoring.fed_eini import CompiledHost, host_plan
from backend.protocols.terms.floors import Floors
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import to_bitmap
from backend.store.accountant import LIMITS, Accountant, Question
from backend.store.party_store import PartyStore
from backend.store.receipts import Stated
from backend.store.request_log import RequestLog
from backend.store.trainings import HostTrainings
from backend.trees.ensemble import Columns, HostModel
from backend.trees.folding import Folding, Step, fold_structure
from backend.trees.serialization import dump_host, load_host, structure_hash

SESSIONS_KEPT = 64  # open conversations a Guest; one more is refused
IDLE = 3600.0  # seconds without a message after which a conversation is over
BUSY = 10.0  # seconds after which a Guest with too many open conversations may ask again

Answer = Iterator[tuple[str, Message]]  # messages, each with its receiver
# by class of message: sender and message → answer, if there is any
Handlers = dict[type[Message], Callable[[str, Any], Answer | None]]
Work = TypeVar("Work")
Flags = NDArray[np.bool_]
_serving: ContextVar[str] = ContextVar("guest of the conversation that is served", default="")


@dataclass
class HostSession:
    """One conversation that a Guest has opened.

    Attributes
    ----------
    key : bytes
        The key that it offered, as it came.
    rows : ndarray of int, optional
        The joint records as rows of the Host's table, once ids were aligned.
    played : PartyTable, optional
        What stands in for the Host's records (simulation).
    purpose : str
        What it measures, where the Host agreed to that; else empty.
    used : float
        When something came last, by the Host's clock.
    at_work : int
        Messages of it that are being answered.
    stated : list
        What the Host sent and took, for its receipt (:data:`backend.store.receipts.Stated`).
    """

    guest: str
    cipher: PublicSide | None = None
    key: bytes = b""
    rows: NDArray[np.intp] | None = field(default=None, repr=False)
    played: PartyTable | None = field(default=None, repr=False)
    purpose: str = ""
    used: float = 0.0
    at_work: int = 0
    stated: list[Stated] = field(default_factory=list, repr=False)
    _work: dict[type, object] = field(default_factory=dict, repr=False)

    def keep(self, kind: type[Work], work: Work) -> Work:
        """Remember the state of one kind of work; returns it."""
        self._work[kind] = work
        return work

    def kept(self, kind: type[Work]) -> Work | None:
        """The state of that kind of work, if any was begun."""
        return cast("Work | None", self._work.get(kind))

    def drop(self, kind: type) -> None:
        """Forget that kind of work."""
        self._work.pop(kind, None)

    def need(self, kind: type[Work], what: str) -> Work:
        """The state of that kind of work; raises SecurityError, with the message `what`, where none was begun."""
        work = self.kept(kind)
        if work is None:
            raise SecurityError(what)
        return work

    def look_up(self, table: PartyTable, ids: Sequence[str]) -> tuple[Columns, Flags]:
        """Columns of some people, ``(n,)`` each, and whether a record of each is held; the rows of the others mean nothing."""
        used = self.played if self.played is not None else table
        rows = used.row_of.of(ids)
        held = rows >= 0
        return used.take(np.where(held, rows, 0)).columns if len(used.ids) else {}, held


class HostSessions:
    """The open conversations of a Host, by Guest and name; one that ends is forgotten whole.

    Work that is open is never dropped for other work: a Guest that has :data:`SESSIONS_KEPT` open conversations is refused one more, and
    one in which nothing has come for :data:`IDLE` seconds is over.

    Parameters
    ----------
    clock : callable
        Seconds from any moment on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[tuple[str, str], HostSession] = {}
        self._lock = threading.RLock()
        self.uncounted: set[str] = set()  # conversations outside the budget (simulation)

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def serving(self, guest: str, conversation: str) -> Iterator[None]:
        """What is looked up by the name of a conversation alone, in this thread, is this Guest's; it is not idle meanwhile."""
        token = _serving.set(guest)
        self._work(guest, conversation, 1)
        try:
            yield
        finally:
            self._work(guest, conversation, -1)
            _serving.reset(token)

    def _work(self, guest: str, conversation: str, more: int) -> None:
        with self._lock:
            session = self._open.get((guest, conversation))
            if session is not None:
                session.at_work = max(0, session.at_work + more)
                session.used = self._clock()

    def of(self, conversation: str, guest: str = "") -> HostSession:
        """The conversation of that name; one that is not open is opened where `guest` is given.

        Raises
        ------
        SecurityError
            It is not open and nobody opens it.
        HostBusy
            The Guest has too many open.
        """
        with self._lock:
            session = self.find(conversation, guest or _serving.get())
            if session is not None:
                return session
            if not guest:
                raise SecurityError("conversation_not_open")
            self._expire()
            if sum(owner == guest for owner, _ in self._open) >= SESSIONS_KEPT:
                raise HostBusy("too_many_conversations", BUSY, max_open=SESSIONS_KEPT, seconds=BUSY)
            session = self._open[guest, conversation] = HostSession(guest, used=self._clock())
            return session

    def find(self, conversation: str, guest: str = "") -> HostSession | None:
        """The conversation of that name and Guest, if it is open; without a Guest, the only one of that name."""
        with self._lock:
            if guest:
                return self._open.get((guest, conversation))
            named = [session for (_, name), session in self._open.items() if name == conversation]
            return named[0] if len(named) == 1 else None

    def busy(self, quiet: float) -> int:
        """Conversations in which a message is being answered, or came less than `quiet` seconds ago."""
        with self._lock:
            since = self._clock() - quiet
            return sum(session.at_work > 0 or session.used > since for session in self._open.values())

    def _expire(self) -> None:
        since = self._clock() - IDLE
        for (guest, name), session in list(self._open.items()):
            if session.used < since and not session.at_work:
                self.end(name, guest)

    def counts(self, conversation: str) -> bool:
        """Whether its questions count: neither the simulation's measuring nor about people whose values the user typed in."""
        return self.of(conversation).played is None and conversation not in self.uncounted

    def end(self, conversation: str, guest: str) -> None:
        """Forget a conversation."""
        with self._lock:
            if self._open.pop((guest, conversation), None) is not None:
                self.uncounted.discard(conversation)


@dataclass(frozen=True, repr=False)
class ServedModel:
    """A model as this Host, at position `index` of the chain from 0, scores with it; compiled when it is first asked about."""

    model: HostModel
    folding: Folding
    index: int

    @property
    def step(self) -> Step:
        """Part of the chain that is this Host's."""
        return self.folding.steps[self.index]

    @property
    def preceding(self) -> str:
        """Whom it gets vectors from: the Host before it, or the Guest."""
        return self.folding.steps[self.index - 1].host if self.index else self.model.guest

    @property
    def following(self) -> str:
        """Whom it sends its result to: the next Host, or the Guest."""
        return self.model.guest if self.plan.last else self.folding.steps[self.index + 1].host

    @cached_property
    def features(self) -> frozenset[str]:
        """Return the Host's features that the model uses."""
        return frozenset(rule.feature for rule in self.model.rules.values())

    @cached_property
    def structure(self) -> str:
        """What answers are counted for, whatever the model is called."""
        return structure_hash(self.model)

    @cached_property
    def compiled(self) -> CompiledHost:
        """For Fed-EINI, eq. 9."""
        return CompiledHost(self.step, self.model.rules)

    @cached_property
    def plan(self) -> FoldPlan:
        """For Fed-EINI, eq. 10 and 13."""
        return host_plan(self.folding, self.index)

    @cached_property
    def paths(self) -> HostPaths:
        """For the protocols that Fed-EINI is compared with."""
        return HostPaths(self.model)


class HostModels:
    """The partial models of one Host.

    Attributes
    ----------
    host : str
        Its name.
    """

    def __init__(self, host: str, store: PartyStore) -> None:
        self.host = host
        self._store = store
        self._served: dict[str, ServedModel] = {}
        self._lock = threading.RLock()

    def put(self, model: HostModel, model_id: str) -> str:
        """Keep a partial model; returns its content hash."""
        with self._lock:
            digest = self._store.put_artefact(model_id, dump_host(model))
            self._served.pop(model_id, None)
        return digest

    @property
    def trainings(self) -> HostTrainings:
        """What this Host knows of trainings that may go on after a break."""
        return self._store.trainings

    def secret(self, name: str) -> bytes:
        """Return a long-term secret of this Host."""
        return self._store.secret(name)

    def note_training(self, model_id: str, columns: dict[str, Any]) -> None:
        """Keep the day on which a model was trained and the Host's `columns` as counted then, which a dossier's drift counts from."""
        self._store.put_training(model_id, datetime.now(UTC).date(), json.dumps(columns))

    def get(self, model_id: str) -> ServedModel:
        """A partial model, ready for scoring.

        Raises
        ------
        ModelError
            It is unknown or damaged.
        SecurityError
            This Host owns no split of the model.
        """
        served = self.find(model_id)
        if served is None:
            raise SecurityError("no_split_here")
        return served

    def find(self, model_id: str) -> ServedModel | None:
        """Return a partial model, ready for scoring; None if this Host owns no split of it.

        Raises
        ------
        ModelError
            If it is unknown or damaged.
        """
        with self._lock:
            return self._served.get(model_id) or self._loaded(model_id)

    def _loaded(self, model_id: str) -> ServedModel | None:
        model = load_host(self._store.artefact(model_id))
        folding = fold_structure(model.skeletons, model.guest, model.hosts)
        index = next((i for i, step in enumerate(folding.steps) if step.host == self.host), None)
        if index is None:
            return None
        self._served[model_id] = ServedModel(model, folding, index)
        return self._served[model_id]


@dataclass(frozen=True, repr=False)
class Answering:
    """What a Host's handlers answer with, and the one account that every answer about a record passes.

    Attributes
    ----------
    accountant : Accountant, optional
        None = nothing is counted.
    requests : RequestLog, optional
        Where a sample of requests is kept for an auditor.
    floors : Floors
        What the Host insists on.
    """

    partial_models: HostModels
    sessions: HostSessions
    accountant: Accountant | None
    requests: RequestLog | None
    floors: Floors = field(default_factory=Floors)

    @property
    def min_group(self) -> int:
        """Return the fewest people in a group that anything is said about; 0 = as each protocol has it."""
        return self.floors.group_size

    def named_share(self, conversation: str) -> float:
        """Return how much of who is in a group its sums may carry; 0 = not limited, as for people who need no protection."""
        return 0.0 if self.account(conversation) is None else self.floors.named_share

    def account(self, conversation: str) -> Accountant | None:
        """The account of a conversation; None where its questions do not count."""
        return self.accountant if self.sessions.counts(conversation) else None

    def together(self, conversation: str) -> AbstractContextManager[object]:
        """Within, what is counted is counted all together or not at all."""
        accountant = self.account(conversation)
        return nullcontext() if accountant is None else accountant.together()

    def count(
        self, question: Question, conversation: str, ids: Sequence[str], held: Flags, digest: str = ""
    ) -> tuple[Flags, HeldRecords, ReceivedQuestion | None]:
        """Count a question about those of `ids`, ``(n,)``, who are `held`; with the `digest` of its bytes where they are all there.

        Returns
        -------
        spent : ndarray of bool
            ``(n,)``: about whom a limit was reached before.
        message : HeldRecords
            What the Guest learns of it.
        asked : ReceivedQuestion, optional
            The question bound to its bytes (:meth:`bind`), where they are all there.

        Raises
        ------
        QuestionRefused
            As :meth:`bind`, where the bytes are all there.
        """
        spent, accountant = np.zeros(len(held), dtype=bool), self.account(conversation)
        question = replace(question, conversation=conversation)
        asked = None
        if accountant is not None and digest:
            spent[held], kept = accountant.count_bound(question, digest)
            asked = ReceivedQuestion(accountant, question.guest, question.request, kept)
        elif accountant is not None:
            spent[held] = accountant.count(question)
        if accountant is None or not spent.any():
            return spent, HeldRecords(conversation, to_bitmap(held)), asked
        reached, limits = np.zeros(len(held), dtype=np.uint8), accountant.limits
        # a question that is repeated was refused then, whatever the limits leave now
        reached[held] = np.maximum(accountant.reached(question), 1)
        reached[~spent] = 0
        sizes = *limits.of(question.kind), limits.bits, limits.days
        return spent, HeldRecords(conversation, to_bitmap(held), reached.tobytes(), *sizes), asked

    def count_all(self, question: Question, conversation: str, *, only_look: bool = False) -> None:
        """Count a question about all of its people; or `only_look` whether it could be.

        Raises SecurityError where some of them were asked about before, so nobody is answered about.
        """
        accountant = self.account(conversation)
        if accountant is None:
            return
        question = replace(question, conversation=conversation)
        refused = accountant.spent(question) if only_look else accountant.count(question, whole=True)
        spent, limits = int(refused.sum()), accountant.limits
        if not spent:
            return
        if (accountant.reached(question)[refused] == LIMITS.index("bits")).any():
            raise SecurityError("bits_reached", days=limits.days, bits=limits.bits)
        # of one answer alone the last one says when; whatever else is counted may make it later
        until = accountant.last_until(question) if limits.of(question.kind)[0] == 1 else None
        people = len(question.people)
        if until is not None:
            raise SecurityError(
                "people_in_common_until", spent=spent, people=people, days=limits.days, until=until.isoformat()
            )
        raise SecurityError("people_in_common", spent=spent, people=people, days=limits.days)

    def bind(self, guest: str, request: str, conversation: str, digest: str) -> ReceivedQuestion:
        """Bind a counted question to the bytes in which it came, so that it is repeated in the same ones or not at all.

        Raises QuestionRefused where it came in others before.
        """
        accountant = self.account(conversation) if request else None
        kept = accountant.reply_to(guest, request, digest) if accountant is not None else None
        return ReceivedQuestion(accountant, guest, request, kept)


@dataclass(frozen=True, repr=False)
class ReceivedQuestion:
    """A question as it came in, and the answer that it got before, if any."""

    accountant: Accountant | None
    guest: str
    request: str
    kept: bytes | None

    def answer(self, make: Callable[[], bytes]) -> bytes:
        """The answer that was given before; otherwise one that is made now, and kept until the Guest has it."""
        if self.kept is not None:
            return self.kept
        made = make()
        return made if self.accountant is None else self.accountant.keep_reply(self.guest, self.request, made)


def members(ids: Sequence[str], held: Flags) -> tuple[str, ...]:
    """Those of some people of whom a record is held."""
    return tuple(i for i, known in zip(ids, held.tolist(), strict=True) if known)


def digest_of(*parts: bytes | str | float | Sequence[str]) -> str:
    """SHA-256 in hexadecimal of parts of a question, each with its length."""
    digest = hashlib.sha256(msgpack.Packer().pack_array_header(len(parts)))
    for part in parts:  # one by one: together they may be tens of megabytes
        digest.update(msgpack.packb(part))
    return digest.hexdigest()
