"""What came back of a scoring, for one person or many, what it took, and how fast the textbook would have been."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.panels import charts, frame, palette, result_batch, result_person, transcript
from app.texts import Texts, amount, markdown, number
from app.view_models import View, speed

if TYPE_CHECKING:
    from backend.results import ScoreBatch


def draw(t: Texts, view: View, done: ScoreBatch, csv: Callable[[], bytes]) -> None:
    """The answer: one person's score in full, or many in figures and how fast; `csv` makes the file on a click."""
    if len(done.scores) == 1:
        result_person.draw(t, view, done)
    else:
        result_batch.draw(t, view, done, speed(done, view.model.guest))
    _guards(t, view, done)
    st.download_button(
        t("score.download"),
        csv,
        "glassleaf-scores.csv",
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="download_scores",
    )


def _guards(t: Texts, view: View, done: ScoreBatch) -> None:
    """What shows that no Host tampered with the scores, and how far cover moves them."""
    if done.canaries:
        st.caption(f":material/verified_user: {t('score.canaries', n=done.canaries)}", help=t("glossary.canary"))
    if done.dither:
        words = t("score.dithered", width=markdown(amount(done.dither, view.unit)))
        st.caption(f":material/blur_on: {words}", help=t("glossary.dither"))


def below(t: Texts, view: View, done: ScoreBatch) -> DeltaGenerator:
    """Over the full width: the table of many, the round trip, how long it took, who knows what now.

    Returns the slot for :func:`textbook`, which is measured when everything else is there.
    """
    if len(done.scores) > 1:
        frame.section(t, "score.table")
        result_batch.table(t, view, done)
    frame.section(t, "transcript.title", "transcript")
    transcript.draw(t, view, done)
    left, right = st.columns(2, gap="large")
    with left:
        frame.section(t, "score.stages")
        transcript.stages(t, view, done)
    with right:
        frame.section(t, "score.textbook", "textbook")
        slot = st.empty()
        slot.caption(t("score.textbook_measuring"))
    frame.section(t, "score.learned", "transcript")
    transcript.learned(t, view, done)
    return slot


def textbook(t: Texts, slot: DeltaGenerator, done: ScoreBatch, one: float, bits: int) -> None:
    """The seconds this took beside those of a textbook that needs `one` second(s) a person under a key of `bits` bits."""
    people = sum(score.status == "ok" for score in done.scores)
    if not people:
        slot.empty()
        return
    here, there = done.seconds, one * people
    faster = there >= here
    sentence = t(
        "score.textbook_faster" if faster else "score.textbook_slower",
        n=people,
        people=f"{people:,}",
        times=number(there / here if faster else here / there),
        here=t.duration(here),
        there=t.duration(there),
        leaves=f"{done.leaves:,}",
    )
    rows = [
        (t("score.textbook_here"), here, frame.cipher(t, done.cipher, done.key_bits), ""),
        (t("score.textbook_there"), there, frame.cipher(t, "paillier", bits), "/"),
    ]
    figure = charts.figure(110, top=4)
    for name, seconds, _, pattern in rows:
        charts.step(figure, name, 0, seconds, t.duration(seconds), palette.INK, pattern)
    figure.update_xaxes(visible=False, range=[0, 1.25 * max(here, there)])  # the words beside a bar have room
    figure.update_yaxes(autorange="reversed", title=None)
    twin: frame.Columns = {
        t("score.textbook_way"): [row[0] for row in rows],
        t("score.time"): [t.duration(row[1]) for row in rows],
        t("engine.cipher"): [row[2] for row in rows],
        t("score.textbook_counts"): [t("score.textbook_counts_here"), t("score.textbook_counts_there")],
    }
    with slot.container():
        frame.chart(t, figure, sentence, twin, "textbook")
        st.caption(f":material/straighten: {t('score.textbook_note', bits=f'{bits:,}')}")
