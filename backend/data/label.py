"""The prediction target of a federation: one of two outcomes, one of several classes, or an amount."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from backend.data.dictionary import Bilingual, Meaning, Shown, Unit, check_shown, limited
from backend.data.strict_model import FieldError, StrictModel
from backend.i18n import Text

# two outcomes are the task "binary"
MIN_CLASSES = 3
MAX_CLASSES = 32

Task = Literal["binary", "classes", "number"]


def _paragraphs(text: str) -> str:
    check_shown(text.replace("\n", " "))
    return text


Line = Annotated[Shown, StringConstraints(min_length=1, max_length=200)]
Prose = Annotated[str, StringConstraints(max_length=2000), AfterValidator(_paragraphs)]
Title = Annotated[Bilingual, limited(200, 1)]
Paragraphs = Annotated[Bilingual, limited(2000, paragraphs=True)]
Cell = Annotated[str, StringConstraints(max_length=200), Field(coerce_numbers_to_str=True)]


class Label(StrictModel):
    """The target of a model: a column of the Guest's file and how its cells are read.

    Attributes
    ----------
    task : {"binary", "classes", "number"}
        One of two outcomes, one of several classes, or an amount.
    positive : str
        Binary only, and needed there: the cell text that counts as 1.
    classes : tuple of str
        Classes only, and needed there: 3 to 32 cell texts; a class's index is its number.
    unit : Text
        Numbers only: the unit of the amount; empty if it has none.
    meaning : Text
        What the label (binary: the positive one) means for a person.
    """

    column: Line
    task: Task = "binary"
    positive: Annotated[Cell, Field(validate_default=True)] = ""
    classes: Annotated[tuple[Cell, ...], Field(validate_default=True)] = ()
    unit: Unit = Text()
    meaning: Meaning

    @field_validator("positive", "classes", "unit")
    @classmethod
    def _fits_the_task(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse fields of another task and missing fields of this one; an unreadable task is reported alone."""
        task = info.data.get("task")
        owner = {"positive": "binary", "classes": "classes", "unit": "number"}[str(info.field_name)]
        if value and task not in (owner, None):
            raise FieldError("expected_nothing_of_other_task", owner=owner, task=str(task))
        if not value and task == owner == "binary":
            raise FieldError("expected_positive_text")
        if task == owner == "classes" and not (
            MIN_CLASSES <= len(value) <= MAX_CLASSES and all(value) and len(set(value)) == len(value)
        ):
            raise FieldError("expected_class_texts", least=MIN_CLASSES, limit=MAX_CLASSES)
        return value
