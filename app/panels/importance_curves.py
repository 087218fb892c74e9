"""How the model's answer moves with one feature: a curve for the Guest's own, means by tenth for a Host's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import plotly.graph_objects as go
import streamlit as st

from app import view_models
from app.panels import charts, frame, lines, palette
from app.texts import Texts, amount, bare, label, markdown, percent
from app.view_models import View
from backend.errors import GlassleafError
from backend.services.explanation import GroupMean
from backend.services.fairness import group_names

if TYPE_CHECKING:
    from backend.data.dictionary import Feature
    from backend.explain.dependence import Dependence, GroupMeans, Level

CLASS_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")  # of classes
STROKES = ("", "9 9", "3 3", "9 3 3 3", "15 15", "15 6 3 6")  # the same of an SVG
# pixels: of a chart, of a stair without its axes and legend
HEIGHT = 360
STAIR = 260
LACKING = 'stroke="currentColor" stroke-width="1.5" stroke-dasharray="3 3"'  # the line of those without a value


def features(view: View) -> list[str]:
    """Return the features that the model asks about, the most important first."""
    return [row.feature for row in view_models.used(view.importance)]


def choose(t: Texts, view: View, key: str) -> str:
    """Which feature; returns its name."""
    holders = {feature.name: party for party, feature in view.model.dictionary}
    return str(
        st.selectbox(
            t("importance.curve_feature"),
            features(view),
            key=key,
            format_func=lambda name: (
                f"{t.brief(view.model.feature(name))} · {palette.plain(t, view.federation, holders[name])}"
            ),
        )
    )


def held_by_guest(view: View, feature: str) -> bool:
    """Return whether the Guest can set the feature by itself."""
    return view.model.owner_of(feature) == view.model.guest


def own(t: Texts, view: View, read: Callable[[], Dependence]) -> None:
    """Draw the curve of one of the Guest's features, or why there is none."""
    try:
        dependence = read()
    except GlassleafError as error:
        st.info(frame.explained(t, error), icon=":material/info:")
        return
    curve(t, view, dependence)


def curve(t: Texts, view: View, dependence: Dependence) -> None:
    """Draw what the model says on average if everybody had the value."""
    feature = view.model.feature(dependence.feature)
    levels = dependence.levels
    names = [_level(t, feature, level) for level in levels]
    at = _widest([level.predicted for level in levels])
    sentence = _ends(t, view, "importance.curve", feature, names, [level.predicted[at] for level in levels], at)
    table = {t("importance.value"): names, t("importance.records"): [percent(level.share) for level in levels]}
    table |= {
        _column(t, view, k): [_answer(t, view, level.predicted[k]) for level in levels] for k in range(_outputs(view))
    }
    numeric = any(level.low is not None or level.high is not None for level in levels)
    if numeric:
        figure = _steps(t, view, feature, levels, sentence)
    else:
        figure = _dots(t, view, dependence.party, names, levels)
    frame.chart(t, figure, sentence, table, "importance_curve")
    st.caption(f":material/info: {t('importance.curve_caption', n=dependence.n, records=f'{dependence.n:,}')}")


def _ends(
    t: Texts, view: View, key: str, feature: Feature, names: Sequence[str], answers: Sequence[float], at: int
) -> str:
    """Return where the answer is smallest and where it is largest."""
    low = answers.index(min(answers))
    high = answers.index(max(answers))
    return t(
        key,
        feature=markdown(t.brief(feature)),
        low=_answer(t, view, answers[low]),
        at_low=markdown(names[low]),
        high=_answer(t, view, answers[high]),
        at_high=markdown(names[high]),
        what=_what(t, view, at),
    )


def means(t: Texts, view: View, group_means: GroupMeans) -> None:
    """Draw mean answers by group of a Host's feature, with what came if there are two outcomes."""
    feature = view.model.feature(group_means.feature)
    if not group_means.groups:
        st.info(t("importance.means_none", records=f"{group_means.n:,}"), icon=":material/groups:")
        return
    names = [_group(t, feature, group_means, row) for row in group_means.groups]
    at = _widest([row.mean for row in group_means.groups])
    sentence = _ends(t, view, "importance.means", feature, names, [row.mean[at] for row in group_means.groups], at)
    table = {t("importance.group"): names, t("importance.people"): [f"{row.group.n:,}" for row in group_means.groups]}
    for k in range(_outputs(view)):
        table[_column(t, view, k)] = [
            t.noted(_answer(t, view, row.mean[k]), f"{_answer(t, view, row.low[k])} … {_answer(t, view, row.high[k])}")
            for row in group_means.groups
        ]
    if any(row.observed is not None for row in group_means.groups):
        table[t("importance.observed")] = [percent(row.observed or 0.0) for row in group_means.groups]
    frame.chart(t, _dots(t, view, group_means.party, names, group_means.groups), sentence, table, "importance_means")
    if group_means.measured:
        caption = "importance.means_before"
    else:
        caption = "importance.means_caption"
    st.caption(f":material/lock: {t(caption, records=f'{group_means.n:,}', day=group_means.measured)}")


def _steps(t: Texts, view: View, feature: Feature, levels: Sequence[Level], sentence: str) -> str:
    """Return a stair over the values, with the shares of the records below it, as an SVG."""
    steps = [level for level in levels if not level.missing]
    lacking = [level for level in levels if level.missing]
    cuts = [level.low for level in steps if level.low is not None]
    span = (cuts[-1] - cuts[0]) or abs(cuts[0]) or 1.0
    edges = [cuts[0] - span / 8, *cuts, cuts[-1] + span / 8]
    answers = [answer for level in levels for answer in level.predicted]
    marks = lines.steps(min(answers), max(answers))
    legend = _legend(t, view, max(level.share for level in steps), bool(lacking))
    top = charts.LINE * (len(legend) + 1)
    bottom = top + STAIR
    low = marks[0]
    high = marks[-1]

    def across(value: float) -> float:
        return 100 * (value - edges[0]) / (edges[-1] - edges[0])

    def down(answer: float) -> float:
        return bottom - STAIR * (answer - low) / (high - low)

    def line(x1: float, x2: float, y1: float, y2: float, look: str) -> str:
        return f'<line x1="{x1:.2f}%" x2="{x2:.2f}%" y1="{y1:.1f}" y2="{y2:.1f}" {look}/>'

    parts = [line(0, 100, down(mark), down(mark), f'stroke="{palette.FAINT}"') for mark in marks]
    for level, (x1, x2) in zip(steps, pairwise(map(across, edges)), strict=True):
        tall = STAIR / 4 * level.share
        parts.append(
            f'<rect x="{x1:.2f}%" width="{x2 - x1:.2f}%" y="{bottom - tall:.1f}" height="{tall:.1f}" fill="{charts.theme().quiet}"/>'
        )
    for k in range(_outputs(view)):
        stair = f'stroke="{palette.GUEST.colour}" stroke-width="3" {_dash(k)}'
        for at, (x1, x2) in enumerate(pairwise(map(across, edges))):
            y = down(steps[at].predicted[k])
            parts.append(line(x1, x2, y, y, stair))
            if at:
                parts.append(line(x1, x1, down(steps[at - 1].predicted[k]), y, stair))
        parts += [line(0, 100, down(level.predicted[k]), down(level.predicted[k]), LACKING) for level in lacking]
    for level, (x1, x2) in zip(steps, pairwise(map(across, edges)), strict=True):
        hover = [
            _level(t, feature, level),
            *(_answer(t, view, answer) for answer in level.predicted),
            percent(level.share),
        ]
        parts.append(
            f'<rect x="{x1:.2f}%" width="{x2 - x1:.2f}%" y="{top}" height="{STAIR}" fill="transparent">'
            f"<title>{label(chr(10).join(hover))}</title></rect>"
        )
    ticks = [mark for mark in lines.steps(edges[0], edges[-1]) if edges[0] <= mark <= edges[-1]]
    parts += [charts.annotation(across(mark), bottom + charts.LINE, bare(mark)) for mark in ticks]
    unit = label(t.unit(feature))
    if unit:
        parts.append(charts.annotation(50, bottom + 2 * charts.LINE + 4, unit))
    halo = f'paint-order="stroke" stroke="{charts.background()}" stroke-width="4"'
    parts += [
        f'<text x="0" y="{down(mark) - 4:.1f}" text-anchor="start" {halo}>{label(_answer(t, view, mark))}</text>'
        for mark in marks
    ]
    below = charts.TITLED if unit else charts.TICKS
    return charts.svg([*legend, *parts], bottom + below, sentence)


def _legend(t: Texts, view: View, tallest: float, lacking: bool) -> list[str]:
    """Return a sample and its meaning: each output, the records, whose bars have a scale of their own, and those without a value."""
    rows = []
    for k in range(_outputs(view)):
        rows.append((f'stroke="{palette.GUEST.colour}" stroke-width="3" {_dash(k)}', _column(t, view, k)))
    records = t("importance.records_bars", share=percent(tallest))
    rows.append((f'stroke="{charts.theme().quiet}" stroke-width="10"', records))
    if lacking:
        rows.append((LACKING, t("importance.no_value")))
    return lines.legend(rows)


def _dash(output: int) -> str:
    if output:
        return f'stroke-dasharray="{STROKES[output % len(STROKES)]}"'
    return ""


def _dots(t: Texts, view: View, party: str, names: Sequence[str], rows: Sequence[Level | GroupMean]) -> go.Figure:
    """Return a chart with a dot for each group with its whisker, and a hollow one for what came."""
    figure = _empty(view)
    sign = palette.mark(view.federation, party)
    for k in range(_outputs(view)):
        values: list[float] = []
        low: list[float | None] = []
        high: list[float | None] = []
        for row in rows:
            if isinstance(row, GroupMean):
                values.append(row.mean[k])
                low.append(row.low[k])
                high.append(row.high[k])
            else:
                values.append(row.predicted[k])
                low.append(None)
                high.append(None)
        figure.add_scatter(
            x=list(range(len(names))),
            y=values,
            mode="lines+markers" if isinstance(rows[0], GroupMean) and rows[0].group.kind == "bin" else "markers",
            marker={"symbol": sign.symbol, "color": sign.colour, "size": 10},
            line={"color": sign.colour, "dash": CLASS_DASHES[k % len(CLASS_DASHES)], "width": 1.5},
            error_y=charts.whisker(values, low, high),
            name=label(_column(t, view, k)),
            customdata=[label(name) for name in names],
            hovertemplate=f"%{{customdata}}<br>%{{y:{_format(view)}}}<extra></extra>",
        )
    came = [row.observed for row in rows if isinstance(row, GroupMean)]
    if any(share is not None for share in came):
        figure.add_scatter(
            x=list(range(len(names))),
            y=came,
            mode="markers",
            marker={"symbol": "diamond-open", "color": palette.INK, "size": 10, "line": {"width": 2}},
            name=label(t("importance.observed")),
            hovertemplate=f"{label(t('importance.observed'))}: %{{y:.1%}}<extra></extra>",
        )
    return figure.update_xaxes(
        tickvals=list(range(len(names))),
        ticktext=[_tick(row, name) for row, name in zip(rows, names, strict=True)],
        range=[-0.5, len(names) - 0.5],
        showgrid=False,
        tickangle=0 if len(names) <= 12 else None,
    )


def _tick(row: Level | GroupMean, name: str) -> str:
    """Return a bin by its number alone: the sentence and the table say what it is."""
    if isinstance(row, GroupMean) and row.group.kind == "bin":
        return row.group.name
    return label(name)


def _empty(view: View) -> go.Figure:
    return charts.figure(HEIGHT, top=44).update_yaxes(tickformat=_format(view), zeroline=False)


def _outputs(view: View) -> int:
    return view.model.outputs.count


def _widest(rows: Sequence[Sequence[float]]) -> int:
    """Return the output that moves most: which class the sentence speaks of."""
    reach = [max(column) - min(column) for column in zip(*rows, strict=True)]
    return reach.index(max(reach))


def _what(t: Texts, view: View, output: int) -> str:
    if view.task == "number":
        return t("importance.of_number")
    if view.task == "classes":
        return t("importance.of_class", name=markdown(view.model.outputs.classes[output]))
    return t("importance.of_binary", label=markdown(t.label(view.federation)))


def _column(t: Texts, view: View, output: int) -> str:
    if view.task == "classes":
        return view.model.outputs.classes[output]
    return t("importance.predicted_number" if view.task == "number" else "importance.predicted")


def _format(view: View) -> str:
    return ".3~g" if view.task == "number" else ".1%"


def _answer(t: Texts, view: View, value: float) -> str:
    if view.task == "number":
        return markdown(amount(value, t.unit(view.federation.label)))
    return percent(value)


def _level(t: Texts, feature: Feature, level: Level) -> str:
    if level.missing:
        return t("importance.no_value")
    if level.code:
        return t.codes(feature).get(level.code, level.code)
    unit = t.after(feature)
    if level.low is None:
        return t("importance.below", high=f"{bare(level.high or 0.0)}{unit}")
    if level.high is None:
        return t("importance.from", low=f"{bare(level.low)}{unit}")
    return t("importance.between", low=bare(level.low), high=f"{bare(level.high)}{unit}")


def _group(t: Texts, feature: Feature, group_means: GroupMeans, row: GroupMean) -> str:
    if row.group.kind == "bin":
        bins = sum(row_of_group.group.kind == "bin" for row_of_group in group_means.groups)
        return t("importance.bin", place=row.group.name, bins=bins)
    if row.group.kind == "code":
        return t.codes(feature).get(row.group.name, row.group.name)
    if row.group.kind == "missing":
        return t("importance.no_value")
    groups = [row_of_group.group for row_of_group in group_means.groups]
    return t.text(group_names(groups, feature)[groups.index(row.group)])
