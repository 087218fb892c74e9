"""The jobs of this user, above every page: what runs and how far, what has ended unseen, and what a restart did to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from app import session, user_jobs
from app.panels import frame, links, waits
from app.texts import Texts, percent
from backend.errors import ApprovalPending

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from backend.services.job_registry import JobStatus

# kind of work → the page that starts it
PAGE_OF_KIND = {
    "score": "score",
    "people": "people",
    "reasons": "score",
    "screen": "screen",
    "train": "train",
    "import": "own_data",
    "federation": "own_data",
    "attacks": "attack_lab",
    "protocols": "protocols",
    "serving": "protocols",
    "leak": "privacy",
    "frontier": "privacy",
    "worth": "importance",
    "shap": "importance",
    "means": "importance",
    "card": "model_card",
    "evidence": "compliance",
    "retrain": "compliance",
    "alternatives": "compliance",
    "difference": "compare_models",
    "validation": "validation",
    "monitoring": "validation",
    "report": "report",
    "audit": "audit",
}
ANY_MODEL = ("screen", "train", "attacks", "import", "federation")  # their pages are about no chosen model
# what they find is in the Guest's store
STORED_KINDS = (
    "federation", "screen", "retrain", "alternatives", "evidence", "worth", "means", "card", "difference", "validation", "monitoring",
)  # fmt: skip
STATE_ICONS = {
    "running": "progress_activity",
    "elsewhere": "progress_activity",
    "done": "check_circle",
    "failed": "report",
    "cancelled": "stop_circle",
    "interrupted": "power_off",
}
RUNNING_STATES = ("running", "elsewhere")
ENDED = (files("assets") / "ended.js").read_text(encoding="utf-8")
REFRESH_SECONDS = 1.0  # seconds between two looks
AWAY = 3.0  # seconds: a user who waits longer may look at another tab
LONG_JOB_SECONDS = 20.0  # seconds: a user who waits longer has gone elsewhere
TOAST_SECONDS = 12  # seconds that the end of a long job is shown


class Places(NamedTuple):
    """Where lines stand, and where they move: in one place for both, lines of an earlier run would stay below the others."""

    still: DeltaGenerator
    live: DeltaGenerator


def draw(t: Texts, page: str, model: str | None) -> tuple[Places, frozenset[str]]:
    """What `page`, on which `model` is chosen, does not show itself: before the page, which may stop the run.

    Returns the places of the lines, and the names of the jobs in them.
    """
    every = [job for job in user_jobs.known() if job.kind in PAGE_OF_KIND]
    with st.empty():
        _announce(t, page)
    session.keep("watched", tuple(job.name for job in every if job.state == "running"))
    user_jobs.at_every_tick(partial(_announce, t, page))
    jobs = [job for job in every if not job.seen]
    of_page = [job for job in jobs if _of(job, page, model)]
    names_seen = (
        job.name for job in of_page if (job.job is not None or job.state == "cancelled") and not _waiting(job)
    )
    user_jobs.note_seen(*names_seen)
    for job in of_page:
        if job.job is None and job.state != "cancelled":
            _note(t, job)
    others = [job for job in jobs if not (_of(job, page, model) or session.presenting())]
    ended = [job for job in others if job.name in session.kept("announced", ()) and job.state not in RUNNING_STATES]
    if ended:
        st.set_page_config(page_title=t(f"jobs.tab_{ended[0].state}", kind=t(f"jobs.kind_{ended[0].kind}")))
    places = Places(st.empty(), st.container())
    with places.still.container():
        _lines(t, others, still=True)
    return places, frozenset(job.name for job in others)


def _announce(t: Texts, page: str) -> None:
    """Tell that a job has ended which this session saw running: the tab's title while the tab is hidden; a long one links to what it found.

    Its own page shows what it found itself.
    """
    watched = {name: user_jobs.find(name) for name in session.kept("watched", ())}
    ended = {name: job for name, job in watched.items() if job is not None and job.state != "running"}
    session.keep("watched", tuple(name for name in watched if name not in ended))
    for name, job in ended.items():
        kind, _, models = name.partition(":")
        page_shows_it = PAGE_OF_KIND[kind] == page or session.presenting()
        if job.seconds < AWAY or job.cancelled() or isinstance(job.failure, ApprovalPending):
            continue
        title = json.dumps(t(f"jobs.tab_{job.state}", kind=t(f"jobs.kind_{kind}")))
        mark = "<span class=glassleaf-ended></span>"
        st.html(f"{mark}<script>{ENDED}({title})</script>", unsafe_allow_javascript=True)
        if job.seconds < LONG_JOB_SECONDS or page_shows_it:
            continue
        session.keep("announced", (*session.kept("announced", ()), name))
        model_ids = {record.id for record in session.models()}
        if model_ids & set(models.split("~")):
            place = {"model": models.split("~")[0]}
        else:
            place = {}
        address = session.address(PAGE_OF_KIND[kind], **session.place(PAGE_OF_KIND[kind], **place))
        words = {"kind": t(f"jobs.kind_{kind}"), "seconds": t.duration(job.seconds), "address": address}
        icon = f":material/{STATE_ICONS[job.state]}:"
        st.toast(t(f"jobs.told_{job.state}", **words), icon=icon, duration=TOAST_SECONDS)


def follow(t: Texts, places: Places, names: Collection[str]) -> None:
    """Let the lines follow their jobs if the page has no clock of its own: two could drop what is drawn at a job's end."""
    jobs = [job for job in user_jobs.known() if job.name in names and not job.seen]
    if user_jobs.ticking() or not any(job.state in RUNNING_STATES for job in jobs):
        return
    user_jobs.note_clock()
    places.still.empty()
    with places.live:
        st.fragment(_follow, run_every=REFRESH_SECONDS)(t, names, user_jobs.known, session.rerun)


def _of(job: JobStatus, page: str, model: str | None) -> bool:
    """Return whether the page shows the job itself."""
    return PAGE_OF_KIND[job.kind] == page and (job.kind in ANY_MODEL or not job.model or model in _models(job))


def _models(job: JobStatus) -> list[str]:
    """Ids of the models that a job is about: two if it compares them."""
    return job.model.split("~")


def _follow(
    t: Texts, names: Collection[str], read: Callable[[], Sequence[JobStatus]], redraw: Callable[[], None]
) -> None:
    """Draw the lines once a second; `redraw` draws the whole page once one has ended."""
    user_jobs.tick()
    jobs = [job for job in read() if job.name in names and not job.seen]
    _lines(t, jobs)
    if not any(job.state in RUNNING_STATES for job in jobs):
        redraw()


def _lines(t: Texts, jobs: Sequence[JobStatus], *, still: bool = False) -> None:
    if not jobs:
        return
    model_ids = {record.id for record in session.models()}
    with st.container(horizontal=True, gap="medium", key="jobs_tray" if still else "jobs_tray_live"):
        for job in jobs:
            words = f"**{t(f'jobs.kind_{job.kind}')}** · {_state(t, job, still)}"
            if model_ids.issuperset(_models(job)):
                place = {"model": _models(job)[0]}
            else:
                place = {}
            links.page(
                PAGE_OF_KIND[job.kind], words, "hourglass_top" if _waiting(job) else STATE_ICONS[job.state], place
            )


def _waiting(status: JobStatus) -> bool:
    """Return whether it waits for a Host's operator: told until the same is asked again."""
    return status.job is not None and isinstance(status.job.failure, ApprovalPending)


def _state(t: Texts, status: JobStatus, still: bool) -> str:
    """Return how far a job is, in words."""
    job = status.job
    waiting = "" if job is None else waits.state(t, job)
    if waiting:
        return waiting
    if status.state != "running" or job is None:
        return t(f"jobs.{status.state}")
    if job.cancelled():
        return t("stage.cancelling")
    share = job.eta.share
    seconds_left = job.eta.left()
    if not share:
        return t("jobs.running")
    if still:
        return t("jobs.drawn", share=percent(round(share, 2)))
    words = t("jobs.share", share=percent(round(share, 2)))
    return words if seconds_left is None else f"{words} · {frame.time_left(t, seconds_left)}"


def _note(t: Texts, job: JobStatus) -> None:
    """Draw what became of a job that this process does not hold, until its user has read it."""
    words = {"kind": t(f"jobs.kind_{job.kind}"), "started": _when(job.started)}
    key = f"jobs.{job.state}_note"
    if job.state == "done":
        result_exists = job.kind == "train" and job.result in {record.id for record in session.models()}
        result_exists = result_exists or user_jobs.find(job.name) is not None
        if job.kind in STORED_KINDS or result_exists:
            key = "jobs.kept_note"
        else:
            key = "jobs.lost_note"
        if job.kind in ("score", "people"):
            key = "jobs.waits_note" if job.waits else "jobs.lost_note"
    elif job.state == "interrupted" and job.kind in ("score", "people", "reasons"):
        key = "jobs.interrupted_score_note"
    icon = f":material/{STATE_ICONS[job.state]}:"
    row: dict[str, Any] = {"horizontal": True, "vertical_alignment": "center", "horizontal_alignment": "distribute"}
    with st.container(border=True, key=f"jobs_note_{job.name}", **row):
        st.markdown(f"{icon} {t(key, **words)}", width="content")
        if job.kind == "train" and key == "jobs.kept_note":
            links.to_model(job.result, t("train.open"))
        if job.state not in RUNNING_STATES:
            st.button(t("jobs.read"), key=f"jobs_read_{job.name}", on_click=user_jobs.note_seen, args=(job.name,))
    if job.failure is not None:
        frame.problem(t, job.failure)


def _when(time: str) -> str:
    """Return the time of day in UTC, with the day if it is not today."""
    then = datetime.fromisoformat(time)
    today = then.date() == datetime.now(UTC).date()
    return then.strftime("%H:%M UTC" if today else "%Y-%m-%d %H:%M UTC")
