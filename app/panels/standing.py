"""Where a score stands: among the people the model has scored before, among those of this session, and beside one other person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from app.panels import charts, frame, palette, person
from app.texts import Texts, label, markdown, percent, signed
from app.view_models import View, at_or_above

if TYPE_CHECKING:
    from backend.results import Score, ScoreBatch
    from backend.services.model_card import ModelCard

KEPT = 50  # people of a session; the oldest are forgotten first
EDGE = 0.12  # of the chart's width, at either end
FEW = 20  # people of one run from which on they stand in its own table alone


@dataclass(frozen=True)
class Scored:
    """One person scored in this session."""

    time: str
    model_id: str
    score: Score

    @property
    def name(self) -> str:
        """What a menu calls it."""
        return f"{self.score.id} · {self.time}"


def noted(before: Sequence[Scored], done: ScoreBatch, time: str) -> tuple[Scored, ...]:
    """The session's people with those of one more run, newest first."""
    if len(done.scores) >= FEW:
        return tuple(before)
    new = [Scored(time, done.model_id, score) for score in done.scores if score.status == "ok"]
    return (*new, *before)[:KEPT]


def among(t: Texts, view: View, card: ModelCard, done: ScoreBatch | None, cutoff: float) -> None:
    """The cut-off, and whoever was just scored, among the people whose scores the Guest has had before."""
    if view.task != "binary" or not card.parts:
        return
    part = card.parts[0]
    spread, separation = part.spread, part.separation
    if spread is None or separation is None:
        return
    who = t(f"score.before_{card.sources[part.part]}", n=part.n, people=f"{part.n:,}")
    words = t("score.among", who=who, cutoff=_whole(cutoff), declined=percent(at_or_above(part, cutoff)))
    scores = [score for score in done.scores if score.status == "ok"] if done is not None else []
    if len(scores) == 1:
        below = 1 - at_or_above(part, scores[0].probability)
        words = t.joined(words, t("score.among_person", id=markdown(scores[0].id), below=percent(below)))
    edges = [100 * edge for edge in spread.edges]
    counts = [sum(column) for column in zip(*spread.counts, strict=True)]
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    figure = charts.figure(140, top=22, bargap=0.08, showlegend=False).add_bar(
        x=middles,
        y=counts,
        marker_color=[palette.INK if middle >= 100 * cutoff else palette.FAINT for middle in middles],
        hovertemplate="%{y:,}<extra></extra>",
    )
    figure.add_vline(x=100 * cutoff, line={"dash": "dash", "color": palette.INK, "width": 2})
    side = "left" if cutoff < EDGE else "right" if cutoff > 1 - EDGE else "center"  # words never leave the chart
    short = {"x": 100 * cutoff, "y": 1.0, "yref": "paper", "xanchor": side, "text": label(t("score.cutoff_short"))}
    charts.write(figure, [{**short, "yanchor": "bottom"}])
    if len(scores) == 1:
        at = 100 * scores[0].probability
        figure.add_scatter(
            x=[at],
            y=[0],
            mode="markers",
            marker={"symbol": "triangle-down", "size": 16, "color": palette.GUEST.colour, "line": {"width": 1}},
            hovertemplate=f"{label(scores[0].id)}: {at:.1f}\u00a0%<extra></extra>",
            cliponaxis=False,
        )
    figure.update_xaxes(range=[0, 100], ticksuffix="\u00a0%")
    figure.update_yaxes(visible=False)
    charts.room(figure)
    twin: frame.Columns = {
        t("score.probability"): [f"{low:.0f}–{high:.0f}\u00a0%" for low, high in pairwise(edges)],
        t("score.people"): counts,
    }
    frame.chart(t, figure, words, twin, "among")


def _whole(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%"


def session(t: Texts, view: View, history: Sequence[Scored], people: pd.DataFrame) -> None:
    """Who was scored with this model in this session, and two of them side by side."""
    own = [one for one in history if one.model_id == view.record.id]
    if len(own) < 2:
        return
    frame.section(t, "score.history")
    st.markdown(t("score.history_sentence", n=len(own)))
    columns: frame.Columns = {
        t("score.when"): [one.time for one in own],
        t("score.id"): [one.score.id for one in own],
        **{title: [cells(one.score) for one in own] for title, cells in _figures(t, view).items()},
    }
    frame.data(columns, "score_history", t("score.history"), height="content" if len(own) < 6 else 220)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        one = _choice(t("score.first"), own, 0, "score_one")
        other = _choice(t("score.second"), own, 1, "score_other")
    beside(t, view, one.score, other.score, people)


def _choice(title: str, own: Sequence[Scored], start: int, key: str) -> Scored:
    at: int = st.selectbox(title, range(len(own)), index=start, format_func=lambda i: own[i].name, key=key, width=230)
    return own[min(at, len(own) - 1)]


def _figures(t: Texts, view: View) -> dict[str, Any]:
    """Title → how it is read out of a score."""
    if view.task == "number":
        found: dict[str, Any] = {t("score.value"): lambda score: signed(score.margin)}
    elif view.task == "classes":
        found = {t("score.predicted"): lambda score: score.predicted, t("score.probability"): _chance}
    else:
        found = {t("score.decision"): lambda score: t(f"score.{score.decision}"), t("score.probability"): _chance}
    if view.model.outputs.aggregation == "sum":
        parts = {"guest_part": t("score.guest_part"), "hosts_part": t("score.hosts_part")}
        found |= {title: lambda score, name=name: signed(getattr(score, name)) for name, title in parts.items()}
    return found


def _chance(score: Score) -> str:
    return percent(score.probability)


def beside(t: Texts, view: View, one: Score, other: Score, people: pd.DataFrame) -> None:
    """Two people side by side: their scores, and what the Guest holds about them; what differs is bold."""
    rows = [(title, cells(one), cells(other)) for title, cells in _figures(t, view).items()]
    for party, feature in view.model.dictionary:
        if party == view.model.guest:
            first, second = (_held(t, people, score.id, feature) for score in (one, other))
            rows.append((t.meaning(feature), first, second))
    names = [f"1 · {one.id}", f"2 · {other.id}"]
    columns: frame.Columns = {
        t("score.compared"): [markdown(title) for title, _, _ in rows],
        **{markdown(name): [_cell(row[1 + at], row[1] != row[2]) for row in rows] for at, name in enumerate(names)},
    }
    frame.table(columns, t("score.compared"))


def _held(t: Texts, people: pd.DataFrame, sample: str, feature: Any) -> str:
    return person.shown(t, feature, people.at[sample, feature.name]) if sample in people.index else "–"


def _cell(text: str, differs: bool) -> str:
    return f"**{markdown(text)}**" if differs else markdown(text)
