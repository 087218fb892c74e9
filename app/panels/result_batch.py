"""The answer about many people: what became of them, how fast, and their scores in a table, some at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import errors, session
from app.panels import controls, frame, result_person
from app.texts import Texts, amount, markdown, number, percent
from app.view_models import ORDERS, PAGE, Speed, View, page_of
from backend.i18n import joined

if TYPE_CHECKING:
    from backend.results import Score, ScoreBatch


def draw(t: Texts, view: View, done: ScoreBatch, took: Speed) -> None:
    """Many people: what became of them, and how fast."""
    good = [score for score in done.scores if score.scored]
    with st.grid("auto", min_column_width=115):
        st.metric(t("score.scored"), f"{len(good):,}", border=True)
        if view.task == "binary":
            declined = sum(score.decision == "decline" for score in good)
            referred = sum(score.decision == "refer" for score in good)
            st.metric(t("score.declined"), f"{declined:,}", help=t("glossary.cutoff"), border=True)
            st.metric(t("policy.referred"), f"{referred:,}", help=t("policy.referred_help"), border=True)
        elif view.task == "number" and good:
            mean = sum(score.margin for score in good) / len(good)
            st.metric(t("score.mean"), amount(mean, t.unit(view.federation.label)), border=True)
        st.metric(t("score.failed"), f"{len(done.scores) - len(good):,}", help=t("score.failed_help"), border=True)
        st.metric(t("score.a_second"), number(took.a_second), help=t("score.a_second_help"), border=True)
    st.markdown(sentence(t, view, done))
    for note in done.notes:
        st.caption(f":material/info: {markdown(errors.worded(t, note, partial(session.host_title, t)))}")


def sentence(t: Texts, view: View, done: ScoreBatch) -> str:
    """What became of many people, as Markdown."""
    good = [score for score in done.scores if score.scored]
    absent = sum(bool(score.not_held_by) for score in good)
    per = t.duration(done.seconds / max(len(good), 1))
    understood_in_part = sum(score.status == "partial" for score in good)
    words = [
        t(
            "score.batch_sentence",
            n=len(good),
            people=f"{len(good):,}",
            absent=absent,
            partial=understood_in_part,
            per=per,
        )
    ]
    if view.task == "classes" and good:
        counts = Counter(score.predicted for score in good).most_common()
        words.append(t("score.batch_classes", listed=t.listed([f"{markdown(c)} {n:,}" for c, n in counts])))
    return t.joined(*words)


@st.fragment
def table(t: Texts, view: View, done: ScoreBatch) -> None:
    """The scores, some at a time, on a phone a card each; a click on another page draws nothing but the table."""
    order = "given"
    if len(done.scores) > PAGE:
        order = controls.choice(
            t("score.order"),
            ORDERS,
            "batch_order",
            lambda name: t(f"score.order_{name}_{view.task}" if name != "given" else "score.order_given"),
        )
    rows = st.container(key="cards_batch")
    page = 1
    if len(done.scores) > PAGE:
        with st.container(horizontal=True, vertical_alignment="center"):
            pages = -(-len(done.scores) // PAGE)
            page = min(st.pagination(pages, key="batch_page"), pages)
            first = (page - 1) * PAGE + 1
            last = min(page * PAGE, len(done.scores))
            st.caption(t("score.rows", first=f"{first:,}", last=f"{last:,}", n=f"{len(done.scores):,}"))
    with rows:
        frame.table(_columns(t, view, page_of(done.scores, order, page)), t("score.table"))


def _columns(t: Texts, view: View, scores: Sequence[Score]) -> frame.Columns:
    """The table's columns by what is predicted, as Markdown; a dash where somebody was not scored."""
    unit = t.unit(view.federation.label) if view.task == "number" else ""
    cells: dict[str, Callable[[Score], str]] = {}
    if view.task == "number":
        cells["value"] = lambda score: markdown(amount(score.margin, unit))
    else:
        if view.task == "binary":
            cells["decision"] = lambda score: frame.decision(t, score)
        else:
            cells["predicted"] = lambda score: markdown(score.predicted)
        cells["probability"] = lambda score: percent(score.probability)
    if any(score.points is not None for score in scores):
        cells["points"] = lambda score: f"{score.points:,}"
    if view.model.outputs.aggregation == "sum":
        cells["guest_part"] = lambda score: markdown(result_person.margin(t, view, score.guest_part, True))
        cells["hosts_part"] = lambda score: markdown(result_person.margin(t, view, score.hosts_part, True))
    shown = {
        t(f"score.{name}"): [cell(score) if score.scored else "–" for score in scores] for name, cell in cells.items()
    }
    notes = [markdown(_note(t, view, score)) or "–" for score in scores]
    return {t("score.id"): [markdown(score.id) for score in scores], **shown, t("score.note"): notes}


def _note(t: Texts, view: View, score: Score) -> str:
    title = partial(session.host_title, t)
    if not score.scored:
        return joined(*(errors.worded(t, remark, title) for remark in score.problems))
    notes = []
    for remark in score.remarks:
        if remark.code == "not_held":
            hosts = [t.party(view.federation, host) for host in score.not_held_by]
            notes.append(t("score.not_held_short", hosts=t.listed(hosts)))
        else:
            notes.append(errors.worded(t, remark, title))
    return joined(*notes)
