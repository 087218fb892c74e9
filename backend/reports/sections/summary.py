"""The first page of a report: its verdict; and a regulator's seven questions, each with its answer, for pages. Knows the report alone."""

from __future__ import annotations

from typing import Literal

from backend.i18n import joined
from backend.reports.blocks import Block, Paragraph
from backend.reports.sections.writer import Writer, percent


def summary(write: Writer) -> list[Block]:
    """The verdict, whether it was approved and signed, the line that decides, and where no breach was shown."""
    verdict = write.report.issued.verdict
    tone: Literal["finding", "plain"] = "plain" if verdict.state == "no_breach" else "finding"
    if write.content.identity.synthetic:
        synthetic = [Paragraph(write.words("frame.synthetic"), "note")]
    else:
        synthetic = []
    return [
        Paragraph(write.words.text(verdict.headline), tone),
        *_standing(write),
        _policy(write),
        _signed(write),
        *synthetic,
        *_without_breach(write),
    ]


def _without_breach(write: Writer) -> list[Block]:
    """Return a row for each fact that is in order; the others are among the open points."""
    words = write.words
    facts = [fact for fact in write.report.issued.verdict.facts if fact.state == "no_breach"]
    if not facts:
        return []
    table = write.table(
        facts,
        ("state", 3, lambda fact: words(f"verdict.{fact.state}")),
        ("fact", 14, lambda fact: words.text(fact.sentence)),
        ("act", 3, lambda fact: words(f"{fact.page}.title")),
    )
    return [write.heading("without_breach"), table]


def _signed(write: Writer) -> Paragraph:
    """Return how many people signed this content off."""
    signed = sum(s.covers for s in write.report.issued.sign_offs)
    return Paragraph(write("status_signed" if signed else "status_unsigned", n=signed))


def _policy(write: Writer) -> Paragraph:
    """Return the line that decides, and who set and approved it."""
    policy = write.report.issued.policy
    if policy.decline_at is None:
        return Paragraph(write("policy_without_line"))
    if write.content.identity.task == "binary":
        line = percent(policy.decline_at)
    else:
        line = f"{policy.decline_at:g}"
    if not policy.version:
        return Paragraph(write("policy_not_set", line=line), "finding")
    if policy.refer_at is None:
        refer = line
    else:
        refer = percent(policy.refer_at)
    words = write("policy_two" if policy.refer_at is None else "policy_three", line=line, refer=refer)
    if policy.points:
        points = write("policy_points", points=policy.points)
    else:
        points = ""
    who = write(
        "policy_set",
        version=policy.version,
        owner=write.words.written(policy.owner),
        person=write.words.written(policy.approved_by),
        day=policy.first_day,
        reason=write.words.written(policy.reason),
    )
    return Paragraph(joined(who, words, points))


def _standing(write: Writer) -> list[Block]:
    """What the model is called, and whether it was approved."""
    standing = write.report.issued.standing
    approved = {"person": standing.approved_by or "", "day": (standing.approved_at or "")[:10]}
    if standing.state == "in_use" and standing.approved_by is None:
        line_key = "in_use_demo"
    else:
        line_key = standing.state
    line = write.words(f"states.line_{line_key}", **approved)
    if standing.approved_because:
        line = joined(line, write("approved_because", reason=standing.approved_because))
    rows = {
        "name": write.words.model(standing.name),
        "note": standing.note,
        "owner": standing.owner,
        "maker": standing.maker,
    }
    if any(rows.values()):
        facts = [write.facts({f"model_{name}": text for name, text in rows.items() if text})]
    else:
        facts = []
    return [Paragraph(line, "plain" if standing.approved_by and standing.state != "retired" else "finding"), *facts]
