"""A report as headings, sentences, tables and bars, in one language: what the HTML and the PDF both draw, so that they agree.

Knows the report alone.
"""

from __future__ import annotations

from collections import Counter

from backend.i18n import Catalogue
from backend.reports.document import Report
from backend.reports.render.blocks import Block, Facts, Heading, Outline, Text
from backend.reports.render.law import SaysLaw
from backend.reports.render.model import SaysModel
from backend.reports.render.traffic import SaysCourse
from backend.reports.render.wording import figure, minute, percent
from backend.reports.schema_claims import FindingLine, OutcomePairLine, Retrained

ACCEPTED_APART = "selection rate, largest less smallest"  # as backend.fairness.disparity.as_evidence names it


def outline(report: Report, language: str) -> Outline:
    """The report in one language, in the order of a regulator's questions."""
    say = Says(report, Catalogue(language))
    identity = report.content.identity
    blocks: list[Block] = []
    sections = (
        ("summary", say.summary()),
        ("identity", say.identity()),
        ("parties", say.parties()),
        ("features", say.features()),
        ("findings", say.findings()),
        ("evidence", say.evidence()),
        ("retrained", say.retrained()),
        ("quality", say.quality()),
        ("privacy", say.privacy()),
        ("limits", say.limits()),
        ("decisions", say.sign_offs()),
        ("audit", say.audit()),
        ("verify", say.verify()),
        ("dictionary", say.dictionary()),
        ("rules", say.rules()),
    )
    for number, (key, section) in enumerate(sections, start=1):
        blocks += [Heading(f"{number}. {say.w(f'document.{key}')}"), *section]
    return Outline(
        say.w("document.title", title=say.w.either(identity.title, identity.title_zh)),
        say.w("document.subtitle", model=identity.model, time=minute(report.issued.time), version=report.version),
        tuple(blocks),
    )


def answers(report: Report, language: str) -> tuple[tuple[str, str], ...]:
    """The summary: a regulator's seven questions, each with its answer."""
    return Says(report, Catalogue(language)).answers()


class Says(SaysModel, SaysLaw, SaysCourse):
    """A report in one language: its sections, and the summary before them."""

    def answers(self) -> tuple[tuple[str, str], ...]:
        """Seven questions with their answers."""
        said = (self._used, self._whom, self._way, self._flagged, self._done, self._saw, self._verifiable)
        keys = ("use", "whom", "way", "flag", "done", "saw", "verify")
        return tuple((self._d(f"ask_{key}"), say()) for key, say in zip(keys, said, strict=True))

    def summary(self) -> list[Block]:
        """The answers, and whether the people are made up."""
        synthetic = [Text(self.w("frame.synthetic"), "note")] if self._content.identity.synthetic else []
        return [*synthetic, Facts(self.answers())]

    def _whom(self) -> str:
        return "\n".join(
            self._d(
                "answer_whom",
                party=self._party(p.name),
                role=self._role(p.role),
                used=p.used,
                offered=p.features,
                share=percent(p.gain_share),
            )
            for p in self._content.parties
        )

    def _way(self) -> str:
        ways = Counter(f.learned for f in self._content.features if f.splits)
        text = self._d("answer_way", up=ways["up"], down=ways["down"], other=ways.total() - ways["up"] - ways["down"])
        against = [self._meaning(f) for f in self._content.features if f.contradicts]
        text += self._d("against", listed=self._listed(against)) if against else self._d("not_against")
        checked = (
            self._d("answer_age", feature=self._named(f.feature), said=self._elderly(f)) for f in self._asks_ages()
        )
        return "\n".join((text, *checked))

    def _asks_ages(self) -> list[FindingLine]:
        return [f for f in self._content.assessment.findings if f.check]

    def _done(self) -> str:
        decided = Counter(f.decision.decision if f.decision else "open" for f in self._content.assessment.findings)
        covering = [s for s in self._report.issued.sign_offs if s.covers]
        counts = {"confirmed": decided["confirmed"], "overridden": decided["overridden"], "open": decided["open"]}
        return "\n".join(
            (self._d("answer_done", **counts, signed=len(covering)), *map(self._anew, self._content.retrained))
        )

    def _anew(self, pair: Retrained) -> str:
        """One training again as a sentence, with the figure that decides."""
        lines = {line.name: line for line in pair.figures}
        said = next((lines[name] for name in ("auc", "accuracy", "rmse") if name in lines), None)
        moved = (
            ""
            if said is None
            else self._d(
                "anew_figure",
                figure=self.w(f"figure.{said.name}"),
                before=figure(said.before),
                after=figure(said.after),
            )
        )
        key = "anew_after" if pair.after == self._content.identity.model else "anew_before"
        listed = ", ".join(pair.without) or self._d("nothing")
        again = self._d(key, before=pair.before, after=pair.after, without=listed) + moved + self._d("stop")
        return "\n".join((again, *filter(None, map(self._gap, pair.outcomes))))

    def _gap(self, pair: OutcomePairLine) -> str:
        """How far the groups of a feature are apart in being accepted, in both models; empty of other figures."""
        if pair.before is None or pair.after is None or pair.before.measure != ACCEPTED_APART:
            return ""
        feature = self._explained(pair.feature, pair.meaning, pair.meaning_zh)
        return self._d("anew_gap", feature=feature, before=self._value(pair.before), after=self._value(pair.after))

    def _saw(self) -> str:
        structure = self._content.structure
        key = "answer_saw" if any(p.role == "host" for p in self._content.parties) else "answer_alone"
        return self._d(key, hidden=structure.hidden_splits, splits=structure.splits, numbers=structure.outputs)

    def _verifiable(self) -> str:
        return self._d("answer_verify", hash=self._report.content_sha256)
