"""Curves of a model's card: ROC, KS, calibration, distribution, residuals and confusion; only those that apply to its task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import charts, frame, lines, palette
from app.texts import Texts, amount, bare, cut, label, markdown, number, percent
from app.view_models import View
from backend.i18n import wide
from backend.services.model_card import Performance

if TYPE_CHECKING:
    from backend.evaluation.performance import Calibration, Separation, Spread

CLASS_SQUARE_PIXELS = 56  # pixels of a pair of classes; its words are 4.5:1 on the darkest, on either page
CLASS_LETTERS = 14  # letters of a class
POINTS_A_ROW = 10  # of the points of a curve, every so many are in its table

Draw = Callable[[Texts, View, Performance], None]


def draw(t: Texts, view: View, performance: Performance) -> None:
    """Draw two beside each other, in the order in which they are read."""
    charts: list[tuple[str, str, Draw]] = []
    if performance.separation is not None:
        charts += [("card.roc", "roc", roc), ("card.ks", "ks", ks)]
    if performance.calibration:
        charts.append(
            ("card.calibration_number" if view.task == "number" else "card.calibration", "calibration", calibration)
        )
    if performance.spread is not None:
        charts.append(("card.residuals" if view.task == "number" else "card.spread", _spread_term(view), spread))
    if performance.confusion:
        charts.append(("card.confusion", "predicted", confusion))
    for begin in range(0, len(charts), 2):
        for column, (title, term, picture) in zip(st.columns(2, gap="large"), charts[begin : begin + 2], strict=False):
            with column:
                frame.section(t, title, term)
                picture(t, view, performance)


def _spread_term(view: View) -> str:
    return "rmse" if view.task == "number" else "probability"


def roc(t: Texts, view: View, performance: Performance) -> None:
    """Draw true against false positive rate."""
    points = performance.separation
    if points is None:
        return
    tenth = next((i for i, false in enumerate(points.false_positive) if false >= 0.1), -1)
    sentence = t(
        "card.roc_sentence",
        true=percent(points.true_positive[tenth]),
        false=percent(points.false_positive[tenth]),
        label=markdown(t.label(view.federation)),
    )
    frame.chart(t, _roc(t, points, sentence), sentence, lambda: _rates(t, points), "card_roc")


def _roc(t: Texts, points: Separation, sentence: str) -> charts.Drawing:
    false = [0.0, *points.false_positive]
    true = [0.0, *points.true_positive]
    cutoffs = ["–", *map(percent, points.cutoffs)]
    hover = [
        (a, f"{t('card.cutoff')} {cutoff}\n{percent(b)} / {percent(a)}")
        for a, b, cutoff in zip(false, true, cutoffs, strict=True)
    ]
    across = lines.between(t("card.false_positive"), 0, 1, lines.share)
    down = lines.between(t("card.true_positive"), 0, 1, lines.share)
    return lines.drawing([_diagonal(0, 1), lines.Line(false, true, width=3)], across, down, sentence, hover)


def ks(t: Texts, view: View, performance: Performance) -> None:
    """Draw the two outcomes' shares at or above each cut-off, with the widest gap marked."""
    points = performance.separation
    if points is None:
        return
    at = points.widest
    true = points.true_positive[at]
    false = points.false_positive[at]
    shares = {"true": percent(true), "false": percent(false), "gap": number(true - false)}
    sentence = t(
        "card.ks_sentence", cutoff=percent(points.cutoffs[at]), label=markdown(t.label(view.federation)), **shares
    )
    frame.chart(t, _ks(t, points, sentence), sentence, lambda: _rates(t, points), "card_ks")


def _ks(t: Texts, points: Separation, sentence: str) -> charts.Drawing:
    at = points.widest
    cutoffs = points.cutoffs
    true = points.true_positive
    false = points.false_positive
    names = t("card.positive"), t("card.negative")
    hover = [
        (x, f"{t('card.cutoff')} {percent(x)}\n{names[0]}: {percent(a)}\n{names[1]}: {percent(b)}")
        for x, a, b in zip(cutoffs, true, false, strict=True)
    ]
    gap = lines.Line([cutoffs[at]] * 2, [false[at], true[at]], f"KS {number(true[at] - false[at])}", width=4, dots=True)
    return lines.drawing(
        [lines.Line(cutoffs, true, names[0]), lines.Line(cutoffs, false, names[1], dash="dot"), gap],
        lines.rounded(t("card.cutoff"), cutoffs, lines.share),
        lines.between(t("card.at_or_above"), 0, 1, lines.share),
        sentence,
        hover,
    )


def calibration(t: Texts, view: View, performance: Performance) -> None:
    """Draw predicted against what came, in bins of about equal size."""
    rows = performance.calibration
    numbers = view.task == "number"
    fits = sum(row.low <= row.predicted <= row.high for row in rows)
    far = max(rows, key=lambda row: abs(row.observed - row.predicted))

    def show(value: float) -> str:
        if numbers:
            return amount(value, t.unit(view.federation.label))
        return percent(value)

    ends_of_far = {"predicted": markdown(show(far.predicted)), "observed": markdown(show(far.observed))}
    sentence = t("card.calibration_sentence", n=len(rows), fits=fits, **ends_of_far)
    twin: frame.Columns = {
        t("importance.people"): [f"{row.n:,}" for row in rows],
        t("card.predicted"): [show(row.predicted) for row in rows],
        t("card.observed"): [show(row.observed) for row in rows],
        t("importance.interval"): [f"{show(row.low)} … {show(row.high)}" for row in rows],
    }
    frame.chart(t, _calibration(t, rows, numbers, show, sentence), sentence, twin, "card_calibration")


def _calibration(
    t: Texts, rows: Sequence[Calibration], numbers: bool, show: Callable[[float], str], sentence: str
) -> charts.Drawing:
    ends = [end for row in rows for end in (row.predicted, row.observed, row.low, row.high)]
    low, high = (min(ends), max(ends)) if numbers else (0.0, min(1.0, max(ends) * 1.08))
    words = bare if numbers else lines.share
    hover = [
        (row.predicted, f"{show(row.predicted)} → {show(row.observed)}\n{t('importance.people')}: {row.n:,}")
        for row in rows
    ]
    predicted = [row.predicted for row in rows]
    observed = [row.observed for row in rows]
    bins = lines.Line(predicted, observed, width=1.5, dots=True, ends=[(row.low, row.high) for row in rows])
    across = lines.between(t("card.predicted"), low, high, words)
    down = lines.between(t("card.observed"), low, high, words)
    return lines.drawing([_diagonal(low, high), bins], across, down, sentence, hover)


def spread(t: Texts, view: View, performance: Performance) -> None:
    """Draw how predictions of both outcomes, or residuals, are distributed."""
    histogram = performance.spread
    if histogram is None:
        return
    numbers = view.task == "number"
    if numbers:
        names = [t("card.residual")]
    else:
        names = [t("card.negative"), t("card.positive")]
    sentence = _spread_sentence(t, view, histogram)
    frame.chart(
        t, _spread(t, histogram, names, sentence), sentence, lambda: _bars(t, view, histogram, names), "card_spread"
    )


def _spread(t: Texts, histogram: Spread, names: Sequence[str], sentence: str) -> charts.Drawing:
    """Bars of the first row, and if there is a second one its outline."""
    numbers = len(names) == 1
    edges = histogram.edges
    shares = [[count / max(sum(row), 1) for count in row] for row in histogram.counts]
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    texts = {name: [percent(share) for share in row] for name, row in zip(names, shares, strict=True)}
    hover = lines.hover(middles, texts)
    bars = lines.Bars(edges, shares[0], "" if numbers else names[0], palette.INK if numbers else charts.theme().quiet)
    x = [edge for pair in pairwise(edges) for edge in pair]
    outlines = []
    for row, name in zip(shares[1:], names[1:], strict=True):
        heights = [share for share in row for _ in range(2)]  # of both edges of a bar
        outlines.append(lines.Line(x, heights, name, charts.theme().text, 2.5))
    title = t("card.residual_axis" if numbers else "card.predicted")
    across = lines.between(title, edges[0], edges[-1], bare if numbers else lines.share)
    down = lines.rounded(t("card.share"), [0.0, *(share for row in shares for share in row)], lines.share)
    return lines.drawing(outlines, across, down, sentence, hover, bars)


def confusion(t: Texts, view: View, performance: Performance) -> None:
    """Draw true against predicted class."""
    classes = view.model.outputs.classes
    rows = [[count / max(sum(row), 1) for count in row] for row in performance.confusion]
    pairs = [(i, j) for i in range(len(classes)) for j in range(len(classes)) if i != j]
    true, predicted = max(pairs, key=lambda pair: performance.confusion[pair[0]][pair[1]])
    sentence = t(
        "card.confusion_sentence",
        true=markdown(classes[true]),
        predicted=markdown(classes[predicted]),
        share=percent(rows[true][predicted]),
        people=f"{performance.confusion[true][predicted]:,}",
    )
    twin = {t("card.class_true"): list(classes)}
    twin |= {name: [f"{row[j]:,}" for row in performance.confusion] for j, name in enumerate(classes)}
    frame.chart(t, _squares(t, classes, rows, sentence), sentence, twin, "card_confusion")


def _squares(t: Texts, classes: Sequence[str], rows: Sequence[Sequence[float]], sentence: str) -> str:
    """Return a chart with a square for each pair of a true and a predicted class, darker where more people of the true one are."""
    width = 100 / len(classes)
    ground = CLASS_SQUARE_PIXELS * len(classes)
    names = [cut(name, CLASS_LETTERS) for name in classes]
    room = charts.BESIDE + 8 + round(charts.LETTER * max(map(wide, names)))
    parts = []
    for i, (true, row) in enumerate(zip(names, rows, strict=True)):
        middle = CLASS_SQUARE_PIXELS * (i + 0.5) + 4
        parts.append(f'<text x="-8" y="{middle}" text-anchor="end">{label(true)}</text>')
        parts.append(f'<text x="{width * (i + 0.5):.2f}%" y="{ground + charts.LINE}">{label(true)}</text>')
        for j, share in enumerate(row):
            x = width * j
            words = f"{classes[i]} → {classes[j]}: {percent(share)}"
            parts.append(
                f'<rect x="{x:.2f}%" y="{CLASS_SQUARE_PIXELS * i}" width="{width - 0.4:.2f}%" height="{CLASS_SQUARE_PIXELS - 2}" '
                f'fill-opacity="{0.04 + 0.36 * share:.2f}"><title>{label(words)}</title></rect>'
                f'<text x="{x + width / 2:.2f}%" y="{middle}" pointer-events="none">{percent(share)}</text>'
            )
    parts.append(f'<text x="50%" y="{ground + charts.TITLED - 8}">{label(t("card.class_predicted"))}</text>')
    transform = f"translate({charts.TEXT - room},{ground // 2}) rotate(-90)"
    parts.append(f'<text transform="{transform}">{label(t("card.class_true"))}</text>')
    return charts.svg(parts, ground + charts.TITLED, sentence, room)


def _diagonal(low: float, high: float) -> lines.Line:
    """Return the line on which both axes are the same."""
    return lines.Line([low, high], [low, high], colour=palette.FAINT)


def _rates(t: Texts, points: Separation) -> frame.Columns:
    indices = sorted({*range(0, len(points.cutoffs), POINTS_A_ROW), points.widest, len(points.cutoffs) - 1})
    return {
        t("card.cutoff"): [percent(points.cutoffs[i]) for i in indices],
        t("card.true_positive"): [percent(points.true_positive[i]) for i in indices],
        t("card.false_positive"): [percent(points.false_positive[i]) for i in indices],
    }


def _spread_sentence(t: Texts, view: View, histogram: Spread) -> str:
    if view.task == "number":
        counts = histogram.counts[0]
        half = len(counts) // 2
        above = sum(counts[half:]) / max(sum(counts), 1)
        return t("card.residual_sentence", above=percent(above))
    middle = len(histogram.edges) // 2
    high = [sum(row[middle:]) / max(sum(row), 1) for row in histogram.counts]
    return t(
        "card.spread_sentence",
        negative=percent(high[0]),
        positive=percent(high[1]),
        label=markdown(t.label(view.federation)),
    )


def _bars(t: Texts, view: View, histogram: Spread, names: list[str]) -> frame.Columns:
    show = number if view.task == "number" else percent
    ranges = {t("card.range"): [f"{show(a)} – {show(b)}" for a, b in pairwise(histogram.edges)]}
    return ranges | dict(zip(names, histogram.counts, strict=True))
