"""The head of the Guest's audit log, reported to the Hosts: knows a number and a hash, no entry.

A chain of hashes shows every change but one: a cut at its end. So the Guest reports to each Host how many entries there are and the
last one's hash, and whoever checks the log asks the Hosts for it. Hosts that collude with the Guest can hide a cut.
"""

from __future__ import annotations

import re

from backend.errors import SecurityError
from backend.protocols.audit_head.messages import AskAuditHead, AuditHead, KeepAuditHead
from backend.protocols.transport.channel import Session
from backend.store.audit_log import START, Head

MAX_ENTRIES = 1 << 53
EMPTY = Head(0, START)  # of a log without entries
_HASH = re.compile(r"[0-9a-f]{64}")


def report_head(session: Session, head: Head) -> dict[str, Head]:
    """Report to every Host of the conversation where the log stands; returns what each of them keeps now.

    Raises
    ------
    PartyUnreachable, SecurityError
        A Host is down, or refused.
    """
    session.broadcast(KeepAuditHead(session.name, head.number, head.hash))
    return _answers(session)


def ask_heads(session: Session) -> dict[str, Head]:
    """Host → the last head it keeps; number 0 where it keeps none."""
    session.broadcast(AskAuditHead(session.name))
    return _answers(session)


def _answers(session: Session) -> dict[str, Head]:
    answers = session.expect_each(AuditHead, session.hosts)
    return {host: Head(answers[host].number, answers[host].hash) for host in session.hosts}


def newer(kept: Head | None, reported: KeepAuditHead) -> Head:
    """What a Host keeps after a report: never fewer entries, never another hash for the same number.

    Raises
    ------
    SecurityError
        The report is no head.
    """
    if not 1 <= reported.number <= MAX_ENTRIES or not _HASH.fullmatch(reported.hash):
        raise SecurityError("The head of a log was expected: a number from 1 and a SHA-256 hash in hexadecimal.")
    return Head(reported.number, reported.hash) if kept is None or reported.number > kept.number else kept
