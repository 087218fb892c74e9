"""A form, the button that starts its work, and beside them how far the work is and what it came to."""

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


def draw(
    t: Texts,
    view: View,
    work: Work,
    request: Callable[[], Any],
    begin: Callable[[Any], Job[Any]],
    done: Callable[[Texts, View, Job[Any]], None],
) -> None:
    """The form `request` with its button on the left; on the right its progress, then what `done` says of it."""
    left, right = st.columns(2, gap="large")
    with left:
        asked = request()
        icon = f":material/{'science' if work.name == 'evidence' else 'model_training'}:"
        label = t(f"compliance.go_{work.name}")
        if st.button(label, type=frame.emphasis(), icon=icon, disabled=work.busy, key=f"{work.name}_go"):
            work.start(lambda: begin(asked))
            work.redraw()
    with right:
        if work.refused:
            frame.problem(t, work.refused)
        if work.job is not None and work.job.state == "running":
            run.train(t, view.federation, work.job, "", work.redraw)
        elif work.job is not None:
            done(t, view, work.job)
