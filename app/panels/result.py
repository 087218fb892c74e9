"""What came back: a probability and a decision, a class or a value, and who contributed what to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.panels import frame, palette, transcript
from app.reading import ORDERS, PAGE, Speed, View, page_of, scale, speed
from app.texts import Texts, amount, cut, label, markdown, number, percent, signed
from backend.service import Score, ScoreBatch

BARS = 12  # classes in the picture; the table holds all
PARTS = {  # of a scale: factor and format of a part in the table
    "log_odds": (1, "%+.3f"),
    "class_score": (1, "%+.3f"),
    "share": (100, "%+.1f %%"),
    "class_share": (100, "%+.1f %%"),
    "step": (1, "%+.4g"),
    "value": (1, "%+.4g"),
}


def draw(t: Texts, view: View, done: ScoreBatch, csv: Callable[[], bytes]) -> None:
    """The answer: one person's score in full, or many in figures and how fast; `csv` makes the file on a click."""
    if len(done.scores) == 1:
        _single(t, view, done)
    else:
        _batch(t, view, done, speed(done, view.model.guest))
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
    """What shows that no Host meddled with the scores, and how far cover moves them."""
    if done.canaries:
        st.caption(f":material/verified_user: {t('score.canaries', n=done.canaries)}", help=t("glossary.canary"))
    if done.dither:
        words = t("score.dithered", width=markdown(amount(done.dither, view.unit)))
        st.caption(f":material/blur_on: {words}", help=t("glossary.dither"))


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
        transcript.stages(t, view, done)
    with right:
        frame.section(t, "score.textbook", "textbook")
        place = st.empty()
        place.caption(t("score.textbook_measuring"))
    frame.section(t, "score.learned", "transcript")
    transcript.learned(t, view, done)
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
    {"binary": _outcome, "classes": _class, "number": _value}[view.task](t, view, batch)
    _not_held(t, view, score)
    if view.task == "classes":
        _classes(t, view, score)
    _contribution(t, view, score)


def _outcome(t: Texts, view: View, batch: ScoreBatch) -> None:
    """The probability of the positive label and the decision."""
    score = batch.scores[0]
    with st.grid("auto", min_column_width=140):
        st.metric(t("score.probability"), percent(score.probability), help=_chance(t, view), border=True)
        st.metric(t("score.decision"), frame.decision(t, score), help=t("glossary.cutoff"), border=True)
        if scale(view) == "log_odds":
            st.metric(t("score.logit"), signed(score.margin), help=t("glossary.log_odds"), border=True)
    st.markdown(
        t(
            "score.sentence",
            id=markdown(score.id),
            probability=percent(score.probability),
            label=_label(t, view),
            relation=t("score.above" if score.probability >= batch.cutoff else "score.below"),
            cutoff=f"{batch.cutoff:.0%}".replace("%", " %"),
        )
    )


def _class(t: Texts, view: View, batch: ScoreBatch) -> None:
    """The most probable class."""
    score = batch.scores[0]
    with st.grid("auto", min_column_width=140):
        st.metric(t("score.predicted"), score.predicted, help=t("glossary.predicted"), border=True)
        st.metric(t("score.probability"), percent(score.probability), help=_chance(t, view), border=True)
    words = {"id": markdown(score.id), "label": _label(t, view), "predicted": markdown(score.predicted)}
    st.markdown(t("score.sentence_classes", probability=percent(score.probability), **words))


def _value(t: Texts, view: View, batch: ScoreBatch) -> None:
    """The predicted value and how far off such values were."""
    score, off = batch.scores[0], amount(view.record.metrics.rmse, view.unit)
    with st.grid("auto", min_column_width=140):
        st.metric(t("score.value"), amount(score.margin, view.unit), border=True)
        st.metric(t("score.off"), off, help=t("glossary.rmse"), border=True)
    words = {"id": markdown(score.id), "label": _label(t, view)}
    st.markdown(t("score.sentence_number", value=markdown(amount(score.margin, view.unit)), off=markdown(off), **words))


def _label(t: Texts, view: View) -> str:
    return markdown(t.either(view.federation.label.meaning, view.federation.label.meaning_zh))


def _chance(t: Texts, view: View) -> str:
    """What a model's probabilities are."""
    return t({"log_odds": "glossary.probability", "class_score": "glossary.softmax"}.get(scale(view), "glossary.share"))


def _not_held(t: Texts, view: View, score: Score) -> None:
    if score.not_held_by:
        hosts = t.listed([palette.name(t, view.federation, host) for host in score.not_held_by])
        st.info(t("score.not_held", hosts=hosts), icon=":material/person_off:")


def _classes(t: Texts, view: View, score: Score) -> None:
    """The probability of every class, likeliest first."""
    named = zip(view.model.outputs.classes, score.predictions, strict=True)
    rows = sorted(named, key=lambda row: -row[1])
    first, second = rows[0], rows[1]
    sentence = t(
        "score.classes_sentence",
        first=markdown(first[0]),
        second=markdown(second[0]),
        gap=percent(first[1] - second[1]),
    )
    drawn = rows[:BARS]
    figure = go.Figure()
    figure.add_bar(
        x=[100 * share for _, share in drawn],
        y=list(range(len(drawn))),
        orientation="h",
        width=0.62,
        marker={
            "color": [palette.INK] + [palette.FAINT] * (len(drawn) - 1),
            "line": {"color": palette.INK, "width": 1},
        },
        text=[percent(share) for _, share in drawn],
        textposition="outside",
        cliponaxis=False,
        hovertext=[f"<b>{label(name)}</b><br>{percent(share)}" for name, share in drawn],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )
    names = [label(cut(name, 22)) for name, _ in drawn]
    names[0] = f"<b>{names[0]}</b>"
    figure.update_xaxes(visible=False, fixedrange=True, range=[0, 118])
    figure.update_yaxes(
        autorange="reversed", fixedrange=True, title=None, tickvals=list(range(len(drawn))), ticktext=names
    )
    figure.update_layout(height=30 + 32 * len(drawn), margin={"l": 0, "r": 0, "t": 4, "b": 0})
    twin = pd.DataFrame(
        {t("score.class"): [name for name, _ in rows], t("score.probability"): [percent(share) for _, share in rows]}
    )
    frame.section(t, "score.classes", "predicted")
    frame.chart(t, figure, sentence, twin, "class_shares")


def _contribution(t: Texts, view: View, score: Score) -> None:
    """Base, the Guest's part and the Hosts' part of the score, where it is a sum."""
    frame.section(t, "score.contribution", "log_odds" if scale(view) == "log_odds" else None)
    if math.isnan(score.base):
        st.info(t("score.no_parts"), icon=":material/call_split:")
        return
    larger = "guest" if abs(score.guest_part) >= abs(score.hosts_part) else "hosts"
    sentence = t(
        "score.contribution_number" if view.task == "number" else "score.contribution_sentence",
        base=_said(view, score.base, False),
        guest=_said(view, score.guest_part, True),
        hosts=_said(view, score.hosts_part, True),
        total=_said(view, score.margin, False),
        larger=t(f"score.larger_{larger}"),
    )
    if score.predicted:
        sentence = t("score.contribution_class", predicted=markdown(score.predicted)) + " " + sentence
    steps = [
        (t("score.base"), 0.0, score.base, palette.INK, "", False),
        (t("score.guest_part"), score.base, score.guest_part, palette.GUEST.colour, "", True),
        (t("score.hosts_part"), score.base + score.guest_part, score.hosts_part, palette.INK, "/", True),
        (t("score.total"), 0.0, score.margin, palette.INK, "", False),
    ]
    figure = go.Figure()
    for name, start, height, colour, pattern, change in steps:
        figure.add_bar(
            x=[height],
            y=[name],
            base=[start],
            orientation="h",
            width=0.55,
            marker={"color": colour, "pattern": {"shape": pattern, "fgcolor": colour, "bgcolor": palette.FAINT}},
            text=[label(_said(view, height, change))],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"{label(name)}: {label(_said(view, height, change))}<extra></extra>",
            showlegend=False,
        )
    ends = [0.0, score.base, score.base + score.guest_part, score.margin]
    room = (max(ends) - min(ends) or 1.0) * 0.28
    figure.update_xaxes(
        range=[min(ends) - room, max(ends) + room],
        zeroline=True,
        fixedrange=True,
        title=label(_axis(t, view)),
        tickformat=".0%" if scale(view) in ("share", "class_share") else None,
    )
    figure.update_yaxes(autorange="reversed", fixedrange=True, title=None)
    figure.update_layout(height=230, margin={"l": 0, "r": 0, "t": 4, "b": 0}, barmode="overlay")
    twin = pd.DataFrame(
        {t("score.part_of"): [s[0] for s in steps], _axis(t, view): [_said(view, s[2], s[5]) for s in steps]}
    )
    frame.chart(t, figure, sentence, twin, "contribution")
    st.caption(f":material/lock: {t('score.together')}")


def _axis(t: Texts, view: View) -> str:
    """What the parts are measured in."""
    title = t(f"score.axis_{scale(view)}")
    return f"{title} ({view.unit})" if view.task == "number" and view.unit else title


def _said(view: View, value: float, change: bool) -> str:
    """A margin or, with its sign, a change of it, in the words of the model's scale."""
    kind = scale(view)
    if kind in ("log_odds", "class_score"):
        return signed(value)
    plus = "+" if change and value >= 0 else ""
    shown = percent(value) if kind in ("share", "class_share") else amount(value, view.unit)
    return plus + shown.replace("-", "−")


def _batch(t: Texts, view: View, done: ScoreBatch, took: Speed) -> None:
    """Many people: what became of them, and how fast."""
    good = [score for score in done.scores if score.status == "ok"]
    with st.grid("auto", min_column_width=115):
        st.metric(t("score.scored"), f"{len(good):,}", border=True)
        if view.task == "binary":
            declined = sum(score.decision == "decline" for score in good)
            st.metric(t("score.declined"), f"{declined:,}", help=t("glossary.cutoff"), border=True)
        elif view.task == "number" and good:
            mean = sum(score.margin for score in good) / len(good)
            st.metric(t("score.mean"), amount(mean, view.unit), border=True)
        st.metric(t("score.failed"), f"{len(done.scores) - len(good):,}", help=t("score.failed_help"), border=True)
        st.metric(t("score.a_second"), number(took.a_second), help=t("score.a_second_help"), border=True)
    absent = sum(bool(score.not_held_by) for score in good)
    per = t.duration(done.seconds / max(len(good), 1))
    words = [t("score.batch_sentence", n=len(good), people=f"{len(good):,}", absent=absent, per=per)]
    if view.task == "classes" and good:
        counts = Counter(score.predicted for score in good).most_common()
        words.append(t("score.batch_classes", listed=t.listed([f"{markdown(c)} {n:,}" for c, n in counts])))
    st.markdown(" ".join(words))


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
            format_func=lambda name: t(f"score.order_{name}_{view.task}" if name != "given" else "score.order_given"),
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
    columns, settings = _columns(t, view, scores)
    rows.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        key="batch_table",
        alt=t("score.table"),
        placeholder="–",
        column_config=settings,
    )


def _columns(t: Texts, view: View, scores: Sequence[Score]) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The table's columns by what is predicted, and how each is shown."""
    good = [score.status == "ok" for score in scores]

    def where_good(values: Sequence[Any]) -> list[Any]:
        return [value if fine else None for value, fine in zip(values, good, strict=True)]

    factor, shape = PARTS[scale(view)]
    unit = f" ({view.unit})" if view.task == "number" and view.unit else ""
    columns: dict[str, list[Any]] = {"id": [score.id for score in scores]}
    settings: dict[str, Any] = {"id": t("score.id"), "note": t("score.note")}
    if view.task == "number":
        columns["value"] = where_good([score.margin for score in scores])
        settings["value"] = st.column_config.NumberColumn(t("score.value") + unit, format="%.5g")
    else:
        if view.task == "classes":
            columns["predicted"] = where_good([score.predicted for score in scores])
            settings["predicted"] = t("score.predicted")
        columns["probability"] = where_good([100 * score.probability for score in scores])
        settings["probability"] = st.column_config.ProgressColumn(
            t("score.probability"), min_value=0, max_value=100, format="%.1f %%"
        )
    if view.task == "binary":
        columns["decision"] = [t(f"score.{s.decision}") if s.decision else t("score.failed") for s in scores]
        settings["decision"] = t("score.decision")
    if view.model.outputs.aggregation == "sum":
        for part in ("guest_part", "hosts_part"):
            columns[part] = where_good([factor * getattr(score, part) for score in scores])
            settings[part] = st.column_config.NumberColumn(t(f"score.{part}") + unit, format=shape)
    return columns | {"note": [_note(t, view, score) for score in scores]}, settings


def _note(t: Texts, view: View, score: Score) -> str:
    if score.status == "failed":
        return score.problem
    return (
        t("score.not_held_short", hosts=t.listed([t.party(view.federation, h) for h in score.not_held_by]))
        if score.not_held_by
        else ""
    )
