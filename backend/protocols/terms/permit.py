"""The permit of a Host's gate for one message. A rule reads the message, the gate decides, a handler gets the permit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from backend.data.dictionary import Feature
from backend.protocols.host_state import HostModels, HostSession
from backend.protocols.terms.floors import Floors
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.prices import TableFacts
from backend.protocols.terms.records import Flags, Opened, Roster, Rows
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import to_bitmap
from backend.store.accountant import Limits, Question
from backend.store.schema import Approval
from backend.store.trainings import Note, Spending

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class Asked:
    """A message as a rule reads it: with the conversation's state and who has a record, but without a value of any person.

    Attributes
    ----------
    sender : str
        The party that sent the message; the wire proves it.
    session : HostSession
        The conversation; its state is the history that a rule decides by.
    counted : bool
        Whether questions of this conversation count; they do not if a simulation measures.
    facts : TableFacts
        The facts that prices depend on.
    operator : bool
        Whether this Host asks its operator.
    sums : bool
        Whether its operator decides about sums by group, too.
    features : mapping of str to Feature
        The Host's features in the dictionary, by name.
    """

    sender: str
    message: Any = field(repr=False)
    session: HostSession = field(repr=False)
    floors: Floors
    models: HostModels = field(repr=False)
    roster: Roster = field(repr=False)
    facts: TableFacts
    counted: bool = True
    operator: bool = True
    sums: bool = False
    features: Mapping[str, Feature] = field(default_factory=dict, repr=False)

    @property
    def records(self) -> int:
        """Return how many records the Host has."""
        return self.facts.records


@dataclass(frozen=True, repr=False)
class Charge:
    """One question as it is booked before it is answered.

    Attributes
    ----------
    all_or_none : bool
        Whether the message is refused if one of the people is over a limit; otherwise people over a limit are left out.
    only_look : bool
        Check whether the question would be answered, and book nothing.
    digest : str
        SHA-256 of the question's bytes, if all have arrived: the question is bound to them.
    times : int
        The number of times that the question is answered at most, each time anew; 0 = once, and then with the same answer.
    record_of : collection of str
        Features that are the person's record to the model. With a score its version is stored; reasons are refused, and not booked, if
        the record has changed since. Empty = neither.
    """

    question: Question
    all_or_none: bool = False
    only_look: bool = False
    digest: str = ""
    times: int = 0
    record_of: Collection[str] = ()


@dataclass(frozen=True, repr=False)
class Charged:
    """The result of a charge: ``(people,)`` each.

    Attributes
    ----------
    spent : ndarray of bool
        Whether a limit about the person was reached, so that nothing is answered.
    reached : ndarray of uint8
        The limit, by its number in :data:`backend.store.accountant.LIMITS`.
    reply : bytes, optional
        The stored answer to the same question.
    """

    spent: Flags
    reached: NDArray[np.uint8]
    reply: bytes | None = None


@dataclass(frozen=True, repr=False)
class Sample:
    """Bytes of a question, person by person, of which the Host stores a secret sample for an auditor.

    A question about sums is one row for all people together (:func:`backend.store.request_log.packed_question`).

    Attributes
    ----------
    request : str
        The Guest's name for the question; empty if it cannot be repeated.
    dither : int
        Largest number that a Host before this one adds to a score, units.
    first : int
        Position of the first of the people in the question.
    """

    model_id: str
    kind: str
    public_key: bytes
    ids: tuple[str, ...]
    body: Callable[[int], bytes]
    request: str = ""
    dither: int = 0
    first: int = 0


@dataclass(frozen=True, repr=False)
class Ask:
    """The parts of a message's question, as its rule has read them.

    Attributes
    ----------
    opens : mapping of str to Rows
        The parts of the table that the handler needs, by names that the rule chooses.
    approval : Approval, optional
        The request that the Host's operator decides about; None = no request.
    amount : int
        People, or trainings, that are taken from the approval's volume.
    volume_of : str
        The request id under which a repeated question uses no volume; empty = each question uses volume.
    volumes : sequence of str
        The request ids of several questions in one message, of which each takes the amount; empty = it is one question.
    charges : sequence of Charge
        The charges about the people asked about. Those of one message are booked all together or not at all.
    others : sequence of Charge
        The charges about other people whose records enter the answer; all are booked, or the message is refused.
    binds : (str, str), optional
        Request id and digest of a question that was booked before and whose bytes have all arrived now.
    reply : str
        The request id under which the answer is stored until the Guest has it; empty = it is not stored.
    has_record : ndarray of bool, optional
        ``(n,)``: whether there is a record of each of the people asked about.
    sample : Sample, optional
        A sample of the people whose question is answered.
    sums : Sample, optional
        The question behind sums: one row, always stored.
    notes : sequence of Note
        Terms that a repeated training must have again. They are stored all together or not at all.
    spends : Spending, optional
        The noise whose ranks are sent.
    subject : object
        The rule's result, for the handler.
    """

    opens: Mapping[str, Rows] = field(default_factory=dict)
    approval: Approval | None = None
    amount: int = 0
    volume_of: str = ""
    volumes: Sequence[str] = ()
    charges: Sequence[Charge] = ()
    others: Sequence[Charge] = ()
    binds: tuple[str, str] | None = None
    reply: str = ""
    has_record: Flags | None = None
    sample: Sample | None = None
    sums: Sample | None = None
    notes: Sequence[Note] = ()
    spends: Spending | None = None
    subject: Any = None


@dataclass(frozen=True, repr=False)
class Permit:
    """The gate's permit for one message. Only a gate makes one.

    Attributes
    ----------
    charged : tuple of Charged
        One for each charge of the rule.
    stored : bytes, optional
        The stored answer to this question; the handler sends it again.
    """

    request: Asked
    ask: Ask
    charged: tuple[Charged, ...]
    stored: bytes | None
    limits: Limits | None

    @property
    def guest(self) -> str:
        """Return the Guest of the conversation."""
        return self.request.session.guest

    @property
    def session(self) -> HostSession:
        """Return the conversation's state."""
        return self.request.session

    @property
    def floors(self) -> Floors:
        """Return the Host's floors."""
        return self.request.floors

    @property
    def has_record(self) -> Flags:
        """Return whether there is a record of each of the people asked about, ``(n,)``."""
        if self.ask.has_record is None:
            return np.zeros(0, dtype=bool)
        return self.ask.has_record

    @property
    def spent(self) -> Flags:
        """Return whether a limit about each of the people was reached, ``(n,)``."""
        spent = np.zeros(len(self.has_record), dtype=bool)
        if self.charged:
            spent[self.has_record] = np.concatenate([charged.spent for charged in self.charged])
        return spent

    def held_records(self) -> HeldRecords:
        """Return the message with the people who have a record, and the limits that were reached."""
        conversation = self.request.message.conversation
        spent = self.spent
        if self.limits is None or not spent.any():
            return HeldRecords(conversation, to_bitmap(self.has_record))
        reached = np.zeros(len(spent), dtype=np.uint8)
        reached[self.has_record] = np.concatenate([charged.reached for charged in self.charged])
        reached[~spent] = 0
        kind = self.ask.charges[0].question.kind
        answers, total = self.limits.of(kind)
        return HeldRecords(
            conversation,
            to_bitmap(self.has_record),
            reached.tobytes(),
            answers,
            total,
            self.limits.bits,
            self.limits.days,
        )


Rule = Callable[[Asked], Ask]
"""Reads one kind of message: raises SecurityError if it is refused by the message, the floors and the history alone."""
Reply = Iterator[tuple[str, Message]]
"""Messages, each with its receiver."""
Handler = Callable[[Permit, Opened, Any, Noise], Reply]
"""Answers one kind of message: a function of the permit, the opened records, the message and the noise."""


@dataclass(frozen=True)
class Kind:
    """How a Host decides about one kind of message, and how it answers.

    Attributes
    ----------
    passed_on : bool
        Whether other Hosts of the chain may send it, too.
    begins : bool
        Whether it may be the first message of a conversation.
    reply : str
        Name of the answer's field that is stored until the Guest has it; empty = no answer is.
    makes : callable, optional
        Makes bytes that the answer is made of, and that are stored before it leaves; the handler gets those that are stored already,
        if there are any.
    sealed : bool
        Whether it may be about a model that is kept sealed.
    store : callable, optional
        Stores what the handler left in the conversation, before the answer leaves: a model that was trained.
    """

    rule: Rule
    handler: Handler
    passed_on: bool = False
    begins: bool = False
    sealed: bool = False
    reply: str = ""
    makes: Callable[[Permit, Opened, Any, Noise], bytes] | None = None
    store: Callable[[HostModels, Permit, Message], None] | None = None


Kinds = Mapping[type[Message], Kind]
