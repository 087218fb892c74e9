"""What has come from peers: each message once, in order within its conversation, in bounded mailboxes until somebody takes it."""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from backend.errors import PartyUnreachable, SecurityError
from backend.link.agreement import AgreedParty
from backend.link.causes import cause_of, packed
from backend.link.frames import ENVELOPE, DeliveryReceipt, Header, Lane, Memory
from backend.protocols.transport.messages import EndConversation
from backend.remark import Remark

MAX_IDS = 65_536  # of messages that were taken: delivered again they are acknowledged, not taken again
MAX_CONVERSATIONS = 16_384  # of which the last sequence is remembered
BUSY_SECONDS = 0.5  # until a full lane is tried again
AGAIN = 1.0  # seconds after which a question may be asked again that whoever it was for had no chance to answer
GAP_SECONDS = 0.1  # until a message that overtook another is tried again


@dataclass(frozen=True)
class Letter:
    """A message that came; `bytes` of the memory are its own until it is taken.

    `is_local` = this party's link made the letter in the sender's place: no party has sent it, and no receipt states it.
    """

    sender: str
    kind: str
    conversation: str
    lane: Lane
    blob: bytes = field(repr=False)
    is_local: bool = False

    @property
    def bytes_on_wire(self) -> int:
        """Its length on the wire, bytes; 0 if this party's link made it."""
        return 0 if self.is_local else len(self.blob)


class Mailboxes:
    """Letters that wait, by conversation; at most so many of each lane together.

    Parameters
    ----------
    memory : Memory
        In which each letter's bytes are taken already.
    """

    def __init__(self, room: dict[Lane, int], memory: Memory) -> None:
        self._room = room
        self._memory = memory
        self._boxes: dict[str, queue.SimpleQueue[Letter | None]] = {}
        self._waiting: dict[Lane, int] = dict.fromkeys(room, 0)
        self._lock = threading.Lock()

    def open(self, conversation: str) -> None:
        """Open one."""
        with self._lock:
            self._boxes.setdefault(conversation, queue.SimpleQueue())

    def close(self, conversation: str) -> None:
        """Close one: what waits in it is dropped, and whoever waits at it is woken."""
        with self._lock:
            box = self._boxes.pop(conversation, None)
        if box is None:
            return
        while True:
            try:
                letter = box.get_nowait()
            except queue.Empty:
                break
            if letter is not None:
                self._taken(letter)
        box.put(None)

    def is_open(self, conversation: str) -> bool:
        """Whether there is one."""
        return conversation in self._boxes

    def reserve(self, lane: Lane) -> bool:
        """Keep a place in a lane for a letter that :meth:`put` or :meth:`release` will follow; False if it is full."""
        with self._lock:
            if self._waiting[lane] >= self._room[lane]:
                return False
            self._waiting[lane] += 1
            return True

    def put_own(self, letter: Letter) -> None:
        """Put a letter of this party's own making, however full its lane is."""
        self._memory.force(len(letter.blob))
        with self._lock:
            self._waiting[letter.lane] += 1
        self.put(letter)

    def release(self, lane: Lane) -> None:
        """Give a place back."""
        with self._lock:
            self._waiting[lane] -= 1

    def put(self, letter: Letter) -> None:
        """Put a letter, for which a place was kept, into its conversation's box or the one for all; without either it is dropped."""
        with self._lock:
            box = self._boxes.get(letter.conversation) or self._boxes.get("")
            if box is not None:
                box.put(letter)
                return
        self._taken(letter)

    def get(self, conversation: str, timeout: float | None) -> Letter | None:
        """The next letter; None if the box is closed or `timeout` seconds have passed."""
        box = self._boxes.get(conversation)
        if box is None:
            return None
        try:
            letter = box.get(timeout=timeout)
        except queue.Empty:
            return None
        if letter is None:
            box.put(None)  # for whoever else waits at it
            return None
        self._taken(letter)
        return letter

    def close_all(self) -> None:
        """Close every box."""
        for conversation in list(self._boxes):
            self.close(conversation)

    def _taken(self, letter: Letter) -> None:
        with self._lock:
            self._waiting[letter.lane] -= 1
        self._memory.give(len(letter.blob))


Hand = Callable[[AgreedParty, Header, bytes], bool]
"""Hands a message on; False if there is no room. The bytes are the receiver's from then on."""


class Inbox:
    """One peer's messages: each once, in order.

    Parameters
    ----------
    hand : callable
        To whom a message is handed; a SecurityError or PartyUnreachable is the reason why it is refused.
    """

    def __init__(self, hand: Hand, memory: Memory) -> None:
        self._hand = hand
        self._memory = memory
        self._ids: OrderedDict[str, DeliveryReceipt] = OrderedDict()
        self._sequences: OrderedDict[str, int] = OrderedDict()
        self._open: OrderedDict[str, None] = OrderedDict()  # what it has begun and not ended
        self._instance = ""
        self._lock = threading.Lock()

    def greet(self, instance: str) -> tuple[str, ...] | None:
        """Note a peer's greeting. Return the conversations that its previous process left open; None if the process is the same."""
        with self._lock:
            changed = instance != self._instance
            self._instance = instance
            if not changed:
                return None
            abandoned = tuple(self._open)
            self._sequences.clear()
            self._open.clear()
            return abandoned

    def accept(self, peer: AgreedParty, header: Header, blob: bytes) -> DeliveryReceipt:
        """Take a whole message and return its receipt; unless it was taken, its bytes are given back to the memory."""
        with self._lock:
            stored_receipt = self._ids.get(header.id)
            receipt = stored_receipt or self._judge(peer, header, blob, time.time())
            if stored_receipt is not None or receipt.result != "taken":
                self._memory.give(len(blob))
            if stored_receipt is None and receipt.result != "busy":
                self._ids[header.id] = receipt
                while len(self._ids) > MAX_IDS:
                    self._ids.popitem(last=False)
            return receipt

    def refuse(self, header: Header, why: Remark) -> DeliveryReceipt:
        """Refuse a message of which nothing was taken; the next one of its conversation follows it."""
        with self._lock:
            last = self._sequences.get(header.conversation, 0)
            if header.sequence > last + 1:
                return DeliveryReceipt(header.id, "busy", after=GAP_SECONDS)
            self._sequences[header.conversation] = max(last, header.sequence)
            return DeliveryReceipt(header.id, "refused", packed(why))

    def _judge(self, peer: AgreedParty, header: Header, blob: bytes, now: float) -> DeliveryReceipt:
        last = self._sequences.get(header.conversation, 0)
        if header.sequence <= last:
            return DeliveryReceipt(
                header.id, "refused", packed(Remark("message_repeated", {"number": header.sequence}))
            )
        if header.sequence > last + 1:  # it overtook one that found no room
            return DeliveryReceipt(header.id, "busy", after=GAP_SECONDS)
        receipt = DeliveryReceipt(header.id, "taken")
        try:
            if header.deadline <= now:
                raise SecurityError("deadline_passed")
            if not self._hand(peer, header, blob):
                return DeliveryReceipt(header.id, "busy", after=BUSY_SECONDS)
        except SecurityError as error:
            receipt = DeliveryReceipt(header.id, "refused", packed(cause_of(error)))
        except PartyUnreachable as error:  # of whom it is to be passed on to; later it may be there
            receipt = DeliveryReceipt(header.id, "refused", packed(cause_of(error)), after=AGAIN)
        self._sequences.pop(header.conversation, None)
        self._sequences[header.conversation] = header.sequence
        while len(self._sequences) > MAX_CONVERSATIONS:
            self._sequences.popitem(last=False)
        self._note_open(header)
        return receipt

    def _note_open(self, header: Header) -> None:
        if header.kind == EndConversation.__name__:
            self._open.pop(header.conversation, None)
        elif header.kind != ENVELOPE:  # what another Host has sealed opens no conversation
            self._open[header.conversation] = None
            while len(self._open) > MAX_CONVERSATIONS:
                self._open.popitem(last=False)
