"""What a printed report says of what was measured of groups: decisions by group, and features that go with a protected one.

Knows the report alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.fairness.disparity import measure_in_words
from backend.reports.render.blocks import Block, Heading, Table, Text
from backend.reports.render.wording import Wording, figure, percent
from backend.reports.schema_claims import BasisLine, Evidenced, Measured

ACCEPTED = "selection rate"  # as backend.fairness.disparity.MEASURES names it
GAPS = {"smallest over largest": "gap_smallest", "largest less smallest": "gap_largest"}


class SaysMeasured(Wording):
    """Sections about groups."""

    def _proxies(self, measures: tuple[Measured, ...] | None, on: BasisLine | None) -> str:
        if measures is None:
            return self._d("not_measured")
        found = "\n".join(self._one(m) for m in measures) or self._d("nothing_found")
        return found if on is None or measures else f"{found} ({self._on(on)})"

    def _disparities(self, measures: tuple[Measured, ...] | None, on: BasisLine | None) -> str:
        """Who is accepted how often, and how far groups are apart in that; the other rates stand in the section about evidence."""
        if not measures:
            return self._proxies(measures, on)
        accepted = [m for m in measures if m.measure.partition(", ")[0] == ACCEPTED]
        basis = [] if on is None else [self._d("all_rates", on=self._on(on))]
        return "\n".join((*(self._one(m) for m in accepted), *basis))

    def _on(self, on: BasisLine) -> str:
        """On how many records, and at which cut-off."""
        return self._d("on", n=f"{on.n:,}") + ("" if on.cutoff is None else self._d("at", cutoff=percent(on.cutoff)))

    def _about(self, m: Measured) -> str:
        """A group, or another feature."""
        return self._named(m.about) if m.about in self._features else self.w.either(m.about, m.about_zh)

    def _one(self, m: Measured) -> str:
        return f"{self._about(m)}: {measure_in_words(self.w, m.measure)} {self._value(m)}"

    def evidence(self) -> list[Block]:
        """Outcome disparity and proxies, measured or not."""
        return [*self._section("fairness", self._content.fairness), *self._section("proxies", self._content.proxies)]

    def _section(self, key: str, found: tuple[Evidenced, ...] | None) -> list[Block]:
        heading = Heading(self._d(key), 2)
        if found is None:
            return [heading, Text(self._d(f"{key}_not_measured"))]
        if not found:
            return [heading, Text(self._d("nothing_found"))]
        blocks: list[Block] = [heading]
        for e in found:
            named = self._explained(e.feature, e.meaning, e.meaning_zh)
            basis = "" if e.on is None else self._d("measured_on", on=self._on(e.on))
            blocks.append(Text(named + basis + ("" if e.measures else self._d("and_nothing"))))
            if e.measures:
                blocks.append(self._associations(e.measures) if key == "proxies" else self._rates([("", e.measures)]))
        return blocks

    def _associations(self, measures: Sequence[Measured]) -> Table:
        rows = tuple(
            (self._about(m), m.measure, figure(m.value), f"{figure(m.low)} – {figure(m.high)}", f"{m.n:,}")
            for m in measures
        )
        return Table(self._heads(("against", "measure", "value", "interval", "n")), rows, (6, 3, 2, 3, 2), (2, 3, 4))

    def _rates(self, sides: Sequence[tuple[str, Sequence[Measured]]]) -> Table:
        """Groups by rates; `sides` are the measurements with what is added to a group's name, as of two models."""
        told = [(side, *m.measure.partition(", ")[::2], m) for side, measures in sides for m in measures]
        rates = tuple(dict.fromkeys(rate for _, rate, _, _ in told))
        cells: dict[tuple[str, str], dict[str, str]] = {}
        for group in dict.fromkeys((self._group(gap, m)) for _, _, gap, m in told):
            for side, rate, gap, m in told:
                if self._group(gap, m) == group:
                    cells.setdefault((group, side), {})[rate] = self._value(m, "\n")
        rows = tuple(
            (group + side, *(own.get(rate, self._d("not_measured")) for rate in rates))
            for (group, side), own in cells.items()
        )
        head = (self._d("head_group"), *(measure_in_words(self.w, rate) for rate in rates))
        return Table(head, rows, (4, *(5 for _ in rates)))

    def _group(self, gap: str, m: Measured) -> str:
        return self._d(GAPS[gap]) if gap in GAPS else self._about(m)

    def _value(self, m: Measured, then: str = ", ") -> str:
        if m.value is None:
            return self._d("too_few")
        interval = "" if m.low is None or m.high is None else f" [{figure(m.low)}, {figure(m.high)}]"
        return f"{figure(m.value)}{interval}{then}n = {m.n:,}"
