"""What is next to rates by group: scores compared without a cut-off, and selection over a range of cut-offs. Knows the report alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend.fairness.disparity import BY_CUTOFF, FOUR_FIFTHS, PAIR_P, RATIO, SCORE, SMD, lower_over_higher
from backend.fairness.evidence import Evidence
from backend.reports.blocks import Block, Paragraph, Table
from backend.reports.sections.writer import Writer, figure, p_value, percent, whole


def beside_rates(write: Writer, measures: Sequence[Evidence]) -> list[Block]:
    """Standardised mean differences, then ratios of selection rates by cut-off."""
    return [*_scores(write, measures), *_cutoffs(write, measures)]


def about_scores(write: Writer, measures: Sequence[Evidence]) -> list[Block]:
    """Return what a standardised mean difference is; nothing if none was measured."""
    if any(m.measure == f"{SCORE}, {SMD}" for m in measures):
        return [Paragraph(write.words("disparity.smd_about"))]
    return []


def _scores(write: Writer, measures: Sequence[Evidence]) -> list[Block]:
    say = write.words
    means = [m for m in measures if m.measure == SCORE]
    compared = {m.about: m for m in measures if m.measure == f"{SCORE}, {SMD}"}
    chance = {m.about: m for m in measures if m.measure == f"{SCORE}, {PAIR_P}"}
    if not compared:
        return []
    rows = tuple(
        (
            say.text(m.about),
            _with_ends(m, percent),
            _with_ends(compared[m.about], figure) if m.about in compared else "–",
            p_value(chance[m.about].value) if m.about in chance else "–",
            whole(m.n),
        )
        for m in means
    )
    heads = ("group", "mean_score", "smd", "p", "records")
    return [Table(tuple(say(f"disparity.head_{head}") for head in heads), rows, (5, 6, 6, 3, 3))]


def _cutoffs(write: Writer, measures: Sequence[Evidence]) -> list[Block]:
    """A row a cut-off, a column a group that is compared."""
    say = write.words
    ratios = [m for m in measures if m.measure == f"{BY_CUTOFF}, {RATIO}" and m.cutoff is not None]
    if not ratios:
        return []
    groups = {m.about: m for m in ratios}
    cells = {(m.cutoff, m.about): m for m in ratios}
    rows = []
    for cutoff in dict.fromkeys(m.cutoff for m in ratios):
        rows.append((percent(cutoff), *(_with_ends(cells[cutoff, about], figure) for about in groups)))
    heads = (say("disparity.head_cutoff"), *(say.text(m.about) for m in groups.values()))
    return [Paragraph(in_words(write, ratios)), Table(heads, tuple(rows), (3, *(5 for _ in groups)))]


def in_words(write: Writer, ratios: Sequence[Evidence]) -> str:
    """Say between which values the ratios are, and at how many cut-offs one is below four fifths."""
    values = []
    below = set()
    for m in ratios:
        if m.value is not None:
            value, _, _ = lower_over_higher(m.value, m.low, m.high)
            values.append(value)
            if value < FOUR_FIFTHS:
                below.add(m.cutoff)
    return write.words(
        "disparity.range_sentence",
        cutoffs=len({m.cutoff for m in ratios}),
        low=figure(min(values, default=None)),
        high=figure(max(values, default=None)),
        below=len(below),
    )


def _with_ends(m: Evidence, text_of: Callable[[float | None], str]) -> str:
    """Return a figure with its interval."""
    if m.value is None or m.low is None or m.high is None:
        return "–"
    return f"{text_of(m.value)} [{text_of(m.low)}, {text_of(m.high)}]"
