"""The report's claims: findings with their decisions, what was measured of groups, models retrained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from backend.compliance.assessment import Duty, Finding
from backend.data.dictionary import Feature
from backend.fairness.age_discrimination import AgeCheck
from backend.fairness.evidence import Basis, Evidence
from backend.reports import schema_claims as report
from backend.reports.build.rounded import figure, share
from backend.reports.build.sources import Sources
from backend.reports.model_comparison import OutcomePair, SideBySide, Sizes
from backend.store.reviews import Review


def assessment(sources: Sources) -> report.Assessment:
    """What was flagged, with what was measured and decided about it."""
    found, reviews = sources.compliance, sources.reviews
    return report.Assessment(
        assessed=found.assessed,
        words=found.words,
        findings=tuple(_finding(f, reviews) for f in found.findings),
        set_aside=tuple(_finding(f, reviews) for f in found.set_aside),
        not_in_force=tuple(_finding(f, reviews) for f in found.not_in_force),
        duties=tuple(
            report.DutyLine(**_law(duty), evidence=duty.evidence, evidence_zh=duty.evidence_zh) for duty in found.duties
        ),
        packs=tuple(report.PackLine(**asdict(pack)) for pack in found.packs),
        problems=found.problems,
    )


def _law(law: Finding | Duty) -> dict[str, Any]:
    names = (name for name in report.LawLine.model_fields if name != "rule")
    return {"rule": law.rule_id, **{name: getattr(law, name) for name in names}}


def _finding(finding: Finding, reviews: Sequence[Review]) -> report.FindingLine:
    about = [r for r in reviews if (r.rule, r.feature) == (finding.rule_id, finding.feature)]
    last = about[-1] if about else None
    return report.FindingLine(
        **_law(finding),
        feature=finding.feature,
        party=finding.party,
        matched=finding.matched,
        matched_in=finding.matched_in,
        splits=finding.usage.splits,
        gain_share=share(finding.usage.gain_share),
        proxies=_measured(finding.proxies),
        disparities=_measured(finding.disparities),
        proxies_on=_basis(finding.proxies_on),
        disparities_on=_basis(finding.disparities_on),
        check=finding.check,
        ages=finding.ages and _ages(finding.ages),
        decision=last
        and report.Decision(decision=last.verdict, reason=last.reason, person=last.person, time=last.time),
        earlier_decisions=max(0, len(about) - 1),
    )


def _ages(check: AgeCheck) -> report.AgeCheckLine:
    gaps = (asdict(gap) for gap in check.gaps)
    return report.AgeCheckLine(
        verdict=check.verdict,
        n=check.n,
        predicted=share(check.predicted),
        gaps=tuple(report.AgeGapLine(**{k: share(v) for k, v in gap.items()}) for gap in gaps),
    )


def evidenced(
    sources: Sources,
    claim: str,
    given: Mapping[str, tuple[Evidence, ...]] | None,
    carried: Iterable[tuple[str, tuple[Evidence, ...] | None]],
) -> tuple[report.Evidenced, ...] | None:
    """What was measured, feature by feature; None where nothing was."""
    found = dict(
        given if given is not None else ((name, evidence) for name, evidence in carried if evidence is not None)
    )
    lines = tuple(
        report.Evidenced(
            feature=name,
            **_meanings(sources.feature(name)),
            on=_basis(sources.bases.get((claim, name))),
            measures=_measured(evidence) or (),
        )
        for name, evidence in found.items()
    )
    return lines if lines or given is not None else None


def _measured(evidence: tuple[Evidence, ...] | None) -> tuple[report.Measured, ...] | None:
    if evidence is None:
        return None
    return tuple(_one(e) for e in evidence)


def _one(e: Evidence) -> report.Measured:
    figures = {name: figure(getattr(e, name)) for name in ("value", "low", "high")}
    return report.Measured(about=e.about, about_zh=e.about_zh, measure=e.measure, n=e.n, **figures)


def _basis(basis: Basis | None) -> report.BasisLine | None:
    return None if basis is None else report.BasisLine(n=basis.n, cutoff=basis.cutoff)


def _meanings(feature: Feature) -> dict[str, str]:
    return {"meaning": feature.meaning, "meaning_zh": feature.meaning_zh}


def retrained(sources: Sources, pair: SideBySide) -> report.Retrained:
    """Two models side by side, every figure as the report writes it."""
    sizes = pair.before.sizes, pair.after.sizes
    return report.Retrained(
        before=pair.before.record.id,
        after=pair.after.record.id,
        before_sha256=pair.before.record.content_hash,
        after_sha256=pair.after.record.content_hash,
        created=pair.after.record.created,
        without=pair.without,
        same_people=pair.same_people,
        figures=tuple(report.Pair(name=f.name, before=figure(f.before), after=figure(f.after)) for f in pair.figures),
        structure=tuple(
            report.Pair(name=f.name, before=getattr(sizes[0], f.name), after=getattr(sizes[1], f.name))
            for f in fields(Sizes)
        ),
        gain=tuple(
            report.GainPair(
                name=s.feature,
                party=s.party,
                **_meanings(sources.feature(s.feature)),
                before=figure(s.before),
                after=figure(s.after),
            )
            for s in pair.shifts
        ),
        outcomes=tuple(_outcome(sources, outcome) for outcome in pair.outcomes),
        leak=tuple(
            report.Pair(name=leak.name, before=figure(leak.before), after=figure(leak.after)) for leak in pair.leaks
        ),
    )


def _outcome(sources: Sources, pair: OutcomePair) -> report.OutcomePairLine:
    return report.OutcomePairLine(
        feature=pair.feature,
        **_meanings(sources.feature(pair.feature)),
        before=pair.before and _one(pair.before),
        after=pair.after and _one(pair.after),
    )
