"""What matters most and in which direction, by feature and by party."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import reading
from app.panels import frame, palette
from app.reading import View
from app.texts import Texts, label, markdown, percent, wrap
from backend.service import FeatureImportance, LearnedDirection

MEASURES = {"gain": "gain_share", "splits": "split_share", "cover": "cover_share"}
ARROWS = {"up": "▲", "down": "▼", "mixed": "◆", "hidden": "?"}  # all other words have no direction
SHOWN = 12
ONE_LINE = 56  # letters of a label that a phone shows beside each other
LINE = 16  # pixels


@dataclass(frozen=True)
class Bar:
    """One bar with the words above it."""

    party: str
    words: str
    figures: str
    value: float
    hover: str
    warning: str = ""


def controls(t: Texts, view: View) -> tuple[str, bool]:
    """Which measure, and whether all used features are drawn."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        measure = st.segmented_control(
            t("importance.measure"),
            tuple(MEASURES),
            default="gain",
            required=True,
            key="importance_measure",
            format_func=lambda key: t(f"words.{key}"),
            help=t("importance.measure_help"),
            persist_state="session",
        )
        used = len(reading.used(view.importance))
        everything = used <= SHOWN or st.toggle(
            t("importance.all", n=used), key="importance_all", persist_state="session"
        )
    return str(measure), everything


def by_feature(t: Texts, view: View, measure: str, everything: bool) -> None:
    """Bars by feature, longest first; arrow and words say the direction, a red mark a contradiction."""
    field = MEASURES[measure]
    rows = sorted(reading.used(view.importance), key=lambda row: -getattr(row, field))
    learned = {direction.feature: direction for direction in view.directions}
    top = rows[:2]
    sentence = t(
        "importance.sentence",
        top=t.listed([markdown(t.brief(view.model.feature(row.feature))) for row in top]),
        share=percent(sum(getattr(row, field) for row in top)),
        measure=t(f"importance.of_{measure}"),
        against=""
        if view.task == "classes"
        else t("importance.against", n=sum(d.contradicts for d in learned.values())),
    )
    drawn = rows if everything else rows[:SHOWN]
    frame.chart(t, _bars(t, view, drawn, field, learned), sentence, _twin(t, view, rows, learned), "importance_bars")


def _bars(
    t: Texts, view: View, rows: Sequence[FeatureImportance], field: str, learned: dict[str, LearnedDirection]
) -> go.Figure:
    bars = []
    for row in rows:
        direction = learned.get(row.feature)
        value = getattr(row, field)
        meaning, party = t.meaning(view.model.feature(row.feature)), t.party(view.federation, row.party)
        hover = t("importance.hover", splits=row.splits, trees=row.trees, share=percent(value))
        bars.append(
            Bar(
                party=row.party,
                words=meaning,
                figures=f"{_sign(direction.learned) if direction else ''} {percent(value)}",
                value=value,
                hover=f"<b>{wrap(meaning, 44, 3)}</b><br>{label(party)}<br>{hover}<br>"
                + (wrap(explained(t, view, direction.learned), 44, 4) if direction else ""),
                warning=t("importance.against_short") if direction is not None and direction.contradicts else "",
            )
        )
    figure = _lying(view, bars, max([bar.value for bar in bars] + [1e-9]) * 1.02)
    for party in dict.fromkeys(row.party for row in rows):
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
    return figure


def _lying(view: View, bars: Sequence[Bar], longest: float) -> go.Figure:
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
            x=0, y=-top, text=text, showarrow=False, xanchor="left", yanchor="top", align="left", font={"size": 12}
        )
        heights.append(-(top + LINE * lines + 9))
        top += LINE * lines + 30
    figure.add_bar(
        x=[bar.value for bar in bars],
        y=heights,
        orientation="h",
        width=14,
        marker={"color": [palette.mark(view.federation, bar.party).colour for bar in bars]},
        hovertext=[bar.hover for bar in bars],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(visible=False, fixedrange=True, range=[0, longest])
    figure.update_yaxes(visible=False, fixedrange=True, range=[-top, 0])
    figure.update_layout(height=top, margin={"l": 0, "r": 0, "t": 0, "b": 0})
    return figure


def _full(text: str, more: str) -> bool:
    """Whether `more` would make the last line of `text` too long (Chinese letters count double)."""
    last = text.rsplit("<br>", maxsplit=1)[-1] + more
    return len(last) + sum(letter > "\u2e80" for letter in last) > ONE_LINE + 4


def _twin(
    t: Texts, view: View, rows: Sequence[FeatureImportance], learned: dict[str, LearnedDirection]
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            t("features.meaning"): [t.meaning(view.model.feature(row.feature)) for row in rows],
            t("words.party"): [palette.plain(t, view.federation, row.party) for row in rows],
            t("words.gain"): [percent(row.gain_share) for row in rows],
            t("words.splits"): [percent(row.split_share) for row in rows],
            t("words.cover"): [percent(row.cover_share) for row in rows],
            t("features.learned"): [
                frame.direction(t, view.task, learned[row.feature].learned) if row.feature in learned else "–"
                for row in rows
            ],
        }
    )


def by_party(t: Texts, view: View, measure: str) -> None:
    """Each party's part of the whole."""
    field = MEASURES[measure]
    shares = reading.shares(view)
    hosts = sum(getattr(share, field) for share in shares[1:])
    sentence = (
        t("importance.party_sentence", share=percent(hosts), measure=t(f"importance.of_{measure}"))
        if len(shares) > 1
        else t("importance.alone")
    )
    bars = []
    for share in shares:
        title, value = t.party(view.federation, share.party), getattr(share, field)
        hover = f"<b>{label(title)}</b><br>{percent(value)}"
        bars.append(Bar(share.party, title, percent(value), value, hover))
    figure = _lying(view, bars, 1.0)
    twin = pd.DataFrame(
        {
            t("words.party"): [palette.plain(t, view.federation, share.party) for share in shares],
            t("words.features"): [share.features for share in shares],
            t("words.used"): [share.used for share in shares],
            t("words.gain"): [percent(share.gain_share) for share in shares],
            t("words.splits"): [percent(share.split_share) for share in shares],
            t("words.cover"): [percent(share.cover_share) for share in shares],
        }
    )
    frame.chart(t, figure, sentence, twin, "importance_party")


def directions(t: Texts, view: View) -> None:
    """What was expected of each feature against what the model learned."""
    rows = [d for d in view.directions if d.learned != "unused"]
    ordered = sorted(rows, key=lambda d: (not d.contradicts, -abs(d.strength)))
    if view.task == "classes":
        st.markdown(t("importance.directions_classes", used=len(rows)))
    else:
        st.markdown(
            t(
                "importance.directions",
                n=sum(d.contradicts for d in rows),
                expected=sum(d.expected != "none" for d in rows),
                used=len(rows),
            )
        )
    hidden = sum(d.learned == "hidden" for d in rows)
    if hidden:
        st.markdown(f":material/lock: {t('importance.hidden', n=hidden)}", help=t("direction.hidden_help"))
    st.dataframe(
        pd.DataFrame(
            {
                "meaning": [t.meaning(view.model.feature(d.feature)) for d in ordered],
                "party": [palette.plain(t, view.federation, d.party) for d in ordered],
                "expected": [_arrow(t, view, d.expected) for d in ordered],
                "learned": [_arrow(t, view, d.learned) for d in ordered],
                "strength": [d.strength if d.learned in ("up", "down", "mixed") else None for d in ordered],
                "verdict": [_verdict(t, d) for d in ordered],
            }
        ),
        hide_index=True,
        row_height=frame.row_height([t.meaning(view.model.feature(d.feature)) for d in rows], 38),
        height="content" if len(rows) <= SHOWN else 560,
        key="directions",
        alt=t("importance.directions_title"),
        placeholder="–",
        column_config={
            "meaning": st.column_config.TextColumn(t("features.meaning"), width=250),
            "party": st.column_config.TextColumn(t("words.party"), width=135),
            "expected": st.column_config.TextColumn(
                t("features.expected"), width=115, help=t("glossary.expected_direction")
            ),
            "learned": st.column_config.TextColumn(
                t("features.learned"), width=130, help=t("glossary.learned_direction")
            ),
            "strength": st.column_config.NumberColumn(
                t("importance.strength"), width=70, format="%+.2f", help=t("glossary.strength")
            ),
            "verdict": st.column_config.TextColumn(t("importance.verdict"), width=150),
        },
    )


def explained(t: Texts, view: View, learned: str) -> str:
    """A learned direction in a sentence, where one word does not say enough; else the word."""
    return (
        t(f"direction.{learned}_help") if learned in ("hidden", "classes") else frame.direction(t, view.task, learned)
    )


def _sign(direction: str) -> str:
    return ARROWS.get(direction, "–")


def _arrow(t: Texts, view: View, direction: str) -> str:
    return f"{_sign(direction)} {frame.direction(t, view.task, direction)}"


def _verdict(t: Texts, direction: LearnedDirection) -> str:
    if direction.contradicts:
        return f"⚠ {t('importance.against_short')}"
    if direction.expected == "none" or direction.learned == "unordered":
        return t("importance.no_expectation")
    return t("importance.as_expected" if direction.learned in ("up", "down", "mixed") else "importance.cannot_tell")
