"""What people assess and sign: the model as the Guest's partial model and record tell it, and the claims about it."""

from __future__ import annotations

from collections.abc import Iterable

from backend.compliance.assessment import DISPARITY, PROXIES
from backend.i18n import Catalogue
from backend.reports import schema as report
from backend.reports.build.claims import assessment, evidenced, retrained
from backend.reports.build.performance import performance
from backend.reports.build.rounded import figure, share
from backend.reports.build.sources import Sources
from backend.reports.build.traffic import training_traffic
from backend.results import ModelRecord
from backend.trees.ensemble import GuestModel

TOLD = ("federation", "created", "task", "algorithm", "cipher", "key_bits", "score_bits")  # as they stand in the record
FIGURES = ("auc", "ks", "log_loss", "accuracy", "rmse", "r2")


def content_of(sources: Sources) -> report.Content:
    """What people assess and sign."""
    findings = sources.compliance.findings
    return report.Content(
        identity=_identity(sources),
        parties=_parties(sources),
        features=_features(sources),
        structure=_structure(sources.model),
        assessment=assessment(sources),
        fairness=evidenced(sources, DISPARITY, sources.disparities, ((f.feature, f.disparities) for f in findings)),
        proxies=evidenced(sources, PROXIES, sources.proxies, ((f.feature, f.proxies) for f in findings)),
        retrained=tuple(retrained(sources, pair) for pair in sources.retrained),
        quality=_quality(sources.record),
        performance=performance(sources.card),
        release=_release(sources.record),
        training_traffic=training_traffic(sources),
        limits=tuple(report.Limit(key=key, text=Catalogue("en")(f"document.limit_{key}")) for key in _limits(sources)),
    )


def _identity(sources: Sources) -> report.Identity:
    record, federation = sources.record, sources.federation
    return report.Identity(
        **{name: getattr(record, name) for name in TOLD},
        model=record.id,
        title=federation.title,
        title_zh=federation.title_zh,
        synthetic=federation.synthetic,
        predicts=federation.label.meaning,
        predicts_zh=federation.label.meaning_zh,
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
                gain_share=share(sum(r.gain_share for r in rows)),
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
            gain_share=share(row.gain_share),
            cover_share=share(row.cover_share),
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


def _quality(record: ModelRecord) -> report.Quality:
    figures = {name: figure(getattr(record.metrics, name)) for name in FIGURES}
    return report.Quality(
        part=record.metrics.part,
        n=record.metrics.n,
        **figures,
        positive_rate=figure(record.positive_rate),
        rows=record.parts,
    )


def _release(record: ModelRecord) -> report.ReleaseLine | None:
    told = record.release
    if told is None:
        return None
    return report.ReleaseLine(
        score_bits=record.score_bits,
        dither=told.dither,
        named=share(told.named),
        named_without=figure(told.without_dither),
        paths=told.paths,
        people=told.people,
        records=told.records,
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
