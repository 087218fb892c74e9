"""What came back: score, probability, decision, who contributed what, how long each stage took, who learned what."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.panels import frame, palette, transcript
from app.reading import ORDERS, PAGE, Speed, View, page_of, speed
from app.texts import Texts, label, markdown, number, percent, signed, size
from backend.service import Score, ScoreBatch


def draw(t: Texts, view: View, done: ScoreBatch, csv: Callable[[], bytes]) -> None:
    """The answer: one person's score in full, or how many were declined and how fast; `csv` makes the file on a click."""
    if len(done.scores) == 1:
        _single(t, view, done)
    else:
        _batch(t, done, speed(done, view.model.guest))
    st.download_button(
        t("score.download"),
        csv,
        "glassleaf-scores.csv",
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="download_scores",
    )


def below(t: Texts, view: View, done: ScoreBatch) -> DeltaGenerator:
    """Over the full width: the table of many, the round trip, how long it took, who knows what now.

    Returns the place for :func:`textbook`, which is measured when everything else is there.
    """
    if len(done.scores) > 1:
        frame.section(t, "score.table")
        _table(t, view, done)
    frame.section(t, "transcript.title", "transcript")
    transcript.draw(t, view, done)
    left, right = st.columns(2, gap="large")
    with left:
        frame.section(t, "score.stages")
        _stages(t, view, done)
    with right:
        frame.section(t, "score.textbook", "textbook")
        place = st.empty()
        place.caption(t("score.textbook_measuring"))
    frame.section(t, "score.learned", "transcript")
    _learned(t, view, done)
    return place


def textbook(t: Texts, place: DeltaGenerator, done: ScoreBatch, one: float, bits: int) -> None:
    """The seconds this took beside those of a textbook that needs `one` second(s) a person under a key of `bits` bits."""
    people = sum(score.status == "ok" for score in done.scores)
    if not people:
        place.empty()
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
    figure = go.Figure()
    for name, seconds, _, pattern in rows:
        figure.add_bar(
            x=[seconds],
            y=[name],
            orientation="h",
            width=0.55,
            marker={
                "color": palette.INK,
                "pattern": {"shape": pattern, "fgcolor": palette.INK, "bgcolor": palette.FAINT},
            },
            text=[t.duration(seconds)],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"{label(name)}: {t.duration(seconds)}<extra></extra>",
            showlegend=False,
        )
    first = math.floor(math.log10(min(here, there))) - 0.5
    last = math.log10(max(here, there))
    step = max(1, math.ceil((last - first) / 4))  # powers of ten between marks, so that they fit a phone
    figure.update_xaxes(
        type="log",
        range=[first, last + 0.3 * (last - first)],
        dtick=step,
        ticksuffix=" s",
        tickformat=",~r",
        fixedrange=True,
        title=t("score.textbook_axis", times=f"{10**step:,}"),
    )
    figure.update_yaxes(autorange="reversed", fixedrange=True, title=None)
    figure.update_layout(height=170, margin={"l": 0, "r": 0, "t": 4, "b": 0})
    twin = pd.DataFrame(
        {
            t("score.textbook_way"): [row[0] for row in rows],
            t("score.time"): [t.duration(row[1]) for row in rows],
            t("engine.cipher"): [row[2] for row in rows],
            t("score.textbook_counts"): [t("score.textbook_counts_here"), t("score.textbook_counts_there")],
        }
    )
    with place.container():
        frame.chart(t, figure, sentence, twin, "textbook")
        st.caption(f":material/straighten: {t('score.textbook_note', bits=f'{bits:,}')}")


def _single(t: Texts, view: View, batch: ScoreBatch) -> None:
    """One person's score and what it is made of."""
    score = batch.scores[0]
    if score.status == "failed":
        frame.problem(t, score.problem)
        return
    with st.grid("auto", min_column_width=140):
        st.metric(t("score.probability"), percent(score.probability), help=t("glossary.probability"), border=True)
        st.metric(t("score.decision"), frame.decision(t, score), help=t("glossary.cutoff"), border=True)
        st.metric(t("score.logit"), signed(score.logit), help=t("glossary.log_odds"), border=True)
    st.markdown(
        t(
            "score.sentence",
            id=markdown(score.id),
            probability=percent(score.probability),
            label=markdown(t.either(view.federation.label.meaning, view.federation.label.meaning_zh)),
            relation=t("score.above" if score.probability >= batch.cutoff else "score.below"),
            cutoff=f"{batch.cutoff:.0%}".replace("%", " %"),
        )
    )
    _not_held(t, view, score)
    _contribution(t, view, score)


def _not_held(t: Texts, view: View, score: Score) -> None:
    if score.not_held_by:
        hosts = t.listed([palette.name(t, view.federation, host) for host in score.not_held_by])
        st.info(t("score.not_held", hosts=hosts), icon=":material/person_off:")


def _contribution(t: Texts, view: View, score: Score) -> None:
    frame.section(t, "score.contribution", "log_odds")
    larger = "guest" if abs(score.guest_part) >= abs(score.hosts_part) else "hosts"
    sentence = t(
        "score.contribution_sentence",
        base=signed(score.base),
        guest=signed(score.guest_part),
        hosts=signed(score.hosts_part),
        total=signed(score.logit),
        larger=t(f"score.larger_{larger}"),
    )
    steps = [
        (t("score.base"), 0.0, score.base, palette.INK, ""),
        (t("score.guest_part"), score.base, score.guest_part, palette.GUEST.colour, ""),
        (t("score.hosts_part"), score.base + score.guest_part, score.hosts_part, palette.INK, "/"),
        (t("score.total"), 0.0, score.logit, palette.INK, ""),
    ]
    figure = go.Figure()
    for name, start, height, colour, pattern in steps:
        figure.add_bar(
            x=[height],
            y=[name],
            base=[start],
            orientation="h",
            width=0.55,
            marker={"color": colour, "pattern": {"shape": pattern, "fgcolor": colour, "bgcolor": palette.FAINT}},
            text=[signed(height)],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"{label(name)}: {signed(height)}<extra></extra>",
            showlegend=False,
        )
    ends = [0.0, score.base, score.base + score.guest_part, score.logit]
    room = (max(ends) - min(ends) or 1.0) * 0.28
    figure.update_xaxes(
        range=[min(ends) - room, max(ends) + room], zeroline=True, fixedrange=True, title=t("score.axis")
    )
    figure.update_yaxes(autorange="reversed", fixedrange=True, title=None)
    figure.update_layout(height=230, margin={"l": 0, "r": 0, "t": 4, "b": 0}, barmode="overlay")
    twin = pd.DataFrame({t("score.part_of"): [s[0] for s in steps], t("score.logit"): [signed(s[2]) for s in steps]})
    frame.chart(t, figure, sentence, twin, "contribution")
    st.caption(f":material/lock: {t('score.together')}")


def _batch(t: Texts, done: ScoreBatch, took: Speed) -> None:
    """Many people: a count of decisions, and how fast they came."""
    good = [score for score in done.scores if score.status == "ok"]
    declined = sum(score.decision == "decline" for score in good)
    with st.grid("auto", min_column_width=115):
        st.metric(t("score.scored"), f"{len(good):,}", border=True)
        st.metric(t("score.declined"), f"{declined:,}", help=t("glossary.cutoff"), border=True)
        st.metric(t("score.failed"), f"{len(done.scores) - len(good):,}", help=t("score.failed_help"), border=True)
        st.metric(t("score.a_second"), number(took.a_second), help=t("score.a_second_help"), border=True)
    absent = sum(bool(score.not_held_by) for score in good)
    per = t.duration(done.seconds / max(len(good), 1))
    st.markdown(t("score.batch_sentence", n=len(good), people=f"{len(good):,}", absent=absent, per=per))


@st.fragment
def _table(t: Texts, view: View, done: ScoreBatch) -> None:
    """The scores, some at a time; a click on another page draws nothing but the table."""
    order = "given"
    if len(done.scores) > PAGE:
        order = st.segmented_control(
            t("score.order"),
            ORDERS,
            default="given",
            required=True,
            key="batch_order",
            format_func=lambda name: t(f"score.order_{name}"),
        )
    rows = st.empty()
    page = 1
    if len(done.scores) > PAGE:
        with st.container(horizontal=True, vertical_alignment="center"):
            pages = -(-len(done.scores) // PAGE)
            page = min(st.pagination(pages, key="batch_page"), pages)
            first = (page - 1) * PAGE + 1
            last = min(page * PAGE, len(done.scores))
            st.caption(t("score.rows", first=f"{first:,}", last=f"{last:,}", n=f"{len(done.scores):,}"))
    scores = page_of(done.scores, order, page)
    rows.dataframe(
        pd.DataFrame(
            {
                "id": [score.id for score in scores],
                "probability": [100 * s.probability if s.status == "ok" else None for s in scores],
                "decision": [t(f"score.{s.decision}") if s.decision else t("score.failed") for s in scores],
                "guest": [s.guest_part if s.status == "ok" else None for s in scores],
                "hosts": [s.hosts_part if s.status == "ok" else None for s in scores],
                "note": [_note(t, view, score) for score in scores],
            }
        ),
        hide_index=True,
        key="batch_table",
        alt=t("score.table"),
        placeholder="–",
        column_config={
            "id": t("score.id"),
            "probability": st.column_config.ProgressColumn(
                t("score.probability"), min_value=0, max_value=100, format="%.1f %%"
            ),
            "decision": t("score.decision"),
            "guest": st.column_config.NumberColumn(t("score.guest_part"), format="%+.3f"),
            "hosts": st.column_config.NumberColumn(t("score.hosts_part"), format="%+.3f"),
            "note": t("score.note"),
        },
    )


def _note(t: Texts, view: View, score: Score) -> str:
    if score.status == "failed":
        return score.problem
    return (
        t("score.not_held_short", hosts=t.listed([t.party(view.federation, h) for h in score.not_held_by]))
        if score.not_held_by
        else ""
    )


def _stages(t: Texts, view: View, done: ScoreBatch) -> None:
    """How long each stage took."""
    slowest = max(done.stages, key=lambda stage: stage.seconds)
    st.markdown(
        t(
            "score.stages_sentence",
            total=t.duration(done.seconds),
            slowest=t(f"stage.{slowest.name}").lower(),
            part=t.duration(slowest.seconds),
        )
    )
    st.dataframe(
        pd.DataFrame(
            {
                t("score.stage"): [t(f"stage.{stage.name}") for stage in done.stages],
                t("words.party"): [
                    palette.plain(t, view.federation, stage.party) if stage.party else "–" for stage in done.stages
                ],
                t("score.time"): [t.duration(stage.seconds) for stage in done.stages],
            }
        ),
        hide_index=True,
        key="stages",
        alt=t("score.stages"),
    )
    took = speed(done, view.model.guest)
    st.markdown(
        t(
            "score.traffic" if took.between else "score.traffic_direct",
            out=size(round(took.out)),
            between=size(round(took.between)),
            back=size(round(took.back)),
        )
    )


def _learned(t: Texts, view: View, done: ScoreBatch) -> None:
    """What each party knows after this run that it did not know before."""
    with st.container(border=True):
        guest = palette.name(t, view.federation, view.model.guest)
        count = {"n": len(done.scores), "people": f"{len(done.scores):,}"}
        st.markdown(f"{guest}: {t('score.learned_guest', **count)}")
        for host in view.model.hosts:
            st.markdown(f"{palette.name(t, view.federation, host)}: {t('score.learned_host', **count)}")
        if done.cipher == "none":
            st.markdown(f":material/science: {t('score.plain')}")
        else:
            st.markdown(
                ":material/lock: "
                + t(
                    f"score.hidden_{done.cipher}",
                    cipher=frame.cipher(t, done.cipher, done.key_bits),
                    entries=f"{done.ciphertexts_per_sample:,}",
                    leaves=f"{done.leaves:,}",
                ),
                help=t(f"score.hidden_{done.cipher}_help"),
            )
