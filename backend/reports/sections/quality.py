"""What a report says of quality: figures with intervals, calibration, ROC, stability. Knows the report alone."""

from __future__ import annotations

from backend.reports.blocks import Block, Facts, Panel, Panels, Table, Text
from backend.reports.model_comparison import FIGURES
from backend.reports.schema import CutoffLine, PerformanceSection
from backend.reports.sections.writer import Writer, figure, interval, percent, whole


def quality(write: Writer) -> list[Block]:
    """How well the model predicts, and how sure that is."""
    q, found = write.content.quality, write.content.performance
    registered = {name: value for name in FIGURES if (value := getattr(q, name)) is not None}
    blocks: list[Block] = [write.text("quality_on", part=write.part(q.part), n=whole(q.n))]
    if found is None or not _covers(write, found, registered):
        blocks.append(Facts(tuple((write.words(f"figure.{name}"), figure(v)) for name, v in registered.items())))
    rate = {} if q.positive_rate is None else {"positive_rate": percent(q.positive_rate)}
    rows = ", ".join(f"{write.part(part)} {whole(n)}" for part, n in q.rows.items())
    blocks.append(write.facts({**rate, "rows": rows}))
    return [*blocks, *([write.note("no_performance")] if found is None else _performance(write, found))]


def _covers(write: Writer, found: PerformanceSection, registered: dict[str, float]) -> bool:
    """Whether the figures with intervals are the registered ones."""
    q, known = write.content.quality, {f.name: f.value for f in found.figures}
    return (found.part, found.n) == (q.part, q.n) and all(known.get(k) == v for k, v in registered.items())


def _performance(write: Writer, found: PerformanceSection) -> list[Block]:
    figures = write.table(
        found.figures,
        ("figure", 6, lambda f: write.words(f"figure.{f.name}")),
        ("value", 3, lambda f: figure(f.value)),
        ("interval_95", 5, lambda f: interval(f.low, f.high)),
        numeric=("value", "interval_95"),
    )
    fits = sum(row.low <= row.predicted <= row.high for row in found.calibration)
    sentence = write("calibration_fits", fits=fits, n=len(found.calibration))
    number = write.content.identity.task == "number"
    return [
        write.heading("intervals"),
        write.text(f"scores_{found.source}", part=write.part(found.part), n=whole(found.n)),
        figures,
        write.note("intervals_note"),
        write.heading("curves"),
        Text(sentence) if number else _charts(write, found, sentence),
        *_tables(write, found),
        *_stability(write, found),
    ]


def _charts(write: Writer, found: PerformanceSection, sentence: str) -> Panels:
    """Calibration, and ROC where there are two outcomes."""
    fit = tuple((row.predicted, row.observed) for row in found.calibration)
    ends = tuple((row.low, row.high) for row in found.calibration)
    panels = [Panel(write("calibration"), write("predicted"), write("observed"), fit, ends)]
    if found.separation:
        curve = ((0.0, 0.0), *((c.false_positive, c.true_positive) for c in found.separation), (1.0, 1.0))
        panels.append(Panel(write("roc"), write("false_positive"), write("true_positive"), curve))
        widest = max(found.separation, key=_lead)
        shares = {"true": percent(widest.true_positive), "false": percent(widest.false_positive)}
        sentence += write("widest", cutoff=percent(widest.cutoff), **shares)
    return Panels(sentence, tuple(panels))


def _tables(write: Writer, found: PerformanceSection) -> list[Table]:
    """The numbers of the charts."""
    bins = write.table(
        found.calibration,
        ("predicted", 3, lambda row: figure(row.predicted)),
        ("observed", 3, lambda row: figure(row.observed)),
        ("interval_95", 5, lambda row: interval(row.low, row.high)),
        ("n", 2, lambda row: whole(row.n)),
        numeric=("predicted", "observed", "interval_95", "n"),
    )
    curve = write.table(
        found.separation,
        ("cutoff", 3, lambda c: percent(c.cutoff)),
        ("true_positive", 5, lambda c: percent(c.true_positive)),
        ("false_positive", 5, lambda c: percent(c.false_positive)),
        ("lead", 3, lambda c: percent(_lead(c))),
        numeric=("cutoff", "true_positive", "false_positive", "lead"),
    )
    return [bins, curve] if found.separation else [bins]


def _lead(point: CutoffLine) -> float:
    return point.true_positive - point.false_positive


def _stability(write: Writer, found: PerformanceSection) -> list[Block]:
    if not found.stability:
        return []
    table = write.table(
        found.stability,
        ("parts", 5, lambda s: write("psi_of", part=write.part(s.part), reference=write.part(s.reference))),
        ("psi", 2, lambda s: figure(s.psi)),
        ("chance", 3, lambda s: figure(s.chance)),
        ("reading", 4, lambda s: write("psi_moved" if s.psi > s.chance else "psi_still")),
        ("n", 2, lambda s: whole(s.n)),
        numeric=("psi", "chance", "n"),
    )
    return [write.heading("stability"), table, write.note("stability_note")]
