"""Why score this way and not another?"""

import streamlit as st

from app import session, user_jobs
from app.panels import frame, protocols, race, run, serving
from backend.services.protocol_comparison import BATCHES, ComparisonRequest

t = session.texts()
model_id = frame.model_or_stop(t, "protocols")

view = session.view(model_id)
backend = session.service()
frame.header(t, "protocols", session.notices(), view.federation)
job = user_jobs.find("protocols")
running = user_jobs.running(job)
setup_column, race_column = st.columns([5, 8], gap="large")
with setup_column:
    frame.section(t, "protocols.setup", "transcript")
    setup = protocols.setup(t)
    if st.button(
        t("protocols.go"), type=frame.emphasis(), icon=":material/flag:", disabled=bool(running), key="protocols_go"
    ):
        request = ComparisonRequest(
            model_id,
            setup.samples,
            shape=setup.shape,
            batches=BATCHES,
            cipher=setup.cipher,
            key_bits=setup.key_bits,
        )
        user_jobs.start("protocols", lambda: backend.protocol_comparison.start(request))
        job = user_jobs.find("protocols")
        running = user_jobs.running(job)
so_far = job.result if job is not None else None
with race_column:
    frame.section(t, "protocols.race", "simulated_time")
    link = protocols.link(t)
    fits = so_far is not None and (so_far.shape is not None or so_far.model_id == model_id)
    comparison = so_far.over(link) if so_far is not None and fits else None
    frame.refused(t, "protocols")
    if comparison is not None:
        race.draw(t, comparison)
    elif running:
        protocols.follow(t, running, so_far, session.rerun)
    elif job is None:
        st.info(t("protocols.not_yet"), icon=":material/flag:")
    elif so_far is not None:
        st.info(t("protocols.other_model"), icon=":material/flag:")
    else:
        run.ended(t, job, "protocols.cancelled")
    if job is not None and so_far is not None and job.state == "failed":
        run.ended(t, job)
if comparison is not None:
    frame.section(t, "protocols.by_size", "batch")
    if running:
        protocols.follow(t, running, so_far, session.rerun)
    elif job is not None and job.state == "cancelled":
        st.info(t("protocols.cancelled_late"), icon=":material/stop_circle:")
    if len(comparison.points) > 1:
        race.batches(t, comparison)
    frame.section(t, "protocols.figures", "hop")
    protocols.figures(t, comparison)
    frame.section(t, "protocols.learned", "direction")
    protocols.learned(t, view, comparison)
if view.record.algorithm == "forest":
    frame.section(t, "serving.title", "forest")
    (work,) = user_jobs.works(model_id, "serving")
    serving.offer(t, view, work, backend.forest_serving.start)
