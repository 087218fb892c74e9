"""What the forms of files have in common: they do not change, and say so where a file has a key that they do not know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A frozen form without room for other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
