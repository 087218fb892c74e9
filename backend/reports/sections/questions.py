"""A regulator's questions, each answered in sentences: pages show all, sections of the report one each. Knows the report alone."""

from __future__ import annotations

from collections import Counter

from backend.compliance.assessment import Finding
from backend.fairness.age_discrimination import verdict_in_words
from backend.fairness.disparity import widest
from backend.i18n import brief, joined
from backend.reports.schema import OutcomePairLine, Retrained
from backend.reports.sections.claims import (
    FIRST_PAGE_FEATURES,
    decided_in_words,
    declined_at,
    elderly,
    reference_of,
    value,
    worst_flagged,
)
from backend.reports.sections.writer import Writer, figure, gain
from backend.results import told_by_scores

FEATURES_NAMED = 3  # features named in a sentence
DECISIVE = ("auc", "accuracy", "rmse")  # the figure that a retraining is judged by: the first that applies


def answers(write: Writer) -> tuple[tuple[str, str], ...]:
    """Seven questions with their answers."""
    return tuple(
        (write(f"ask_{key}"), answer(write))
        for key, answer in (
            ("use", used_features),
            ("whom", _parties),
            ("way", directions_in_words),
            ("flag", worst_flagged),
            ("done", _decisions),
            ("saw", disclosures_in_words),
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


def directions_in_words(write: Writer) -> str:
    """Return which way features move the prediction, against whose expectation, and how elderly ages fare."""
    ways = Counter(f.learned for f in write.content.features if f.usage.splits)
    text = write("answer_way", up=ways["up"], down=ways["down"], other=ways.total() - ways["up"] - ways["down"])
    against = [write.meaning(f) for f in write.content.features if f.contradicts]
    expected = sum(f.expected != "none" for f in write.content.features if f.usage.splits)
    if against:
        text += write("against", listed=write.listed(map(brief, against[:FIRST_PAGE_FEATURES])))
        if len(against) > FIRST_PAGE_FEATURES:
            text += write("against_more", n=len(against) - FIRST_PAGE_FEATURES, section=write("features"))
    else:
        text += write("not_against", n=expected) if expected else write("nothing_expected")
    ages = (
        write("answer_age", feature=write.feature(f.feature), said=_ages(write, f))
        for f in write.content.assessment.findings
        if f.check
    )
    return "\n".join((text, *ages))


def _ages(write: Writer, f: Finding) -> str:
    """Return what the check of elderly ages came to; how it was made is said with the finding."""
    if f.ages and f.usage.splits:
        return verdict_in_words(write.words, f.ages)
    return elderly(write, f)


def _decisions(write: Writer) -> str:
    pairs = (retraining_in_words(write, pair) for pair in write.content.retrained)
    return "\n".join((decided_in_words(write), *pairs))


def retraining_in_words(write: Writer, pair: Retrained) -> str:
    """Return one retraining as a sentence, with the figure that decides, and how far groups are apart in both models."""
    lines = {line.name: line for line in pair.figures}
    if pair.after == write.content.identity.model:
        key = "retrained_after"
    else:
        key = "retrained_before"
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
        figures = {}
        for key, m in (("before", pair.before), ("after", pair.after)):
            if m:
                figures[key] = value(write, m)
        about = {
            "feature": write.named(pair.feature, pair.meaning),
            "group": write.words.text(furthest.about),
            "reference": reference_of(write, [p.before for p in both.values() if p.before]),
        }
        sentences.append(write("retrained_gap", at=declined_at(write, pair), **about, **figures))
    return sentences


def disclosures_in_words(write: Writer) -> str:
    """Return what Hosts keep, and what each party learns of a person."""
    structure = write.content.structure
    release = write.content.release
    if not any(p.role == "host" for p in write.content.parties):
        return write("answer_alone")
    saw = write("answer_saw", hidden=structure.hidden_splits, splits=structure.splits, numbers=structure.outputs)
    disclosed = told_by_scores(release, release.score_bits if release else 0)
    return joined(saw, disclosed.sentence(write.words.language))


def used_features(write: Writer) -> str:
    """Return how many features are used, and the most important of them, as a sentence."""
    in_use = [f for f in write.content.features if f.usage.splits]
    top = write.listed(
        write("named", meaning=brief(write.meaning(f)), name=gain(f.usage.gain_share)) for f in in_use[:FEATURES_NAMED]
    )
    return write("answer_use", used=len(in_use), offered=len(write.content.features), top=top)
