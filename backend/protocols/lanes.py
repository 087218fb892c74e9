"""In which order and how many at once a Host answers: ordered within a conversation, parallel across, and a training blocks no score.

Every kind of work has a lane with worker threads of its own and a bounded queue of conversations that wait. One more is refused and may
come again; a conversation of which a message was refused takes none any more, since what follows would be misread without it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from backend.errors import HostBusy
from backend.protocols.transport.message import GIB, Lane
from backend.protocols.transport.messages import EndConversation
from backend.protocols.transport.wire import Delivery

MAX_CONVERSATIONS = 4096  # conversations of which the lane is remembered between two messages
WAITING_BYTES = 2 * GIB  # of messages of one conversation that wait; a training's gradients are the longest


@dataclass(frozen=True)
class LaneSize:
    """What one lane takes on.

    Attributes
    ----------
    workers : int
        Conversations that are answered at once.
    waiting : int
        Conversations that may wait.
    again : float
        Seconds after which one that was refused may ask again.
    """

    workers: int
    waiting: int
    again: float


SIZES: Mapping[Lane, LaneSize] = {
    Lane.ONLINE: LaneSize(workers=2, waiting=64, again=0.5),
    Lane.BULK: LaneSize(workers=1, waiting=16, again=5.0),
    Lane.TRAINING: LaneSize(workers=1, waiting=4, again=60.0),
}


@dataclass
class _Conversation:
    """What of one conversation waits, in order.

    `lane` is that of its last message, `is_taken` whether it is queued or answered now, `refused` whether one of its messages was refused.
    """

    lane: Lane = Lane.ONLINE
    letters: deque[tuple[Lane, Delivery]] = field(default_factory=deque)
    bytes: int = 0
    is_taken: bool = False
    refused: bool = False

    @property
    def idle(self) -> bool:
        return not self.is_taken and not self.letters


class Lanes:
    """Worker threads that answer deliveries, each by `answer`, which must not raise."""

    def __init__(self, answer: Callable[[Delivery], None], name: str, sizes: Mapping[Lane, LaneSize] = SIZES) -> None:
        self._answer = answer
        self._name = name
        self._sizes = sizes
        self._conversations: OrderedDict[str, _Conversation] = OrderedDict()
        self._waiting: dict[Lane, deque[str]] = {lane: deque() for lane in sizes}
        self._threads: list[threading.Thread] = []
        self._idle = dict.fromkeys(sizes, 0)
        self._changed = threading.Condition()
        self._closed = False

    def put(self, delivery: Delivery) -> None:
        """Queue a message; raises HostBusy if its lane is full, or an earlier message of the conversation was refused."""
        name = delivery.message.conversation
        with self._changed:
            conversation = self._conversations.setdefault(name, _Conversation())
            self._conversations.move_to_end(name)
            lane = delivery.message.lane() or conversation.lane
            self._admit(conversation, lane, delivery)
            conversation.lane = lane
            conversation.letters.append((lane, delivery))
            conversation.bytes += delivery.bytes
            if not conversation.is_taken:
                self._queue(name, conversation)
            self._forget_oldest()

    def _admit(self, conversation: _Conversation, lane: Lane, delivery: Delivery) -> None:
        if isinstance(delivery.message, EndConversation):
            return  # it makes room
        size = self._sizes[lane]
        full = not conversation.is_taken and len(self._waiting[lane]) >= size.waiting
        if full or conversation.refused or conversation.bytes + delivery.bytes > WAITING_BYTES:
            conversation.refused = True
            raise HostBusy("lane_full", size.again, seconds=size.again)

    def _forget_oldest(self) -> None:
        """Forget the conversations that have been idle for longest, if there are too many."""
        over = len(self._conversations) - MAX_CONVERSATIONS
        if over > 0:
            idle = [name for name, conversation in self._conversations.items() if conversation.idle]
        else:
            idle = []
        for name in idle[:over]:
            del self._conversations[name]

    def _queue(self, name: str, conversation: _Conversation) -> None:
        """Have the next message of a conversation answered, in the lane that it belongs to."""
        lane = conversation.letters[0][0]
        conversation.is_taken = True
        self._waiting[lane].append(name)
        if len(self._waiting[lane]) > self._idle[lane] and self._workers(lane) < self._sizes[lane].workers:
            thread = threading.Thread(target=self._work, args=(lane,), name=f"{self._name}-{lane}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._changed.notify_all()

    def _workers(self, lane: Lane) -> int:
        return sum(thread.name == f"{self._name}-{lane}" for thread in self._threads)

    def _work(self, lane: Lane) -> None:
        while True:
            next_item = self._next(lane)
            if next_item is None:
                return
            name, conversation, delivery = next_item
            try:
                self._answer(delivery)
            finally:
                with self._changed:
                    conversation.is_taken = False
                    if conversation.letters and not self._closed:
                        self._queue(name, conversation)
                    elif isinstance(delivery.message, EndConversation):
                        self._conversations.pop(name, None)

    def _next(self, lane: Lane) -> tuple[str, _Conversation, Delivery] | None:
        with self._changed:
            self._idle[lane] += 1
            while not self._waiting[lane] and not self._closed:
                self._changed.wait()
            self._idle[lane] -= 1
            if self._closed:
                return None
            name = self._waiting[lane].popleft()
            conversation = self._conversations[name]
            _, delivery = conversation.letters.popleft()
            conversation.bytes -= delivery.bytes
            return name, conversation, delivery

    def waiting(self, lane: Lane) -> int:
        """Conversations that wait in a lane, for whoever operates the Host."""
        with self._changed:
            return len(self._waiting[lane])

    def close(self) -> None:
        """Answer nothing more; returns once the workers are done with what they have."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
