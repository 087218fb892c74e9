"""Heads of the Guest's audit log, reported to the Hosts: knows numbers, hashes and signatures, no entry.

A chain of hashes shows every change but two: a cut at its end, and a recomputed chain. So the Guest reports each head to the Hosts with the
digests since the last one; a Host computes the new head from the one that it keeps, refuses one that does not follow from it
(the consistency proof of RFC 6962, for a list), and keeps every head it got. Hosts that collude with the Guest can hide both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from backend.crypto.signing import SigningKey, is_signed
from backend.errors import SecurityError
from backend.protocols.audit_head.messages import AskAuditHeads, AuditHeads, KeepAuditHead
from backend.protocols.transport.channel import Session
from backend.store.audit_log import START, AuditLog, ConsistencyProof, Head
from backend.store.party_store import PartyStore
from backend.store.schema import KeptHead

MAX_ENTRIES = 1 << 53
MAX_DIGESTS = 1 << 13  # a message; 0.5 MiB
MAX_HEADS = 1 << 11  # a message; 0.6 MiB
KIND = "audit head"  # of a signed statement
_HASH = re.compile(r"[0-9a-f]{64}")


# The Guest's side


def report_head(session: Session, host: str, log: AuditLog, key: SigningKey, reported: Head | None) -> Head:
    """Report where the log stands to a Host that confirmed `reported` last (None: ask it); returns what it keeps now.

    Raises
    ------
    PartyUnreachable
        The Host is down, or busy.
    SecurityError
        The Host refused: the log does not follow from what it keeps. Or it keeps more than there is.
    """
    if reported is None:
        session.send(host, AskAuditHeads(session.name, MAX_ENTRIES + 1, 1))
        reported = _newest(_answer(session))
    parts = list(log.proof(reported.number).parts(MAX_DIGESTS))
    for part in parts:
        session.send(host, signed_report(session.name, part, key))
    for _ in parts:
        reported = _newest(_answer(session))
    here = log.head().number
    if reported.number > here:
        raise SecurityError("audit_log_cut_off", host=host, seen=reported.number, here=here)
    return reported


def signed_report(conversation: str, proof: ConsistencyProof, key: SigningKey) -> KeepAuditHead:
    """The message that reports the head at the end of a proof."""
    head = proof.heads()[-1]
    signature = key.sign(KIND, head.number, head.hash)
    return KeepAuditHead(
        conversation, proof.base.number, proof.base.hash, proof.digests, head.number, head.hash, key.public, signature
    )


def ask_heads(session: Session, host: str) -> list[KeptHead]:
    """Every head that a Host keeps, newest first.

    Raises PartyUnreachable or SecurityError if the Host is down or busy, or answered out of order.
    """
    heads: list[KeptHead] = []
    while True:
        below = heads[-1].number if heads else MAX_ENTRIES + 1
        session.send(host, AskAuditHeads(session.name, below, MAX_HEADS))
        page = _answer(session)
        numbers = [below, *(head.number for head in page)]
        if any(later >= earlier for earlier, later in pairwise(numbers)):
            raise SecurityError("audit_heads_unordered", host=host)
        heads += page
        if len(page) < MAX_HEADS:
            return heads


def _answer(session: Session) -> list[KeptHead]:
    return [KeptHead(*head) for head in session.expect(AuditHeads)[1].heads]


def _newest(heads: Sequence[KeptHead]) -> Head:
    if heads:
        return Head(heads[0].number, heads[0].hash)
    return Head(0, START)


# A Host's side


def is_signed_head(public_key: str, head: KeptHead) -> bool:
    """Whether a head was signed with the secret half of `public_key`."""
    return is_signed(public_key, head.signature, KIND, head.number, head.hash)


def kept_heads(store: PartyStore, whose: str, conversation: str, below: int, max_heads: int) -> AuditHeads:
    """What a Host answers when it is asked for heads."""
    heads = store.audit_heads(whose, max(0, min(below, MAX_ENTRIES + 1)), max(1, min(max_heads, MAX_HEADS)))
    return AuditHeads(conversation, tuple((h.number, h.hash, h.public_key, h.signature) for h in heads))


def keep_head(store: PartyStore, whose: str, report: KeepAuditHead) -> None:
    """Check a report against the stored heads of `whose` log, and store its head if it is newer.

    Raises
    ------
    SecurityError
        The report is not a head with its proof, was signed with another key than before, or does not follow from a stored head.
    """
    proved = _proved_heads(report)
    [last] = store.audit_heads(whose, MAX_ENTRIES + 1, 1) or [KeptHead(0, START)]
    if last.public_key not in ("", report.public_key):
        raise SecurityError("audit_key_changed", party=whose, got=report.public_key, expected=last.public_key)
    base = proved[0].number
    if base > last.number:
        raise SecurityError("audit_digests_missing", party=whose, got=base + 1, expected=last.number + 1)
    proved_hashes = {head.number: head.hash for head in proved}
    for head in store.audit_heads(whose, report.number + 1, max(1, report.number - base + 1)):
        if proved_hashes.get(head.number, head.hash) != head.hash:
            raise _fork(whose, head.number)
    if report.number > last.number:
        store.put_audit_head(whose, KeptHead(report.number, report.hash, report.public_key, report.signature))


def _proved_heads(report: KeepAuditHead) -> list[Head]:
    hashes = (report.base_hash, report.hash, *report.digests)
    numbered = 0 <= report.base_number <= report.number <= MAX_ENTRIES and report.number > 0
    if not numbered or not all(map(_HASH.fullmatch, hashes)) or (not report.base_number and report.base_hash != START):
        raise SecurityError("audit_head_malformed")
    if len(report.digests) > MAX_DIGESTS:
        raise SecurityError("audit_digests_too_many", got=len(report.digests), most=MAX_DIGESTS)
    proved = ConsistencyProof(Head(report.base_number, report.base_hash), report.digests).heads()
    if proved[-1] != Head(report.number, report.hash):
        raise SecurityError("audit_head_not_proved")
    if not is_signed(report.public_key, report.signature, KIND, report.number, report.hash):
        raise SecurityError("audit_head_not_signed")
    return proved


def _fork(whose: str, number: int) -> SecurityError:
    return SecurityError("audit_log_rewritten", party=whose, entry=number)
