"""What people assess and sign: the model as the Guest's partial model and record describe it, and the claims about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from backend.compliance.assessment import DISPARITY, PROXIES, with_decisions
from backend.data.rounding import gain, rounded
from backend.i18n import Catalogue
from backend.reports import schema as report
from backend.reports.build.claims import evidenced, retrained
from backend.reports.build.fill import fill
from backend.reports.build.issued import traffic_of
from backend.reports.build.performance import performance
from backend.reports.build.searches import searches
from backend.reports.build.sources import Sources
from backend.reports.model_comparison import Sizes
from backend.results import ModelRecord


def content_of(sources: Sources) -> report.Content:
    """Return what people assess and sign."""
    findings = sources.compliance.findings
    limit = Catalogue("en")
    return report.Content(
        identity=_identity(sources),
        parties=tuple(_party(sources, name) for name in (sources.model.guest, *sources.model.hosts)),
        features=tuple(_features(sources)),
        structure=_structure(sources),
        assessment=with_decisions(sources.compliance, sources.reviews),
        fairness=evidenced(sources, DISPARITY, sources.disparities, ((f.feature, f.disparities) for f in findings)),
        proxies=evidenced(sources, PROXIES, sources.proxies, ((f.feature, f.proxies) for f in findings)),
        retrained=tuple(retrained(sources, pair) for pair in sources.retrained),
        quality=_quality(sources.record),
        performance=performance(sources.card),
        validation=sources.validation,
        monitoring=sources.monitored,
        release=_release(sources.record),
        training_traffic=_training_traffic(sources),
        out_of_time=_out_of_time(sources.record),
        details=sources.details,
        challenger=sources.challenger and retrained(sources, sources.challenger),
        dossiers=sources.dossiers or None,
        searches=tuple(searches(sources)),
        limits=tuple(report.Limit(key=key, text=limit(f"document.limit_{key}")) for key in _limits(sources)),
    )


def _identity(sources: Sources) -> report.Identity:
    record = sources.record
    label = sources.federation.label
    return fill(
        report.Identity,
        record,
        sources.federation,
        model=record.id,
        predicts=label.meaning,
        guest_sha256=record.content_hash,
        host_sha256=record.host_hashes,
        parameters={name: str(value) for name, value in record.parameters.items()},
        left_out=record.exclude,
        training_seconds=round(record.seconds, 1),
    )


def _party(sources: Sources, name: str) -> report.PartyLine:
    alignment = sources.record.alignment
    rows = [row for row in sources.importance if row.party == name]
    return fill(
        report.PartyLine,
        sources.federation.party(name),
        role="guest" if name == sources.model.guest else "host",
        records=alignment.records.get(name) if alignment else None,
        features=len(rows),
        used=sum(row.splits > 0 for row in rows),
        splits=sum(row.splits for row in rows),
        gain_share=gain(sum(row.gain_share for row in rows)),
    )


def _features(sources: Sources) -> Iterable[report.FeatureLine]:
    features = {feature.name: feature for _, feature in sources.model.dictionary}
    directions = {direction.feature: direction for direction in sources.directions}
    for row in sources.importance:
        feature = features[row.feature]
        direction = directions[row.feature]
        yield fill(
            report.FeatureLine,
            row,
            direction,
            feature,
            usage=row,
            kind=feature.kind.value,
            codes=feature.categories,
            strength=round(direction.strength, 2),
            against=len(direction.where),
        )


def _structure(sources: Sources) -> report.Structure:
    sizes = Sizes.of(sources.model)
    return fill(report.Structure, sizes, sources.model.outputs, outputs=sizes.released)


def _quality(record: ModelRecord) -> report.Quality:
    return report.Quality(**asdict(record.metrics), positive_rate=record.positive_rate, rows=record.parts)


def _release(record: ModelRecord) -> report.ReleaseLine | None:
    release = record.release
    if release is None:
        return None
    exact = {"dither": release.dither, "paths": release.paths}  # not rounded: a dither is a power of two
    return fill(report.ReleaseLine, release, record, named_without=rounded(release.without_dither), **exact)


def _out_of_time(record: ModelRecord) -> report.OutOfTimeLine | None:
    if record.test_from:
        return report.OutOfTimeLine(test_from=record.test_from, n=record.parts["test"])
    return None


def _training_traffic(sources: Sources) -> tuple[report.Traffic, ...] | None:
    """Of the model's training; None if it was not logged."""
    digest = sources.record.content_hash
    trained = []
    for e in sources.entries:
        if e.action == "train" and e.body.get("model_sha256") == digest:
            trained.append(e)
    return traffic_of(trained[-1:]) or None


def _limits(sources: Sources) -> Iterable[str]:
    record = sources.record
    yield from ("honest", "score")
    if record.algorithm.startswith("imported"):
        yield "imported"
    else:
        yield "ranks" if record.cipher == "ranks" else "training"
    if record.cipher == "none":
        yield "plain"
    if sources.model.outputs.aggregation == "median":
        yield "median"
    yield from ("simulation", "assessed", "direction", "signature")
