"""Names of models, the people who answer for them, and their steps from draft to retirement.

A step is kept for good; the last step gives the state. Knows the order of states; the services know who may take a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.errors import ModelError, ParameterError
from backend.remark import Remark
from backend.store.database import Database, timestamp
from backend.store.reviews import NAME_MAX, TEXT_MAX
from backend.store.schema import ModelState, ModelStep, State

DRAFT: State = "draft"
IN_USE: State = "in_use"
APPROVED: State = "approved"
STATES: tuple[State, ...] = ("draft", "in_review", "approved", "in_use", "retired")


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a model has come.

    Attributes
    ----------
    approval : ModelStep or None
        The current approval; None for a draft, a model in review, and a demo without an approval.
    """

    model: ModelState
    approval: ModelStep | None

    @property
    def said(self) -> str:
        """Return its state, or ``in_use_demo`` if it is in use without an approval."""
        if self.model.state == IN_USE and self.approval is None:
            return "in_use_demo"
        return self.model.state


class ModelStates:
    """Names and states of one Guest's models."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, model_id: str, maker: str) -> None:
        """Add a new model as a draft of its maker; an existing one stays as it is."""
        with self._database.write() as session:
            if session.get(ModelState, model_id) is None:
                session.add(ModelState(model_id=model_id, name="", note="", owner=maker, maker=maker, state=DRAFT))

    def all(self) -> dict[str, ModelState]:
        """Model → its name and state."""
        return dict(self._kept()[0])

    def of(self, model_id: str) -> ModelState:
        """One model; raises ModelError if it is unknown here."""
        return _known(self._kept()[0], model_id)

    def steps(self, model_id: str = "") -> tuple[ModelStep, ...]:
        """Return every step of a model, or of all, oldest first."""
        return tuple(step for step in self._kept()[1] if not model_id or step.model_id == model_id)

    def _kept(self) -> tuple[dict[str, ModelState], tuple[ModelStep, ...]]:
        return self._database.kept("states", _states_and_steps)

    def standing(self, model_id: str) -> Standing:
        """Return a model and its current approval; raise ModelError if it is unknown here."""
        states, steps = self._kept()  # as of one moment
        model = _known(states, model_id)
        approval = None
        for step in steps:
            if step.model_id != model_id:
                continue
            if (step.before, step.after) == ("in_review", APPROVED):
                approval = step
            elif step.after == DRAFT:
                approval = None
        return Standing(model, approval)

    def describe(self, model_id: str, fields: Mapping[str, str]) -> ModelState:
        """Change a model's name, note, owner, places or product.

        Raises ParameterError if one is too long, a name has several lines, or another model has this name.
        """
        texts = {name: _text(name, text) for name, text in fields.items()}
        with self._database.write() as session:
            model_of_name = {row.name.casefold(): row.model_id for row in self.all().values() if row.name}
            holder = model_of_name.get(texts.get("name", "").casefold(), model_id)
            if holder != model_id:
                raise ParameterError("model_name_taken", name=texts["name"], model=holder)
            row = session.get_one(ModelState, model_id)
            for name, text in texts.items():
                setattr(row, name, text)
            session.flush()
            return row

    def step(
        self, model_id: str, old_state: State, new_state: State, *, person: str, role: str, reason: str = ""
    ) -> ModelStep:
        """Take a model from one state to the next; the one that it replaces in use goes back to the state that it came from.

        Raises ParameterError if the model is in another state by now.
        """
        with self._database.write():
            state = self.of(model_id).state
            if state != old_state:
                raise ParameterError(
                    "model_state_changed",
                    model=model_id,
                    got=Remark(f"state_{state}"),
                    expected=Remark(f"state_{old_state}"),
                )
            former = self.in_use() if new_state == IN_USE else None
            if former is not None:
                came = next(step.before for step in reversed(self.steps(former)) if step.after == IN_USE)
                self._write(former, IN_USE, came, f"replaced by {model_id}", person, role)
            return self._write(model_id, old_state, new_state, reason, person, role)

    def in_use(self) -> str | None:
        """Id of the model that is in use."""
        return next((model for model, state in self._kept()[0].items() if state.state == IN_USE), None)

    def _write(
        self, model_id: str, old_state: State, new_state: State, reason: str, person: str, role: str
    ) -> ModelStep:
        with self._database.write() as session:
            session.get_one(ModelState, model_id).state = new_state
            row = ModelStep(
                model_id=model_id,
                before=old_state,
                after=new_state,
                reason=reason,
                person=person,
                role=role,
                time=timestamp(),
            )
            session.add(row)
            session.flush()
            return row


def words(state: State) -> str:
    """Return a state as it is said."""
    return state.replace("_", " ")


def _text(what: str, text: str) -> str:
    text = text.strip()
    limit = TEXT_MAX if what == "note" else NAME_MAX
    if len(text) > limit or (what != "note" and not text.isprintable()):
        raise ParameterError("model_field_too_long", field=Remark(f"model_field_{what}"), limit=limit, n=len(text))
    return text


def _states_and_steps(session: Session) -> tuple[dict[str, ModelState], tuple[ModelStep, ...]]:
    states = {row.model_id: row for row in session.scalars(select(ModelState))}
    steps = session.scalars(select(ModelStep).order_by(ModelStep.number))
    return states, tuple(steps)


def _known(states: Mapping[str, ModelState], model_id: str) -> ModelState:
    if model_id not in states:
        raise ModelError("model_not_stored", model=model_id)
    return states[model_id]
