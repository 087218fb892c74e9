"""A Host's side of approvals: nothing that reads a record is answered before its operator has allowed it. Knows no score and no weight.

Before each question the gate looks into the Host's own store, so that a grant that ends or is withdrawn ends at the next message. What
counts is who opened the conversation (as the link proves), the purpose, and the structure of the trees, whatever the model is called.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any

from backend.crypto.signing import SigningKey, is_signed, statement
from backend.data.federation import MEASURES
from backend.errors import ApprovalDenied, ParameterError, SecurityError
from backend.protocols.alignment.messages import StartAlignment
from backend.protocols.approvals.messages import (
    APPROVAL,
    REASONS,
    SCORING,
    TRAINING,
    ApprovalGranted,
    AskApproval,
    AskTraining,
)
from backend.protocols.baselines.messages import AskCandidates, StartWalk
from backend.protocols.explanations.messages import AskCohort, AskReasons
from backend.protocols.host_state import Answer, Handlers, HostModels, HostSession, HostSessions, ServedModel
from backend.protocols.scoring.messages import DecisionVectors
from backend.protocols.scoring.permuted_values_host import OtherValues
from backend.protocols.training.messages import (
    AskBinSums,
    AskNodeSums,
    Gradients,
    KeepModel,
    MoreGradients,
    NodePairs,
    StartRanks,
    StartTraining,
    TakeRankSplits,
    TakeSplit,
)
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import ApprovalPending
from backend.store.approvals import DENIED, GRANTED, MAX_PER_DAY, NOT_ENOUGH, WAITING, WITHDRAWN, Approval, ApprovalBook
from backend.store.audit_log import AuditLog
from backend.store.database import Database
from backend.store.schema import ApprovalState

AGREEMENT = "agreement"  # who has decided where no operator was asked
Agreed = Callable[[Approval], tuple[date, int] | None]
"""Last day and volume of what needs no asking, by agreement; None where its operator decides."""
GRANT = "grant"  # what the Host's signature in its own store is under
REASON_MAX = 500  # characters of what a Guest is told
OPERATOR, GUEST = "operator", "guest"
NOTED = (
    "number",
    "guest",
    "purpose",
    "subject",
    "name",
    "until",
    "per_day",
    "reason",
    "signature",
)  # in the Host's log
PURPOSE_OF: dict[type[Message], str] = {
    DecisionVectors: SCORING,
    AskReasons: REASONS,
    AskCohort: REASONS,
    StartWalk: "comparisons",
    AskCandidates: "comparisons",
}
"""Question about a model → what it is for, where the conversation states nothing else."""
SIMULATED_ALONE = (StartWalk, AskCandidates)  # a real Host refuses them whoever asks
OF_TRAINING = (
    StartAlignment,
    StartTraining,
    StartRanks,
    Gradients,
    MoreGradients,
    AskBinSums,
    AskNodeSums,
    NodePairs,
    TakeSplit,
    TakeRankSplits,
    KeepModel,
)


class Approvals:
    """What a Host's operator decides, and the record of it.

    Parameters
    ----------
    agreed : callable
        What needs no asking (:data:`Agreed`). What the operator has denied or withdrawn stays so.
    volume : callable
        Purpose → people a day that may be asked about for it, whatever operators grant; 0 = not limited.
    """

    def __init__(
        self,
        host: str,
        database: Database,
        key: SigningKey,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
        agreed: Agreed = lambda _: None,
        volume: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self.host = host
        self._database = database
        self._key = key
        self._agreed = agreed
        self._volume = volume
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
        # Raise after the transaction: an error inside would roll back the request and the log's entry, too.
        with self._database.write():
            approval = self._in_force(requested)
            error = self._refusal(approval)
            if error is None and approval.state == GRANTED and amount > 0:
                error = self._use(approval, amount, question)
            if error is not None and self.book.note_refused(approval.number):
                # One entry a day and request, so that no Guest can fill the log.
                self._note(f"refused: {error.code}", approval, approval.guest, GUEST)
        if error is not None:
            raise error
        return approval

    def _in_force(self, requested: Approval) -> Approval:
        """Return the newest request for what is asked, or a new one; grant it if the agreement says so."""
        approval, is_new = self.book.ask(requested)
        if is_new:
            self._note("asked", approval, approval.guest, GUEST)
        agreed = self._agreed(approval) if approval.state == WAITING else None
        if agreed is not None and agreed[0] >= self.book.today():
            return self._grant(approval.number, AGREEMENT, *agreed)
        return approval

    def _refusal(self, approval: Approval) -> SecurityError | None:
        """Return why nothing is answered under a request; None if it waits or is granted."""
        if approval.state == GRANTED and not self._signed(approval):
            return SecurityError("approval_changed")
        if approval.state in (DENIED, WITHDRAWN):
            return ApprovalDenied(self.host, approval.state, approval.decided[:10], approval.reason)
        return None

    def _use(self, approval: Approval, amount: int, question: tuple[str, str] | None) -> SecurityError | None:
        """Take from a grant's volume; return what to raise if too little of it, or of the agreement's, is left."""
        max_per_day = 0 if approval.purpose == TRAINING else self._volume(approval.purpose)
        if self.book.use(approval.number, amount, question, max_per_day) != NOT_ENOUGH:
            return None
        used = self.book.used(approval.number)
        if used + amount > approval.per_day:
            return SecurityError("approved_volume_reached", per_day=approval.per_day, used=used, amount=amount)
        used = self.book.used_for(approval.purpose)
        return SecurityError("agreed_volume_reached", per_day=max_per_day, used=used, amount=amount)

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

    def approve(self, number: int, person: str, until: date, per_day: int) -> Approval:
        """Allow a request; raises ParameterError where it is none that can be allowed, the last day is over, or the volume is none."""
        if until < self.book.today():
            raise ParameterError("day_is_over", day=until.isoformat())
        if not 1 <= per_day <= MAX_PER_DAY:
            raise ParameterError("volume_out_of_range", got=per_day, most=MAX_PER_DAY)
        return self._grant(number, person, until, per_day)

    def _grant(self, number: int, person: str, until: date, per_day: int) -> Approval:
        with self._database.write():
            grant = self.book.decide(number, GRANTED, person, until=until, per_day=per_day, sign=self._sign)
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

    def _sign(self, grant: Approval) -> str:
        return self._key.sign(GRANT, self.host, *grant.signed_fields)

    def _signed(self, grant: Approval) -> bool:
        return is_signed(self._key.public, grant.signature, GRANT, self.host, *grant.signed_fields)

    def _note(self, what: str, approval: Approval, actor: str, role: str) -> None:
        body = {name: getattr(approval, name) for name in NOTED}
        self.log.add("approval", {"what": what, **body, "salt": secrets.token_hex(16)}, actor, role)


@dataclass(frozen=True)
class _Training:
    """What a conversation may train."""

    asked: AskTraining


@dataclass(frozen=True, repr=False)
class ApprovalGate:
    """Stands before a Host's handlers.

    Attributes
    ----------
    approvals : Approvals, optional
        None = this Host asks nobody.
    counts : bool
        Whether questions are counted, so that one which is repeated under its name can be told from a new one.
    sums : bool
        Whether its operator decides about sums by group, too.
    """

    approvals: Approvals | None
    partial_models: HostModels
    sessions: HostSessions
    records: int
    simulated: bool
    counts: bool
    sums: bool = False

    def handlers(self) -> Handlers:
        """What the gate answers itself."""
        return {AskTraining: self._ask_training, AskApproval: self._ask_approval}

    def hold(self, sender: str, message: Message, session: HostSession | None) -> ApprovalPending | None:
        """What the Guest gets instead of an answer; None where the message may go on.

        Parameters
        ----------
        session : HostSession, optional
            The conversation that the message belongs to; None where it would open one.

        Raises
        ------
        SecurityError
            The operator has denied or withdrawn it, its volume is reached, or the training was not asked for.
        """
        if self.approvals is None:
            return None
        if type(message) in PURPOSE_OF:
            return self._hold_question(self.approvals, sender, session or HostSession(sender), message)
        if isinstance(message, OF_TRAINING):
            return self._hold_training(self.approvals, session or HostSession(sender), message)
        return None

    def _hold_question(
        self, approvals: Approvals, sender: str, session: HostSession, message: Any
    ) -> ApprovalPending | None:
        # the simulation's own measuring, and people whose values the user typed in
        counts = session.played is None and message.conversation not in self.sessions.uncounted
        if not counts or (isinstance(message, SIMULATED_ALONE) and not self.simulated):
            return None
        served = self.partial_models.get(message.model_id)
        expected = served.preceding if isinstance(message, DecisionVectors) else session.guest
        if session.guest != served.model.guest or sender != expected:
            return None  # refused by its handler; nobody else's word makes a request or uses a volume
        purpose = session.purpose or PURPOSE_OF[type(message)]
        rows, repeatable = len(message.ids), session.kept(OtherValues) is None
        wanted = _about_model(session.guest, purpose, message.model_id, served, rows)
        found = approvals.ask(wanted, rows, self._named(session.guest, message) if repeatable else None)
        return ApprovalPending(message.conversation, found.number, found.asked) if found.state == WAITING else None

    def _hold_training(self, approvals: Approvals, session: HostSession, message: Message) -> ApprovalPending | None:
        if isinstance(message, StartAlignment) and session.purpose:
            return None  # aligned to measure something that this Host has agreed to
        training = session.need(_Training, "training_not_asked_for")
        _check_terms(training.asked, message)
        begins = isinstance(message, StartTraining | StartRanks)
        wanted = _about_training(session.guest, training.asked, self.records)
        found = approvals.ask(wanted, int(begins), self._named(session.guest, message) if begins else None)
        return ApprovalPending(message.conversation, found.number, found.asked) if found.state == WAITING else None

    def hold_sums(self, guest: str, conversation: str, people: int, question: str) -> ApprovalPending | None:
        """As :meth:`hold`, of sums by a feature's groups over so many `people` (0 = the Guest only asks if it would be answered).

        They name no model, so that a grant is for a purpose; whoever is repeated under the `question`'s name uses no volume.
        """
        if self.approvals is None or not self.sums or conversation in self.sessions.uncounted:
            return None
        purpose = self.sessions.of(conversation).purpose
        subject = sha256(statement("sums by group", purpose)).hexdigest()
        wanted = Approval(guest, purpose, subject, "sums by group", {"rows": people})
        found = self.approvals.ask(wanted, people, (guest, question) if self.counts else None)
        return ApprovalPending(conversation, found.number, found.asked) if found.state == WAITING else None

    def _named(self, guest: str, message: Message) -> tuple[str, str] | None:
        return (guest, getattr(message, "request", "")) if self.counts else None

    def _ask_training(self, sender: str, asked: AskTraining) -> Answer:
        session = self.sessions.of(asked.conversation, sender)
        session.keep(_Training, _Training(asked))
        if self.approvals is None:
            yield sender, ApprovalGranted(asked.conversation, "", sender, 0, TRAINING, asked.algorithm)
            return
        found = self.approvals.ask(_about_training(session.guest, asked, self.records))
        yield sender, self.approvals.answer(found, asked.conversation, asked.algorithm)

    def _ask_approval(self, sender: str, asked: AskApproval) -> Answer:
        session = self.sessions.of(asked.conversation, sender)
        if asked.purpose not in (SCORING, REASONS, *MEASURES):
            raise SecurityError("unknown_purpose", purpose=asked.purpose, known=(SCORING, REASONS, *MEASURES))
        if self.approvals is None:
            yield sender, ApprovalGranted(asked.conversation, "", sender, 0, asked.purpose, asked.model_id)
            return
        served = self.partial_models.get(asked.model_id)
        if session.guest != served.model.guest:
            raise SecurityError("model_of_another_guest")
        found = self.approvals.ask(
            _about_model(session.guest, asked.purpose, asked.model_id, served, max(0, asked.rows))
        )
        # what was allowed under another name is the same model
        yield sender, self.approvals.answer(found, asked.conversation, asked.model_id)


def _about_model(guest: str, purpose: str, model_id: str, served: ServedModel, rows: int) -> Approval:
    model = served.model
    about = {
        "trees": len(model.skeletons),
        "own_trees": len({tree for tree, _ in model.rules}),
        "own_splits": len(model.rules),
        "rows": rows,
        "capacity": model.capacity,
        "hosts": list(model.hosts),
    }
    return Approval(guest, purpose, served.structure, model_id[:40], about)


def _about_training(guest: str, asked: AskTraining, records: int) -> Approval:
    terms = {name: value for name, value in asdict(asked).items() if name != "conversation"}
    terms["exclude"] = sorted(asked.exclude)
    subject = sha256(statement("training", *(f"{name}={value!r}" for name, value in sorted(terms.items())))).hexdigest()
    return Approval(guest, TRAINING, subject, asked.algorithm[:40], {**terms, "rows": records})


def _check_terms(allowed: AskTraining, message: Message) -> None:
    """Raise SecurityError where a training departs from what was allowed."""
    trees: tuple[int, ...] = ()
    fits = True
    if isinstance(message, StartTraining):
        terms = allowed.bins, sorted(allowed.exclude), allowed.hide_order
        fits = terms == (message.bins, sorted(message.exclude), message.hide_order)
    elif isinstance(message, StartRanks):
        rank_terms = allowed.bins, sorted(allowed.exclude), allowed.epsilon
        fits = rank_terms == (0, sorted(message.exclude), message.epsilon)
    elif isinstance(message, TakeSplit | AskNodeSums | Gradients):
        trees = (message.tree,)
    elif isinstance(message, AskBinSums | TakeRankSplits):
        trees = message.trees
    elif isinstance(message, KeepModel):
        fits = len(message.skeletons) <= allowed.trees
    if not fits or not all(0 <= tree < allowed.trees for tree in trees):
        raise SecurityError("beyond_the_training", kind=type(message).__name__)
