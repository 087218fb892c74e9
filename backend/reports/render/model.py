"""What a printed report says of the model itself: which it is, of whose features, how well it predicts. Knows the report alone."""

from __future__ import annotations

from backend.reports.render.blocks import Bar, Bars, Block, Facts, Heading, Table, Text
from backend.reports.render.wording import Wording, minute, percent

TOP = 3  # features named in a sentence


class SaysModel(Wording):
    """Sections about the model."""

    def identity(self) -> list[Block]:
        """Which model this is and how it decides."""
        i, s = self._content.identity, self._content.structure
        cipher = (
            self._d(f"cipher_{i.cipher}", bits=i.key_bits) if i.cipher in ("none", "ranks", "paillier") else i.cipher
        )
        facts = [
            (self._d("model"), i.model),
            (self._d("federation"), self.w.either(i.title, i.title_zh)),
            (self._d("predicts"), self.w.either(i.predicts, i.predicts_zh)),
            (self._d("created"), minute(i.created)),
            (self._d("algorithm"), self.w.named("algorithm.", f"name_{i.algorithm}").removeprefix("name_")),
            (self._d("grown_on"), cipher),
            (self._d("training_seconds"), f"{i.training_seconds:,.1f} s"),
            (self._d("score_bits"), str(i.score_bits)),
            (
                self._d("structure"),
                self._d("structure_is", trees=s.trees, leaves=s.leaves, depth=s.depth, splits=s.splits),
            ),
            (self._d("aggregation"), self._d(f"aggregation_{s.aggregation}", n=s.outputs)),
            (self._d("left_out"), ", ".join(i.left_out) or self._d("nothing")),
            (self._d("guest_hash"), i.guest_sha256),
            *((self._d("host_hash", party=self._party(host)), digest) for host, digest in i.host_sha256.items()),
        ]
        parameters = [(self._parameter(name), value) for name, value in i.parameters.items()]
        return [Facts(tuple(facts)), Heading(self._d("parameters"), 2), Facts(tuple(parameters))]

    def _parameter(self, name: str) -> str:
        """As the Train page names it; a few stand on no page."""
        said = self.w.named("parameter.", name)
        return self.w.named("document.parameter_", name) if said == name else said

    def parties(self) -> list[Block]:
        """Who takes part, with how much."""
        head = ("party", "role", "records", "features_used", "splits", "gain")
        rows = tuple(
            (
                self._party(p.name),
                self._role(p.role),
                "–" if p.records is None else f"{p.records:,}",
                self._d("part_of", part=p.used, whole=p.features),
                f"{p.splits:,}",
                percent(p.gain_share),
            )
            for p in self._content.parties
        )
        return [Table(self._heads(head), rows, (5, 2, 2, 3, 2, 2), (2, 4, 5)), Text(self._d("parties_note"), "note")]

    def features(self) -> list[Block]:
        """Used features: how much, and in which direction."""
        used = [f for f in self._content.features if f.splits]
        names = [p.name for p in self._content.parties]
        longest = max((f.gain_share for f in used), default=1.0) or 1.0
        bars = tuple(
            Bar(self._brief(f), f.gain_share / longest, percent(f.gain_share), names.index(f.party)) for f in used
        )
        rows = tuple(
            (
                self._named(f.name),
                self._party(f.party),
                percent(f.gain_share),
                f"{f.splits:,}",
                self._direction(f.expected),
                self._direction(f.learned) + (self._d("contradicts", n=f.against) if f.contradicts else ""),
                f"{f.strength:+.2f}",
            )
            for f in used
        )
        head = self._heads(("feature", "party", "gain", "splits", "expected", "learned", "strength"))
        unused = [self._meaning(f) for f in self._content.features if not f.splits]
        return [
            Bars(self._used(), tuple(self._party(n) for n in names), bars),
            Table(head, rows, (8, 4, 3, 2, 3, 4, 3), (2, 3, 6)),
            Text(self._d("unused", listed=self._listed(unused)) if unused else self._d("all_used")),
            Text(self._d("features_note"), "note"),
        ]

    def _used(self) -> str:
        used = [f for f in self._content.features if f.splits]
        top = self._listed(f"{self._brief(f)} ({percent(f.gain_share)})" for f in used[:TOP])
        return self._d("answer_use", used=len(used), offered=len(self._content.features), top=top)

    def dictionary(self) -> list[Block]:
        """Every disclosed feature, used or not."""
        head = self._heads(("feature", "party", "kind", "sensitivity", "expected", "codes"))
        rows = tuple(
            (
                self._d("named", meaning=self._meaning(f), name=f.name) + (f" [{f.unit}]" if f.unit else ""),
                self._party(f.party),
                self.w(f"features.{f.kind}"),
                f.sensitivity or "–",
                self._direction(f.expected),
                self._listed(f"{code} = {text}" for code, text in f.codes.items()) or "–",
            )
            for f in self._content.features
        )
        return [Table(head, rows, (7, 4, 3, 3, 3, 6))]
