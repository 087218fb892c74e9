"""Heads of the Guest's audit log, kept at the Hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.protocols.transport.message import LISTS, Message


@dataclass(frozen=True)
class KeepAuditHead(Message):
    """Guest → Host: keep where the Guest's audit log stands, and see that it grew from where it stood; signed by the Guest.

    `hash` follows from `base_hash` and `digests` (:func:`backend.store.audit_log.link`); numbers count entries.
    """

    HOLDS: ClassVar[str] = (
        "how many entries the Guest's audit log has; the last one's hash; of each new entry a digest of its text; "
        "the Guest's public signing key and its signature"
    )
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = LISTS
    base_number: int
    base_hash: str
    digests: tuple[str, ...]
    number: int
    hash: str
    public_key: str
    signature: str


@dataclass(frozen=True)
class AskAuditHeads(Message):
    """Guest → Host: which heads of the Guest's audit log do you keep? The newest `most` below number `below`."""

    HOLDS: ClassVar[str] = "how many heads are asked for, and below which number"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    below: int
    most: int


@dataclass(frozen=True)
class AuditHeads(Message):
    """Host → Guest: heads of the audit log that the Host keeps, newest first: number, hash, public key, signature."""

    HOLDS: ClassVar[str] = "numbers, hashes, public keys and signatures of the Guest's audit log that the Host received"
    READABLE_BY: ClassVar[str] = "the Guest"
    MAX_BYTES: ClassVar[int] = LISTS
    heads: tuple[tuple[int, str, str, str], ...]
