"""The policy of a model as people propose, approve and read it: the line that every door decides by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from backend.errors import ParameterError, SecurityError
from backend.i18n import wide
from backend.policy.bands import MARKS, TREATMENTS, MeasuredLine, Policy, Side, Treatments, line_kind, usual_policy
from backend.policy.frontier import Costs, LinePoint, at_line, frontier, most_profitable
from backend.policy.points import PointScale
from backend.remark import Remark
from backend.results import PARTS, SCORES, ModelRecord
from backend.services.audit import Auditor, Note, recorded
from backend.services.registry import Registry
from backend.services.workspace import Workspace
from backend.store.policies import PolicyVersion
from backend.store.reviews import NAME_MAX, REASON_MIN, TEXT_MAX

if TYPE_CHECKING:
    from backend.fairness.evidence import Evidence

__all__ = [
    "MARKS",
    "TREATMENTS",
    "Costs",
    "Frontier",
    "LinePoint",
    "PointScale",
    "Policy",
    "PolicyService",
    "PolicyStanding",
    "PolicyVersion",
    "Treatments",
    "at_line",
    "line_for",
    "line_kind",
    "most_profitable",
    "policy_of",
]

PROPOSAL = "policy-proposal"  # as the audit log calls it
APPROVAL = "policy-approval"
DEMO_POLICY = Policy(decline_at=0.5, refer_at=0.35, points=PointScale(600, 50.0, 20))
DEMO_OWNER = "Head of lending (demo)"
DEMO_APPROVER = "Risk committee (demo)"
DEMO_REASON = "The built-in demo shows bands and points; its people are synthetic."


@dataclass(frozen=True)
class PolicyStanding:
    """The policy of a model on a day.

    Attributes
    ----------
    policy : Policy
        The policy in force; the base rate if none was set.
    version : PolicyVersion or None
        The version that was set; None if none was.
    proposed : PolicyVersion or None
        The version that waits for a second person.
    warnings : tuple of Remark
        Warnings about the policy in force.
    """

    model_id: str
    policy: Policy
    version: PolicyVersion | None
    proposed: PolicyVersion | None
    warnings: tuple[Remark, ...]


@dataclass(frozen=True)
class Frontier:
    """What each line would mean, on some records.

    Attributes
    ----------
    part : str
        Of the data, of :data:`backend.results.PARTS`.
    people : int
    points : tuple of LinePoint
        Lowest cut-off first.
    """

    part: str
    people: int
    points: tuple[LinePoint, ...]


class PolicyService:
    """Keeps, proposes and approves the policies of models."""

    def __init__(self, workspace: Workspace, models: Registry, auditor: Auditor) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor

    def in_force(self, model_id: str, day: date | None = None) -> Policy:
        """Return the policy in force on a UTC day, by default today; the base rate if none was set."""
        return policy_of(self._workspace, self._models.get(model_id), day)

    def standing(self, model_id: str, day: date | None = None) -> PolicyStanding:
        """Return the policy of a model, who set it, and what is proposed."""
        record = self._models.get(model_id)
        stored = self._workspace.policies(record.federation)
        policy = policy_of(self._workspace, record, day)
        return PolicyStanding(
            record.id,
            policy,
            stored.in_force(record.id, day or _today()),
            stored.proposed(record.id),
            self.warnings(record.id, policy),
        )

    def warnings(self, model_id: str, policy: Policy) -> tuple[Remark, ...]:
        """Return what speaks against a policy although it can be used."""
        record = self._models.get(model_id)
        outputs = self._models.partial_model(record).outputs
        return policy.warnings(self._models.dither(record.id), logit=outputs.link == "logistic")

    def frontier(self, model_id: str, declines: Side = "above", costs: Costs | None = None) -> Frontier | None:
        """Return what each line would mean to people whose scores are stored; None if no scores of the model are.

        They are released scores of records that the model was not trained on, if there are any (:mod:`backend.services.model_card`).
        """
        record = self._models.get(model_id)
        stored = self._models.measured(record, SCORES)
        part = next((name for name in PARTS if name in stored), "")
        if not part:
            return None
        body = stored[part].rows[0]
        labels = np.array(body["labels"], dtype=np.float64)
        predicted = self._models.partial_model(record).outputs.predict(np.array(body["margins"], dtype=np.float64))
        values = predicted.max(axis=1)
        outcomes = labels
        if record.task == "classes":
            outcomes = (predicted.argmax(axis=1) != labels).astype(np.float64)
        points = frontier(values, outcomes, task=record.task, declines=declines, costs=costs)
        return Frontier(part, len(values), points)

    def by_group(self, model_id: str) -> Mapping[str, Sequence[Evidence]]:
        """Return feature → what was measured of decisions by its groups."""
        from backend.services.compliance import MeasuredEvidence  # noqa: PLC0415 - a decision needs no rule

        return MeasuredEvidence(self._models, self._models.get(model_id)).disparities

    def history(self, model_id: str) -> tuple[PolicyVersion, ...]:
        """Return every version that was proposed, oldest first."""
        record = self._models.get(model_id)
        return self._workspace.policies(record.federation).versions(record.id)

    @recorded(PROPOSAL)
    def propose(
        self,
        note: Note,
        model_id: str,
        policy: Policy,
        *,
        owner: str,
        reason: str,
        first_day: date | None = None,
        person: str = "",
    ) -> None:
        """Propose a policy; it holds once a second person has approved it and its first day has come.

        Parameters
        ----------
        owner : str
            Who answers for it.
        first_day : date
            UTC; default today.
        person : str
            Who proposes; default the actor.

        Raises
        ------
        ParameterError
            If the policy does not fit the model, or a name or the reason is missing.
        """
        record = self._models.get(model_id)
        person = _name(self._auditor.named(person) or self._auditor.person)
        owner = _name(owner or person)
        reason = _reason(reason)
        if policy.task != record.task:
            raise ParameterError("policy_of_other_task", task=policy.task, model_task=record.task)
        policy.check()
        today = _today()
        if first_day is not None and first_day < today:
            raise ParameterError("policy_starts_in_past", day=first_day, today=today)
        day = (first_day or today).isoformat()
        stored = self._workspace.policies(record.federation)
        note.about(record, **of_policy(policy), first_day=day, owner=owner, person=person)
        note.body["reason_sha256"] = sha256(reason.encode()).hexdigest()

        def keep() -> None:
            version = stored.propose(record.id, policy, owner=owner, reason=reason, first_day=day, person=person)
            note.body["policy"] = version.version

        note.keep = keep

    @recorded(APPROVAL)
    def approve(self, note: Note, model_id: str, *, version: int = 0, reason: str = "", person: str = "") -> None:
        """Approve the proposed policy as a second person.

        Parameters
        ----------
        version : int
            Which one; 0 = the one that waits.

        Raises
        ------
        ParameterError
            If nothing waits.
        SecurityError
            If the same person proposed the policy or owns it.
        """
        record = self._models.get(model_id)
        person = _name(self._auditor.named(person) or self._auditor.person)
        stored = self._workspace.policies(record.federation)
        waiting = stored.proposed(record.id)
        note.about(record, policy=version, person=person)
        if waiting is None or version not in (0, waiting.version):
            raise ParameterError("policy_does_not_wait", model=record.id, version=version)
        check_second_person(waiting, {person, self._auditor.person})
        note.body |= {**of_policy(waiting.policy), "first_day": waiting.first_day}

        def keep() -> None:
            stored.approve(record.id, waiting.version, person=person, note=reason.strip()[:TEXT_MAX])

        note.keep = keep

    def open_demo(self, model_id: str) -> None:
        """Give a demo's first model an approved policy, unless one was proposed."""
        record = self._models.get(model_id)
        if record.task == "binary" and not self._workspace.policies(record.federation).versions(record.id):
            self._set_for_demo(record)

    @recorded("state")
    def _set_for_demo(self, note: Note, record: ModelRecord) -> None:
        """The log says that the policy is the demo's, which no person approved."""
        note.about(record, **of_policy(DEMO_POLICY), because="demo")
        stored = self._workspace.policies(record.federation)

        def keep() -> None:
            version = stored.propose(
                record.id,
                DEMO_POLICY,
                owner=DEMO_OWNER,
                reason=DEMO_REASON,
                first_day=_today().isoformat(),
                person=DEMO_OWNER,
            )
            stored.approve(record.id, version.version, person=DEMO_APPROVER, note=DEMO_REASON)
            note.body["policy"] = version.version

        note.keep = keep


def policy_of(workspace: Workspace, record: ModelRecord, day: date | None = None) -> Policy:
    """Return the policy of a model in force on a UTC day, by default today; the base rate if none was set."""
    version = workspace.policies(record.federation).in_force(record.id, day or _today())
    if version is None:
        return usual_policy(record.task, record.positive_rate)
    return version.policy


def policy_version(workspace: Workspace, record: ModelRecord, version: int) -> Policy:
    """Return one version of a model's policy; the base rate for :data:`NOBODY_SET`."""
    for stored in workspace.policies(record.federation).versions(record.id):
        if stored.version == version:
            return stored.policy
    return usual_policy(record.task, record.positive_rate)


def line_for(workspace: Workspace, record: ModelRecord, cutoff: float | None = None) -> MeasuredLine:
    """Return the line that something is measured at: the cut-off given, which is a what-if, else the policy's line today.

    A model of another task than two outcomes has no such line; 0.5 stands for it.
    """
    policy = policy_of(workspace, record)
    if policy.task != "binary":
        return MeasuredLine(0.5 if cutoff is None else cutoff)
    if cutoff is None or cutoff == policy.cutoff:
        return MeasuredLine(policy.cutoff, policy.version)
    return MeasuredLine(cutoff)


def check_second_person(proposed: PolicyVersion, names: set[str]) -> None:
    """Raise SecurityError if one of the names is the person who proposed a policy or owns it."""
    approvers = {name.casefold() for name in names if name}
    for name in (proposed.proposed_by, proposed.owner):
        if name.casefold() in approvers:
            raise SecurityError("policy_needs_second_person", name=name, version=proposed.version)


def of_policy(policy: Policy) -> dict[str, Any]:
    """Return what the audit log says of a policy."""
    stated: dict[str, Any] = {"policy": policy.version, "decline_at": policy.decline_at, "refer_at": policy.refer_at}
    if policy.points is not None:
        scale = policy.points
        stated["points"] = [scale.base_points, scale.base_odds, scale.double]
    stated["treatments"] = {mark: policy.treatments.of(mark) for mark in MARKS}
    return stated


def _today() -> date:
    return datetime.now(UTC).date()


def _name(person: str) -> str:
    person = person.strip()
    if not 1 <= len(person) <= NAME_MAX or not person.isprintable():
        raise ParameterError("policy_without_name", most=NAME_MAX, letters=len(person))
    return person


def _reason(reason: str) -> str:
    reason = reason.strip()
    if wide(reason) < REASON_MIN or len(reason) > TEXT_MAX:
        raise ParameterError("policy_without_reason", least=REASON_MIN, most=TEXT_MAX, letters=len(reason))
    return reason
