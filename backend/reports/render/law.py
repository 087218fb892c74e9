"""What a printed report says of the law: findings with their evidence and decisions, duties, rule packs. Knows the report alone."""

from __future__ import annotations

from backend.fairness.age_discrimination import in_words
from backend.reports.render.blocks import Block, Facts, Heading, Table, Text
from backend.reports.render.retrained import SaysRetrained
from backend.reports.render.wording import figure, minute, percent, signed
from backend.reports.schema_claims import AgeCheckLine, DutyLine, FindingLine, LawLine


class SaysLaw(SaysRetrained):
    """Sections about rules."""

    def findings(self) -> list[Block]:
        """Every finding with its evidence and what was decided, then what does not count."""
        found = self._content.assessment
        blocks: list[Block] = [Text(self._flagged()), Text(self._d("law_of", day=self._report.issued.law_of), "note")]
        for finding in found.findings:
            blocks += self._finding(finding)
        for key, rest in (("set_aside", found.set_aside), ("not_in_force", found.not_in_force)):
            if rest:
                head = self._heads(("feature", "rule", "matched", "law"))
                rows = tuple((self._named(f.feature), self._short(f), f.matched, self._dates(f)) for f in rest)
                blocks += [Heading(self._d(key), 2), Table(head, rows, (5, 8, 3, 4))]
        return [*blocks, *(Text(problem, "finding") for problem in found.problems)]

    def _flagged(self) -> str:
        found = self._content.assessment.findings
        if not found:
            return self._d("no_findings", n=self._content.assessment.assessed)
        used = [f for f in found if f.splits]
        text = self._d("answer_flag", n=len(found), features=len({f.feature for f in found}), used=len(used))
        worst = (
            self._d(
                "flag",
                feature=self._named(f.feature),
                party=self._party(f.party),
                share=percent(f.gain_share),
                rule=self._short(f),
            )
            for f in used
        )
        return "\n".join((text, *worst))

    def _short(self, law: LawLine) -> str:
        return f"{self.w.either(law.title, law.title_zh)}, {law.citation} ({self._status(law)})"

    def _finding(self, f: FindingLine) -> list[Block]:
        place = self.w(f"compliance.in_{f.matched_in}")
        usage = (
            self._d("usage", splits=f.splits, share=percent(f.gain_share)) if f.splits else self.w("compliance.no_use")
        )
        facts = [
            (self._d("about"), f"{self._named(f.feature)} · {self._party(f.party)}"),
            (self._d("rule"), f"{self.w.either(f.title, f.title_zh)} · {f.pack} · {f.citation} · {f.jurisdiction}"),
            (self._d("law"), self._dates(f)),
            (self._d("matched"), f"“{f.matched}” ({place})"),
            (self._d("used"), usage),
            (self._d("proxy_evidence"), self._proxies(f.proxies, f.proxies_on)),
            (self._d("disparity"), self._disparities(f.disparities, f.disparities_on)),
            (self._d("elderly"), self._elderly(f)),
            (self._d("why"), self.w.either(f.explanation, f.explanation_zh)),
            (self._d("remedy"), self.w.either(f.remedy, f.remedy_zh)),
            (self._d("decided"), self._decision(f)),
        ]
        title = f"{self._status(f)}: {self._meaning(self._features[f.feature])}"
        table = [self._age_table(f.ages)] if f.ages else []
        return [Heading(title, 2), Facts(tuple((name, value) for name, value in facts if value)), *table]

    def _elderly(self, f: FindingLine) -> str:
        """Whether elderly ages have a negative factor; empty where the rule does not ask."""
        return in_words(self.w, f.ages, f.splits > 0) if f.check else ""

    def _age_table(self, ages: AgeCheckLine) -> Table:
        rows = [(self._d("ages_elderly"), figure(ages.predicted), "", "")]
        rows += [
            (
                self._d("ages_younger", place=gap.place, classes=len(ages.gaps)),
                figure(gap.predicted),
                signed(gap.worse),
                f"[{signed(gap.low)}, {signed(gap.high)}]",
            )
            for gap in ages.gaps
        ]
        return Table(
            self._heads(("ages", "mean_probability", "elderly_less", "interval_95")),
            tuple(rows),
            (6, 4, 4, 5),
            (1, 2, 3),
        )

    def _dates(self, law: LawLine) -> str:
        key = "from_day" if law.force == "not_yet" else "since"
        end = self._d("until", day=law.effective_to) if law.effective_to else ""
        return self._d(key, day=law.effective_from) + end + self._d("as_of", day=law.as_of)

    def _decision(self, f: FindingLine) -> str:
        if f.decision is None:
            return self._d("undecided")
        d = f.decision
        text = self._d(f"decision_{d.decision}", person=d.person, time=minute(d.time), reason=d.reason)
        return text + (self._d("earlier", n=f.earlier_decisions) if f.earlier_decisions else "")

    def rules(self) -> list[Block]:
        """The rule packs, and duties of the model as a whole."""
        found = self._content.assessment
        packs = tuple(
            (
                self.w.either(p.title, p.title_zh),
                p.version,
                p.as_of,
                p.jurisdiction,
                p.source,
                self._d("built_in" if p.built_in else "own_pack"),
            )
            for p in found.packs
        )
        head = self._heads(("pack", "version", "as_of", "jurisdiction", "source", "origin"))
        duties = tuple(self._duty(d) for d in found.duties)
        about = self._heads(("duty", "force", "offers"))
        return [
            Text(self._d("words_version", version=found.words)),
            Table(head, packs, (5, 2, 3, 3, 7, 3)),
            Text(self._d("as_of_note"), "note"),
            Heading(self._d("duties"), 2),
            Table(about, duties, (7, 3, 8)),
        ]

    def _duty(self, d: DutyLine) -> tuple[str, ...]:
        force = self._d(f"force_{d.force}")
        return self._short(d), f"{force}: {self._dates(d)}", self.w.either(d.evidence, d.evidence_zh)
