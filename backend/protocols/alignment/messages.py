"""Finding the records that all parties hold (docs/alignment.md)."""

from __future__ import annotations

from backend.protocols.transport.message import GUEST, HOST, LISTS, WHOLE, Lane, Message


class StartAlignment(Message, readable_by=HOST, lane=Lane.TRAINING):
    """Guest → Host: begin to find the records that both hold, without showing the others' ids."""

    HOLDS = "how many records the Guest has; how ids are compared; an offer for oblivious transfer"
    method: str
    records: int
    opening: bytes


class AlignmentStarted(Message, readable_by=GUEST):
    """Host → Guest: how many records it has, and its answer to the opening."""

    HOLDS = "how many records the Host has; its reply to the offer and a salt"
    records: int
    opening: bytes


class HiddenIds(Message, max_bytes=LISTS, lane=Lane.TRAINING):
    """Guest → Host: some of its ids, hidden (docs/alignment.md)."""

    HOLDS = "the Guest's ids, blinded, or which filter slots it wants, masked"
    READABLE_BY = "nobody"
    piece: bytes


class HiddenAnswer(Message, max_bytes=WHOLE):
    """Host → Guest: what lets the Guest recognise ids that both hold, and no other."""

    HOLDS = "the Guest's ids under the Host's key and keyed hashes of the Host's, or masked filter slots"
    READABLE_BY = "the Guest, for ids that it holds too"
    answer: bytes


class JointRecords(Message, readable_by=HOST, max_bytes=LISTS, lane=Lane.TRAINING):
    """Guest → Host: which records of the Host's secret list every party holds (a bitmap), and that the Guest knows their ids.

    The proof is :func:`backend.protocols.alignment.ids.knows`.
    """

    HOLDS = "which of the Host's records all parties hold, and a hash of their ids"
    joint: bytes
    proof: bytes
