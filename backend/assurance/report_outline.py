"""A report as headings, sentences, tables and bars, in one language: what the HTML and the PDF both draw, so that they agree.

Knows the report alone.
"""

from __future__ import annotations

from collections import Counter

from backend.assurance.report import DutyLine, FindingLine, LawLine, Report, Retrained, Traffic
from backend.assurance.report_blocks import Bar, Bars, Block, Code, Facts, Heading, Outline, Table, Text
from backend.assurance.report_measured import SaysMeasured
from backend.assurance.report_wording import figure, minute, percent
from backend.assurance.report_words import Words

TOP = 3  # features named in the summary
VERIFY = (
    "python3 -c \"import json,hashlib,sys; d=json.load(open(sys.argv[1])); h=d.pop('sha256'); "
    "print(h==hashlib.sha256(json.dumps(d,sort_keys=True,separators=(',',':')).encode()).hexdigest())\" report.json"
)


def outline(report: Report, language: str) -> Outline:
    """The report in one language, in the order of a regulator's questions."""
    say = Says(report, Words(language))
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
    return Says(report, Words(language)).answers()


class Says(SaysMeasured):
    """Sections of a report in one language."""

    def answers(self) -> tuple[tuple[str, str], ...]:
        """Seven questions with their answers."""
        said = (self._used, self._whom, self._way, self._flagged, self._done, self._saw, self._verifiable)
        keys = ("use", "whom", "way", "flag", "done", "saw", "verify")
        return tuple((self._d(f"ask_{key}"), say()) for key, say in zip(keys, said, strict=True))

    def summary(self) -> list[Block]:
        """The answers, and whether the people are made up."""
        synthetic = [Text(self.w("frame.synthetic"), "note")] if self._content.identity.synthetic else []
        return [*synthetic, Facts(self.answers())]

    def _used(self) -> str:
        used = [f for f in self._content.features if f.splits]
        top = self._listed(f"{self._meaning(f)} ({percent(f.gain_share)})" for f in used[:TOP])
        return self._d("answer_use", used=len(used), offered=len(self._content.features), top=top)

    def _whom(self) -> str:
        return self._listed(
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
        return text + (self._d("against", listed=self._listed(against)) if against else self._d("not_against"))

    def _flagged(self) -> str:
        found = self._content.assessment.findings
        if not found:
            return self._d("no_findings", n=self._content.assessment.assessed)
        used = [f for f in found if f.splits]
        text = self._d("answer_flag", n=len(found), features=len({f.feature for f in found}), used=len(used))
        worst = (f"{self._meaning(self._features[f.feature])}: {self._short(f)}" for f in used)
        return text + (" " + self._listed(worst) + self._d("stop") if used else "")

    def _short(self, law: LawLine) -> str:
        return f"{self.w.either(law.title, law.title_zh)}, {law.citation} ({self._status(law)})"

    def _done(self) -> str:
        decided = Counter(f.decision.decision if f.decision else "open" for f in self._content.assessment.findings)
        covering = [s for s in self._report.issued.sign_offs if s.covers]
        counts = {"confirmed": decided["confirmed"], "overridden": decided["overridden"], "open": decided["open"]}
        anew = "".join(self._anew(pair) for pair in self._content.retrained)
        return self._d("answer_done", **counts, signed=len(covering)) + anew

    def _anew(self, pair: Retrained) -> str:
        """One training anew as a sentence, with the figure that decides."""
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
        return self._d(key, before=pair.before, after=pair.after, without=listed) + moved + self._d("stop")

    def _saw(self) -> str:
        structure = self._content.structure
        key = "answer_saw" if any(p.role == "host" for p in self._content.parties) else "answer_alone"
        return self._d(key, hidden=structure.hidden_splits, splits=structure.splits, numbers=structure.outputs)

    def _verifiable(self) -> str:
        return self._d("answer_verify", hash=self._report.content_sha256)

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
        parameters = [(self.w.named("parameter.", name), value) for name, value in i.parameters.items()]
        return [Facts(tuple(facts)), Heading(self._d("parameters"), 2), Facts(tuple(parameters))]

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
            Bar(self._meaning(f), f.gain_share / longest, percent(f.gain_share), names.index(f.party)) for f in used
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
            (self._d("proxy_evidence"), self._evidence(f.proxies, f.proxies_on)),
            (self._d("disparity"), self._evidence(f.disparities, f.disparities_on)),
            (self._d("why"), self.w.either(f.explanation, f.explanation_zh)),
            (self._d("remedy"), self.w.either(f.remedy, f.remedy_zh)),
            (self._d("decided"), self._decision(f)),
        ]
        title = f"{self._status(f)}: {self._meaning(self._features[f.feature])}"
        return [Heading(title, 2), Facts(tuple((name, value) for name, value in facts if value))]

    def _dates(self, law: LawLine) -> str:
        end = self._d("until", day=law.effective_to) if law.effective_to else ""
        return self._d("since", day=law.effective_from, as_of=law.as_of) + end

    def _decision(self, f: FindingLine) -> str:
        if f.decision is None:
            return self._d("undecided")
        d = f.decision
        text = self._d(f"decision_{d.decision}", person=d.person, time=minute(d.time), reason=d.reason)
        return text + (self._d("earlier", n=f.earlier_decisions) if f.earlier_decisions else "")

    def quality(self) -> list[Block]:
        """How well it predicts."""
        q = self._content.quality
        figures = {k: getattr(q, k) for k in ("auc", "ks", "log_loss", "accuracy", "rmse", "r2")}
        rows = [(self.w(f"figure.{k}"), figure(v)) for k, v in figures.items() if v is not None]
        rate = [] if q.positive_rate is None else [(self._d("positive_rate"), percent(q.positive_rate))]
        parts = ", ".join(f"{self.w.named('document.part_', part)} {n:,}" for part, n in q.rows.items())
        on = self._d("quality_on", part=self.w.named("document.part_", q.part), n=f"{q.n:,}")
        return [Text(on), Facts((*rows, *rate, (self._d("rows"), parts)))]

    def privacy(self) -> list[Block]:
        """Who saw what: in training, in scoring, and every class of message that really travelled."""
        i, use = self._content.identity, self._report.issued.use
        grown = "imported" if i.algorithm.startswith("imported") else i.algorithm
        training = [
            (self._d("guest_learned"), self.w.named("algorithm.guest_", grown)),
            (self._d("hosts_learned"), self.w.named("algorithm.hosts_", grown)),
        ]
        scoring = [
            (self._d("guest_learned"), self._d("guest_scoring", numbers=self._content.structure.outputs)),
            (self._d("hosts_learned"), self._d("hosts_scoring")),
        ]
        plain = [Text(self._d("in_the_clear", n=f"{use.in_the_clear:,}"), "finding")] if use.in_the_clear else []
        compared = [Text(self._d("compared", n=use.comparisons), "finding")] if use.comparisons else []
        told = self._content.training_traffic
        return [
            Text(self._d("promise")),
            Heading(self._d("in_training"), 2),
            Facts(tuple(training)),
            *([self._traffic(told)] if told else [Text(self._d("no_training_traffic"), "note")]),
            Heading(self._d("in_scoring"), 2),
            Facts(tuple(scoring)),
            Text(self._d("use", scorings=f"{use.scorings:,}", rows=f"{use.rows:,}", failed=f"{use.failed:,}")),
            *plain,
            *compared,
            *([self._traffic(use.traffic)] if use.traffic else []),
        ]

    def _traffic(self, lines: tuple[Traffic, ...]) -> Table:
        head = self._heads(("message", "way", "holds", "readable", "messages", "bytes"))
        rows = tuple(
            (
                self._message(ts[0], "title", kind),
                self._way_of(ts),
                self._message(ts[0], "holds", ts[0].holds),
                self._message(ts[0], "readable", ts[0].readable_by),
                f"{sum(t.messages for t in ts):,}",
                f"{sum(t.bytes for t in ts):,}",
            )
            for (kind, _, _), ts in self._by_way(lines).items()
        )
        return Table(head, rows, (4, 4, 6, 5, 2, 3), (4, 5))

    def _by_way(self, lines: tuple[Traffic, ...]) -> dict[tuple[str, bool, bool], list[Traffic]]:
        """Lines of one class that go the same way: to Hosts, to the Guest, or from Host to Host."""
        guest = self._content.parties[0].name
        groups: dict[tuple[str, bool, bool], list[Traffic]] = {}
        for t in lines:
            groups.setdefault((t.kind, t.sender == guest, t.receiver == guest), []).append(t)
        return groups

    def _way_of(self, lines: list[Traffic]) -> str:
        senders, receivers = ({t.sender: None for t in lines}, {t.receiver: None for t in lines})
        named = (", ".join(self._party(name) for name in names) for names in (senders, receivers))
        return " → ".join(named)

    def _message(self, t: Traffic, what: str, otherwise: str) -> str:
        key = f"{t.kind}.{what}"
        said = self.w.named("message.", key)
        return otherwise if said == key else said

    def limits(self) -> list[Block]:
        """What is not protected and not said."""
        return [Text(f"• {self._d(f'limit_{limit.key}')}") for limit in self._content.limits]

    def sign_offs(self) -> list[Block]:
        """Who stands by this content."""
        lines = self._report.issued.sign_offs
        if not lines:
            return [Text(self._d("no_sign_offs"))]
        head = self._heads(("person", "role", "statement", "time", "covers"))
        rows = tuple(
            (
                s.person,
                s.role,
                s.statement,
                minute(s.time),
                self._d("covers" if s.covers else "covers_not", hash=s.report_sha256),
            )
            for s in lines
        )
        return [Table(head, rows, (3, 2, 7, 3, 5))]

    def audit(self) -> list[Block]:
        """The log as it stood."""
        a = self._report.issued.audit
        verdict = self._d("audit_holds" if a.holds else "audit_broken", n=a.entries)
        witnesses = ", ".join(self._party(w) for w in a.witnesses) or self._d("no_witness")
        facts = ((self._d("audit_head"), a.head_sha256), (self._d("witnesses"), witnesses))
        by = self._d("issued_by", actor=self._report.issued.actor, role=self._report.issued.role)
        problems = [Text(problem, "finding") for problem in a.problems]
        return [Text(verdict, "plain" if a.holds else "finding"), *problems, Facts(facts), Text(by, "note")]

    def verify(self) -> list[Block]:
        """How a reader checks this file."""
        return [
            Text(self._d("verify_file")),
            Code("python -m backend report --check FILE"),
            Text(self._d("verify_by_hand")),
            Code(VERIFY),
            Text(self._d("verify_log")),
            Code("python -m backend audit verify"),
            Facts(
                (
                    (self._d("content_hash"), self._report.content_sha256),
                    (self._d("document_hash"), self._report.sha256),
                )
            ),
        ]

    def dictionary(self) -> list[Block]:
        """Every disclosed feature, used or not."""
        head = self._heads(("feature", "party", "kind", "sensitivity", "expected", "codes"))
        rows = tuple(
            (
                self._named(f.name) + (f" [{f.unit}]" if f.unit else ""),
                self._party(f.party),
                self.w(f"features.{f.kind}"),
                f.sensitivity or "–",
                self._direction(f.expected),
                self._listed(f"{code} = {text}" for code, text in f.codes.items()) or "–",
            )
            for f in self._content.features
        )
        return [Table(head, rows, (7, 4, 3, 3, 3, 6))]

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
            Heading(self._d("duties"), 2),
            Table(about, duties, (7, 3, 8)),
        ]

    def _duty(self, d: DutyLine) -> tuple[str, ...]:
        force = self._d(f"force_{d.force}")
        return self._short(d), f"{force}: {self._dates(d)}", self.w.either(d.evidence, d.evidence_zh)
