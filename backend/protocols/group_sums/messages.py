"""Sums over groups of people, for disparity, proxies and curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.protocols.transport.message import LISTS, WHOLE, Lane, Message


@dataclass(frozen=True)
class GroupPairs(Message):
    """Guest → Host, or Host → Host: encrypted pairs of small numbers a record, to be summed by group
    (backend/protocols/group_sums/guest.py).
    """

    HOLDS: ClassVar[str] = "which joint records count; decisions, labels, scores or groups of each, encrypted"
    READABLE_BY: ClassVar[str] = "rows: the receiving Host; the numbers: only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = WHOLE
    LANE: ClassVar[Lane | None] = Lane.BULK
    rows: bytes
    pairs: tuple[bytes, ...]


@dataclass(frozen=True)
class AskGroupSums(Message):
    """Guest → Host: add up the pairs that `source` sent, by the groups of these features, none smaller than `least` records.

    The Host merges groups smaller than its own minimum in any case.
    """

    HOLDS: ClassVar[str] = "whose pairs are to be summed, by which of the Host's features, in how many groups"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = LISTS
    LANE: ClassVar[Lane | None] = Lane.BULK
    source: str
    features: tuple[str, ...]
    most: int
    least: int = 0


@dataclass(frozen=True)
class GroupSums(Message):
    """Host → Guest: per feature its groups (kind, name, records; small ones merged), and per batch their encrypted sums."""

    HOLDS: ClassVar[str] = "groups of the Host's features and their sizes, small ones merged; sums by group, encrypted"
    READABLE_BY: ClassVar[str] = "groups: the Guest; the sums: only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = WHOLE
    source: str
    features: tuple[str, ...]
    groups: tuple[tuple[tuple[str, str, int], ...], ...]
    sums: tuple[bytes, ...]


@dataclass(frozen=True)
class AskGroupPairs(Message):
    """Guest → Host: encrypt which group of your feature each of these joint records is in, for these Hosts to add up."""

    HOLDS: ClassVar[str] = "which joint records count; one of the Host's features, in how many groups; for which Hosts"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = LISTS
    LANE: ClassVar[Lane | None] = Lane.BULK
    rows: bytes
    feature: str
    most: int
    receivers: tuple[str, ...]


@dataclass(frozen=True)
class GroupPairsSent(Message):
    """Host → Guest: the pairs are with the other Hosts; the groups of the feature (kind, name, records; small ones merged)."""

    HOLDS: ClassVar[str] = "groups of one of the Host's features and their sizes, small ones merged"
    READABLE_BY: ClassVar[str] = "the Guest"
    feature: str
    groups: tuple[tuple[str, str, int], ...]
