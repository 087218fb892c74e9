"""How numbers are rounded in a report: to the digits that its drawn forms show, so that the three agree."""

from __future__ import annotations

import math

from backend.reports.document import SHARE_DIGITS


def share(value: float) -> float:
    """A share from 0 to 1."""
    return round(value, SHARE_DIGITS)


def figure(value: float | None) -> float | None:
    """A figure; None where there is none, or where it means nothing."""
    return None if value is None or not math.isfinite(value) else round(value, SHARE_DIGITS)
