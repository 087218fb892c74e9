"""One process of a party has its links; others of the same user speak through it, over a Unix socket beside the party's keys.

A question and an answer are a length and a list in msgpack. A message passes as its bytes; what it says is read at either end.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

from backend import __version__, errors
from backend.errors import GlassleafError, PartyUnreachable, SecurityError
from backend.link.causes import cause_of, packed, unpacked
from backend.link.wire import LEAVE, LinkWire
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import EndConversation
from backend.protocols.transport.wire import Delivery, LinkState, Quiet
from backend.remark import Remark

SOCKET = "links.sock"  # beside the lock of whoever has the links
LENGTH = struct.Struct("!Q")
MAX_ADDRESS = 100  # bytes of a Unix socket's path; the least that a system takes is 104


@dataclass
class _Client:
    """Another process: how many lines it has, and whom it has asked in which conversation."""

    lines: int = 0
    conversations: dict[str, set[str]] = field(default_factory=dict)


class SharedLinks:
    """Has a wire answer the party's other processes, until it is closed.

    Parameters
    ----------
    keys : Path
        Folder of the party's keys, whose lock this process holds.
    on_left : callable
        Called with the conversations that another process had open when it ended.
    """

    def __init__(
        self, wire: LinkWire, keys: Path, on_left: Callable[[Collection[str]], None] = lambda conversations: None
    ) -> None:
        self._wire = wire
        self._on_left = on_left
        self._clients: dict[str, _Client] = {}
        self._lines = set[socket.socket]()
        self._lock = threading.Lock()
        self._path = keys / SOCKET
        self._path.unlink(missing_ok=True)  # of a process that was killed
        self._listener = socket.socket(socket.AF_UNIX)
        with _short(self._path) as path:
            self._listener.bind(path)
        self._path.chmod(0o600)  # before anybody can connect
        self._listener.listen(64)
        threading.Thread(target=self._accept, name="links shared", daemon=True).start()

    def close(self) -> None:
        """Let conversations of other processes end for :data:`backend.link.wire.LEAVE` seconds, then answer no more."""
        until = time.monotonic() + LEAVE
        while any(client.conversations for client in list(self._clients.values())) and time.monotonic() < until:
            time.sleep(0.01)
        self._path.unlink(missing_ok=True)
        with self._lock:
            lines = [self._listener, *self._lines]
        for line in lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(line,), name="links shared", daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        """Answer what comes on one line, until the other process closes it."""
        name = ""
        with self._lock:
            self._lines.add(line)
        try:
            name, version = _receive(line)
            if version != __version__:  # after an upgrade both have to start again
                return
            with self._lock:
                client = self._clients.setdefault(name, _Client())
                client.lines += 1
            _send(line, [True, None])
            while True:
                _send(line, self._answered(client, *_receive(line)))
        except (OSError, EOFError, TypeError, ValueError):  # closed, or nothing of ours
            pass
        finally:
            with self._lock:
                self._lines.discard(line)
            line.close()
            self._left(name)

    def _answered(self, client: _Client, what: str, *values: Any) -> list[Any]:
        try:
            return [True, self._done(client, what, *values)]
        except GlassleafError as error:
            return [False, type(error).__name__, packed(cause_of(error))]

    def _done(self, client: _Client, what: str, *values: Any) -> Any:
        """Do for another process what a wire does."""
        if what == "open":
            self._wire.open(*values)
            client.conversations[values[0]] = set()
        elif what == "close":
            self._wire.close(*values)
            client.conversations.pop(values[0], None)
        elif what == "send":
            receiver, blob = values
            message = decode(blob)
            client.conversations.get(message.conversation, set()).add(receiver)
            return self._wire.send(receiver, message)
        elif what == "receive":
            return self._wire.receive_bytes(*values)
        elif what == "is_up":
            return self._wire.is_up(*values)
        elif what == "quiet":
            return list(self._wire.quiet(*values))
        elif what == "links":
            return {party: link.plain() for party, link in self._wire.links().items()}
        else:
            raise ValueError(what)
        return None

    def _left(self, name: str) -> None:
        """Note that a line was closed; if it was a process's last, break off its conversations and tell the Hosts."""
        with self._lock:
            client = self._clients.get(name)
            if client is None:
                return
            client.lines -= 1
            if client.lines:
                return
            del self._clients[name]
        for conversation, hosts in client.conversations.items():
            for host in hosts:
                with contextlib.suppress(PartyUnreachable, SecurityError):
                    self._wire.send(host, EndConversation(conversation, broken_off=True))
            self._wire.close(conversation)
        if client.conversations:
            self._on_left(sorted(client.conversations))


class LinksElsewhere:
    """The links of another process of the party, as a wire.

    Parameters
    ----------
    on_lost : callable
        Called once, in a thread, when that process has ended.

    Raises
    ------
    PartyUnreachable
        No process answers there, or one of another version of Glassleaf.
    """

    def __init__(self, party: str, keys: Path, on_lost: Callable[[], None], version: str = __version__) -> None:
        self.party = party
        self._version = version
        self.lost = threading.Event()
        self._path = keys / SOCKET
        self._name = secrets.token_hex(16)
        self._idle: list[socket.socket] = []
        self._watched = self._connected()
        threading.Thread(target=self._watch, args=(on_lost,), name="links elsewhere", daemon=True).start()

    def open(self, conversation: str = "") -> None:
        """Open a mailbox."""
        self._asked("open", conversation)

    def close(self, conversation: str = "") -> None:
        """Close a mailbox; one that went with the process that had the links is closed."""
        with contextlib.suppress(PartyUnreachable):
            self._asked("close", conversation)

    def send(self, receiver: str, message: Message) -> int:
        """Queue a message; raises as :meth:`backend.link.wire.LinkWire.send`."""
        return int(self._asked("send", receiver, encode(message)))

    def receive(self, conversation: str = "", timeout: float | None = None) -> Delivery | None:
        """Return the next message; raises PartyUnreachable if the process that had the links has ended."""
        delivery = self._asked("receive", conversation, timeout)
        if delivery is None:
            return None
        sender, blob, bytes_on_wire = delivery
        return Delivery(sender, decode(blob), bytes_on_wire)

    def is_up(self, party: str) -> bool:
        """Whether `party` can be reached."""
        return bool(self._asked("is_up", party))

    def quiet(self, party: str) -> Quiet:
        """How long nothing has come from `party`."""
        return Quiet(*self._asked("quiet", party))

    def links(self) -> dict[str, LinkState]:
        """Return each link's state, by peer."""
        return {party: LinkState.read(link) for party, link in self._asked("links").items()}

    def shut_down(self) -> None:
        """Leave the links to the process that has them."""
        self.lost.set()
        for line in (self._watched, *self._idle):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def _watch(self, on_lost: Callable[[], None]) -> None:
        with contextlib.suppress(OSError):
            self._watched.recv(1)
        if not self.lost.is_set():
            self.lost.set()
            on_lost()

    def _connected(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        try:
            with _short(self._path) as path:
                line.connect(path)
            _send(line, [self._name, self._version])
            _receive(line)
        except (OSError, EOFError):
            line.close()
            raise PartyUnreachable("links_not_answered", party=self.party, file=str(self._path)) from None
        return line

    def _asked(self, *question: object) -> Any:
        """Return the other process's answer. A line carries one question at a time; each thread that asks has its own line."""
        try:
            line = self._idle.pop()
        except IndexError:
            line = self._connected()
        try:
            _send(line, list(question))
            is_answer, *answer = _receive(line)
        except (OSError, EOFError):
            line.close()
            raise PartyUnreachable("links_lost", party=self.party) from None
        except BaseException:  # else the next question would read the answer to this one
            line.close()
            raise
        if self.lost.is_set():
            line.close()
        else:
            self._idle.append(line)
        if is_answer:
            return answer[0]
        kind, why = answer
        raise getattr(errors, kind)(problems=[unpacked(why) or Remark("reason_too_long", {"code": kind})])


def _send(line: socket.socket, values: list[Any]) -> None:
    blob = msgpack.packb(values, use_bin_type=True)
    line.sendall(LENGTH.pack(len(blob)))
    line.sendall(blob)


def _receive(line: socket.socket) -> Any:
    """The next list; raises EOFError at the end."""
    (length,) = LENGTH.unpack(_exactly(line, LENGTH.size))
    blob = _exactly(line, length)
    return msgpack.unpackb(blob, use_list=True, max_bin_len=length, max_str_len=length)


def _exactly(line: socket.socket, count: int) -> bytearray:
    received = bytearray()
    while len(received) < count:
        piece = line.recv(min(count - len(received), 1 << 20))
        if not piece:
            raise EOFError
        received += piece
    return received


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """A socket's path, through the folder's descriptor where it is longer than a system takes (Linux)."""
    if len(os.fsencode(path)) <= MAX_ADDRESS or sys.platform != "linux":
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
