"""The common base of file forms: they are immutable, and refuse unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from backend.remark import Remark


class StrictModel(BaseModel):
    """A frozen form without room for other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FieldError(ValueError):
    """A validator of a form refuses a value; says what it expected as a remark.

    Parameters
    ----------
    code : str
        Of what the field may hold, as "expected {…}" continues.
    """

    def __init__(self, code: str, **values: object) -> None:
        self.remark = Remark(code, values)
        super().__init__(self.remark.sentence())
