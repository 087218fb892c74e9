"""Every possible table of a toy world, each behind a real Host: what a Guest without manners learns is how many of them it can tell apart.

All Hosts get the same messages, in the same order, and everything they send is read in the clear; a refusal is an answer, too. *Learned* is
a capacity: log2 of how many different transcripts the tables give, over all tables; and for one person, over that person's rows with
everybody else's known, the worst case of both. It must not exceed what the Host's account booked. Randomness of the Host is fixed, as if
the Guest knew it.
"""

from __future__ import annotations

import itertools
import math
import random
import secrets
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from backend.crypto.plain import PlainPublicSide, _dump, _load
from backend.crypto.signing import SigningKey
from backend.data.dictionary import Feature
from backend.data.federation import MEASURES
from backend.data.table import PartyTable
from backend.errors import GlassleafError, ModelError
from backend.i18n import Text
from backend.protocols.host import HostParty
from backend.protocols.host_state import HostModels, ServedModel
from backend.protocols.terms.approvals import Approvals
from backend.protocols.terms.floors import Floors
from backend.protocols.training import host as training_host
from backend.protocols.transport.message import Message
from backend.store.accountant import Accountant, Limits, Question
from backend.store.approvals import Approval
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.store.request_log import RequestLog
from backend.store.trainings import HostTrainings
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Layout, Leaf, Split, SplitRule
from backend.trees.serialization import dump_host, dump_skeleton

GUEST = "bank"
HOST = "platform"
CONVERSATION = "c" * 32
MODEL = "m"
KEY = SigningKey.generate()
# Fields that are salted commitments or signatures: they are taken as hiding.
HIDING = {"ModelKept": {"content_hash"}, "ApprovalGranted": {"signature", "decided", "public_key"}}
EXACT = 1e-9  # bits

Table = tuple[int, ...]
Transcript = tuple[object, ...]


def approve_what_was_agreed(approval: Approval) -> tuple[date, int]:
    """Return what the toy's operator allows: one training of what it approved a day, and any number of scores."""
    return datetime.now(UTC).date() + timedelta(days=20), 1 if approval.purpose == "training" else 10**6


@dataclass(frozen=True)
class World:
    """A toy world.

    Attributes
    ----------
    values : tuple of float
        What a cell may hold.
    """

    people: int = 3
    features: tuple[str, ...] = ("a", "b")
    values: tuple[float, ...] = (0.0, 1.0)
    score_bits: int = 10
    limits: Limits = field(default_factory=Limits)
    floors: Floors = field(default_factory=lambda: Floors(group_size=2))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Return the people's ids."""
        return tuple(f"p{i}" for i in range(self.people))

    @cached_property
    def described(self) -> tuple[Feature, ...]:
        """Return the Host's dictionary."""
        return tuple(Feature(name=name, meaning=Text(f"feature {name}", f"特征 {name}")) for name in self.features)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Return every table: an index of a value for each cell, person by person."""
        return tuple(itertools.product(range(len(self.values)), repeat=self.people * len(self.features)))

    @cached_property
    def model(self) -> HostModel:
        """Return a model that was registered: one stump a feature."""
        trees = []
        rules = {}
        for tree, name in enumerate(self.features):
            weight = 0.25 * 2**tree
            trees.append(GuestTree((Split(HOST, name, 1, 2, False, 1.0, 1.0), Leaf(weight, 1.0), Leaf(-weight, 1.0))))
            rules[tree, 0] = SplitRule(name, False, 0.5)
        dictionary = tuple((HOST, feature) for feature in self.described)
        guest = GuestModel(GUEST, (HOST,), tuple(trees), (0.0,), 10, dictionary, {})
        return HostModel(HOST, GUEST, (HOST,), guest.skeletons, rules, "s" * 32, Layout(self.score_bits, 1, 0))

    @cached_property
    def text(self) -> str:
        """Return the registered model as the store has it."""
        return dump_host(self.model)

    @cached_property
    def served(self) -> ServedModel:
        """Return the registered model ready for scoring: compiled once for all Hosts."""
        return HostModels(HOST, cast("PartyStore", ToyStore({MODEL: self.text}))).get(MODEL)

    @property
    def wire_skeletons(self) -> tuple[tuple[tuple[int, str, int, int], ...], ...]:
        """Return the model's trees as :class:`KeepModel` has them."""
        shapes = []
        for skeleton in self.model.skeletons:
            shapes.append(tuple((i, owner, left, right) for i, owner, left, right in dump_skeleton(skeleton)))
        return tuple(shapes)

    def cipher(self) -> PlainPublicSide:
        """Return the cipher under which everything is read."""
        return ToyCipher()

    @cached_property
    def typical(self) -> Table:
        """Return a table in which every feature has every value: with another one most messages are refused."""
        width = len(self.features)

        def variety(table: Table) -> int:
            return sum(len({*table[k::width]}) for k in range(width))

        return max(self.tables, key=variety)

    def records(self, table: Table) -> PartyTable:
        """Return a table as the Host holds it."""
        cells = np.array(self.values)[np.array(table).reshape(self.people, len(self.features))]
        return PartyTable(HOST, self.ids, {name: cells[:, k].astype(float) for k, name in enumerate(self.features)})


class ToyStore:
    """A store in memory whose secrets are known to the Guest: what noise hides is not counted as hidden."""

    def __init__(self, artefacts: Mapping[str, str], trainings: object = None) -> None:
        self._artefacts = dict(artefacts)
        self.trainings = trainings

    def artefact(self, model_id: str) -> str:
        """Return a partial model; raises ModelError if it is unknown."""
        if model_id not in self._artefacts:
            raise ModelError("model_not_stored", model=model_id)
        return self._artefacts[model_id]

    def put_artefact(self, model_id: str, text: str) -> str:
        """Store a partial model."""
        self._artefacts[model_id] = text
        return "digest"

    def put_training(self, *_: object) -> None:
        """Store nothing of a training."""

    def secret(self, _: str) -> bytes:
        """Return the same bytes for every name."""
        return b"k" * 32

    def has_secret(self, _: str) -> bool:
        """Return whether a secret was drawn yet."""
        return False


class OffTapeError(BaseException):
    """A Host calls its operator or its account otherwise than the first one did: it decided by its records."""


Call = tuple[str, str]


@dataclass
class Tape:
    """What the first Host's operator and account answered, call by call."""

    calls: list[tuple[Call, object]] = field(default_factory=list)


# Not the account's decision, or made of records.
UNTAPED = frozenset({"together", "keep_reply", "acknowledged_soon", "settle", "log", "limits", "answer"})


class Taped:
    """An operator or an account of the first Host, whose calls are taped; or of another Host, which gets the taped answers.

    The gate decides from messages and history, never from records, so one decision serves all tables. A Host that calls otherwise is found.
    """

    def __init__(self, real: object, tape: Tape, *, plays: bool) -> None:
        self._real = real
        self._tape = tape
        self._plays = plays
        self._position = 0

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
            if self._position >= len(self._tape.calls) or self._tape.calls[self._position][0] != call:
                raise OffTapeError
            answer = self._tape.calls[self._position][1]
            self._position += 1
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


class Candidate:
    """A real Host that has one of the tables. Ids are aligned and the key is offered by the harness: neither reads a value."""

    def __init__(self, world: World, table: Table, account: Account, tapes: Sequence[Tape], *, plays: bool) -> None:
        self.host = HostParty(
            HOST,
            world.records(table),
            world.described,
            cast("PartyStore", ToyStore({MODEL: world.text}, Taped(account.trainings, tapes[2], plays=plays))),
            accountant=cast("Accountant", Taped(account.accountant, tapes[0], plays=plays)),
            requests=cast("RequestLog", SimpleNamespace(note=lambda *_, **__: None)),
            measures=MEASURES,
            approvals=cast("Approvals", Taped(account.approvals, tapes[1], plays=plays)),
            floors=world.floors,
        )
        self.host._partial_models._served[MODEL] = world.served
        session = self.host._sessions.of(CONVERSATION, GUEST)
        session.cipher = ToyCipher()
        session.key = b"key"
        session.rows = np.arange(world.people)

    def say(self, message: Message) -> Transcript:
        """Return what the Host sends, and how it refuses."""
        sent: list[object] = []
        try:
            sent.extend(_readable(reply) for _, reply in self.host.answer(GUEST, message))
        except GlassleafError as error:
            sent.append(("refused", error.code, repr(sorted(error.values.items()))))
        except Exception as error:
            sent.append(("internal", type(error).__name__))  # what a Guest reads of it
        return tuple(sent)


class ToyCipher(PlainPublicSide):
    """Plaintext that opens no more than Paillier would: sums of groups have random bits above the halves that were announced."""

    def bin_sums(self, pairs: bytes, nodes: Any, half: int = 31, *, alone: bool = False) -> list[bytes]:
        """Return sums of bins, of groups only modulo what the announced halves hold."""
        sums = super().bin_sums(pairs, nodes, half)
        if not alone:
            return sums
        cut = []
        for blob, (_, bins) in zip(sums, nodes, strict=True):
            first, second = _load(blob, (2, sum(count for _, count in bins)))
            packed = [((int(a) << half) + int(b)) % (1 << 2 * half) for a, b in zip(first, second, strict=True)]
            cut.append(_dump(np.array(packed, dtype=object)))
        return cut


class Account:
    """Operator, account and trainings of one Host."""

    def __init__(self, world: World) -> None:
        database = Database()
        self._ids = world.ids
        self.accountant = Accountant(database, world.limits)
        self.approvals = Approvals(HOST, database, KEY, agreed=approve_what_was_agreed)
        self.trainings = HostTrainings(database)

    def booked(self) -> tuple[float, ...]:
        """Return bits booked about each person."""
        given = self.accountant.given_away(self._ids)
        return tuple(given.get(person, 0.0) for person in self._ids)


def _readable(message: Message) -> tuple[str, ...]:
    name = type(message).__name__
    hiding = HIDING.get(name, ())
    return (name, *(repr(getattr(message, part.name)) for part in fields(message) if part.name not in hiding))


@dataclass(frozen=True)
class Verdict:
    """What a transcript tells.

    Attributes
    ----------
    distinct : int
        Different transcripts over all tables.
    everybody : float
        Bits about the whole table.
    person : tuple of float
        Bits about each person, with everybody else's row known.
    named : float
        Share of cells that only one value fits, the mean over all tables.
    booked : tuple of float
        Bits that the account has about each person; of several Hosts the least.
    answered : int
        Messages that were answered and not refused, by the Host of the first table.
    """

    distinct: int
    everybody: float
    person: tuple[float, ...]
    named: float
    booked: tuple[float, ...]
    answered: int

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


class Crowd:
    """All candidates, one message at a time.

    Attributes
    ----------
    answers : Counter
        Kind of message → times that it was answered and not refused.
    faults : list
        What was answered with an error inside: none is expected.
    off : set of Table
        Tables whose Host called its operator or its account otherwise than the first one.
    """

    def __init__(self, world: World, tables: Sequence[Table] = ()) -> None:
        self.world = world
        self.answers: Counter[str] = Counter()
        self.off: set[Table] = set()
        self.faults: list[object] = []
        self._tables = tables or world.tables
        self._history: list[Message] = []
        self._account = Account(world)
        self._own_accounts: dict[Table, Account] = {}
        self._tapes = Tape(), Tape(), Tape()
        self._first = Candidate(world, world.typical, self._account, self._tapes, plays=False)
        self._candidates = {
            table: Candidate(world, table, self._account, self._tapes, plays=True) for table in self._tables
        }
        self._seen: dict[Table, Transcript] = dict.fromkeys(self._tables, ())

    def say(self, message: Message) -> Transcript:
        """Send a message to every Host; return what the Host of the typical table sends."""
        self._history.append(message)
        reply = self._first.say(message)
        for table in self._tables:
            self._seen[table] += (self._reply(table, message),)
        self.faults += [part for part in cast("Any", reply) if part[0] == "internal"]
        if not any(part[0] in ("refused", "internal") for part in cast("Any", reply)):
            self.answers[type(message).__name__] += 1
        return reply

    def _reply(self, table: Table, message: Message) -> Transcript:
        try:
            return self._candidates[table].say(message)
        except OffTapeError:
            self.off.add(table)
        # From here on this Host has an operator and an account of its own, and hears everything again.
        account = Account(self.world)
        candidate = Candidate(self.world, table, account, (Tape(), Tape(), Tape()), plays=False)
        self._own_accounts[table] = account
        self._candidates[table] = candidate
        replies = [candidate.say(earlier) for earlier in self._history]
        return replies[-1]

    def verdict(self) -> Verdict:
        """Return what the transcripts so far tell."""
        width = len(self.world.features)
        of_person = []
        for person in range(self.world.people):
            rest: defaultdict[Table, set[Transcript]] = defaultdict(set)
            for table, transcript in self._seen.items():
                rest[table[: person * width] + table[(person + 1) * width :]].add(transcript)
            of_person.append(math.log2(max(map(len, rest.values()))))
        fitting: defaultdict[Transcript, list[Table]] = defaultdict(list)
        for table, transcript in self._seen.items():
            fitting[transcript].append(table)
        booked = [self._account.booked(), *(account.booked() for account in self._own_accounts.values())]
        return Verdict(
            distinct=len(fitting),
            everybody=math.log2(len(fitting)),
            person=tuple(of_person),
            named=_named_share(list(fitting.values())),
            booked=tuple(min(column) for column in zip(*booked, strict=True)),
            answered=self.answers.total(),
        )


def _named_share(fitting: Sequence[Sequence[Table]]) -> float:
    """Return the share of cells that only one value fits, over all tables."""
    sure = 0
    cells = 0
    for tables in fitting:
        width = len(tables[0])
        sure += len(tables) * sum(len({table[cell] for table in tables}) == 1 for cell in range(width))
        cells += len(tables) * width
    return sure / cells


SMALL = World()
GROUPED = World(people=6, features=("a",))  # two groups of three people


# Sums of a training need more than a hundred people, those of a cohort 16 or more, if at most half of them may be named: here all may.
WIDE = World(floors=Floors(group_size=2, named=200.0))
ANSWERED_WIDE = frozenset(
    {"cohort", "training, bin sums", "training, sums of one row", "training, two splits at a node"}
)


def world_of(name: str) -> World:
    """Return the world in which a script is played."""
    if name.startswith("groups"):
        return GROUPED
    return WIDE if name in ANSWERED_WIDE else SMALL


def played(world: World, messages: Iterable[Message]) -> Verdict:
    """Return what a script of messages tells."""
    crowd = Crowd(world)
    for message in messages:
        crowd.say(message)
    assert not crowd.faults, crowd.faults
    return crowd.verdict()


FEWEST = 2  # people, where the product has 20 or 50: the toy has three


@contextmanager
def toy_floors() -> Iterator[None]:
    """Within, protocols ask for :data:`FEWEST` people where they have a number of their own, and draw known numbers."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            for constant in ("MIN_GROUP", "MIN_PEOPLE"):
                if name.startswith("backend.protocols") and hasattr(module, constant):
                    patch.setattr(module, constant, FEWEST)
        patch.setattr(training_host, "PEOPLE", FEWEST)
        patch.setattr(secrets, "SystemRandom", KnownRandom)
        yield


class KnownRandom(random.Random):
    """Numbers that the Guest knows, the same for every Host."""

    def __init__(self) -> None:
        super().__init__(7)
