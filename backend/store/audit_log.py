"""What was done, by whom and when: a hash chain (SHA-256), so that editing, deleting, inserting or truncating entries shows.

An entry's hash covers its text and the hash before it. A truncated log is still a valid chain: truncation shows only against a head that
another party keeps, so the Hosts receive it (:mod:`backend.protocols.audit_head.protocol`). Holds no label, score or value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select

from backend.store.database import Database, timestamp
from backend.store.schema import AuditRow

START = "0" * 64  # the hash before the first entry


@dataclass(frozen=True)
class Entry:
    """One recorded action.

    Attributes
    ----------
    number : int
        From 1, without gaps.
    time : str
        UTC, ISO 8601.
    actor, role : str
        As the dashboard or the shell knows them.
    action : str
        E.g. ``train``, ``score``, ``override``, ``report``, ``key``.
    body : dict
        Hashes, counts, versions, key bits.
    previous, hash : str
        SHA-256 in hexadecimal of the entry before and of this one.
    """

    number: int
    time: str
    actor: str
    role: str
    action: str
    body: dict[str, Any]
    previous: str
    hash: str


@dataclass(frozen=True)
class Head:
    """The last entry's number and hash; number 0 for an empty log."""

    number: int
    hash: str


@dataclass(frozen=True)
class Verdict:
    """What a check of the chain found.

    Attributes
    ----------
    problems : tuple of str
        Empty where the chain is intact and agrees with every witness.
    witnesses : tuple of str
        Parties whose copy of the head was compared; without any, truncation would not show.
    """

    entries: int
    head: Head
    problems: tuple[str, ...]
    witnesses: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


class AuditLog:
    """One party's log, append-only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, action: str, body: dict[str, Any], actor: str, role: str) -> Entry:
        """Append an entry; within a transaction that stores what it tells of, both are kept or neither.

        Raises
        ------
        StoreError
            The log cannot be written.
        """
        with self._database.write() as session:
            head = self.head()
            fields = [head.number + 1, timestamp(), actor, role, action, body, head.hash]
            text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
            session.add(AuditRow(number=head.number + 1, text=text, hash=_hash(text)))
        return _entry(text, _hash(text))

    def head(self) -> Head:
        """The last entry's number and hash."""
        with self._database.read() as session:
            row = session.scalars(select(AuditRow).order_by(AuditRow.number.desc()).limit(1)).first()
        return Head(row.number, row.hash) if row else Head(0, START)

    def entries(self) -> list[Entry]:
        """All entries that can be read, oldest first."""
        return [entry for entry in (_readable(row) for row in self._rows()) if entry is not None]

    def _rows(self) -> Sequence[AuditRow]:
        with self._database.read() as session:
            return session.scalars(select(AuditRow).order_by(AuditRow.number)).all()

    def verify(self, heads: dict[str, Head]) -> Verdict:
        """Check every entry's hash, the chain, and the heads that other parties keep.

        Parameters
        ----------
        heads : dict of str to Head
            Witness → the last head it received.
        """
        rows = self._rows()
        hashes = {row.number: row.hash for row in rows}
        last = Head(rows[-1].number, rows[-1].hash) if rows else Head(0, START)
        problems = [*_chain_problems(rows)]
        for witness, head in heads.items():
            if head.number > last.number:
                problems.append(
                    f"{witness} has seen {head.number} entries, {last.number} are here: the end of the log was cut off."
                )
            elif head.number and hashes.get(head.number) != head.hash:
                problems.append(f"Entry {head.number} is not the one that {witness} has seen: the log was rewritten.")
        return Verdict(len(rows), last, tuple(problems), tuple(heads))

    def export(self) -> str:
        """Every entry as a line of JSON, oldest first."""
        return "".join(json.dumps(asdict(entry), sort_keys=True, ensure_ascii=False) + "\n" for entry in self.entries())


def _chain_problems(rows: Sequence[AuditRow]) -> Iterator[str]:
    previous, expected = START, 1
    for row in rows:
        if row.number != expected:
            yield f"Entry {expected} is missing: the next one here is {row.number}."
        entry = _readable(row)
        if _hash(row.text) != row.hash or entry is None or entry.number != row.number:
            yield f"Entry {row.number} was changed: its text does not have its hash."
        elif entry.previous != previous:
            yield f"Entry {row.number} does not follow the one before it: an entry was changed, deleted or inserted."
        previous, expected = row.hash, row.number + 1


def _readable(row: AuditRow) -> Entry | None:
    try:
        return _entry(row.text, row.hash)
    except (ValueError, TypeError):
        return None


def _entry(text: str, digest: str) -> Entry:
    number, time, actor, role, action, body, previous = json.loads(text)
    return Entry(int(number), str(time), str(actor), str(role), str(action), dict(body), str(previous), digest)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
