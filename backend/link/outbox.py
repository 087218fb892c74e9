"""What waits to be delivered to one peer: by lane, bounded, in order within a conversation, until a receipt comes.

A message stays until the peer has taken it, so a link that is cut loses none: what had no receipt is delivered again under the same id.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from backend.errors import PartyUnreachable, SecurityError
from backend.link.causes import unpacked
from backend.link.frames import LANES, DeliveryReceipt, Header, Lane, Memory
from backend.remark import Remark


@dataclass(eq=False)
class Outgoing:
    """One message on its way; `order` is its place among all of this peer's, `since` when it was made (monotonic seconds)."""

    conversation: str
    kind: str
    receiver: str
    blob: bytes = field(repr=False)
    lane: Lane
    deadline: float
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    sequence: int = 0
    order: int = 0
    not_before: float = 0.0
    since: float = field(default_factory=time.monotonic)


MAX_CONVERSATIONS = 16_384  # of which the last sequence is remembered
LOST = -1
Refused = Callable[[Outgoing, Remark, float], None]


class Outbox:
    """Messages for one peer.

    Parameters
    ----------
    queue : dict of lane to int
        Messages that may wait in each lane.
    memory : Memory
        Shared by all peers.
    refused : callable
        Told of each message that will not be delivered, why, and after how many seconds the same may be asked again (0 = not);
        called without any lock held.
    """

    def __init__(self, queue: dict[Lane, int], memory: Memory, refused: Refused) -> None:
        self._queue = queue
        self._memory = memory
        self._refused = refused
        self._waiting: dict[Lane, list[Outgoing]] = {lane: [] for lane in LANES}
        self._in_flight: dict[str, Outgoing] = {}
        # by conversation, used last at the end; -1 = lost a message
        self._sequences: OrderedDict[str, int] = OrderedDict()
        self._orders = 0
        self._changed = threading.Condition()
        self._closed = False

    def put(self, message: Outgoing, timeout: float = 0.0) -> None:
        """Queue a message; if its lane is full, wait for room.

        Raises
        ------
        PartyUnreachable
            There was no room in time, or the link is closed.
        SecurityError
            An earlier message of the conversation was lost.
        """
        with self._changed:
            until = time.monotonic() + timeout
            if self._sequences.get(message.conversation) == LOST:
                raise SecurityError("earlier_message_lost")
            while not self._has_room(message):
                remaining = until - time.monotonic()
                if self._closed or remaining <= 0:
                    raise PartyUnreachable("link_lane_full", lane=message.lane, waiting=self._depth(message.lane))
                self._changed.wait(min(remaining, 1.0))
            if self._closed:
                self._memory.give(len(message.blob))
                raise PartyUnreachable("link_closed")
            self._orders += 1
            message.order = self._orders
            self._number(message)
            self._waiting[message.lane].append(message)
            self._changed.notify_all()

    def _has_room(self, message: Outgoing) -> bool:
        if self._depth(message.lane) >= self._queue[message.lane]:
            return False
        return self._memory.take(len(message.blob))

    def _depth(self, lane: Lane) -> int:
        return len(self._waiting[lane]) + sum(message.lane == lane for message in self._in_flight.values())

    def next(self, lane: Lane, sending: Collection[str] = ()) -> Outgoing | None:
        """Put the lane's next message in flight and return it; None if there is none. Conversations of `sending` have to wait."""
        late: list[Outgoing] = []
        with self._changed:
            message = self._pick(lane, sending, late)
        self._tell(late, Remark("deadline_passed_waiting"))
        return message

    def _pick(self, lane: Lane, sending: Collection[str], late: list[Outgoing]) -> Outgoing | None:
        now = time.monotonic()
        clock = time.time()
        busy_conversations = set(sending)
        for message in list(self._waiting[lane]):
            if message.deadline <= clock:
                late += self._drop_conversation(message.conversation)
            elif message.conversation in busy_conversations:
                continue
            elif message.not_before > now:
                busy_conversations.add(message.conversation)  # what follows in the conversation waits, too
            elif not late:
                self._waiting[lane].remove(message)
                self._in_flight[message.id] = message
                return message
        return None

    def settle(self, receipt: DeliveryReceipt) -> None:
        """What became of a message in flight: done with, to be sent again, or refused."""
        with self._changed:
            message = self._in_flight.pop(receipt.id, None)
            if message is None:
                return
            if receipt.result == "busy":
                message.not_before = time.monotonic() + receipt.after
                self._put_back([message])
            else:
                self._memory.give(len(message.blob))
            self._changed.notify_all()
        if receipt.result == "refused":
            self._refused(message, unpacked(receipt.why) or Remark("refused_without_reason"), receipt.after)

    def put_back(self) -> None:
        """The link was cut: whatever was in flight is to be delivered again."""
        with self._changed:
            self._put_back(list(self._in_flight.values()))
            self._in_flight.clear()
            self._changed.notify_all()

    def start_again(self) -> tuple[str, ...]:
        """Number the waiting messages from 1 for a new process of the peer, which knows no conversation.

        Return the conversations of which the previous process had taken a message. Their waiting messages are dropped, since the new
        process would misread them.
        """
        with self._changed:
            self._put_back(list(self._in_flight.values()))
            self._in_flight.clear()
            waits = Counter(queued.conversation for queued in self._queued())
            known_to_peer = tuple(name for name, last in self._sequences.items() if last > waits[name])
            for conversation in known_to_peer:
                for message in self._drop_conversation(conversation):
                    self._memory.give(len(message.blob))
            self._sequences.clear()
            for message in sorted(self._queued(), key=lambda queued: queued.order):
                self._number(message)
            self._changed.notify_all()
            return known_to_peer

    def _queued(self) -> list[Outgoing]:
        """Return the messages that wait in any lane."""
        return [message for lane in LANES for message in self._waiting[lane]]

    def _number(self, message: Outgoing) -> None:
        message.sequence = self._sequences.pop(message.conversation, 0) + 1
        self._sequences[message.conversation] = message.sequence
        while len(self._sequences) > MAX_CONVERSATIONS:
            self._sequences.popitem(last=False)

    def _put_back(self, messages: list[Outgoing]) -> None:
        for message in messages:
            self._waiting[message.lane].append(message)
        for lane in LANES:
            self._waiting[lane].sort(key=lambda message: message.order)

    def _drop_conversation(self, conversation: str) -> list[Outgoing]:
        dropped = [queued for queued in self._queued() if queued.conversation == conversation]
        for message in dropped:
            self._waiting[message.lane].remove(message)
        self._sequences[conversation] = LOST
        return dropped

    def _tell(self, dropped: list[Outgoing], why: Remark) -> None:
        for message in dropped:
            self._memory.give(len(message.blob))
        if dropped:
            self._refused(dropped[0], why, 0.0)  # the conversation is over with the first

    def wait(self, timeout: float, unless: Callable[[], bool] = lambda: False) -> None:
        """Until something can be sent or :meth:`wake` is called, at most `timeout` seconds; not at all if `unless`."""
        with self._changed:
            if not unless():
                self._changed.wait(min(timeout, max(0.0, self._due() - time.monotonic())))

    def _due(self) -> float:
        """Return when the next message can be sent: the earliest of the conversations' first messages."""
        firsts = dict[str, float]()
        for message in self._queued():
            firsts.setdefault(message.conversation, message.not_before)
        return min(firsts.values(), default=math.inf)

    def depth(self) -> dict[Lane, int]:
        """Messages without a receipt, by lane."""
        with self._changed:
            return {lane: self._depth(lane) for lane in LANES}

    def oldest(self) -> float | None:
        """Return when the oldest message without a receipt was made, in monotonic seconds; None if every message has its receipt."""
        with self._changed:
            unsettled = [*self._in_flight.values(), *self._queued()]
            return min((message.since for message in unsettled), default=None)

    def wake(self) -> None:
        """Wake whoever waits for something to send."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Take no more messages, and wake the threads that wait."""
        with self._changed:
            self._closed = True
            for message in [*self._in_flight.values(), *self._queued()]:
                self._memory.give(len(message.blob))
            self._in_flight.clear()
            for lane in LANES:
                self._waiting[lane].clear()
            self._changed.notify_all()


def header_of(
    message: Outgoing, protocol: tuple[int, int], agreement: str, sender: str, sha256: str, chunks: int
) -> Header:
    """What stands before the first piece of a message."""
    return Header(
        protocol=protocol,
        agreement=agreement,
        sender=sender,
        receiver=message.receiver,
        conversation=message.conversation,
        sequence=message.sequence,
        id=message.id,
        kind=message.kind,
        chunk=0,
        chunks=chunks,
        length=len(message.blob),
        sha256=sha256,
        deadline=message.deadline,
        lane=message.lane,
    )
