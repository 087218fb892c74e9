"""Curves of a model's card: ROC, KS, calibration, distribution, residuals and confusion; only those that apply to its task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import streamlit as st

from app.panels import charts, frame, palette
from app.texts import Texts, amount, label, markdown, number, percent
from app.view_models import View
from backend.services.model_card import Performance

if TYPE_CHECKING:
    from backend.evaluation.performance import Calibration, Separation, Spread

HEIGHT = 340
STEP = 10  # of the points of a curve, every so many are in its table

Draw = Callable[[Texts, View, Performance], None]


def draw(t: Texts, view: View, shown: Performance) -> None:
    """Two beside each other, in the order in which they are read."""
    wanted: list[tuple[str, str, Draw]] = []
    if shown.separation is not None:
        wanted += [("card.roc", "roc", roc), ("card.ks", "ks", ks)]
    if shown.calibration:
        wanted.append(
            ("card.calibration_number" if view.task == "number" else "card.calibration", "calibration", calibration)
        )
    if shown.spread is not None:
        wanted.append(("card.residuals" if view.task == "number" else "card.spread", _spread_term(view), spread))
    if shown.confusion:
        wanted.append(("card.confusion", "predicted", confusion))
    for begin in range(0, len(wanted), 2):
        for column, (title, term, picture) in zip(st.columns(2, gap="large"), wanted[begin : begin + 2], strict=False):
            with column:
                frame.section(t, title, term)
                picture(t, view, shown)


def _spread_term(view: View) -> str:
    return "rmse" if view.task == "number" else "probability"


def roc(t: Texts, view: View, shown: Performance) -> None:
    """True against false positive rate."""
    points = shown.separation
    if points is None:
        return
    tenth = next((i for i, false in enumerate(points.false_positive) if false >= 0.1), -1)
    sentence = t(
        "card.roc_sentence",
        true=percent(points.true_positive[tenth]),
        false=percent(points.false_positive[tenth]),
        label=markdown(t.label(view.federation)),
    )
    frame.chart(t, _roc(t, points), sentence, lambda: _rates(t, points), "card_roc")


@charts.cached
def _roc(t: Texts, points: Separation) -> go.Figure:
    figure = _diagonal(0, 1)
    figure.add_scatter(
        x=[0, *points.false_positive],
        y=[0, *points.true_positive],
        mode="lines",
        line={"color": palette.INK, "width": 3},
        customdata=["–", *(percent(cutoff) for cutoff in points.cutoffs)],
        hovertemplate=f"{label(t('card.cutoff'))} %{{customdata}}<br>%{{y:.1%}} / %{{x:.1%}}<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(title_text=label(t("card.false_positive")), range=[0, 1], tickformat=".0%")
    figure.update_yaxes(title_text=label(t("card.true_positive")), range=[0, 1.02], tickformat=".0%")
    return _shares(figure)


def ks(t: Texts, view: View, shown: Performance) -> None:
    """The two outcomes' shares at or above each cut-off, with the widest gap marked."""
    points = shown.separation
    if points is None:
        return
    at = points.widest
    true, false = points.true_positive[at], points.false_positive[at]
    shares = {"true": percent(true), "false": percent(false), "gap": number(true - false)}
    sentence = t(
        "card.ks_sentence", cutoff=percent(points.cutoffs[at]), label=markdown(t.label(view.federation)), **shares
    )
    frame.chart(t, _ks(t, points), sentence, lambda: _rates(t, points), "card_ks")


@charts.cached
def _ks(t: Texts, points: Separation) -> go.Figure:
    at = points.widest
    true, false = points.true_positive[at], points.false_positive[at]
    figure = _empty(hovermode="x unified")
    charts.line(figure, t("card.positive"), points.cutoffs, points.true_positive, mode="lines")
    charts.line(figure, t("card.negative"), points.cutoffs, points.false_positive, "dot", mode="lines")
    figure.add_scatter(
        x=[points.cutoffs[at]] * 2,
        y=[false, true],
        mode="lines+markers",
        line={"color": palette.INK, "width": 4},
        name=f"KS {number(true - false)}",
        hoverinfo="skip",
    )
    figure.update_xaxes(title_text=label(t("card.cutoff")), tickformat=".0%")
    figure.update_yaxes(title_text=label(t("card.at_or_above")), tickformat=".0%", range=[0, 1.02])
    return _shares(figure)


def calibration(t: Texts, view: View, shown: Performance) -> None:
    """Predicted against what came, in bins of about equal size."""
    rows, numbers = shown.calibration, view.task == "number"
    fits = sum(row.low <= row.predicted <= row.high for row in rows)
    far = max(rows, key=lambda row: abs(row.observed - row.predicted))

    def show(value: float) -> str:
        return markdown(amount(value, t.unit(view.federation.label))) if numbers else percent(value)

    ends_of_far = {"predicted": show(far.predicted), "observed": show(far.observed)}
    sentence = t("card.calibration_sentence", n=len(rows), fits=fits, **ends_of_far)
    twin: frame.Columns = {
        t("importance.people"): [f"{row.n:,}" for row in rows],
        t("card.predicted"): [show(row.predicted) for row in rows],
        t("card.observed"): [show(row.observed) for row in rows],
        t("importance.interval"): [f"{show(row.low)} … {show(row.high)}" for row in rows],
    }
    frame.chart(t, _calibration(t, rows, numbers), sentence, twin, "card_calibration")


@charts.cached
def _calibration(t: Texts, rows: Sequence[Calibration], numbers: bool) -> go.Figure:
    ends = [end for row in rows for end in (row.predicted, row.low, row.high)]
    low, high = (min(ends), max(ends)) if numbers else (0.0, min(1.0, max(ends) * 1.08))
    figure = _diagonal(low, high)
    figure.add_scatter(
        x=[row.predicted for row in rows],
        y=[row.observed for row in rows],
        mode="lines+markers",
        marker={"color": palette.INK, "size": 9},
        line={"color": palette.INK, "width": 1.5},
        error_y=charts.whisker([r.observed for r in rows], [r.low for r in rows], [r.high for r in rows]),
        customdata=[f"{row.n:,}" for row in rows],
        hovertemplate=f"%{{x}} → %{{y}}<br>{label(t('importance.people'))}: %{{customdata}}<extra></extra>",
        showlegend=False,
    )
    form = ".3~s" if numbers else ".0%"
    figure.update_xaxes(title_text=label(t("card.predicted")), tickformat=form, range=[low, high])
    figure.update_yaxes(title_text=label(t("card.observed")), tickformat=form)
    return figure if numbers else _shares(figure)


def spread(t: Texts, view: View, shown: Performance) -> None:
    """How predictions of both outcomes, or residuals, are distributed."""
    found = shown.spread
    if found is None:
        return
    numbers = view.task == "number"
    names = [t("card.residual")] if numbers else [t("card.negative"), t("card.positive")]
    sentence = _spread_sentence(t, view, found)
    frame.chart(t, _spread(t, found, numbers), sentence, lambda: _bars(t, view, found, names), "card_spread")


@charts.cached
def _spread(t: Texts, found: Spread, numbers: bool) -> go.Figure:
    names = [t("card.residual")] if numbers else [t("card.negative"), t("card.positive")]
    shares = [[count / max(sum(row), 1) for count in row] for row in found.counts]
    figure = _empty(bargap=0.05, showlegend=not numbers)
    figure.add_bar(
        x=[(a + b) / 2 for a, b in pairwise(found.edges)],
        y=shares[0],
        name=label(names[0]),
        marker={"color": palette.INK if numbers else charts.theme().quiet},
        hovertemplate=f"{label(names[0])}: %{{y:.1%}}<extra></extra>",
    )
    if not numbers:
        figure.add_scatter(
            x=found.edges,
            y=[*shares[1], shares[1][-1]],
            mode="lines",
            line={"shape": "hv", "color": charts.theme().text, "width": 2.5},
            name=label(names[1]),
            hovertemplate=f"{label(names[1])}: %{{y:.1%}}<extra></extra>",
        )
    form = ".3~s" if numbers else ".0%"
    axis = t("card.residual_axis") if numbers else t("card.predicted")
    figure.update_xaxes(title_text=label(axis), tickformat=form)
    figure.update_yaxes(title_text=label(t("card.share")), tickformat=".0%")
    return _shares(figure)


def confusion(t: Texts, view: View, shown: Performance) -> None:
    """True against predicted class."""
    classes = view.model.outputs.classes
    rows = [[count / max(sum(row), 1) for count in row] for row in shown.confusion]
    wrong = max(
        ((i, j) for i in range(len(classes)) for j in range(len(classes)) if i != j),
        key=lambda at: shown.confusion[at[0]][at[1]],
    )
    sentence = t(
        "card.confusion_sentence",
        true=markdown(classes[wrong[0]]),
        predicted=markdown(classes[wrong[1]]),
        share=percent(rows[wrong[0]][wrong[1]]),
        people=f"{shown.confusion[wrong[0]][wrong[1]]:,}",
    )
    names = [label(name) for name in classes]
    hover = "%{y} → %{x}: %{z:.1%}<extra></extra>"
    figure = _empty().add_trace(charts.squares(rows, names, names, zmax=1, hovertemplate=hover))
    strong, cells = "black" if charts.dark() else "white", []
    for name, row in zip(names, rows, strict=True):
        for other, share in zip(names, row, strict=True):
            font = {"color": strong if share > 0.5 else palette.INK, "size": charts.TEXT}
            cells.append({"x": other, "y": name, "xanchor": "center", "text": percent(share), "font": font})
    charts.write(figure, cells)
    figure.update_xaxes(title_text=label(t("card.class_predicted")), showgrid=False, type="category")
    figure.update_yaxes(title_text=label(t("card.class_true")), autorange="reversed", showgrid=False, type="category")
    twin = {t("card.class_true"): list(classes)}
    twin |= {name: [f"{row[j]:,}" for row in shown.confusion] for j, name in enumerate(classes)}
    frame.chart(t, figure, sentence, twin, "card_confusion")


def _diagonal(low: float, high: float) -> go.Figure:
    """An empty chart with the line on which both axes are the same."""
    line = {"color": palette.FAINT, "width": 2}
    ends = [low, high]
    return _empty().add_scatter(x=ends, y=ends, mode="lines", line=line, hoverinfo="skip", showlegend=False)


def _empty(**layout: Any) -> go.Figure:
    return charts.figure(HEIGHT, top=36, **layout)


def _shares(figure: go.Figure) -> go.Figure:
    """Room for two titled axes, the standing one in percent."""
    return charts.margins(figure, ["100%"], charts.TITLED, charts.BESIDE)


def _rates(t: Texts, points: Separation) -> frame.Columns:
    kept = sorted({*range(0, len(points.cutoffs), STEP), points.widest, len(points.cutoffs) - 1})
    return {
        t("card.cutoff"): [percent(points.cutoffs[i]) for i in kept],
        t("card.true_positive"): [percent(points.true_positive[i]) for i in kept],
        t("card.false_positive"): [percent(points.false_positive[i]) for i in kept],
    }


def _spread_sentence(t: Texts, view: View, found: Spread) -> str:
    if view.task == "number":
        counts = found.counts[0]
        half = len(counts) // 2
        above = sum(counts[half:]) / max(sum(counts), 1)
        return t("card.residual_sentence", above=percent(above))
    middle = len(found.edges) // 2
    high = [sum(row[middle:]) / max(sum(row), 1) for row in found.counts]
    return t(
        "card.spread_sentence",
        negative=percent(high[0]),
        positive=percent(high[1]),
        label=markdown(t.label(view.federation)),
    )


def _bars(t: Texts, view: View, found: Spread, names: list[str]) -> frame.Columns:
    show = number if view.task == "number" else percent
    ranges = {t("card.range"): [f"{show(a)} – {show(b)}" for a, b in pairwise(found.edges)]}
    return ranges | dict(zip(names, found.counts, strict=True))
