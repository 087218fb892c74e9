"""The one wire: everything that leaves a party passes `send`, becomes bytes, and is written into the transcript.

A network knows mailboxes and bytes; it holds no party, so nothing that can reach the network can reach a party through it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from backend import errors, work
from backend.errors import Cancelled, HostRefused, PartyUnreachable, QuestionRefused, SecurityError
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import ApprovalPending, EndConversation, OfferKey, Refusal

M = TypeVar("M", bound=Message)
_Octets = bytes  # where a field is called bytes
POLL = 0.1  # seconds between looks at the cancel flag
SAMPLE = 16  # bytes of a ciphertext that an onlooker is shown
TIMEOUT = 300.0  # seconds a party may stay silent before it counts as unreachable


@dataclass(frozen=True)
class TranscriptEntry:
    """One message as an onlooker may know it: never its content.

    Attributes
    ----------
    number : int
        Position in the conversation, from 1.
    sender, receiver : str
    kind : str
        The message's class.
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
        The first :data:`SAMPLE` bytes, as they were on the wire, of the message's ciphertexts or public key; empty where it has none, or
        where nothing is encrypted.
    unreadable : int
        Length of those ciphertexts or that key, bytes.
    entries : int
        Encrypted numbers a person, where the message says so; 0 otherwise.
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


@dataclass(frozen=True, repr=False)
class _Letter:
    """A message in a mailbox; `number` is its position in the transcript, 0 where there is none any more."""

    sender: str
    blob: bytes
    conversation: str
    number: int
    round: int


@dataclass
class _Mailbox:
    """Letters that wait, what the owner is at work on (the message it took in last), and since when."""

    since: float
    conversation: str
    number: int = 0
    round: int = 0
    letters: queue.SimpleQueue[_Letter | None] = field(default_factory=queue.SimpleQueue)


@dataclass
class _Work:
    """Seconds of work on one message, not yet in the transcript."""

    number: int
    round: int
    seconds: float


class Network:
    """Mailboxes in one process. Another network (sockets, say) needs only the same four methods."""

    def __init__(self) -> None:
        self._boxes: dict[tuple[str, str], _Mailbox] = {}  # by party and conversation
        self._work: dict[str, dict[str, list[_Work]]] = {}  # conversation → party → work not yet in the transcript
        self._transcripts: dict[str, list[TranscriptEntry]] = {}
        self._began: dict[str, float] = {}
        self._encrypted: set[str] = set()  # conversations that have a key; in the others nothing is shown
        self._lock = threading.Lock()

    def open(self, party: str, conversation: str = "") -> None:
        """Give `party` a mailbox: one for all conversations, or one for a single conversation, whose transcript begins now."""
        self._boxes.setdefault((party, conversation), _Mailbox(time.perf_counter(), conversation))
        if conversation:
            with self._lock:
                self._transcripts.setdefault(conversation, [])
                self._began.setdefault(conversation, time.perf_counter())
                self._work.setdefault(conversation, {})

    def close(self, party: str, conversation: str = "") -> None:
        """Take a mailbox away; a waiting receiver is woken."""
        box = self._boxes.pop((party, conversation), None)
        if box is not None:
            box.letters.put(None)

    def send(self, sender: str, receiver: str, message: Message) -> None:
        """Turn `message` into bytes, note it in the transcript and deliver it.

        Raises
        ------
        PartyUnreachable
            `receiver` has no mailbox: it is down.
        """
        # a protocol that goes in rounds counts them in its messages
        conversation, round_ = message.conversation, getattr(message, "round", 0)
        blob = encode(message)
        self._stop_clock(self._boxes.get((sender, conversation)) or self._boxes.get((sender, "")), sender)
        box = self._boxes.get((receiver, conversation)) or self._boxes.get((receiver, ""))
        if box is None:
            raise PartyUnreachable(f"{receiver} is not reachable: it is not running. Start it again and repeat.")
        with self._lock:  # so that a mailbox holds messages in the transcript's order
            log = self._transcripts.get(conversation)
            if isinstance(message, OfferKey):
                (self._encrypted.discard if message.scheme == "none" else self._encrypted.add)(conversation)
            hidden: bytes = getattr(message, message.UNREADABLE, b"") if conversation in self._encrypted else b""
            if log is not None:  # the Guest may have ended the conversation while a Host was still at work
                log.append(
                    TranscriptEntry(
                        number=len(log) + 1,
                        sender=sender,
                        receiver=receiver,
                        kind=type(message).__name__,
                        bytes=len(blob),
                        seconds=time.perf_counter() - self._began[conversation],
                        holds=message.HOLDS,
                        readable_by=message.READABLE_BY,
                        work=self._work_before(conversation, sender, round_),
                        sample=hidden[:SAMPLE],
                        unreadable=len(hidden),
                        entries=getattr(message, "entries", 0),
                    )
                )
            box.letters.put(_Letter(sender, blob, conversation, len(log) if log is not None else 0, round_))

    def receive(self, party: str, conversation: str = "", timeout: float | None = None) -> tuple[str, Message] | None:
        """Next sender and message for `party`; None when the mailbox is closed or `timeout` seconds have passed."""
        box = self._boxes.get((party, conversation))
        if box is None:
            return None
        self._stop_clock(box, party)
        try:
            letter = box.letters.get(timeout=timeout)
        except queue.Empty:
            letter = None
        box.since = time.perf_counter()
        if letter is None:
            return None
        box.conversation, box.number, box.round = letter.conversation, letter.number, letter.round
        return letter.sender, decode(letter.blob)

    def _stop_clock(self, box: _Mailbox | None, owner: str) -> None:
        """Note how long the owner of a mailbox has worked since it last sent or took in a message."""
        if box is None:
            return
        now = time.perf_counter()
        with self._lock:
            if box.conversation in self._work:
                pending = self._work[box.conversation].setdefault(owner, [])
                if not pending or pending[-1].number != box.number:
                    pending.append(_Work(box.number, box.round, 0.0))
                pending[-1].seconds += now - box.since
        box.since = now

    def _work_before(self, conversation: str, party: str, round_: int) -> tuple[tuple[int, float], ...]:
        """Work that a message rests on. One of a round rests on earlier rounds; what has come early counts later."""
        pending = self._work[conversation].pop(party, [])
        rested_on = [work for work in pending if not round_ or work.round < round_]
        if len(rested_on) < len(pending):
            self._work[conversation][party] = [work for work in pending if work.round >= round_]
        return tuple((work.number, work.seconds) for work in rested_on)

    def is_up(self, party: str) -> bool:
        """Whether `party` has a mailbox."""
        return (party, "") in self._boxes

    def transcript(self, conversation: str) -> tuple[TranscriptEntry, ...]:
        """Every message of a conversation so far, between any two parties."""
        return tuple(self._transcripts.get(conversation, ()))

    def forget(self, conversation: str) -> None:
        """Drop a conversation's transcript and clock."""
        with self._lock:
            self._transcripts.pop(conversation, None)
            self._began.pop(conversation, None)
            self._work.pop(conversation, None)
            self._encrypted.discard(conversation)


class Session:
    """The Guest's end of one training or scoring: sends, waits, and can be cancelled at any wait.

    Parameters
    ----------
    network : Network
    party : str
        The Guest.
    name : str
        Unique per training or scoring.
    hosts : tuple of str
        Whom it may wait for.
    cancelled : callable
        Called at least every 0.1 s while waiting.
    timeout : float
        Seconds without an answer after which the Hosts count as unreachable.
    """

    def __init__(
        self,
        network: Network,
        party: str,
        name: str,
        hosts: tuple[str, ...],
        cancelled: Callable[[], bool] = lambda: False,
        timeout: float = TIMEOUT,
    ) -> None:
        self.name, self.hosts = name, hosts
        self._network, self._party, self._cancelled, self._timeout = network, party, cancelled, timeout
        self._met: set[str] = set()
        network.open(party, name)

    def send(self, receiver: str, message: Message) -> None:
        """Send one message."""
        self._network.send(self._party, receiver, message)
        self._met.add(receiver)

    def broadcast(self, message: Message) -> None:
        """Send the same message to every Host of the conversation."""
        for host in self.hosts:
            self.send(host, message)

    def expect(self, kind: type[M]) -> tuple[str, M]:
        """Wait for the next message, which must be of class `kind`; returns its sender too.

        Raises
        ------
        Cancelled
            The user stopped the job.
        PartyUnreachable
            A Host went down, or none answered in time.
        HostRefused, QuestionRefused
            A Host refused; ApprovalPending where its operator has not decided yet.
        SecurityError
            It sent something else.
        """
        sender, message = self._next()
        if isinstance(message, Refusal):
            refused = QuestionRefused if message.final else HostRefused
            raise refused(f"{sender} refused: {message.reason}")
        if isinstance(message, ApprovalPending):
            raise errors.ApprovalPending(sender, message.number, _time(message.since))
        if not isinstance(message, kind):
            came = type(message).__name__
            raise SecurityError(f"A {kind.__name__} was expected, a {came} came; the exchange was stopped.")
        return sender, message

    def expect_each(self, kind: type[M], hosts: Collection[str]) -> dict[str, M]:
        """Wait for one message of class `kind` from each of `hosts`, in whatever order they come."""
        answers: dict[str, M] = {}
        while len(answers) < len(hosts):
            sender, message = self.expect(kind)
            if sender in answers or sender not in hosts:
                raise SecurityError(f"{sender} answered out of turn; the exchange was stopped.")
            answers[sender] = message
        return answers

    def check(self) -> None:
        """Raise Cancelled if the user stopped the job."""
        work.check()
        if self._cancelled():
            raise Cancelled("Stopped at your request; nothing half-done was kept.")

    def _next(self) -> tuple[str, Message]:
        deadline = time.monotonic() + self._timeout
        while True:
            self.check()
            letter = self._network.receive(self._party, self.name, timeout=POLL)
            if letter is not None:
                return letter
            down = [h for h in self.hosts if not self._network.is_up(h)]
            if down:
                raise PartyUnreachable(
                    f"{', '.join(down)} stopped while it was being asked. Start it again and repeat."
                )
            if time.monotonic() > deadline:
                hosts = ", ".join(self.hosts)
                raise PartyUnreachable(
                    f"No answer from {hosts} for {self._timeout:g} s. Check that they run, and repeat."
                )

    def transcript(self) -> tuple[TranscriptEntry, ...]:
        """The messages so far."""
        return self._network.transcript(self.name)

    def close(self) -> tuple[TranscriptEntry, ...]:
        """End the conversation, however far it got: Hosts forget it too. Returns its transcript."""
        for host in sorted(self._met):
            with suppress(PartyUnreachable):
                self._network.send(self._party, host, EndConversation(self.name))
        transcript = self._network.transcript(self.name)
        self._network.close(self._party, self.name)
        self._network.forget(self.name)
        return transcript


def _time(told: str) -> datetime:
    """When something has happened at another party, by its clock."""
    try:
        found = datetime.fromisoformat(told)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise SecurityError("A time came that is none in UTC; the exchange was stopped.")
    return found
