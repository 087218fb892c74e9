"""What a Host keeps between messages: open conversations, its partial models, and how often it may still answer. No weight is in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import FoldPlan, PublicSide
from backend.data.table import PartyTable
from backend.errors import ModelError, SecurityError
from backend.protocols.baselines.host_answers import HostPaths
from backend.protocols.scoring.fed_eini import CompiledHost, host_plan
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import to_bitmap
from backend.store.audit_log import KeptHead
from backend.store.query_budget import QueryBudget
from backend.trees.ensemble import Columns, HostModel
from backend.trees.folding import Folding, Step, fold_structure
from backend.trees.serialization import content_hash, dump_host, load_host

SESSIONS_KEPT = 64  # conversations remembered; older ones are dropped

Answer = Iterator[tuple[str, Message]]  # messages, each with its receiver
Handlers = dict[type[Message], Callable[[str, Any], Answer]]  # by class of message: sender and message → answer
Work = TypeVar("Work")
Flags = NDArray[np.bool_]


@dataclass
class HostSession:
    """One conversation.

    Attributes
    ----------
    guest : str
        Who opened it.
    cipher : PublicSide, optional
        The key that was offered.
    rows : ndarray of int, optional
        The joint records as rows of the Host's table, once ids were aligned.
    played : PartyTable, optional
        What stands in for the Host's records (simulation).
    """

    guest: str
    cipher: PublicSide | None = None
    rows: NDArray[np.intp] | None = field(default=None, repr=False)
    played: PartyTable | None = field(default=None, repr=False)
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
        rows = np.fromiter((used.row_of.get(i, -1) for i in ids), dtype=np.intp, count=len(ids))
        held = rows >= 0
        return used.take(np.where(held, rows, 0)).columns if len(used.ids) else {}, held


class HostSessions:
    """The open conversations of a Host; one that ends is forgotten whole."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, HostSession] = OrderedDict()
        self.uncounted: set[str] = set()  # conversations outside the budget (simulation)

    def __len__(self) -> int:
        return len(self._open)

    def of(self, conversation: str, guest: str = "") -> HostSession:
        """The conversation of that name; one that is not open is opened where `guest` is given.

        Raises
        ------
        SecurityError
            It is not open and nobody opens it.
        """
        if conversation not in self._open:
            if not guest:
                raise SecurityError("This conversation was not opened with a key; start it again.")
            self._open[conversation] = HostSession(guest)
            while len(self._open) > SESSIONS_KEPT:
                self.end(next(iter(self._open)))
        return self._open[conversation]

    def find(self, conversation: str) -> HostSession | None:
        """The conversation of that name, if it is open."""
        return self._open.get(conversation)

    def counts(self, conversation: str) -> bool:
        """Whether its questions count: neither the simulation's measuring nor about people whose values the user typed in."""
        return self.of(conversation).played is None and conversation not in self.uncounted

    def end(self, conversation: str) -> None:
        """Forget a conversation."""
        self._open.pop(conversation, None)
        self.uncounted.discard(conversation)


class HostStore(Protocol):
    """Where a Host keeps its partial models, and the heads of Guests' audit logs."""

    def put_artefact(self, model_id: str, text: str, content_hash: str) -> None:
        """Store a partial model."""
        ...

    def artefact(self, model_id: str) -> str:
        """Read a partial model; raises ModelError where it is unknown or damaged."""
        ...

    def put_audit_head(self, whose: str, head: KeptHead) -> None:
        """Keep one more head of another party's audit log."""
        ...

    def audit_heads(self, whose: str, below: int, most: int) -> Sequence[KeptHead]:
        """The newest `most` heads with numbers below `below`, newest first."""
        ...


@dataclass(repr=False)
class MemoryStore:
    """A store that is forgotten when the Host stops; `texts` are partial models by model id."""

    texts: dict[str, str] = field(default_factory=dict)
    heads: dict[str, list[KeptHead]] = field(default_factory=dict)  # newest first

    def put_artefact(self, model_id: str, text: str, content_hash: str) -> None:
        """Store a partial model."""
        self.texts[model_id] = text

    def artefact(self, model_id: str) -> str:
        """Read a partial model; raises ModelError where it is unknown."""
        if model_id not in self.texts:
            raise ModelError(f"The model {model_id} is not known here; train it first.")
        return self.texts[model_id]

    def put_audit_head(self, whose: str, head: KeptHead) -> None:
        """Keep one more head of another party's audit log."""
        self.heads.setdefault(whose, []).insert(0, head)

    def audit_heads(self, whose: str, below: int, most: int) -> list[KeptHead]:
        """The newest `most` heads with numbers below `below`, newest first."""
        return [head for head in self.heads.get(whose, ()) if head.number < below][:most]


@dataclass(frozen=True, repr=False)
class ServedModel:
    """A model as this Host scores with it; compiled when it is first asked about.

    Attributes
    ----------
    model : HostModel
    folding : Folding
    index : int
        This Host's position in the chain, from 0.
    """

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
    """The partial models of one Host."""

    def __init__(self, host: str, store: HostStore) -> None:
        self._host, self._store = host, store
        self._served: dict[str, ServedModel] = {}

    def put(self, model: HostModel, model_id: str) -> str:
        """Keep a partial model; returns its content hash."""
        text = dump_host(model)
        self._store.put_artefact(model_id, text, content_hash(text))
        self._served.pop(model_id, None)
        return content_hash(text)

    def get(self, model_id: str) -> ServedModel:
        """A partial model, ready for scoring.

        Raises
        ------
        ModelError
            It is unknown or damaged.
        SecurityError
            This Host owns no split of the model.
        """
        if model_id not in self._served:
            model = load_host(self._store.artefact(model_id))
            folding = fold_structure(model.skeletons, model.guest, model.hosts)
            index = next((i for i, step in enumerate(folding.steps) if step.host == self._host), None)
            if index is None:
                raise SecurityError("This Host owns no split of the model, so it is not asked when somebody is scored.")
            self._served[model_id] = ServedModel(model, folding, index)
        return self._served[model_id]


def count_question(
    budget: QueryBudget | None, conversation: str, model_id: str, ids: Sequence[str], held: Flags, kind: str = ""
) -> tuple[Flags, HeldRecords]:
    """Count a question about everybody of whom a record is held.

    Parameters
    ----------
    budget : QueryBudget, optional
        None = nothing is counted.
    held : ndarray of bool
        ``(n,)``.
    kind : str
        See :meth:`backend.store.query_budget.QueryBudget.take`.

    Returns
    -------
    spent : ndarray of bool
        ``(n,)``: about whom the budget was exhausted before.
    message : HeldRecords
        What the Guest learns of it.
    """
    spent = np.zeros(len(held), dtype=bool)
    if budget is not None:
        asked = np.flatnonzero(held)
        spent[asked] = budget.take(model_id, [ids[i] for i in asked.tolist()], kind)
    if budget is None or not spent.any():
        return spent, HeldRecords(conversation, to_bitmap(held))
    return spent, HeldRecords(conversation, to_bitmap(held), to_bitmap(spent), budget.limit, budget.days)
