"""What a conversation is for, and whether the Host agrees."""

from __future__ import annotations

from backend.protocols.transport.message import GUEST, HOST, Message


class StatePurpose(Message, readable_by=HOST):
    """Guest → Host: this conversation measures, and what for; do you agree?"""

    HOLDS = "what is to be measured: which of the purposes that both know"
    purpose: str


class PurposeAnswered(Message, readable_by=GUEST):
    """Host → Guest: whether it agrees to that purpose."""

    HOLDS = "whether the Host agrees to a purpose"
    purpose: str
    agreed: bool
