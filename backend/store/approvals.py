"""What a Guest has asked a Host's operator to allow, what was decided, and how much of it is used. Knows no rule, column or key.

One row a request: who asks (the Guest that the link proves), for which purpose, about what (a hash: of the trees of a model, or of the
terms of a training). The newest row of these three is the one that counts. Deciding and using are one transaction each, so that of
two processes one decides, and a volume is used once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, Final, Literal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.errors import ParameterError, SecurityError
from backend.store.database import Database, column_values, timestamp
from backend.store.schema import ApprovalRow, ApprovalUseRow, QuestionRow

State = Literal["waiting", "granted", "denied", "withdrawn"]
WAITING: Final = "waiting"
GRANTED: Final = "granted"
DENIED: Final = "denied"
WITHDRAWN: Final = "withdrawn"
MAX_WAITING = 100  # requests of one Guest that wait at once, so that none fills the operator's list
MAX_PER_DAY = 10**9


@dataclass(frozen=True)
class Approval:
    """A request and what became of it.

    Attributes
    ----------
    number : int
        At this Host, from 1; 0 = not yet kept.
    subject : str
        What is asked for: SHA-256 in hexadecimal. Stays with the Host.
    name : str
        What the Guest calls it: a model's id, or the way of training.
    about : mapping of str to Any
        Trees, records, bits and, of a training, its terms.
    state : {"waiting", "granted", "denied", "withdrawn"}
    asked, decided : str
        UTC, ISO 8601; `decided` is empty while it waits.
    until : str
        Last UTC day on which a grant counts, ISO 8601.
    per_day : int
        People, or trainings, a UTC day.
    reason : str
        Of a denial or withdrawal; the Guest reads it.
    signature : str
        The Host's over a grant; empty otherwise.
    """

    guest: str
    purpose: str
    subject: str
    name: str
    about: Mapping[str, Any]
    number: int = 0
    state: State = WAITING
    asked: str = ""
    decided: str = ""
    person: str = ""
    until: str = ""
    per_day: int = 0
    reason: str = ""
    signature: str = field(default="", repr=False)

    @property
    def since(self) -> datetime:
        """When it was asked for."""
        return datetime.fromisoformat(self.asked)

    def expired(self, today: date) -> bool:
        """Whether it is a grant whose time is over."""
        return self.state == GRANTED and today > date.fromisoformat(self.until)

    @property
    def signed_fields(self) -> tuple[str | int, ...]:
        """What the Host signs of a grant."""
        fields = self.number, self.guest, self.purpose, self.subject, self.name
        return *fields, self.decided, self.person, self.until, self.per_day


class ApprovalBook:
    """The requests of one Host."""

    def __init__(self, database: Database, today: Callable[[], date] = lambda: datetime.now(UTC).date()) -> None:
        self._database, self.today = database, today

    def all(self) -> list[Approval]:
        """Every request, newest first."""
        with self._database.read() as session:
            rows = session.scalars(select(ApprovalRow).order_by(ApprovalRow.number.desc())).all()
            return [_approval(row) for row in rows]

    def get(self, number: int) -> Approval:
        """One request; raises ParameterError where there is none of that number."""
        with self._database.read() as session:
            return _approval(_row(session, number))

    def waiting(self) -> int:
        """How many requests wait."""
        with self._database.read() as session:
            waits = select(func.count()).select_from(ApprovalRow).where(ApprovalRow.state == WAITING)
            return session.scalar(waits) or 0

    def used(self, number: int) -> int:
        """How much of its volume is used today."""
        with self._database.read() as session:
            row = session.get(ApprovalUseRow, (number, self.today().toordinal()))
            return 0 if row is None else row.used

    def ask(self, wanted: Approval) -> tuple[Approval, bool]:
        """The request that counts for what is wanted, and whether it is new: where there is none, or the grant has expired.

        Raises SecurityError where too many requests of this Guest wait.
        """
        with self._database.write() as session:
            newest = self._newest(session, wanted)
            if newest is not None and not newest.expired(self.today()):
                return newest, False
            of_guest = ApprovalRow.guest == wanted.guest, ApprovalRow.state == WAITING
            waiting = session.scalar(select(func.count()).select_from(ApprovalRow).where(*of_guest)) or 0
            if waiting >= MAX_WAITING:
                raise SecurityError(
                    f"{waiting} requests of yours wait for this Host's operator; no more are taken until some are decided."
                )
            asked = replace(wanted, state=WAITING, asked=timestamp())
            values = {**vars(asked), "body": json.dumps(dict(asked.about), sort_keys=True)}
            row = ApprovalRow(**{name: value for name, value in values.items() if name not in ("about", "number")})
            session.add(row)
            session.flush()
            return _approval(row), True

    @staticmethod
    def _newest(session: Session, wanted: Approval) -> Approval | None:
        same = (
            ApprovalRow.guest == wanted.guest,
            ApprovalRow.purpose == wanted.purpose,
            ApprovalRow.subject == wanted.subject,
        )
        row = session.scalars(select(ApprovalRow).where(*same).order_by(ApprovalRow.number.desc()).limit(1)).first()
        return None if row is None else _approval(row)

    def decide(
        self,
        number: int,
        state: State,
        person: str,
        *,
        until: date | None = None,
        per_day: int = 0,
        reason: str = "",
        sign: Callable[[Approval], str] = lambda grant: "",
    ) -> Approval:
        """Change a request's state; returns it as it is now.

        Raises ParameterError where it is in a state from which that is no step: somebody else may have decided in this moment.
        """
        with self._database.write() as session:
            row = _row(session, number)
            before = _approval(row)
            self._check_step(before, state)
            after = replace(before, state=state, decided=timestamp(), person=person, reason=reason)
            day = "" if until is None else until.isoformat()
            after = replace(after, until=day or before.until, per_day=per_day or before.per_day, signature="")
            after = replace(after, signature=sign(after))
            for name in ("state", "decided", "person", "reason", "until", "per_day", "signature"):
                setattr(row, name, getattr(after, name))
            return after

    def _check_step(self, before: Approval, state: State) -> None:
        was = "expired" if before.expired(self.today()) else before.state
        steps = {GRANTED: (WAITING, DENIED, WITHDRAWN), DENIED: (WAITING,), WITHDRAWN: (GRANTED,)}
        if was not in steps[state]:
            whose = f" by {before.person} at {before.decided[:16]}" if before.person else ""
            raise ParameterError(
                f"Request {before.number} is {was}{whose}, so it cannot become {state}; only one that is {' or '.join(steps[state])} can."
            )

    def used_for(self, purpose: str) -> int:
        """How much of today was used for a purpose, under all grants."""
        with self._database.read() as session:
            return _used_for(session, purpose, self.today().toordinal())

    def use(self, number: int, amount: int, question: tuple[str, str] | None = None, max_per_day: int = 0) -> int:
        """Use some of a grant's volume of today; returns what is left of it, or -1 where there was too little and nothing was used.

        Parameters
        ----------
        max_per_day : int
            What may be used a day for the grant's purpose under all grants together; 0 = not limited.
        question : (str, str), optional
            Guest and request id: one that this Host has counted before uses nothing, nor does one that was about to be counted when the
            Host was killed. Only of a Host that counts.
        """
        with self._database.write() as session:
            row, day = _row(session, number), self.today().toordinal()
            use = _of_day(session, number, day)
            named, what = question is not None and bool(question[1]), f"{number} {amount}"
            known = session.get(QuestionRow, question) if named else None
            if known is not None and (known.asked or known.records == what):
                return max(row.per_day - use.used, 0)
            if use.used + amount > row.per_day or (
                max_per_day and _used_for(session, row.purpose, day) + amount > max_per_day
            ):
                return -1
            use.used += amount
            session.add(use)
            if question is not None and named:
                session.merge(uncounted(*question, day, what))
            return row.per_day - use.used

    def note_refused(self, number: int) -> bool:
        """Note that a question was refused; returns whether it is the first one today."""
        with self._database.write() as session:
            _row(session, number)
            day = self.today().toordinal()
            use = _of_day(session, number, day)
            use.refused += 1
            session.add(use)
            return use.refused == 1


def uncounted(guest: str, request: str, day: int, what: str) -> QuestionRow:
    """A question that has used a volume (`what`: grant and amount), and that is about to be counted."""
    return QuestionRow(guest=guest, request=request, day=day, asked="", records=what, spent=b"", digest="", reply=None)


def _used_for(session: Session, purpose: str, day: int) -> int:
    """How much of a day was used for a purpose, under all grants."""
    of_purpose = select(ApprovalRow.number).where(ApprovalRow.purpose == purpose)
    of_day = ApprovalUseRow.day == day, ApprovalUseRow.number.in_(of_purpose)
    return session.scalar(select(func.sum(ApprovalUseRow.used)).where(*of_day)) or 0


def _of_day(session: Session, number: int, day: int) -> ApprovalUseRow:
    known = session.get(ApprovalUseRow, (number, day))
    return known or ApprovalUseRow(number=number, day=day, used=0, refused=0)


def _row(session: Session, number: int) -> ApprovalRow:
    row = session.get(ApprovalRow, number)
    if row is None:
        raise ParameterError(f"There is no request {number} here; `glassleaf host inbox` lists those that wait.")
    return row


def _approval(row: ApprovalRow) -> Approval:
    values = column_values(row)
    about = json.loads(values.pop("body"))
    return Approval(**values, about=about)
