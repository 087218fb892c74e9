"""The feature dictionary: what each feature means, in words that every party may read.

Knows nothing of values: a meaning is disclosed, a value never is (Fed-EINI §II-D).
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


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


class Feature(BaseModel):
    """One disclosed feature of one party.

    Attributes
    ----------
    name : str
        The column in the party's file; unique over the whole federation.
    meaning, meaning_zh : str
        What it says about a person, in English and optionally Chinese.
    unit : str
        Unit of the values; empty where there is none.
    expected_direction : ExpectedDirection
        What experience says a higher value does to the risk.
    sensitivity : str
        A protected attribute's tag (``sex``, ``age``, ``marital_status``, ``race`` …), ``none`` where the owner states that
        there is none, empty where the owner says nothing (checks then read name and meaning).
    categories : dict of str to str
        For coded columns: code → what it stands for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=120)
    meaning: str = Field(min_length=1, max_length=500)
    meaning_zh: str = Field(default="", max_length=500)
    unit: str = Field(default="", max_length=40)
    kind: Kind = Kind.NUMERIC
    expected_direction: ExpectedDirection = ExpectedDirection.NONE
    sensitivity: str = Field(default="", max_length=60)
    categories: dict[str, str] = Field(default_factory=dict)
