"""All parties' wires in one process, for a simulation: every message becomes bytes, and the transcript has those between any two parties.

A network knows mailboxes and bytes; it holds no party, so nothing that can reach the network can reach a party through it.
"""

from __future__ import annotations

import queue
import threading

from backend.errors import PartyUnreachable
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.message import Message
from backend.protocols.transport.transcript import Transcript, TranscriptEntry
from backend.protocols.transport.wire import Delivery

_Letter = tuple[str, bytes, int]  # sender, bytes, number in the transcript
_Mailbox = queue.SimpleQueue[_Letter | None]


class Network:
    """Mailboxes in one process; a party holds its :meth:`end` of it, never the network."""

    def __init__(self) -> None:
        self._boxes: dict[tuple[str, str], _Mailbox] = {}  # by party and conversation
        self._noted = Transcript()
        self._lock = threading.Lock()

    def end(self, party: str) -> LocalWire:
        """The wire of one party."""
        return LocalWire(self, party)

    def open(self, party: str, conversation: str = "") -> None:
        """Give `party` a mailbox: one for all conversations, or one for a single conversation, whose transcript begins now."""
        self._boxes.setdefault((party, conversation), queue.SimpleQueue())
        if conversation:
            self._noted.begin(party, conversation)

    def close(self, party: str, conversation: str = "") -> None:
        """Take a mailbox away; a waiting receiver is woken."""
        box = self._boxes.pop((party, conversation), None)
        if box is not None:
            box.put(None)

    def send(self, sender: str, receiver: str, message: Message) -> int:
        """Turn `message` into bytes, note it in the transcript and deliver it; returns its bytes.

        Raises
        ------
        PartyUnreachable
            `receiver` has no mailbox: it is down.
        """
        blob = encode(message)
        box = self._boxes.get((receiver, message.conversation)) or self._boxes.get((receiver, ""))
        if box is None:
            raise PartyUnreachable(f"{receiver} is not reachable: it is not running. Start it again and repeat.")
        with self._lock:  # so that a mailbox holds messages in the transcript's order
            number = self._noted.note(sender, receiver, message, len(blob))
            box.put((sender, blob, number))
        return len(blob)

    def receive(self, party: str, conversation: str = "", timeout: float | None = None) -> Delivery | None:
        """What comes next for `party`; None when the mailbox is closed or `timeout` seconds have passed."""
        box = self._boxes.get((party, conversation))
        if box is None:
            return None
        try:
            letter = box.get(timeout=timeout)
        except queue.Empty:
            return None
        if letter is None:
            return None
        sender, blob, number = letter
        return Delivery(sender, decode(blob), len(blob), number)

    def is_up(self, party: str) -> bool:
        """Whether `party` has a mailbox."""
        return (party, "") in self._boxes

    def take(self, party: str, delivery: Delivery) -> None:
        """`party` begins to work on what came."""
        self._noted.take(party, delivery)

    def rest(self, party: str, conversation: str) -> None:
        """`party` stops working in a conversation."""
        self._noted.rest(party, conversation)

    def transcript(self, conversation: str) -> tuple[TranscriptEntry, ...]:
        """Every message of a conversation so far, between any two parties."""
        return self._noted.entries(conversation)

    def forget(self, conversation: str) -> None:
        """Drop a conversation's transcript and clock."""
        self._noted.forget(conversation)


class LocalWire:
    """One party's end of a network; a :class:`backend.protocols.transport.wire.TranscribedWire`."""

    def __init__(self, network: Network, party: str) -> None:
        self._network, self._party = network, party

    @property
    def party(self) -> str:
        """Whose it is."""
        return self._party

    def open(self, conversation: str = "") -> None:
        """Open a mailbox."""
        self._network.open(self._party, conversation)

    def close(self, conversation: str = "") -> None:
        """Close a mailbox."""
        self._network.close(self._party, conversation)

    def send(self, receiver: str, message: Message) -> int:
        """Send as this party; returns the bytes."""
        return self._network.send(self._party, receiver, message)

    def receive(self, conversation: str = "", timeout: float | None = None) -> Delivery | None:
        """What comes next."""
        return self._network.receive(self._party, conversation, timeout)

    def is_up(self, party: str) -> bool:
        """Whether `party` has a mailbox."""
        return self._network.is_up(party)

    def take(self, delivery: Delivery) -> None:
        """Work on what came begins."""
        self._network.take(self._party, delivery)

    def rest(self, conversation: str) -> None:
        """Work in a conversation stops."""
        self._network.rest(self._party, conversation)

    def transcript(self, conversation: str) -> tuple[TranscriptEntry, ...]:
        """Every message of a conversation, between any two parties."""
        return self._network.transcript(conversation)

    def forget(self, conversation: str) -> None:
        """Drop a conversation's transcript."""
        self._network.forget(conversation)
