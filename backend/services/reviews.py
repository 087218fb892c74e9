"""Decisions of people about a model's findings."""

from __future__ import annotations

from backend.errors import ParameterError
from backend.services.audit import Auditor, Note, recorded
from backend.services.compliance import Compliance, Finding, Question
from backend.services.registry import Registry
from backend.services.workspace import Workspace
from backend.store.reviews import Review, ReviewVerdict


class ReviewService:
    """Keeps decisions; nothing that was decided is lost."""

    def __init__(self, workspace: Workspace, models: Registry, auditor: Auditor, compliance: Compliance) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._compliance = compliance

    @recorded("override")
    def decide(
        self, note: Note, model_id: str, rule: str, feature: str, verdict: ReviewVerdict, reason: str, person: str
    ) -> Review:
        """Confirm or override a finding, or answer a question with yes (confirm) or no (override), with a reason; what was decided
        before is kept.

        Raises
        ------
        ParameterError
            The model has no such finding or question, or a field is not usable.
        SecurityError
            The model's maker was to override a finding, or a signed-in user gave another name.
        """
        record = self._models.get(model_id)
        person = self._auditor.named(person)
        if verdict == "overridden":
            maker = self._workspace.model_states(record.federation).of(record.id).maker
            self._auditor.stand_apart(person, maker)
        report = self._compliance.assess(record.id)
        question = next((q for q in report.questions if (q.about, q.feature) == (rule, feature)), None)
        if question is None and not any((f.rule_id, f.feature) == (rule, feature) for f in report.findings):
            raise ParameterError("unknown_finding", model=record.id, rule=rule, feature=feature)
        reviews = self._workspace.reviews(record.federation)
        if question:
            about = question.description
        else:
            about = record.content_hash
        review = reviews.review(about, rule, feature, verdict, reason, person)
        note.about(record, rule=rule, feature=feature, verdict=verdict, number=review.number, person=review.person)
        return review

    def history(self, model_id: str) -> tuple[Review, ...]:
        """Return every decision about the model's findings, oldest first."""
        record = self._models.get(model_id)
        return self._workspace.reviews(record.federation).history(record.content_hash)

    def undecided(self, model_id: str) -> tuple[Finding, ...]:
        """Return the model's undecided findings, worst first."""
        record = self._models.get(model_id)
        standing = self._workspace.reviews(record.federation).standing(record.content_hash)
        findings = self._compliance.assess(record.id).findings
        return tuple(finding for finding in findings if (finding.rule_id, finding.feature) not in standing)

    def unanswered(self, model_id: str) -> tuple[Question, ...]:
        """Return the unanswered questions about the model's features, worst first."""
        return self._compliance.assess(model_id).unanswered
