"""What is written down of messages: entries, the clock, and who worked how long for which; never what they say."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from backend.protocols.transport.message import Message, body
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.wire import Delivery, Quiet, Wire
from backend.remark import Remark

_Octets = bytes  # where a field is called bytes
SAMPLE = 16  # bytes of a ciphertext that an onlooker is shown
EACH = 8  # bytes of every ciphertext of a question about one person
MOST = 512  # ciphertexts of which these are kept


@dataclass(frozen=True)
class TranscriptEntry:
    """One message as an onlooker may know it: never its content.

    Attributes
    ----------
    number : int
        Position in the conversation, from 1.
    bytes : int
        Length on the wire.
    seconds : float
        Since the conversation began.
    holds, readable_by : str
        Plain words: what it carries, and who can read that.
    work : tuple of (int, float)
        What the sender did for this message since its last one of the conversation, in order: once it had taken in message
        `int` (0 = none yet), it worked for `float` seconds. Waiting is not work.
        :mod:`backend.protocols.transport.simulated_latency` reads it.
    sample : bytes
        The first :data:`SAMPLE` bytes, as they were on the wire, of the body of the message's ciphertexts or public key; empty if it
        has none, or if nothing is encrypted.
    unreadable : int
        Length of those ciphertexts or that key, bytes.
    entries : int
        Encrypted numbers a person, where the message says so; 0 otherwise.
    each : tuple of bytes
        The first :data:`EACH` bytes of every ciphertext, as they were on the wire; empty unless each number about one person is a
        ciphertext of its own, and there are at most :data:`MOST`.
    """

    number: int
    sender: str
    receiver: str
    kind: str
    bytes: int
    seconds: float
    holds: str
    readable_by: str
    work: tuple[tuple[int, float], ...]
    sample: _Octets = b""
    unreadable: int = 0
    entries: int = 0
    each: tuple[_Octets, ...] = ()


@dataclass
class _Work:
    """Seconds of work on one message, not yet in the transcript."""

    number: int
    round: int
    seconds: float


@dataclass
class _Clock:
    """What one party works on in one conversation (the message it took in last), since when, and what it did before."""

    since: float | None = None
    number: int = 0
    round: int = 0
    pending: list[_Work] = field(default_factory=list)

    def stop(self, now: float) -> None:
        if self.since is None:
            return
        if not self.pending or self.pending[-1].number != self.number:
            self.pending.append(_Work(self.number, self.round, 0.0))
        self.pending[-1].seconds += now - self.since
        self.since = None

    def work_before(self, round_: int) -> tuple[tuple[int, float], ...]:
        """Work that a message rests on. One of a round rests on earlier rounds; what has come early counts later."""
        rested_on = [work for work in self.pending if not round_ or work.round < round_]
        self.pending = [work for work in self.pending if round_ and work.round >= round_]
        return tuple((work.number, work.seconds) for work in rested_on)


@dataclass
class _Conversation:
    """One conversation's entries and clocks; in one that has no key, nothing of a message is shown."""

    began: float
    scheme: str = "none"
    entries: list[TranscriptEntry] = field(default_factory=list)
    clocks: dict[str, _Clock] = field(default_factory=dict)


class Transcript:
    """Conversations as whoever keeps this may know them; what belongs to none that was begun is not noted."""

    def __init__(self) -> None:
        self._conversations: dict[str, _Conversation] = {}
        self._lock = threading.Lock()

    def begin(self, party: str, conversation: str) -> None:
        """Record a conversation from now on; `party` is at work."""
        now = time.perf_counter()
        with self._lock:
            conversation_log = self._conversations.setdefault(conversation, _Conversation(now))
            conversation_log.clocks.setdefault(party, _Clock(now))

    def note(self, sender: str, receiver: str, message: Message, size: int, ready: float | None = None) -> int:
        """Record one message of `size` bytes, on which work ended when it was `ready` (by default now).

        Return its number; 0 if its conversation is not recorded, or no longer.
        """
        with self._lock:
            conversation_log = self._conversations.get(message.conversation)
            if conversation_log is None:
                return 0
            now = time.perf_counter()
            if isinstance(message, OfferKey):
                conversation_log.scheme = message.scheme
            hidden = b""
            if conversation_log.scheme != "none":
                hidden = getattr(message, message.UNREADABLE, b"")
            hidden_body = body(hidden)
            entries: int = getattr(message, "entries", 0)
            people: tuple[str, ...] = getattr(message, "ids", ())
            ended = now if ready is None else ready
            conversation_log.entries.append(
                TranscriptEntry(
                    number=len(conversation_log.entries) + 1,
                    sender=sender,
                    receiver=receiver,
                    kind=type(message).__name__,
                    bytes=size,
                    seconds=now - conversation_log.began,
                    holds=message.HOLDS,
                    readable_by=message.READABLE_BY,
                    work=self._work(conversation_log.clocks.get(sender), round_of(message), ended),
                    sample=hidden_body[:SAMPLE],
                    unreadable=len(hidden),
                    entries=entries,
                    each=_each(conversation_log.scheme, entries, hidden_body) if len(people) == 1 else (),
                )
            )
            return len(conversation_log.entries)

    @staticmethod
    def _work(clock: _Clock | None, round_: int, ready: float) -> tuple[tuple[int, float], ...]:
        if clock is None:
            return ()
        running = clock.since is not None
        clock.stop(ready)
        clock.since = time.perf_counter() if running else None
        return clock.work_before(round_)

    def take(self, party: str, delivery: Delivery) -> None:
        """Start the clock of `party`, which works on the delivery."""
        with self._lock:
            conversation_log = self._conversations.get(delivery.message.conversation)
            if conversation_log is not None:
                now = time.perf_counter()
                clock = conversation_log.clocks.setdefault(party, _Clock())
                clock.stop(now)
                clock.since = now
                clock.number = delivery.number
                clock.round = round_of(delivery.message)

    def rest(self, party: str, conversation: str) -> None:
        """Stop the clock of `party`."""
        with self._lock:
            conversation_log = self._conversations.get(conversation)
            if conversation_log is not None and party in conversation_log.clocks:
                conversation_log.clocks[party].stop(time.perf_counter())

    def entries(self, conversation: str) -> tuple[TranscriptEntry, ...]:
        """Return the messages that were recorded so far."""
        with self._lock:
            conversation_log = self._conversations.get(conversation)
            if conversation_log is not None:
                return tuple(conversation_log.entries)
            return ()

    def forget(self, conversation: str) -> None:
        """Drop a conversation."""
        with self._lock:
            self._conversations.pop(conversation, None)

    def __len__(self) -> int:
        return len(self._conversations)


class TranscribedWire(Wire):
    """A wire beside which a transcript is kept: of all parties in a simulation, otherwise of this party's own side alone.

    The clock says what a party worked for which message: it runs from :meth:`take` to :meth:`rest`.
    """

    _transcript: Transcript

    def take(self, delivery: Delivery) -> None:
        """Work on what came begins."""
        self._transcript.take(self.party, delivery)

    def rest(self, conversation: str) -> None:
        """Work in a conversation stops; what follows is waiting."""
        self._transcript.rest(self.party, conversation)

    def transcript(self, conversation: str) -> tuple[TranscriptEntry, ...]:
        """The messages of a conversation so far."""
        return self._transcript.entries(conversation)

    def forget(self, conversation: str) -> None:
        """Drop a conversation's transcript and clock."""
        self._transcript.forget(conversation)


class OwnTranscript(TranscribedWire):
    """A wire of any link and what passes over it, as this party alone can know that."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._transcript = Transcript()

    @property
    def party(self) -> str:
        """Whose it is."""
        return self._wire.party

    def open(self, conversation: str = "") -> None:
        """Open a mailbox; one of a single conversation is written down."""
        self._wire.open(conversation)
        if conversation:
            self._transcript.begin(self.party, conversation)

    def close(self, conversation: str = "") -> None:
        """Close a mailbox."""
        self._wire.close(conversation)

    def send(self, receiver: str, message: Message) -> int:
        """Send, and write it down once it was taken; the time on the way is no work."""
        ready = time.perf_counter()
        size = self._wire.send(receiver, message)
        self._transcript.note(self.party, receiver, message, size, ready)
        return size

    def receive(self, conversation: str = "", timeout: float | None = None) -> Delivery | None:
        """Receive, and write it down."""
        delivery = self._wire.receive(conversation, timeout)
        if delivery is None:
            return None
        return delivery._replace(
            number=self._transcript.note(delivery.sender, self.party, delivery.message, delivery.bytes)
        )

    def is_up(self, party: str) -> bool:
        """Whether `party` can be reached."""
        return self._wire.is_up(party)

    def quiet(self, party: str) -> Quiet:
        """How long nothing has come from `party`."""
        return self._wire.quiet(party)

    def state(self, party: str) -> Remark | None:
        """How the link to `party` stands."""
        return self._wire.state(party)


def _each(scheme: str, entries: int, hidden: bytes) -> tuple[bytes, ...]:
    """The first bytes of every ciphertext of a message about one person, under a scheme that has one a number."""
    if not scheme.startswith("paillier") or not 0 < entries <= MOST:
        return ()
    length, more = divmod(len(hidden), entries)
    if more or not length:
        return ()
    return tuple(bytes(hidden[at : at + EACH]) for at in range(0, len(hidden), length))


def round_of(message: Message) -> int:
    """Protocols that go in rounds count them in their messages; 0 in the others."""
    number: int = getattr(message, "round", 0)
    return number
