"""What a printed report says of models retrained: each beside the one that it replaces. Knows the report alone."""

from __future__ import annotations

from backend.reports.render.blocks import Block, Facts, Heading, Table, Text
from backend.reports.render.measured import SaysMeasured
from backend.reports.render.wording import figure, minute, percent, whole
from backend.reports.schema_claims import OutcomePairLine, Pair, Retrained


class SaysRetrained(SaysMeasured):
    """The section about training again."""

    def retrained(self) -> list[Block]:
        """Each model that was retrained beside the one that it replaces."""
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
                self._explained(g.name, g.meaning, g.meaning_zh),
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
            *self._leaks(pair.leak),
            Table(self._heads(("feature", "party", "gain_before", "gain_after")), gains, (7, 4, 3, 3), (2, 3)),
            Facts(
                tuple(
                    (self._d("half_of", model=m), h)
                    for m, h in ((pair.before, pair.before_sha256), (pair.after, pair.after_sha256))
                )
            ),
        ]

    def _outcomes(self, pairs: tuple[OutcomePairLine, ...]) -> list[Block]:
        """Decisions by group in both models, each with its interval and number of records."""
        if not pairs:
            return [Text(self._d("outcomes_not_measured"), "note")]
        blocks: list[Block] = []
        for feature in dict.fromkeys(pair.feature for pair in pairs):
            own = [pair for pair in pairs if pair.feature == feature]
            named = self._explained(feature, own[0].meaning, own[0].meaning_zh)
            before, after = [p.before for p in own if p.before], [p.after for p in own if p.after]
            sides = [(self._d("side_before"), before), (self._d("side_after"), after)]
            blocks += [Text(self._d("outcomes_by", feature=named)), self._rates(sides)]
        return blocks

    def _leaks(self, pairs: tuple[Pair, ...]) -> list[Block]:
        """What scores of both models give away, as measured before each was registered."""
        if not pairs:
            return [Text(self._d("leaks_not_measured"), "note")]
        words = {"named": _percent, "without_dither": _percent, "dither": figure}
        rows = tuple(
            (self._d(f"leaks_{p.name}"), *(words.get(p.name, whole)(v) for v in (p.before, p.after))) for p in pairs
        )
        return [Table(self._heads(("score", "before", "after")), rows, (6, 3, 3), (1, 2))]


def _percent(value: float | None) -> str:
    return "–" if value is None else percent(value)
