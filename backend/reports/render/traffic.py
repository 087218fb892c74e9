"""What a printed report says of what happened: messages that passed, sign-offs, the log, how to check a copy. Knows the report alone."""

from __future__ import annotations

from backend.reports.render.blocks import Block, Code, Facts, Heading, Table, Text
from backend.reports.render.quality import SaysQuality
from backend.reports.render.wording import minute
from backend.reports.schema import Traffic

VERIFY = (
    "python3 -c \"import json,hashlib,sys; d=json.load(open(sys.argv[1])); h=d.pop('sha256'); "
    "print(h==hashlib.sha256(json.dumps(d,sort_keys=True,separators=(',',':')).encode()).hexdigest())\" report.json"
)


class SaysCourse(SaysQuality):
    """Sections about what happened."""

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
            *self.leak(),
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
