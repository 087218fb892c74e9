"""What a conversation is for, and whether the Host agrees."""

from __future__ import annotations

from backend.protocols.transport.message import Message


class StatePurpose(Message):
    """Guest → Host: this conversation measures, and what for; do you agree?"""

    HOLDS = "what is to be measured: one of seven purposes"
    READABLE_BY = "the receiving Host"
    purpose: str


class PurposeAnswered(Message):
    """Host → Guest: whether it agrees to that purpose."""

    HOLDS = "whether the Host agrees to a purpose"
    READABLE_BY = "the Guest"
    purpose: str
    agreed: bool
