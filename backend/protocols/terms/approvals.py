"""What a Host's operator decides about requests, and the record of it. Knows no score and no weight.

Before each question the gate looks into the Host's own store, so that a grant that ends or is withdrawn ends at the next message. What
counts is who opened the conversation (as the link proves), the purpose, and the structure of the trees, whatever the model is called.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from backend.crypto.signing import SigningKey, is_signed, statement
from backend.errors import ApprovalDenied, ParameterError, SecurityError
from backend.protocols.approvals.messages import (
    APPROVAL,
    NOT_MEASURED,
    SCREENING,
    TRAINING,
    ApprovalGranted,
    AskTraining,
)
from backend.protocols.group_sums.grouping import MIN_GROUP
from backend.protocols.terms.prices import TableFacts, approved_structure, screening_bits
from backend.protocols.transport.messages import ApprovalPending
from backend.store.approvals import DENIED, GRANTED, MAX_PER_DAY, NOT_ENOUGH, WAITING, WITHDRAWN, Approval, ApprovalBook
from backend.store.audit_log import AuditLog
from backend.store.database import Database
from backend.store.schema import ApprovalState

if TYPE_CHECKING:
    from backend.protocols.host_state import ServedModel
    from backend.protocols.terms.permit import Asked

_log = logging.getLogger("glassleaf")
AGREEMENT = "agreement"  # who has decided if no operator was asked
Agreed = Callable[[Approval], tuple[date, int] | None]
"""Last day and volume of what needs no asking, by agreement; None if its operator decides."""
GRANT = "grant"  # what the Host's signature in its own store is under
REASON_MAX = 500  # characters of a reason that the Guest reads
OPERATOR = "operator"
GUEST = "guest"
NOTED = (
    "number",
    "guest",
    "purpose",
    "subject",
    "name",
    "until",
    "per_day",
    "scores_until",
    "scores_per_day",
    "reason",
    "signature",
)  # in the Host's log


class Approvals:
    """What a Host's operator decides, and the record of it.

    Parameters
    ----------
    agreed : callable
        What needs no asking (:data:`Agreed`). What the operator has denied or withdrawn stays so.
    volume : callable
        Purpose → people a day that may be asked about for it, whatever operators grant; 0 = not limited.
    charge : callable
        Books what a training costs when it is approved (:func:`backend.protocols.terms.prices.book_approved`); raises SecurityError if
        too few bits are left for it, and then it is not approved.
    on_waiting : callable
        Called with each new request that waits for the operator.
    """

    def __init__(
        self,
        host: str,
        database: Database,
        key: SigningKey,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
        agreed: Agreed = lambda _: None,
        volume: Callable[[str], int] = lambda _: 0,
        charge: Callable[[Approval], None] = lambda _: None,
        on_waiting: Callable[[Approval], None] = lambda _: None,
    ) -> None:
        self.host = host
        self._database = database
        self._key = key
        self._agreed = agreed
        self._volume = volume
        self._charge = charge
        self._on_waiting = on_waiting
        self.book = ApprovalBook(database, today)
        self.log = AuditLog(database)

    def ask(self, requested: Approval, amount: int = 0, question: tuple[str, str] | None = None) -> Approval:
        """Return the request that counts for what a Guest asks: waiting, or granted.

        Parameters
        ----------
        amount : int
            Taken from the day's volume if the request is granted: in the same transaction, so that no grant ends in between.
        question : (str, str), optional
            See :meth:`backend.store.approvals.ApprovalBook.use`.

        Raises
        ------
        ApprovalDenied
            If it was denied or withdrawn.
        SecurityError
            If too many requests wait, the grant is not this Host's, or too little is left of its volume.
        """
        approval, error = self.decide(requested, amount, question)
        if error is not None:
            raise error
        return approval

    def decide(
        self, requested: Approval, amount: int = 0, question: tuple[str, str] | None = None
    ) -> tuple[Approval, SecurityError | None]:
        """Return the request that counts, and why it is refused; parameters as :meth:`ask`.

        The caller raises the error after its transaction: raised inside, it would roll back the request and the log's entry, too.
        """
        with self._database.write():
            approval, error = self._in_force(requested)
            error = error or self._refusal(approval)
            if error is None and approval.state == GRANTED and amount > 0:
                error = self._use(approval, amount, question)
            if error is not None and self.book.note_refused(approval.number):
                # One entry a day and request, so that no Guest can fill the log.
                self._note(f"refused: {error.code}", approval, approval.guest, GUEST)
        return approval, error

    def together(self) -> AbstractContextManager[object]:
        """Return a transaction of the database that has the requests."""
        return self._database.write()

    def _in_force(self, requested: Approval) -> tuple[Approval, SecurityError | None]:
        """Return the newest request for what is asked, or a new one; grant it if the agreement says so, or return why it costs too much."""
        approval, is_new = self.book.ask(requested)
        if is_new:
            self._note("asked", approval, approval.guest, GUEST)
        if approval.state == WAITING:
            agreed = self._agreed(approval)
        else:
            agreed = None
        if agreed is not None and agreed[0] >= self.book.today():
            try:
                return self._grant(approval.number, AGREEMENT, *agreed), None
            except SecurityError as error:  # nothing was booked
                return approval, error
        if is_new:
            _log.info("A request waits for the operator: %d", approval.number, extra={"party": approval.guest})
            self._on_waiting(approval)
        return approval, None

    def _refusal(self, approval: Approval) -> SecurityError | None:
        """Return why nothing is answered under a request; None if it waits or is granted."""
        if approval.state == GRANTED and not self._signed(approval):
            return SecurityError("approval_changed")
        if approval.state in (DENIED, WITHDRAWN):
            return ApprovalDenied(self.host, approval.state, approval.decided[:10], approval.reason)
        return None

    def _use(self, approval: Approval, amount: int, question: tuple[str, str] | None) -> SecurityError | None:
        """Take from a grant's volume; return the error to raise if it, or the agreement's volume, is too small."""
        if approval.purpose == TRAINING:
            max_per_day = 0
        else:
            max_per_day = self._volume(approval.purpose)
        if self.book.use(approval.number, amount, question, max_per_day) != NOT_ENOUGH:
            return None
        amount_used = self.book.used(approval.number)
        if amount_used + amount > approval.per_day:
            return SecurityError("approved_volume_reached", per_day=approval.per_day, used=amount_used, amount=amount)
        amount_used = self.book.used_for(approval.purpose)
        return SecurityError("agreed_volume_reached", per_day=max_per_day, used=amount_used, amount=amount)

    def answer(self, approval: Approval, conversation: str, name: str) -> ApprovalGranted | ApprovalPending:
        """Return what the Guest gets about a request that was neither denied nor withdrawn; `name` is the Guest's for it.

        It has no subject: a hash of the partial model could confirm guessed thresholds.
        """
        if approval.state == WAITING:
            return ApprovalPending(conversation, approval.number, approval.asked)
        granted = ApprovalGranted(
            conversation,
            self.host,
            approval.guest,
            approval.number,
            approval.purpose,
            name,
            approval.until,
            approval.per_day,
            approval.decided,
            self._key.public,
        )
        return replace(granted, signature=self._key.sign(APPROVAL, *granted.signed_fields))

    def approve(
        self, number: int, person: str, until: date, per_day: int, scores: tuple[date, int] | None = None
    ) -> Approval:
        """Allow a request.

        Parameters
        ----------
        scores : (date, int), optional
            Of a training: last day and people a day for scores with the model that it makes, which then need no request of their own.

        Raises
        ------
        ParameterError
            If it is not a request that can be allowed, a last day is over, or a volume is out of range.
        SecurityError
            If it is a training that could tell more about somebody than is left of this window's bits.
        """
        for last_day, volume in ((until, per_day), *([scores] if scores else [])):
            if last_day < self.book.today():
                raise ParameterError("day_is_over", day=last_day.isoformat())
            if not 1 <= volume <= MAX_PER_DAY:
                raise ParameterError("volume_out_of_range", got=volume, most=MAX_PER_DAY)
        if scores is not None and self.book.get(number).purpose != TRAINING:
            raise ParameterError("scores_go_with_training", number=number)
        return self._grant(number, person, until, per_day, scores)

    def grant_scores(self, training: Approval, requested: Approval) -> None:
        """Allow scores with the model that a training made, if its operator allowed them with the training."""
        if not training.scores_per_day:
            return
        until = date.fromisoformat(training.scores_until)
        with self._database.write():
            approval, _ = self._in_force(requested)
            if approval.state == WAITING and until >= self.book.today():
                self._grant(approval.number, training.person, until, training.scores_per_day)

    def _grant(
        self, number: int, person: str, until: date, per_day: int, scores: tuple[date, int] | None = None
    ) -> Approval:
        with self._database.write():
            request = self.book.get(number)
            if request.purpose == TRAINING:
                self._charge(request)
            grant = self.book.decide(
                number, GRANTED, person, until=until, per_day=per_day, scores=scores, sign=self.sign
            )
            self._note("approved", grant, person, AGREEMENT if person == AGREEMENT else OPERATOR)
        return grant

    def deny(self, number: int, person: str, reason: str) -> Approval:
        """Refuse a request that waits; the Guest reads the reason."""
        return self._end(number, DENIED, person, reason)

    def withdraw(self, number: int, person: str, reason: str) -> Approval:
        """End a grant at once, for the next question of a conversation that is under way, too; the Guest reads the reason."""
        return self._end(number, WITHDRAWN, person, reason)

    def _end(self, number: int, state: ApprovalState, person: str, reason: str) -> Approval:
        reason = reason.strip()
        if not 1 <= len(reason) <= REASON_MAX:
            raise ParameterError("approval_reason_length", most=REASON_MAX, got=len(reason))
        with self._database.write():
            ended = self.book.decide(number, state, person, reason=reason)
            self._note(state, ended, person, OPERATOR)
        return ended

    def is_own(self, grant: Approval, row: Mapping[str, Any]) -> bool:
        """Return whether a grant, as a row of another home of this Host has it, is signed with this Host's key."""
        grant.number = row["number"]
        grant.signature = row["signature"]
        return self._signed(grant)

    def sign(self, grant: Approval) -> str:
        """Return this Host's signature over a grant."""
        return self._key.sign(GRANT, self.host, *grant.signed_fields)

    def _signed(self, grant: Approval) -> bool:
        return is_signed(self._key.public, grant.signature, GRANT, self.host, *grant.signed_fields)

    def _note(self, what: str, approval: Approval, actor: str, role: str) -> None:
        body = {name: getattr(approval, name) for name in NOTED}
        self.log.add("approval", {"what": what, **body, "salt": secrets.token_hex(16)}, actor, role)


def model_request(request: Asked, served: ServedModel, usual: str, rows: int) -> Approval:
    """Return the request that a Host's operator decides about for a question on a model.

    Parameters
    ----------
    usual : str
        The question's purpose, if the conversation states none.
    rows : int
        The number of people that it is about.
    """
    purpose = request.session.purpose or usual
    imported = not request.models.grew(request.message.model_id)
    return about_model(request.session.guest, purpose, request.message.model_id, served, rows, imported=imported)


def about_model(
    guest: str,
    purpose: str,
    model_id: str,
    served: ServedModel,
    rows: int,
    identified: tuple[float, float] = NOT_MEASURED,
    *,
    imported: bool = False,
) -> Approval:
    """Return a request about a model: one structure is one request, even under several names of the model.

    `imported`: the model did not grow here; the operator can read that.
    `identified`: the Guest's statement of the share of scores that fit one path only, for the operator to read; it bounds nothing.
    """
    model = served.model
    about = {
        "trees": len(model.skeletons),
        "own_trees": len({tree for tree, _ in model.rules}),
        "own_splits": len(model.rules),
        "rows": rows,
        "capacity": model.capacity,
        "hosts": list(model.hosts),
        "imported": imported,
    }
    if 0.0 <= identified[0] <= 1.0 and 0.0 <= identified[1] <= 1.0:
        about["named"], about["most_named"] = identified
    return Approval(guest, purpose, served.structure, model_id[:40], about)


def sums_request(request: Asked, rows: int) -> Approval | None:
    """Return the request that a Host's operator decides about for sums by a feature's groups; None if it does not decide about them.

    Sums name no model, so that a grant is for a purpose.
    """
    if not request.sums:
        return None
    purpose = request.session.purpose
    subject = sha256(statement("sums by group", purpose)).hexdigest()
    about: dict[str, Any] = {"rows": rows}
    if purpose == SCREENING:
        about["features"] = len(request.features)
        about["bits"] = screening_bits(request.features.values(), rows)
        about["least"] = request.floors.people(MIN_GROUP)
    return Approval(request.session.guest, purpose, subject, "sums by group", about)


def training_request(request: Asked) -> Approval | None:
    """Return the request that a Host's operator decides about for a message of a training; None if no operator is asked.

    Raises
    ------
    SecurityError
        If the conversation asked for no training.
    """
    if not request.operator:
        return None
    training = request.session.need(AskTraining, "training_not_asked_for")
    return about_training(request.session.guest, training, request.facts)


def about_training(guest: str, training: AskTraining, facts: TableFacts) -> Approval:
    """Return a request about a training: the same terms are one request."""
    subject, about = _training_terms(guest, training, facts)
    return Approval(guest, TRAINING, subject, training.algorithm[:40], dict(about))


@lru_cache(maxsize=64)  # every message of a training is read against the same terms
def _training_terms(guest: str, training: AskTraining, facts: TableFacts) -> tuple[str, Mapping[str, Any]]:
    """Return the subject, which is the same for the same request, and the terms that the operator reads."""
    terms: dict[str, Any] = {part.name: getattr(training, part.name) for part in fields(training)}
    del terms["conversation"]
    terms["exclude"] = sorted(training.exclude)
    subject = sha256(statement("training", *(f"{name}={value!r}" for name, value in sorted(terms.items())))).hexdigest()
    # The price, for the operator's process, which has no records.
    price = {"structure": approved_structure(guest, training, facts), "features": len(facts.used(training.exclude))}
    return subject, {**terms, **price, "rows": facts.records}
