"""Sums over groups of people, for disparity, proxies and curves."""

from __future__ import annotations

from backend.protocols.transport.message import GUEST, GUEST_KEY, HOST, LISTS, WHOLE, Lane, Message


class GroupPairs(Message, max_bytes=LISTS, lane=Lane.BULK):
    """Guest → Host, or Host → Host: encrypted pairs of small numbers a record, to be summed by group; of the first records.

    Each half of a pair, and of its sums, has `half` bits (backend/protocols/group_sums/values.py).
    """

    HOLDS = "which joint records count; decisions, labels, scores or groups of each, encrypted"
    READABLE_BY = "rows: the receiving Host; the numbers: only the Guest (its key)"
    rows: bytes
    half: int
    pairs: tuple[bytes, ...]


class MoreGroupPairs(Message, readable_by=GUEST_KEY, max_bytes=LISTS):
    """The next piece of the pairs that the sender's last `GroupPairs` of this conversation began."""

    HOLDS = "more decisions, labels, scores or groups, encrypted"
    pairs: tuple[bytes, ...]


class AskGroupSums(Message, readable_by=HOST, max_bytes=LISTS, lane=Lane.BULK):
    """Guest → Host: add up the pairs that `source` sent, by the groups of these features, none smaller than `least` records.

    Two features are asked about together under both names: ``age × gender``
    (:func:`backend.protocols.group_sums.grouping.features_of`). The Host merges groups smaller than its own minimum in any case. Where
    the Guest's own pairs are none, it only says whether it would answer: no group, no sum, and nothing is counted.
    """

    HOLDS = "whose pairs are to be summed, by which of the Host's features, in how many groups"
    source: str
    features: tuple[str, ...]
    most: int  # groups; of this name on the wire, like `least`
    least: int = 0


class GroupSums(Message, max_bytes=WHOLE):
    """Host → Guest: per feature its groups (kind, name, records; small ones merged), and per batch their encrypted sums."""

    HOLDS = "groups of the Host's features and their sizes, small ones merged; sums by group, encrypted"
    READABLE_BY = "groups: the Guest; the sums: only the Guest (its key)"
    source: str
    features: tuple[str, ...]
    groups: tuple[tuple[tuple[str, str, int], ...], ...]
    sums: tuple[bytes, ...]


class AskGroupPairs(Message, readable_by=HOST, max_bytes=LISTS, lane=Lane.BULK):
    """Guest → Host: encrypt which group of your feature each of these joint records is in, for these Hosts to add up.

    No group is smaller than `least` records, as in :class:`AskGroupSums`.
    """

    HOLDS = "which joint records count; one of the Host's features, in how many groups; for which Hosts"
    rows: bytes
    feature: str
    most: int  # as above
    receivers: tuple[str, ...]
    least: int = 0


class GroupPairsSent(Message, readable_by=GUEST):
    """Host → Guest: the pairs are with the other Hosts; the groups of the feature (kind, name, records; small ones merged)."""

    HOLDS = "groups of one of the Host's features and their sizes, small ones merged"
    feature: str
    groups: tuple[tuple[str, str, int], ...]


class AskDistinct(Message, readable_by=HOST, max_bytes=LISTS, lane=Lane.BULK):
    """Guest → Host: about how many distinct values does one of your features have among these joint records?"""

    HOLDS = "which joint records count; one of the Host's features"
    rows: bytes
    feature: str


class DistinctValues(Message, readable_by=GUEST):
    """Host → Guest: a place on the ladder of :data:`backend.protocols.group_sums.distinct.LADDER`, one byte; no value and no count.

    Also the Host's floor: `least` people in a group.
    """

    HOLDS = "about how many distinct values one of the Host's features has: a place on a ladder of seven; the fewest people in a group"
    feature: str
    place: bytes
    least: int
