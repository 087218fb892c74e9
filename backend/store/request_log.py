"""A secret sample of the requests a Host answered, kept for an auditor. The rows are encrypted: the Host itself can read none of them.

Under RLWE many people share a ciphertext, so that of each person in the sample the name of the request and the place in it are kept alone.
A question about sums has one answer about all of its people: every such question is kept, by whom and what it was about.

The Host draws which rows to keep after they have arrived, so no Guest knows which of its requests will be audited
(docs/decisions/evidence.md). Of more rows than there is room for a uniform sample stays, so that no flood of later ones displaces
those that were not audited yet; questions about people who were not answered about are no part of it.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgpack
from sqlalchemy import Table, delete, func, insert, select

from backend.errors import SecurityError, StoreError
from backend.store.accountant import COHORT, GROUPS, SCORE
from backend.store.database import Database
from backend.store.schema import LoggedRow

_TABLE = cast(Table, LoggedRow.__table__)
RATE = 0.1  # share of the people answered about whose row is kept
MAX_LOGGED_ROWS = 1024  # rows that wait for an audit: some 80 MB at 3,072 bits and 100 entries
SUMS = (COHORT, GROUPS)  # kinds of questions about many people at once


def packed_question(people: Sequence[str], **about: Any) -> bytes:
    """Return what a question about sums was about, in few bytes."""
    packed: bytes = msgpack.packb({"people": people, **about})
    return zlib.compress(packed, level=1)


def question_of(row: LoggedRow) -> dict[str, Any]:
    """Inverse of :func:`packed_question`; ``people`` are ids."""
    question: dict[str, Any] = msgpack.unpackb(zlib.decompress(row.vector))
    return question


class RequestLog:
    """The sample of one Host.

    Parameters
    ----------
    rate : float
        Probability with which a row is kept, 0 … 1.
    max_rows : int
        Rows that are kept at most.
    """

    def __init__(self, database: Database, rate: float = RATE, max_rows: int = MAX_LOGGED_ROWS) -> None:
        self._database = database
        self._rate = rate
        self._kept = max_rows

    def note(
        self,
        model_id: str,
        ids: Sequence[str],
        public_key: bytes,
        bodies: Sequence[bytes],
        kind: str = SCORE,
        *,
        request: str = "",
        places: Sequence[int] = (),
        dither: int = 0,
        records: str = "",
    ) -> None:
        """Sample the rows of a request.

        Parameters
        ----------
        places : sequence of int, optional
            Position of each person in the request; by default 0, 1, …

        Raises
        ------
        SecurityError
            If the rows cannot be stored, so that nothing may be answered.
        """
        draw = secrets.SystemRandom()
        day = datetime.now(UTC).date().isoformat()
        rows = []
        for subject, body, place in zip(ids, bodies, places or range(len(ids)), strict=True):
            if kind not in SUMS and draw.random() >= self._rate:
                continue
            rows.append({"subject": subject, "vector": body, "place": place, "priority": draw.random()})
        if not rows:
            return
        of_all = {
            "day": day,
            "kind": kind,
            "model_id": model_id,
            "public_key": public_key,
            "request": request,
            "dither": dither,
            "records": records,
        }
        try:
            with self._database.write() as session:
                session.connection().execute(insert(_TABLE).values(of_all), rows)
                # a uniform sample of all that came: those that drew the largest numbers go
                sample = select(LoggedRow.number).order_by(LoggedRow.priority).limit(self._kept)
                session.execute(delete(LoggedRow).where(LoggedRow.number.not_in(sample)))
        except StoreError as error:
            raise SecurityError("requests_not_stored") from error

    def rows(self, kinds: Sequence[str] = ()) -> list[LoggedRow]:
        """Return the sampled rows of some kinds, or of all, oldest first."""
        query = select(LoggedRow).order_by(LoggedRow.number)
        if kinds:
            query = query.where(LoggedRow.kind.in_(kinds))
        with self._database.read() as session:
            return list(session.scalars(query))

    def about(self, person: str) -> list[tuple[int, str, str, str, int]]:
        """Return number, day, kind, model and bytes of the rows about a person, and of the sums about people with this one among them."""
        size = func.length(LoggedRow.vector)
        columns = LoggedRow.number, LoggedRow.day, LoggedRow.kind, LoggedRow.model_id, size
        with self._database.read() as session:
            rows = session.execute(select(*columns).where(LoggedRow.subject == person).order_by(LoggedRow.number))
            about = [(number, day, kind, model, size) for number, day, kind, model, size in rows]
        for row in self.rows(SUMS):
            if person in question_of(row)["people"]:
                about.append((row.number, row.day, row.kind, row.model_id, len(row.vector)))
        return about

    def forget(self, numbers: Sequence[int]) -> None:
        """Delete rows that were audited, or whose person is forgotten."""
        with self._database.write() as session:
            session.execute(delete(LoggedRow).where(LoggedRow.number.in_(list(numbers))))
