"""What a report says of itself: what it leaves out, who stands by it, the log it stands in, how to check a copy. Knows the report alone."""

from __future__ import annotations

from backend.reports.blocks import Block, Code, Text
from backend.reports.sections.writer import Writer, minute, problems

VERIFY = (
    "python3 -c \"import json,hashlib,sys; d=json.load(open(sys.argv[1])); h=d.pop('sha256'); "
    "print(h==hashlib.sha256(json.dumps(d,sort_keys=True,separators=(',',':')).encode()).hexdigest())\" report.json"
)


def limits(write: Writer) -> list[Block]:
    """What is not protected and not said."""
    return [Text(f"• {write(f'limit_{limit.key}')}") for limit in write.content.limits]


def sign_offs(write: Writer) -> list[Block]:
    """Who stands by this content."""
    lines = write.report.issued.sign_offs
    if not lines:
        return [write.text("no_sign_offs")]
    table = write.table(
        lines,
        ("person", 3, lambda s: s.person),
        ("role", 2, lambda s: s.role),
        ("statement", 7, lambda s: s.statement),
        ("time", 3, lambda s: minute(s.time)),
        ("covers", 5, lambda s: write("covers") if s.covers else write("covers_not", hash=s.report_sha256)),
    )
    return [table]


def audit(write: Writer) -> list[Block]:
    """The log as it stood."""
    issued, log = write.report.issued, write.report.issued.audit
    witnesses = ", ".join(map(write.party, log.witnesses)) or write("no_witness")
    return [
        write.text("audit_holds", n=log.entries)
        if log.holds
        else Text(write("audit_broken", n=log.entries), "finding"),
        *problems(log.problems),
        write.facts({"audit_head": log.head_sha256, "witnesses": witnesses}),
        write.note("issued_by", actor=issued.actor, role=issued.role),
    ]


def verify(write: Writer) -> list[Block]:
    """How a reader checks this file."""
    return [
        write.text("verify_file"),
        Code("python -m backend report --check FILE"),
        write.text("verify_by_hand"),
        Code(VERIFY),
        write.text("verify_log"),
        Code("python -m backend audit verify"),
        write.facts({"content_hash": write.report.content_sha256, "document_hash": write.report.sha256}),
    ]
