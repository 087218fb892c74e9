"""What the law says about a model: every disclosed feature and the model as a whole assessed against rule packs.

What speaks weakly for a concept is a question, and no finding until a person has answered it with yes.

Four claims are kept apart: how much a model *uses* a feature; *proxy evidence*, the association of others with it; the *outcome
disparity* between its groups; and the *legal status*, with citation and dates. Use and legal status are determined here; the two kinds
of evidence are measured elsewhere or reported as not assessed. A feature without a finding was assessed, no more.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal, get_args

from backend.compliance.concepts import MatchedIn, Sign
from backend.compliance.phrases import FeatureTexts
from backend.compliance.rule_pack import (
    NOT_SENSITIVE,
    Check,
    CitedRule,
    Force,
    LegalRule,
    PackHead,
    RulePack,
    Status,
    cited,
    load_packs,
    statutory,
    words,
)
from backend.compliance.second_opinion import reconsider
from backend.data.dictionary import Feature
from backend.data.federation import Place, Product
from backend.data.rounding import Unreported
from backend.fairness.age_discrimination import AgeCheck
from backend.fairness.evidence import Basis, Evidence
from backend.i18n import NO_TEXT, Text, in_both
from backend.remark import Remark
from backend.store.reviews import ABOUT, Review
from backend.trees.ensemble import Usage

SEVERITY: tuple[Status, ...] = get_args(Status)  # worst first
FORCES: tuple[Force, ...] = get_args(Force)  # rules in force first

Where = MatchedIn | Literal["sensitivity"]
Match = tuple[str, Where]  # what matched, and where
# the two claims that are measured
DISPARITY = "disparity"
PROXIES = "proxies"
ELDERLY = "elderly"  # the check that a rule may ask for
_WRITTEN = {
    "ko": re.compile(r"[\uac00-\ud7a3]"),
    "zh": re.compile(r"[\u4e00-\u9fff]"),
}  # letters that only a language has
UNUSED = Usage(splits=0, trees=0, gain_share=0.0, cover_share=0.0)


@dataclass(frozen=True, kw_only=True)
class Law(CitedRule):
    """What a rule says, and whether it is in force on the day of the report: {"in_force", "not_yet", "ended"}."""

    force: Force
    explanation: Text
    remedy: Text


@dataclass(frozen=True, kw_only=True)
class Examined:
    """A feature, and what was measured of it, claim by claim.

    Attributes
    ----------
    proxies, disparities : tuple of Evidence or None
        None = not assessed; empty = assessed, nothing found.
    proxies_on, disparities_on : Basis or None
        What they were measured on.
    """

    feature: str
    proxies: tuple[Evidence, ...] | None = None
    disparities: tuple[Evidence, ...] | None = None
    proxies_on: Basis | None = None
    disparities_on: Basis | None = None


@dataclass(frozen=True, kw_only=True)
class Finding(Law, Examined):
    """A rule that concerns a feature: the rule, what matched and where, the evidence, and what was decided.

    Attributes
    ----------
    usage : Usage
        How much the model uses the feature.
    check : {"", "elderly"}
        Further measurement that the rule asks for.
    ages : AgeCheck or None
        The measurement for ``elderly``; None = not measured, or no such check.
    ages_on : Basis or None
        Which Host has not agreed to it, where that is why it was not measured.
    decision : Review or None
        The last decision about it, as :func:`with_decisions` adds it; None = there is none.
    earlier_decisions : int
        Decisions before that one.
    """

    party: str
    meaning: Text
    matched: str
    matched_in: Where
    usage: Usage
    check: Check = ""
    ages: AgeCheck | None = None
    ages_on: Basis | None = None
    decision: Review | None = None
    earlier_decisions: int = 0


@dataclass(frozen=True, kw_only=True)
class Duty(Law):
    """A rule about the model as a whole, whatever its features are.

    Attributes
    ----------
    evidence : Text
        What Glassleaf offers towards it, and what it does not.
    """

    evidence: Text


class PackStamp(PackHead):
    """Which pack was applied; `built_in` or a custom one."""

    built_in: bool


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A feature that no rule found and that nothing explains, neither flagged nor free of findings: its owner has to describe it."""

    party: str
    feature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Whether a feature is about what rules look for, where what suggests it is weak: a person has to answer yes or no.

    Attributes
    ----------
    about : str
        :data:`backend.store.reviews.ABOUT` and the concept.
    title, citation : Text
        What it asks about, in a rule's words, and where that rule is written.
    sign : Sign
        The words that suggest it, their place, and why they are weak.
    status : Status
        The worst of the rules that would flag it.
    usage : Usage
    description : str
        SHA-256 of all that is disclosed of the feature: an answer holds until that changes.
    answer : Review or None
        ``confirmed`` is yes, ``overridden`` no; None = not answered.
    """

    party: str
    feature: str
    meaning: Text
    about: str
    title: Text
    citation: Text
    sign: Sign
    status: Status
    usage: Usage
    description: str
    answer: Review | None


@dataclass(frozen=True, slots=True)
class ComplianceReport:
    """What was found.

    Attributes
    ----------
    findings : tuple of Finding
        By rules in force. The worst status first; within a status the most used feature first.
    assessed : int
        Features looked at.
    set_aside : tuple of Finding
        Matches in name or meaning that do not count because the feature's owner states ``sensitivity = none``.
    not_in_force : tuple of Finding
        What rules would find that are not in force yet, or no longer.
    duties : tuple of Duty
        Rules about the model as a whole: those in force first, then those to come, then those that ended.
    questions : tuple of Question
        What a person has to answer, the worst status first, the answered ones last.
    not_understood : tuple of NotUnderstood
        Features whose name no rule understands and whose owner says nothing more.
    on : str
        The day whose law was applied, ISO.
    words : str
        Version of the built-in vocabulary that names and meanings were searched for.
    problems : tuple of Text
        Packs that could not be applied: file, line, reason.
    scope : Text
        Which bodies of law were applied, and why the others were not.
    """

    findings: tuple[Finding, ...]
    assessed: int
    packs: tuple[PackStamp, ...]
    set_aside: tuple[Finding, ...] = ()
    not_in_force: tuple[Finding, ...] = ()
    duties: tuple[Duty, ...] = ()
    questions: tuple[Question, ...] = ()
    not_understood: tuple[NotUnderstood, ...] = ()
    on: Unreported[str] = ""
    words: str = ""
    problems: tuple[Text, ...] = ()
    scope: Text = NO_TEXT

    @property
    def unanswered(self) -> tuple[Question, ...]:
        """The unanswered questions."""
        return tuple(question for question in self.questions if question.answer is None)


def assess(
    dictionary: Sequence[tuple[str, Feature]],
    usage: Mapping[str, Usage],
    packs: Sequence[RulePack] | None = None,
    *,
    on: dt.date | None = None,
    problems: Sequence[Text] = (),
    answers: Mapping[tuple[str, str, str], Review] | None = None,
    places: Sequence[Place] = (),
    product: Product | Literal[""] = "",
) -> ComplianceReport:
    """Assess every disclosed feature, and list every duty; no evidence is measured yet (:func:`with_evidence`).

    A feature's own sensitivity tag wins over a guess: a tag that a rule knows decides the rule, ``none`` sets matches
    aside. A tag that no rule knows decides nothing (it may be misspelt), so name and meaning are read as without it.
    What speaks weakly is a question: with yes it becomes a finding, with no it does not. What no rule finds and nothing explains is
    listed as not understood.

    Parameters
    ----------
    dictionary : sequence of (party, Feature)
    usage : mapping of str to Usage
        Feature name → use in the model; an absent feature is unused.
    packs : sequence of RulePack, optional
        By default the built-in ones.
    on : date, optional
        The day whose law is applied; today by default.
    problems : sequence of Text
        Packs that could not be read, to be listed in the report.
    answers : mapping of (description, about, feature) to Review, optional
        What was answered, as questions name it.
    places, product : sequence of str, str
        Where the people live and what the model is for: law of other places and products is not applied. Empty = any.
    """
    every_pack = load_packs() if packs is None else packs
    packs = [pack for pack in every_pack if pack.is_law(places, product)]
    outside = [pack for pack in every_pack if not pack.is_law(places, product)]
    day = dt.date.today() if on is None else on
    by_part: dict[str, list[Finding]] = {"findings": [], "set_aside": [], "not_in_force": []}
    questions: list[Question] = []
    not_understood = []
    for party, feature in dictionary:
        tag = _tag(feature)
        use = usage.get(feature.name, UNUSED)
        matches, questions_of_feature, understood = _read(packs, party, feature, use, answers or {})
        questions += questions_of_feature
        if not understood:
            not_understood.append(NotUnderstood(party, feature.name))
        for pack, rule, (matched, matched_in) in matches:
            finding = Finding(
                **_law(pack, rule, day),
                party=party,
                feature=feature.name,
                meaning=feature.meaning,
                matched=matched,
                matched_in=matched_in,
                usage=use,
                check=rule.check,
            )
            if finding.force == "in_force":
                part = "findings"
            else:
                part = "not_in_force"
            by_part["set_aside" if tag == NOT_SENSITIVE else part].append(finding)
    built_in = {pack.name for pack in load_packs()}
    order = {rule.id: index for index, rule in enumerate(rule for pack in packs for rule in pack.rules)}
    return ComplianceReport(
        assessed=len(dictionary),
        packs=tuple(_stamp(pack, pack.name in built_in) for pack in packs),
        duties=_duties(packs, day),
        questions=tuple(sorted(questions, key=_most_urgent)),
        not_understood=tuple(not_understood),
        on=day.isoformat(),
        words=words().version,
        problems=tuple(problems),
        scope=_scope(places, product, outside),
        **{part: _worst_first(findings, order) for part, findings in by_part.items()},
    )


def _scope(places: Sequence[Place], product: Product | Literal[""], outside: Sequence[RulePack]) -> Text:
    """Say which bodies of law were applied, and why the others were not."""
    values = {
        "n": len(outside),
        "places": tuple(in_both(f"place.{place}") for place in places),
        "product": in_both(f"product.{product}") if product else NO_TEXT,
        "packs": tuple(pack.title for pack in outside),
    }
    code = "law_of_everywhere"
    if outside and places and product:
        code = "law_of_places_and_product"
    elif outside and places:
        code = "law_of_places"
    elif outside:
        code = "law_of_product"
    return Remark(code, values).both()


def with_evidence(
    report: ComplianceReport,
    proxies: Mapping[str, tuple[Evidence, ...]],
    disparities: Mapping[str, tuple[Evidence, ...]],
    bases: Mapping[tuple[str, str], Basis],
    ages: Mapping[str, AgeCheck] | None = None,
) -> ComplianceReport:
    """Return the report with what was measured; evidence on features without a finding is left out.

    Parameters
    ----------
    proxies, disparities : mapping of str to tuple of Evidence
        Feature name → evidence; an absent feature was not assessed.
    bases : mapping of (claim, str) to Basis
        (:data:`DISPARITY` or :data:`PROXIES`, feature name) → what that evidence was measured on.
    ages : mapping of str to AgeCheck, optional
        Feature name → the check of elderly ages in it; shown where a rule asks for it.
    """
    measured_features = {*proxies, *disparities, *(name for _, name in bases), *(ages or ())}

    def measured(finding: Finding) -> Finding:
        name = finding.feature
        if name not in measured_features:
            return finding
        return replace(
            finding,
            proxies=proxies.get(name),
            disparities=disparities.get(name),
            proxies_on=bases.get((PROXIES, name)),
            disparities_on=bases.get((DISPARITY, name)),
            ages=(ages or {}).get(name) if finding.check == ELDERLY else None,
            ages_on=bases.get((ELDERLY, name)) if finding.check == ELDERLY else None,
        )

    return replace(
        report,
        findings=tuple(map(measured, report.findings)),
        set_aside=tuple(map(measured, report.set_aside)),
        not_in_force=tuple(map(measured, report.not_in_force)),
    )


def with_decisions(report: ComplianceReport, reviews: Sequence[Review]) -> ComplianceReport:
    """Return the report with what people decided about each finding; `reviews` are the model's, oldest first."""
    about: dict[tuple[str, str], list[Review]] = {}
    for review in reviews:
        about.setdefault((review.rule, review.feature), []).append(review)

    def decided(finding: Finding) -> Finding:
        decisions = about.get((finding.rule_id, finding.feature))
        if not decisions:
            return finding
        return replace(finding, decision=decisions[-1], earlier_decisions=len(decisions) - 1)

    return replace(
        report,
        findings=tuple(map(decided, report.findings)),
        set_aside=tuple(map(decided, report.set_aside)),
        not_in_force=tuple(map(decided, report.not_in_force)),
    )


def signs_of(texts: FeatureTexts) -> dict[str, Sign]:
    """Concept → what speaks for it, after a second opinion."""
    vocabulary = words()
    return reconsider(
        texts,
        vocabulary.signs(texts),
        of_nobody=vocabulary.context.of_nobody(texts, of_area=True),
        is_set_aside=lambda concept: vocabulary.patterns[concept].sets_aside(texts),
    )


def is_asked(concept: str, sign: Sign) -> bool:
    """Return whether a sign is a question.

    A word with several senses is one only if a statute names the concept and first looks were right.
    """
    if sign.strength == "weak":
        return concept in statutory() and concept not in words().doubted
    return sign.strength not in ("finding", "unlikely")


def _tag(feature: Feature) -> str:
    return feature.sensitivity.strip().casefold().replace(" ", "_").replace("-", "_")


def _read(
    packs: Sequence[RulePack],
    party: str,
    feature: Feature,
    usage: Usage,
    answers: Mapping[tuple[str, str, str], Review],
) -> tuple[list[tuple[RulePack, LegalRule, Match]], list[Question], bool]:
    """Return the rules that concern a feature, what is asked about it, and whether it is understood."""
    tag = _tag(feature)
    texts = texts_of(feature)
    description = description_of(feature)
    signs = signs_of(texts)
    decided = tag == NOT_SENSITIVE or any(tag in pack.tags for pack in load_packs())
    keys = {concept: (description, ABOUT + concept, feature.name) for concept in signs}
    given_answers = {concept: answers[key] for concept, key in keys.items() if key in answers}
    yes = {concept for concept, answer in given_answers.items() if answer.verdict == "confirmed"}
    counting = {c: s for c, s in signs.items() if s.strength == "finding" or c in yes}
    if tag == NOT_SENSITIVE:  # all that a phrase found is set aside, visibly
        counting = {c: s for c, s in signs.items() if s.strength not in ("weak", "proposed", "unlikely")}
    matches = list(_matches(packs, feature, tag, texts, counting))
    if decided:
        to_ask = {}
    else:
        to_ask = {c: s for c, s in signs.items() if is_asked(c, s)}
    questions = list(_questions(packs, party, feature, usage, to_ask, given_answers))
    passed = any(s.strength in ("weak", "unlikely") and c not in to_ask for c, s in signs.items())
    waits = any(question.answer is None for question in questions)
    explained = words().explained(texts) and not passed
    # What only law of other places looks for is understood all the same.
    understood = bool(matches) or bool(counting) or waits or explained or tag == NOT_SENSITIVE
    return matches, questions, understood


def _matches(
    packs: Sequence[RulePack], feature: Feature, tag: str, texts: FeatureTexts, counting: Mapping[str, Sign]
) -> Iterator[tuple[RulePack, LegalRule, Match]]:
    """Yield the rules that concern a feature: by its `tag`, or if no rule knows it by its name and meanings if signs count.

    A tag that only a custom pack knows decides in that pack alone, so that it cannot hide the feature from the built-in rules.
    """
    built_in = {pack_tag for pack in load_packs() for pack_tag in pack.tags}
    for pack in packs:
        by_tag = tag in built_in or tag in pack.tags
        for rule in pack.rules:
            match: Match | None = None
            if rule.scope == "feature" and by_tag:
                if tag in rule.tags:
                    match = (feature.sensitivity, "sensitivity")
                else:
                    match = None
            elif rule.scope == "feature" and rule.looks_for:
                match = next((counting[concept].match for concept in rule.looks_for if concept in counting), None)
            elif rule.scope == "feature":
                match = pack.patterns[rule.id].find(texts)
            if match is not None:
                yield pack, rule, match


def _questions(
    packs: Sequence[RulePack],
    party: str,
    feature: Feature,
    usage: Usage,
    signs: Mapping[str, Sign],
    answers: Mapping[str, Review],
) -> Iterator[Question]:
    """Yield a question for each concept that a rule of the packs looks for."""
    for concept, sign in signs.items():
        rules = [rule for pack in packs for rule in pack.rules if concept in rule.looks_for]
        if not rules:
            continue
        narrowest = min(rules, key=lambda rule: len(rule.looks_for))
        yield Question(
            party=party,
            feature=feature.name,
            meaning=feature.meaning,
            about=ABOUT + concept,
            title=narrowest.title,
            citation=narrowest.citation,
            sign=sign,
            status=min((rule.status for rule in rules), key=SEVERITY.index),
            usage=usage,
            description=description_of(feature),
            answer=answers.get(concept),
        )


def description_of(feature: Feature) -> str:
    """SHA-256 of all that is disclosed of a feature in words."""
    codes = sorted((code, text.en) for code, text in feature.categories.items())
    disclosed = (feature.name, feature.meaning.en, feature.meaning.zh, feature.unit.en, *codes)
    return sha256(repr(disclosed).encode()).hexdigest()


def _most_urgent(question: Question) -> tuple[bool, int, bool, float, str, str]:
    use = question.usage
    status = SEVERITY.index(question.status)
    return question.answer is not None, status, not use.splits, -use.gain_share, question.feature, question.about


def texts_of(feature: Feature) -> FeatureTexts:
    """Return all that is disclosed of a feature, as phrases are sought in it."""
    codes = [text.en for text in feature.categories.values()]
    english = feature.meaning.en if feature.described else ""  # a stand-in repeats the name
    unit = feature.unit.en
    return FeatureTexts.of(feature.name, english, feature.meaning.zh, unit, codes, affixes=words().affixes)


def _law(pack: RulePack, rule: LegalRule, day: dt.date) -> dict[str, Any]:
    """Return the fields of :class:`Law`."""
    return {
        **cited(pack, rule),
        "force": rule.force(day),
        "explanation": rule.explanation,
        "remedy": rule.remedy,
    }


def _duties(packs: Sequence[RulePack], day: dt.date) -> tuple[Duty, ...]:
    duties = []
    for pack in packs:
        for rule in pack.rules:
            if rule.scope == "model":
                duties.append(Duty(**_law(pack, rule, day), evidence=rule.evidence))
    return tuple(sorted(duties, key=lambda duty: FORCES.index(duty.force)))


def _stamp(pack: RulePack, built_in: bool) -> PackStamp:
    head = {name: getattr(pack, name) for name in PackHead.model_fields}
    return PackStamp(**head, built_in=built_in)


def _worst_first(findings: Sequence[Finding], order: Mapping[str, int]) -> tuple[Finding, ...]:
    """Return the worst finding of each feature, then what further laws say of the same features.

    Each of both by status, then used before unused, then what is prohibited as the law lists it (no gain excuses it), the rest by
    gain; of one feature's, those that ask for a measurement come first.
    """

    def rank(finding: Finding) -> tuple[int, bool, float, str, bool, str]:
        in_use = finding.usage.splits > 0
        prohibited = finding.status == "prohibited"
        within = order[finding.rule_id] if prohibited else -finding.usage.gain_share
        return SEVERITY.index(finding.status), not in_use, within, finding.feature, not finding.check, finding.rule_id

    ranked = sorted(findings, key=rank)
    first = {finding.feature: finding for finding in reversed(ranked)}
    return tuple(sorted(ranked, key=lambda finding: finding is not first[finding.feature]))


def wording(words: Callable[..., str], quote: str, source: str, day: str, checked: str) -> str:
    """Return the official wording in its own language with where and when it was read; or that what is said of a rule is a paraphrase."""
    language = next((name for name, letters in _WRITTEN.items() if letters.search(quote)), "en")
    if quote:
        return words(f"law.quoted_{language}", quote=quote, source=source.rstrip(".。"), day=day)
    return words(f"law.paraphrase_{checked}")
