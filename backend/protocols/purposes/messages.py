"""What a conversation is for, and whether the Host agrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.protocols.transport.message import Message


@dataclass(frozen=True)
class StatePurpose(Message):
    """Guest → Host: this conversation measures, and what for; do you agree?"""

    HOLDS: ClassVar[str] = "what is to be measured: one of seven purposes"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    purpose: str


@dataclass(frozen=True)
class PurposeAnswered(Message):
    """Host → Guest: whether it agrees to that purpose."""

    HOLDS: ClassVar[str] = "whether the Host agrees to a purpose"
    READABLE_BY: ClassVar[str] = "the Guest"
    purpose: str
    agreed: bool
