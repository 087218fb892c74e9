"""The feature dictionary: what each feature means, in words that every party may read.

Knows nothing of values: a meaning is disclosed, a value never is (Fed-EINI §II-D).
"""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationInfo, field_validator

from backend.data.strict_model import FieldError, StrictModel
from backend.i18n import NO_MEANING, Text

UNSHOWN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # Unicode's categories
JOINERS = "\u200c\u200d"  # needed inside words of Persian and of Indian scripts


class Kind(StrEnum):
    """How a column is read."""

    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    BOOLEAN = "boolean"


class ExpectedDirection(StrEnum):
    """Expected effect of a higher value on the risk (the probability of the positive label)."""

    UP = "up"
    DOWN = "down"
    NONE = "none"


def check_shown(text: str) -> str:
    """Refuse characters that change how the text around them is shown: controls, overrides of direction, line separators."""
    if text.isprintable():  # most texts, quickly
        return text
    strange = next((c for c in text if unicodedata.category(c) in UNSHOWN and c not in JOINERS), None)
    if strange is not None:
        raise FieldError("expected_visible_text", letter=f"U+{ord(strange):04X}")
    return text


Shown = Annotated[str, AfterValidator(check_shown)]
"""A text that pages and notices show as it is."""


def _as_text(value: object) -> object:
    """Return what a file says: a string is English alone."""
    return Text(value) if isinstance(value, str) else value


def _as_plain(text: Text) -> object:
    """Return what a file says; see :func:`_as_text`."""
    return {"en": text.en, "zh": text.zh} if text.zh else text.en


Bilingual = Annotated[Text, BeforeValidator(_as_text), PlainSerializer(_as_plain, when_used="json")]
"""A text as files have it: a string, which is English, or a table of `en` and `zh`."""


def limited(max_length: int, min_length: int = 0, *, paragraphs: bool = False) -> AfterValidator:
    """Return the check of a text with two languages.

    Parameters
    ----------
    max_length, min_length : int
        Characters in each language, and in English.
    paragraphs : bool
        Whether it may have several lines.
    """

    def check(text: Text) -> Text:
        for words in (text.en, text.zh):
            check_shown(words.replace("\n", " ") if paragraphs else words)
            if len(words) > max_length:
                raise FieldError("expected_letters", limit=max_length)
        if len(text.en) < min_length:
            raise FieldError("expected_english")
        return text

    return AfterValidator(check)


MAX_MEANING = 500  # letters
Side = Literal["above", "below", "either"]
Meaning = Annotated[Bilingual, limited(MAX_MEANING, 1)]
Unit = Annotated[Bilingual, limited(40)]
Category = Annotated[Bilingual, limited(500)]
Reason = Annotated[Bilingual, limited(200)]


CUT = "…"  # ends a meaning that was cut


def cut(words: str) -> str:
    """Return a meaning as long as it may be, with a mark at its end if something was cut off.

    Examples
    --------
    >>> cut("An amount"), len(cut("long " * 200)), cut("long " * 200)[-3:]
    ('An amount', 500, 'ng…')
    """
    if len(words) <= MAX_MEANING:
        return words
    return words[: MAX_MEANING - 1] + CUT


class Feature(StrictModel):
    """One disclosed feature of one party.

    Attributes
    ----------
    name : str
        The column in the party's file; unique over the whole federation.
    meaning : Text
        Its meaning for a person.
    unit : Text
        Unit of the values; empty if they have none.
    expected_direction : ExpectedDirection
        Effect of a higher value on the risk, by experience.
    sensitivity : str
        A protected attribute's tag (``sex``, ``age``, ``marital_status``, ``race`` …), ``none`` if the owner states that
        there is none, empty if the owner says nothing (checks then read name and meaning).
    categories : dict of str to Text
        For coded columns: code → what it stands for.
    reason : dict of str to Text
        What a notice tells a person for whom the feature is a reason: if the value is ``above`` or ``below`` that of most people, and a
        text that claims neither, ``either``. One language may be missing: the notice of that language cannot be drawn.
    missing : tuple of str
        Cell texts that mean "no value", exactly as written; an empty cell always does. Of a numeric column a number stands for
        every spelling of its value.
    bounds : tuple of float, optional
        Least and largest value that a person may have, as known without looking at the records; numbers alone have them. Everybody may
        read them.
    """

    name: Shown = Field(min_length=1, max_length=120)
    meaning: Meaning
    unit: Unit = Text()
    kind: Kind = Kind.NUMERIC
    expected_direction: ExpectedDirection = ExpectedDirection.NONE
    sensitivity: Shown = Field(default="", max_length=60)
    categories: dict[Shown, Category] = Field(default_factory=dict)
    reason: dict[Side, Reason] = Field(default_factory=dict)
    missing: tuple[Annotated[Shown, Field(max_length=200)], ...] = ()
    bounds: tuple[float, float] | None = None

    @property
    def described(self) -> bool:
        """Return whether the meaning was given."""
        return not self.meaning.en.endswith(NO_MEANING)

    @property
    def meaning_cut(self) -> bool:
        """Return whether the meaning was longer than it may be; see :func:`cut`."""
        return any(len(words) == MAX_MEANING and words.endswith(CUT) for words in (self.meaning.en, self.meaning.zh))

    @field_validator("missing")
    @classmethod
    def _no_category(cls, value: tuple[str, ...], info: ValidationInfo) -> Any:
        """Refuse a text that says two things, and one that no cell can hold."""
        categories = info.data.get("categories", {})
        wrong = [text for text in value if text in categories or text != text.strip()]
        if wrong:
            if wrong[0] in categories:
                raise FieldError("expected_no_category", found=repr(wrong[0]))
            raise FieldError("expected_trimmed_text", found=repr(wrong[0]))
        return value

    @field_validator("bounds")
    @classmethod
    def _numbers_in_order(cls, value: tuple[float, float] | None, info: ValidationInfo) -> Any:
        """Refuse bounds of what is no number, and those between which there is nothing."""
        if value is None:
            return value
        smallest, largest = value
        if info.data.get("kind") is not Kind.NUMERIC or not isfinite(largest - smallest) or smallest >= largest:
            raise FieldError("expected_bounds")
        return value
