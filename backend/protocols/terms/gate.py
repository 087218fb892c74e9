"""The one gate of a Host: whatever reads a record passes it. It alone has the table.

For each message, in this order:

1. The kind's rule reads it: shape, history of the conversation, floors. No record is looked at, so a refusal tells nothing of one.
2. One transaction: what the operator decides about it and its volume; each charge against budget and bits; an auditor's sample; what a
   training was asked for.
3. Exactly the rows and columns that the rule named are opened, and go to the handler with the permit.
4. An answer that may be asked for again is stored before it leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.approvals.messages import TRAINING
from backend.protocols.host_state import HostModels, HostSession, HostSessions
from backend.protocols.terms.approvals import Approvals
from backend.protocols.terms.floors import Floors
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Charge, Charged, Kind, Kinds, Permit, Reply
from backend.protocols.terms.prices import TableFacts
from backend.protocols.terms.records import Opened, Roster, open_rows
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import ApprovalPending
from backend.store.accountant import LIMITS, REASONS, SCORE, Accountant
from backend.store.approvals import WAITING, Approval
from backend.store.request_log import RequestLog


@dataclass(frozen=True, repr=False)
class Gate:
    """What stands between a Host's table and every message.

    Attributes
    ----------
    features : mapping of str to Feature
        The Host's, by name: what the dictionary says of them, no value.
    facts : TableFacts
        What prices depend on.
    accountant : Accountant, optional
        None = nothing is counted (a simulated Host alone).
    approvals : Approvals, optional
        None = this Host asks no operator.
    requests : RequestLog, optional
        Where a sample of requests is stored for an auditor.
    sums : bool
        Whether its operator decides about sums by group, too.
    simulated : bool
        Whether its operator may leave a conversation uncounted.
    """

    table: PartyTable
    features: Mapping[str, Feature]
    facts: TableFacts
    kinds: Kinds
    floors: Floors
    models: HostModels
    sessions: HostSessions
    noise: Noise
    accountant: Accountant | None
    approvals: Approvals | None
    requests: RequestLog | None
    sums: bool = False
    simulated: bool = False

    def answer(self, sender: str, message: Message, session: HostSession | None) -> Reply:
        """Yield the answers to a message: the handler's reply, or that the operator has not decided yet.

        Raises
        ------
        SecurityError
            If the message is refused.
        """
        kind = self.kinds[type(message)]
        if session is None and kind.begins:
            session = self.sessions.of(message.conversation, sender)
        if session is None:
            raise SecurityError("conversation_not_open")
        permit = self.open(sender, message, session, kind)
        if isinstance(permit, ApprovalPending):
            yield session.guest, permit
            return
        opened = self.records(permit)
        if kind.makes is not None and permit.stored is None:
            answer_bytes = kind.makes(permit, opened, message, self.noise)
            permit = replace(permit, stored=self._kept(permit, answer_bytes))
        for receiver, reply in kind.handler(permit, opened, message, self.noise):
            if kind.store is not None:
                kind.store(self.models, permit, reply)
            yield receiver, self._stored(permit, kind, reply)

    def open(self, sender: str, message: Message, session: HostSession, kind: Kind) -> Permit | ApprovalPending:
        """Decide about a message; return the permit, or that it waits for the operator.

        Raises
        ------
        SecurityError
            If it is refused.
        """
        # 1. Decide by the message, the floors and the history.
        request = self.request_of(sender, message, session)
        self._check_open(message, kind)
        ask = kind.rule(request)
        # 2. Decide by the operator and the account.
        counted = request.counted
        accountant = self.accountant if counted else None
        waiting = None
        error = None
        charged: list[Charged] = []
        stored = None
        decided = self._decided(ask, counted)
        if accountant is None and decided is None:
            charged = [_free(charge) for charge in ask.charges]
            self._note(ask, session.guest)
        else:
            with self._together(ask):
                approval, error = self._approved(ask, decided, session.guest)
                if approval is not None and approval.state == WAITING:
                    waiting = approval
                elif error is None:
                    charged = [self._charge_about(accountant, charge, session, message) for charge in ask.charges]
                    for charge in ask.others:
                        self._charge(accountant, replace(charge, all_or_none=True), message.conversation)
                    stored = self._bound(accountant, ask, session.guest, charged)
                    self._sample(ask, charged)
                    self._note(ask, session.guest)
        # Raise after the transaction: an error inside would roll back the request and the log's entry, too.
        if error is not None:
            raise error
        if waiting is not None:
            return ApprovalPending(message.conversation, waiting.number, waiting.asked)
        limits = None if accountant is None else accountant.limits
        return Permit(request, ask, tuple(charged), stored, limits)

    def _check_open(self, message: Message, kind: Kind) -> None:
        """Raise SecurityError if a message is about a model that is kept sealed; a simulation may measure it without counting."""
        model_id = getattr(message, "model_id", "")
        if not model_id or kind.sealed or message.conversation in self.sessions.uncounted:
            return
        if self.models.sealed(model_id) is not None:
            raise SecurityError("model_sealed", model=model_id)

    def request_of(self, sender: str, message: Message, session: HostSession) -> Asked:
        """Return a message as a rule reads it."""
        counted = not self.simulated or self.sessions.counts(message.conversation)
        return Asked(
            sender,
            message,
            session,
            self._floors(counted),
            self.models,
            Roster(self._table(session)),
            self.facts,
            counted=counted,
            operator=self.approvals is not None,
            sums=self.approvals is not None and self.sums,
            features=self.features,
        )

    def records(self, permit: Permit) -> Opened:
        """Return the rows and columns that a permit's rule named."""
        table = self._table(permit.session)
        opens = permit.ask.opens
        if any(rows.charged for rows in opens.values()):
            spent = permit.spent
        else:
            spent = None
        return {name: open_rows(table, rows, spent) for name, rows in opens.items()}

    def _floors(self, counted: bool) -> Floors:
        """Return what is insisted on in a conversation; a simulation that measures without counting has people who need nothing."""
        if counted and self.accountant is not None:
            return self.floors
        return replace(self.floors, synthetic=True)

    def _table(self, session: HostSession) -> PartyTable:
        """Return the Host's records, or those that stand in for them in a simulation."""
        if session.played is None:
            return self.table
        return session.played

    def _together(self, ask: Ask) -> ExitStack:
        """Return one transaction for approval and account; nothing is opened that is not needed."""
        stack = ExitStack()
        if self.approvals is not None and ask.approval is not None:
            stack.enter_context(self.approvals.together())
        if self.accountant is not None and (ask.charges or ask.others or ask.binds):
            stack.enter_context(self.accountant.together())
        if ask.notes or ask.spends is not None:
            stack.enter_context(self.models.trainings.together())
        return stack

    def _decided(self, ask: Ask, counted: bool) -> Approval | None:
        """Return what the operator decides about; a simulation that measures without counting asks for trainings alone."""
        if self.approvals is None or ask.approval is None:
            return None
        if counted or ask.approval.purpose == TRAINING:
            return ask.approval
        return None

    def _approved(
        self, ask: Ask, approval: Approval | None, guest: str
    ) -> tuple[Approval | None, SecurityError | None]:
        """Return the operator's decision about a request, and the error if it is refused; None if no operator is asked."""
        if self.approvals is None or approval is None:
            return None, None
        counted = self.accountant is not None and self.accountant.limits.counted
        decided: tuple[Approval | None, SecurityError | None] = (None, None)
        for request_id in ask.volumes or (ask.volume_of,):
            if counted and request_id:
                question = (guest, request_id)
            else:
                question = None
            decided = self.approvals.decide(approval, ask.amount, question)
            if decided[1] is not None:
                break
        return decided

    def _charge_about(
        self, accountant: Accountant | None, charge: Charge, session: HostSession, message: Message
    ) -> Charged:
        """Book one question, unless reasons are wanted for a score of another version of the record; raises as :meth:`_charge`."""
        question = charge.question
        if accountant is None or not charge.record_of or session.played is not None or not question.people:
            return self._charge(accountant, charge, message.conversation)
        versions = Roster(self.table).versions(question.people, charge.record_of)
        if question.kind == REASONS:
            changed = accountant.changed(question, versions)
            if changed.any():
                return Charged(changed, np.where(changed, LIMITS.index("changed"), 0).astype(np.uint8))
        charged = self._charge(accountant, charge, message.conversation)
        if question.kind == SCORE:
            answered = [person for person, spent in zip(question.people, charged.spent, strict=True) if not spent]
            accountant.note_scored(question, {person: versions[person] for person in answered})
        return charged

    def _charge(self, accountant: Accountant | None, charge: Charge, conversation: str) -> Charged:
        """Book one question.

        Raises
        ------
        SecurityError
            If it is about all of its people or nobody, and a limit is reached for some.
        QuestionRefused
            If its request id stood for another question, or it was answered too often.
        """
        if accountant is None:
            return _free(charge)
        question = replace(charge.question, conversation=conversation)
        reply = None
        if charge.times:
            accountant.count_again(question, charge.times)
            spent = np.zeros(len(question.people), dtype=bool)
        elif charge.only_look:
            spent = accountant.spent(question)
        elif charge.digest:
            spent, reply = accountant.count_bound(question, charge.digest)
        else:
            spent = accountant.count(question, all_or_none=charge.all_or_none)
        if not spent.any():
            return Charged(spent, np.zeros(len(spent), dtype=np.uint8), reply)
        # A repeated question was refused then, whatever the limits leave now.
        reached = np.maximum(accountant.reached(question), 1)
        reached[~spent] = 0
        if charge.all_or_none:
            raise self._over(accountant, charge, spent, reached)
        return Charged(spent, reached, reply)

    @staticmethod
    def _over(accountant: Accountant, charge: Charge, spent: Any, reached: Any) -> SecurityError:
        """Return why a question about all of its people or nobody is refused."""
        limits = accountant.limits
        question = charge.question
        if (reached == LIMITS.index("bits")).any():
            return SecurityError("bits_reached", days=limits.days, bits=limits.bits)
        count = int(spent.sum())
        people = len(question.people)
        # Of one answer alone the last one says when; whatever else is counted may make it later.
        if limits.of(question.kind)[0] == 1:
            until = accountant.last_until(question)
        else:
            until = None
        if until is None:
            return SecurityError("people_in_common", spent=count, people=people, days=limits.days)
        return SecurityError(
            "people_in_common_until", spent=count, people=people, days=limits.days, until=until.isoformat()
        )

    def _bound(self, accountant: Accountant | None, ask: Ask, guest: str, charged: list[Charged]) -> bytes | None:
        """Return the answer that the question got before; bind one whose bytes are now all there."""
        if ask.binds is not None and accountant is not None:
            request, digest = ask.binds
            return accountant.reply_to(guest, request, digest)
        return next((charge.reply for charge in charged if charge.reply is not None), None)

    def _sample(self, ask: Ask, charged: list[Charged]) -> None:
        """Store a sample of the message, of people whose question is answered."""
        sample = ask.sample
        if self.requests is None:
            return
        if self.accountant is None:
            records = ""
        else:
            records = self.accountant.records
        sums = ask.sums
        if sums is not None:
            body = sums.body(0)
            self.requests.note(sums.model_id, ("",), b"", (body,), sums.kind, request=sums.request, records=records)
        if sample is None or ask.has_record is None:
            return
        answered = ask.has_record.copy()
        # In a question about all of its people or none, no person is over a limit.
        some = []
        for charge, booked in zip(ask.charges, charged, strict=True):
            if not charge.all_or_none:
                some.append(booked.spent)
        if some:
            answered[ask.has_record] = ~np.concatenate(some)
        indices = np.flatnonzero(answered).tolist()
        ids = [sample.ids[i] for i in indices]
        bodies = [sample.body(i) for i in indices]
        self.requests.note(
            sample.model_id,
            ids,
            sample.public_key,
            bodies,
            sample.kind,
            request=sample.request,
            places=[sample.first + i for i in indices],
            dither=sample.dither,
            records=records,
        )

    def _note(self, ask: Ask, guest: str) -> None:
        """Store what a training was asked for.

        Raises
        ------
        SecurityError
            If it was asked for in another way before.
        """
        if ask.notes:
            self.models.trainings.note(guest, ask.notes)
        if ask.spends is not None:
            self.models.trainings.spend(guest, ask.spends)

    def _stored(self, permit: Permit, kind: Kind, reply: Message) -> Message:
        """Return the answer that leaves: the one that is stored already, if the same question was answered meanwhile."""
        if kind.reply:
            body = getattr(reply, kind.reply, None)
        else:
            body = None
        if body is None or permit.stored is not None:
            return reply
        changed: Mapping[str, Any] = {kind.reply: self._kept(permit, body)}
        return replace(reply, **changed)

    def _kept(self, permit: Permit, body: bytes) -> bytes:
        """Store what is about to leave, if it may be asked for again; return what is stored already, if the question was answered."""
        request = permit.ask.reply
        if not request or self.accountant is None or not permit.request.counted:
            return body
        return self.accountant.keep_reply(permit.guest, request, body)


def _free(charge: Charge) -> Charged:
    """Return what becomes of a charge if nothing is counted."""
    n = len(charge.question.people)
    return Charged(np.zeros(n, dtype=bool), np.zeros(n, dtype=np.uint8))
