"""What a Host states at the end of a conversation: which messages it sent and took, signed; and the whole transcript that this makes.

On real links the Guest sees what it sent and received itself. What Hosts sent each other it knows from their receipts alone, and each is
believed about its own side only: a message between two Hosts stands in the whole transcript because its sender has stated it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgpack

from backend.crypto.signing import SigningKey, is_signed
from backend.protocols.transport.message import MESSAGES
from backend.protocols.transport.messages import ConversationReceipt
from backend.protocols.transport.transcript import TranscriptEntry
from backend.store.receipts import Stated

KIND = "conversation receipt"
_Queue = deque[tuple[Stated, TranscriptEntry | None]]
MAX_STATED = 4096  # messages; of longer conversations the first ones are stated


def sign_receipt(conversation: str, host: str, entries: Sequence[Stated], key: SigningKey) -> ConversationReceipt:
    """The receipt of a Host."""
    stated = tuple(entries)
    signature = key.sign(KIND, conversation, host, _digest(stated))
    return ConversationReceipt(conversation, stated, signature)


def is_genuine(receipt: ConversationReceipt, host: str, public: str) -> bool:
    """Return whether a Host signed a receipt, and states only its own messages in it."""
    is_own = all((sender == host) != (receiver == host) for sender, receiver, *_ in receipt.entries)
    return is_own and is_signed(public, receipt.signature, KIND, receipt.conversation, host, _digest(receipt.entries))


def _digest(entries: tuple[Stated, ...]) -> str:
    return hashlib.sha256(msgpack.packb(entries)).hexdigest()


def whole(
    guest_transcript: Sequence[TranscriptEntry], guest: str, receipts: Mapping[str, ConversationReceipt]
) -> tuple[TranscriptEntry, ...]:
    """Merge the Guest's transcript with the messages that Hosts state they sent each other, and with their work, in a possible order.

    Each party's messages stay in its order, and no message is taken before it was sent.
    """
    sides = {}
    for host, r in receipts.items():
        sides[host] = _Side(host, deque((stated, None) for stated in r.entries))
    guest_queue: _Queue = deque(((e.sender, e.receiver, e.kind, e.bytes, 0.0), e) for e in guest_transcript)
    merge = _Merge({guest: _Side(guest, guest_queue), **sides})
    while any(side.queue for side in merge.sides.values()):
        # If a party states that it took a message which no party states to have sent, the first such message is taken as it is.
        moved = [merge.go_on(side) for side in merge.sides.values()]
        if not any(moved):
            merge.take(next(side for side in merge.sides.values() if side.queue))
    return tuple(merge.made)


@dataclass
class _Side:
    """The messages that one party sent and took, in its order, with the Guest's entries if it has them; and the message taken last."""

    party: str
    queue: _Queue
    last_taken: int = 0


class _Merge:
    """The merged entries of several sides."""

    def __init__(self, sides: dict[str, _Side]) -> None:
        self.sides = sides
        self.made: list[TranscriptEntry] = []
        self._on_the_way: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)  # sent and not taken
        self._numbers: dict[int, int] = {0: 0}  # in the Guest's own transcript → in the whole one

    def go_on(self, side: _Side) -> bool:
        """Merge the messages of one side that can be merged now; return whether there were any."""
        length_before = len(side.queue)
        while side.queue:
            sender, receiver, *_ = side.queue[0][0]
            if sender == side.party:
                self._send(side)
            elif self._on_the_way[sender, receiver] or sender not in self.sides:
                self.take(side)
            else:
                break
        return len(side.queue) < length_before

    def _send(self, side: _Side) -> None:
        stated, entry = side.queue.popleft()
        number = len(self.made) + 1
        if entry is not None:
            work = tuple((self._numbers.get(earlier, 0), seconds) for earlier, seconds in entry.work)
            self._add(replace(entry, work=work), entry.number)
        else:
            self.made.append(_stated(number, stated, side.last_taken, self.made))
        self._on_the_way[stated[0], stated[1]].append(number)

    def take(self, side: _Side) -> None:
        """Mark the next message of a side as taken, whether it was sent or not."""
        stated, entry = side.queue.popleft()
        sent = self._on_the_way[stated[0], stated[1]]
        if sent:
            side.last_taken = sent.popleft()
            if entry is not None:  # shown as it came
                self._numbers[entry.number] = side.last_taken
                merged_entry = self.made[side.last_taken - 1]
                self.made[side.last_taken - 1] = replace(entry, number=side.last_taken, work=merged_entry.work)
        elif entry is not None:
            side.last_taken = self._add(replace(entry, work=()), entry.number)

    def _add(self, entry: TranscriptEntry, guest_number: int) -> int:
        self.made.append(replace(entry, number=len(self.made) + 1))
        self._numbers[guest_number] = len(self.made)
        return len(self.made)


def _stated(
    number: int, stated: Stated, taken_number: int, merged_entries: Sequence[TranscriptEntry]
) -> TranscriptEntry:
    """Return the entry of a message from its sender's statement; its content is not shown."""
    sender, receiver, kind, size, seconds = stated
    message_class = MESSAGES.get(kind)
    if message_class is None:
        holds = ""
        readable_by = ""
    else:
        holds = message_class.HOLDS
        readable_by = message_class.READABLE_BY
    when = merged_entries[-1].seconds if merged_entries else 0.0
    return TranscriptEntry(number, sender, receiver, kind, size, when, holds, readable_by, ((taken_number, seconds),))
