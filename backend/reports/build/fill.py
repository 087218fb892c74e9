"""How results become parts of a report: fields of the same name are copied, numbers rounded to the digits that every form shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from backend.data.rounding import gain, rounded
from backend.reports.schema import Part

P = TypeVar("P", bound=Part)
# Of a part, kinds of sources and names that are given: the other fields, each with which source has it. Looked up 500 times a report.
_from: dict[tuple[type[Part], tuple[type, ...], tuple[str, ...]], tuple[tuple[str, int], ...]] = {}


def fill(part: type[P], /, *sources: object, **values: Any) -> P:
    """Return a part of the report: fields that are `values`, and the others by name from the first source that has them, floats rounded."""
    key = (part, tuple(map(type, sources)), tuple(values))
    if key not in _from:
        _from[key] = tuple(
            (name, next(i for i, source in enumerate(sources) if hasattr(source, name)))
            for name in part.model_fields.keys() - values.keys()
        )
    for name, at in _from[key]:
        value = getattr(sources[at], name)
        rounding = gain if name == "gain_share" else rounded
        if isinstance(value, float):
            values[name] = rounding(value)
        else:
            values[name] = value
    return part(**values)


def fill_each(part: type[P], rows: Iterable[object]) -> tuple[P, ...]:
    """Return a part a row."""
    return tuple(fill(part, row) for row in rows)
