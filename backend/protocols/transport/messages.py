"""How a conversation opens and ends, how a Host refuses, and of whom it holds a record."""

from __future__ import annotations

from backend.protocols.transport.codec import RemarkOnWire
from backend.protocols.transport.message import GUEST, HOST, LISTS, PEOPLE, Message


class OfferKey(Message, max_bytes=PEOPLE, unreadable="key"):
    """Guest → Host: the public key of this conversation's ciphertexts."""

    HOLDS = "the Guest's public key and a proof of its form"
    READABLE_BY = "anyone"
    scheme: str
    key: bytes


class EndConversation(Message, readable_by=HOST):
    """Guest → Host: forget this conversation's key and working data. `broken_off`: the Guest's process ended before it had ended it."""

    HOLDS = "whether the Guest's process ended in the midst of the conversation"
    broken_off: bool = False


class ConversationReceipt(Message, readable_by=GUEST, max_bytes=LISTS):
    """Host → Guest, at the end of a conversation: what the Host sent and took in it, signed.

    An entry is sender, receiver, kind, bytes and the seconds that the Host worked before it; the signature is Ed25519 over name, Host and
    entries (:mod:`backend.protocols.transport.receipts`).
    """

    HOLDS = "kinds, sizes and working times of the messages that the Host sent and took, signed"
    entries: tuple[tuple[str, str, str, int, float], ...]
    signature: str


class Refusal(Message, readable_by=GUEST):
    """Host → Guest: the Host will not or cannot answer; `why` is a code with values. `final`: asking again does not help.

    `wait` is the number of seconds after which the Guest may ask the same again: the Host has too much to do now or has restarted.
    0 otherwise.
    """

    HOLDS = "why a Host did not answer"
    why: RemarkOnWire
    final: bool = False
    wait: float = 0.0


class ApprovalPending(Message, readable_by=GUEST):
    """Host → Guest: its operator has not decided yet on what was asked; the request's number there, and since when it waits (UTC)."""

    HOLDS = "that a training or a model waits for the Host's operator, under which number and since when"
    number: int
    since: str


class Acknowledge(Message, readable_by=HOST):
    """Guest → Host: the answers to these requests are kept; forget them. That they were given stays counted."""

    HOLDS = "names of requests whose answers have come"
    requests: tuple[str, ...]


class HeldRecords(Message, readable_by=GUEST, max_bytes=LISTS):
    """Host → Guest: which of the ids it holds a record for; the others are scored with its features missing.

    `spent` says of each id which limit of `days` days is reached (empty: none of any), a byte an id: 0 none; 1 `budget` answers about a
    person and model; 2 `total` answers about a person, all models and Guests taken together; 3 `bits` that all answers may tell of one.
    `masks`, where names of reasons are asked for and another Host follows, are two random bits a person and feature of the Host; under them
    it passes on on which side of its medians a person is (:class:`backend.protocols.explanations.messages.ReasonTerms`).
    """

    HOLDS = (
        "which of the ids the Host holds; about which of them which limit is reached, and how large the limits are; "
        "for reasons, random bits"
    )
    held: bytes
    spent: bytes = b""
    budget: int = 0
    total: int = 0
    bits: float = 0.0
    days: int = 0
    masks: bytes = b""
