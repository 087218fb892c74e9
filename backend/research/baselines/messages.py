"""Messages of the protocols that Fed-EINI is compared with: they disclose the branches that a record takes."""

from __future__ import annotations

from backend.protocols.transport.message import GUEST, HOST, NUMBERS, PEOPLE, WHOLE, Message


class StartWalk(Message, readable_by=HOST, max_bytes=PEOPLE):
    """Guest → Host, comparison only: these samples will walk the trees in the clear."""

    HOLDS = "ids to be scored"
    model_id: str
    ids: tuple[str, ...]


class AskWalk(Message, readable_by=HOST, max_bytes=NUMBERS):
    """Guest → Host, comparison only: samples at splits of the Host; it decides one split each, or all of its own in a row."""

    HOLDS = "which samples stand at which splits of the Host, in the clear"
    one_step: bool
    rows: bytes
    nodes: bytes


class Walked(Message, readable_by=GUEST, max_bytes=NUMBERS):
    """Host → Guest, comparison only: the nodes that the samples of an `AskWalk` have reached, in its order."""

    HOLDS = "where the Host's splits lead those samples, in the clear"
    nodes: bytes


class PassOn(Message, max_bytes=NUMBERS):
    """Party → party, comparison only: samples that stand at nodes of the receiver (a leaf is the Guest's), once a round."""

    HOLDS = "which samples stand at which nodes, in the clear"
    READABLE_BY = "the receiving party"
    round: int
    rows: bytes
    nodes: bytes


class AskCandidates(Message, readable_by=HOST, max_bytes=PEOPLE):
    """Guest → Host, for comparisons and the joint audit only: send the candidate leaves of these samples."""

    HOLDS = "ids to be scored"
    model_id: str
    ids: tuple[str, ...]


class CandidateLeaves(Message, readable_by=GUEST, max_bytes=WHOLE):
    """Host → Guest, for comparisons and the joint audit only: a bit per sample, then a bit per sample and leaf (trees in order)."""

    HOLDS = "which of the ids the Host holds; which leaves its own splits leave to each, in the clear"
    held: bytes
    leaves: bytes
