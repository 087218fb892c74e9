"""A TOML file that people fill in: its fields, one a line, and the texts that come back. Knows no field."""

from __future__ import annotations

from typing import Any

import tomli_w
from pydantic import TypeAdapter, ValidationError

from backend.data.bounded_text import parse_toml
from backend.data.label import Prose
from backend.errors import ParameterError
from backend.remark import Remark

_PROSE: TypeAdapter[str] = TypeAdapter(Prose)


def line(name: str, value: str | bool) -> str:
    """A field with what stands in it."""
    return tomli_w.dumps({name: value}, multiline_strings=True).strip()


def tables(text: str, start: str) -> dict[str, Any]:
    """What the file holds; raises ParameterError, which says what to `start` from, where it is no TOML."""
    try:
        return parse_toml("TOML", text.encode(), ParameterError)
    except ParameterError as error:
        problems = [*error.remarks, Remark("start_from_template", {"command": start})]
        raise ParameterError(problems=problems) from None


def prose(where: str, given: object) -> str:
    """A text without white space around it; raises ParameterError where it is none, or too long."""
    try:
        return _PROSE.validate_python(given, strict=True).strip()
    except ValidationError as error:
        why = error.errors(include_url=False)[0]["msg"]
        raise ParameterError(f"{where}: {why}. Give a text of at most 2,000 characters.") from None
