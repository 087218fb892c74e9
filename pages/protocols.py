"""Why score this way and not another?"""

import streamlit as st

from app import session
from app.panels import frame, protocols
from backend.service import ComparisonRequest

t = session.texts()
model_id = session.chosen_model()
if model_id is None:
    frame.header(t, "protocols", session.notices())
    frame.empty(t, session.service().prepare_demo, session.page("train"))
    st.stop()

view, backend = session.view(model_id), session.service()
frame.header(t, "protocols", session.notices(), view.federation)
job = session.job("protocols")
running = job is not None and job.state == "running"
left, right = st.columns([5, 8], gap="large")
with left:
    frame.section(t, "protocols.setup", "transcript")
    chosen = protocols.setup(t)
    if st.button(
        t("protocols.go"), type=frame.emphasis(), icon=":material/flag:", disabled=running, key="protocols_go"
    ):
        request = ComparisonRequest(model_id, chosen.samples, chosen.cipher, chosen.key_bits)
        session.start("protocols", lambda: backend.start_comparison(request))
        session.rerun()
    frame.section(t, "protocols.network", "simulated_time")
    link = protocols.link(t)
done = job.result.over(link) if job is not None and job.result is not None else None
with right:
    frame.section(t, "protocols.race", "simulated_time")
    if session.refused("protocols"):
        frame.problem(t, session.refused("protocols"))
    if running:
        protocols.follow(t, job, session.rerun)
    elif job is None:
        st.info(t("protocols.not_yet"), icon=":material/flag:")
    elif job.state == "cancelled":
        st.info(t("protocols.cancelled"), icon=":material/stop_circle:")
    elif done is None:
        frame.problem(t, job.error or "")
    elif done.model_id != model_id:
        done = None
        st.info(t("protocols.other_model"), icon=":material/flag:")
    else:
        protocols.race(t, done)
if done is not None:
    frame.section(t, "protocols.figures", "hop")
    protocols.figures(t, done)
    frame.section(t, "protocols.learned", "direction")
    protocols.learned(t, view, done)
