"""A Host's side of approvals: what a Guest asks its operator for, and what it gets. Knows no score and no weight.

Whatever reads a record asks again at the gate (:mod:`backend.protocols.terms.approvals`).
"""

from __future__ import annotations

from dataclasses import dataclass

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
from backend.protocols.host_state import Answer, Handlers, HostModels, HostSession, HostSessions
from backend.protocols.terms.approvals import Approvals, about_model, about_training
from backend.protocols.terms.prices import TableFacts
from backend.store.approvals import GRANTED


@dataclass(frozen=True, repr=False)
class ApprovalRequests:
    """Answers what a Guest asks a Host's operator for.

    Attributes
    ----------
    approvals : Approvals, optional
        None = this Host asks nobody.
    facts : TableFacts
        What prices depend on.
    """

    approvals: Approvals | None
    partial_models: HostModels
    sessions: HostSessions
    facts: TableFacts

    def handlers(self) -> Handlers:
        """Return who answers which kind of message."""
        return {AskTraining: self._ask_training, AskApproval: self._ask_approval}

    def note_model(self, session: HostSession, model_id: str) -> None:
        """Allow scores with the model that a training has made, if the operator allowed them together with the training."""
        training = session.kept(AskTraining)
        if self.approvals is None or training is None or self.partial_models.sealed(model_id) is not None:
            return
        served = self.partial_models.find(model_id)
        if served is None:
            return  # a Host without a split is never asked for scores
        grant, error = self.approvals.decide(about_training(session.guest, training, self.facts))
        if error is None and grant.state == GRANTED:
            self.approvals.grant_scores(grant, about_model(session.guest, SCORING, model_id, served, 0))

    def _ask_training(self, sender: str, message: AskTraining) -> Answer:
        session = self.sessions.of(message.conversation, sender)
        session.keep(AskTraining, message)
        if self.approvals is None:
            yield sender, ApprovalGranted(message.conversation, "", sender, 0, TRAINING, message.algorithm)
            return
        approval = self.approvals.ask(about_training(session.guest, message, self.facts))
        yield sender, self.approvals.answer(approval, message.conversation, message.algorithm)

    def _ask_approval(self, sender: str, message: AskApproval) -> Answer:
        session = self.sessions.of(message.conversation, sender)
        if message.purpose not in (SCORING, REASONS, *MEASURES):
            raise SecurityError("unknown_purpose", purpose=message.purpose, known=(SCORING, REASONS, *MEASURES))
        if self.approvals is None:
            yield sender, ApprovalGranted(message.conversation, "", sender, 0, message.purpose, message.model_id)
            return
        if self.partial_models.sealed(message.model_id) is not None:
            raise SecurityError("model_sealed", model=message.model_id)
        served = self.partial_models.get(message.model_id)
        if session.guest != served.model.guest:
            raise SecurityError("model_of_another_guest")
        approval = self.approvals.ask(
            about_model(
                session.guest,
                message.purpose,
                message.model_id,
                served,
                max(0, message.rows),
                (message.named, message.most_named),
                imported=not self.partial_models.grew(message.model_id),
            )
        )
        # A model that was allowed under another name is the same model.
        yield sender, self.approvals.answer(approval, message.conversation, message.model_id)
