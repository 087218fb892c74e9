"""Fields of the canonical report about what is claimed: flagged, measured, decided, retrained. Each says what it means."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """Frozen, without other fields, every number finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Measured(Part):
    """One measured number with its interval; null where the group was too small to be told."""

    about: str
    about_zh: str = Field(description="a group's name in Chinese, where that differs")
    measure: str
    n: int
    value: float | None
    low: float | None
    high: float | None


class BasisLine(Part):
    """What something was measured on; `cutoff` is the probability from which decisions declined, null where there were none."""

    n: int
    cutoff: float | None


class Decision(Part):
    """What a person decided about a finding."""

    decision: str
    reason: str
    person: str
    time: str


class LawLine(Part):
    """What a rule says; days in ISO form."""

    rule: str
    title: str
    title_zh: str
    pack: str
    citation: str
    jurisdiction: str
    as_of: str
    status: str
    effective_from: str
    effective_to: str
    force: str
    explanation: str
    explanation_zh: str
    remedy: str
    remedy_zh: str


class AgeGapLine(Part):
    """Elderly ages against one class of younger ones; `worse` is the first's mean probability less `predicted`, with its interval."""

    place: int = Field(description="of the class, 1 being the youngest")
    predicted: float
    worse: float
    low: float
    high: float


class AgeCheckLine(Part):
    """The same people scored at ages of 62 or more and at younger ages: whether elderly ages have a negative factor."""

    verdict: Literal["not_negative", "negative", "undecided"]
    n: int
    predicted: float = Field(description="mean probability of the positive label with elderly ages")
    gaps: tuple[AgeGapLine, ...]


class FindingLine(LawLine):
    """A rule that speaks of a feature, what matched, the evidence claim by claim, and what was done about it."""

    feature: str
    party: str
    matched: str
    matched_in: str
    splits: int
    gain_share: float
    proxies: tuple[Measured, ...] | None = Field(description="null = not measured")
    disparities: tuple[Measured, ...] | None = Field(description="null = not measured")
    proxies_on: BasisLine | None
    disparities_on: BasisLine | None
    check: Literal["", "elderly"] = Field(description="what the rule asks to be measured besides")
    ages: AgeCheckLine | None = Field(
        description="that check of elderly ages; null = not measured, or the rule asks for none"
    )
    decision: Decision | None = Field(description="the last one; null = nobody decided yet")
    earlier_decisions: int


class DutyLine(LawLine):
    """A rule about the model as a whole, and what is offered towards it."""

    evidence: str
    evidence_zh: str


class PackLine(Part):
    """A rule pack that was applied."""

    name: str
    version: str
    as_of: str
    title: str
    title_zh: str
    jurisdiction: str
    source: str
    built_in: bool


class Assessment(Part):
    """What was flagged, and under which rules."""

    assessed: int
    words: str = Field(description="version of the words that names and meanings were searched for")
    findings: tuple[FindingLine, ...]
    set_aside: tuple[FindingLine, ...] = Field(description="matches that an owner's tag `none` sets aside")
    not_in_force: tuple[FindingLine, ...]
    duties: tuple[DutyLine, ...]
    packs: tuple[PackLine, ...]
    problems: tuple[str, ...]


class Evidenced(Part):
    """What was measured about one feature, which may be one that training was not given."""

    feature: str
    meaning: str
    meaning_zh: str
    on: BasisLine | None = Field(description="null = not kept")
    measures: tuple[Measured, ...]


class Pair(Part):
    """One figure of two models; null where it does not apply or a model was not given the feature."""

    name: str
    before: float | None
    after: float | None


class GainPair(Pair):
    """A feature's share of the gain in two models, from 0 to 1."""

    party: str
    meaning: str
    meaning_zh: str


class OutcomePairLine(Part):
    """One figure about a group in two models; null where it was not measured."""

    feature: str
    meaning: str
    meaning_zh: str
    before: Measured | None
    after: Measured | None


class Retrained(Part):
    """A model beside the one that was retrained from it without some of its features; one of the two is this report's."""

    before: str = Field(description="model")
    after: str = Field(description="model")
    before_sha256: str = Field(description="content hash of the Guest's partial model")
    after_sha256: str
    created: str = Field(description="of the second")
    without: tuple[str, ...] = Field(description="features that the second was not given")
    same_people: bool = Field(description="the figures are of the same records")
    figures: tuple[Pair, ...]
    structure: tuple[Pair, ...]
    gain: tuple[GainPair, ...]
    outcomes: tuple[OutcomePairLine, ...] = Field(description="empty = not measured")
    leak: tuple[Pair, ...] = Field(description="what scores give away, as in `Release`; empty = not measured for both")
