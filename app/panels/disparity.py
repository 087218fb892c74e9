"""Scores by group without a cut-off, and acceptance over a range of cut-offs: next to the rates of a finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import charts, frame, lines
from app.texts import Texts, bare, label, markdown, number, percent, wrap
from backend.services.fairness import (
    BY_CUTOFF,
    FOUR_FIFTHS,
    GROUPS,
    PAIR_P,
    RATIO,
    SCORE,
    SMD,
    bin_key,
    lower_over_higher,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from backend.data.dictionary import Feature
    from backend.fairness.evidence import Evidence
    from backend.i18n import Text

SMALLEST = 0.0001  # the least p-value that is shown
GROUP_ROW_PIXELS = 44  # pixels of a group's row
AXIS_PIXELS = 56  # pixels of the axis with its title
LEGEND = 28  # pixels above the plot
GROUP_LETTERS = 24  # letters of a group's name in a line
MAX_CURVES = 4  # groups in a chart of lines: more can hardly be told apart


def sentences(t: Texts, evidence: Sequence[Evidence]) -> None:
    """Draw how far scores of groups are apart by their spread, and ratios over the cut-offs; nothing if not measured."""
    compared = _by_spread(evidence)
    over = range_sentence(t, evidence)
    if not compared:
        st.markdown(over)
        return
    furthest = max(compared.values(), key=lambda row: abs(row.value or 0.0))
    apart = t(
        "disparity.smd_sentence",
        group=_name(t, furthest),
        smd=_signed(furthest.value),
        low=_signed(furthest.low),
        high=_signed(furthest.high),
    )
    st.markdown(t.joined(apart, over), help=t("disparity.smd_about"))


def scores(t: Texts, evidence: Sequence[Evidence], place: str) -> None:
    """Draw mean probabilities of groups, how far they are apart by their spread, and what chance would do; nothing if not measured."""
    compared = _by_spread(evidence)
    if not compared:
        return
    by_chance = {row.about: row.value for row in evidence if row.measure == f"{SCORE}, {PAIR_P}"}
    means = [row for row in evidence if row.measure == SCORE]
    table: frame.Columns = {
        t("disparity.head_group"): [_name(t, row) for row in means],
        t("disparity.head_mean_score"): [_ends(t, row, percent) for row in means],
        t("disparity.head_smd"): [_ends(t, compared.get(row.about), _signed) for row in means],
        t("disparity.head_p"): [chance(by_chance.get(row.about)) for row in means],
        t("disparity.head_records"): [f"{row.n:,}" for row in means],
    }
    with st.container(key=f"cards_scores_{place}"):
        frame.table(table, t("disparity.scores"))


def _by_spread(evidence: Sequence[Evidence]) -> dict[Text, Evidence]:
    """Group → the standardised difference of its mean score."""
    return {row.about: row for row in evidence if row.measure == f"{SCORE}, {SMD}" and row.value is not None}


def _by_cutoff(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Ratios of acceptance over the range of cut-offs, each the lower rate over the higher one; empty if none is known."""
    ratios = []
    for row in evidence:
        if row.measure != f"{BY_CUTOFF}, {RATIO}" or row.cutoff is None:
            continue
        if row.value is None:
            ratios.append(row)
        else:
            value, low, high = lower_over_higher(row.value, row.low, row.high)
            ratios.append(replace(row, value=value, low=low, high=high))
    if any(row.value is not None for row in ratios):
        return ratios
    return []


def range_sentence(t: Texts, evidence: Sequence[Evidence]) -> str:
    """Say between which ends the ratios are, and at how many cut-offs one is below four fifths; empty if not measured."""
    ratios = _by_cutoff(evidence)
    values = [row.value for row in ratios if row.value is not None]
    if not values:
        return ""
    return t(
        "disparity.range_sentence",
        cutoffs=len({row.cutoff for row in ratios}),
        low=number(min(values)),
        high=number(max(values)),
        below=len({row.cutoff for row in ratios if row.value is not None and row.value < FOUR_FIFTHS}),
    )


def dots(t: Texts, accepted: Sequence[Evidence], alt: str, place: str) -> None:
    """Draw acceptance of every group as a dot with its interval, and four fifths of the highest rate as a line.

    Parameters
    ----------
    alt : str
        Text alternative of the chart.
    """
    measured = [row for row in accepted if row.value is not None and row.low is not None and row.high is not None]
    names = [t.text(row.about) for row in measured]
    twin: frame.Columns = {
        t("disparity.head_group"): names,
        t("compliance.accepted"): [_ends(t, row, percent) for row in measured],
        t("disparity.head_records"): [f"{row.n:,}" for row in measured],
    }
    frame.picture(_dots(t, measured), alt, f"dots_{place}")
    frame.table_twin(t, twin, alt, f"dots_{place}")


def _dots(t: Texts, rows: Sequence[Evidence]) -> go.Figure:
    """Return a chart with a row for each group, its rate in percent; on a phone the names are above their dots."""
    values = [100 * (row.value or 0.0) for row in rows]
    above = [100 * (row.high or 0.0) - value for row, value in zip(rows, values, strict=True)]
    below = [value - 100 * (row.low or 0.0) for row, value in zip(rows, values, strict=True)]
    names = [wrap(t.text(row.about), GROUP_LETTERS, 2) for row in rows]
    words = [f"{t.text(row.about)}: {_ends(t, row, percent)}, n = {row.n:,}" for row in rows]
    ink = charts.theme().text
    line = FOUR_FIFTHS * max(values, default=0.0)
    figure = charts.figure(GROUP_ROW_PIXELS * len(rows) + AXIS_PIXELS, top=LEGEND)
    figure.add_scatter(
        x=values,
        y=names,
        mode="markers",
        marker={"size": 12, "color": ink},
        error_x={"type": "data", "array": above, "arrayminus": below, "color": ink, "thickness": 2, "width": 6},
        hovertext=[label(text) for text in words],
        hoverinfo="text",
        showlegend=False,
    )
    quiet = charts.theme().quiet
    figure.add_vline(
        x=line,
        line={"color": quiet, "dash": "dash", "width": 3},
        annotation={
            "text": label(t("disparity.four_fifths_of_highest")),
            "y": 1,
            "yanchor": "bottom",
            "font": {"color": ink},
        },
    )
    figure.update_xaxes(range=[0, 105], ticksuffix="\u00a0%", title=t("compliance.accepted"), showgrid=True)
    figure.update_yaxes(autorange="reversed")
    return figure


def across(t: Texts, evidence: Sequence[Evidence], place: str) -> None:
    """Draw ratios of acceptance of every group over the range of cut-offs: sentence, chart and table; nothing if not measured."""
    ratios = _by_cutoff(evidence)
    sentence = range_sentence(t, evidence)
    if not sentence:
        return
    cutoffs = sorted({row.cutoff for row in ratios if row.cutoff is not None})
    groups = {row.about: _name(t, row) for row in ratios}
    cells = {(row.cutoff, row.about): row for row in ratios}

    def twin() -> frame.Columns:
        ends = {}
        for about, name in groups.items():
            ends[name] = [_ends(t, cells.get((cutoff, about)), number) for cutoff in cutoffs]
        return {t("disparity.head_cutoff"): [percent(cutoff) for cutoff in cutoffs], **ends}

    lowest = {about: groups[about] for about in _lowest(ratios)}
    frame.chart(t, _lines(t, ratios, lowest, sentence), sentence, twin, f"range_{place}")
    if len(lowest) < len(groups):
        some = t("disparity.range_lowest", n=len(lowest))
    else:
        some = ""
    st.caption(t.joined(some, t("disparity.range_limits")))


def _lowest(ratios: Sequence[Evidence]) -> list[Text]:
    """Return the groups whose ratio is the lowest at any cut-off, as many as can be told apart in a chart."""
    lowest: dict[Text, float] = {}
    for row in ratios:
        if row.value is not None:
            lowest[row.about] = min(row.value, lowest.get(row.about, row.value))
    return sorted(lowest, key=lambda about: lowest[about])[:MAX_CURVES]


def _lines(t: Texts, ratios: Sequence[Evidence], groups: dict[Text, str], sentence: str) -> charts.Drawing:
    """Return a chart with a line for each group over the cut-offs, with its intervals, and four fifths."""
    cutoffs = [row.cutoff or 0.0 for row in ratios]
    first = min(cutoffs)
    last = max(cutoffs)
    curves = [lines.Line([first, last], [FOUR_FIFTHS] * 2, t("disparity.four_fifths"), charts.theme().quiet, 4)]
    highest = 1.0
    texts: dict[float, list[str]] = {cutoff: [percent(cutoff)] for cutoff in cutoffs}
    for i, (about, name) in enumerate(groups.items()):
        by_cutoff = {row.cutoff or 0.0: row for row in ratios if row.about == about and row.value is not None}
        values = [row.value or 0.0 for row in by_cutoff.values()]
        ends = [
            (value if row.low is None else row.low, value if row.high is None else row.high)
            for row, value in zip(by_cutoff.values(), values, strict=True)
        ]
        dash = tuple(lines.DASHES)[i % len(lines.DASHES)]
        curves.append(lines.Line(list(by_cutoff), values, name, dash=dash, dots=True, ends=ends))
        highest = max([highest, *(high for _, high in ends)])
        for cutoff, value in zip(by_cutoff, values, strict=True):
            texts[cutoff].append(f"{name}: {number(value)}")
    hover = [(cutoff, "\n".join(words)) for cutoff, words in texts.items()]
    across = lines.between(t("disparity.range_axis"), first, last, lines.share)
    up = lines.rounded(t("disparity.ratio_axis"), [0.0, highest], bare)
    return lines.drawing(curves, across, up, sentence, hover)


def reference(t: Texts, feature: Feature | None, place: str, usual: str = "") -> str:
    """The question which group the others are compared with; empty = the largest; `usual` = what the first offered is called in English."""
    codes = [] if feature is None else list(feature.categories)

    def words(group: str, t: Texts = t) -> str:
        if not group:
            return t("disparity.reference_largest")
        code_texts = t.codes(feature) if feature is not None else {}
        return code_texts.get(group) or t(bin_key(int(group), GROUPS), place=group, bins=GROUPS)

    offered = ["", *(codes or [str(place) for place in range(1, GROUPS + 1)])]
    matches = [group for group in offered if group and usual == words(group, Texts("en"))]
    return str(
        st.selectbox(
            t("disparity.reference"),
            offered,
            offered.index(matches[0]) if matches else 0,
            format_func=words,
            help=t("disparity.reference_help"),
            key=f"reference_{place}",
        )
    )


def _name(t: Texts, row: Evidence) -> str:
    return markdown(t.text(row.about))


def _signed(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:+.2f}".replace("-", "−")


def chance(value: float | None) -> str:
    """Return a p-value with two significant digits, never shown as nought; a dash if there is none."""
    if value is None:
        return "–"
    if value >= SMALLEST:
        return f"{value:.2g}"
    return f"< {SMALLEST}"


def _ends(t: Texts, row: Evidence | None, words: Callable[[float], str]) -> str:
    """Return a figure with its interval; a dash for the reference group and if it is suppressed."""
    if row is None or row.value is None or row.low is None or row.high is None:
        return "–"
    return t("compliance.interval", value=words(row.value), low=words(row.low), high=words(row.high))
