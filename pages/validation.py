"""Does the model pass its pre-registered tests?"""

from functools import partial

import streamlit as st

from app import session, user_jobs
from app.panels import frame, monitoring, offers, validation, verdict
from backend.services.validation import OperatorConfig, ValidationRequest

t = session.texts()
model_id = frame.model_or_stop(t, "validation")

view = session.view(model_id)
backend = session.service()
running, watching = user_jobs.works(model_id, "validation", "monitoring")
frame.header(t, "validation", session.notices(), view.federation)
validation_run = backend.validation.last(model_id)
judged = backend.verdicts.of(model_id)
verdict.draw(t, judged, "validation", judged.of("test", "monitoring"))
if validation_run is not None:
    validation.basis(t, view, validation_run)
    frame.section(t, "validation.chart")
    validation.headroom(t, validation_run)
    frame.section(t, "validation.tests")
    validation.tests(t, view, validation_run)
frame.section(t, "validation.setup")
st.markdown(t("validation.why"))
challenger, time = validation.setup(t, view, session.models())
request = ValidationRequest(model_id, challenger, OperatorConfig(time=time))
words = "validation.again" if validation_run else "validation.go"
offers.button(t, view, running, words, lambda: backend.validation.start(request))
frame.section(t, "monitoring.title")
monitoring_run = backend.monitoring.last(model_id)
if monitoring_run is None:
    st.info(t("monitoring.none"), icon=":material/monitoring:")
else:
    monitoring.last(t, view, monitoring_run)
frame.section(t, "monitoring.setup")
st.markdown(t("monitoring.why"))
monitoring_request = monitoring.setup(t, view, backend.monitoring, backend.samples)
words = "monitoring.again" if monitoring_run else "monitoring.go"
offers.button(
    t, view, watching, words, partial(backend.monitoring.start, monitoring_request) if monitoring_request else None
)
