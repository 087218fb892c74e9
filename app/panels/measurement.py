"""A measurement that a page offers: its button, its progress with a way to stop, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.panels import frame, run
from app.session import Work
from app.texts import Texts
from app.view_models import View

if TYPE_CHECKING:
    from backend.jobs import Job


def offer(t: Texts, view: View, work: Work, words: str, begin: Callable[[], Job[Any]]) -> None:
    """A button called `words` that begins the work, and what has become of it so far."""
    if st.button(t(words), type=frame.emphasis(), icon=":material/science:", disabled=work.busy, key=f"{work.name}_go"):
        work.start(begin)
        work.redraw()
    if work.refused:
        frame.problem(t, work.refused)
    if work.job is not None and work.job.state == "running":
        run.train(t, view.federation, work.job, "", work.redraw)
    elif work.job is not None:
        run.ended(t, work.job)
