"""How a conversation opens and ends, and how a party says no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.protocols.transport.message import Message


@dataclass(frozen=True)
class OfferKey(Message):
    """Guest → Host: the public key of this conversation's ciphertexts."""

    HOLDS: ClassVar[str] = "the Guest's public key and a proof of its form"
    READABLE_BY: ClassVar[str] = "anyone"
    scheme: str
    key: bytes


@dataclass(frozen=True)
class EndConversation(Message):
    """Guest → Host: forget this conversation's key and working data."""

    HOLDS: ClassVar[str] = "nothing"
    READABLE_BY: ClassVar[str] = "the receiving Host"


@dataclass(frozen=True)
class Refusal(Message):
    """Host → Guest: it will not or cannot answer, and why, in words without data."""

    HOLDS: ClassVar[str] = "why a Host did not answer"
    READABLE_BY: ClassVar[str] = "the Guest"
    reason: str
