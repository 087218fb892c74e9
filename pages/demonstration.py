"""What happens when a person is scored on data that no other party can read?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import session, user_jobs
from app.panels import demonstration, frame
from backend.errors import ApprovalPending, GlassleafError, PartyUnreachable
from backend.services.demonstration import Shown, to_be_made

if TYPE_CHECKING:
    from backend.jobs import Job

t = session.texts()
backend = session.service()
model_id = session.chosen_model()
federations = {federation.name: federation for federation in backend.federations.all()}
demo = user_jobs.find("demo")
to_prepare = model_id is None and not federations and demo is None and session.opened_by_command()
if model_id is None and not federations and user_jobs.running(demo) is None and not to_prepare:
    frame.model_or_stop(t, "demonstration")
# The first step needs no table: it is shown while they are written.
federation = next(iter(federations.values()), None) or to_be_made()
view = None
if model_id is not None:
    view = session.view(model_id)
    federation = view.federation
start = session.linked(demonstration.STEP_LINK, demonstration.DECK_STEPS) or demonstration.DECK_STEPS[0]
frame.header(t, "demonstration", session.notices(), federation)
demonstration.make_room()
linked = federation.link is not None
simulated = federation.synthetic and not linked
key = f"demonstration:{model_id}"
AGAIN_SECONDS = 4.0  # after which Hosts whose operators have not decided are asked once more
if simulated and model_id is not None and user_jobs.find(key) is None:
    user_jobs.start(key, partial(backend.demonstration.start, model_id))


def begin() -> None:
    """Ask the Hosts: for a first training, or once there is a model for a score."""
    if model_id is None:
        from backend.services.training import FIRST_PARAMETERS, TrainingRequest  # noqa: PLC0415 (the first step needs neither)

        request = TrainingRequest(federation.name, FIRST_PARAMETERS)
        user_jobs.start("train", lambda: backend.training.start(request), about=request)
    else:
        last = user_jobs.find(key)
        previous = last.result if last is not None else None
        user_jobs.start(key, partial(backend.demonstration.start, model_id, previous))


def asked() -> Job[Any] | None:
    """Return what was asked of the Hosts last; None if nothing was."""
    return user_jobs.find("train" if model_id is None else key)


def pending(job: Job[Any]) -> bool:
    """Return whether it has ended at an operator who has not decided: whole, or at the reasons."""
    if job.state == "running":
        return False
    lacking = job.result.failed.values() if isinstance(job.result, Shown) else ()
    return any(isinstance(why, ApprovalPending) for why in (job.failure, *lacking))


def in_the_making() -> str:
    """Return what is made before a person can be scored in a simulation; empty once there is a model."""
    if model_id is not None:
        return ""
    return t("demonstration.waits_model" if federations else "demonstration.waits_companies")


def ahead() -> demonstration.Ahead:
    """Return what is missing between the first steps and a run."""
    if not linked:
        return demonstration.Ahead(waiting=in_the_making())
    try:
        links = demonstration.links(t, backend.federations.links(federation.name))
    except PartyUnreachable as error:
        return demonstration.Ahead(waiting=frame.explained(t, error))
    job = asked()
    why = job.failure if job is not None else None
    if job is not None and job.state == "running":
        return demonstration.Ahead(links, t("demonstration.waits_model") if model_id is None else "")
    if isinstance(why, ApprovalPending):
        host = t.party(federation, why.host)
        waits = t("demonstration.waits_approval", host=host, number=why.number)
        return demonstration.Ahead(links, waits, decides=why.host)
    if why is not None:
        return demonstration.Ahead(links, frame.explained(t, why), t("demonstration.ask_again"))
    names = t.listed([t.party(federation, host.name) for host in federation.hosts])
    words = "demonstration.ask_training" if model_id is None else "demonstration.ask_score"
    return demonstration.Ahead(links, t(words, hosts=names), t("demonstration.ask_now"))


def unfinished() -> bool:
    """Return whether something may change without the presenter."""
    running = any(user_jobs.running(user_jobs.find(name)) is not None for name in ("demo", "train", key))
    return running or linked or model_id is None


def stands() -> tuple[object, ...]:
    """Return what the page as a whole follows from: the models, the companies and the state of the run."""
    job = user_jobs.find(key)
    names = tuple(federation.name for federation in backend.federations.all())
    return len(session.models()), names, job.state if job is not None else ""


stood = stands()


@st.fragment(run_every=1.0 if unfinished() else None)
def deck() -> None:
    """Draw the component, and again whenever the run has come further."""
    job = user_jobs.find(key) if model_id is not None else None
    run = job.result if job is not None else None
    look = None
    if simulated and model_id is not None and run is not None:
        look = partial(backend.demonstration.look_as, model_id, person=run.person)
    steps = demonstration.steps(t, federation, view, run, look, ahead())
    names = () if view is None else (view.model.guest, *view.model.hosts)
    parties = demonstration.parties_of(t, federation, names)
    if demonstration.draw(t, demonstration.deck(t, start, steps, parties, session.place("overview"))):
        begin()
        st.rerun()
    waiting = asked()
    if linked and waiting is not None and pending(waiting) and waiting.seconds_ago > AGAIN_SECONDS:
        begin()  # an operator may have decided meanwhile; a question for approval is not counted
    if stands() != stood:
        st.rerun()


try:
    deck()
except GlassleafError as error:
    frame.problem(t, error)
if to_prepare:
    user_jobs.start("demo", backend.training.start_demo)  # the first step is drawn by now, and waits for nothing of it
