"""What a printed report says of quality: figures, calibration, ROC, stability; and what a score gives away. Knows the report alone."""

from __future__ import annotations

from backend.reports.render.blocks import Block, Facts, Heading, Panel, Panels, Table, Text
from backend.reports.render.wording import Wording, figure, percent
from backend.reports.schema import CutoffLine, PerformanceSection

FIGURES = ("auc", "ks", "log_loss", "accuracy", "rmse", "r2")


class SaysQuality(Wording):
    """Sections about how well the model predicts, and what its scores tell."""

    def quality(self) -> list[Block]:
        """How well it predicts, and how sure that is."""
        q, found = self._content.quality, self._content.performance
        rate = [] if q.positive_rate is None else [(self._d("positive_rate"), percent(q.positive_rate))]
        parts = ", ".join(f"{self._part(part)} {n:,}" for part, n in q.rows.items())
        registered = {name: value for name in FIGURES if (value := getattr(q, name)) is not None}
        blocks: list[Block] = [Text(self._d("quality_on", part=self._part(q.part), n=f"{q.n:,}"))]
        if found is None or not self._covers(found, registered):
            blocks.append(Facts(tuple((self.w(f"figure.{name}"), figure(value)) for name, value in registered.items())))
        blocks.append(Facts((*rate, (self._d("rows"), parts))))
        return [*blocks, *([Text(self._d("no_performance"), "note")] if found is None else self._performance(found))]

    def _covers(self, found: PerformanceSection, registered: dict[str, float]) -> bool:
        """Whether the figures with intervals are the registered ones."""
        q, known = self._content.quality, {f.name: f.value for f in found.figures}
        return (found.part, found.n) == (q.part, q.n) and all(known.get(k) == v for k, v in registered.items())

    def _performance(self, found: PerformanceSection) -> list[Block]:
        figures = tuple(
            (self.w(f"figure.{f.name}"), figure(f.value), f"{figure(f.low)} – {figure(f.high)}") for f in found.figures
        )
        drawn = self._content.identity.task != "number"
        return [
            Heading(self._d("intervals"), 2),
            Text(self._d(f"scores_{found.source}", part=self._part(found.part), n=f"{found.n:,}")),
            Table(self._heads(("figure", "value", "interval_95")), figures, (6, 3, 5), (1, 2)),
            Text(self._d("intervals_note"), "note"),
            Heading(self._d("curves"), 2),
            *([self._panels(found)] if drawn else [Text(self._fits(found))]),
            *self._tables(found),
            *self._stability(found),
        ]

    def _panels(self, found: PerformanceSection) -> Panels:
        """Calibration, and ROC where there are two outcomes."""
        fit = tuple((row.predicted, row.observed) for row in found.calibration)
        ends = tuple((row.low, row.high) for row in found.calibration)
        panels = [Panel(self._d("calibration"), self._d("predicted"), self._d("observed"), fit, ends)]
        said = self._fits(found)
        if found.separation:
            curve = ((0.0, 0.0), *((c.false_positive, c.true_positive) for c in found.separation), (1.0, 1.0))
            panels.append(Panel(self._d("roc"), self._d("false_positive"), self._d("true_positive"), curve))
            widest = max(found.separation, key=_lead)
            said += self._d(
                "widest",
                cutoff=percent(widest.cutoff),
                true=percent(widest.true_positive),
                false=percent(widest.false_positive),
            )
        return Panels(said, tuple(panels))

    def _fits(self, found: PerformanceSection) -> str:
        fits = sum(row.low <= row.predicted <= row.high for row in found.calibration)
        return self._d("calibration_fits", fits=fits, n=len(found.calibration))

    def _tables(self, found: PerformanceSection) -> list[Block]:
        """The numbers of the charts."""
        bins = tuple(
            (figure(row.predicted), figure(row.observed), f"{figure(row.low)} – {figure(row.high)}", f"{row.n:,}")
            for row in found.calibration
        )
        head = self._heads(("predicted", "observed", "interval_95", "n"))
        tables: list[Block] = [Table(head, bins, (3, 3, 5, 2), (0, 1, 2, 3))]
        if found.separation:
            rows = tuple(
                (percent(c.cutoff), percent(c.true_positive), percent(c.false_positive), percent(_lead(c)))
                for c in found.separation
            )
            head = self._heads(("cutoff", "true_positive", "false_positive", "lead"))
            tables.append(Table(head, rows, (3, 5, 5, 3), (0, 1, 2, 3)))
        return tables

    def _stability(self, found: PerformanceSection) -> list[Block]:
        if not found.stability:
            return []
        rows = tuple(
            (
                self._d("psi_of", part=self._part(s.part), reference=self._part(s.reference)),
                figure(s.psi),
                figure(s.chance),
                self._d("psi_moved" if s.psi > s.chance else "psi_still"),
                f"{s.n:,}",
            )
            for s in found.stability
        )
        head = self._heads(("parts", "psi", "chance", "reading", "n"))
        return [
            Heading(self._d("stability"), 2),
            Table(head, rows, (5, 2, 3, 4, 2), (1, 2, 4)),
            Text(self._d("stability_note"), "note"),
        ]

    def _part(self, part: str) -> str:
        return self.w.named("document.part_", part)

    def leak(self) -> list[Block]:
        """What a score gives away, as it was measured before the model was registered."""
        told = self._content.release
        if told is None:
            return [Heading(self._d("leak"), 2), Text(self._d("leak_not_measured"))]
        without = "" if told.named_without is None else self._d("leak_without", share=percent(told.named_without))
        dither = self._d("leak_dither", width=f"{told.dither:.4f}") if told.dither else self._d("leak_plain")
        said = self._d(
            "leak_is",
            named=percent(told.named),
            people=f"{told.people:,}",
            records=f"{told.records:,}",
            bits=told.score_bits,
            dither=dither,
            paths=f"{told.paths:g}",
        )
        return [Heading(self._d("leak"), 2), Text(said + without), Text(self._d("leak_note"), "note")]


def _lead(point: CutoffLine) -> float:
    return point.true_positive - point.false_positive
