"""A forest that is served while one of its workers is lost: what it is asked, how far it is, and what became of the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.panels import frame, lines, palette, run
from app.texts import Texts, amount, bare
from app.user_jobs import Work
from app.view_models import View
from backend.services.forest_serving import ServingRequest

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.services.forest_serving import ServedBatch, ServingTrial


def offer(t: Texts, view: View, work: Work, start: Callable[[ServingRequest], Job[ServingTrial]]) -> None:
    """Draw how many workers hold the trees, the button that loses one, and what became of it."""
    st.markdown(t("serving.intro"))
    trees = view.record.n_trees
    shared: dict[str, Any] = {"help": t("serving.workers_help"), "persist_state": "session"}
    workers = st.slider(t("serving.workers"), 2, min(6, max(trees, 3)), 3, key="serving_workers", **shared)
    if st.button(t("serving.go"), icon=":material/link_off:", disabled=work.busy, key="serving_go"):
        work.start(lambda: start(ServingRequest(view.record.id, workers=workers)))
        work.redraw()
    if work.refused:
        frame.problem(t, work.refused)
    elif work.job is not None and work.job.state == "running":
        _follow(t, work.job, work.redraw)
    elif work.job is not None and work.job.result is not None and work.job.state == "done":
        _draw(t, view, work.job.result)
    elif work.job is not None:
        run.ended(t, work.job, "serving.cancelled")


@st.fragment(run_every=0.4)
def _follow(t: Texts, job: Job[ServingTrial], redraw: Callable[[], None]) -> None:
    """Draw the batches as they are answered; `redraw` draws the whole page once the job has ended."""
    frame.working(t, job, t(f"serving.stage_{job.stage}"), "serving")
    if job.result is not None and job.result.batches:
        _bars(t, job.result, "serving_live")
    if job.state != "running":
        redraw()


def _draw(t: Texts, view: View, trial: ServingTrial) -> None:
    """Draw which batches went on without some trees, and what that did to the predictions."""
    lost = trial.without
    words = t(
        "serving.sentence",
        batches=len(trial.batches),
        lost=len(lost),
        missing=len(lost[0].missing) if lost else 0,
        trees=trial.trees,
        shift=_change(t, view, max((batch.shift for batch in lost), default=0.0)),
    )
    st.markdown(words)
    st.markdown(t("serving.back", batch=trial.whole_again) if trial.whole_again else t("serving.not_back"))
    _bars(t, trial, "serving_done")
    twin: frame.Columns = {
        t("serving.batch"): [batch.number for batch in trial.batches],
        t("serving.answered"): [trial.trees - len(batch.missing) for batch in trial.batches],
        t("serving.shift"): [_change(t, view, batch.shift) for batch in trial.batches],
        t("score.time"): [t.duration(batch.seconds) for batch in trial.batches],
    }
    frame.table_twin(t, twin, t("serving.title"), "serving")
    st.caption(t("serving.caption"))


def _change(t: Texts, view: View, shift: float) -> str:
    """Return a change of a forest's prediction: of a number in the label's unit, of a share in percentage points."""
    if view.task == "number":
        return amount(shift, t.unit(view.federation.label))
    return amount(100 * shift, t("document.points"))


def _bars(t: Texts, trial: ServingTrial, key: str) -> None:
    """Draw trees that answered, batch by batch."""

    def hover(batch: ServedBatch) -> str:
        answering = trial.trees - len(batch.missing)
        return t(
            "serving.hover", batch=batch.number, there=answering, trees=trial.trees, seconds=t.duration(batch.seconds)
        )

    numbers = [batch.number for batch in trial.batches]
    answered = [trial.trees - len(b.missing) for b in trial.batches]
    words = t("serving.alt", batches=len(trial.batches), lost=len(trial.without))
    bars = lines.Bars([n - 0.5 for n in (*numbers, len(numbers) + 1)], answered, colour=palette.GUEST.colour, gap=0.15)
    across = lines.between(t("serving.batch"), 0.5, trial.request.batches + 0.5, bare)
    up = lines.between(t("serving.answered"), 0, trial.trees, bare)
    hovers = [(batch.number, hover(batch)) for batch in trial.batches]
    frame.drawing(lines.drawing([], across, up, words, hovers, bars), key)
