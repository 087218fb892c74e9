"""Heads of the Guest's audit log, kept at the Hosts."""

from __future__ import annotations

from backend.protocols.transport.message import GUEST, HOST, LISTS, Message


# Not a kept head: the proof belongs to it, and it is kept only once that was checked.
class KeepAuditHead(Message, readable_by=HOST, max_bytes=LISTS):
    """Guest → Host: keep where the Guest's audit log stands, and see that it grew from where it stood; signed by the Guest.

    `hash` follows from `base_hash` and `digests` (:func:`backend.store.audit_log.link`); numbers count entries.
    """

    HOLDS = (
        "how many entries the Guest's audit log has; the last one's hash; of each new entry a digest of its text; "
        "the Guest's public signing key and its signature"
    )
    base_number: int
    base_hash: str
    digests: tuple[str, ...]
    number: int
    hash: str
    public_key: str
    signature: str


class AskAuditHeads(Message, readable_by=HOST):
    """Guest → Host: which heads of the Guest's audit log do you keep? The newest `most` below number `below`."""

    HOLDS = "how many heads are asked for, and below which number"
    below: int
    most: int  # heads; of this name on the wire


class AuditHeads(Message, readable_by=GUEST, max_bytes=LISTS):
    """Host → Guest: heads of the audit log that the Host keeps, newest first: number, hash, public key, signature."""

    HOLDS = "numbers, hashes, public keys and signatures of the Guest's audit log that the Host received"
    heads: tuple[tuple[int, str, str, str], ...]
