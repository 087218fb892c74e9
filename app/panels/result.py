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


def usable(batch: ScoreBatch) -> bool:
    """Return whether at least one person was scored."""
    return any(score.scored for score in batch.scores)


def draw(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw one person's answer; if there is none, why."""
    if not usable(batch):
        st.warning(
            t("score.nobody_scored", n=len(batch.scores)), icon=":material/person_off:", title=t("frame.problem")
        )
        if len(batch.scores) == 1:
            frame.problems(t, batch.scores[0].problems)
    else:
        result_person.draw(t, view, batch)


def said(t: Texts, view: View, batch: ScoreBatch) -> str:
    """Return the answer as text, for screen readers."""
    if not usable(batch):
        return t("score.nobody_scored", n=len(batch.scores))
    if len(batch.scores) == 1:
        words = result_person.sentence(t, view, batch)
        if view.task == "binary":
            return t("score.said", decision=t(f"score.{batch.scores[0].decision}"), words=words)
        return words
    return result_batch.sentence(t, view, batch)


def guarded(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw what shows that no Host tampered with the scores, and how far cover moves them."""
    if batch.canaries:
        st.caption(f":material/verified_user: {t('score.canaries', n=batch.canaries)}", help=t("glossary.canary"))
    if batch.dither:
        words = t("score.dithered", width=markdown(amount(batch.dither, t.unit(view.federation.label))))
        st.caption(f":material/blur_on: {words}", help=t("glossary.dither"))


def take_home(t: Texts, batch: ScoreBatch, csv: Callable[[], bytes]) -> None:
    """Draw the button for the file, which `csv` makes on a click."""
    if not usable(batch):
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


def learned(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw what each party knows now."""
    frame.section(t, "score.learned", "transcript")
    transcript.learned(t, view, batch)


def computed(t: Texts, view: View, batch: ScoreBatch, seconds_a_person: Callable[[], float], bits: int) -> None:
    """Draw how the scores came about: one person's parts, the messages, how long it took.

    Parameters
    ----------
    seconds_a_person : callable
        Measures the seconds that a textbook needs for a person under a key of `bits` bits, when everything else is there.
    """
    if len(batch.scores) == 1:
        result_person.computed(t, view, batch)
    frame.section(t, "transcript.title", "transcript")
    transcript.draw(t, view, batch)
    stages_column, textbook_column = st.columns(2, gap="large")
    with stages_column:
        frame.section(t, "score.stages")
        transcript.stages(t, view, batch)
    with textbook_column:
        frame.section(t, "score.textbook", "textbook")
        slot = st.empty()
        slot.caption(t("score.textbook_measuring"))
        _textbook(t, slot, batch, seconds_a_person(), bits)


def _textbook(t: Texts, slot: DeltaGenerator, batch: ScoreBatch, seconds_a_person: float, bits: int) -> None:
    """Draw the seconds this took next to those of a textbook with `seconds_a_person` under a key of `bits` bits."""
    people = sum(score.scored for score in batch.scores)
    here = batch.seconds
    textbook = seconds_a_person * people
    faster = textbook >= here
    sentence = t(
        "score.textbook_faster" if faster else "score.textbook_slower",
        n=people,
        people=f"{people:,}",
        times=number(textbook / here if faster else here / textbook),
        here=t.duration(here),
        there=t.duration(textbook),
        leaves=f"{batch.leaves:,}",
    )
    ways = ("here", "there")
    names = [t(f"score.textbook_{way}") for way in ways]
    took = [t.duration(here), t.duration(textbook)]
    ciphers = [frame.cipher(t, batch.cipher, batch.key_bits), frame.cipher(t, "paillier", bits)]
    words = []
    for name, cipher, time in zip(names, ciphers, took, strict=True):
        words.append(f"{t.noted(name, cipher)}  {time}")
    bars = []
    for label_of_bar, seconds in zip(words, (here, textbook), strict=True):
        bars.append((label_of_bar, seconds, palette.INK))
    columns: frame.Columns = {
        t("score.textbook_way"): names,
        t("score.time"): took,
        t("engine.cipher"): ciphers,
        t("score.textbook_counts"): [t(f"score.textbook_counts_{way}") for way in ways],
    }
    with slot.container():
        st.markdown(sentence)
        frame.drawing(charts.lying(bars, max(here, textbook), sentence), "textbook")
        frame.table_twin(t, columns, sentence, "textbook")
        st.caption(f":material/straighten: {t('score.textbook_note', bits=f'{bits:,}')}")
