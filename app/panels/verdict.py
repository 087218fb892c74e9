"""What is true of a model, as the backend judged it: the headline, the worst facts with where to act, and all of them as a table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import frame, links
from app.texts import Texts, markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backend.services.verdicts import Change, Changes, Fact, Verdict

# state of a fact: icon, colour
LOOKS = {
    "broken": ("cancel", "red"),
    "undecided": ("pending", "orange"),
    "not_measured": ("remove", "gray"),
    "no_breach": ("check_circle", "green"),
}
# way of a change: icon, colour
CHANGE_ICONS = {
    "worse": ("trending_down", "red"),
    "not_measured": ("remove", "gray"),
    "better": ("trending_up", "green"),
    "same": ("trending_flat", "gray"),
}
FACTS_OPEN = 2  # facts that are open; the table holds all


def headline(t: Texts, verdict: Verdict, name: str = "") -> None:
    """Draw the sentence that every page says of the model; `name` is what the model is called, next to another one."""
    show = {"broken": st.error, "undecided": st.warning, "not_measured": st.info, "no_breach": st.success}
    icon, _ = LOOKS[verdict.state]
    words = markdown(t.text(verdict.headline))
    if name:
        words = t("words.says", who=f"**{markdown(name)}**", said=words)
    show[verdict.state](words, icon=f":material/{icon}:")


def draw(t: Texts, verdict: Verdict, page: str, first: Sequence[Fact] | None = None) -> None:
    """Draw the headline, the worst facts, and all facts once they are opened.

    Parameters
    ----------
    page : str
        The page itself, which needs no link.
    first : sequence of Fact, optional
        The facts that this page is about; the worst of all by default.
    """
    headline(t, verdict)
    for fact in (verdict.facts if first is None else first)[:FACTS_OPEN]:
        _line(t, fact, page)
    box = frame.box(t("verdict.all", n=len(verdict.facts)), "fact_check", f"verdict_{page}")
    if box is not None:
        with box:
            _table(t, verdict.facts)


def _state(t: Texts, state: str) -> str:
    """Return a state as a coloured mark with its word."""
    icon, colour = LOOKS[state]
    return f":{colour}[:material/{icon}: **{t(f'verdict.{state}')}**]"


def line(t: Texts, fact: Fact) -> None:
    """Draw one fact: its state as a coloured mark with its word, and its sentence."""
    st.markdown(f"{_state(t, fact.state)} · {markdown(t.text(fact.sentence))}")


def _line(t: Texts, fact: Fact, page: str) -> None:
    with st.container(border=True, gap="xsmall"):
        line(t, fact)
        if fact.page != page:
            links.page(fact.page, t("verdict.act", page=t(f"{fact.page}.title")), "arrow_forward")


def _table(t: Texts, facts: Sequence[Fact]) -> None:
    columns = {
        t("verdict.state"): [_state(t, fact.state) for fact in facts],
        t("verdict.fact"): [markdown(t.text(fact.sentence)) for fact in facts],
    }
    with st.container(key="cards_verdict"):
        frame.table(columns, t("verdict.title"))


def which(t: Texts, comparison: Changes, both: Sequence[tuple[str, Verdict]] = ()) -> None:
    """Draw which of two models is better, then what is worse, and every fact that was compared once they are opened.

    Parameters
    ----------
    both : sequence of (str, Verdict), optional
        What each of the two is called, which may be the same, and what is true of it, drawn below the answer.
    """
    st.markdown(f"**{markdown(t.text(comparison.headline))}**")
    for name, judged in both:
        headline(t, judged, name)
    worse = [change for change in comparison.changes if change.way == "worse"]
    if worse:
        _changes(t, worse, "cards_changes_worse")
    if len(worse) < len(comparison.changes):
        frame.fold(
            t("verdict.all", n=len(comparison.changes)),
            "fact_check",
            "verdict_changes",
            partial(_changes, t, comparison.changes, "cards_changes"),
        )


def _changes(t: Texts, changes: Sequence[Change], key: str) -> None:
    columns = {
        t("verdict.state"): [_way(t, change.way) for change in changes],
        t("verdict.fact"): [markdown(t.text(change.sentence)) for change in changes],
    }
    with st.container(key=key):
        frame.table(columns, t("verdict.which"))


def _way(t: Texts, way: str) -> str:
    icon, colour = CHANGE_ICONS[way]
    return f":{colour}[:material/{icon}: **{t(f'verdict.way_{way}')}**]"
