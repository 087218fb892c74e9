"""What would a regulator object to?"""

import streamlit as st

from app import session
from app.panels import compliance, frame, run
from backend.service import ProxyRequest

t = session.texts()
model_id = session.chosen_model()
if model_id is None:
    frame.header(t, "compliance", session.notices())
    frame.empty(t, session.service().prepare_demo, session.page("train"))
    st.stop()

backend, name = session.service(), f"evidence:{model_id}"
job = session.job(name)
running = job is not None and job.state == "running"
view = compliance.with_evidence(
    session.view(model_id), backend.compliance(model_id)
)  # after the job's state: never older
frame.header(t, "compliance", session.notices(), view.federation)
compliance.summary(t, view)
frame.section(t, "compliance.findings", "flag")
compliance.findings(t, view, job.result if job is not None else None)
compliance.set_aside(t, view)
compliance.not_in_force(t, view)
if view.compliance.findings:
    frame.section(t, "compliance.measure", "evidence")
    form, progress = st.columns(2, gap="large")
    with form:
        request = compliance.request(
            t,
            view,
            session.remember("evidence_feature", compliance.flagged(view)),
            session.remember("evidence_kind", compliance.measurable(view)),
        )
        if st.button(
            t("compliance.measure_go"),
            type=frame.emphasis(),
            icon=":material/science:",
            disabled=running,
            key="evidence_go",
        ):
            session.start(
                name,
                lambda: (
                    backend.start_proxies(request)
                    if isinstance(request, ProxyRequest)
                    else backend.start_disparity(request)
                ),
            )
            session.rerun()
    with progress:
        if session.refused(name):
            frame.problem(t, session.refused(name))
        if job is not None and running:
            run.train(t, view.federation, job, "", session.rerun)
        elif job is not None:
            compliance.measured(t, view, job)
frame.section(t, "compliance.contradictions_title", "expected_direction")
compliance.contradictions(t, view)
frame.section(t, "compliance.duties_title")
compliance.duties(t, view)
compliance.packs(t, view)
st.caption(t("compliance.limits"))
