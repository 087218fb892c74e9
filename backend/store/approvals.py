"""Requests of a Guest to a Host's operator, the decisions, and how much of each grant is used. Knows no rule, column or key.

One row a request: who asks (the Guest that the link proves), for which purpose, about what (a hash: of the trees of a model, or of the
terms of a training). The newest row of these three is the one that counts. Deciding and using are one transaction each, so that of
two processes one decides, and a volume is used once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Final

from sqlalchemy import bindparam, func, select, text
from sqlalchemy.orm import Session

from backend.errors import ParameterError, SecurityError
from backend.store.database import Database, prepared, timestamp
from backend.store.schema import Approval, ApprovalState, ApprovalUseRow

__all__ = ["DENIED", "GRANTED", "MAX_PER_DAY", "MAX_WAITING", "WAITING", "WITHDRAWN", "Approval", "ApprovalBook"]
WAITING: Final = "waiting"
GRANTED: Final = "granted"
DENIED: Final = "denied"
WITHDRAWN: Final = "withdrawn"
# state → states from which an operator can take a request there
STEPS: dict[ApprovalState, tuple[ApprovalState, ...]] = {
    GRANTED: (WAITING, DENIED, WITHDRAWN),
    DENIED: (WAITING,),
    WITHDRAWN: (GRANTED,),
}
MAX_WAITING = 100  # requests of one Guest that wait at once, so that none fills the operator's list
MAX_PER_DAY = 10**9  # people, or trainings, a UTC day
NOT_ENOUGH = -1  # returned by :meth:`ApprovalBook.use` if too little of a volume is left

_NEWEST = (
    select(Approval)
    .where(
        Approval.guest == bindparam("guest"),
        Approval.purpose == bindparam("purpose"),
        Approval.subject == bindparam("subject"),
    )
    .order_by(Approval.number.desc())
    .limit(1)
)
_USED_FOR = select(func.sum(ApprovalUseRow.used)).where(
    ApprovalUseRow.day == bindparam("day"),
    ApprovalUseRow.number.in_(select(Approval.number).where(Approval.purpose == bindparam("purpose"))),
)
_QUESTION = prepared(
    "SELECT asked, records FROM questions WHERE guest = :guest AND request = :request", "asked", "records"
)
# A question that has used a volume, and that is about to be counted.
_APPROVED = text("""
INSERT INTO questions (guest, request, day, asked, records, digest, spent, kind, structure, people, cost, state, receipt)
VALUES (:guest, :request, :day, '', :volume, '', :spent, '', '', 0, 0.0, 'approved', '')
ON CONFLICT (guest, request) DO UPDATE SET day = excluded.day, records = excluded.records
""")


class ApprovalBook:
    """The requests of one Host."""

    def __init__(self, database: Database, today: Callable[[], date] = lambda: datetime.now(UTC).date()) -> None:
        self._database = database
        self.today = today

    def all(self) -> list[Approval]:
        """Return every request, newest first."""
        with self._database.read() as session:
            return list(session.scalars(select(Approval).order_by(Approval.number.desc())))

    def get(self, number: int) -> Approval:
        """Return one request.

        Raises
        ------
        ParameterError
            If there is no request of that number.
        """
        with self._database.read() as session:
            return _row(session, number)

    def waiting(self) -> int:
        """Return the number of requests that wait."""
        with self._database.read() as session:
            waiting = select(func.count()).select_from(Approval).where(Approval.state == WAITING)
            return session.scalar(waiting) or 0

    def used(self, number: int) -> int:
        """Return how much of a grant's volume is used today."""
        with self._database.read() as session:
            use = session.get(ApprovalUseRow, (number, self.today().toordinal()))
            return 0 if use is None else use.used

    def ask(self, requested: Approval) -> tuple[Approval, bool]:
        """Return the request that counts, and whether it is new: there was none before, or its grant has expired.

        Raises
        ------
        SecurityError
            If too many requests of this Guest wait.
        """
        with self._database.write() as session:
            newest = self._newest(session, requested)
            if newest is not None and not newest.expired(self.today()):
                return newest, False
            of_guest = Approval.guest == requested.guest, Approval.state == WAITING
            waiting = session.scalar(select(func.count()).select_from(Approval).where(*of_guest)) or 0
            if waiting >= MAX_WAITING:
                raise SecurityError("too_many_requests_wait", n=waiting)
            # A copy: the caller may hand its object in again.
            request = Approval(
                guest=requested.guest,
                purpose=requested.purpose,
                subject=requested.subject,
                name=requested.name,
                about=dict(requested.about),
                asked=timestamp(),
            )
            session.add(request)
            session.flush()
            return request, True

    @staticmethod
    def _newest(session: Session, requested: Approval) -> Approval | None:
        same = {"guest": requested.guest, "purpose": requested.purpose, "subject": requested.subject}
        return session.scalars(_NEWEST, same).first()

    def decide(
        self,
        number: int,
        state: ApprovalState,
        person: str,
        *,
        until: date | None = None,
        per_day: int = 0,
        scores: tuple[date, int] | None = None,
        reason: str = "",
        sign: Callable[[Approval], str] = lambda grant: "",
    ) -> Approval:
        """Change a request's state; return it as it is now.

        Raises
        ------
        ParameterError
            If the request cannot be taken to that state: another operator may have decided meanwhile.
        """
        with self._database.write() as session:
            request = _row(session, number)
            # Before the first assignment: the row is the object that is computed with.
            self._check_step(request, state)
            request.state = state
            request.decided = timestamp()
            request.person = person
            request.reason = reason
            if until is not None:
                request.until = until.isoformat()
            if per_day:
                request.per_day = per_day
            if state == GRANTED:
                request.scores_until = scores[0].isoformat() if scores else ""
                request.scores_per_day = scores[1] if scores else 0
            request.signature = sign(request)
            return request

    def _check_step(self, request: Approval, state: ApprovalState) -> None:
        expired = request.expired(self.today())
        if not expired and request.state in STEPS[state]:
            return
        raise ParameterError(
            "no_such_step",
            number=request.number,
            state="expired" if expired else request.state,
            person=request.person or "-",
            time=request.decided[:16] or "-",
            wanted=state,
            possible=STEPS[state],
        )

    def used_for(self, purpose: str) -> int:
        """Return how much of today was used for a purpose, under all grants."""
        with self._database.read() as session:
            return _used_for(session, purpose, self.today().toordinal())

    def use(self, number: int, amount: int, question: tuple[str, str] | None = None, max_per_day: int = 0) -> int:
        """Use some of a grant's volume of today; return what is left of it, or :data:`NOT_ENOUGH` if too little was left.

        Parameters
        ----------
        max_per_day : int
            Largest use a day for the grant's purpose under all grants together; 0 = not limited.
        question : (str, str), optional
            Guest and request id. A question that this Host has counted before uses nothing, nor does one that was about to be counted
            when the Host was killed. Only of a Host that counts.
        """
        with self._database.write() as session:
            grant = _row(session, number)
            day = self.today().toordinal()
            use = _use_of_day(session, number, day)
            if question is not None and question[1]:
                key = {"guest": question[0], "request": question[1]}
            else:
                key = None
            volume = f"{number} {amount}"
            if key is None:
                counted = None
            else:
                counted = session.execute(_QUESTION, key).first()
            if counted is not None and (counted.asked or counted.records == volume):
                return max(grant.per_day - use.used, 0)
            if use.used + amount > grant.per_day:
                return NOT_ENOUGH
            if max_per_day and _used_for(session, grant.purpose, day) + amount > max_per_day:
                return NOT_ENOUGH
            use.used += amount
            session.add(use)
            if key is not None:
                session.execute(_APPROVED, {**key, "day": day, "volume": volume, "spent": b""})
            return grant.per_day - use.used

    def note_refused(self, number: int) -> bool:
        """Note that a question was refused; return whether it is the first one today."""
        with self._database.write() as session:
            _row(session, number)
            use = _use_of_day(session, number, self.today().toordinal())
            use.refused += 1
            session.add(use)
            return use.refused == 1


def _used_for(session: Session, purpose: str, day: int) -> int:
    """Return how much of a day was used for a purpose, under all grants."""
    return session.scalar(_USED_FOR, {"purpose": purpose, "day": day}) or 0


def _use_of_day(session: Session, number: int, day: int) -> ApprovalUseRow:
    use = session.get(ApprovalUseRow, (number, day))
    return use or ApprovalUseRow(number=number, day=day, used=0, refused=0)


def _row(session: Session, number: int) -> Approval:
    request = session.get(Approval, number)
    if request is None:
        raise ParameterError("unknown_request", number=number)
    return request
