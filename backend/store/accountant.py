"""One accountant of answers a Host: what reads records is counted here first, by Guest, person and structure. Knows no column or score.

Every answer about a person under other Guest columns discloses more about the same record (docs/attacks.md, A8), whatever is asked and
whatever the model is called. So answers of a kind are limited twice: for one Guest and one structure, and over all of them, since one
tree more is another structure and Guests could collude.

A question is counted once: who repeats it under its request id, after a crash or a lost reply, gets the same bytes again
(docs/decisions/gate.md). Sums over a cohort are not bound to the terms that they are made of, so they are made once.

An answer is booked under a name: a person's id or pseudonym, :data:`EVERYBODY`, or a crowd. A crowd is many people who were asked about
together; they are written down once, and each further question about them is one row.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, TextualSelect, delete, select, text, update
from sqlalchemy.orm import Session

from backend.data.federation import MAX_QUERIES
from backend.errors import ParameterError, QuestionRefused
from backend.store.database import Database, column_values, execute_many, prepared
from backend.store.party_store import PartyStore
from backend.store.schema import AnswerRow, CrowdRow, QuestionRow, ScoredRecordRow

# per person: a second score identifies the Host's answers about 36 % of people, a first one nobody's (A8, 6 bits)
QUERIES = 1
QUERIES_SYNTHETIC = 1000  # synthetic people need no protection
SCORED_DAYS = 30  # in which reasons are given for a score; the Guest remembers it as long
WINDOW_DAYS = 28  # so that scoring on the same day of every month always fits
VARIABLE = "GLASSLEAF_BUDGET"
# which limit leaves no room for an answer more, by its number: none, answers to one Guest about a structure, all answers, bits; or the
# record has changed since the score that reasons are asked for
LIMITS = ("", "budget", "total", "bits", "changed")
KINDS = ("score", "reasons", "cohort", "groups", "table", "source")
SCORE, REASONS, COHORT, GROUPS, TABLE, SOURCE = KINDS
EVERYBODY = " *"  # stands for all people when a whole table is read; no id begins with a space
CROWD = 100  # people asked about together that are booked under one name
NAMES_A_STATEMENT = 400  # names a statement
REPLY_DAYS = 1  # whole days for which an answer is kept that nobody has acknowledged: as long as the Guest's journal
REPLY_BYTES = 1 << 28  # of one Guest's answers that are kept; beyond it an answer that was lost is computed again

_LAST = """
SELECT MAX(day) AS day FROM answers
WHERE kind = :kind AND guest = :guest AND structure = :structure AND day > :forgotten AND {whom}
"""
_ENTRIES = """
SELECT subject, kind, structure, guest, SUM(asked) AS asked, SUM(bits) AS bits, MAX(capacity) AS capacity
FROM answers WHERE day > :forgotten AND {whom} GROUP BY subject, kind, structure, guest
"""
_MEMBERS = "SELECT subject, crowd FROM crowds WHERE {whom}"
_COLUMNS = {
    _LAST: ("day",),
    _ENTRIES: ("subject", "kind", "structure", "guest", "asked", "bits", "capacity"),
    _MEMBERS: ("subject", "crowd"),
}
_TOLD_BY_DAY = """
SELECT day, person, SUM(CASE WHEN capacity > 0 AND told > capacity THEN capacity ELSE told END) AS told
FROM (
SELECT day, COALESCE(crowds.subject, answers.subject) AS person, structure, SUM(bits) AS told, MAX(capacity) AS capacity
FROM answers LEFT JOIN crowds ON crowds.crowd = answers.subject
WHERE day > :since AND {whom} GROUP BY day, COALESCE(crowds.subject, answers.subject), structure
) AS by_structure GROUP BY day, person
"""
_BY_DAY = text(
    f"SELECT day, COUNT(*) AS people, MAX(told) AS bits FROM ({_TOLD_BY_DAY.format(whom='answers.subject <> :everybody')}) "  # noqa: S608
    "AS by_person GROUP BY day"
)
_OF_ALL_BY_DAY = text(_TOLD_BY_DAY.format(whom="answers.subject = :everybody"))
# made once: to put a statement together takes longer than to execute it
_ALL_ENTRIES = prepared(_ENTRIES.format(whom="subject <> ''"), *_COLUMNS[_ENTRIES])
_ALL_MEMBERS = prepared(_MEMBERS.format(whom="subject <> ''"), *_COLUMNS[_MEMBERS])
_OF_CROWD = "subject IN (SELECT subject FROM crowds WHERE crowd = :crowd)"
_CROWD_ENTRIES = prepared(_ENTRIES.format(whom=_OF_CROWD), *_COLUMNS[_ENTRIES])
_OTHER_CROWDS = prepared(_MEMBERS.format(whom=f"crowd <> :crowd AND {_OF_CROWD}"), *_COLUMNS[_MEMBERS])
_CROWD = prepared("SELECT crowd FROM crowds WHERE crowd = :crowd LIMIT 1", "crowd")
_NOTE_CROWD = text("INSERT INTO crowds (subject, crowd) VALUES (:subject, :crowd)")
_COUNT = text("""
INSERT INTO answers (subject, kind, structure, guest, day, asked, bits, capacity)
VALUES (:subject, :kind, :structure, :guest, :day, :asked, :bits, :capacity)
ON CONFLICT (subject, kind, structure, guest, day)
DO UPDATE SET asked = answers.asked + excluded.asked, bits = answers.bits + excluded.bits
""")
_NOTE_SCORED = text("""
INSERT INTO scored_records (guest, structure, subject, version, day) VALUES (:guest, :structure, :subject, :version, :day)
ON CONFLICT (guest, structure, subject) DO UPDATE SET version = excluded.version, day = excluded.day
""")
_QUESTION = prepared(
    "SELECT day, asked, records, digest, spent, reply, kind, state FROM questions WHERE guest = :guest AND request = :request",
    *("day", "asked", "records", "digest", "spent", "reply", "kind", "state"),
)
_NOTE = text("""
INSERT INTO questions
(guest, request, day, asked, records, digest, spent, kind, structure, people, cost, state, receipt)
VALUES (:guest, :request, :day, :asked, :records, :digest, :spent, :kind, :structure, :people, :cost, 'booked', :receipt)
ON CONFLICT (guest, request) DO UPDATE
SET day = excluded.day, asked = excluded.asked, records = excluded.records, digest = excluded.digest, spent = excluded.spent,
kind = excluded.kind, structure = excluded.structure, people = excluded.people, cost = excluded.cost, state = excluded.state,
receipt = excluded.receipt
""")
_GIVE_BACK = text("DELETE FROM questions WHERE guest = :guest AND request = :request")
_BIND = text("UPDATE questions SET digest = :digest WHERE guest = :guest AND request = :request")
# the second condition is that of an index: a month has millions of questions
_REPLY_BYTES = prepared(
    "SELECT COALESCE(SUM(LENGTH(reply)), 0) AS bytes FROM questions WHERE guest = :guest AND reply IS NOT NULL", "bytes"
)
_KEEP_REPLY = text(
    "UPDATE questions SET reply = :reply, state = 'answered' WHERE guest = :guest AND request = :request"
)
_ACKNOWLEDGE = text(
    "UPDATE questions SET reply = NULL, state = 'acknowledged' WHERE guest = :guest AND request = :request"
)


@dataclass(frozen=True)
class Question:
    """A question of a Guest about some people.

    Attributes
    ----------
    request : str
        The Guest's name for the question, the same when it is repeated; empty = it will not be.
    kind : str
        One of :data:`KINDS`.
    structure : str
        The subject of the question: a hash of trees, or of groups; no name, no salt.
    people : tuple of str
        Those with a record here; one who is listed twice is asked about twice.
    bits : float
        Upper bound of what one answer tells about one person.
    capacity : float
        Upper bound of what all answers about the structure can tell about one person, bits.
    conversation : str
        In which it came; the receipt of that covers it.
    """

    guest: str
    request: str
    kind: str
    structure: str
    people: tuple[str, ...] = field(repr=False)
    bits: float = 0.0
    capacity: float = 0.0
    conversation: str = ""

    @property
    def key(self) -> dict[str, str]:
        """Return whose question under which name, as statements name them."""
        return {"guest": self.guest, "request": self.request}

    @property
    def asked(self) -> str:
        """Return what makes it the same question: SHA-256 in hexadecimal."""
        content = [self.kind, self.structure, *self.people]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


@dataclass(frozen=True)
class Limits:
    """How much a Host answers about a person within `days` whole UTC days; 0 = no limit. Without any, nothing is counted.

    Attributes
    ----------
    answers : int
        Scores, and as often names of reasons, for one Guest and structure. Sums over a group, by which people can be told apart only once,
        are limited to one answer, unless the people are synthetic.
    total : int
        The same over all Guests and structures; by default no more than for one.
    bits : float
        Largest number of bits that all answers together may tell about a person; the next answer counts in full.
    synthetic : bool
        Whether the people are made up and need no protection: a word of the federation, never inferred from a number.

    Raises
    ------
    ParameterError
        A limit is out of range.
    """

    answers: int = QUERIES
    total: int | None = None
    bits: float = 0.0
    days: int = WINDOW_DAYS
    synthetic: bool = False

    def __post_init__(self) -> None:
        for limit in (self.answers, self.total or 0):
            if not 0 <= limit <= MAX_QUERIES:
                raise ParameterError("budget_out_of_range", got=limit, most=MAX_QUERIES)

    @property
    def counted(self) -> bool:
        """Return whether anything is counted: always, unless the people are synthetic and there is no limit."""
        return bool(self.answers or self.total or self.bits) or not self.synthetic

    def of(self, kind: str) -> tuple[int, int]:
        """Answers of a kind for one Guest and structure, and over all."""
        # All records, as in a training: counted, and decided by the Host's operator. Or a value that somebody else is scored with: its
        # owner cannot keep it from being drawn, so that bits alone limit it.
        if kind in (TABLE, SOURCE):
            return MAX_QUERIES, MAX_QUERIES
        answers = self.answers or MAX_QUERIES
        if kind in (COHORT, GROUPS) and not self.synthetic:
            return 1, MAX_QUERIES if kind == GROUPS else 1  # other groups of the same people are other facts
        return answers, answers if self.total is None else self.total or MAX_QUERIES


@dataclass(frozen=True)
class GivenOnDay:
    """The answers of one day, UTC.

    Attributes
    ----------
    people : int
        People who were answered about by name; a training reads the whole table and names no person.
    bits : float
        Upper bound of what that told about any one person.
    """

    day: date
    people: int
    bits: float


@dataclass(frozen=True)
class Answered:
    """Answers about one person on one day, as the account has them.

    Attributes
    ----------
    day : str
        UTC date.
    bits : float
        Upper bound of what they told.
    under : {"id", "pseudonym", "everybody"}
        The person's name in the account.
    """

    kind: str
    structure: str
    guest: str
    day: str
    times: int
    bits: float
    under: str


class Accountant:
    """The account of one Host.

    Parameters
    ----------
    records : str
        Version of the Host's records, e.g. their hash: a question is not answered again about others.
    """

    def __init__(
        self,
        database: Database,
        limits: Limits | None = None,
        records: str = "",
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        self.limits = limits or Limits()
        self._database = database
        self._records = records
        self._today = today
        self._store = PartyStore(database)
        self._acknowledged: set[tuple[str, str]] = set()
        self._swept = 0  # the day on which what is too old was deleted last
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Accountant({self.limits})"

    def count(self, question: Question, *, all_or_none: bool = False, digest: str = "") -> NDArray[np.bool_]:
        """Count a question about everybody in it, unless it is one that was counted before.

        Parameters
        ----------
        all_or_none : bool
            Whether it is answered only if it can be answered about all of them.
        digest : str
            SHA-256 of the question's bytes, if all of them arrived: it is bound to them at once (:meth:`reply_to`).

        Returns
        -------
        ndarray of bool
            ``(people,)``: True = the budget was exhausted before, so there is no answer, and nothing was counted.

        Raises
        ------
        StoreError
            The count cannot be stored, so nothing may be answered.
        QuestionRefused
            The request id stood for another question, or for one about other records.
        """
        spent, _ = self._count(question, all_or_none, digest)
        return spent

    def _count(self, question: Question, all_or_none: bool, digest: str) -> tuple[NDArray[np.bool_], bool]:
        """:meth:`count`; also return whether it was counted before."""
        people = question.people
        if not self.limits.counted or not (people or question.request):
            return np.zeros(len(people), dtype=bool), False
        day = self._today().toordinal()
        with self._database.write() as session:
            self._drop_replies(session)
            if self._swept != day:  # what is too old for an answer became so with the day
                for table in (AnswerRow, QuestionRow):
                    session.execute(delete(table).where(table.day <= self._forgotten()))
                drop_crowds(session)
                drop_replies(session, day)
            earlier_spent = self._known(session, question)
            if earlier_spent is None:
                spent = self._counted(session, question, day, all_or_none, digest)
            else:
                spent = earlier_spent
        self._swept = day
        return spent, earlier_spent is not None

    def _counted(
        self, session: Session, question: Question, day: int, all_or_none: bool, digest: str
    ) -> NDArray[np.bool_]:
        spent = self._reached(session, question) > 0
        granted = Counter(p for p, refused in zip(question.people, spent.tolist(), strict=True) if not refused)
        if all_or_none and spent.any():
            return spent
        self._add(session, question, day, granted)
        # A request without a name cannot be repeated: it gets a name that no Guest can guess.
        row = {
            "guest": question.guest,
            "request": question.request or f"-{secrets.token_hex(16)}",
            "day": day,
            "asked": question.asked,
            "records": self._records,
            "digest": digest,
            "spent": np.packbits(spent).tobytes(),
            "kind": question.kind,
            "structure": question.structure,
            "people": len(question.people),
            "cost": question.bits * sum(granted.values()),
            "receipt": question.conversation,
        }
        session.execute(_NOTE, row)
        return spent

    def count_again(self, question: Question, max_times: int) -> None:
        """Count an answer to a question that is worked out again each time it is asked.

        Raises
        ------
        QuestionRefused
            If it was answered `max_times` times before.
        """
        if not self.limits.counted:
            return
        with self._database.write() as session:
            for number in range(max_times):
                time = replace(question, request=f"{question.request}.time{number}")
                if session.execute(_QUESTION, time.key).first() is None:
                    self.count(time, digest=secrets.token_hex(32))
                    return
        raise QuestionRefused("ranked_too_often", times=max_times)

    def together(self) -> AbstractContextManager[object]:
        """Context in which questions are counted and bound all together, or not at all if an error is raised."""
        return self._database.write()

    def count_bound(self, question: Question, digest: str) -> tuple[NDArray[np.bool_], bytes | None]:
        """:meth:`count` a question all of whose bytes are there, and :meth:`reply_to` them, in one transaction; raises as both."""
        with self._database.write():
            spent, was_counted = self._count(question, all_or_none=False, digest=digest)
            return spent, self.reply_to(question.guest, question.request, digest) if was_counted else None

    def spent(self, question: Question) -> NDArray[np.bool_]:
        """Return about whom a question would not be answered now, ``(people,)``; a counted question keeps its answer. Counts nothing."""
        if self.limits.counted and question.request:
            with self._database.read() as session:
                row = session.execute(_QUESTION, question.key).first()
            if row is not None and (row.asked, row.records) == (question.asked, self._records):
                return _unpacked(row.spent, len(question.people))
        return self.reached(question) > 0

    def note_scored(self, question: Question, versions: Mapping[str, str]) -> None:
        """Store which version of each person's record a score was answered about."""
        day = self._today().toordinal()
        about = {"guest": question.guest, "structure": question.structure, "day": day}
        rows = []
        for person, version in versions.items():
            rows.append({**about, "subject": person, "version": version})
        if rows:
            with self._database.write() as session:
                execute_many(session, _NOTE_SCORED, rows)

    def changed(self, question: Question, versions: Mapping[str, str]) -> NDArray[np.bool_]:
        """Return whose record is not the one that was scored in the last :data:`SCORED_DAYS`, ``(people,)``.

        Nothing is known of who was not scored in this time.
        """
        since = self._today().toordinal() - SCORED_DAYS
        scored = select(ScoredRecordRow.subject, ScoredRecordRow.version).where(
            ScoredRecordRow.guest == question.guest,
            ScoredRecordRow.structure == question.structure,
            ScoredRecordRow.subject.in_(question.people),
            ScoredRecordRow.day >= since,
        )
        with self._database.read() as session:
            version_of = {row.subject: row.version for row in session.execute(scored)}
        return np.array([version_of.get(person, versions[person]) != versions[person] for person in question.people])

    def scored(self, person: str) -> list[tuple[str, str]]:
        """Return Guest and day of each score of a person whose record's version is stored."""
        with self._database.read() as session:
            rows = session.scalars(select(ScoredRecordRow).where(ScoredRecordRow.subject == person)).all()
            return [(row.guest, date.fromordinal(row.day).isoformat()) for row in rows]

    def last_until(self, question: Question) -> date | None:
        """Return the day on which this Guest's last answer about these people and the structure leaves the account; None without one."""
        about = {"kind": question.kind, "guest": question.guest, "structure": question.structure}
        with self._database.read() as session:
            owners = self._owners(question.people)
            names = [*owners, *(row.crowd for row in _rows(session, _MEMBERS, owners)), EVERYBODY]
            rows = _rows(session, _LAST, names, forgotten=self._forgotten(), **about)
            days = [row.day for row in rows if row.day is not None]
        if days:
            return date.fromordinal(max(days) + self.limits.days)
        return None

    def reached(self, question: Question) -> NDArray[np.uint8]:
        """Return which limit leaves no room for an answer more now, ``(people,)``, by its number in :data:`LIMITS`; counts nothing."""
        if not self.limits.counted:
            return np.zeros(len(question.people), dtype=np.uint8)
        with self._database.read() as session:
            return self._reached(session, question)

    def _known(self, session: Session, question: Question) -> NDArray[np.bool_] | None:
        """Return who was refused when the question was asked first; None if it was not."""
        if question.request:
            row = session.execute(_QUESTION, question.key).first()
        else:
            row = None
        if row is None or not row.asked:  # the latter has used an approval's volume and was never counted
            return None
        if row.asked != question.asked:
            raise QuestionRefused("request_id_reused")
        if row.records != self._records and row.reply is None:
            if row.digest:
                raise QuestionRefused("records_changed")
            # no byte of an answer was made: what was counted is given back, and the question is a new one
            spent = _unpacked(row.spent, len(question.people))
            back = Counter(p for p, refused in zip(question.people, spent.tolist(), strict=True) if not refused)
            self._add(session, question, row.day, Counter({p: -times for p, times in back.items()}))
            session.execute(_GIVE_BACK, question.key)
            return None
        return _unpacked(row.spent, len(question.people))

    def _reached(self, session: Session, question: Question) -> NDArray[np.uint8]:
        """Return which limit leaves no room for one answer more about each person."""
        here, everywhere = self.limits.of(question.kind)
        entries = self._entries(session, question.people)
        if question.people != (EVERYBODY,):
            of_all = entries.used(OF_ALL, question)
        else:
            of_all = (0, 0)
        # What tells nothing needs no bits to be left.
        priced = bool(self.limits.bits) and question.bits > 0
        more = _adds(entries, question) if priced else question.bits

        def limit(person: str, names: frozenset[str], n_before: int) -> int:
            times = entries.used(names, question)
            if priced:
                bits_told = self._told(session, entries, person)
            else:
                bits_told = 0.0
            over = (  # as LIMITS
                False,
                times[0] + of_all[0] + n_before >= here,
                times[1] + of_all[1] + n_before >= everywhere,
                priced and bits_told + (n_before + 1) * more > self.limits.bits,
            )
            return over.index(True) if any(over) else 0

        reached = np.zeros(len(question.people), dtype=np.uint8)
        n_asked: Counter[str] = Counter()
        # Most people of a crowd stand under the same names.
        limits: dict[tuple[frozenset[str], int], int] = {}
        for i, person in enumerate(question.people):
            state = entries.names_of(person), n_asked[person]
            if state not in limits:
                limits[state] = limit(person, *state)
            reached[i] = limits[state]
            n_asked[person] += not limits[state]
        return reached

    @staticmethod
    def _add(session: Session, question: Question, day: int, granted: Counter[str]) -> None:
        about: dict[str, object] = {"kind": question.kind, "structure": question.structure, "guest": question.guest}
        about |= {"day": day, "capacity": question.capacity}
        as_often = defaultdict[int, list[str]](list)
        for person, times in granted.items():
            as_often[times].append(person)
        rows = []
        for times, people in as_often.items():
            if len(people) < CROWD:
                names = people
            else:
                names = [_crowd_of(session, people)]
            rows += [{**about, "subject": name, "asked": times, "bits": times * question.bits} for name in names]
        if rows:
            execute_many(session, _COUNT, rows)

    @property
    def records(self) -> str:
        """Return the version of the records that are here now."""
        return self._records

    def is_current(self, guest: str, request: str) -> bool:
        """Return whether a question was booked on the records that are here now; False if it is not known (any more)."""
        with self._database.read() as session:
            row = session.get(QuestionRow, (guest, request))
            return row is not None and row.records == self._records

    def reply_to(self, guest: str, request: str, digest: str) -> bytes | None:
        """Bind a counted question to the bytes it came in; returns the answer it got, if it was asked before.

        Parameters
        ----------
        digest : str
            SHA-256 of everything the Guest sent for it, in hexadecimal.

        Raises
        ------
        QuestionRefused
            The same question came in other bytes before: other numbers could be another question. Or it has one answer alone, which is
            stored no longer.
        """
        if not request or not self.limits.counted:
            return None
        key = {"guest": guest, "request": request}
        with self._database.read() as session:  # most are bound when they are counted, without waiting
            row = session.execute(_QUESTION, key).first()
            if row is not None and row.digest == digest:
                return _reply_of(row)
        with self._database.write() as session:
            row = session.execute(_QUESTION, key).first()
            if row is None:
                raise QuestionRefused("request_not_counted")
            if row.digest and row.digest != digest:
                raise QuestionRefused("request_bytes_changed")
            if not row.digest:
                session.execute(_BIND, {**key, "digest": digest})
            return _reply_of(row)

    def keep_reply(self, guest: str, request: str, reply: bytes) -> bytes:
        """Keep what is about to be sent, until the Guest has it; returns what is to be sent.

        Returns the stored reply if the same question was answered at the same time in another conversation.
        """
        if not request or not self.limits.counted:
            return reply
        key = {"guest": guest, "request": request}
        with self._database.write() as session:
            row = session.execute(_QUESTION, key).first()
            if row is None:
                return reply
            stored = _reply_of(row)
            if stored is not None:
                return stored
            has_room = session.execute(_REPLY_BYTES, {"guest": guest}).scalar_one() + len(reply) <= REPLY_BYTES
            session.execute(_KEEP_REPLY, {**key, "reply": reply if has_room else None})
            return reply

    def acknowledged_soon(self, guest: str, requests: Sequence[str]) -> None:
        """The Guest has the answers: they are dropped with the next question, or by :meth:`settle`. That they were given stays counted."""
        with self._lock:
            self._acknowledged |= {(guest, request) for request in requests}

    def settle(self) -> None:
        """Drop answers that were acknowledged since the last question."""
        if self._acknowledged:
            with self._database.write() as session:
                self._drop_replies(session)

    def _drop_replies(self, session: Session) -> None:
        with self._lock:
            acknowledged = self._acknowledged
            self._acknowledged = set()
        if acknowledged:
            keys = [{"guest": guest, "request": request} for guest, request in acknowledged]
            session.execute(_ACKNOWLEDGE, keys)

    def given_away(self, people: Sequence[str]) -> dict[str, float]:
        """Person → upper bound of what all answers within the window have told about them, bits."""
        with self._database.read() as session:
            entries = self._entries(session, people)
            return {person: self._told(session, entries, person) for person in people}

    def largest_given_away(self) -> tuple[int, float]:
        """People answered about within the window, and the largest bound among them, bits."""
        return self._database.kept(("largest given away", self._forgotten()), self._largest)

    def given_by_day(self, days: int) -> tuple[GivenOnDay, ...]:
        """Return what was answered on each of the last `days` days, oldest first, those without an answer too."""
        today = self._today().toordinal()
        values = {"since": today - days, "everybody": EVERYBODY}
        with self._database.read() as session:
            people = {row.day: row for row in session.execute(_BY_DAY, values)}
            of_all = {row.day: row.told for row in session.execute(_OF_ALL_BY_DAY, values)}
        given_days = []
        for day in range(today - days + 1, today + 1):
            row = people.get(day)
            count = 0 if row is None else int(row.people)
            bits = (0.0 if row is None else float(row.bits)) + float(of_all.get(day, 0.0))
            given_days.append(GivenOnDay(date.fromordinal(day), count, bits))
        return tuple(given_days)

    def _largest(self, session: Session) -> tuple[int, float]:
        members = session.execute(_ALL_MEMBERS).all()
        rows = session.execute(_ALL_ENTRIES, {"forgotten": self._forgotten()}).all()
        crowds = {row.crowd for row in members}
        owners = self._owners({row.subject for row in (*rows, *members)} - crowds - OF_ALL)
        entries = _Entries.of(owners, members, rows)
        largest = max((entries.told(names) for names in set(entries.names.values())), default=0.0)
        return len(entries.names), largest + entries.told(OF_ALL)

    def _told(self, session: Session, entries: _Entries, person: str) -> float:
        """Return what all answers have told about a person, bits; of everybody, who has been told about most decides."""
        if person == EVERYBODY:
            return self._largest(session)[1]
        return entries.told(entries.names_of(person)) + entries.told(OF_ALL)

    def _entries(self, session: Session, people: Collection[str]) -> _Entries:
        """Return what the account has about some people, and about everybody."""
        subjects = set(people) - OF_ALL
        owners = self._owners(subjects)
        if CROWD <= len(subjects) == len(owners):
            crowd = crowd_name(subjects)
        else:
            crowd = ""
        about: dict[str, str | int] = {"crowd": crowd, "forgotten": self._forgotten()}
        if crowd and _is_known(session, crowd):
            # The database has these people: they need not be named in the statement.
            members = session.execute(_OTHER_CROWDS, about).all()
            rows = session.execute(_CROWD_ENTRIES, about).all()
            names = {crowd, EVERYBODY}
        else:
            crowd = ""
            members = _rows(session, _MEMBERS, owners)
            rows = []
            names = {*owners, EVERYBODY}
        names |= {row.crowd for row in members}
        rows = [*rows, *_rows(session, _ENTRIES, names, forgotten=about["forgotten"])]
        if EVERYBODY in people:
            owners[EVERYBODY] = EVERYBODY
        return _Entries.of(owners, members, rows, crowd)

    def _forgotten(self) -> int:
        """Return the last day that is outside the window."""
        return self._today().toordinal() - self.limits.days

    def _owners(self, people: Collection[str]) -> dict[str, str]:
        """Name in the account → who of `people` it stands for: an id, and the pseudonym of the same id once anybody was forgotten."""
        return {person: person for person in people} | self._store.pseudonyms(people)

    def about(self, person: str) -> list[Answered]:
        """Return every answer that counts for a person: under the id, its pseudonym, a crowd's name, or about everybody."""
        owners = self._owners((person,))
        with self._database.read() as session:
            under = {EVERYBODY: "everybody"}
            for row in _rows(session, _MEMBERS, owners):
                if row.subject == person:
                    under[row.crowd] = "id"
                else:
                    under[row.crowd] = "pseudonym"
            under |= {name: "id" if name == person else "pseudonym" for name in owners}
            rows = session.scalars(
                select(AnswerRow).where(AnswerRow.subject.in_(under)).order_by(AnswerRow.day, AnswerRow.kind)
            )
            answers = [(row, date.fromordinal(row.day).isoformat()) for row in rows]
            return [
                Answered(row.kind, row.structure, row.guest, day, row.asked, row.bits, under[row.subject])
                for row, day in answers
            ]

    def questions(self, person: str) -> tuple[list[tuple[str, str]], int]:
        """(Guest, request id) of the questions about this person alone, and how many others there are.

        A question keeps a hash of those it is about. About one person the hash can be made again from the counted answers; about several
        it cannot, without the others' ids.
        """
        alone = set()
        for answer in self.about(person):
            if answer.under != "everybody":
                alone.add(Question("", "", answer.kind, answer.structure, (person,)).asked)
        with self._database.read() as session:
            rows = session.execute(select(QuestionRow.guest, QuestionRow.request, QuestionRow.asked)).all()
        own_questions = [(row.guest, row.request) for row in rows if row.asked in alone]
        return own_questions, len(rows) - len(own_questions)

    def forget(self, person: str) -> tuple[int, int]:
        """Put a pseudonym in place of a person's id, so that what was answered still counts, and delete the questions about them alone.

        Returns
        -------
        counts, questions : int
            Rows that were changed, and deleted.
        """
        with self._database.write() as session:
            questions, _ = self.questions(person)
            for key in questions:
                session.delete(session.get_one(QuestionRow, key))
            session.execute(delete(ScoredRecordRow).where(ScoredRecordRow.subject == person))
            rows = session.scalars(select(AnswerRow).where(AnswerRow.subject == person)).all()
            crowds = session.scalars(select(CrowdRow.crowd).where(CrowdRow.subject == person)).all()
            if not rows and not crowds:
                return 0, len(questions)
            subject = self._store.pseudonym(person)
            session.execute(update(CrowdRow).where(CrowdRow.subject == person).values(subject=subject))
            if rows:
                session.execute(_COUNT, [{**column_values(row), "subject": subject} for row in rows])
                session.execute(delete(AnswerRow).where(AnswerRow.subject == person))
            return len(rows) + len(crowds), len(questions)


OF_ALL = frozenset({EVERYBODY})


@dataclass(frozen=True, repr=False)
class _Entries:
    """The account's entries about some people within the window, read once for all of them.

    Attributes
    ----------
    names : dict of str to frozenset of str
        Person → under which names there are answers; those about everybody count beside them.
    others : frozenset of str
        The same of all other people.
    rows : dict of str to list of Row
        Name → its answers, summed over days.
    """

    names: Mapping[str, frozenset[str]]
    others: frozenset[str]
    rows: Mapping[str, list[Row[Any]]]
    _bits_told: dict[frozenset[str], float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, owners: Mapping[str, str], members: Sequence[Row[Any]], rows: Sequence[Row[Any]], crowd: str = ""
    ) -> _Entries:
        """Sort rows by name.

        Parameters
        ----------
        owners : mapping of str to str
            Name → the person it is of.
        members : sequence of Row
            Members of each crowd.
        crowd : str
            Of all of these people; empty = there is none.
        """
        by_name = defaultdict[str, list[Row[Any]]](list)
        for row in rows:
            by_name[row.subject].append(row)
        others = frozenset({crowd}.intersection(by_name))
        # A person may stand under several names, which count together.
        names = defaultdict[str, set[str]](lambda: set(others))
        for row in members:
            if row.crowd in by_name:
                names[owners[row.subject]].add(row.crowd)
        for name in by_name:
            if name in owners:
                names[owners[name]].add(name)
        return cls({person: frozenset(of_person) for person, of_person in names.items()}, others, by_name)

    def names_of(self, person: str) -> frozenset[str]:
        """Return the names under which there are answers about a person."""
        return self.names.get(person, self.others)

    def used(self, names: frozenset[str], question: Question) -> tuple[int, int]:
        """Return answers of a question's kind under some names: to its Guest about its structure, and all."""
        here = 0
        everywhere = 0
        for name in names:
            for row in self.rows.get(name, ()):
                if row.kind == question.kind:
                    everywhere += row.asked
                    same = row.guest == question.guest and row.structure == question.structure
                    here += row.asked if same else 0
        return here, everywhere

    def told(self, names: frozenset[str]) -> float:
        """Return what answers under some names have told, bits: of each structure at most what all answers about it can tell."""
        if names not in self._bits_told:
            answers: defaultdict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
            for name in names:
                for row in self.rows.get(name, ()):
                    bits, capacity = answers[row.structure]
                    answers[row.structure] = bits + row.bits, max(capacity, row.capacity)
            total = 0.0
            for bits, capacity in answers.values():
                total += min(bits, capacity) if capacity else bits
            self._bits_told[names] = total
        return self._bits_told[names]


def _adds(entries: _Entries, question: Question) -> float:
    """Return how many bits an answer adds to a person's account; a whole table read again in the same way adds none."""
    if question.people != (EVERYBODY,) or not question.capacity:
        return question.bits
    bits_told: float = sum(row.bits for row in entries.rows.get(EVERYBODY, ()) if row.structure == question.structure)
    return max(0.0, min(question.bits, question.capacity - bits_told))


def _crowd_of(session: Session, people: Collection[str]) -> str:
    """Return the name of a crowd, and write down who is one of it, if it is not known."""
    crowd = crowd_name(people)
    if not _is_known(session, crowd):
        execute_many(session, _NOTE_CROWD, [{"subject": person, "crowd": crowd} for person in sorted(people)])
    return crowd


def crowd_name(people: Collection[str]) -> str:
    """Return the name of a crowd: it begins with a space, as no id does."""
    return f" ={hashlib.sha256(json.dumps(sorted(people)).encode()).hexdigest()}"


def _is_known(session: Session, crowd: str) -> bool:
    return session.execute(_CROWD, {"crowd": crowd}).first() is not None


def drop_crowds(session: Session) -> None:
    """Forget who is one of a crowd of which no answer is left."""
    answered = select(AnswerRow).where(AnswerRow.subject == CrowdRow.crowd)
    session.execute(delete(CrowdRow).where(~answered.exists()))


def _reply_of(row: Row[tuple[object, ...]]) -> bytes | None:
    """Return the answer that is stored to a question; raise QuestionRefused if it had its one answer, which is stored no longer."""
    reply: bytes | None = row.reply
    if reply is None and row.kind == COHORT and row.state != "booked":
        raise QuestionRefused("answered_once")
    return reply


def drop_replies(session: Session, day: int) -> None:
    """Delete answers that were not acknowledged by this day; they stay counted as given."""
    old = QuestionRow.day < day - REPLY_DAYS, QuestionRow.reply.is_not(None)
    session.execute(update(QuestionRow).where(*old).values(reply=None))


def _rows(session: Session, statement: str, names: Collection[str], **values: str | int) -> list[Row[Any]]:
    """Return rows about some names, some hundred of them a statement."""
    all_names = list(names)
    out: list[Row[Any]] = []
    for start in range(0, len(all_names), NAMES_A_STATEMENT):
        these = {}
        for i, name in enumerate(all_names[start : start + NAMES_A_STATEMENT]):
            these[f"p{i}"] = name
        out += session.execute(_about(statement, len(these)), {**values, **these})
    return out


@cache
def _about(statement: str, names: int) -> TextualSelect:
    """Return a statement about `n` names: ``p0``, ``p1`` and so on."""
    whom = f"subject IN ({', '.join(f':p{i}' for i in range(names))})"
    return prepared(statement.format(whom=whom), *_COLUMNS[statement])


def _unpacked(bits: bytes, count: int) -> NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=count).astype(bool)


def usual_limit(synthetic: bool) -> int:
    """Return the budget if neither the federation file nor the caller names one: ``GLASSLEAF_BUDGET``, else the default.

    Raises ParameterError if the variable holds no number.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return QUERIES_SYNTHETIC if synthetic else QUERIES
    if not text.isdecimal():
        raise ParameterError("budget_variable", variable=VARIABLE, got=text)
    return int(text)
