"""Messages of the protocols that Fed-EINI is compared with: they disclose the branches that a record takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.protocols.transport.message import NUMBERS, PEOPLE, WHOLE, Message


@dataclass(frozen=True)
class StartWalk(Message):
    """Guest → Host, comparison only: these samples will walk the trees in the clear."""

    HOLDS: ClassVar[str] = "ids to be scored"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = PEOPLE
    model_id: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class AskWalk(Message):
    """Guest → Host, comparison only: samples at splits of the Host; it decides one split each, or all of its own in a row."""

    HOLDS: ClassVar[str] = "which samples stand at which splits of the Host, in the clear"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = NUMBERS
    one_step: bool
    rows: bytes
    nodes: bytes


@dataclass(frozen=True)
class Walked(Message):
    """Host → Guest, comparison only: the nodes that the samples of an `AskWalk` have reached, in its order."""

    HOLDS: ClassVar[str] = "where the Host's splits lead those samples, in the clear"
    READABLE_BY: ClassVar[str] = "the Guest"
    MAX_BYTES: ClassVar[int] = NUMBERS
    nodes: bytes


@dataclass(frozen=True)
class PassOn(Message):
    """Party → party, comparison only: samples that stand at nodes of the receiver (a leaf is the Guest's), once a round."""

    HOLDS: ClassVar[str] = "which samples stand at which nodes, in the clear"
    READABLE_BY: ClassVar[str] = "the receiving party"
    MAX_BYTES: ClassVar[int] = NUMBERS
    round: int
    rows: bytes
    nodes: bytes


@dataclass(frozen=True)
class AskCandidates(Message):
    """Guest → Host, for comparisons and the joint audit only: send the candidate leaves of these samples."""

    HOLDS: ClassVar[str] = "ids to be scored"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = PEOPLE
    model_id: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class CandidateLeaves(Message):
    """Host → Guest, for comparisons and the joint audit only: a bit per sample, then a bit per sample and leaf (trees in order)."""

    HOLDS: ClassVar[str] = "which of the ids the Host holds; which leaves its own splits leave to each, in the clear"
    READABLE_BY: ClassVar[str] = "the Guest"
    MAX_BYTES: ClassVar[int] = WHOLE
    held: bytes
    leaves: bytes
