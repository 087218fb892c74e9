"""Problems of a data file's fields: which field, what was found, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from backend.data.csv_file import shown
from backend.data.strict_model import FieldError
from backend.remark import Remark

SLUG_FORM = r"^[a-z][a-z0-9_]{0,30}$"
_EXPECTED = {  # kind of the problem → code of what the field may hold
    "string_type": "expected_text",
    "dataclass_type": "expected_two_languages",
    "bool_type": "expected_true_or_false",
    "bool_parsing": "expected_true_or_false",
    "tuple_type": "expected_list",
    "list_type": "expected_list",
    "dict_type": "expected_table",
    "model_type": "expected_table",
    "model_attributes_type": "expected_table",
    "date_type": "expected_date",
    "date_parsing": "expected_date",
    "date_from_datetime_parsing": "expected_date",
}
_BOUNDS = {  # kind of the problem → code, and the name of the bound
    "greater_than": ("expected_above", "gt"),
    "greater_than_equal": ("expected_from", "ge"),
    "less_than": ("expected_below", "lt"),
    "less_than_equal": ("expected_up_to", "le"),
}


def field_problems(
    file: str,
    model: type[BaseModel],
    data: object,
    at: Sequence[str] = (),
    line: int = 0,
    line_of: Callable[[Sequence[int | str]], int] | None = None,
) -> list[Remark]:
    """Check `data` against `model` and return a problem for each field that does not fit.

    Parameters
    ----------
    file : str
        Its name in problems.
    at : sequence of str
        The way to `data` within the file.
    line : int
        On which `data` is; 0 if it is not on one line.
    line_of : function of a field's path to its line, optional
    """
    try:
        model.model_validate(data)
    except ValidationError as error:
        problems = []
        for detail in error.errors(include_url=False):
            field_line = line_of(detail["loc"]) if line_of else line
            where = place(file, field_line, [*at, *_path(data, detail["loc"])])
            problems.append(_problem(where, detail))
        return problems
    return []


def place(file: str, line: int = 0, path: Sequence[str] = ()) -> str | Remark:
    """Return a place in a file, as a value of a problem; line 0 is not named."""
    if not line:
        return ", ".join([file, *path])
    if not path:
        return Remark("line_of_file", {"file": file, "line": line})
    return Remark("field_on_line", {"file": file, "line": line, "path": ", ".join(path)})


def _problem(where: str | Remark, detail: ErrorDetails) -> Remark:
    kind = detail["type"]
    context = detail.get("ctx", {})
    if kind == "missing":
        return Remark("field_missing", {"where": where})
    if kind == "extra_forbidden":
        return Remark("field_unknown", {"where": where})
    value_text = _value(detail["input"])
    if kind == "string_pattern_mismatch" and context["pattern"] == SLUG_FORM:
        return Remark("field_no_short_name", {"where": where, "found": value_text})
    return Remark("field_does_not_fit", {"where": where, "found": value_text, "expected": _expected(kind, context)})


def _expected(kind: str, context: Mapping[str, Any]) -> str | Remark:
    """Return what a field may hold, by the kind of the problem."""
    match kind:
        case "value_error":
            error = context["error"]
            expected = error.remark if isinstance(error, FieldError) else str(error)
        case "enum" | "literal_error":
            expected = Remark("expected_one_of", {"choices": context["expected"]})
        case "string_too_short" | "too_short" if context["min_length"] == 1:
            expected = Remark("expected_something")
        case "string_too_short" | "too_short":
            expected = Remark("expected_at_least", {"least": context["min_length"]})
        case "string_too_long":
            expected = Remark("expected_letters", {"limit": context["max_length"]})
        case "string_pattern_mismatch":
            expected = Remark("expected_form", {"form": context["pattern"]})
        case _ if kind in _BOUNDS:
            code, bound = _BOUNDS[kind]
            expected = Remark(code, {"bound": context.get(bound)})
        case _:
            expected = Remark(_EXPECTED.get(kind, "expected_another_kind"))
    return expected


def _path(data: object, location: Sequence[int | str]) -> list[str]:
    """Return the way to a field; an entry of a list goes by its name, or by its number from 1."""
    words: list[str] = []
    for step in location:
        if isinstance(step, int):
            if isinstance(data, list | tuple) and step < len(data):
                entry = data[step]
            else:
                entry = None
            if isinstance(entry, Mapping):
                name = entry.get("name") or entry.get("id")
            else:
                name = None
            if isinstance(name, str) and name:
                label = shown(name)
            else:
                label = f"#{step + 1}"
            words[-1:] = [f"{words[-1]} {label}"] if words else [label]
            data = entry
        else:
            words.append(step)
            data = data.get(step) if isinstance(data, Mapping) else None
    return words


def _value(value: object) -> str | Remark:
    if isinstance(value, str):
        return shown(value) if value else Remark("found_empty_text")
    if isinstance(value, Mapping):
        return Remark("found_table")
    if isinstance(value, list | tuple):
        return Remark("found_list")
    if isinstance(value, bool):
        return str(value).lower()
    return shown(str(value)).strip("'")
