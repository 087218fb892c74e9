"""Signed statements of parties about messages sent and received in a conversation. Knows kinds and sizes, no content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import func, select

from backend.store.database import Database, timestamp
from backend.store.schema import QuestionRow, ReceiptRow

Stated = tuple[str, str, str, int, float]  # sender, receiver, kind, bytes, seconds of work before it
Counts = Mapping[str, tuple[int, int]]  # kind → messages, bytes


# Not the mapped row itself: a receipt also travels in a file of receipts, which is read strictly.
@dataclass(frozen=True)
class Receipt:
    """One party's account of one conversation.

    Attributes
    ----------
    party : str
        The party whose account it is.
    peer : str
        The party it was made for: the Guest; empty for the Guest's own.
    created : str
        UTC, ISO 8601: when it was kept.
    public_key, signature : str
        Of `party`, in hexadecimal.
    """

    conversation: str
    party: str
    peer: str
    entries: tuple[Stated, ...]
    created: str = ""
    public_key: str = ""
    signature: str = field(default="", repr=False)

    def sent(self, to: str = "") -> Counts:
        """Return what it sent, to one party or to all."""
        return _counts([entry for entry in self.entries if entry[0] == self.party and to in ("", entry[1])])

    def took(self, of: str = "") -> Counts:
        """Return what it took, of one party or of all."""
        return _counts([entry for entry in self.entries if entry[1] == self.party and of in ("", entry[0])])


def _counts(entries: list[Stated]) -> Counts:
    counts: dict[str, tuple[int, int]] = {}
    for _, _, kind, size, _ in entries:
        messages, total = counts.get(kind, (0, 0))
        counts[kind] = messages + 1, total + size
    return counts


class Receipts:
    """The receipts that one party keeps: its own, and those that others sent."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, receipt: Receipt) -> None:
        """Keep one; of two for one conversation, party and peer the first one stays."""
        with self._database.write() as session:
            key = receipt.conversation, receipt.party, receipt.peer
            if session.get(ReceiptRow, key) is None:
                created = receipt.created or timestamp()
                body = json.dumps(receipt.entries)
                row = ReceiptRow(conversation=key[0], party=key[1], peer=key[2], created=created, body=body)
                row.public_key = receipt.public_key
                row.signature = receipt.signature
                session.add(row)

    def all(self) -> list[Receipt]:
        """Newest first."""
        order = ReceiptRow.created.desc(), ReceiptRow.conversation, ReceiptRow.party, ReceiptRow.peer
        with self._database.read() as session:
            return [_receipt(row) for row in session.scalars(select(ReceiptRow).order_by(*order))]

    def booked(self, party: str) -> dict[str, int]:
        """Return the conversations of which `party` has no receipt: each with its questions that were booked, as it answered them."""
        own_receipt = (ReceiptRow.conversation == QuestionRow.receipt) & (ReceiptRow.party == party)
        counted = select(QuestionRow.receipt, func.count()).outerjoin(ReceiptRow, own_receipt)
        without = ReceiptRow.conversation.is_(None) & (QuestionRow.receipt != "")
        with self._database.read() as session:
            rows = session.execute(counted.where(without).group_by(QuestionRow.receipt)).all()
        return {str(conversation): int(questions) for conversation, questions in rows}


def _receipt(row: ReceiptRow) -> Receipt:
    entries = tuple(
        (str(a), str(b), str(kind), int(size), float(work)) for a, b, kind, size, work in json.loads(row.body)
    )
    key = row.conversation, row.party, row.peer
    return Receipt(*key, entries, row.created, row.public_key, row.signature)
