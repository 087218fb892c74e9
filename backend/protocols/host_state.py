"""What a Host keeps between messages: open conversations, its partial models, and how often it may still answer. No weight is in it."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import msgpack
import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import FoldPlan, PublicSide
from backend.data.table import PartyTable
from backend.errors import HostBusy, SecurityError
from backend.protocols.scoring.fed_eini import CompiledHost, host_plan
from backend.protocols.transport.message import Message
from backend.store.party_store import SEALED, PartyStore
from backend.store.receipts import Stated
from backend.store.trainings import HostTrainings
from backend.trees.ensemble import HostModel
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
    last : str
        The kind of the last message; the number of `messages` so far.
    stopped : bool
        Whether the Host's operator has ended it: nothing more of it is answered.
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
    last: str = ""
    messages: int = 0
    stopped: bool = False
    stated: list[Stated] = field(default_factory=list, repr=False)
    _work: dict[type, object] = field(default_factory=dict, repr=False)

    def note(self, kind: str) -> None:
        """A message of this kind has come."""
        self.last = kind
        self.messages += 1

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
        """The state of that kind of work; raises SecurityError, with the message `what`, if none was begun."""
        work = self.kept(kind)
        if work is None:
            raise SecurityError(what)
        return work


class Running(NamedTuple):
    """An open conversation as the Host's operator sees it: neither whom nor which feature it is about.

    Attributes
    ----------
    last : str
        The kind of its last message.
    quiet : float
        Seconds since that came; 0 while it is answered.
    """

    conversation: str
    guest: str
    last: str
    messages: int
    quiet: float
    stopped: bool

    @property
    def id(self) -> str:
        """Hash that names its files and buttons: the conversation's own name is chosen by the Guest."""
        return _id_of(self.guest, self.conversation)


def _id_of(guest: str, conversation: str) -> str:
    return hashlib.sha256(json.dumps([guest, conversation]).encode()).hexdigest()


class HostSessions:
    """The open conversations of a Host, by Guest and name; one that ends is forgotten whole.

    Work that is open is never dropped for other work: a Guest that has :data:`SESSIONS_KEPT` open conversations is refused one more, and
    one in which nothing has come for :data:`IDLE` seconds is over.

    Parameters
    ----------
    clock : callable
        Seconds from any moment on.
    broken_off : callable
        Told of each conversation that is over though its Guest has not ended it.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        broken_off: Callable[[str, HostSession], object] = lambda conversation, session: None,
    ) -> None:
        self._clock = clock
        self._broken_off = broken_off
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
        """Return the open conversation of a name and Guest; without a Guest, the only one of that name. None if there is none."""
        with self._lock:
            if guest:
                return self._open.get((guest, conversation))
            sessions = []
            for (_, name), session in self._open.items():
                if name == conversation:
                    sessions.append(session)
            return sessions[0] if len(sessions) == 1 else None

    def running(self, quiet: float) -> tuple[Running, ...]:
        """Return the conversations of :meth:`busy`, in the order in which they were opened."""
        with self._lock:
            now = self._clock()
            conversations = []
            for (guest, name), session in self._open.items():
                silent = 0.0 if session.at_work else now - session.used
                if silent < quiet:
                    running = Running(name, guest, session.last, session.messages, silent, session.stopped)
                    conversations.append(running)
            return tuple(conversations)

    def stop(self, id_: str) -> bool:
        """Answer nothing more of the conversation with that :attr:`Running.id`; False if it is not open."""
        with self._lock:
            for (guest, name), session in self._open.items():
                if _id_of(guest, name) == id_:
                    session.stopped = True
                    return True
            return False

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
                self._broken_off(name, session)

    def end_all(self) -> None:
        """The Host stops: what is open is over."""
        with self._lock:
            for (guest, name), session in list(self._open.items()):
                self.end(name, guest)
                self._broken_off(name, session)

    def counts(self, conversation: str) -> bool:
        """Whether its questions count: neither the simulation's measuring nor about people whose values the user typed in."""
        return self.of(conversation).played is None and conversation not in self.uncounted

    def end(self, conversation: str, guest: str) -> None:
        """Forget a conversation."""
        with self._lock:
            if self._open.pop((guest, conversation), None) is not None:
                self.uncounted.discard(conversation)


@dataclass(frozen=True, repr=False, eq=False)
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
        if self.index:
            return self.folding.steps[self.index - 1].host
        return self.model.guest

    @property
    def following(self) -> str:
        """Whom it sends its result to: the next Host, or the Guest."""
        if self.plan.last:
            return self.model.guest
        return self.folding.steps[self.index + 1].host

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


@dataclass(frozen=True)
class Sealed:
    """How a half is kept sealed.

    Attributes
    ----------
    most_named : float
        Share of scores that may fit one path only before it is opened.
    training : str
        Subject of the approval that its training had; empty if this Host asks no operator.
    """

    most_named: float
    training: str


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
        self._grown = set[str]()
        self._open = set[str]()
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

    def grew(self, model_id: str) -> bool:
        """Return whether a model was trained here: whether its trees grew at this Host. Another one is an import."""
        if model_id not in self._grown and self._store.trained_here(model_id):
            self._grown.add(model_id)  # for good; every question about the model asks
        return model_id in self._grown

    def seal(self, model_id: str, sealed: Sealed) -> None:
        """Keep a model sealed."""
        self._store.put_artefact(f"{model_id}{SEALED}", json.dumps(asdict(sealed)))

    def sealed(self, model_id: str) -> Sealed | None:
        """Return how a model is sealed; None if it is open or unknown."""
        if model_id in self._open:
            return None
        name = f"{model_id}{SEALED}"
        if self._store.content_hash(name):
            return Sealed(**json.loads(self._store.artefact(name)))
        if self.knows(model_id):
            self._open.add(model_id)  # for good; every question about the model asks
        return None

    def open_half(self, guest: str, model_id: str, half: HostModel, released_as: str) -> None:
        """Keep a half as an open one, under the name that it has from then on; a sealed one of the old name is no more."""
        with self._lock:
            self._store.open(model_id, released_as, dump_host(half))
            self.trainings.close(guest, model_id, released_as)
            self._served.pop(model_id, None)
            self._served.pop(released_as, None)

    def knows(self, model_id: str) -> bool:
        """Return whether a half of this name is kept."""
        return bool(self._store.content_hash(model_id))

    def is_open(self, model_id: str) -> bool:
        """Return whether a half of this name is kept, and may be asked about."""
        return self.knows(model_id) and self.sealed(model_id) is None

    def half(self, model_id: str) -> HostModel:
        """Return a half as it is kept; raises ModelError if it is unknown or damaged."""
        return load_host(self._store.artefact(model_id))

    def discard(self, model_id: str) -> None:
        """Delete a sealed half, in whose place another one of the same training is kept."""
        with self._lock:
            self._store.drop(model_id)
            self._served.pop(model_id, None)

    def check_owner(self, model_id: str, guest: str) -> None:
        """Raise SecurityError if another Guest's model has this id already."""
        if self._store.content_hash(model_id):
            model_here = self.find(model_id)
        else:
            model_here = None
        if model_here is not None and model_here.model.guest != guest:
            raise SecurityError("model_of_another_guest")

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


def members(ids: Sequence[str], has_record: Flags) -> tuple[str, ...]:
    """Return the people of whom there is a record."""
    return tuple(i for i, is_known in zip(ids, has_record.tolist(), strict=True) if is_known)


def digest_of(*parts: bytes | str | float | Sequence[str]) -> str:
    """SHA-256 in hexadecimal of parts of a question, each with its length."""
    digest = hashlib.sha256(msgpack.Packer().pack_array_header(len(parts)))
    for part in parts:  # one by one: together they may be tens of megabytes
        digest.update(msgpack.packb(part))
    return digest.hexdigest()
