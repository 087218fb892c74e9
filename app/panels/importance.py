"""What matters most, by feature and by party: bars by the chosen measure, with whiskers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import view_models
from app.panels import frame, palette
from app.panels.importance_directions import SIGNS, explained
from app.texts import Texts, label, markdown, percent, wrap
from app.view_models import View
from backend.services import MEASURES, LearnedDirection, Permuted, SteadyImportance

WORTH, SHAP = "worth", "shap"  # the measures that ask the Hosts
SHOWN = 12
ONE_LINE = 56  # letters of a label that a phone shows beside each other
LINE = 16  # pixels

Rows = Sequence[SteadyImportance] | Sequence[Permuted]


@dataclass(frozen=True)
class Bar:
    """One bar with the words above it and the ends of its whisker."""

    party: str
    words: str
    figures: str
    value: float
    hover: str
    low: float | None = None
    high: float | None = None
    warning: str = ""


def controls(t: Texts, view: View) -> tuple[str, bool]:
    """Which measure, and whether all used features are drawn."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        measure = st.segmented_control(
            t("importance.measure"),
            (*MEASURES, WORTH, SHAP),
            default="gain",
            required=True,
            key="importance_measure",
            format_func=lambda key: t(f"importance.{key}" if key in (WORTH, SHAP) else f"words.{key}"),
            help=t("importance.measure_help"),
            persist_state="session",
        )
        used = len(view_models.used(view.importance))
        everything = used <= SHOWN or st.toggle(
            t("importance.all", n=used), key="importance_all", persist_state="session"
        )
    return str(measure), everything


def term(measure: str) -> str:
    """The glossary's word for a measure."""
    return {"splits": "tree", WORTH: "permutation"}.get(measure, measure)


def parties(view: View, rows: Sequence[Permuted]) -> tuple[Permuted, ...]:
    """Each party's whole: what was measured of all its features together, or of the one it has in use."""
    found = []
    for party in (view.model.guest, *view.model.hosts):
        own = [row for row in rows if row.party == party]
        together = [row for row in own if not row.feature]
        found += together or (own if len(own) == 1 else [])
    return tuple(sorted(found, key=lambda row: -row.fall))


def by_feature(t: Texts, view: View, measure: str, rows: Rows, everything: bool) -> None:
    """Bars by feature, longest first; arrow and words say the direction, a red mark a contradiction."""
    used = {row.feature for row in view_models.used(view.importance)}
    ordered = sorted((row for row in rows if row.feature in used), key=lambda row: -_value(row))
    learned = {direction.feature: direction for direction in view.directions}
    drawn = ordered if everything else ordered[:SHOWN]
    bars = [_bar(t, view, row, learned.get(row.feature)) for row in drawn]
    figure = lying(view, bars)
    for party in dict.fromkeys(row.party for row in drawn):
        sign = palette.mark(view.federation, party)
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            marker={"symbol": sign.symbol, "color": sign.colour, "size": 11},
            name=label(t.party(view.federation, party)),
        )
    figure.update_layout(
        height=figure.layout.height + 34, margin_t=34, showlegend=True, legend=palette.LEGEND, hovermode="closest"
    )
    sentence = _sentence(t, view, measure, ordered, learned)
    frame.chart(t, figure, sentence, _twin(t, view, ordered, learned), "importance_bars")


def by_party(t: Texts, view: View, measure: str, rows: Rows) -> None:
    """Each party's part of the whole."""
    bars = []
    for row in rows:
        title = t.party(view.federation, row.party)
        hover = f"<b>{label(title)}</b><br>{_words(row)}{_within(t, row)}"
        bars.append(Bar(row.party, title, _words(row), _value(row), hover, row.low, row.high))
    hosts = [row for row in rows if row.party != view.model.guest]
    if measure == WORTH:
        dearest = max(rows, key=_value)
        sentence = t(
            "importance.party_worth",
            party=palette.name(t, view.federation, dearest.party),
            fall=_words(dearest),
            quality=_quality(t, view),
        )
    elif hosts:
        share = percent(sum(_value(row) for row in hosts))
        sentence = t("importance.party_sentence", share=share, measure=t(f"importance.of_{measure}"))
    else:
        sentence = t("importance.alone")
    counts = {share.party: share for share in view_models.shares(view)}
    twin = pd.DataFrame(
        {
            t("words.party"): [palette.plain(t, view.federation, row.party) for row in rows],
            t("words.features"): [counts[row.party].features for row in rows],
            t("words.used"): [counts[row.party].used for row in rows],
            t(f"importance.column_{measure}"): [_words(row) for row in rows],
            t("importance.interval"): [_ends(row) for row in rows],
        }
    )
    frame.chart(t, lying(view, bars), sentence, twin, "importance_party")


def whiskers(t: Texts, view: View, measure: str, rows: Rows, agreement: float) -> None:
    """What the whiskers mean here, and whether two halves of the trees tell the same story."""
    if measure == WORTH:
        first = next((row for row in rows if isinstance(row, Permuted)), None)
        if first is not None:
            words = t("importance.whiskers_worth", n=f"{first.n:,}", repeats=first.repeats)
            st.caption(f":material/error_med: {words}", help=t("glossary.permutation"))
        return
    if all(row.low is None for row in rows):
        st.caption(f":material/error_med: {t('importance.whiskers_none')}")
        return
    grown = {"forest": "forest", view_models.IMPORTED: "imported"}.get(view_models.algorithm(view.record), "boosted")
    words = t(f"importance.whiskers_{grown}")
    if not math.isnan(agreement):
        words += " " + t("importance.agreement", rank=f"{agreement:+.2f}".replace("-", "−"))
    st.caption(f":material/error_med: {words}", help=t("glossary.stability"))


def _value(row: SteadyImportance | Permuted) -> float:
    return row.fall if isinstance(row, Permuted) else row.share


def _words(row: SteadyImportance | Permuted) -> str:
    return _fall(row.fall) if isinstance(row, Permuted) else percent(row.share)


def _fall(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _ends(row: SteadyImportance | Permuted) -> str:
    if row.low is None or row.high is None:
        return "–"
    show = _fall if isinstance(row, Permuted) else percent
    return f"{show(row.low)} … {show(row.high)}"


def _within(t: Texts, row: SteadyImportance | Permuted) -> str:
    return "" if row.low is None else f"<br>{t('importance.interval')}: {_ends(row)}"


def _quality(t: Texts, view: View) -> str:
    return "R²" if view.task == "number" else "AUC"


def _sentence(t: Texts, view: View, measure: str, rows: Rows, learned: dict[str, LearnedDirection]) -> str:
    if not rows:
        return t("importance.no_split")
    top = [markdown(t.brief(view.model.feature(row.feature))) for row in rows[:2]]
    if measure == WORTH:
        sure = sum(row.low is not None and row.low > 0 for row in rows)
        words = {"top": top[0], "fall": _words(rows[0]), "within": _ends(rows[0]), "quality": _quality(t, view)}
        return t("importance.worth_sentence", n=len(rows), sure=sure, **words)
    against = "" if view.task == "classes" else t("importance.against", n=sum(d.contradicts for d in learned.values()))
    share = percent(sum(_value(row) for row in rows[:2]))
    return t(
        "importance.sentence", top=t.listed(top), share=share, measure=t(f"importance.of_{measure}"), against=against
    )


def _bar(t: Texts, view: View, row: SteadyImportance | Permuted, direction: LearnedDirection | None) -> Bar:
    meaning, party = t.meaning(view.model.feature(row.feature)), t.party(view.federation, row.party)
    known = next(r for r in view.importance if r.feature == row.feature)
    hover = t("importance.hover", splits=known.splits, trees=known.trees, share=_words(row)) + _within(t, row)
    sign = SIGNS.get(direction.learned, "–") if direction else ""
    return Bar(
        party=row.party,
        words=meaning,
        figures=f"{sign} {_words(row)}",
        value=_value(row),
        hover=f"<b>{wrap(meaning, 44, 3)}</b><br>{label(party)}<br>{hover}<br>"
        + (wrap(explained(t, view, direction.learned), 44, 4) if direction else ""),
        low=row.low,
        high=row.high,
        warning=t("importance.against_short") if direction is not None and direction.contradicts else "",
    )


def lying(view: View, bars: Sequence[Bar]) -> go.Figure:
    """Bars under their words; the words are wrapped, never cut, so that they can be read on a phone."""
    figure = go.Figure()
    heights, top = [], 0
    for bar in bars:
        sign = palette.mark(view.federation, bar.party)
        text = f"{sign.glyph} {wrap(bar.words, ONE_LINE, 9)}"
        text += f"{'<br>' if _full(text, bar.figures) else '  '}{bar.figures}"
        if bar.warning:
            text += f"{'<br>' if _full(text, bar.warning) else '  '}"
            text += f"<span style='color:{palette.FINDING}'>⚠</span> {label(bar.warning)}"
        lines = text.count("<br>") + 1
        figure.add_annotation(
            x=0, xref="paper", y=-top, text=text, showarrow=False, xanchor="left", yanchor="top", align="left",
            font={"size": 12},
        )  # fmt: skip
        heights.append(-(top + LINE * lines + 9))
        top += LINE * lines + 30
    figure.add_bar(
        x=[bar.value for bar in bars],
        y=heights,
        orientation="h",
        width=14,
        marker={"color": [palette.mark(view.federation, bar.party).colour for bar in bars]},
        error_x=_whisker(bars) if any(bar.low is not None for bar in bars) else None,
        hovertext=[bar.hover for bar in bars],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    figure.update_xaxes(visible=False, fixedrange=True, range=[min([0, *ends]) * 1.02, max([1e-9, *ends]) * 1.02])
    if min([0, *ends]) < 0:
        figure.add_vline(0, line={"color": palette.FAINT, "width": 2}, layer="below")
    figure.update_yaxes(visible=False, fixedrange=True, range=[-top, 0])
    figure.update_layout(height=top, margin={"l": 0, "r": 0, "t": 0, "b": 0})
    return figure


def _whisker(bars: Sequence[Bar]) -> dict[str, object]:
    known = [(bar.value, bar.low, bar.high) for bar in bars]
    return {
        "type": "data",
        "symmetric": False,
        "array": [0 if high is None else high - value for value, _, high in known],
        "arrayminus": [0 if low is None else value - low for value, low, _ in known],
        "color": palette.WHISKER_DARK if st.context.theme.type == "dark" else palette.WHISKER,
        "thickness": 1.5,
        "width": 4,
    }


def _full(text: str, more: str) -> bool:
    """Whether `more` would make the last line of `text` too long (Chinese letters count double)."""
    last = text.rsplit("<br>", maxsplit=1)[-1] + more
    return len(last) + sum(letter > "\u2e80" for letter in last) > ONE_LINE + 4


def _twin(t: Texts, view: View, rows: Rows, learned: dict[str, LearnedDirection]) -> pd.DataFrame:
    known = {row.feature: row for row in view.importance}
    table = {
        t("features.meaning"): [t.meaning(view.model.feature(row.feature)) for row in rows],
        t("words.party"): [palette.plain(t, view.federation, row.party) for row in rows],
    }
    if any(isinstance(row, Permuted) for row in rows):
        table[t("importance.column_worth")] = [_words(row) for row in rows]
    table |= {
        t("importance.interval"): [_ends(row) for row in rows],
        t("words.gain"): [percent(known[row.feature].gain_share) for row in rows],
        t("words.splits"): [percent(known[row.feature].split_share) for row in rows],
        t("words.cover"): [percent(known[row.feature].cover_share) for row in rows],
        t("features.learned"): [
            frame.direction(t, view.task, learned[row.feature].learned) if row.feature in learned else "–"
            for row in rows
        ],
    }
    return pd.DataFrame(table)
