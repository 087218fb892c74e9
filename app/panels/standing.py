"""A score compared: with people the model has scored before, with those of this session, and with one other person."""

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

MAX_REMEMBERED = 50  # people of a session; the oldest are forgotten first
# pixels: above the bars, and of the highest
TOP_PIXELS = 22
BARS_PIXELS = 94
BATCH_FROM_PEOPLE = 20  # people of one run from which on its own table alone lists them


@dataclass(frozen=True)
class ScoredPerson:
    """One person scored in this session."""

    time: str
    model_id: str
    score: Score

    @property
    def name(self) -> str:
        """What a menu calls it."""
        return f"{self.score.id} · {self.time}"


def noted(people: Sequence[ScoredPerson], batch: ScoreBatch, time: str) -> tuple[ScoredPerson, ...]:
    """Return the session's people with those of one more run, newest first."""
    if len(batch.scores) >= BATCH_FROM_PEOPLE:
        return tuple(people)
    new = [ScoredPerson(time, batch.model_id, score) for score in batch.scores if score.scored]
    return (*new, *people)[:MAX_REMEMBERED]


def among(t: Texts, view: View, card: ModelCard, batch: ScoreBatch | None, cutoff: float) -> None:
    """Draw the cut-off, and the person who was just scored, among the people whose scores the Guest has had before."""
    if view.task != "binary" or not card.parts:
        return
    part = card.parts[0]
    spread = part.spread
    separation = part.separation
    if spread is None or separation is None:
        return
    who = t(f"score.before_{card.sources[part.part]}", n=part.n, people=f"{part.n:,}")
    if batch is not None:
        scores = [score for score in batch.scores if score.scored]
    else:
        scores = []
    if len(scores) == 1:
        below = 1 - at_or_above(part, scores[0].probability)
        words = t("score.among_person", who=who, below=percent(below))
    else:
        words = t("score.among", who=who, cutoff=_whole(cutoff), declined=percent(at_or_above(part, cutoff)))
    edges = [100 * edge for edge in spread.edges]
    counts = [sum(column) for column in zip(*spread.counts, strict=True)]
    at = 100 * scores[0].probability if len(scores) == 1 else None
    st.markdown(words)
    frame.drawing(bars_by_probability(t, edges, counts, 100 * cutoff, at, words), "among")
    twin: frame.Columns = {
        t("score.probability"): [f"{low:.0f}–{high:.0f}\u00a0%" for low, high in pairwise(edges)],
        t("score.people"): counts,
    }
    frame.table_twin(t, twin, words, "among")


def bars_by_probability(
    t: Texts, edges: Sequence[float], counts: Sequence[int], cutoff: float, at: float | None, words: str
) -> str:
    """Return a chart of people by probability, in percent: bars, darker from the cut-off on, and a mark `at` the person."""
    ground = TOP_PIXELS + BARS_PIXELS
    high = max(*counts, 1)
    parts = []
    for (low, end), count in zip(pairwise(edges), counts, strict=True):
        tall = BARS_PIXELS * count / high
        parts.append(
            f'<rect x="{low + 0.04 * (end - low):.2f}%" width="{0.92 * (end - low):.2f}%" y="{ground - tall:.1f}" '
            f'height="{tall:.1f}" fill="{palette.INK if (low + end) / 2 >= cutoff else palette.FAINT}">'
            f"<title>{low:.0f}–{end:.0f}\u00a0%: {count:,}</title></rect>"
        )
    parts.append(
        f'<line x1="{cutoff:.0f}%" x2="{cutoff:.0f}%" y1="{TOP_PIXELS}" y2="{ground}" stroke="{palette.INK}" stroke-width="2" '
        f'stroke-dasharray="6 4"/>{charts.annotation(cutoff, TOP_PIXELS - 7, label(t("score.cutoff_short")))}'
    )
    parts += [charts.annotation(tick, ground + 17, f"{tick}\u00a0%") for tick in range(0, 101, 20)]
    if at is not None:
        parts.append(
            f'<svg x="{at:.2f}%" y="{ground}" overflow="visible"><path d="M-8-13H8L0 1Z" fill="{palette.GUEST.colour}" '
            f'stroke="currentColor"><title>{at:.1f}\u00a0%</title></path></svg>'
        )
    return charts.svg(parts, ground + charts.TICKS, words)


def _whole(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%"


def session(t: Texts, view: View, history: Sequence[ScoredPerson], people: pd.DataFrame) -> None:
    """Draw who was scored with this model in this session, and two of them side by side."""
    scored_people = [person for person in history if person.model_id == view.record.id]
    if len(scored_people) < 2:
        return
    opened = frame.box(t("score.history"), "history", "score_history_box")
    if opened is not None:
        with opened:
            _session(t, view, scored_people, people)


def _session(t: Texts, view: View, scored_people: Sequence[ScoredPerson], people: pd.DataFrame) -> None:
    st.markdown(t("score.history_sentence", n=len(scored_people)))
    columns = {
        t("score.id"): [scored.score.id for scored in scored_people],
        t("score.when"): [scored.time for scored in scored_people],
    }
    for title, text_of in _figures(t, view).items():
        columns[title] = [text_of(scored.score) for scored in scored_people]
    frame.cards(columns, "history", t("score.history"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first = _choice(t("score.first"), scored_people, 0, "score_one")
        second = _choice(t("score.second"), scored_people, 1, "score_other")
    beside(t, view, first.score, second.score, people)


def _choice(title: str, scored_people: Sequence[ScoredPerson], start: int, key: str) -> ScoredPerson:
    at: int = st.selectbox(
        title, range(len(scored_people)), index=start, format_func=lambda i: scored_people[i].name, key=key, width=230
    )
    return scored_people[min(at, len(scored_people) - 1)]


def _figures(t: Texts, view: View) -> dict[str, Any]:
    """Title → how it is read out of a score."""
    if view.task == "number":
        readers: dict[str, Any] = {t("score.value"): lambda score: signed(score.margin)}
    elif view.task == "classes":
        readers = {t("score.predicted"): lambda score: score.predicted, t("score.probability"): _chance}
    else:
        readers = {t("score.decision"): lambda score: t(f"score.{score.decision}"), t("score.probability"): _chance}
    if view.model.outputs.aggregation == "sum":
        parts = {"guest_part": t("score.guest_part"), "hosts_part": t("score.hosts_part")}
        readers |= {title: lambda score, name=name: signed(getattr(score, name)) for name, title in parts.items()}
    return readers


def _chance(score: Score) -> str:
    return percent(score.probability)


def beside(t: Texts, view: View, first_score: Score, second_score: Score, people: pd.DataFrame) -> None:
    """Draw two people side by side: their scores, and what the Guest holds about them; what differs is bold."""
    rows = [(title, text_of(first_score), text_of(second_score)) for title, text_of in _figures(t, view).items()]
    for party, feature in view.model.dictionary:
        if party == view.model.guest:
            first_value = _held(t, people, first_score.id, feature)
            second_value = _held(t, people, second_score.id, feature)
            rows.append((t.meaning(feature), first_value, second_value))
    columns: frame.Columns = {
        t("score.compared"): [markdown(title) for title, _, _ in rows],
        markdown(f"1 · {first_score.id}"): [_cell(first, first != second) for _, first, second in rows],
        markdown(f"2 · {second_score.id}"): [_cell(second, first != second) for _, first, second in rows],
    }
    frame.table(columns, t("score.compared"))


def _held(t: Texts, people: pd.DataFrame, sample: str, feature: Any) -> str:
    if sample in people.index:
        return person.shown(t, feature, people.at[sample, feature.name])
    return "–"


def _cell(text: str, differs: bool) -> str:
    return f"**{markdown(text)}**" if differs else markdown(text)
