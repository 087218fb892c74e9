"""The summary of a report: a regulator's seven questions, each with its answer. Knows the report alone."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from backend.fairness.age_discrimination import verdict_in_words
from backend.fairness.disparity import widest
from backend.i18n import brief, joined
from backend.reports.blocks import Block, Facts, Paragraph
from backend.reports.schema import FindingLine, OutcomePairLine, Retrained
from backend.reports.sections.claims import LISTED, declined_at, elderly, reference_of, value, worst_flagged
from backend.reports.sections.model import used_features
from backend.reports.sections.operator import provided
from backend.reports.sections.writer import Writer, figure, gain, percent
from backend.results import told_by_scores

DECISIVE = ("auc", "accuracy", "rmse")  # the figure that a retraining is judged by: the first that applies


def summary(write: Writer) -> list[Block]:
    """The answers, and whether the people are synthetic."""
    synthetic = [Paragraph(write.words("frame.synthetic"), "note")] if write.content.identity.synthetic else []
    verdict = verdict_blocks(write)
    return [
        *_standing(write),
        *verdict,
        _policy(write),
        _signed(write),
        *provided(write),
        *synthetic,
        Facts(answers(write)),
    ]


def verdict_blocks(write: Writer) -> list[Block]:
    """Return what is true of the model, the worst first: a headline, then a row for each fact."""
    verdict = write.report.issued.verdict
    words = write.words
    rows = write.table(
        verdict.facts,
        ("state", 3, lambda fact: words(f"verdict.{fact.state}")),
        ("fact", 14, lambda fact: words.text(fact.sentence)),
        ("act", 3, lambda fact: words(f"{fact.page}.title")),
    )
    tone: Literal["finding", "plain"] = "plain" if verdict.state == "no_breach" else "finding"
    return [Paragraph(words.text(verdict.headline), tone), rows]


def _signed(write: Writer) -> Paragraph:
    """Return how many people stand by this very content."""
    signed = sum(s.covers for s in write.report.issued.sign_offs)
    return Paragraph(write("status_signed" if signed else "status_unsigned", n=signed))


def _policy(write: Writer) -> Paragraph:
    """Return the line that decides, and who set and approved it."""
    policy = write.report.issued.policy
    if policy.decline_at is None:
        return Paragraph(write("policy_without_line"))
    line = percent(policy.decline_at) if write.content.identity.task == "binary" else f"{policy.decline_at:g}"
    if not policy.version:
        return Paragraph(write("policy_not_set", line=line), "finding")
    refer = line if policy.refer_at is None else percent(policy.refer_at)
    words = write("policy_two" if policy.refer_at is None else "policy_three", line=line, refer=refer)
    points = write("policy_points", points=policy.points) if policy.points else ""
    who = write(
        "policy_set",
        version=policy.version,
        owner=policy.owner,
        person=policy.approved_by,
        day=policy.first_day,
        reason=policy.reason,
    )
    return Paragraph(joined(who, words, points))


def _standing(write: Writer) -> list[Block]:
    """What the model is called, and whether somebody approved it."""
    found = write.report.issued.standing
    approved = {"person": found.approved_by or "", "day": (found.approved_at or "")[:10]}
    said = "in_use_demo" if found.state == "in_use" and found.approved_by is None else found.state
    line = write.words(f"states.line_{said}", **approved)
    if found.approved_because:
        line = joined(line, write("approved_because", reason=found.approved_because))
    rows = {"name": write.words.model(found.name), "note": found.note, "owner": found.owner, "maker": found.maker}
    facts = [write.facts({f"model_{name}": text for name, text in rows.items() if text})] if any(rows.values()) else []
    return [Paragraph(line, "plain" if found.approved_by and found.state != "retired" else "finding"), *facts]


def answers(write: Writer) -> tuple[tuple[str, str], ...]:
    """Seven questions with their answers."""
    return tuple(
        (write(f"ask_{key}"), answer(write))
        for key, answer in (
            ("use", used_features),
            ("whom", _parties),
            ("way", _directions),
            ("flag", worst_flagged),
            ("done", _decisions),
            ("saw", _disclosures),
            ("verify", lambda write: write("answer_verify", hash=write.report.content_sha256)),
        )
    )


def _parties(write: Writer) -> str:
    return "\n".join(
        write(
            "answer_whom",
            party=write.party(p.name),
            role=write.role(p.role),
            used=p.used,
            offered=p.features,
            share=gain(p.gain_share),
        )
        for p in write.content.parties
    )


def _directions(write: Writer) -> str:
    ways = Counter(f.learned for f in write.content.features if f.splits)
    text = write("answer_way", up=ways["up"], down=ways["down"], other=ways.total() - ways["up"] - ways["down"])
    against = [write.meaning(f) for f in write.content.features if f.contradicts]
    expected = sum(f.expected != "none" for f in write.content.features if f.splits)
    if against:
        text += write("against", listed=write.listed(map(brief, against[:LISTED])))
        if len(against) > LISTED:
            text += write("against_more", n=len(against) - LISTED, section=write("features"))
    else:
        text += write("not_against", n=expected) if expected else write("nothing_expected")
    ages = (
        write("answer_age", feature=write.feature(f.feature), said=_ages(write, f))
        for f in write.content.assessment.findings
        if f.check
    )
    return "\n".join((text, *ages))


def _ages(write: Writer, f: FindingLine) -> str:
    """What the check of elderly ages came to; how it was made stands with the finding."""
    return verdict_in_words(write.words, f.ages) if f.ages and f.splits else elderly(write, f)


def _decisions(write: Writer) -> str:
    findings = write.content.assessment.findings
    decided = Counter(f.decision.decision if f.decision else "open" for f in findings)
    counts = {name: decided[name] for name in ("confirmed", "overridden", "open")}
    covering = sum(s.covers for s in write.report.issued.sign_offs)
    pairs = (_retraining(write, pair) for pair in write.content.retrained)
    return "\n".join((write("answer_done", **counts, signed=covering), *pairs))


def _retraining(write: Writer, pair: Retrained) -> str:
    """One retraining as a sentence, with the figure that decides, and how far groups are apart in both models."""
    lines = {line.name: line for line in pair.figures}
    key = "retrained_after" if pair.after == write.content.identity.model else "retrained_before"
    measured = {line.feature: write.named(line.feature, line.meaning) for line in pair.outcomes}
    without = write.enumerated(measured.get(name) or write.feature(name) for name in pair.without) or write("nothing")
    text = write(key, before=pair.before, after=pair.after, without=without)
    line = next((lines[name] for name in DECISIVE if name in lines), None)
    if line is not None:
        name = write.words(f"figure.{line.name}")
        text += write("retrained_figure", figure=name, before=figure(line.before), after=figure(line.after))
    return "\n".join((text + write("stop"), *_gaps(write, pair.outcomes)))


def _gaps(write: Writer, pairs: tuple[OutcomePairLine, ...]) -> list[str]:
    """By feature: how far the group that is furthest from the reference group is from it in being accepted, in both models."""
    sentences = []
    for name in dict.fromkeys(pair.feature for pair in pairs):
        both = {id(p.before): p for p in pairs if p.feature == name and p.before and p.after}
        furthest = widest([p.before for p in both.values() if p.before])
        if furthest is None:
            continue
        pair = both[id(furthest)]
        figures = {key: value(write, m) for key, m in (("before", pair.before), ("after", pair.after)) if m}
        about = {
            "feature": write.named(pair.feature, pair.meaning),
            "group": write.words.text(furthest.about),
            "reference": reference_of(write, [p.before for p in both.values() if p.before]),
        }
        sentences.append(write("retrained_gap", at=declined_at(write, pair), **about, **figures))
    return sentences


def _disclosures(write: Writer) -> str:
    structure = write.content.structure
    found = write.content.release
    if not any(p.role == "host" for p in write.content.parties):
        return write("answer_alone")
    saw = write("answer_saw", hidden=structure.hidden_splits, splits=structure.splits, numbers=structure.outputs)
    told = told_by_scores(found, found.score_bits if found else 0)
    return joined(saw, told.sentence(write.words.language))
