"""How results become parts of a report: fields of the same name are copied, numbers rounded to the digits that every form shows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

from backend.reports.schema import Part

DIGITS = 4  # a share of 0.6142 is written as 61.42 % everywhere

P = TypeVar("P", bound=Part)
# Of a part, kinds of sources and names that are given: the other fields, each with which source has it. Looked up 500 times a report.
_from: dict[tuple[type[Part], tuple[type, ...], tuple[str, ...]], tuple[tuple[str, int], ...]] = {}


def rounded(value: float | None) -> float | None:
    """A figure; None if there is none, or where it is not finite and means nothing."""
    if value is None or not math.isfinite(value):
        return None
    return round(value, DIGITS)


def gain(share: float) -> float:
    """A share of the gain with the digits that pages and reports show: rounded twice, 31.549 % would read 31.6 % in one place."""
    return round(share, 3) if share >= 0.01 else float(f"{share:.2g}")


def fill(part: type[P], /, *sources: object, **given: Any) -> P:
    """A part of the report: fields that are `given`, and the others by name from the first source that has them, floats rounded."""
    key = (part, tuple(map(type, sources)), tuple(given))
    if key not in _from:
        _from[key] = tuple(
            (name, next(i for i, source in enumerate(sources) if hasattr(source, name)))
            for name in part.model_fields.keys() - given.keys()
        )
    for name, at in _from[key]:
        value = getattr(sources[at], name)
        written = gain if name == "gain_share" else rounded
        given[name] = written(value) if isinstance(value, float) else value
    return part(**given)


def fill_each(part: type[P], rows: Iterable[object]) -> tuple[P, ...]:
    """A part a row."""
    return tuple(fill(part, row) for row in rows)
