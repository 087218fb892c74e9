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
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import msgpack
from sqlalchemy import Table, delete, func, insert, select

from backend.errors import SecurityError, StoreError
from backend.store.accountant import COHORT, GROUPS, SCORE
from backend.store.database import Database
from backend.store.schema import RequestRow

_TABLE = cast(Table, RequestRow.__table__)
RATE = 0.1  # share of the people answered about whose row is kept
KEPT = 1024  # rows that wait for an audit: some 80 MB at 3,072 bits and 100 entries
SUMS = (COHORT, GROUPS)  # kinds of questions about many people at once


@dataclass(frozen=True)
class LoggedRow:
    """One person's decision vector, or terms of reasons, as the Guest sent them; or what a question about sums was about.

    Attributes
    ----------
    day : str
        UTC date.
    kind : str
        ``score``, ``reasons``, or one of :data:`SUMS`.
    subject : str
        The person; empty of sums.
    public_key : bytes
        The modulus, big-endian.
    vector : bytes
        Ciphertexts, entry by entry, as they came; of terms with the shares, features, value_bits and groups that came with them (msgpack);
        empty under RLWE. Of sums what :func:`packed_question` gives.
    request : str
        The Guest's name for the question, empty if it cannot be repeated; of sums by group that of the conversation.
    place : int
        Position of the person in the question.
    dither : int
        Largest number that a Host before this one adds to the score, units.
    records : str
        Version of the records that were answered from; empty if the account knows it.
    """

    number: int
    day: str
    kind: str
    model_id: str
    subject: str
    public_key: bytes = field(repr=False)
    vector: bytes = field(repr=False)
    request: str = ""
    place: int = 0
    dither: int = 0
    records: str = ""


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
    kept : int
        Rows that are kept at most.
    """

    def __init__(self, database: Database, rate: float = RATE, max_rows: int = KEPT) -> None:
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
            rows.append({"subject": subject, "body": body, "place": place, "priority": draw.random()})
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
                sample = select(RequestRow.number).order_by(RequestRow.priority).limit(self._kept)
                session.execute(delete(RequestRow).where(RequestRow.number.not_in(sample)))
        except StoreError as error:
            raise SecurityError("requests_not_stored") from error

    def rows(self, kinds: Sequence[str] = ()) -> list[LoggedRow]:
        """Return the sampled rows of some kinds, or of all, oldest first."""
        query = select(RequestRow).order_by(RequestRow.number)
        if kinds:
            query = query.where(RequestRow.kind.in_(kinds))
        with self._database.read() as session:
            rows = []
            for row in session.scalars(query):
                logged = LoggedRow(
                    row.number,
                    row.day,
                    row.kind,
                    row.model_id,
                    row.subject,
                    row.public_key,
                    row.body,
                    row.request,
                    row.place,
                    row.dither,
                    row.records,
                )
                rows.append(logged)
            return rows

    def about(self, person: str) -> list[tuple[int, str, str, str, int]]:
        """Return number, day, kind, model and bytes of the rows about a person, and of the sums about people with this one among them."""
        size = func.length(RequestRow.body)
        columns = RequestRow.number, RequestRow.day, RequestRow.kind, RequestRow.model_id, size
        with self._database.read() as session:
            rows = session.execute(select(*columns).where(RequestRow.subject == person).order_by(RequestRow.number))
            about = [(number, day, kind, model, size) for number, day, kind, model, size in rows]
        for row in self.rows(SUMS):
            if person in question_of(row)["people"]:
                about.append((row.number, row.day, row.kind, row.model_id, len(row.vector)))
        return about

    def forget(self, numbers: Sequence[int]) -> None:
        """Delete rows that were audited, or whose person is forgotten."""
        with self._database.write() as session:
            session.execute(delete(RequestRow).where(RequestRow.number.in_(list(numbers))))
