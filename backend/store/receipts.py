"""What parties say they sent and took in a conversation, each under its signature. Knows kinds, counts and bytes, no content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import select

from backend.store.database import Database, timestamp
from backend.store.schema import ReceiptRow

Counts = Mapping[str, tuple[int, int]]  # kind → messages, bytes


@dataclass(frozen=True)
class Receipt:
    """One party's account of one conversation with one other.

    Attributes
    ----------
    conversation : str
    party : str
        Whose account it is.
    peer : str
        With whom.
    sent, took : mapping of str to (int, int)
        Kind → messages and bytes.
    created : str
        UTC, ISO 8601: when it was kept.
    public_key, signature : str
        Of `party`, in hexadecimal; empty where it is not signed.
    """

    conversation: str
    party: str
    peer: str
    sent: Counts
    took: Counts
    created: str = ""
    public_key: str = ""
    signature: str = field(default="", repr=False)

    @property
    def body(self) -> str:
        """What it says, canonically."""
        counts = {
            way: {kind: list(of) for kind, of in sorted(by_kind.items())}
            for way, by_kind in (("sent", self.sent), ("took", self.took))
        }
        return json.dumps(counts, sort_keys=True, separators=(",", ":"))

    @property
    def signed_fields(self) -> tuple[str, ...]:
        """What a party signs of it."""
        return self.conversation, self.party, self.peer, self.body


class Receipts:
    """The receipts that one party keeps: its own, and those that others sent."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, receipt: Receipt) -> None:
        """Keep one; of two for one conversation, party and peer the first one stays."""
        with self._database.write() as session:
            key = receipt.conversation, receipt.party, receipt.peer
            if session.get(ReceiptRow, key) is None:
                made = receipt.created or timestamp()
                row = ReceiptRow(conversation=key[0], party=key[1], peer=key[2], created=made, body=receipt.body)
                row.public_key, row.signature = receipt.public_key, receipt.signature
                session.add(row)

    def all(self) -> list[Receipt]:
        """Newest first."""
        order = ReceiptRow.created.desc(), ReceiptRow.conversation, ReceiptRow.party, ReceiptRow.peer
        with self._database.read() as session:
            return [_receipt(row) for row in session.scalars(select(ReceiptRow).order_by(*order))]


def _receipt(row: ReceiptRow) -> Receipt:
    body = json.loads(row.body)
    sent, took = ({kind: (int(n), int(size)) for kind, (n, size) in body[way].items()} for way in ("sent", "took"))
    named = row.conversation, row.party, row.peer
    return Receipt(*named, sent, took, row.created, row.public_key, row.signature)
