"""Message → bytes and back: msgpack with the class's schema, checked before anything is believed; never pickle."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

import msgpack
from pydantic import ConfigDict, TypeAdapter, ValidationError

from backend.errors import SecurityError
from backend.protocols.transport.message import MESSAGES, Message

MAX_MESSAGE = 1 << 30  # bytes; gradients of 2**20 rows at 3,072 bits are 0.8 GiB

_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


@cache
def _schema(name: str) -> dict[str, TypeAdapter[Any]]:
    """Field → what it may hold; built at a kind's first message, when its class is complete."""
    hints = get_type_hints(MESSAGES[name])
    return {f.name: TypeAdapter(hints[f.name], config=_STRICT) for f in fields(MESSAGES[name])}


def encode(message: Message) -> bytes:
    """Message → bytes."""
    body = {f.name: getattr(message, f.name) for f in fields(message)}
    packed: bytes = msgpack.packb([type(message).__name__, body], use_bin_type=True)
    return packed


def decode(blob: bytes) -> Message:
    """Bytes → message.

    Raises
    ------
    SecurityError
        The bytes are too long, no message of a known class, or do not fit the class's schema.
    """
    if len(blob) > MAX_MESSAGE:
        raise SecurityError(f"A message of {len(blob):,} bytes came; at most {MAX_MESSAGE:,} are accepted.")
    try:
        name, body = msgpack.unpackb(blob, use_list=False, raw=False, strict_map_key=True)
        schema = _schema(name)
        if not isinstance(body, dict) or set(body) != set(schema):
            raise KeyError(name)
        return MESSAGES[name](**{field: schema[field].validate_python(value) for field, value in body.items()})
    except (ValueError, TypeError, KeyError, msgpack.UnpackException, ValidationError) as error:
        raise SecurityError("A message came that is of no known form; it was refused.") from error
