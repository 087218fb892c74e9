"""Work that a page offers: its button, its progress with a way to stop, and what it came to; with a form or without."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from app.panels import frame, run
from app.session import Work
from app.texts import Texts
from app.view_models import View

if TYPE_CHECKING:
    from backend.jobs import Job

R = TypeVar("R")


def button(t: Texts, view: View, work: Work, words: str, begin: Callable[[], Job[Any]]) -> None:
    """A button called `words` that begins the work, and what has become of it so far."""
    _start(t(words), "science", work, begin)
    _progress(t, view, work, lambda t, view, job: run.ended(t, job))


def form(
    t: Texts,
    view: View,
    work: Work,
    request: Callable[[], R],
    begin: Callable[[R], Job[Any]],
    done: Callable[[Texts, View, Job[Any]], None],
) -> None:
    """The form `request` with its button on the left; on the right its progress, then what `done` says of it."""
    left, right = st.columns(2, gap="large")
    with left:
        asked = request()
        icon = "science" if work.name == "evidence" else "model_training"
        _start(t(f"compliance.go_{work.name}"), icon, work, lambda: begin(asked))
    with right:
        _progress(t, view, work, done)


def _start(words: str, icon: str, work: Work, begin: Callable[[], Job[Any]]) -> None:
    icon = f":material/{icon}:"
    if st.button(words, type=frame.emphasis(), icon=icon, disabled=work.busy, key=f"{work.name}_go"):
        work.start(begin)
        work.redraw()


def _progress(t: Texts, view: View, work: Work, done: Callable[[Texts, View, Job[Any]], None]) -> None:
    if work.refused:
        frame.problem(t, work.refused)
    if work.job is not None and work.job.state == "running":
        run.train(t, view.federation, work.job, "", work.redraw)
    elif work.job is not None:
        done(t, view, work.job)
