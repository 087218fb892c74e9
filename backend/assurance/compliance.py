"""What the law says about the features of a model: every disclosed feature assessed against rule packs.

Two claims are made and kept apart: how much a model *uses* a feature, and the feature's *legal status* with citation
and date. Nothing here measures proxies or outcomes; a feature without a finding was assessed, no more.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from backend.assurance.phrases import Reading, find_uncovered
from backend.assurance.rule_pack import Rule, RulePack, Status, read_rule_pack
from backend.data.dictionary import Feature
from backend.errors import RulePackError

RULES = Path(__file__).parent / "rules"
NOT_SENSITIVE = "none"  # the tag by which an owner states that a feature is not sensitive
SEVERITY: tuple[Status, ...] = get_args(Status)  # worst first

Place = Literal["sensitivity", "name", "meaning", "meaning_zh"]


@dataclass(frozen=True, slots=True)
class Usage:
    """How much one model uses one feature.

    Attributes
    ----------
    splits, trees : int
    gain_share, cover_share : float
        Of the model's whole gain and cover, 0–1.
    """

    splits: int
    trees: int
    gain_share: float
    cover_share: float


UNUSED = Usage(splits=0, trees=0, gain_share=0.0, cover_share=0.0)


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that speaks of a feature: the rule, what matched and where, and how much the model uses the feature."""

    rule_id: str
    title: str
    title_zh: str
    pack: str
    citation: str
    jurisdiction: str
    as_of: str
    status: Status
    party: str
    feature: str
    meaning: str
    meaning_zh: str
    matched: str
    matched_in: Place
    usage: Usage
    explanation: str
    explanation_zh: str
    remedy: str
    remedy_zh: str


@dataclass(frozen=True, slots=True)
class PackStamp:
    """Which pack was applied, in which version, checked against the law on which day."""

    name: str
    version: str
    as_of: str
    title: str
    title_zh: str
    jurisdiction: str
    source: str


@dataclass(frozen=True, slots=True)
class ComplianceReport:
    """What was found.

    Attributes
    ----------
    findings : tuple of Finding
        The worst status first; within a status the most used feature first.
    assessed : int
        Features looked at.
    packs : tuple of PackStamp
    set_aside : tuple of Finding
        Matches in name or meaning that do not count because the feature's owner states ``sensitivity = none``.
    """

    findings: tuple[Finding, ...]
    assessed: int
    packs: tuple[PackStamp, ...]
    set_aside: tuple[Finding, ...] = ()


@cache
def load_packs(folder: Path | None = None) -> tuple[RulePack, ...]:
    """Read every rule pack of a folder, by default the built-in ones, in the order of their file names; read once.

    Raises
    ------
    RulePackError
        A pack is not usable (file, line, field, found, expected), there is none, or two share a name or a rule id.
    """
    place = RULES if folder is None else folder
    packs = tuple(read_rule_pack(file) for file in sorted(place.glob("*.yaml")))
    if not packs:
        raise RulePackError(f"{place.name}: found no rule pack (*.yaml), expected at least one. Give another folder.")
    for kind, keys in (
        ("pack name", [pack.name for pack in packs]),
        ("rule id", [rule.id for pack in packs for rule in pack.rules]),
    ):
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        if repeated:
            raise RulePackError(
                f"{place.name}: found the {kind} {', '.join(repeated)} in two packs. Rename one of them."
            )
    return packs


def assess(
    dictionary: Sequence[tuple[str, Feature]],
    usage: Mapping[str, Usage],
    packs: Sequence[RulePack] | None = None,
    *,
    on: dt.date | None = None,
) -> ComplianceReport:
    """Assess every disclosed feature against the rules in force.

    A feature's own sensitivity tag wins over a guess: a tag that a rule knows decides the rule, ``none`` sets matches
    aside. A tag that no rule knows decides nothing (it may be misspelt), so name and meaning are read as without it.

    Parameters
    ----------
    dictionary : sequence of (party, Feature)
    usage : mapping of str to Usage
        Feature name → use in the model; an absent feature is unused.
    packs : sequence of RulePack, optional
        By default the built-in ones.
    on : date, optional
        The day whose law is applied; today by default.
    """
    packs = load_packs() if packs is None else packs
    day = dt.date.today() if on is None else on
    known = {tag for pack in packs for rule in pack.rules for tag in rule.sensitivity}
    findings: list[Finding] = []
    set_aside: list[Finding] = []
    for party, feature in dictionary:
        tag = feature.sensitivity.strip().casefold().replace(" ", "_").replace("-", "_")
        for pack in packs:
            for rule in pack.rules:
                if not rule.in_force(day):
                    continue
                match = _tagged(rule, feature, tag) if tag in known else _match(pack, rule, feature)
                if match is not None:
                    finding = _finding(pack, rule, (party, feature), match, usage.get(feature.name, UNUSED))
                    (set_aside if tag == NOT_SENSITIVE else findings).append(finding)
    stamps = tuple(
        PackStamp(p.name, p.version, p.as_of.isoformat(), p.title, p.title_zh, p.jurisdiction, p.source) for p in packs
    )
    return ComplianceReport(_worst_first(findings), len(dictionary), stamps, _worst_first(set_aside))


def _tagged(rule: Rule, feature: Feature, tag: str) -> tuple[str, Place] | None:
    return (feature.sensitivity, "sensitivity") if tag in rule.sensitivity else None


def _match(pack: RulePack, rule: Rule, feature: Feature) -> tuple[str, Place] | None:
    """What of a rule's phrases stands in a feature's name or meaning, and where."""
    phrases, exclusions = pack.compiled[rule.id]
    name, _ = find_uncovered(Reading.of(feature.name), phrases, exclusions)
    meaning, excluded = find_uncovered(Reading.of(feature.meaning), phrases, exclusions)
    meaning_zh, excluded_zh = find_uncovered(Reading.of(feature.meaning_zh), phrases, exclusions)
    if name and rule.meaning_decides and (excluded or excluded_zh) and not (meaning or meaning_zh):
        return None
    places: tuple[tuple[str, Place], ...] = ((name, "name"), (meaning, "meaning"), (meaning_zh, "meaning_zh"))
    return next((match for match in places if match[0]), None)


def _finding(pack: RulePack, rule: Rule, owned: tuple[str, Feature], match: tuple[str, Place], usage: Usage) -> Finding:
    party, feature = owned
    return Finding(
        rule_id=rule.id,
        title=rule.title,
        title_zh=rule.title_zh,
        pack=pack.title,
        citation=rule.citation,
        jurisdiction=pack.jurisdiction,
        as_of=(rule.as_of or pack.as_of).isoformat(),
        status=rule.status,
        party=party,
        feature=feature.name,
        meaning=feature.meaning,
        meaning_zh=feature.meaning_zh,
        matched=match[0],
        matched_in=match[1],
        usage=usage,
        explanation=rule.explanation,
        explanation_zh=rule.explanation_zh,
        remedy=rule.remedy,
        remedy_zh=rule.remedy_zh,
    )


def _worst_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sort by status, then used before unused and by gain, then by name."""

    def rank(finding: Finding) -> tuple[int, bool, float, str, str]:
        used = finding.usage.splits > 0
        return SEVERITY.index(finding.status), not used, -finding.usage.gain_share, finding.feature, finding.rule_id

    return tuple(sorted(findings, key=rank))
