"""What happens when a person is scored on data that nobody can read?"""

from functools import partial

import streamlit as st

from app import session, user_jobs
from app.panels import demonstration, frame
from backend.errors import GlassleafError

t = session.texts()
model_id = frame.model_or_stop(t, "demonstration")

view, backend = session.view(model_id), session.service()
start = session.linked(demonstration.LINK, demonstration.STEPS) or demonstration.STEPS[0]
frame.header(t, "demonstration", session.notices(), view.federation)
demonstration.make_room()
# Hosts at companies of their own count every question: there the audience is shown one that was asked for.
key = f"demonstration:{model_id}"
ahead = view.federation.link is None and view.federation.synthetic
if ahead and user_jobs.find(key) is None:
    user_jobs.start(key, partial(backend.demonstration.start, model_id))


@st.fragment(run_every=0.5 if user_jobs.running(user_jobs.find(key)) else None)
def deck() -> None:
    """The component, and again whenever the run has come further."""
    job = user_jobs.find(key)
    shown = job.result if job is not None else None
    look = None
    if ahead and shown is not None:
        look = partial(backend.demonstration.look_as, model_id, person=shown.person)
    made = demonstration.steps(t, view, shown, look)
    data = demonstration.deck(t, start, made, demonstration.parties_of(t, view), session.place("overview"))
    demonstration.draw(t, data)
    if job is not None and session.once("demonstrated", (id(job), job.state)) and job.state != "running":
        st.rerun()


try:
    deck()
except GlassleafError as error:
    frame.problem(t, error)
