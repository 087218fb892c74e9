"""Jobs of the user of the pages, in whatever tab or browser, and the clock of a page that shows how far they are.

Holds no result: jobs and the files that they work on are the service's, by user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import session
from app.view_models import Speed, speed
from backend.errors import GlassleafError

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.services.job_registry import JobStatus, Upload, UserJobs


@dataclass(frozen=True)
class Work:
    """One kind of work that a page offers.

    Attributes
    ----------
    job : Job or None
        The last one that this user started.
    refused : GlassleafError or None
        Why the last start was refused.
    busy : bool
        Whether this or other work of the page is running.
    start : callable
        Takes a function that starts the job.
    redraw : callable
        Draws the page again.
    """

    name: str
    job: Job[Any] | None
    refused: GlassleafError | None
    busy: bool
    start: Callable[[Callable[[], Job[Any]]], None]
    redraw: Callable[[], None]


def _own() -> UserJobs:
    """Return the jobs of the signed-in user; if there is no sign-in, of the home."""
    return session.service().jobs.of(session.decides_as())


def find(name: str) -> Job[Any] | None:
    """Return the job that this user started under `name` in whatever tab or browser, running or ended."""
    return _own().find(name)


def newest(*names: str) -> Job[Any] | None:
    """Return the job that this user started last, of those under some names."""
    started = [status.name for status in known() if status.name in names]
    return find(started[0]) if started else None


def known() -> tuple[JobStatus, ...]:
    """Return all jobs of this user that are known, newest first."""
    return _own().all()


def note_seen(*names: str) -> None:
    """The user has been shown how these have ended."""
    _own().note_seen(*names)


def busy() -> bool:
    """Return whether anything of this user runs."""
    return any(status.state in ("running", "elsewhere") for status in known())


def new_draw() -> None:
    """A page is about to be drawn: no clock is on it yet."""
    st.session_state["ticking"] = st.session_state["started"] = False


def note_clock() -> None:
    """A fragment with a clock of its own is on the page; one page has one, for two could drop what is drawn at a job's end."""
    st.session_state["ticking"] = True


def at_every_tick(act: Callable[[], None]) -> None:
    """Have `act` done whenever a clock of the page moves."""
    st.session_state["at_every_tick"] = act


def tick() -> None:
    """A clock of the page has moved."""
    note_clock()
    act = st.session_state.get("at_every_tick")
    if act is not None:
        act()


def ticking() -> bool:
    """Whether the page has a clock."""
    return bool(st.session_state.get("ticking"))


def started() -> bool:
    """Whether a job was started while this page was drawn: what is above it shows the time before."""
    return bool(st.session_state.get("started"))


def about(name: str) -> Any:
    """Return what the job under `name` was asked for, as :func:`start` was told."""
    return _own().about(name)


def upload(name: str) -> Upload | None:
    """Return the file that the job under `name` works on, as long as it runs."""
    return _own().upload(name)


def running(current: Job[Any] | None) -> Job[Any] | None:
    """Return the job while it runs."""
    if current is not None and current.state == "running":
        return current
    return None


def start(name: str, begin: Callable[[], Job[Any]], about: object = None, upload: Upload | None = None) -> None:
    """Start a job unless one is running under `name`, or keep the reason why it did not start.

    Parameters
    ----------
    about : object, optional
        What was asked for, where a page needs it after a reload: no person's data.
    upload : Upload, optional
        The file that is worked on, for a user who leaves the page and comes back before the job has ended.
    """
    st.session_state.pop(f"refused:{name}", None)
    st.session_state["started"] = True
    try:
        _own().start(
            name, begin, model=name.partition(":")[2] or session.chosen_model() or "", about=about, upload=upload
        )
        session.keep("begun", id(find(name)))
    except GlassleafError as error:
        _own().forget(name)
        st.session_state[f"refused:{name}"] = error


def begun_here(job: Job[Any]) -> bool:
    """Return whether it is the last job that this session started, and this draw is not given up for the next one."""
    return not started() and bool(session.kept("begun") == id(job))


def since(name: str) -> datetime:
    """When the job under `name` was started, in whatever tab or browser; now if that is not known."""
    started = next((status.started for status in known() if status.name == name), "")
    if started:
        return datetime.fromisoformat(started)
    return datetime.now(UTC)


def progress(name: str) -> int:
    """Samples that the job is through with: the highest count so far, for some stages of a round count again."""
    current = find(name)
    return 0 if current is None else current.through


def speeds(model_id: str, guest: str) -> Mapping[str, Speed]:
    """Cipher → what this session's last scoring with that model and cipher took."""
    by_cipher: dict[str, Speed] = session.kept(f"speeds:{model_id}", {})
    for kind in ("score", "people"):
        last = find(kind)
        if last is not None and last.result is not None and last.result.model_id == model_id:
            by_cipher[last.result.cipher] = speed(last.result, guest)
            session.keep(f"speeds:{model_id}", by_cipher)
    return by_cipher


def works(model_id: str, *names: str) -> tuple[Work, ...]:
    """Kinds of work on one model, of which one runs at a time."""
    keys = {name: f"{name}:{model_id}" for name in names}
    jobs = {name: find(key) for name, key in keys.items()}
    busy = any(running(job) for job in jobs.values())
    return tuple(
        Work(name, jobs[name], refused(key), busy, partial(start, key), session.rerun) for name, key in keys.items()
    )


def refused(name: str) -> GlassleafError | None:
    """Return why the last start under `name` was refused; None if it was not."""
    error: GlassleafError | None = st.session_state.get(f"refused:{name}")
    return error
