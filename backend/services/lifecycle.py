"""What models are called, and their way from draft to retirement: who takes a step, what the step needs, what the log stores.

Without a sign-in, roles and names are as the user gave them (docs/decisions/who-decides.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from backend.data.federation import PLACES, PRODUCTS
from backend.errors import ParameterError, SecurityError
from backend.i18n import Text, catalogue, wide
from backend.results import ModelRecord
from backend.services.audit import Auditor, Note, recorded
from backend.services.policies import PolicyService, check_second_person, of_policy
from backend.services.registry import Registry
from backend.services.reviews import ReviewService
from backend.services.roles import ANALYST, OPERATOR, REGULATOR, TITLES, titles_of
from backend.services.workspace import Workspace
from backend.store.model_states import APPROVED, DRAFT, IN_USE, Standing, words
from backend.store.reviews import NAME_MAX, REASON_MIN, TEXT_MAX
from backend.store.schema import ModelState, ModelStep, State

__all__ = ["STEPS", "Lifecycle", "ModelState", "ModelStep", "NextStep", "Standing"]

PARTS = {
    "trained": Text("trained", "训练了"),
    "owns": Text("owns", "负责"),
    "submitted": Text("submitted", "提交了"),
}  # roles of a person who may therefore not approve the model
DEMO_REASON = "The built-in demo opens on it: synthetic people, put in use without a review."


@dataclass(frozen=True)
class Transition:
    """A step that a model can take.

    Attributes
    ----------
    from_states : tuple of str
        States that it leads out of.
    roles : tuple of str
        Whose it is.
    reason : bool
        Whether it needs one in any case.
    """

    from_states: tuple[State, ...]
    to_state: State
    roles: tuple[str, ...]
    reason: bool = False


STEPS: Mapping[str, Transition] = {
    "submit": Transition((DRAFT,), "in_review", (OPERATOR, ANALYST)),
    "approve": Transition(("in_review",), APPROVED, (REGULATOR,)),
    "use": Transition((APPROVED,), IN_USE, (OPERATOR,)),
    "return": Transition(("in_review", APPROVED, IN_USE), DRAFT, (REGULATOR,), reason=True),
    "retire": Transition((DRAFT, "in_review", APPROVED, IN_USE), "retired", (OPERATOR,), reason=True),
}


@dataclass(frozen=True)
class NextStep:
    """A step that leads out of a model's state.

    Attributes
    ----------
    name : str
        Of :data:`STEPS`.
    roles : tuple of str
        Whose it is.
    mine : bool
        Whether the role that asks is one of them.
    reason : bool
        Whether it needs one.
    undecided : int
        Open findings and questions, if they are why it needs one.
    replaces : str
        Id of the model in use that this one would replace.
    """

    name: str
    roles: tuple[str, ...]
    mine: bool
    reason: bool
    undecided: int = 0
    replaces: str = ""


class Lifecycle:
    """Names and states of models."""

    def __init__(
        self,
        workspace: Workspace,
        models: Registry,
        auditor: Auditor,
        reviews: ReviewService,
        policies: PolicyService,
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._reviews = reviews
        self._policies = policies

    def standing(self, model_id: str) -> Standing:
        """One model, and the approval that it has."""
        record = self._models.get(model_id)
        return self._workspace.model_states(record.federation).standing(record.id)

    def history(self, model_id: str) -> tuple[ModelStep, ...]:
        """Return every step of a model, oldest first."""
        record = self._models.get(model_id)
        return self._workspace.model_states(record.federation).steps(record.id)

    def offers(self, model_id: str) -> tuple[NextStep, ...]:
        """Return the steps that lead out of the model's state, each with what it needs."""
        record = self._models.get(model_id)
        states = self._workspace.model_states(record.federation)
        state = states.of(record.id).state
        undecided = self._undecided(record)
        model_in_use = states.in_use()
        offered = []
        for name, step in STEPS.items():
            if state not in step.from_states:
                continue
            open_points = undecided if name == "approve" else 0
            replaced = model_in_use if name == "use" else None
            offered.append(
                NextStep(
                    name,
                    step.roles,
                    mine=self._auditor.role in step.roles,
                    reason=step.reason or open_points > 0,
                    undecided=open_points,
                    replaces=replaced or "",
                )
            )
        return tuple(offered)

    @recorded("describe")
    def describe(
        self,
        note: Note,
        model_id: str,
        *,
        name: str | None = None,
        text: str | None = None,
        owner: str | None = None,
        places: Sequence[str] | None = None,
        product: str | None = None,
    ) -> None:
        """Give a model a name, a note (`text`), an owner, or places and a product of its own; None leaves one as it is.

        Without places or a product the federation's are applied: by them law is chosen.

        Raises
        ------
        ParameterError
            Another model has the name, one is too long, or a place or the product is unknown.
        """
        record = self._models.get(model_id)
        for what, requested, choices in (
            ("place", places or (), PLACES),
            ("product", [product] if product else (), PRODUCTS),
        ):
            unknown = [choice for choice in requested if choice not in choices]
            if unknown:
                raise ParameterError("unknown_choice", option=what, value=unknown[0], choices=choices)
        if places is None:
            joined = None
        else:
            joined = ",".join(dict.fromkeys(places))
        arguments = {"name": name, "note": text, "owner": owner, "places": joined, "product": product}
        fields = {field: value for field, value in arguments.items() if value is not None}
        # names are for people who read the log; a note may be long, and says nothing of what was done
        changes = {f"model_{field}": value.strip()[:NAME_MAX] for field, value in fields.items() if field != "note"}
        note.about(record, changed=sorted(fields), **changes)

        def keep() -> None:
            self._workspace.model_states(record.federation).describe(record.id, fields)

        note.keep = keep

    @recorded("state")
    def step(self, note: Note, model_id: str, step: str, *, person: str = "", reason: str = "") -> None:
        """Take a model one step further.

        Parameters
        ----------
        step : str
            Of :data:`STEPS`.
        person : str
            Whose step it is; default the actor.
        reason : str
            Needed to return or retire a model, and to approve one with open findings or questions.

        Raises
        ------
        SecurityError
            It is another role's step, a person who trained, owns or submitted the model was to approve it, or a signed-in user gave
            another name.
        ParameterError
            The step is not possible from here, or a name or a reason is missing.
        """
        if step not in STEPS:
            raise ParameterError("unknown_step", step=step, known=tuple(STEPS))
        record = self._models.get(model_id)
        transition = STEPS[step]
        states = self._workspace.model_states(record.federation)
        role = self._auditor.role
        old_state = states.of(record.id)
        person = _named(self._auditor.named(person) or self._auditor.person)
        note.about(record, step=step, before=old_state.state, after=transition.to_state, person=person)
        if old_state.state not in transition.from_states:
            raise ParameterError(
                "step_from_other_state",
                model=record.id,
                step=step,
                state=title_of(old_state.state),
                expected=tuple(title_of(state) for state in transition.from_states),
            )
        if role not in transition.roles:
            raise SecurityError("step_of_other_role", step=step, roles=titles_of(transition.roles), role=TITLES[role])
        if step == "approve":
            undecided = self._undecided(record)
        else:
            undecided = 0
        policies = self._workspace.policies(record.federation)
        if step == "approve":
            proposed = policies.proposed(record.id)
        else:
            proposed = None
        if step == "approve":
            _check_approver(person, self._auditor.person, old_state, states.steps(record.id))
        if proposed is not None:
            # The line is approved with the model: the second person has read both.
            check_second_person(proposed, {person, self._auditor.person})
            note.body |= of_policy(proposed.policy)
        reason = _reason(reason, step, transition.reason, undecided)
        note.body |= {"undecided": undecided} if undecided else {}
        note.body |= {"reason_sha256": sha256(reason.encode()).hexdigest()} if reason else {}
        if transition.to_state == IN_USE and (former := states.in_use()):
            note.body["replaces"] = former

        def keep() -> None:
            states.step(record.id, old_state.state, transition.to_state, person=person, role=role, reason=reason)
            if proposed is not None:
                policies.approve(record.id, proposed.version, person=person, note=reason)

        note.keep = keep

    def _undecided(self, record: ModelRecord) -> int:
        """Return the number of open findings and questions."""
        return len(self._reviews.undecided(record.id)) + len(self._reviews.unanswered(record.id))

    def open_demo(self, federation: str) -> None:
        """Name a demo's first model and put it in use without a review, unless a user took a step with any: pages open on it."""
        states = self._workspace.model_states(federation)
        if not states.steps():
            first = self._models.all(federation)[-1]
            if not states.of(first.id).name:
                self.describe(first.id, name=catalogue("en")["document.demo_name"])
            self._use_as_demo(first)
            self._policies.open_demo(first.id)

    @recorded("state")
    def _use_as_demo(self, note: Note, record: ModelRecord) -> None:
        """Put a model in use; the log says that it was not reviewed."""
        note.about(record, step="use", before=DRAFT, after=IN_USE, because="demo")
        states = self._workspace.model_states(record.federation)
        by = self._auditor

        def keep() -> None:
            states.step(record.id, DRAFT, IN_USE, person=by.actor, role=by.role, reason=DEMO_REASON)

        note.keep = keep


def title_of(state: State) -> Text:
    """Return what a state is called in both languages."""
    return Text(words(state), catalogue("zh")[f"states.{state}"])


def _named(person: str) -> str:
    person = person.strip()
    if not 1 <= len(person) <= NAME_MAX or not person.isprintable():
        raise ParameterError("step_without_name", most=NAME_MAX, letters=len(person))
    return person


def _reason(reason: str, step: str, required: bool, undecided: int) -> str:
    """Return the reason without surrounding white space; raises if one is missing."""
    reason = reason.strip()
    if (required or undecided or reason) and (wide(reason) < REASON_MIN or len(reason) > TEXT_MAX):
        if undecided:
            raise ParameterError(
                "approved_undecided_without_reason",
                undecided=undecided,
                step=step,
                least=REASON_MIN,
                most=TEXT_MAX,
                letters=len(reason),
            )
        raise ParameterError("step_without_reason", step=step, least=REASON_MIN, most=TEXT_MAX, letters=len(reason))
    return reason


def _check_approver(person: str, actor: str, model: ModelState, steps: Sequence[ModelStep]) -> None:
    """Raise SecurityError if the approver had a part in the model."""
    submitted = [step.person for step in steps if step.after == "in_review"]
    parts = {"trained": model.maker, "owns": model.owner, "submitted": submitted[-1]}
    names = {name.casefold() for name in (person, actor) if name}
    for part, name in parts.items():
        if name and name.casefold() in names:
            raise SecurityError("approver_had_part", name=name, part=PARTS[part], model=model.model_id)
