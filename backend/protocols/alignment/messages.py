"""Finding the records that all parties hold (docs/alignment.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.protocols.transport.message import LISTS, WHOLE, Lane, Message


@dataclass(frozen=True)
class StartAlignment(Message):
    """Guest → Host: begin to find the records that both hold, without showing the others' ids."""

    HOLDS: ClassVar[str] = "how many records the Guest has; how ids are compared; an offer for oblivious transfer"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    method: str
    records: int
    opening: bytes


@dataclass(frozen=True)
class AlignmentStarted(Message):
    """Host → Guest: how many records it has, and its answer to the opening."""

    HOLDS: ClassVar[str] = "how many records the Host has; its reply to the offer and a salt"
    READABLE_BY: ClassVar[str] = "the Guest"
    records: int
    opening: bytes


@dataclass(frozen=True)
class HiddenIds(Message):
    """Guest → Host: some of its ids, hidden (docs/alignment.md)."""

    HOLDS: ClassVar[str] = "the Guest's ids, blinded, or which filter slots it wants, masked"
    READABLE_BY: ClassVar[str] = "nobody"
    MAX_BYTES: ClassVar[int] = LISTS
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    piece: bytes


@dataclass(frozen=True)
class HiddenAnswer(Message):
    """Host → Guest: what lets the Guest recognise ids that both hold, and no other."""

    HOLDS: ClassVar[str] = "the Guest's ids under the Host's key and keyed hashes of the Host's, or masked filter slots"
    READABLE_BY: ClassVar[str] = "the Guest, for ids that it holds too"
    MAX_BYTES: ClassVar[int] = WHOLE
    answer: bytes


@dataclass(frozen=True)
class JointRecords(Message):
    """Guest → Host: which records of the Host's secret list every party holds (a bitmap)."""

    HOLDS: ClassVar[str] = "which of the Host's records all parties hold"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = LISTS
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    joint: bytes
