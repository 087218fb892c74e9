"""Facts about rules: what was upheld, what waits for a decision, what was dismissed, and what was not understood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backend.compliance.assessment import SEVERITY, Finding
from backend.i18n import Text
from backend.remark import Remark
from backend.reports.verdict.facts import Fact, Figure, State, named, written
from backend.reports.verdict.known import Known

PAGE = "compliance"


def rule_facts(model: Known) -> Iterator[Fact]:
    """Yield a fact for each feature that rules speak of and each decision about it, then the questions that wait.

    A finding that was upheld is broken, one without a decision is undecided, a dismissed one is no breach.
    """
    findings = model.compliance.findings
    if not findings:
        yield _nothing_found(model)
    for feature in _worst_first(findings):
        about = [finding for finding in findings if finding.feature == feature]
        upheld = [finding for finding in about if _decision(model, finding) == "confirmed"]
        dismissed = [finding for finding in about if _decision(model, finding) == "overridden"]
        waiting = [finding for finding in about if _decision(model, finding) == ""]
        if upheld:
            yield _upheld(model, feature, upheld)
        if waiting:
            yield _waiting(model, feature, waiting)
        if dismissed:
            yield _dismissed(model, feature, dismissed)
    yield from _questions(model)


def _worst_first(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the features of findings: those in use first, the worst status first."""
    ordered = sorted(findings, key=lambda finding: (not finding.usage.splits, SEVERITY.index(finding.status)))
    return tuple(dict.fromkeys(finding.feature for finding in ordered))


def _decision(model: Known, finding: Finding) -> str:
    """Return the last decision about a finding; empty if there is none."""
    review = model.reviews.get((finding.rule_id, finding.feature))
    return review.verdict if review else ""


def _gain(findings: Sequence[Finding]) -> Figure:
    """Return the feature's share of the gain."""
    return Figure(findings[0].usage.gain_share, unit="share")


def _use(findings: Sequence[Finding]) -> Remark:
    """Return how much the model uses the feature of some findings."""
    usage = findings[0].usage
    if not usage.splits:
        return Remark("verdict_not_in_use")
    return Remark("verdict_in_use", {"n": usage.splits, "share": written(usage.gain_share, "share")})


def _upheld(model: Known, feature: str, findings: Sequence[Finding]) -> Fact:
    last = max((model.reviews[finding.rule_id, feature] for finding in findings), key=lambda review: review.number)
    in_use = bool(findings[0].usage.splits)
    name = model.name(feature)
    title = Remark("verdict_title_in_use" if in_use else "verdict_title_offered", {"feature": name})
    values = {
        "feature": name,
        "n": len(findings),
        "rules": named([finding.title for finding in findings]),
        "person": last.person,
        "day": last.time[:10],
        "use": _use(findings),
    }
    sentence = Remark("verdict_upheld", values)
    return Fact("rule", feature, "broken", title.both(), sentence.both(), PAGE, _gain(findings))


def _waiting(model: Known, feature: str, findings: Sequence[Finding]) -> Fact:
    name = model.name(feature)
    title = Remark("verdict_title_to_decide", {"feature": name, "n": len(findings)})
    values = {
        "feature": name,
        "n": len(findings),
        "rules": named([finding.title for finding in findings]),
        "use": _use(findings),
    }
    sentence = Remark("verdict_to_decide", values)
    return Fact("rule", feature, "undecided", title.both(), sentence.both(), PAGE, _gain(findings))


def _dismissed(model: Known, feature: str, findings: Sequence[Finding]) -> Fact:
    last = max((model.reviews[finding.rule_id, feature] for finding in findings), key=lambda review: review.number)
    name = model.name(feature)
    values = {"feature": name, "n": len(findings), "person": last.person, "day": last.time[:10]}
    title = Remark("verdict_title_dismissed", {"feature": name})
    return Fact("rule", feature, "no_breach", title.both(), Remark("verdict_dismissed", values).both(), PAGE)


def _nothing_found(model: Known) -> Fact:
    values = {"n": model.compliance.assessed, "packs": len(model.compliance.packs)}
    title = Remark("verdict_title_rules")
    return Fact("rule", "", "no_breach", title.both(), Remark("verdict_nothing_found", values).both(), PAGE)


def _questions(model: Known) -> Iterator[Fact]:
    """Yield what a person has to answer, and what no rule could read."""
    waiting = model.compliance.unanswered
    if waiting:
        names = tuple(dict.fromkeys(model.name(question.feature) for question in waiting))
        yield _question(len(waiting), "verdict_title_questions", "verdict_questions", names, "undecided")
    unread = model.compliance.not_understood
    if unread:
        names = tuple(model.name(column.feature) for column in unread)
        yield _question(len(unread), "verdict_title_unread", "verdict_unread", names, "not_measured")


def _question(n: int, title: str, sentence: str, names: Sequence[Text], state: State) -> Fact:
    values = {"n": n, "features": named(names)}
    return Fact("question", "", state, Remark(title, {"n": n}).both(), Remark(sentence, values).both(), PAGE)
