"""Work that a page offers: its button, its progress with a way to stop, and what it came to; with a form or without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from app import user_jobs
from app.panels import frame, run
from app.texts import Texts
from app.user_jobs import Work
from app.view_models import View

if TYPE_CHECKING:
    from backend.jobs import Job

R = TypeVar("R")


def button(t: Texts, view: View, work: Work, words: str, begin: Callable[[], Job[Any]] | None) -> None:
    """Draw a button called `words` that begins the work, None as long as something lacks, and what has become of it so far."""
    key = f"{work.name}_go"
    disabled = work.busy or begin is None
    if st.button(t(words), type=frame.emphasis(), icon=":material/science:", disabled=disabled, key=key) and begin:
        work.start(begin)
        work.redraw()
    again = None if begin is None else partial(work.start, begin)
    _progress(t, view, work, lambda t, view, job: run.ended(t, job, again=again))


@dataclass(frozen=True)
class Offer:
    """Work that one of several places of a page offers.

    Attributes
    ----------
    place : str
        Tells the places apart.
    here : bool
        Whether it was started here last, so that its progress and result belong here.
    begin : callable
        Takes a function that starts the job.
    """

    work: Work
    place: str
    here: bool
    begin: Callable[[Callable[[], Job[Any]]], None]


def form(
    t: Texts,
    view: View,
    offer: Offer,
    request: Callable[[], R],
    begin: Callable[[R], Job[Any]],
    draw_result: Callable[[Texts, View, Job[Any]], None],
    why: str = "",
    draw_known: Callable[[R], None] = lambda request: None,
) -> None:
    """Draw the form `request`, and its button next to its progress and its result, or `why` before a first press.

    `draw_result` draws the result of a job; `draw_known` draws, below the form, what is known about the question already.
    """
    work = offer.work
    question = request()
    button_column, result_column = st.columns([2, 3], gap="large", vertical_alignment="center")
    with button_column:
        if work.name == "evidence":
            icon = ":material/science:"
        else:
            icon = ":material/model_training:"
        words = t(f"compliance.go_{work.name}")
        key = f"{work.name}_go_{offer.place}"
        if st.button(words, type=frame.emphasis(), icon=icon, disabled=work.busy, key=key):
            offer.begin(lambda: begin(question))
            work.redraw()
    with result_column:
        if offer.here and (work.job is not None or work.refused):
            _progress(t, view, work, draw_result)
        elif work.busy:
            _until_free(t, work.redraw)
        elif why:
            st.caption(why)
    with st.container(gap="xsmall"):
        draw_known(question)


@st.fragment(run_every=1.0)
def _until_free(t: Texts, redraw: Callable[[], None]) -> None:
    """That other work has to end first; `redraw` draws the page once it has, so that the button can be pressed."""
    st.caption(f":material/hourglass_top: {t('compliance.busy')}")
    if not user_jobs.busy():
        redraw()


def _progress(t: Texts, view: View, work: Work, draw_result: Callable[[Texts, View, Job[Any]], None]) -> None:
    if work.refused:
        frame.problem(t, work.refused)
    if work.job is not None and work.job.state == "running":
        run.train(t, view.federation, work.job, "", work.redraw)
    elif work.job is not None:
        draw_result(t, view, work.job)
