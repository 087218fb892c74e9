"""Figures of results: exact in memory, and rounded when a report is written, to the digits that every form of it shows.

The type of a result's field says how a report writes it, so that the results themselves are the models that a report signs.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer
from pydantic.json_schema import SkipJsonSchema

DIGITS = 4  # a share of 0.6142 is written as 61.42 % everywhere

T = TypeVar("T")


def rounded(value: float | None) -> float | None:
    """Return a figure rounded; None if it is missing or not finite."""
    if value is None or not math.isfinite(value):
        return None
    return round(value, DIGITS)


def gain(share: float) -> float:
    """Return a share of the gain with the digits that pages and reports show: rounded twice, 31.549 % would read 31.6 % in one place."""
    if share >= 0.01:
        return round(share, 3)
    return float(f"{share:.2g}")


def _nan_if_none(value: Any) -> Any:
    return math.nan if value is None else value


Rounded = Annotated[float, PlainSerializer(rounded)]
"""A figure."""
RoundedOrNan = Annotated[float, Field(allow_inf_nan=True), BeforeValidator(_nan_if_none), PlainSerializer(rounded)]
"""A figure that is NaN if it does not apply; a report has null for it."""
GainShare = Annotated[float, PlainSerializer(gain)]
"""A share of the gain, from 0 to 1."""
Unreported = Annotated[T, Field(exclude=True), SkipJsonSchema()]
"""What a report leaves out; the field has to have a default."""
