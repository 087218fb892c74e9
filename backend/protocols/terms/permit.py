"""What a Host's gate allows one message. A rule reads the message, the gate decides, a handler gets the permit."""

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
    """A message as a rule reads it: with the conversation's state and who has a record, without a value of anybody.

    Attributes
    ----------
    sender : str
        The party that the wire proves to have sent it.
    session : HostSession
        The conversation; its state is the history that a rule decides by.
    counted : bool
        Whether questions of this conversation count; a simulation measures without.
    facts : TableFacts
        What prices depend on.
    operator : bool
        Whether this Host asks its operator.
    sums : bool
        Whether its operator decides about sums by group, too.
    features : mapping of str to Feature
        The Host's, by name: what the dictionary says of them.
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
    whole : bool
        About all of its people, or the message is refused; otherwise those over a limit are left out.
    only_look : bool
        Look whether it would be answered, and book nothing.
    digest : str
        SHA-256 of the bytes that it came in, if all have come: it is bound to them.
    times : int
        How often the question is answered at most, each time with an answer of its own; 0 = once, and then with the same answer.
    record_of : collection of str
        Features that are the person's record to the model. With a score its version is stored; reasons are refused, and not booked, if
        the record has changed since. Empty = neither.
    """

    question: Question
    whole: bool = False
    only_look: bool = False
    digest: str = ""
    times: int = 0
    record_of: Collection[str] = ()


@dataclass(frozen=True, repr=False)
class Charged:
    """What became of a charge: ``(people,)`` each.

    Attributes
    ----------
    spent : ndarray of bool
        About whom a limit was reached, so that nothing is answered.
    reached : ndarray of uint8
        Which limit, by its number in :data:`backend.store.accountant.LIMITS`.
    reply : bytes, optional
        The answer that the same question got before.
    """

    spent: Flags
    reached: NDArray[np.uint8]
    reply: bytes | None = None


@dataclass(frozen=True, repr=False)
class Sample:
    """Bytes of a question, person by person, of which the Host stores a secret sample for an auditor.

    A question about sums is one row, about nobody alone (:func:`backend.store.request_log.packed_question`).

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
    """What a message asks for, as its rule has read it.

    Attributes
    ----------
    opens : mapping of str to Rows
        What the handler needs of the table, by names of the rule's own.
    approval : Approval, optional
        What the Host's operator decides about; None = nothing.
    amount : int
        People, or trainings, that are taken from the approval's volume.
    volume_of : str
        The request id under which a repeated question uses no volume; empty = each one does.
    volumes : sequence of str
        The same of several questions in one message, of which each takes the amount; empty = it is one question.
    charges : sequence of Charge
        What is booked about the people asked about. Those of one message are booked all together or not at all.
    others : sequence of Charge
        What is booked about people whose records enter the answer without being asked about; all of it, or the message is refused.
    binds : (str, str), optional
        Request id and digest of a question that was booked before and whose bytes are now all there.
    reply : str
        The request id under which the answer is stored until the Guest has it; empty = it is not.
    held : ndarray of bool, optional
        ``(n,)``: of which of the people asked about there is a record.
    sample : Sample, optional
        Of those who are answered about.
    sums : Sample, optional
        What a question about sums is about: one row, always stored.
    notes : sequence of Note
        What a training must be asked for in the same way if it comes again. They are stored all together or not at all.
    spends : Spending, optional
        The noise whose ranks are sent.
    subject : object
        What the rule has worked out and the handler goes on with.
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
    held: Flags | None = None
    sample: Sample | None = None
    sums: Sample | None = None
    notes: Sequence[Note] = ()
    spends: Spending | None = None
    subject: Any = None


@dataclass(frozen=True, repr=False)
class Permit:
    """What the gate has allowed one message. Only a gate makes one.

    Attributes
    ----------
    charged : tuple of Charged
        One for each charge of the rule.
    stored : bytes, optional
        The answer that this question got before; the handler sends it again.
    """

    asked: Asked
    ask: Ask
    charged: tuple[Charged, ...]
    stored: bytes | None
    limits: Limits | None

    @property
    def guest(self) -> str:
        """Return the Guest of the conversation."""
        return self.asked.session.guest

    @property
    def session(self) -> HostSession:
        """Return the conversation's state."""
        return self.asked.session

    @property
    def floors(self) -> Floors:
        """Return the Host's floors."""
        return self.asked.floors

    @property
    def held(self) -> Flags:
        """Return of which of the people asked about there is a record, ``(n,)``."""
        if self.ask.held is None:
            return np.zeros(0, dtype=bool)
        return self.ask.held

    @property
    def spent(self) -> Flags:
        """Return about which of the people a limit was reached, ``(n,)``."""
        spent = np.zeros(len(self.held), dtype=bool)
        if self.charged:
            spent[self.held] = np.concatenate([charged.spent for charged in self.charged])
        return spent

    def held_records(self) -> HeldRecords:
        """Return the message that says of whom there is a record, and about whom which limit was reached."""
        conversation = self.asked.message.conversation
        spent = self.spent
        if self.limits is None or not spent.any():
            return HeldRecords(conversation, to_bitmap(self.held))
        reached = np.zeros(len(spent), dtype=np.uint8)
        reached[self.held] = np.concatenate([charged.reached for charged in self.charged])
        reached[~spent] = 0
        kind = self.ask.charges[0].question.kind
        answers, total = self.limits.of(kind)
        return HeldRecords(
            conversation,
            to_bitmap(self.held),
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
