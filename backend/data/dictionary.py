"""The feature dictionary: what each feature means, in words that every party may read.

Knows nothing of values: a meaning is disclosed, a value never is (Fed-EINI §II-D).
"""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from backend.data.strict_model import StrictModel
from backend.i18n import NO_MEANING

UNSHOWN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # Unicode's categories
JOINERS = "\u200c\u200d"  # needed inside words of Persian and of Indian scripts


class Kind(StrEnum):
    """How a column is read."""

    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    BOOLEAN = "boolean"


class ExpectedDirection(StrEnum):
    """What a higher value is expected to do to the risk (the probability of the positive label)."""

    UP = "up"
    DOWN = "down"
    NONE = "none"


def check_shown(text: str) -> str:
    """Refuse characters that change how the text around them is shown: controls, overrides of direction, line separators."""
    if text.isprintable():  # most texts; it is told at once
        return text
    strange = next((c for c in text if unicodedata.category(c) in UNSHOWN and c not in JOINERS), None)
    if strange is not None:
        raise ValueError(f"text without the invisible character U+{ord(strange):04X}")
    return text


Shown = Annotated[str, AfterValidator(check_shown)]
"""A text that pages and notices show as it is."""


Side = Literal["above", "below", "either"]
Told = Annotated[Shown, Field(min_length=1, max_length=200)]


class Feature(StrictModel):
    """One disclosed feature of one party.

    Attributes
    ----------
    name : str
        The column in the party's file; unique over the whole federation.
    meaning, meaning_zh : str
        What it says about a person, in English and optionally Chinese.
    unit, unit_zh : str
        Unit of the values, in English and optionally Chinese; empty where there is none.
    expected_direction : ExpectedDirection
        What experience says a higher value does to the risk.
    sensitivity : str
        A protected attribute's tag (``sex``, ``age``, ``marital_status``, ``race`` …), ``none`` where the owner states that
        there is none, empty where the owner says nothing (checks then read name and meaning).
    categories, categories_zh : dict of str to str
        For coded columns: code → what it stands for, in English and optionally Chinese.
    reason, reason_zh : dict of str to str
        What a notice tells a person for whom the feature is a reason: where the value is ``above`` or ``below`` that of most people, and a
        text that claims neither, ``either``; in English and optionally Chinese.
    missing : tuple of str
        Cell texts that mean "no value", exactly as written; an empty cell always does. Of a numeric column a number stands for
        every spelling of its value.
    """

    name: Shown = Field(min_length=1, max_length=120)
    meaning: Shown = Field(min_length=1, max_length=500)
    meaning_zh: Shown = Field(default="", max_length=500)
    unit: Shown = Field(default="", max_length=40)
    unit_zh: Shown = Field(default="", max_length=40)
    kind: Kind = Kind.NUMERIC
    expected_direction: ExpectedDirection = ExpectedDirection.NONE
    sensitivity: Shown = Field(default="", max_length=60)
    categories: dict[Shown, Shown] = Field(default_factory=dict)
    categories_zh: dict[Shown, Shown] = Field(default_factory=dict)
    reason: dict[Side, Told] = Field(default_factory=dict)
    reason_zh: dict[Side, Told] = Field(default_factory=dict)
    missing: tuple[Annotated[Shown, Field(max_length=200)], ...] = ()

    @property
    def described(self) -> bool:
        """Whether somebody gave the meaning."""
        return not self.meaning.endswith(NO_MEANING)

    @field_validator("categories_zh")
    @classmethod
    def _same_codes(cls, value: dict[str, str], info: ValidationInfo) -> Any:
        """Refuse a translation of a code that there is not."""
        if wrong := sorted(value.keys() - info.data.get("categories", {}).keys()):
            raise ValueError(f"codes that 'categories' has too; {wrong[0]!r} is not one of them")
        return value

    @field_validator("missing")
    @classmethod
    def _no_category(cls, value: tuple[str, ...], info: ValidationInfo) -> Any:
        """Refuse a text that says two things, and one that no cell can hold."""
        named = info.data.get("categories", {})
        wrong = [text for text in value if text in named or text != text.strip()]
        if wrong:
            raise ValueError(
                f"texts as cells hold them, none of which is a category too; {wrong[0]!r} is "
                + ("one of 'categories'" if wrong[0] in named else "surrounded by white space")
            )
        return value
