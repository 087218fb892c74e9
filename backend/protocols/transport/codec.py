"""Message → bytes and back: msgpack with the class's schema, checked before anything is believed; never pickle.

What a sender chose is bounded before memory is spent on it: the bytes by the kind's own limit, the values by a count over the bytes.
msgpack reserves room for as many elements as an array announces, so that a few nested announcements would take any amount.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Annotated, Any, get_origin, get_type_hints

import msgpack
from pydantic import ConfigDict, PlainValidator, TypeAdapter, ValidationError

from backend.errors import ParameterError, SecurityError
from backend.i18n import Text
from backend.protocols.transport.message import MESSAGES, WHOLE, Message
from backend.remark import Remark, plain_value, read_plain, read_text

MAX_MESSAGE = WHOLE  # bytes of the longest kind
MAX_VALUES = 1 << 21  # numbers, texts, blobs and lists in a message; a model of 1,000 trees has 1.3 million
MAX_NAME = 64  # bytes of a kind's name with what stands before it

RemarkOnWire = Annotated[Remark, PlainValidator(read_plain)]
"""A field of a message that is a code with values."""
TextOnWire = Annotated[Text, PlainValidator(read_text)]
"""A field of a message, or an item of one, that has two languages."""

_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
# the msgpack specification: first byte → bytes of a value of fixed length, or of the length that follows
_FIXED = {0xC0: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9}  # nil, false, true, float32, float64
_FIXED |= {0xCC + at: size for at, size in enumerate((2, 3, 5, 9) * 2)}  # uint8 … uint64, int8 … int64
_SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_COUNTED = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}  # arrays and maps


@cache
def _schema(name: str) -> dict[str, TypeAdapter[Any]]:
    """Field → what it may hold; built at a kind's first message, when its class is complete."""
    hints = get_type_hints(MESSAGES[name], include_extras=True)
    return {f.name: _adapter(hints[f.name]) for f in fields(MESSAGES[name])}


def _adapter(hint: Any) -> TypeAdapter[Any]:
    """Return what checks a field; an annotated type has a validator of its own, which is strict."""
    if get_origin(hint) is Annotated:
        return TypeAdapter(hint)
    return TypeAdapter(hint, config=_STRICT)


def encode(message: Message) -> bytes:
    """Message → bytes; raises ParameterError if no receiver would take them."""
    body = {f.name: getattr(message, f.name) for f in fields(message)}
    packed: bytes = msgpack.packb([type(message).__name__, body], use_bin_type=True, default=_packable)
    if len(packed) > message.MAX_BYTES:
        raise ParameterError(
            "message_too_long_to_send", kind=type(message).__name__, bytes=len(packed), most=message.MAX_BYTES
        )
    return packed


def decode(blob: bytes) -> Message:
    """Bytes → message.

    Raises SecurityError if the bytes are more than their kind needs, no message of a known class, or do not fit the class's schema.
    """
    try:
        kind = MESSAGES[_name(blob)]
        if len(blob) > kind.MAX_BYTES:
            raise SecurityError("message_too_long", kind=kind.__name__, bytes=len(blob), most=kind.MAX_BYTES)
        _check_values(blob)
        _, body = msgpack.unpackb(blob, use_list=False, raw=False, strict_map_key=True, max_ext_len=0)
        schema = _schema(kind.__name__)
        if not isinstance(body, dict) or set(body) != set(schema):
            raise KeyError(kind.__name__)
        return kind(**{field: schema[field].validate_python(value) for field, value in body.items()})
    except (ValueError, TypeError, KeyError, msgpack.UnpackException, ValidationError) as error:
        raise SecurityError("message_malformed") from error


def _packable(value: object) -> object:
    """Return a remark or a text in two languages as msgpack can hold it."""
    if isinstance(value, (Remark, Text)):
        return plain_value(value)
    raise TypeError(f"{type(value).__name__} is not a type of a message's field")


def _name(blob: bytes) -> str:
    """Of the kind; the rest is not looked at."""
    head = msgpack.Unpacker(raw=False, max_buffer_size=MAX_NAME)
    head.feed(blob[:MAX_NAME])
    if head.read_array_header() != 2:
        raise ValueError("a kind and its fields")
    name: str = head.unpack()
    return name


def _check_values(blob: bytes) -> None:
    """Raise ValueError if there are too many values, or where lists announce more than can follow."""
    at = 0
    values = 0
    announced = 0
    size = len(blob)
    while at < size:
        first = blob[at]
        if first in _SIZED:
            width = _SIZED[first]
            at += 1 + width + int.from_bytes(blob[at + 1 : at + 1 + width], "big")
        elif first in _COUNTED:
            width = _COUNTED[first]
            announced += int.from_bytes(blob[at + 1 : at + 1 + width], "big")
            at += 1 + width
        elif 0xA0 <= first <= 0xBF:
            at += 1 + first - 0xA0
        elif 0x80 <= first <= 0x9F:
            announced += first & 0x0F
            at += 1
        else:
            at += 1 if first < 0x80 or first >= 0xE0 else _FIXED[first]  # KeyError: an extension, or no msgpack
        values += 1
        if values > MAX_VALUES or announced > min(size, MAX_VALUES):
            raise ValueError("too many values")
