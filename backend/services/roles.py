"""The roles that people have, and which actions each may begin. Loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Role = Literal["operator", "analyst", "regulator"]
OPERATOR, ANALYST, REGULATOR = ROLES = get_args(Role)
WHOSE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("train", "import", "retrain", "alternatives", "alternative-choice", "dossier", "own-data", "backup"),
        (OPERATOR,),
    ),
    **dict.fromkeys(
        ("score", "reasons", "notice", "cohort", "describe", "details", "notice-details"), (OPERATOR, ANALYST)
    ),
}
"""Action → the roles that it is for; others are for every role, or choose by what they are about."""
