"""A log of actions, with person and time: a hash chain (SHA-256), so that editing, deleting, inserting or truncating entries shows.

hash_i = SHA-256(hash_{i-1}, digest_i), digest_i = SHA-256(text_i). A party that keeps an earlier head computes the next one from digests
alone, without a text. The text holds the hash before it.

A log that was cut, or rewritten from some entry on, is still a valid chain: that shows against heads which other parties keep, so the
Hosts receive every one (:mod:`backend.protocols.audit_head.protocol`). Holds no label, score or value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy import text as sql_text
from sqlalchemy.orm import Session

from backend.store.database import Database, prepared, timestamp
from backend.store.schema import AuditRow, KeptHead

# made once: to put a statement together takes longer than to execute it
_HEAD = prepared("SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1", "number", "hash")
_ADD = sql_text("INSERT INTO audit (number, text, hash) VALUES (:number, :text, :hash)")
START = "0" * 64  # the hash before the first entry
LINKS = (
    "links"  # action: a process has the party's links from now on; or another one left `broken_off` conversations open
)


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
        The person's name in the dashboard or the shell.
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
class ConsistencyProof:
    """Proof that a log only grew: from `base` and the `digests` of later entries a witness computes the new head (RFC 6962's idea)."""

    base: Head
    digests: tuple[str, ...]

    def heads(self) -> list[Head]:
        """Return the base, and the head after each further entry."""
        chain = [self.base]
        for digest in self.digests:
            chain.append(Head(chain[-1].number + 1, link(chain[-1].hash, digest)))
        return chain

    def parts(self, max_digests: int) -> Iterator[ConsistencyProof]:
        """The same in proofs of at most `max_digests` digests, at least one."""
        heads = self.heads()
        for start in range(0, max(1, len(self.digests)), max_digests):
            yield ConsistencyProof(heads[start], self.digests[start : start + max_digests])


@dataclass(frozen=True)
class Verdict:
    """The result of a check of the chain.

    Attributes
    ----------
    problems : tuple of str
        Empty if the chain is intact and agrees with every witness.
    witnesses : tuple of str
        Parties that keep heads; without any, truncation would not show.
    heads : int
        How many heads of theirs were compared.
    """

    entries: int
    head: Head
    problems: tuple[str, ...]
    witnesses: tuple[str, ...]
    heads: int = 0

    @property
    def holds(self) -> bool:
        """Return whether there is no problem."""
        return not self.problems


class AuditLog:
    """One party's log, append-only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, action: str, body: dict[str, Any], actor: str, role: str) -> Entry:
        """Append an entry; within a transaction that stores the logged change, both are stored or neither.

        Raises StoreError if the log cannot be written.
        """
        with self._database.write() as session:
            head = self.head()
            fields = [head.number + 1, timestamp(), actor, role, action, body, head.hash]
            text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
            digest = link(head.hash, _digest(text))
            session.execute(_ADD, {"number": head.number + 1, "text": text, "hash": digest})
        return _entry(text, digest)

    def head(self) -> Head:
        """Return the last entry's number and hash."""
        with self._database.read() as session:
            row = session.execute(_HEAD).first()
        return Head(row.number, row.hash) if row else Head(0, START)

    def entries(self) -> list[Entry]:
        """Return all entries that can be read, oldest first."""
        return [entry for entry in (_readable(row) for row in self._rows()) if entry is not None]

    def last_time(self, action: str, model_id: str) -> str:
        """When something was last done with a model (UTC, ISO 8601); empty if it never was."""

        def read(session: Session) -> str:
            entries = [entry for row in session.scalars(select(AuditRow)) if (entry := _readable(row)) is not None]
            return max((e.time for e in entries if (e.action, e.body.get("model")) == (action, model_id)), default="")

        return self._database.kept(("last", action, model_id), read)

    def proof(self, from_number: int) -> ConsistencyProof:
        """Return the proof that the log grew from its entry `from_number`."""
        rows = self._rows(from_number)
        return ConsistencyProof(self._head_at(from_number), tuple(_digest(row.text) for row in rows))

    def _head_at(self, number: int) -> Head:
        """Return the head when the log had `number` entries, or as it is if there are fewer."""
        with self._database.read() as session:
            row = session.get(AuditRow, number)
        if row is None:
            # fewer entries, or one is missing
            return min(self.head(), Head(number, START), key=lambda head: head.number)
        return Head(row.number, row.hash)

    def _rows(self, from_number: int = 0) -> Sequence[AuditRow]:
        with self._database.read() as session:
            return session.scalars(
                select(AuditRow).where(AuditRow.number > from_number).order_by(AuditRow.number)
            ).all()

    def verify(
        self, heads_by_witness: Mapping[str, Sequence[KeptHead]], signed: Callable[[KeptHead], bool] = lambda head: True
    ) -> Verdict:
        """Check every entry's hash, the chain, and all heads that other parties keep.

        Parameters
        ----------
        heads_by_witness : mapping of str to sequence of KeptHead
            Witness → every head that it received, newest first.
        signed : callable
            Whether this party signed a head.
        """
        rows = self._rows()
        if rows:
            last = Head(rows[-1].number, rows[-1].hash)
        else:
            last = Head(0, START)
        hashes = {row.number: row.hash for row in rows}
        problems = [*_chain_problems(rows)]
        for witness, heads in heads_by_witness.items():
            problems += _witness_problems(witness, heads, hashes, signed)
        return Verdict(
            len(rows), last, tuple(problems), tuple(heads_by_witness), sum(map(len, heads_by_witness.values()))
        )

    def export(self) -> str:
        """Return every entry as a line of JSON, oldest first."""
        return "".join(json.dumps(asdict(entry), sort_keys=True, ensure_ascii=False) + "\n" for entry in self.entries())


def link(previous: str, digest: str) -> str:
    """Return the hash after one more entry, from the hash before it and the digest of its text; all in hexadecimal."""
    return hashlib.sha256(f"glassleaf audit {previous} {digest}".encode()).hexdigest()


def _chain_problems(rows: Sequence[AuditRow]) -> Iterator[str]:
    previous = START
    expected = 1
    for row in rows:
        if row.number != expected:
            yield f"Entry {expected} is missing: the next one here is {row.number}."
        entry = _readable(row)
        if entry is None or entry.number != row.number or link(entry.previous, _digest(row.text)) != row.hash:
            yield f"Entry {row.number} was changed: its text does not have its hash."
        elif entry.previous != previous:
            yield f"Entry {row.number} does not follow the one before it: an entry was changed, deleted or inserted."
        previous = row.hash
        expected = row.number + 1


def _witness_problems(
    witness: str, heads: Sequence[KeptHead], hashes: Mapping[int, str], signed: Callable[[KeptHead], bool]
) -> Iterator[str]:
    """Where the log first differs from what a witness keeps, how much of it was cut off, and which heads are not this party's."""
    last = max(hashes, default=0)
    if heads and heads[0].number > last:
        yield f"{witness} has seen {heads[0].number} entries, {last} are here: the end of the log was cut off."
    rewritten = [head for head in heads if head.number in hashes and hashes[head.number] != head.hash]
    if rewritten:
        yield (
            f"Entry {rewritten[-1].number} is not the one that {witness} has seen, by {len(rewritten)} of the {len(heads)} heads that it "
            "keeps: the log was rewritten."
        )
    unsigned = [head.number for head in (*heads[:1], *rewritten) if not signed(head)]
    if unsigned:
        yield (
            f"The head of entry {unsigned[0]} that {witness} keeps is not signed with the key that is here: the Host's record was "
            "changed, or the Guest's signing key was. Bring the first key back from a backup."
        )


def _readable(row: AuditRow) -> Entry | None:
    try:
        return _entry(row.text, row.hash)
    except (ValueError, TypeError, RecursionError):
        return None


def _entry(text: str, digest: str) -> Entry:
    number, time, actor, role, action, body, previous = json.loads(text)
    return Entry(int(number), str(time), str(actor), str(role), str(action), dict(body), str(previous), digest)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
