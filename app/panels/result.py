"""What came back of a scoring, for one person or many, what it took, and how fast the textbook would have been."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.panels import charts, frame, palette, result_batch, result_person, transcript
from app.texts import Texts, amount, markdown, number
from app.view_models import View

if TYPE_CHECKING:
    from backend.results import ScoreBatch


def usable(done: ScoreBatch) -> bool:
    """Whether anybody was scored."""
    return any(score.scored for score in done.scores)


def draw(t: Texts, view: View, done: ScoreBatch) -> None:
    """One person's answer; if there is none, why."""
    if not usable(done):
        st.warning(t("score.nobody_scored", n=len(done.scores)), icon=":material/person_off:", title=t("frame.problem"))
        if len(done.scores) == 1:
            frame.problems(t, done.scores[0].problems)
    else:
        result_person.draw(t, view, done)


def said(t: Texts, view: View, done: ScoreBatch) -> str:
    """The answer in words, for whoever listens."""
    if not usable(done):
        return t("score.nobody_scored", n=len(done.scores))
    if len(done.scores) == 1:
        words = result_person.sentence(t, view, done)
        if view.task == "binary":
            return t("score.said", decision=t(f"score.{done.scores[0].decision}"), words=words)
        return words
    return result_batch.sentence(t, view, done)


def guarded(t: Texts, view: View, done: ScoreBatch) -> None:
    """Draw what shows that no Host tampered with the scores, and how far cover moves them."""
    if done.canaries:
        st.caption(f":material/verified_user: {t('score.canaries', n=done.canaries)}", help=t("glossary.canary"))
    if done.dither:
        words = t("score.dithered", width=markdown(amount(done.dither, t.unit(view.federation.label))))
        st.caption(f":material/blur_on: {words}", help=t("glossary.dither"))


def take_home(t: Texts, done: ScoreBatch, csv: Callable[[], bytes]) -> None:
    """Draw the button for the file, which `csv` makes on a click."""
    if not usable(done):
        return
    st.download_button(
        t("score.download"),
        csv,
        "glassleaf-scores.csv",
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="download_scores",
    )


def learned(t: Texts, view: View, done: ScoreBatch) -> None:
    """Who knows what now."""
    frame.section(t, "score.learned", "transcript")
    transcript.learned(t, view, done)


def computed(t: Texts, view: View, done: ScoreBatch, one: Callable[[], float], bits: int) -> None:
    """How the scores came about: one person's parts, the messages, how long it took.

    Parameters
    ----------
    one : callable
        Measures the seconds that a textbook needs for a person under a key of `bits` bits, when everything else is there.
    """
    if len(done.scores) == 1:
        result_person.computed(t, view, done)
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
        _textbook(t, slot, done, one(), bits)


def _textbook(t: Texts, slot: DeltaGenerator, done: ScoreBatch, one: float, bits: int) -> None:
    """The seconds this took beside those of a textbook that needs `one` second(s) a person under a key of `bits` bits."""
    people = sum(score.scored for score in done.scores)
    here = done.seconds
    there = one * people
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
    ways = ("here", "there")
    names = [t(f"score.textbook_{way}") for way in ways]
    took = [t.duration(here), t.duration(there)]
    ciphers = [frame.cipher(t, done.cipher, done.key_bits), frame.cipher(t, "paillier", bits)]
    words = [f"{t.noted(name, cipher)}  {time}" for name, cipher, time in zip(names, ciphers, took, strict=True)]
    bars = [(said, seconds, palette.INK) for said, seconds in zip(words, (here, there), strict=True)]
    columns: frame.Columns = {
        t("score.textbook_way"): names,
        t("score.time"): took,
        t("engine.cipher"): ciphers,
        t("score.textbook_counts"): [t(f"score.textbook_counts_{way}") for way in ways],
    }
    with slot.container():
        st.markdown(sentence)
        frame.drawing(charts.lying(bars, max(here, there), sentence), "textbook")
        frame.table_twin(t, columns, sentence, "textbook")
        st.caption(f":material/straighten: {t('score.textbook_note', bits=f'{bits:,}')}")
