"""The roles that people have, and which actions each may begin. Loads nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from backend.i18n import Text

Role = Literal["operator", "analyst", "regulator"]
OPERATOR, ANALYST, REGULATOR = ROLES = get_args(Role)
TITLES: Mapping[str, Text] = {
    OPERATOR: Text("operator", "操作员"),
    ANALYST: Text("analyst", "分析员"),
    REGULATOR: Text("regulator", "监管人员"),
}
WHOSE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "train",
            "import",
            "retrain",
            "alternatives",
            "alternative-choice",
            "dossier",
            "own-data",
            "backup",
            "pack",
            "unpack",
        ),
        (OPERATOR,),
    ),
    "policy-proposal": (OPERATOR, ANALYST),
    "policy-approval": (REGULATOR,),
    **dict.fromkeys(
        ("score", "reasons", "notice", "cohort", "describe", "details", "notice-details"), (OPERATOR, ANALYST)
    ),
}
"""Action → the roles that it is for; others are for every role, or choose by what they are about."""


def titles_of(roles: Iterable[str]) -> tuple[Text, ...]:
    """Return what roles are called in both languages."""
    return tuple(TITLES.get(role, Text(role)) for role in roles)
