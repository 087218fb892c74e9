"""Which data are worth having, before anything is trained?"""

import streamlit as st

from app import session, user_jobs
from app.panels import frame, run, screening
from backend.services.screening import ScreeningRequest

t = session.texts()
frame.header(t, "screen", session.notices())
backend = session.service()
federations = {federation.name: federation for federation in backend.federations.all()}
if not federations:
    frame.empty(t, backend.training.start_demo)
    st.stop()

job = user_jobs.find("screen")
running = user_jobs.running(job)
setup, cost = st.columns(2, gap="large")
with setup:
    frame.section(t, "screen.setup", "federation")
    screening.federation(t, list(federations.values()), session.remember("screen_federation", list(federations)))
    federation = federations[session.kept("screen_federation")]
    before_date, since_date = screening.dates(t, federation)
request = ScreeningRequest(federation.name, before=before_date, since=since_date)


def begin() -> None:
    """Start a screening."""
    user_jobs.start("screen", lambda: backend.screening.start(request), about=federation.name)


with cost:
    frame.section(t, "screen.cost")
    screening.cost(t, federation, backend.screening.price(federation.name))
    icon = ":material/query_stats:"
    pressed = st.button(t("screen.go"), type=frame.emphasis(), icon=icon, disabled=bool(running), key="screen_go")
    if pressed:
        begin()
        job = user_jobs.find("screen")
        running = user_jobs.running(job)
    frame.refused(t, "screen")
    if running:
        frame.follow(t, running, lambda stage: t(f"stage.{stage}"), "screen", session.rerun)
    elif job is not None and job.result is None:
        run.ended(t, job, again=begin)

screening_result = backend.screening.last(federation.name)
frame.section(t, "screen.result", "information_value")
if screening_result is None:
    st.info(t("screen.none"), icon=":material/query_stats:")
else:
    screening.result(t, federation, screening_result)
