"""Problems of a data file in plain words: which field, what was found, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from backend.data.csv_file import shown

SLUG_FORM = r"^[a-z][a-z0-9_]{0,30}$"
SLUG = "a small letter, then small letters, digits or underscores, 31 at most"


def sentences(
    file: str, model: type[BaseModel], data: object, line_of: Callable[[Sequence[int | str]], int] | None = None
) -> list[str]:
    """Check `data` against `model` and return one sentence per problem, each starting with file, line and field.

    Parameters
    ----------
    file : str
        As problems name it.
    line_of : function of a field's path to its line, optional
    """
    try:
        model.model_validate(data)
    except ValidationError as error:
        return [
            _sentence(f"{file}, line {line_of(detail['loc'])}" if line_of else file, data, detail)
            for detail in error.errors(include_url=False)
        ]
    return []


def _sentence(file: str, data: object, detail: ErrorDetails) -> str:
    where = ", ".join([file, *_path(data, detail["loc"])])
    kind = detail["type"]
    context = detail.get("ctx", {})
    if kind == "missing":
        return f"{where}: found nothing, expected a value. Add it."
    if kind == "extra_forbidden":
        return f"{where}: found an unknown key. Correct its spelling or delete it."
    if kind == "string_pattern_mismatch" and context["pattern"] == SLUG_FORM:
        return f"{where}: found {_value(detail['input'])}, expected {SLUG}. Rename it."
    return f"{where}: found {_value(detail['input'])}, expected {_expected(kind, context)}. Correct it."


def _expected(kind: str, context: Mapping[str, Any]) -> str:
    """What a field may hold, by the kind of the problem."""
    fixed = {
        "string_type": "text in quotation marks",
        "bool_type": "true or false",
        "bool_parsing": "true or false",
        "tuple_type": "a list",
        "dict_type": "a table",
        "model_type": "a table",
        "model_attributes_type": "a table",
        "date_type": "a date",
        "date_parsing": "a date (year-month-day)",
        "date_from_datetime_parsing": "a date (year-month-day)",
        "greater_than": f"a number above {context.get('gt')}",
        "greater_than_equal": f"a number from {context.get('ge')} on",
        "less_than": f"a number below {context.get('lt')}",
        "less_than_equal": f"a number up to {context.get('le')}",
    }
    if kind in fixed:
        return fixed[kind]
    if kind in {"enum", "literal_error"}:
        return f"one of {context['expected']}"
    if kind in {"string_too_short", "too_short"}:
        return "something" if context["min_length"] == 1 else f"at least {context['min_length']}"
    if kind == "string_too_long":
        return f"at most {context['max_length']} characters"
    if kind == "value_error":
        return str(context["error"])
    return f"text of the form {context['pattern']}" if kind == "string_pattern_mismatch" else "another kind of value"


def _path(data: object, location: Sequence[int | str]) -> list[str]:
    """The field's path; an entry of a list goes by its name, or by its number from 1."""
    words: list[str] = []
    for step in location:
        if isinstance(step, int):
            entry = data[step] if isinstance(data, list | tuple) and step < len(data) else None
            name = (entry.get("name") or entry.get("id")) if isinstance(entry, Mapping) else None
            label = shown(name) if isinstance(name, str) and name else f"entry {step + 1}"
            words[-1:] = [f"{words[-1]} {label}"] if words else [label]
            data = entry
        else:
            words.append(step)
            data = data.get(step) if isinstance(data, Mapping) else None
    return words


def _value(found: object) -> str:
    if isinstance(found, str):
        return shown(found) if found else "an empty text"
    if isinstance(found, Mapping):
        return "a table"
    if isinstance(found, list | tuple):
        return "a list"
    if isinstance(found, bool):
        return str(found).lower()
    return shown(str(found)).strip("'")
