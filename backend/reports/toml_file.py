"""A TOML file that people fill in: its fields, one a line, and the texts that come back. Knows no field."""

from __future__ import annotations

from typing import Any

import tomli_w

from backend.data.bounded_text import parse_toml
from backend.data.dictionary import check_shown
from backend.data.strict_model import FieldError
from backend.errors import ParameterError
from backend.remark import Remark

MAX_TEXT = 2_000  # characters of a text that people fill in


def line(name: str, value: str | bool) -> str:
    """Return a field with its value."""
    return tomli_w.dumps({name: value}, multiline_strings=True).strip()


def tables(text: str, start: str) -> dict[str, Any]:
    """Return what the file holds; raises ParameterError, which says what to `start` from, if it is not TOML."""
    try:
        return parse_toml("TOML", text.encode(), ParameterError)
    except ParameterError as error:
        problems = [*error.remarks, Remark("start_from_template", {"command": start})]
        raise ParameterError(problems=problems) from None


def prose(where: str, value: object) -> str:
    """Return a text without white space around it.

    Raises
    ------
    ParameterError
        If it is not a text that pages can show, or too long.
    """
    why = None
    if not isinstance(value, str):
        raise ParameterError("form_text_does_not_fit", where=where, why=Remark("expected_text"))
    if len(value) > MAX_TEXT:
        why = Remark("expected_letters", {"limit": MAX_TEXT})
    try:
        check_shown(value.replace("\n", " "))
    except FieldError as error:
        why = error.remark
    if why is not None:
        raise ParameterError("form_text_does_not_fit", where=where, why=why)
    return value.strip()
