"""What every message is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Message:
    """What every message carries: the conversation it belongs to."""

    HOLDS: ClassVar[str] = ""
    READABLE_BY: ClassVar[str] = ""
    conversation: str
