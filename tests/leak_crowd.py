"""One real Host for each possible table of a toy world: all get the same messages, and what they send is read in the clear.

*Learned* is a capacity: log2 of how many different transcripts the tables give, over all tables; and for one person, over that person's
rows with everybody else's known, the worst case of both. It must not exceed what the Host's account booked. Randomness of the Host is
fixed, as if the Guest knew it.

The gate decides from messages and history, never from records, so one decision of operator and account serves all tables: the first Host
takes it, and the others play it. A Host that would decide otherwise is found, and has an operator and an account of its own from then on.

A Host knows of its table what the gate has opened. So all tables have one Host, which gets the opened cells of one after the other, until a
handler leaves something in the conversation: then tables that differ in those cells have Hosts of their own, which hear everything again.
:func:`alone` runs a Host without any of this; a test compares the two.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from leak_worlds import (
    CONVERSATION,
    GUEST,
    HOST,
    KEY,
    MODEL,
    Table,
    ToyCipher,
    ToyNodeCipher,
    ToyNoise,
    ToyStore,
    World,
    approve_what_was_agreed,
)
from numpy.typing import NDArray

from backend.crypto.plain import PlainKeySide
from backend.data.federation import MEASURES
from backend.data.table import PartyTable
from backend.errors import GlassleafError
from backend.protocols.explanations.host_factors import CompiledFactors
from backend.protocols.explanations.messages import AskCohort, ContributionSums
from backend.protocols.explanations.paillier_layout import PaillierLayout
from backend.protocols.explanations.shape import ReasonShape
from backend.protocols.host import HostParty
from backend.protocols.host_state import ServedModel
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores
from backend.protocols.terms.approvals import Approvals
from backend.protocols.terms.gate import Gate
from backend.protocols.terms.permit import Ask, Asked, Kind, Permit
from backend.protocols.terms.prices import book_approved
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import ApprovalPending
from backend.store.accountant import Accountant, Question
from backend.store.approvals import Approval
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.store.request_log import RequestLog
from backend.store.schema import Base
from backend.store.trainings import HostTrainings, KeptModel, Note

# Fields that are salted commitments or signatures: they are taken as hiding.
HIDING = {"ModelKept": {"content_hash"}, "ApprovalGranted": {"signature", "decided", "public_key"}}
EXACT = 1e-9  # bits

Reply = tuple[tuple[object, ...], ...]
"""What a Host sends in answer to one message, read in the clear; a refusal is a part, too."""
KNOWN: Reply = (("known",),)
"""In place of what a Host sends whose table the Guest knows already."""


class OffTapeError(BaseException):
    """A Host decides otherwise than the first one did: it decides by its records, or by what they made of its state."""


@dataclass
class Tape:
    """How the first Host has dealt with one message.

    Attributes
    ----------
    calls : list
        Calls of its operator and its account, with what they answered: for kinds of message that do not pass the gate.
    ask : Ask or GlassleafError, optional
        What the rule read, or how it refused; None if the message did not come as far as the gate.
    decision : Permit, ApprovalPending or GlassleafError, optional
        What the gate decided.
    decided : object
        What operator and account saw of the message, once it was looked at.
    reply : tuple
        What was sent.
    """

    calls: list[tuple[tuple[str, str], object]] = field(default_factory=list)
    ask: Ask | GlassleafError | None = None
    decision: Permit | ApprovalPending | GlassleafError | None = None
    decided: object = None
    reply: Reply = ()

    def become(self, other: Tape) -> None:
        """Hold what another tape holds."""
        for part in fields(self):
            setattr(self, part.name, getattr(other, part.name))


# Not the account's decision, or made of records.
UNTAPED = frozenset({"together", "keep_reply", "acknowledged_soon", "settle", "log", "limits", "answer"})


class Taped:
    """An operator or an account of the first Host, whose calls are taped; or of another Host, which gets the taped answers."""

    def __init__(self, real: object, tape: Tape, place: list[int], *, plays: bool) -> None:
        self._real = real
        self._tape = tape
        self._place = place
        self._plays = plays

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._real)

    def __getattr__(self, name: str) -> object:
        found = getattr(self._real, name)
        if not callable(found):
            return found
        if name in UNTAPED:
            return self._untaped(name, found)
        return partial(self._call, name, found)

    def _untaped(self, name: str, found: Callable[..., object]) -> Callable[..., object]:
        if not self._plays or name == "answer":
            return found
        if name == "together":
            return nullcontext
        if name == "keep_reply":
            return lambda guest, request, reply: reply
        return lambda *_: None

    def _call(self, name: str, found: Callable[..., object], *arguments: object, **options: object) -> object:
        call = name, _written(arguments, options)
        if not self._plays:
            try:
                answer = found(*arguments, **options)
            except GlassleafError as error:
                answer = error
            self._tape.calls.append((call, answer))
        else:
            place = self._place[0]
            if place >= len(self._tape.calls) or self._tape.calls[place][0] != call:
                raise OffTapeError
            answer = self._tape.calls[place][1]
            self._place[0] += 1
        if isinstance(answer, GlassleafError):
            raise answer
        return answer


def _written(arguments: tuple[object, ...], options: Mapping[str, object]) -> str:
    """Return what a call is about; a question by the people and the structure that it names, bytes not at all."""
    shown = []
    for argument in (*arguments, *options.values()):
        if isinstance(argument, Question):
            shown.append(f"{argument.kind} {argument.structure} {argument.people} {argument.bits} {argument.request}")
        elif not isinstance(argument, bytes):
            shown.append(repr(argument))
    return " | ".join(shown)


class ToyTrainings:
    """What a Host that plays another one's decisions knows of trainings: what it noted, and nothing that it would refuse by."""

    def __init__(self) -> None:
        self._notes: dict[str, str] = {}
        self._models: dict[str, KeptModel] = {}

    def note(self, _: str, notes: Sequence[Note]) -> None:
        """Store what a training is asked for."""
        for note in notes:
            self._notes.setdefault(note.name, note.digest)

    def noted(self, _: str, name: str) -> str:
        """Return the digest that was noted under a name; empty if none was."""
        return self._notes.get(name, "")

    def kept(self, _: str, request: str) -> KeptModel | None:
        """Return the model that a training has given, if it has given one."""
        return self._models.get(request)

    def keep(self, _: str, request: str, model: KeptModel) -> None:
        """Note the model that a training has given."""
        self._models[request] = model


# Databases in memory that no account uses any more: to make one, and its statements, takes as long as some messages.
FREE: list[Database] = []


def empty_database() -> Database:
    """Return a database without a row."""
    if not FREE:
        return Database()
    database = FREE.pop()
    with database.write() as session:
        for table in Base.metadata.sorted_tables:
            session.connection().exec_driver_sql(f"delete from {table.name}")  # noqa: S608 - a name of the schema
    return database


class Account:
    """Operator, account and trainings of one Host."""

    def __init__(self, world: World) -> None:
        database = empty_database()
        weakref.finalize(self, FREE.append, database)
        self._ids = world.ids
        self.accountant = Accountant(database, world.limits)
        charge = partial(book_approved, self.accountant)
        self.approvals = Approvals(HOST, database, KEY, agreed=approve_what_was_agreed, charge=charge)
        self.trainings = HostTrainings(database)

    def booked(self) -> tuple[float, ...]:
        """Return bits booked about each person."""
        given = self.accountant.given_away(self._ids)
        return tuple(given.get(person, 0.0) for person in self._ids)


class Candidate:
    """A real Host that has one of the tables. Ids are aligned and the key is offered by the harness: neither reads a value."""

    def __init__(self, world: World, table: Table, account: Account, tape: Tape, *, plays: bool) -> None:
        self._tape = tape
        self._place = [0]
        self._numbered = world.numbered
        # Of the table that it has now: request → the answer that is stored.
        self._replies: dict[str, object] = {}

        def taped(real: object) -> Any:
            return Taped(real, tape, self._place, plays=plays)

        self.host = HostParty(
            HOST,
            world.records(table),
            world.described,
            cast("PartyStore", ToyStore({MODEL: world.text}, ToyTrainings() if plays else account.trainings)),
            accountant=cast("Accountant", taped(account.accountant)),
            requests=cast("RequestLog", SimpleNamespace(note=lambda *_, **__: None)),
            measures=MEASURES,
            approvals=cast("Approvals", taped(account.approvals)),
            floors=world.floors,
        )
        self.host._partial_models._served[MODEL] = world.served
        session = self.host._sessions.of(CONVERSATION, GUEST)
        session.cipher = cast("Any", world.cipher())
        session.key = b"key"
        session.rows = np.arange(world.people)
        self._noise = ToyNoise(self.host._gate.noise.width)
        self.host._gate = replace(self.host._gate, noise=self._noise)
        # Of the last question for scores: the width that was announced, and about how many people it was.
        self._width = 0
        self._people = 0
        self._cohort: AskCohort | None = None
        if not plays:
            self.host._gate = TapedGate(self.host._gate, tape)

    def say(self, message: Message) -> Reply:
        """Return what the Host sends, and how it refuses."""
        return self._sent(message, partial(self.host.answer, GUEST, message))

    def read(self, message: Message) -> Permit | Reply:
        """Return the permit of a message, if operator and account decide as the first Host's did; or what is sent without records.

        Raises
        ------
        OffTapeError
            If the Host asks them something else.
        """
        tape = self._tape
        gate = self.host._gate
        self._place[0] = 0
        if type(message) not in gate.kinds:
            return self.say(message)
        if tape.ask is None or tape.decision is None:
            return tape.reply  # refused before the gate, which alone has records
        kind = gate.kinds[type(message)]
        session = self.host._sessions.of(message.conversation, GUEST)
        asked = gate.request_of(GUEST, message, session)
        try:
            ask = kind.rule(asked)
        except GlassleafError as error:
            if isinstance(tape.ask, GlassleafError) or not _books(tape.ask):
                return (_refused(error),)
            raise OffTapeError from None
        decision = tape.decision
        if isinstance(tape.ask, GlassleafError):
            # The first Host's rule refused by what its records have made of the conversation; this one's does not, and books nothing.
            if _books(ask):
                raise OffTapeError
            decision = Permit(asked, ask, (), None, None)
        else:
            tape.decided = tape.decided or _decided_by(tape.ask)
            if _decided_by(ask) != tape.decided:
                raise OffTapeError
        if not isinstance(decision, Permit):
            return tape.reply
        self.host._partial_models.trainings.note(GUEST, ask.notes)
        return replace(decision, request=asked, ask=ask)

    def opened(self, permit: Permit) -> list[int]:
        """Return which cells of the table a permit opens."""
        cells: list[int] = []
        for records in replace(self.host._gate, table=self._numbered).records(permit).values():
            for column in records.columns.values():
                cells += column[~np.isnan(column)].astype(np.int64).tolist()
        return cells

    def have(self, table: PartyTable, replies: dict[str, object]) -> None:
        """Have a table, and the answers that are stored with it."""
        self.host._gate = replace(self.host._gate, table=table)
        self._replies = replies

    def answer(self, permit: Permit, message: Message) -> Reply:
        """Return what the Host sends to a message that has a permit."""
        gate = self.host._gate
        stored = permit.stored and self._replies[permit.ask.reply]
        permit = replace(permit, stored=cast("bytes | None", stored))
        return self._sent(message, partial(self._handled, gate, gate.kinds[type(message)], permit, message))

    def left(self) -> object:
        """Return what is left in the conversation, and which models there are: equal only if nothing has changed."""
        models = self.host._partial_models
        return _contents(self.host._sessions.of(CONVERSATION, GUEST)._work, []), sorted(models._served)

    def _handled(self, gate: Gate, kind: Kind, permit: Permit, message: Message) -> Iterable[tuple[str, Message]]:
        """Yield what the handler answers; what is stored until the Guest has it is stored here."""
        opened = gate.records(permit)
        if kind.makes is not None and permit.stored is None:
            made = kind.makes(permit, opened, message, gate.noise)
            permit = replace(permit, stored=cast("bytes", self._kept(permit, made)))
        for receiver, reply in kind.handler(permit, opened, message, gate.noise):
            if kind.store is not None:
                kind.store(gate.models, permit, reply)
            body = getattr(reply, kind.reply, None) if kind.reply else None
            if body is None or permit.stored is not None:
                yield receiver, reply
                continue
            changed: dict[str, Any] = {kind.reply: self._kept(permit, body)}
            yield receiver, replace(cast("Any", reply), **changed)

    def _kept(self, permit: Permit, body: object) -> object:
        """Return what leaves: what is stored already, if the question was answered before."""
        return self._replies.setdefault(permit.ask.reply, body) if permit.ask.reply else body

    def _sent(self, message: Message, answer: Callable[[], Iterable[tuple[str, Message]]]) -> Reply:
        """Return what the Guest reads of the answers, one by one, and how they end."""
        sent: list[tuple[object, ...]] = []
        if isinstance(message, DecisionVectors):
            self._noise.hidden = 0
            self._width = message.sum_bits
            self._people = len(message.ids)
        if isinstance(message, AskCohort):
            self._noise.hidden = 0
            self._cohort = message
        try:
            for receiver, reply in answer():
                if receiver == GUEST:
                    sent.append(self._read(reply))
        except GlassleafError as error:
            sent.append(_refused(error))
        except Exception as error:
            sent.append(("internal", type(error).__name__))  # what a Guest reads of it
        return tuple(sent)

    def _read(self, reply: Message) -> tuple[object, ...]:
        """Return a reply in the clear; of scores above which something is hidden, the width that was announced."""
        if isinstance(reply, EncryptedScores):
            scores = PlainKeySide().decrypt(reply.scores, self._people)
            read = [score % (1 << self._width) for score in scores] if self._noise.hidden else scores
            return "EncryptedScores", tuple(read), reply.dither
        if isinstance(reply, ContributionSums) and self._cohort is not None:
            return "ContributionSums", self._sums(self._cohort, reply)
        name = type(reply).__name__
        hiding = HIDING.get(name, ())
        return name, *(repr(getattr(reply, part.name)) for part in fields(reply) if part.name not in hiding)

    def _sums(self, asked: AskCohort, reply: ContributionSums) -> tuple[int, ...]:
        """Return sums over a cohort, a number a feature; above which something is hidden, as wide as they were announced."""
        shape = ReasonShape(asked.features, 1, asked.value_bits)
        layout = PaillierLayout(shape, 0)
        numbers = layout.unpacked(PlainKeySide().decrypt(reply.sums, len(layout.layout(1))))
        width = shape.sum_width(len(asked.ids))
        # Two numbers are drawn for each sum: below its last digit, which the Guest is taken to know, and above its width.
        hides = self._noise.hidden == 2 * len(numbers)
        return tuple(number % (1 << width) if hides else number for number in numbers)


class TapedGate(Gate):
    """The first Host's gate, whose decisions are written on a tape."""

    def __init__(self, gate: Gate, tape: Tape) -> None:
        parts = {part.name: getattr(gate, part.name) for part in fields(gate)}
        parts["kinds"] = {
            message: replace(kind, rule=partial(self._rule, kind)) for message, kind in gate.kinds.items()
        }
        super().__init__(**parts)
        object.__setattr__(self, "_tape", tape)

    def _rule(self, kind: Kind, asked: Asked) -> Ask:
        try:
            ask = kind.rule(asked)
        except GlassleafError as error:
            self._tape.ask = error
            raise
        if ask.approval is not None:
            about = ask.approval
            # A new one, which the database may take.
            ask = replace(
                ask, approval=Approval(about.guest, about.purpose, about.subject, about.name, dict(about.about))
            )
        self._tape.ask = ask
        return ask

    def open(self, *arguments: Any) -> Permit | ApprovalPending:
        """Decide about a message, and write it down."""
        try:
            self._tape.decision = super().open(*arguments)
        except GlassleafError as error:
            self._tape.decision = error
            raise
        return self._tape.decision


def _contents(value: Any, path: list[int]) -> object:
    """Return what an object holds, all the way down; of a model or a cipher, which nothing changes, which one it is."""
    inside = [*path, id(value)]
    held: object = id(value)
    if value is None or isinstance(value, int | float | str | bytes):
        held = value
    elif isinstance(value, np.ndarray):
        held = value.dtype.str, value.shape, value.tobytes() if value.dtype != object else repr(value.tolist())
    elif hasattr(value, "hexdigest"):
        held = value.hexdigest()
    elif isinstance(value, ServedModel | ToyCipher | ToyNodeCipher | CompiledFactors) or id(value) in path:
        pass
    elif isinstance(value, Mapping):
        held = [(_contents(key, inside), _contents(part, inside)) for key, part in value.items()]
    elif isinstance(value, list | tuple):
        held = [_contents(part, inside) for part in value]
    elif isinstance(value, set | frozenset):
        held = sorted(map(repr, value))
    elif hasattr(value, "__dict__"):
        held = type(value).__name__, [(name, _contents(part, inside)) for name, part in vars(value).items()]
    return held


def _books(ask: Ask) -> bool:
    """Return whether operator or account change with a message."""
    return bool(ask.charges or ask.others or ask.amount or ask.binds or ask.notes or ask.spends)


def _decided_by(ask: Ask) -> object:
    """Return what operator and account see of a message."""
    approval = ask.approval and (
        ask.approval.guest,
        ask.approval.purpose,
        ask.approval.subject,
        repr(ask.approval.about),
    )
    notes = [
        note.name for note in ask.notes
    ]  # what they say may follow from records: whether those are the same as before
    charges = tuple(ask.charges), tuple(ask.others)
    volumes = ask.amount, ask.volume_of, tuple(ask.volumes)
    return approval, volumes, charges, ask.binds, ask.reply, notes, ask.spends


def _refused(error: GlassleafError) -> tuple[object, ...]:
    return "refused", error.code, repr(sorted(error.values.items()))


@dataclass(frozen=True)
class Verdict:
    """What a transcript tells.

    Attributes
    ----------
    classes : ndarray of int
        ``(tables,)``: tables with the same number gave the same transcript.
    person : tuple of float
        Bits about each person, with everybody else's row known.
    booked : tuple of float
        Bits that the account has about each person; of several Hosts the least.
    answered : int
        Messages that were answered and not refused, by the Host of the first table.
    """

    world: World
    classes: NDArray[np.int64]
    person: tuple[float, ...]
    booked: tuple[float, ...]
    answered: int

    @property
    def everybody(self) -> float:
        """Return bits about the whole table."""
        return math.log2(len(np.unique(self.classes)))

    @cached_property
    def named(self) -> float:
        """Return the share of cells that only one value fits, the mean over all tables."""
        cells = self.world.cells
        sure = 0
        for number in np.unique(self.classes):
            fitting = cells[self.classes == number]
            sure += len(fitting) * int((fitting == fitting[0]).all(axis=0).sum())
        return sure / cells.size

    @property
    def holds(self) -> bool:
        """Return whether the account is not below what was learned."""
        each = all(learned <= booked + EXACT for learned, booked in zip(self.person, self.booked, strict=True))
        return each and self.everybody <= sum(self.booked) + EXACT

    @property
    def worst(self) -> tuple[float, float]:
        """Return learned and booked about the person whose account is the closest to the truth, or below it."""
        return max(zip(self.person, self.booked, strict=True), key=lambda bits: bits[0] - bits[1])

    def __str__(self) -> str:
        person, booked = self.worst
        return (
            f"person {person:.2f} / {booked:.2f} bits, everybody {self.everybody:.2f} / {sum(self.booked):.2f}, "
            f"cells named {self.named:.0%}, {self.answered} answers"
        )


class Hosts:
    """Hosts whose operator and account decide alike: one takes the decisions, the others play them.

    Attributes
    ----------
    places : list of int
        Which of the world's tables they have.
    """

    def __init__(self, world: World, leading: Table, places: Sequence[int]) -> None:
        self.places = list(places)
        self._world = world
        self.account = Account(world)
        self._tape = Tape()
        self._heard: list[tuple[Message, Tape]] = []
        self.first = Candidate(world, leading, self.account, self._tape, plays=False)
        # Host → the tables that it has one after the other: none has left anything in it that another one has not.
        self._alike = {self._plays(): self.places}
        # Table → request → the answer that is stored.
        self._stored: dict[int, dict[str, object]] = {place: {} for place in places}

    def _plays(self) -> Candidate:
        return Candidate(self._world, self._world.typical, self.account, self._tape, plays=True)

    def say(self, message: Message, replies: dict[int, Reply], known: Set[int] = frozenset()) -> list[int]:
        """Send a message to every Host; note the replies, and return whose Hosts have decided otherwise and leave.

        Parameters
        ----------
        known : set of int
            Tables that are the only ones with their transcript: what their Hosts say tells nothing more, and is left out.
        """
        self._tape.become(Tape())
        self._tape.reply = self.first.say(message)
        self._heard.append((message, replace(self._tape)))
        leaving: list[int] = []
        for host, having in list(self._alike.items()):
            del self._alike[host]
            places = [place for place in having if place not in known]
            if not places:
                continue
            try:
                permit = host.read(message)
            except OffTapeError:
                leaving += places
                continue
            if isinstance(permit, Permit):
                self._answer(host, places, permit, message, replies)
            else:
                self._alike[host] = places
                replies.update(dict.fromkeys(places, permit))
        self.places = [place for place in self.places if place not in leaving]
        return leaving

    def _answer(
        self, host: Candidate, places: list[int], permit: Permit, message: Message, replies: dict[int, Reply]
    ) -> None:
        """Note what tables send to a message, and which Hosts they have from now on."""
        own, *others = self._told_apart(places, host.opened(permit))
        before = host.left() if others else None
        self._reply(host, own, permit, message, replies)
        if others and host.left() == before:
            for part in others:
                self._reply(host, part, permit, message, replies)
            if host.left() == before:
                self._alike[host] = places
                return
            host = self._caught_up(own)
        self._alike[host] = own
        for part in others:
            self._alike[self._caught_up(part, replies)] = part

    def _reply(
        self, host: Candidate, part: list[int], permit: Permit, message: Message, replies: dict[int, Reply]
    ) -> None:
        """Note what tables send that are alike in all cells that are opened."""
        host.have(self._world.held[part[0]], self._stored[part[0]])
        replies.update(dict.fromkeys(part, host.answer(permit, message)))
        self._stored.update({place: dict(self._stored[part[0]]) for place in part})

    def _told_apart(self, places: list[int], cells: list[int]) -> list[list[int]]:
        """Return tables by what they have in some cells."""
        parts: dict[bytes, list[int]] = {}
        for place, values in zip(places, self._world.cells[np.ix_(places, cells)], strict=True):
            parts.setdefault(values.tobytes(), []).append(place)
        return list(parts.values())

    def _caught_up(self, part: list[int], replies: dict[int, Reply] | None = None) -> Candidate:
        """Return a new Host that has heard everything; note what it answers last."""
        host = self._plays()
        said = {} if replies is None else replies
        for message, tape in self._heard:
            self._tape.become(tape)
            permit = host.read(message)
            if isinstance(permit, Permit):
                self._reply(host, part, permit, message, said)
            else:
                said.update(dict.fromkeys(part, permit))
        return host

    @property
    def reply(self) -> Reply:
        """Return what the Host that decides has sent last."""
        return self._tape.reply


class Crowd:
    """All candidates, one message at a time.

    Attributes
    ----------
    answers : Counter
        Kind of message → times that it was answered and not refused.
    replies : list of tuple
        What the Host of each table has sent in answer to the last message.
    faults : list
        What was answered with an error inside: none is expected.
    hosts : list of Hosts
        By the decisions of operator and account: those of the typical table first.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.answers: Counter[str] = Counter()
        self.replies: list[Reply] = []
        self.faults: list[object] = []
        self.hosts = [Hosts(world, world.typical, range(len(world.tables)))]
        self._history: list[Message] = []
        # The number of each table's transcript so far.
        self._classes = np.zeros(len(world.tables), dtype=np.int64)

    def say(self, message: Message) -> Reply:
        """Send a message to every Host; return what the Host of the typical table sends."""
        self._history.append(message)
        numbers, counts = np.unique(self._classes, return_counts=True)
        known = set(np.flatnonzero(np.isin(self._classes, numbers[counts == 1])).tolist())
        replies: dict[int, Reply] = dict.fromkeys(known, KNOWN)
        leaving: list[int] = []
        for hosts in self.hosts:
            leaving += hosts.say(message, replies, known)
        reply = self.hosts[0].reply
        while leaving:
            leaving = self._begin_again(leaving, replies)
        self.hosts = [self.hosts[0], *(hosts for hosts in self.hosts[1:] if hosts.places)]
        self.replies = [replies[place] for place in range(len(self.world.tables))]
        transcripts: dict[object, int] = {}
        for place, transcript in enumerate(zip(self._classes.tolist(), self.replies, strict=True)):
            self._classes[place] = transcripts.setdefault(transcript, len(transcripts))
        self.faults += [part for part in reply if part[0] == "internal"]
        if not any(part[0] in ("refused", "internal") for part in reply):
            self.answers[type(message).__name__] += 1
        return reply

    def _begin_again(self, places: list[int], replies: dict[int, Reply]) -> list[int]:
        """Have Hosts hear everything again, with an operator and an account of their own; return whose have left again."""
        hosts = Hosts(self.world, self.world.tables[places[0]], places)
        leaving = []
        for message in self._history:
            leaving += hosts.say(message, replies)
        assert places[0] not in leaving, f"a Host decides otherwise than itself: {type(self._history[-1]).__name__}"
        self.hosts.append(hosts)
        return leaving

    def uneven(self) -> list[object]:
        """Return accounts that differ although the transcripts do not: an account would tell what the Guest has not learned."""
        booked: dict[int, set[tuple[float, ...]]] = {}
        for hosts in self.hosts:
            of_hosts = hosts.account.booked()
            for place in hosts.places:
                booked.setdefault(int(self._classes[place]), set()).add(of_hosts)
        return [accounts for accounts in booked.values() if len(accounts) > 1]

    def verdict(self) -> Verdict:
        """Return what the transcripts so far tell."""
        people = self.world.people
        accounts = [hosts.account.booked() for hosts in self.hosts]
        return Verdict(
            world=self.world,
            classes=self._classes.copy(),
            person=tuple(math.log2(self._most_told_apart(person)) for person in range(people)),
            booked=tuple(min(column) for column in zip(*accounts, strict=True)),
            answered=self.answers.total(),
        )

    def _most_told_apart(self, person: int) -> int:
        """Return how many rows of a person give different transcripts, with everybody else's known: the most of all their rows."""
        rest = self.world.rests[person]
        pairs = np.unique(rest * len(self._classes) + self._classes)
        return int(np.bincount(pairs // len(self._classes)).max())


def alone(world: World, table: Table, messages: Iterable[Message]) -> list[Reply]:
    """Return what a Host with an operator and an account of its own sends."""
    candidate = Candidate(world, table, Account(world), Tape(), plays=False)
    return [candidate.say(message) for message in messages]


def played(world: World, messages: Iterable[Message]) -> Verdict:
    """Return what a script of messages tells."""
    crowd = Crowd(world)
    for message in messages:
        crowd.say(message)
    assert not crowd.faults, crowd.faults
    return crowd.verdict()
