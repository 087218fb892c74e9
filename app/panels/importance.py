"""What matters most and in which direction, by feature and by party."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import reading
from app.panels import frame, palette
from app.reading import View
from app.texts import Texts, cut, label, markdown, percent, wrap
from backend.service import FeatureImportance, LearnedDirection

MEASURES = {"gain": "gain_share", "splits": "split_share", "cover": "cover_share"}
ARROWS = {"up": "▲", "down": "▼", "mixed": "◆", "unordered": "–", "unused": "–", "none": "–"}
SHOWN = 12


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
        top=t.listed([markdown(t.meaning(view.model.feature(row.feature))) for row in top]),
        share=percent(sum(getattr(row, field) for row in top)),
        measure=t(f"importance.of_{measure}"),
        against=t("importance.against", n=sum(d.contradicts for d in learned.values())),
    )
    drawn = rows if everything else rows[:SHOWN]
    frame.chart(t, _bars(t, view, drawn, field, learned), sentence, _twin(t, view, rows, learned), "importance_bars")


def _bars(
    t: Texts, view: View, rows: Sequence[FeatureImportance], field: str, learned: dict[str, LearnedDirection]
) -> go.Figure:
    figure = go.Figure()
    heights = {row.feature: -float(i) for i, row in enumerate(rows)}
    for party in (view.model.guest, *view.model.hosts):
        own = [row for row in rows if row.party == party]
        if not own:
            continue
        sign = palette.mark(view.federation, party)
        figure.add_bar(
            x=[getattr(row, field) for row in own],
            y=[heights[row.feature] for row in own],
            orientation="h",
            width=0.34,
            name=f"{sign.glyph} {label(t.party(view.federation, party))}",
            marker={"color": sign.colour},
            hovertext=[
                "<br>".join(
                    (
                        f"<b>{wrap(t.meaning(view.model.feature(row.feature)), 44, 3)}</b>",
                        label(t.party(view.federation, party)),
                        t("importance.hover", splits=row.splits, trees=row.trees, share=percent(getattr(row, field))),
                    )
                )
                for row in own
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    for row in rows:
        direction = learned.get(row.feature)
        against = direction is not None and direction.contradicts
        meaning = label(cut(t.meaning(view.model.feature(row.feature)), 26 if against else 42))
        glyph = palette.mark(view.federation, row.party).glyph
        value = f"{ARROWS[direction.learned] if direction else ''} {percent(getattr(row, field))}"
        mark = f" <span style='color:{palette.FINDING}'>⚠ {t('importance.against_short')}</span>" if against else ""
        figure.add_annotation(
            x=0,
            y=heights[row.feature] + 0.36,
            text=f"{glyph} {meaning}  {value}{mark}",
            showarrow=False,
            xanchor="left",
            font={"size": 12},
        )
    figure.update_xaxes(
        visible=False, fixedrange=True, range=[0, max([getattr(r, field) for r in rows] + [1e-9]) * 1.02]
    )
    figure.update_yaxes(visible=False, fixedrange=True, range=[-len(rows) + 0.6, 0.75])
    figure.update_layout(
        height=44 * len(rows) + 60,
        barmode="overlay",
        margin={"l": 0, "r": 0, "t": 34, "b": 0},
        legend={
            "orientation": "h",
            "y": 1.0,
            "yanchor": "bottom",
            "x": 0,
            "itemclick": False,
            "itemdoubleclick": False,
        },
        showlegend=True,
    )
    return figure


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
                t(f"direction.{learned[row.feature].learned}") if row.feature in learned else "–" for row in rows
            ],
        }
    )


def by_party(t: Texts, view: View, measure: str) -> None:
    """One bar cut into the parties' parts."""
    field = {"gain": "gain_share", "splits": "split_share", "cover": "cover_share"}[measure]
    shares = reading.shares(view)
    hosts = sum(getattr(share, field) for share in shares[1:])
    sentence = t("importance.party_sentence", share=percent(hosts), measure=t(f"importance.of_{measure}"))
    figure = go.Figure()
    for share in shares:
        sign = palette.mark(view.federation, share.party)
        title = label(t.party(view.federation, share.party))
        value = getattr(share, field)
        figure.add_bar(
            x=[value],
            y=[""],
            orientation="h",
            name=f"{sign.glyph} {title} {percent(value)}",
            marker={"color": sign.colour},
            hovertemplate=f"<b>{title}</b><br>{percent(value)}<extra></extra>",
        )
    figure.update_xaxes(visible=False, fixedrange=True, range=[0, 1])
    figure.update_yaxes(visible=False, fixedrange=True)
    figure.update_layout(
        barmode="stack",
        height=190,
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
        legend={
            "orientation": "h",
            "y": -0.05,
            "x": 0,
            "itemclick": False,
            "itemdoubleclick": False,
            "traceorder": "normal",
        },
    )
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
    st.markdown(
        t(
            "importance.directions",
            n=sum(d.contradicts for d in rows),
            expected=sum(d.expected != "none" for d in rows),
            used=len(rows),
        )
    )
    st.dataframe(
        pd.DataFrame(
            {
                "meaning": [t.meaning(view.model.feature(d.feature)) for d in ordered],
                "party": [palette.plain(t, view.federation, d.party) for d in ordered],
                "expected": [_arrow(t, d.expected) for d in ordered],
                "learned": [_arrow(t, d.learned) for d in ordered],
                "strength": [d.strength for d in ordered],
                "verdict": [_verdict(t, d) for d in ordered],
            }
        ),
        hide_index=True,
        key="directions",
        alt=t("importance.directions_title"),
        column_config={
            "meaning": st.column_config.TextColumn(t("features.meaning"), width=280),
            "party": st.column_config.TextColumn(t("words.party"), width=150),
            "expected": st.column_config.TextColumn(t("features.expected"), help=t("glossary.expected_direction")),
            "learned": st.column_config.TextColumn(t("features.learned"), help=t("glossary.learned_direction")),
            "strength": st.column_config.NumberColumn(
                t("importance.strength"), format="%+.2f", help=t("glossary.strength")
            ),
            "verdict": st.column_config.TextColumn(t("importance.verdict")),
        },
    )


def _arrow(t: Texts, direction: str) -> str:
    return f"{ARROWS[direction]} {t(f'direction.{direction}')}"


def _verdict(t: Texts, direction: LearnedDirection) -> str:
    if direction.contradicts:
        return f"⚠ {t('importance.against_short')}"
    if direction.expected == "none" or direction.learned == "unordered":
        return t("importance.no_expectation")
    return t("importance.as_expected")
