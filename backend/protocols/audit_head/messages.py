"""The head of the Guest's audit log, kept at the Hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.protocols.transport.message import Message


@dataclass(frozen=True)
class KeepAuditHead(Message):
    """Guest → Host: keep where the Guest's audit log stands, so that a later cut at its end shows."""

    HOLDS: ClassVar[str] = "how many entries the Guest's audit log has; the last one's hash"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    number: int
    hash: str


@dataclass(frozen=True)
class AskAuditHead(Message):
    """Guest → Host: which head of the Guest's audit log do you keep?"""

    HOLDS: ClassVar[str] = "nothing"
    READABLE_BY: ClassVar[str] = "the receiving Host"


@dataclass(frozen=True)
class AuditHead(Message):
    """Host → Guest: the head of the audit log that the Host keeps (number 0: none was reported)."""

    HOLDS: ClassVar[str] = "the number and hash of the Guest's audit log that the Host received last"
    READABLE_BY: ClassVar[str] = "the Guest"
    number: int
    hash: str
