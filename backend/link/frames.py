"""What passes a link: a message in frames of at most 1 MiB, and between them signs of life and receipts.

A frame says what it is, its sender does not: who sent it is the certificate of the link. What a peer announces is believed only as far as
it has arrived; a frame that does not continue its message is refused.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_type_hints

import msgpack
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from backend.errors import SecurityError
from backend.link.causes import MAX_PACKED
from backend.remark import one_line

PROTOCOL = (1, 0)  # major, minor: neighbours in minor talk to each other (N and N-1)
# bytes; above 4 MiB pieces are what fills a long line (30 MB in 89 instead of 512 ms at 20 ms and 1 Gbit/s)
CHUNK = 1 << 20
MAX_HEADER = 4096  # bytes
MAX_CONTROL = 4096  # bytes
MAX_BEAT = 32  # bytes of a sign of life; a receipt is longer
MAX_FRAME = CHUNK + MAX_HEADER + 3
ENVELOPE = "Envelope"  # kind of what one Host seals for another
ECHO = "Echo"  # kind of bytes that are taken and dropped, to measure a link
# first byte
_MESSAGE = 1
_CONTROL = 2

Lane = Literal["online", "bulk", "training"]
LANES: tuple[Lane, ...] = get_args(Lane)
_Id = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
_Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Name = Annotated[str, StringConstraints(max_length=300), AfterValidator(one_line)]
_Count = Annotated[int, Field(ge=0, lt=1 << 53)]
_Seconds = Annotated[float, Field(ge=0, lt=1e12)]
T = TypeVar("T")


# Not derived from an envelope's address: each link writes its own header, and a relay forwards the address as it was signed.
@dataclass(frozen=True)
class Header:
    """What stands before each piece of a message.

    Attributes
    ----------
    protocol : (int, int)
    agreement : str
        Hash of the agreement under which it is sent.
    sender, receiver : str
        SPIFFE ids; the sender has to be whom the certificate names, so that a mix-up shows.
    sequence : int
        Place among the sender's messages to this peer in the conversation, from 1.
    id : str
        Of the message; the same when it is delivered again.
    kind : str
        Of the message, or :data:`ENVELOPE`.
    chunk, chunks : int
        Which piece, from 0, of how many.
    length : int
        Of the whole message, bytes.
    sha256 : str
        Of the whole message.
    deadline : float
        Seconds since 1970 after which nobody needs an answer any more.
    lane : {"online", "bulk", "training"}
    traceparent : str
        W3C trace context; empty if nobody traces.
    """

    protocol: tuple[_Count, _Count]
    agreement: _Hash
    sender: _Name
    receiver: _Name
    conversation: _Name
    sequence: _Count
    id: _Id
    kind: Annotated[str, StringConstraints(max_length=64), AfterValidator(one_line)]
    chunk: _Count
    chunks: Annotated[int, Field(ge=1, lt=1 << 31)]
    length: _Count
    sha256: _Hash
    deadline: _Seconds
    lane: Lane
    traceparent: Annotated[str, StringConstraints(max_length=64)] = ""


@dataclass(frozen=True)
class DeliveryReceipt:
    """What became of a message: taken, or to be sent again after some seconds, or refused, with a remark that says why, packed."""

    id: _Id
    result: Literal["taken", "busy", "refused"]
    why: Annotated[str, StringConstraints(max_length=MAX_PACKED), AfterValidator(one_line)] = ""
    after: _Seconds = 0.0


@dataclass(frozen=True)
class Beat:
    """A sign of life, the sender's clock in seconds since 1970, and whether it is its last: the sender stops."""

    beat: _Seconds
    leaves: bool = False


def length_in_chunks(length: int) -> int:
    """Frames that a message of `length` bytes takes."""
    return max(1, -(-length // CHUNK))


def pack(header: Header, blob: bytes) -> bytes:
    """One frame: the piece of `blob` that the header names."""
    head: bytes = msgpack.packb(asdict(header), use_bin_type=True)
    if len(head) > MAX_HEADER:
        raise SecurityError("frame_header_too_long", n=len(head), limit=MAX_HEADER)
    piece = blob[header.chunk * CHUNK : (header.chunk + 1) * CHUNK]
    return b"".join((bytes((_MESSAGE,)), len(head).to_bytes(2, "big"), head, piece))


def frames(header: Header, blob: bytes) -> Iterator[bytes]:
    """All frames of a message, one at a time."""
    for chunk in range(header.chunks):
        yield pack(replace(header, chunk=chunk), blob)


def pack_control(control: DeliveryReceipt | Beat) -> bytes:
    """A receipt or a sign of life as a frame."""
    packed: bytes = msgpack.packb(asdict(control), use_bin_type=True)
    return bytes((_CONTROL,)) + packed


def unpack(frame: bytes) -> tuple[Header, bytes] | DeliveryReceipt | Beat:
    """What a frame is: a piece of a message, a receipt or a sign of life.

    Raises
    ------
    SecurityError
        It is none of them, or larger than they are.
    """
    try:
        if not 1 < len(frame) <= MAX_FRAME:
            raise ValueError("length")
        if frame[0] == _CONTROL and len(frame) <= MAX_CONTROL:
            if len(frame) < MAX_BEAT:
                return read_as(Beat, frame[1:])
            return read_as(DeliveryReceipt, frame[1:])
        if frame[0] != _MESSAGE:
            raise ValueError("first byte")
        end = 3 + int.from_bytes(frame[1:3], "big")
        if end - 3 > MAX_HEADER or end > len(frame):
            raise ValueError("header")
        return read_as(Header, frame[3:end]), frame[end:]
    except MALFORMED as error:
        raise SecurityError("not_a_frame") from error


MALFORMED = (ValueError, TypeError, KeyError, msgpack.UnpackException, ValidationError, RecursionError)
"""What :func:`read_as` raises if bytes are not what they should be."""


def read_as(kind: type[T], blob: bytes) -> T:
    """Return a dataclass from msgpack: exactly its fields, each strictly of its type; raises one of :data:`MALFORMED`."""
    fields = msgpack.unpackb(blob, use_list=False, raw=False, strict_map_key=True, max_ext_len=0)
    schema = _schema(cast("Any", kind))
    if not isinstance(fields, dict) or set(fields) != set(schema):
        raise KeyError(kind.__name__)
    return kind(**{name: schema[name].validate_python(value) for name, value in fields.items()})


@cache
def _schema(kind: type[Any]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind, include_extras=True)
    strict = ConfigDict(strict=True, allow_inf_nan=False)
    return {f.name: TypeAdapter(hints[f.name], config=strict) for f in fields(kind)}


class Memory:
    """How many bytes all messages that are under way may take together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Reserve some bytes; False if there is no room."""
        with self._lock:
            if self.used + size > self.limit:
                return False
            self.used += size
            return True

    def force(self, size: int) -> None:
        """Note bytes that are there already."""
        with self._lock:
            self.used += size

    def give(self, size: int) -> None:
        """Give bytes back."""
        with self._lock:
            self.used -= size


class BusyError(Exception):
    """There is no room for more at this moment."""


class Assembly:
    """One message as its pieces come; what it has taken of the memory is its own until :meth:`whole` hands it on."""

    def __init__(self, memory: Memory, limit: int) -> None:
        self._memory = memory
        self._limit = limit
        self._first: Header | None = None
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, header: Header, piece: bytes) -> bool:
        """Take the next piece; True when the message is whole.

        Raises
        ------
        SecurityError
            It does not continue the message, or the message is longer than is accepted.
        BusyError
            There is no room for it.
        """
        if self._first is None:
            if header.length > self._limit:
                raise SecurityError("link_message_too_long", n=header.length, limit=self._limit)
            if header.chunks != length_in_chunks(header.length):
                raise SecurityError("message_pieces_wrong", got=header.chunks, expected=length_in_chunks(header.length))
            self._first = header
        index = len(self._pieces)
        expected = min(CHUNK, header.length - index * CHUNK)
        if header != replace(self._first, chunk=index) or len(piece) != expected:
            raise SecurityError("frame_out_of_order")
        if not self._memory.take(len(piece)):
            raise BusyError
        self._size += len(piece)
        self._pieces.append(piece)
        return len(self._pieces) == header.chunks

    def whole(self) -> tuple[Header, bytes]:
        """The message; whoever takes it gives its length back to the memory.

        Raises
        ------
        SecurityError
            It is not whole, or its hash is another.
        """
        if self._first is None or len(self._pieces) != self._first.chunks:
            raise SecurityError("message_incomplete")
        blob = b"".join(self._pieces)
        if hashlib.sha256(blob).hexdigest() != self._first.sha256:
            raise SecurityError("message_hash_differs")
        self._pieces = []
        self._size = 0
        return self._first, blob

    def drop(self) -> None:
        """Give back what was taken."""
        self._memory.give(self._size)
        self._pieces = []
        self._size = 0
