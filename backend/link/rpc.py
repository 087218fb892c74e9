"""gRPC as the link needs it: method names, options, and how a side's frames leave and arrive on an attached stream."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from backend.errors import ParameterError, SecurityError
from backend.link.frames import (
    ECHO,
    LANES,
    MAX_FRAME,
    Assembly,
    Beat,
    BusyError,
    DeliveryReceipt,
    Header,
    Lane,
    pack_control,
    unpack,
)
from backend.link.node import Node
from backend.link.outbox import Outgoing
from backend.link.peers import Peer
from backend.remark import Remark

_log = logging.getLogger("glassleaf")
SERVICE = "glassleaf.Link"
HELLO = f"/{SERVICE}/Hello"
DELIVER = f"/{SERVICE}/Deliver"
ATTACH = f"/{SERVICE}/Attach"
INSTANCE = "glassleaf-instance"  # metadata: which start of the dialling process this call belongs to
AFTER = "glassleaf-after"  # metadata: seconds until a busy lane is tried again
WAIT = 0.25  # seconds between looks at whether the link still holds
MAX_BEGUN = 4  # unfinished messages of a lane, each of another conversation, that a stream carries piece by piece
OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_receive_message_length", MAX_FRAME),
    ("grpc.max_send_message_length", MAX_FRAME),
    ("grpc.max_metadata_size", 8192),
    ("grpc.enable_retries", 0),
)


def require_grpc() -> None:
    """Raise ParameterError, with what to install, where the extra is not there; called before gRPC is imported."""
    for module in ("grpc", "joserfc", "tenacity"):
        if find_spec(module) is None:
            raise ParameterError("link_extra_missing", module=module)
    # it writes addresses to stderr; what matters stands in the link's state
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


class Outflow:
    """One side's frames on an attached stream: messages of all lanes and conversations in turn, receipts, and signs of life."""

    def __init__(self, node: Node, peer: Peer) -> None:
        self._node = node
        self._peer = peer
        self._receipts: list[DeliveryReceipt] = []
        self._ended = threading.Event()
        self._leaves = False
        self._handed = math.inf  # when the frame was handed over that gRPC has not taken yet
        self._lock = threading.Lock()

    @property
    def is_stuck(self) -> bool:
        """Whether the peer has taken nothing of a frame for as long as three signs of life, though it may send its own."""
        return time.monotonic() - self._handed > self._peer.silence_timeout

    def receipt(self, receipt: DeliveryReceipt) -> None:
        """Send a receipt."""
        with self._lock:
            self._receipts.append(receipt)
        self._peer.outbox.wake()

    def end(self, leaves: bool = False) -> None:
        """Send nothing more but, if this side stops, that it does: a stream that ends says nothing, a cut ends it too."""
        self._leaves |= leaves
        with self._lock:  # from here on no message is taken out of the outbox
            self._ended.set()
        self._peer.outbox.wake()

    def frames(self) -> Iterator[bytes]:
        """What is sent, until :meth:`end`."""
        for frame in self._frames():
            self._handed = time.monotonic()
            yield frame
            self._handed = math.inf

    def _frames(self) -> Iterator[bytes]:
        sending: dict[Lane, dict[str, Iterator[bytes]]] = {lane: {} for lane in LANES}
        beat = 0.0
        while not self._ended.is_set():
            if time.monotonic() >= beat:
                yield pack_control(Beat(time.time()))
                beat = time.monotonic() + self._node.settings.options.heartbeat
            yield from map(pack_control, self._due())
            yield from self._pieces(sending)
            if not any(sending.values()):
                self._peer.outbox.wait(min(WAIT, max(0.0, beat - time.monotonic())), unless=self._has_more)
        yield from map(pack_control, self._due())  # what was taken is not to come again
        if self._leaves:
            yield pack_control(Beat(time.time(), leaves=True))

    def _has_more(self) -> bool:
        return bool(self._receipts) or self._ended.is_set()

    def _due(self) -> list[DeliveryReceipt]:
        with self._lock:
            receipts = self._receipts
            self._receipts = []
        return receipts

    def _pieces(self, sending: dict[Lane, dict[str, Iterator[bytes]]]) -> Iterator[bytes]:
        """One frame of each message that is being sent, by lane and conversation: a long one keeps no other conversation waiting."""
        for lane, messages in sending.items():
            while len(messages) < MAX_BEGUN and (message := self._next(lane, messages)) is not None:
                messages[message.conversation] = self._node.outgoing_frames(message)
            for conversation, frames in list(messages.items()):
                frame = next(frames, None)
                if frame is None:
                    del messages[conversation]
                else:
                    yield frame

    def _next(self, lane: Lane, sending: Collection[str]) -> Outgoing | None:
        with self._lock:
            if self._ended.is_set():
                return None
            return self._peer.outbox.next(lane, sending)


class Inflow:
    """What arrives on an attached stream: pieces of messages, :data:`MAX_BEGUN` messages a lane at a time; receipts; signs of life."""

    def __init__(self, node: Node, peer: Peer, answers: Outflow) -> None:
        self._node = node
        self._peer = peer
        self._answers = answers
        self._begun: dict[str, _Begun] = {}  # by the message's id
        self._skipped: OrderedDict[str, None] = (
            OrderedDict()
        )  # ids of messages that have their receipt before their end
        self.left = False  # whether the peer has said that it stops

    def take(self, frame: bytes) -> None:
        """Take one frame; raises SecurityError if it is not a frame, and the stream has to end."""
        self._peer.heard()
        content = unpack(frame)
        if isinstance(content, DeliveryReceipt):
            self._peer.outbox.settle(content)
        elif isinstance(content, Beat):
            self._node.check_clock(self._peer, content.beat)
            self.left |= content.leaves
            self._check_continued()
        else:
            self._piece(*content)

    def _check_continued(self) -> None:
        """Raise SecurityError if the frames of a message have stopped; heartbeats alone do not keep its first part in memory."""
        latest = time.monotonic() - self._node.settings.idle
        if any(unfinished.continued < latest for unfinished in self._begun.values()):
            raise SecurityError("message_stalled")

    def _piece(self, header: Header, piece: bytes) -> None:
        if header.id in self._skipped:
            if header.chunk + 1 == header.chunks:  # it may be sent again
                del self._skipped[header.id]
            return
        self._node.check_header(self._peer, header)
        if header.length > self._node.settings.message and not header.chunk:
            self._skip(header)
            limit = self._node.settings.message
            why = Remark("link_message_too_long", {"n": header.length, "limit": limit})
            self._answers.receipt(self._peer.inbox.refuse(header, why))
            return
        unfinished = self._begun.get(header.id) or self._begin(header)
        unfinished.continued = time.monotonic()
        try:
            is_complete = unfinished.assembly.add(header, piece)
            if is_complete:
                receipt = self._node.accept(self._peer, unfinished.assembly)
            else:
                receipt = None
        except BusyError:
            receipt = DeliveryReceipt(header.id, "busy", after=1.0)
            self._skip(header)
        if receipt is not None:
            self._begun.pop(header.id).assembly.drop()
            self._answers.receipt(receipt)

    def _begin(self, header: Header) -> _Begun:
        """Begin a message with its first frame; raises SecurityError if its lane has too many unfinished messages."""
        in_lane = []
        for unfinished in self._begun.values():
            if unfinished.lane == header.lane:
                in_lane.append(unfinished)
        if len(in_lane) >= MAX_BEGUN:
            raise SecurityError("too_many_begun", lane=header.lane, limit=MAX_BEGUN)
        self._begun[header.id] = _Begun(header.lane, self._node.assembly())
        return self._begun[header.id]

    def _skip(self, header: Header) -> None:
        """Drop the rest of a message."""
        if header.chunk + 1 < header.chunks:
            self._skipped[header.id] = None
            while len(self._skipped) > MAX_BEGUN * len(LANES):
                self._skipped.popitem(last=False)

    def end(self) -> None:
        """Give back the memory of unfinished messages."""
        for unfinished in self._begun.values():
            unfinished.assembly.drop()
        self._begun.clear()


@dataclass
class _Begun:
    """A message that comes in pieces; `continued` is when the last one came (monotonic seconds)."""

    lane: Lane
    assembly: Assembly
    continued: float = 0.0


def delivered(node: Node, peer: Peer, frames: Iterator[bytes], checking: bool = False) -> DeliveryReceipt:
    """Take one message that arrives in frames; if the peer only checks the link, the message is an echo.

    Raises
    ------
    SecurityError
        A frame is damaged, or belongs to another message.
    BusyError
        There is no room now.
    """
    assembly = node.assembly()
    try:
        for frame in frames:
            peer.heard()
            content = unpack(frame)
            if not isinstance(content, tuple):
                raise SecurityError("not_a_message")
            header, piece = content
            node.check_header(peer, header)
            if checking != (header.kind == ECHO):
                raise SecurityError("greet_first")
            if assembly.add(header, piece):
                if checking:
                    return _echo(node, assembly)
                return node.accept(peer, assembly)
        raise SecurityError("message_incomplete")
    finally:
        assembly.drop()


def _echo(node: Node, assembly: Assembly) -> DeliveryReceipt:
    header, blob = assembly.whole()
    node.memory.give(len(blob))
    return DeliveryReceipt(header.id, "taken")
