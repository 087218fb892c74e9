"""The answer about many people: what became of them, how fast, and their scores in a table, some at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from app import errors
from app.panels import controls
from app.texts import Texts, amount, markdown, number
from app.view_models import ORDERS, PAGE, Speed, View, page_of, scale

if TYPE_CHECKING:
    from backend.results import Score, ScoreBatch

PARTS = {  # of a scale: factor and format of a part in the table
    "log_odds": (1, "%+.3f"),
    "class_score": (1, "%+.3f"),
    "share": (100, "%+.1f %%"),
    "class_share": (100, "%+.1f %%"),
    "step": (1, "%+.4g"),
    "value": (1, "%+.4g"),
}


def draw(t: Texts, view: View, done: ScoreBatch, took: Speed) -> None:
    """Many people: what became of them, and how fast."""
    good = [score for score in done.scores if score.status == "ok"]
    with st.grid("auto", min_column_width=115):
        st.metric(t("score.scored"), f"{len(good):,}", border=True)
        if view.task == "binary":
            declined = sum(score.decision == "decline" for score in good)
            st.metric(t("score.declined"), f"{declined:,}", help=t("glossary.cutoff"), border=True)
        elif view.task == "number" and good:
            mean = sum(score.margin for score in good) / len(good)
            st.metric(t("score.mean"), amount(mean, t.unit(view.federation.label)), border=True)
        st.metric(t("score.failed"), f"{len(done.scores) - len(good):,}", help=t("score.failed_help"), border=True)
        st.metric(t("score.a_second"), number(took.a_second), help=t("score.a_second_help"), border=True)
    st.markdown(sentence(t, view, done))


def sentence(t: Texts, view: View, done: ScoreBatch) -> str:
    """What became of many people, as Markdown."""
    good = [score for score in done.scores if score.status == "ok"]
    absent = sum(bool(score.not_held_by) for score in good)
    per = t.duration(done.seconds / max(len(good), 1))
    words = [t("score.batch_sentence", n=len(good), people=f"{len(good):,}", absent=absent, per=per)]
    if view.task == "classes" and good:
        counts = Counter(score.predicted for score in good).most_common()
        words.append(t("score.batch_classes", listed=t.listed([f"{markdown(c)} {n:,}" for c, n in counts])))
    return t.joined(*words)


@st.fragment
def table(t: Texts, view: View, done: ScoreBatch) -> None:
    """The scores, some at a time; a click on another page draws nothing but the table."""
    order = "given"
    if len(done.scores) > PAGE:
        order = controls.choice(
            t("score.order"),
            ORDERS,
            "batch_order",
            lambda name: t(f"score.order_{name}_{view.task}" if name != "given" else "score.order_given"),
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
    unit = t.unit(view.federation.label) if view.task == "number" else ""
    columns: dict[str, list[Any]] = {"id": [score.id for score in scores]}
    settings: dict[str, Any] = {"id": t("score.id"), "note": t("score.note")}
    if view.task == "number":
        columns["value"] = where_good([score.margin for score in scores])
        settings["value"] = st.column_config.NumberColumn(t.noted(t("score.value"), unit), format="%.5g")
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
            settings[part] = st.column_config.NumberColumn(t.noted(t(f"score.{part}"), unit), format=shape)
    return columns | {"note": [_note(t, view, score) for score in scores]}, settings


def why(t: Texts, view: View, score: Score) -> str:
    """Why somebody was not scored, with Hosts by their titles; as an error's text, to be said in the reader's language."""
    titles = {host: t.party(view.federation, host) for host in view.model.hosts}
    named = rf"\b(at|ask) ({'|'.join(map(re.escape, titles))})\b"
    return re.sub(named, lambda found: f"{found[1]} {titles[found[2]]}", score.problem) if titles else score.problem


def _note(t: Texts, view: View, score: Score) -> str:
    if score.status == "failed":
        return errors.said(t, why(t, view, score))
    return (
        t("score.not_held_short", hosts=t.listed([t.party(view.federation, h) for h in score.not_held_by]))
        if score.not_held_by
        else ""
    )
