"""Sections on what happened: who saw what, who signed the model off, the audit log, how to check a copy. Knows the report alone."""

from __future__ import annotations

from collections import defaultdict

from backend.reports.blocks import Block, Code, Heading, Paragraph, Table
from backend.reports.document import sign_off_holds
from backend.reports.schema import SignOffLine, Traffic
from backend.reports.sections.writer import Writer, bits, minute, percent, problems, whole
from backend.results import MIN_RECORDS, NOBODY

# Lines that fit a printed page and end where a statement does, so that a copy runs with line breaks or with spaces.
VERIFY = """\
python3 -c "import json, hashlib, sys; raw = open(sys.argv[1], 'rb').read(); d = json.loads(raw);
c = lambda x: json.dumps(x, sort_keys=True, separators=(',', ':')).encode();
same = c(d) + b'\\n' == raw; d.pop('signature', 0); h = d.pop('sha256');
s = lambda x: hashlib.sha256(c(x)).hexdigest();
print(same and h == s(d) and d['content_sha256'] == s(d['content']), s(d['content']))" report.json"""

SIGNATURE_TEXTS = {True: "signed_yes", False: "signed_wrong"}


def privacy(write: Writer) -> list[Block]:
    """Who saw what: in training and in scoring; what scores and answers have given away."""
    i = write.content.identity
    use = write.report.issued.use
    trained = write.content.training_traffic
    if i.algorithm.startswith("imported"):
        algorithm = "imported"
    else:
        algorithm = i.algorithm
    training = {
        "guest_learned": write.words.named("algorithm.guest_", algorithm),
        "hosts_learned": write.words.named("algorithm.hosts_", algorithm),
    }
    scoring = {
        "guest_learned": write("guest_scoring", numbers=write.content.structure.outputs),
        "hosts_learned": write("hosts_scoring"),
    }
    if use.in_the_clear:
        plaintext = [write("in_the_clear", n=whole(use.in_the_clear))]
    else:
        plaintext = []
    if trained and i.cipher == "none":
        grown = [write("trained_in_the_clear")]
    else:
        grown = []
    if use.comparisons:
        compared = [write("compared", n=use.comparisons)]
    else:
        compared = []
    return [
        write.text("promise"),
        write.heading("in_training"),
        write.facts(training),
        *problems(grown),
        write.heading("in_scoring"),
        write.facts(scoring),
        write.text("use", scorings=whole(use.scorings), rows=whole(use.rows), failed=whole(use.failed)),
        *problems((*plaintext, *compared)),
        *_reasons(write),
        *_leak(write),
        *_given_away(write),
    ]


def _reasons(write: Writer) -> list[Block]:
    """Whom people were compared with where reasons were found for their scores."""
    lines = write.report.issued.reasons
    words = write.words
    if not lines:
        return []
    texts = []
    for line in lines:
        texts.append(
            Paragraph(words(f"compared.report_{line.against}", people=whole(line.people), notices=whole(line.notices)))
        )
    return [Heading(words("compared.report"), 2), *texts, Paragraph(words("compared.report_note"), "note")]


def traffic(write: Writer) -> list[Block]:
    """Every class of message that really travelled, in training and in scoring."""
    trained = write.content.training_traffic
    scoring_traffic = write.report.issued.use.traffic
    blocks: list[Block] = [write.heading("in_training")]
    blocks.append(_traffic(write, trained) if trained else write.note("no_training_traffic"))
    if scoring_traffic:
        blocks += [write.heading("in_scoring"), _traffic(write, scoring_traffic)]
    return blocks


def _traffic(write: Writer, lines: tuple[Traffic, ...]) -> Table:
    """A row for each class and way: to Hosts, to the Guest, or from Host to Host."""
    guest = write.content.parties[0].name
    ways: dict[tuple[str, bool, bool], list[Traffic]] = defaultdict(list)
    for t in lines:
        ways[t.kind, t.sender == guest, t.receiver == guest].append(t)
    return write.table(
        ways.values(),
        ("message", 4, lambda ts: _message(write, ts[0], "title", ts[0].kind)),
        ("way", 4, lambda ts: _way(write, ts)),
        ("holds", 6, lambda ts: _message(write, ts[0], "holds", ts[0].holds)),
        ("readable", 5, lambda ts: _message(write, ts[0], "readable", ts[0].readable_by)),
        ("messages", 2, lambda ts: whole(sum(t.messages for t in ts))),
        ("bytes", 3, lambda ts: whole(sum(t.bytes for t in ts))),
    )


def _way(write: Writer, lines: list[Traffic]) -> str:
    ends = ([t.sender for t in lines], [t.receiver for t in lines])
    return " → ".join(write.enumerated(map(write.party, dict.fromkeys(names))) for names in ends)


def _message(write: Writer, t: Traffic, what: str, otherwise: str) -> str:
    key = f"{t.kind}.{what}"
    text = write.words.named("message.", key)
    return otherwise if text == key else text


def _leak(write: Writer) -> list[Block]:
    """What a score gives away, as it was measured before the model was registered."""
    release = write.content.release
    text = write("leak_told")
    if release is None or release.records < MIN_RECORDS:
        return [write.heading("leak"), Paragraph(text)]
    if release.named_without is None:
        without = ""
    else:
        without = write("leak_without", share=percent(release.named_without))
    return [write.heading("leak"), Paragraph(text + without), write.note("leak_note")]


def _given_away(write: Writer) -> list[Block]:
    """What all answers together have told, Host by Host."""
    lines = write.report.issued.given_away
    if lines is None:
        return []
    table = write.table(
        lines,
        ("party", 4, lambda host: write.party(host.host)),
        ("days", 2, lambda host: whole(host.days)),
        ("answered_about", 3, lambda host: write("not_counted") if host.people is None else whole(host.people)),
        ("most_bits", 3, lambda host: bits(host.largest)),
        ("limit_bits", 3, lambda host: write("no_limit") if host.limit is None else bits(host.limit)),
    )
    return [write.heading("given_away"), table, write.note("given_away_note")]


def limits(write: Writer) -> list[Block]:
    """What is not protected, and what the report does not cover."""
    return [Paragraph(f"• {write(f'limit_{limit.key}')}") for limit in write.content.limits]


def sign_offs(write: Writer) -> list[Block]:
    """Who signed this content off."""
    lines = write.report.issued.sign_offs
    if not lines:
        return [write.text("no_sign_offs")]
    table = write.table(
        lines,
        ("person", 3, lambda s: s.person),
        ("role", 2, lambda s: write.words.named("sidebar.role_", s.role)),
        ("statement", 7, lambda s: s.statement),
        ("time", 3, lambda s: minute(s.time)),
        ("covers", 5, lambda s: write("covers") if s.covers else write("covers_not", hash=s.report_sha256)),
        ("signed", 3, lambda s: write(SIGNATURE_TEXTS[_holds(write, s)])),
    )
    return [table]


def _holds(write: Writer, line: SignOffLine) -> bool:
    return sign_off_holds(line, write.content.identity.guest_sha256, write.report.public_key)


def audit(write: Writer) -> list[Block]:
    """The log as of the report."""
    issued = write.report.issued
    log = write.report.issued.audit
    witnesses = write.enumerated(map(write.party, log.witnesses)) or write("no_witness")
    role = write.words.named("sidebar.role_", issued.role)
    return [
        write.text("audit_holds", n=log.entries)
        if log.holds
        else Paragraph(write("audit_broken", n=log.entries), "finding"),
        *problems(log.problems),
        write.facts({"audit_head": log.head_sha256, "witnesses": witnesses}),
        write.note(
            "issued_by_nobody" if issued.actor == NOBODY else "issued_by",
            actor=issued.actor,
            role=role,
        ),
    ]


def verify(write: Writer) -> list[Block]:
    """How a reader checks this file."""
    return [
        write.text("verify_file"),
        Code("glassleaf report --check FILE"),
        write.text("verify_by_hand"),
        Code(VERIFY),
        write.text("verify_log"),
        Code("glassleaf audit verify"),
        write.text("verify_key" if write.report.public_key else "verify_no_key"),
        *([Code("glassleaf report --check FILE --key KEY")] if write.report.public_key else []),
        write.facts(
            {
                "content_hash": write.report.content_sha256,
                "document_hash": write.report.sha256,
                **({"public_key": write.report.public_key} if write.report.public_key else {}),
            }
        ),
    ]
