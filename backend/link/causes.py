"""Why a link is down or a message was not taken, as codes with values, and how they pass a link as text."""

from __future__ import annotations

import json

from backend.errors import GlassleafError
from backend.remark import Remark, read_plain

MAX_PACKED = 3000  # letters of a remark that passes a link; a receipt has room for 4,096 bytes


def packed(remark: Remark) -> str:
    """Return a remark as ASCII text; one that is too long without its values."""
    text = json.dumps(remark.plain(), ensure_ascii=True, separators=(",", ":"))
    if len(text) <= MAX_PACKED:
        return text
    return packed(Remark("reason_too_long", {"code": remark.code[:64]}))


def unpacked(text: str) -> Remark | None:
    """Return the remark that a peer's :func:`packed` made; None if the text is something else."""
    try:
        return read_plain(json.loads(text))
    except (ValueError, RecursionError):
        return None


def cause_of(error: GlassleafError) -> Remark:
    """Return what an error says; of several problems the first."""
    return error.remarks[0]
