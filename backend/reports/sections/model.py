"""Sections on the model itself: which it is, from whose features, how well it predicts. Knows the report alone."""

from __future__ import annotations

from math import isnan

from backend.i18n import brief, joined
from backend.reports.blocks import BarRow, Bars, Block, Facts, Panel, Panels, Paragraph, Table
from backend.reports.model_comparison import FIGURES
from backend.reports.parameters import cipher_in_words, parameters_in_words
from backend.reports.schema import CutoffLine, PerformanceSection
from backend.reports.sections.questions import directions_in_words, used_features
from backend.reports.sections.writer import NONE, Writer, figure, gain, interval, minute, percent, whole


def identity(write: Writer) -> list[Block]:
    """Which model this is and how it decides."""
    i = write.content.identity
    s = write.content.structure
    facts = write.facts(
        {
            "model": i.model,
            "federation": write.words.text(i.title),
            "predicts": write.words.text(i.predicts),
            "created": minute(i.created),
            "algorithm": write.words.named("algorithm.", f"name_{i.algorithm}").removeprefix("name_"),
            "grown_on": cipher_in_words(write.words, i.cipher, i.key_bits),
            "training_seconds": f"{i.training_seconds:,.1f} {write.words('words.s')}",
            "score_bits": str(i.score_bits),
            "structure": write("structure_is", trees=s.trees, leaves=s.leaves, depth=s.depth, splits=s.splits),
            "aggregation": write(f"aggregation_{s.aggregation}", n=s.outputs),
            "left_out": write.enumerated(i.left_out) or write("nothing"),
        }
    )
    return [facts]


def parameters(write: Writer) -> list[Block]:
    """How the model was grown, and the hashes of its halves."""
    i = write.content.identity
    grown = parameters_in_words(write.words, i.parameters, i.cipher, i.key_bits)
    hosts = []
    for host, digest in i.host_sha256.items():
        hosts.append((write("host_hash", party=write.party(host)), digest))
    return [Facts((*grown.items(), (write("guest_hash"), i.guest_sha256), *hosts))]


def parties(write: Writer) -> list[Block]:
    """Who takes part, with how much."""
    table = write.table(
        write.content.parties,
        ("party", 5, lambda p: write.party(p.name)),
        ("role", 2, lambda p: write.role(p.role)),
        ("records", 2, lambda p: whole(p.records)),
        ("features_used", 3, lambda p: write("part_of", part=p.used, whole=p.features)),
        ("splits", 2, lambda p: whole(p.splits)),
        ("gain", 2, lambda p: gain(p.gain_share)),
    )
    return [table, write.note("parties_note")]


def features(write: Writer) -> list[Block]:
    """Used features: how much, and in which direction."""
    in_use = [f for f in write.content.features if f.usage.splits]
    names = [p.name for p in write.content.parties]
    longest = max((f.usage.gain_share for f in in_use), default=1.0) or 1.0
    bars = (
        BarRow(brief(write.meaning(f)), f.usage.gain_share / longest, gain(f.usage.gain_share), names.index(f.party))
        for f in in_use
    )
    return [
        Bars(used_features(write), tuple(map(write.party, names)), tuple(bars)),
        Paragraph(directions_in_words(write)),
    ]


def features_table(write: Writer) -> list[Block]:
    """A row for each used feature, and which are not used."""
    in_use = [f for f in write.content.features if f.usage.splits]
    unused = [write.meaning(f) for f in write.content.features if not f.usage.splits]
    table = write.table(
        in_use,
        ("feature", 8, lambda f: write.feature(f.name)),
        ("party", 4, lambda f: write.party(f.party)),
        ("gain", 3, lambda f: gain(f.usage.gain_share)),
        ("splits", 2, lambda f: whole(f.usage.splits)),
        ("expected", 3, lambda f: write.direction(f.expected)),
        (
            "learned",
            4,
            lambda f: write.direction(f.learned) + (write("contradicts", n=f.against) if f.contradicts else ""),
        ),
        ("strength", 3, lambda f: NONE if f.learned == "unordered" else f"{f.strength:+.2f}".replace("-", "−")),
    )
    return [
        table,
        write.text("unused", listed=write.listed(unused)) if unused else write.text("all_used"),
        write.note("features_note"),
    ]


def dictionary(write: Writer) -> list[Block]:
    """Every disclosed feature, used or not."""
    table = write.table(
        write.content.features,
        (
            "feature",
            7,
            lambda f: (
                write("named", meaning=write.meaning(f), name=f.name)
                + (f" [{unit}]" if (unit := write.unit(f)) else "")
            ),
        ),
        ("party", 4, lambda f: write.party(f.party)),
        ("kind", 3, lambda f: write.words(f"features.{f.kind}")),
        ("sensitivity", 3, lambda f: _tag(write, f.sensitivity)),
        ("expected", 3, lambda f: write.direction(f.expected)),
        ("codes", 6, lambda f: write.listed(f"{code} = {text}" for code, text in write.codes(f).items()) or NONE),
    )
    return [table]


def _tag(write: Writer, tag: str) -> str:
    """Return an owner's own tag in words; a tag that the catalogue does not know stays as it is."""
    key = tag.strip().casefold().replace(" ", "_")
    in_words = write.words.named("document.tag_", key)
    if in_words != key:
        return in_words
    return tag.replace("_", " ") or NONE


def quality(write: Writer) -> list[Block]:
    """How well the model predicts, and how sure that is."""
    q = write.content.quality
    performance = write.content.performance
    registered = {name: value for name in FIGURES if not isnan(value := getattr(q, name))}
    blocks: list[Block] = [write.text("quality_on", part=write.part(q.part), n=whole(q.n))]
    weights = write.content.identity.parameters.get("weights")
    if weights:
        blocks.append(write.text("weighted", column=weights))
    if performance is None or not _covers(write, performance, registered):
        blocks.append(Facts(tuple((write.words(f"figure.{name}"), figure(v)) for name, v in registered.items())))
    label = write.words.text(write.content.identity.predicts)
    facts = {}
    if q.positive_rate is not None:
        everybody = sum(q.rows.values())
        facts["positive_label"] = label
        facts["positive_rate"] = write(
            "rate_of", share=percent(q.positive_rate), part=write.part("joint"), n=whole(everybody)
        )
        if performance is not None and performance.calibration and write.content.identity.task == "binary":
            n = sum(row.n for row in performance.calibration)
            share = sum(row.n * row.observed for row in performance.calibration) / n
            facts["positive_rate_measured"] = write(
                "rate_of", share=percent(share), part=write.part(performance.part), n=whole(n)
            )
    facts["rows"] = write.enumerated(f"{write.part(part)} {whole(n)}" for part, n in q.rows.items())
    blocks.append(write.facts(facts))
    return [*blocks, *([write.note("no_performance")] if performance is None else _performance(write, performance))]


def quality_tables(write: Writer) -> list[Block]:
    """The numbers of the charts, and how far parts of the data differ."""
    performance = write.content.performance
    if performance is None:
        return []
    return [*_tables(write, performance), *_stability(write, performance)]


def _covers(write: Writer, performance: PerformanceSection, registered: dict[str, float]) -> bool:
    """Return whether the figures with intervals are the registered ones."""
    q = write.content.quality
    values = {f.name: f.value for f in performance.figures}
    return (performance.part, performance.n) == (q.part, q.n) and all(values.get(k) == v for k, v in registered.items())


def _performance(write: Writer, performance: PerformanceSection) -> list[Block]:
    figures = write.table(
        performance.figures,
        ("figure", 6, lambda f: write.words(f"figure.{f.name}")),
        ("value", 3, lambda f: figure(f.value)),
        ("interval_95", 5, lambda f: interval(f.low, f.high)),
    )
    fits = sum(row.low <= row.predicted <= row.high for row in performance.calibration)
    sentence = write("calibration_fits", fits=fits, n=len(performance.calibration))
    number = write.content.identity.task == "number"
    release = write.content.release
    if release is not None and release.dither and performance.source == "training":
        noise = "undithered"
    else:
        noise = "as_released"
    return [
        Paragraph(
            joined(
                write(f"scores_{performance.source}", part=write.part(performance.part), n=whole(performance.n)),
                write(noise),
            )
        ),
        figures,
        write.note("intervals_note"),
        Paragraph(sentence) if number else _charts(write, performance, sentence),
    ]


def _charts(write: Writer, performance: PerformanceSection, sentence: str) -> Panels:
    """Calibration, and ROC if there are two outcomes."""
    fit = tuple((row.predicted, row.observed) for row in performance.calibration)
    ends = tuple((row.low, row.high) for row in performance.calibration)
    panels = [Panel(write("calibration"), write("predicted"), write("observed"), fit, ends)]
    if performance.separation:
        curve = ((0.0, 0.0), *((c.false_positive, c.true_positive) for c in performance.separation), (1.0, 1.0))
        panels.append(Panel(write("roc"), write("false_positive"), write("true_positive"), curve))
        widest = max(performance.separation, key=_lead)
        shares = {"true": percent(widest.true_positive), "false": percent(widest.false_positive)}
        sentence += write("widest", cutoff=percent(widest.cutoff), **shares)
    return Panels(sentence, tuple(panels))


def _tables(write: Writer, performance: PerformanceSection) -> list[Table]:
    """The numbers of the charts."""
    number = write.content.identity.task == "number"
    show = figure if number else percent
    bins = write.table(
        performance.calibration,
        ("predicted", 3, lambda row: show(row.predicted)),
        ("observed", 3, lambda row: show(row.observed)),
        ("interval_95", 5, lambda row: interval(row.low, row.high, show)),
        ("n", 2, lambda row: whole(row.n)),
    )
    curve = write.table(
        performance.separation,
        ("cutoff", 3, lambda c: percent(c.cutoff)),
        ("true_positive", 5, lambda c: percent(c.true_positive)),
        ("false_positive", 5, lambda c: percent(c.false_positive)),
        ("lead", 3, lambda c: percent(_lead(c))),
    )
    return [bins, curve] if performance.separation else [bins]


def _lead(point: CutoffLine) -> float:
    return point.true_positive - point.false_positive


def _stability(write: Writer, performance: PerformanceSection) -> list[Block]:
    if not performance.stability:
        return []
    table = write.table(
        performance.stability,
        ("parts", 5, lambda s: write("psi_of", part=write.part(s.part), reference=write.part(s.reference))),
        ("psi", 2, lambda s: figure(s.psi)),
        ("chance", 3, lambda s: figure(s.chance)),
        ("reading", 4, lambda s: write("psi_moved" if s.psi > s.chance else "psi_still")),
        ("n", 2, lambda s: whole(s.n)),
    )
    return [write.heading("stability"), table, write.note("stability_note")]
