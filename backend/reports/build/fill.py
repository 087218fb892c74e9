"""How results become parts of a report: fields of the same name are copied, numbers rounded to the digits that every form shows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

from backend.reports.schema import Part

DIGITS = 4  # a share of 0.6142 is written as 61.42 % everywhere

P = TypeVar("P", bound=Part)
_from: dict[tuple[type[Part], str, tuple[type, ...]], int] = {}  # which of some kinds of sources has a part's field


def rounded(value: float | None) -> float | None:
    """A figure; None where there is none, or where it is not finite and means nothing."""
    return None if value is None or not math.isfinite(value) else round(value, DIGITS)


def fill(part: type[P], /, *sources: object, **given: Any) -> P:
    """A part of the report: fields that are `given`, and the others by name from the first source that has them, floats rounded."""
    kinds = tuple(map(type, sources))
    for name in part.model_fields.keys() - given.keys():
        at = _from.get((part, name, kinds))
        if at is None:
            at = next(i for i, source in enumerate(sources) if hasattr(source, name))
            _from[part, name, kinds] = at
        value = getattr(sources[at], name)
        given[name] = rounded(value) if isinstance(value, float) else value
    return part(**given)


def fill_each(part: type[P], rows: Iterable[object]) -> tuple[P, ...]:
    """A part a row."""
    return tuple(fill(part, row) for row in rows)
