"""A Host's side of approvals: nothing that reads a record is answered before its operator has allowed it. Knows no score and no weight.

Before each question the gate looks into the Host's own store, so that a grant that ends or is withdrawn ends at the next message. What
counts is who opened the conversation (as the link proves), the purpose, and the structure of the trees, whatever the model is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from backend.crypto.signing import statement
from backend.data.federation import MEASURES
from backend.errors import SecurityError
from backend.protocols.approvals.messages import (
    REASONS,
    SCORING,
    TRAINING,
    ApprovalGranted,
    AskApproval,
    AskTraining,
)
from backend.protocols.baselines.messages import AskCandidates, StartWalk
from backend.protocols.host_state import Answer, Handlers, HostModels, HostSession, HostSessions
from backend.protocols.scoring.permuted_values_host import OtherValues
from backend.protocols.terms.approvals import Approvals, about_model, about_training
from backend.protocols.terms.prices import TableFacts
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import ApprovalPending
from backend.store.approvals import GRANTED, WAITING, Approval

PURPOSE_OF: dict[type[Message], str] = {
    StartWalk: "comparisons",
    AskCandidates: "comparisons",
}
"""Question about a model → what it is for, where the conversation states nothing else."""
SIMULATED_ALONE = (StartWalk, AskCandidates)  # a real Host refuses them whoever asks


@dataclass(frozen=True, repr=False)
class ApprovalGate:
    """Stands before a Host's handlers.

    Attributes
    ----------
    approvals : Approvals, optional
        None = this Host asks nobody.
    facts : TableFacts
        What prices depend on.
    counts : bool
        Whether questions are counted, so that one which is repeated under its name can be told from a new one.
    sums : bool
        Whether its operator decides about sums by group, too.
    """

    approvals: Approvals | None
    partial_models: HostModels
    sessions: HostSessions
    facts: TableFacts
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
            The operator has denied or withdrawn it, or its volume is reached.
        """
        if self.approvals is None:
            return None
        if type(message) in PURPOSE_OF:
            return self._hold_question(self.approvals, sender, session or HostSession(sender), message)
        return None

    def _hold_question(
        self, approvals: Approvals, sender: str, session: HostSession, message: Any
    ) -> ApprovalPending | None:
        # the simulation's own measuring, and people whose values the user typed in
        counts = session.played is None and message.conversation not in self.sessions.uncounted
        if not counts or (isinstance(message, SIMULATED_ALONE) and not self.simulated):
            return None
        served = self.partial_models.get(message.model_id)
        if session.guest != served.model.guest or sender != session.guest:
            return None  # refused by its handler; nobody else's word makes a request or uses a volume
        purpose = session.purpose or PURPOSE_OF[type(message)]
        rows, repeatable = len(message.ids), session.kept(OtherValues) is None
        wanted = about_model(session.guest, purpose, message.model_id, served, rows)
        found = approvals.ask(wanted, rows, self._named(session.guest, message) if repeatable else None)
        return ApprovalPending(message.conversation, found.number, found.asked) if found.state == WAITING else None

    def note_model(self, session: HostSession, model_id: str) -> None:
        """Allow scores with the model that a training has made, if the operator allowed them together with the training."""
        training = session.kept(AskTraining)
        if self.approvals is None or training is None:
            return
        served = self.partial_models.find(model_id)
        if served is None:
            return  # a Host without a split is never asked for scores
        grant, error = self.approvals.decide(about_training(session.guest, training, self.facts))
        if error is None and grant.state == GRANTED:
            self.approvals.grant_scores(grant, about_model(session.guest, SCORING, model_id, served, 0))

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
        session.keep(AskTraining, asked)
        if self.approvals is None:
            yield sender, ApprovalGranted(asked.conversation, "", sender, 0, TRAINING, asked.algorithm)
            return
        found = self.approvals.ask(about_training(session.guest, asked, self.facts))
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
            about_model(
                session.guest,
                asked.purpose,
                asked.model_id,
                served,
                max(0, asked.rows),
                (asked.named, asked.most_named),
            )
        )
        # what was allowed under another name is the same model
        yield sender, self.approvals.answer(found, asked.conversation, asked.model_id)
