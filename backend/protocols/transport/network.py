"""All parties' wires in one process, for a simulation: every message becomes bytes, and the transcript has those between any two parties.

A network knows mailboxes and bytes; it holds no party, so nothing that can reach the network can reach a party through it.
"""

from __future__ import annotations

import queue
import threading

from backend.errors import PartyUnreachable
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.message import Message
from backend.protocols.transport.transcript import TranscribedWire, Transcript
from backend.protocols.transport.wire import Delivery, Quiet

_Letter = tuple[str, bytes, int]  # sender, bytes, number in the transcript
_Mailbox = queue.SimpleQueue[_Letter | None]


class Network:
    """Mailboxes in one process; a party holds its :meth:`end` of it, never the network."""

    def __init__(self) -> None:
        self._boxes: dict[tuple[str, str], _Mailbox] = {}  # by party and conversation
        self.noted = Transcript()
        self._lock = threading.Lock()

    def end(self, party: str) -> LocalWire:
        """The wire of one party."""
        return LocalWire(self, party)

    def open(self, party: str, conversation: str = "") -> None:
        """Give `party` a mailbox: one for all conversations, or one for a single conversation, whose transcript begins now."""
        self._boxes.setdefault((party, conversation), queue.SimpleQueue())
        if conversation:
            self.noted.begin(party, conversation)

    def close(self, party: str, conversation: str = "") -> None:
        """Take a mailbox away; a waiting receiver is woken."""
        box = self._boxes.pop((party, conversation), None)
        if box is not None:
            box.put(None)

    def send(self, sender: str, receiver: str, message: Message) -> int:
        """Turn `message` into bytes, note it in the transcript and deliver it; returns its bytes.

        Raises PartyUnreachable if `receiver` has no mailbox: it is down.
        """
        blob = encode(message)
        box = self._boxes.get((receiver, message.conversation)) or self._boxes.get((receiver, ""))
        if box is None:
            raise PartyUnreachable("host_not_running", host=receiver)
        with self._lock:  # so that a mailbox holds messages in the transcript's order
            number = self.noted.note(sender, receiver, message, len(blob))
            box.put((sender, blob, number))
        return len(blob)

    def receive(self, party: str, conversation: str = "", timeout: float | None = None) -> Delivery | None:
        """What comes next for `party`; None when the mailbox is closed or `timeout` seconds have passed (None = wait for ever)."""
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


class LocalWire(TranscribedWire):
    """One party's end of a network."""

    def __init__(self, network: Network, party: str) -> None:
        self._network = network
        self._party = party
        self._transcript = network.noted

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

    def quiet(self, party: str) -> Quiet:
        """Nothing is on its way here for any time."""
        return Quiet()
