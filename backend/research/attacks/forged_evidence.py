"""P3, P4: evidence that its owner recomputes, or washes away. Plays a Guest that has something to hide from an auditor.

P3: the Guest deletes an entry of its audit log, recomputes the chain of hashes and appends two ordinary entries. P4: it sends crafted
vectors, then a flood of vectors about people whom the Host does not know. Witnesses that take any longer log, and a sample of the newest
requests whoever they are about, exist only here.
"""

from __future__ import annotations

import json
import secrets
from collections import deque
from hashlib import sha256

from sqlalchemy import delete

from backend.crypto.signing import SigningKey
from backend.errors import SecurityError
from backend.protocols.audit_head.protocol import keep_head, signed_report
from backend.research.attacks.result import AttackOutcome, count
from backend.store.audit_log import START, AuditLog, Head, link
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.store.request_log import RATE, RequestLog
from backend.store.schema import AuditRow, KeptHead

GUEST = "bank"
ENTRIES = 6
# people: those whose vectors read a Host's choices, and those whom nobody knows
CRAFTED = 60
FLOOD = 3600
RING = 256  # newest requests


def run_log(seed: int, logs: int = 40) -> AttackOutcome:
    """P3: rewrite `logs` audit logs without their witness noticing."""

    def unnoticed(consistent: bool) -> tuple[int, int]:
        return sum(_rewritten(consistent, seed % ENTRIES or 1) for _ in range(logs)), logs

    setting = {"logs": logs, "entries": ENTRIES}
    return AttackOutcome(count(unnoticed, False), count(unnoticed, True), chance=0.0, setting=setting)


def _rewritten(consistent: bool, gone: int) -> bool:
    """Return whether a log without its entry `gone` passes, although the Guest shows its witness the log's head before and after."""
    database = Database()
    key = SigningKey.generate()
    witness = memory_store()
    log = AuditLog(database)
    stored_head = Head(0, START)
    for i in range(ENTRIES):
        log.add("score", {"rows": i, "salt": secrets.token_hex(16)}, "analyst", "analyst")
    keep_head(witness, GUEST, signed_report("c", log.proof(0), key))
    stored_head = log.head()
    _recompute(database, gone)
    for _ in range(2):
        log.add("score", {"salt": secrets.token_hex(16)}, "analyst", "analyst")
    if not consistent:  # a longer log takes the place of the one before
        if log.head().number > stored_head.number:
            newer = log.head()
        else:
            newer = stored_head
        return log.verify({"witness": [KeptHead(newer.number, newer.hash)]}).holds
    try:
        keep_head(witness, GUEST, signed_report("d", log.proof(stored_head.number), key))
    except SecurityError:
        return False
    return log.verify({"witness": witness.audit_heads(GUEST, 1 << 20, 100)}).holds


def _recompute(database: Database, gone: int) -> None:
    """What the owner of a log alone can do: a chain without one entry, which holds."""
    with database.write() as session:
        texts = [row.text for row in session.query(AuditRow).order_by(AuditRow.number)]
        session.execute(delete(AuditRow))
        previous = START
        for number, text in enumerate((t for i, t in enumerate(texts, 1) if i != gone), 1):
            fields = json.loads(text)
            fields[0], fields[6] = number, previous
            text_now = json.dumps(fields, sort_keys=True, ensure_ascii=False)
            previous = link(previous, sha256(text_now.encode()).hexdigest())
            session.add(AuditRow(number=number, text=text_now, hash=previous))


def run_flood(seed: int, rounds: int = 40) -> AttackOutcome:
    """P4: keep the crafted vectors of :data:`CRAFTED` people out of a Host's sample, `rounds` times."""
    del seed  # the Host draws in secret
    crafted = [f"crafted {i}" for i in range(CRAFTED)]
    flood = [f"nobody {i}" for i in range(FLOOD)]
    draw = secrets.SystemRandom()

    def ring() -> bool:
        """Whether the newest rows of whomever hold none that was crafted."""
        newest = deque((i for i in (*crafted, *flood) if draw.random() < RATE), maxlen=RING)
        return not any(i in crafted for i in newest)

    def shipped() -> bool:
        log = RequestLog(Database())
        for people, answered in ((crafted, True), (flood, False)):
            rows = people if answered else []  # nobody without a record is answered about
            log.note("m", rows, b"", [b""] * len(rows))
        return not log.rows()

    def unnoticed(sample: str) -> tuple[int, int]:
        return sum(ring() if sample == "ring" else shipped() for _ in range(rounds)), rounds

    setting = {"people": CRAFTED, "flood": FLOOD, "rounds": rounds}
    return AttackOutcome(count(unnoticed, "ring"), count(unnoticed, "shipped"), chance=0.0, setting=setting)
