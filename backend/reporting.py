"""Fills the canonical report with what the Guest's registry, store and audit log know; reads no Host's table and no Host's half."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from backend.assurance import report
from backend.assurance.compliance import DISPARITY, PROXIES, Basis, ComplianceReport, Duty, Evidence, Finding
from backend.assurance.direction import LearnedDirection
from backend.assurance.importance import FeatureImportance
from backend.assurance.report import schema
from backend.assurance.report_html import read_html, to_html
from backend.assurance.report_outline import answers
from backend.assurance.report_pdf import is_drawn_here, language_of_pdf, read_pdf, to_pdf
from backend.assurance.report_words import Words
from backend.data.dictionary import Feature
from backend.data.federation import Federation
from backend.protocols.messages import MESSAGES
from backend.results import ModelRecord
from backend.side_by_side import OutcomePair, SideBySide, Sizes
from backend.store.audit_log import Entry, Verdict
from backend.store.reviews import Review, SignOff
from backend.trees.ensemble import GuestModel

__all__ = [
    "FORMS",
    "Checked",
    "Sources",
    "answers",
    "check",
    "content_of",
    "issued_of",
    "language_of_pdf",
    "schema",
    "sign_offs_of",
]

FORMS: dict[str, Callable[[report.Report, str], bytes]] = {
    "json": lambda made, language: report.to_json(made).encode(),
    "html": lambda made, language: to_html(made, language).encode(),
    "pdf": to_pdf,
}
FIGURES = ("auc", "ks", "log_loss", "accuracy", "rmse", "r2")


@dataclass(frozen=True)
class Sources:
    """What a report is made of.

    Attributes
    ----------
    reviews : tuple of Review
        Oldest first.
    entries : sequence of Entry
        Of the federation's audit log.
    disparities, proxies : dict of str to tuple of Evidence, optional
        Feature → what was measured about it; by default what the findings carry.
    bases : mapping of (claim, feature) to Basis
        What that was measured on.
    retrained : tuple of SideBySide
        The model beside the one it replaces, and those that replace it.
    """

    record: ModelRecord
    federation: Federation
    model: GuestModel
    importance: Sequence[FeatureImportance]
    directions: Sequence[LearnedDirection]
    compliance: ComplianceReport
    reviews: Sequence[Review]
    sign_offs: Sequence[SignOff]
    entries: Sequence[Entry]
    disparities: Mapping[str, tuple[Evidence, ...]] | None = None
    proxies: Mapping[str, tuple[Evidence, ...]] | None = None
    bases: Mapping[tuple[str, str], Basis] = field(default_factory=dict)
    retrained: tuple[SideBySide, ...] = ()

    def feature(self, name: str) -> Feature:
        """A feature of the federation, or of the model where the federation has given it up."""
        known = (*self.federation.features(), *self.model.dictionary)
        return next((f for _, f in known if f.name == name), Feature(name=name, meaning=name))


def content_of(sources: Sources) -> report.Content:
    """What people assess and sign."""
    findings = sources.compliance.findings
    return report.Content(
        identity=_identity(sources),
        parties=_parties(sources),
        features=_features(sources),
        structure=_structure(sources.model),
        assessment=_assessment(sources),
        fairness=_evidenced(sources, DISPARITY, sources.disparities, ((f.feature, f.disparities) for f in findings)),
        proxies=_evidenced(sources, PROXIES, sources.proxies, ((f.feature, f.proxies) for f in findings)),
        retrained=tuple(_retrained(sources, pair) for pair in sources.retrained),
        quality=_quality(sources.record),
        training_traffic=_training_traffic(sources),
        limits=tuple(report.Limit(key=key, text=Words("en")(f"document.limit_{key}")) for key in _limits(sources)),
    )


def issued_of(
    sources: Sources, content: report.Content, verdict: Verdict, now: str, by: tuple[str, str]
) -> report.Issued:
    """What belongs to the day of the report; `by` is actor and role."""
    return report.Issued(
        time=now,
        actor=by[0],
        role=by[1],
        law_of=sources.compliance.on,
        sign_offs=sign_offs_of(sources, content),
        use=_use(sources),
        audit=report.AuditLine(
            entries=verdict.entries,
            head_sha256=verdict.head.hash,
            holds=verdict.holds,
            problems=verdict.problems,
            witnesses=verdict.witnesses,
        ),
    )


def sign_offs_of(sources: Sources, content: report.Content) -> tuple[report.SignOffLine, ...]:
    """Every sign-off, and whether it covers this content."""
    digest = report.content_hash(content)
    return tuple(
        report.SignOffLine(
            person=s.person,
            role=s.role,
            statement=s.statement,
            report_sha256=s.report_hash,
            covers=s.report_hash == digest,
            time=s.time,
        )
        for s in sources.sign_offs
    )


def _identity(sources: Sources) -> report.Identity:
    record, federation = sources.record, sources.federation
    return report.Identity(
        model=record.id,
        federation=federation.name,
        title=federation.title,
        title_zh=federation.title_zh,
        synthetic=federation.synthetic,
        created=record.created,
        task=record.task,
        predicts=federation.label.meaning,
        predicts_zh=federation.label.meaning_zh,
        algorithm=record.algorithm,
        cipher=record.cipher,
        key_bits=record.key_bits,
        score_bits=record.score_bits,
        guest_sha256=record.content_hash,
        host_sha256=record.host_hashes,
        parameters={name: str(value) for name, value in record.parameters.items()},
        left_out=record.exclude,
        training_seconds=round(record.seconds, 1),
    )


def _parties(sources: Sources) -> tuple[report.PartyLine, ...]:
    lines = []
    brought = sources.record.alignment.records if sources.record.alignment else {}
    for name in (sources.model.guest, *sources.model.hosts):
        party, rows = sources.federation.party(name), [r for r in sources.importance if r.party == name]
        lines.append(
            report.PartyLine(
                name=name,
                title=party.title,
                title_zh=party.title_zh,
                role="guest" if name == sources.model.guest else "host",
                records=brought.get(name),
                features=len(rows),
                used=sum(r.splits > 0 for r in rows),
                splits=sum(r.splits for r in rows),
                gain_share=_share(sum(r.gain_share for r in rows)),
            )
        )
    return tuple(lines)


def _features(sources: Sources) -> tuple[report.FeatureLine, ...]:
    features = {feature.name: feature for _, feature in sources.model.dictionary}
    ways = {direction.feature: direction for direction in sources.directions}
    return tuple(
        report.FeatureLine(
            name=row.feature,
            party=row.party,
            meaning=features[row.feature].meaning,
            meaning_zh=features[row.feature].meaning_zh,
            unit=features[row.feature].unit,
            kind=features[row.feature].kind.value,
            sensitivity=features[row.feature].sensitivity,
            codes=features[row.feature].categories,
            splits=row.splits,
            trees=row.trees,
            gain_share=_share(row.gain_share),
            cover_share=_share(row.cover_share),
            expected=ways[row.feature].expected,
            learned=ways[row.feature].learned,
            strength=round(ways[row.feature].strength, 2),
            contradicts=ways[row.feature].contradicts,
            against=len(ways[row.feature].where),
        )
        for row in sources.importance
    )


def _structure(model: GuestModel) -> report.Structure:
    owners = [split.owner for tree in model.trees for split in tree.splits.values()]
    median = model.outputs.aggregation == "median"
    return report.Structure(
        trees=len(model.trees),
        leaves=model.n_leaves,
        depth=max(tree.depth for tree in model.trees),
        splits=len(owners),
        hidden_splits=sum(owner != model.guest for owner in owners),
        aggregation=model.outputs.aggregation,
        outputs=len(model.trees) if median else model.outputs.count,
    )


def _assessment(sources: Sources) -> report.Assessment:
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
        gain_share=_share(finding.usage.gain_share),
        proxies=_measured(finding.proxies),
        disparities=_measured(finding.disparities),
        proxies_on=_basis(finding.proxies_on),
        disparities_on=_basis(finding.disparities_on),
        decision=last
        and report.Decision(decision=last.verdict, reason=last.reason, person=last.person, time=last.time),
        earlier_decisions=max(0, len(about) - 1),
    )


def _measured(evidence: tuple[Evidence, ...] | None) -> tuple[report.Measured, ...] | None:
    if evidence is None:
        return None
    return tuple(_one(e) for e in evidence)


def _one(e: Evidence) -> report.Measured:
    figures = {name: _figure(getattr(e, name)) for name in ("value", "low", "high")}
    return report.Measured(about=e.about, about_zh=e.about_zh, measure=e.measure, n=e.n, **figures)


def _basis(basis: Basis | None) -> report.BasisLine | None:
    return None if basis is None else report.BasisLine(n=basis.n, cutoff=basis.cutoff)


def _meanings(feature: Feature) -> dict[str, str]:
    return {"meaning": feature.meaning, "meaning_zh": feature.meaning_zh}


def _retrained(sources: Sources, pair: SideBySide) -> report.Retrained:
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
        figures=tuple(report.Pair(name=f.name, before=_figure(f.before), after=_figure(f.after)) for f in pair.figures),
        structure=tuple(
            report.Pair(name=f.name, before=getattr(sizes[0], f.name), after=getattr(sizes[1], f.name))
            for f in fields(Sizes)
        ),
        gain=tuple(
            report.GainPair(
                name=s.feature,
                party=s.party,
                **_meanings(sources.feature(s.feature)),
                before=_figure(s.before),
                after=_figure(s.after),
            )
            for s in pair.shifts
        ),
        outcomes=tuple(_outcome(sources, outcome) for outcome in pair.outcomes),
    )


def _outcome(sources: Sources, pair: OutcomePair) -> report.OutcomePair:
    return report.OutcomePair(
        feature=pair.feature,
        **_meanings(sources.feature(pair.feature)),
        before=pair.before and _one(pair.before),
        after=pair.after and _one(pair.after),
    )


def _evidenced(
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


def _quality(record: ModelRecord) -> report.Quality:
    figures = {name: _figure(getattr(record.metrics, name)) for name in FIGURES}
    return report.Quality(
        part=record.metrics.part,
        n=record.metrics.n,
        **figures,
        positive_rate=_figure(record.positive_rate),
        rows=record.parts,
    )


def _training_traffic(sources: Sources) -> tuple[report.Traffic, ...] | None:
    trained = [
        e for e in sources.entries if e.action == "train" and e.body.get("model_sha256") == sources.record.content_hash
    ]
    return _traffic(trained[-1:]) or None


def _traffic(entries: Iterable[Entry]) -> tuple[report.Traffic, ...]:
    """Messages and bytes of all entries, by class, sender and receiver, in the order in which they first came."""
    counts: dict[tuple[str, str, str], list[int]] = {}
    for entry in entries:
        for kind, sender, receiver, messages, size in entry.body.get("traffic", ()):
            line = counts.setdefault((kind, sender, receiver), [0, 0])
            line[0] += messages
            line[1] += size
    return tuple(
        report.Traffic(
            kind=kind,
            sender=sender,
            receiver=receiver,
            messages=messages,
            bytes=size,
            holds=MESSAGES[kind].HOLDS,
            readable_by=MESSAGES[kind].READABLE_BY,
        )
        for (kind, sender, receiver), (messages, size) in counts.items()
        if kind in MESSAGES
    )


def _use(sources: Sources) -> report.Use:
    own = [e for e in sources.entries if e.body.get("model_sha256") == sources.record.content_hash]
    scorings = [e for e in own if e.action == "score" and "cipher" in e.body]
    comparisons = [e for e in own if e.action == "compare" and not e.body.get("made_up")]
    return report.Use(
        scorings=len(scorings),
        rows=sum(e.body["rows"] for e in scorings),
        failed=sum(e.body["failed"] for e in scorings),
        in_the_clear=sum(e.body["rows"] for e in scorings if e.body["cipher"] == "none"),
        comparisons=len(comparisons),
        traffic=_traffic([*scorings, *comparisons]),
    )


def _limits(sources: Sources) -> Iterable[str]:
    record = sources.record
    yield "honest"
    yield "score"
    if record.algorithm.startswith("imported"):
        yield "imported"
    elif record.cipher == "ranks":
        yield "ranks"
    else:
        yield "training"
    if record.cipher == "none":
        yield "plain"
    if sources.model.outputs.aggregation == "median":
        yield "median"
    yield from ("simulation", "assessed", "direction", "signature")


def _share(value: float) -> float:
    return round(value, report.SHARE_DIGITS)


def _figure(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, report.SHARE_DIGITS)


@dataclass(frozen=True)
class Checked:
    """What a check of a report's file found.

    Attributes
    ----------
    report : Report
    drawn : {"json", "yes", "other"}
        Whether what a reader sees is what is drawn from the report inside: nothing is drawn in JSON; ``other``: a PDF that other
        fonts or another version drew, or that was changed.
    named_by : tuple of (str, Entry)
        Federation and entry of its audit log that name the report; none where it was not issued from this home.
    """

    report: report.Report
    drawn: Literal["json", "yes", "other"]
    named_by: tuple[tuple[str, Entry], ...] = ()


def check(blob: bytes) -> Checked:
    """Read the report in a file of any form; check its hashes, and that what is drawn belongs to it.

    Raises
    ------
    ModelError
        The file holds no report, or was changed.
    """
    if blob.startswith(b"%PDF"):
        made = read_pdf(blob)
        return Checked(made, "yes" if is_drawn_here(blob, made) else "other")
    text = blob.decode("utf-8", errors="replace")
    if text.lstrip()[:1] == "<":
        return Checked(read_html(text), "yes")
    return Checked(report.read(text), "json")
