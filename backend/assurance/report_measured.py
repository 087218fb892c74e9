"""What a printed report says of what was measured: evidence about groups, a model trained anew beside the old. Knows the report alone."""

from __future__ import annotations

from backend.assurance.fairness import measure_in_words
from backend.assurance.report import BasisLine, Evidenced, Measured, OutcomePair, Retrained
from backend.assurance.report_blocks import Block, Facts, Heading, Table, Text
from backend.assurance.report_wording import Wording, figure, minute, percent, whole


class SaysMeasured(Wording):
    """Sections about measurements."""

    def _evidence(self, measures: tuple[Measured, ...] | None, on: BasisLine | None) -> str:
        if measures is None:
            return self._d("not_measured")
        found = self._listed(self._one(m) for m in measures) or self._d("nothing_found")
        return found + (f" ({self._on(on)})" if on else "")

    def _on(self, on: BasisLine) -> str:
        """On how many records, and at which cut-off."""
        return self._d("on", n=f"{on.n:,}") + ("" if on.cutoff is None else self._d("at", cutoff=percent(on.cutoff)))

    def _about(self, m: Measured) -> str:
        """A group, or another feature."""
        return self._named(m.about) if m.about in self._features else self.w.either(m.about, m.about_zh)

    def _one(self, m: Measured) -> str:
        about, measure = self._about(m), measure_in_words(self.w, m.measure)
        if m.value is None:
            return self._d("too_few", about=about, measure=measure)
        interval = "" if m.low is None or m.high is None else f" [{figure(m.low)}, {figure(m.high)}]"
        return f"{about}: {measure} {figure(m.value)}{interval}, n = {m.n:,}"

    def evidence(self) -> list[Block]:
        """Outcome disparity and proxies, measured or not."""
        return [
            *self._measured_section("fairness", self._content.fairness),
            *self._measured_section("proxies", self._content.proxies),
        ]

    def _measured_section(self, key: str, found: tuple[Evidenced, ...] | None) -> list[Block]:
        heading = Heading(self._d(key), 2)
        if found is None:
            return [heading, Text(self._d(f"{key}_not_measured"))]
        if not found:
            return [heading, Text(self._d("nothing_found"))]
        rows = tuple(
            (
                self._d("named", meaning=self.w.either(e.meaning, e.meaning_zh), name=e.feature),
                self._about(m),
                measure_in_words(self.w, m.measure),
                figure(m.value),
                f"{figure(m.low)} – {figure(m.high)}",
                f"{m.n:,}",
            )
            for e in found
            for m in e.measures
        )
        head = self._heads(("feature", "against", "measure", "value", "interval", "n"))
        bases = [
            Text(self._d("measured_on", feature=e.feature, on=self._on(e.on)), "note")
            for e in found
            if e.on is not None
        ]
        table = [Table(head, rows, (5, 4, 4, 2, 3, 2), (3, 4, 5))] if rows else [Text(self._d("nothing_found"))]
        return [heading, *table, *bases]

    def retrained(self) -> list[Block]:
        """Each model that was trained anew beside the one that it replaces."""
        blocks: list[Block] = []
        for pair in self._content.retrained:
            blocks += [Heading(self._d("beside", before=pair.before, after=pair.after), 2), *self._beside(pair)]
        return blocks or [Text(self._d("not_retrained"))]

    def _beside(self, pair: Retrained) -> list[Block]:
        listed = ", ".join(pair.without) or self._d("nothing")
        head = self._heads(("figure", "before", "after"))
        figures = [(self.w(f"figure.{f.name}"), figure(f.before), figure(f.after)) for f in pair.figures]
        sizes = [(self.w(f"sizes.{f.name}"), whole(f.before), whole(f.after)) for f in pair.structure]
        gains = tuple(
            (
                self._d("named", meaning=self.w.either(g.meaning, g.meaning_zh), name=g.name),
                self._party(g.party),
                self._d("not_given") if g.before is None else percent(g.before),
                self._d("not_given") if g.after is None else percent(g.after),
            )
            for g in pair.gain
        )
        return [
            Text(self._d("beside_without", without=listed, created=minute(pair.created))),
            Text(self._d("same_people" if pair.same_people else "other_people"), "note"),
            Table(head, (*figures, *sizes), (6, 3, 3), (1, 2)),
            *self._outcomes(pair.outcomes),
            Table(self._heads(("feature", "party", "gain_before", "gain_after")), gains, (7, 4, 3, 3), (2, 3)),
            Facts(
                tuple(
                    (self._d("half_of", model=m), h)
                    for m, h in ((pair.before, pair.before_sha256), (pair.after, pair.after_sha256))
                )
            ),
        ]

    def _outcomes(self, pairs: tuple[OutcomePair, ...]) -> list[Block]:
        """Decisions by group in both models, each with its interval and number of records."""
        if not pairs:
            return [Text(self._d("outcomes_not_measured"), "note")]
        rows = []
        for p in pairs:
            told = p.before or p.after
            if told is None:
                continue
            named = self._d("named", meaning=self.w.either(p.meaning, p.meaning_zh), name=p.feature)
            sides = (self._value(m) for m in (p.before, p.after))
            rows.append((named, self._about(told), measure_in_words(self.w, told.measure), *sides))
        head = self._heads(("feature", "against", "measure", "before", "after"))
        return [Table(head, tuple(rows), (4, 3, 4, 5, 5))]

    def _value(self, m: Measured | None) -> str:
        if m is None:
            return self._d("not_measured")
        if m.value is None:
            return "–"
        return f"{figure(m.value)} [{figure(m.low)}, {figure(m.high)}], n = {m.n:,}"
