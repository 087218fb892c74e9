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
done = backend.validation.last(model_id)
judged = backend.verdicts.of(model_id)
verdict.draw(t, judged, "validation", judged.of("test", "monitoring"))
if done is not None:
    validation.basis(t, view, done)
    frame.section(t, "validation.chart")
    validation.headroom(t, done)
    frame.section(t, "validation.tests")
    validation.tests(t, view, done)
frame.section(t, "validation.setup")
st.markdown(t("validation.why"))
challenger, time = validation.setup(t, view, session.models())
wanted = ValidationRequest(model_id, challenger, OperatorConfig(time=time))
words = "validation.again" if done else "validation.go"
offers.button(t, view, running, words, lambda: backend.validation.start(wanted))
frame.section(t, "monitoring.title")
watched = backend.monitoring.last(model_id)
if watched is None:
    st.info(t("monitoring.none"), icon=":material/monitoring:")
else:
    monitoring.last(t, view, watched)
frame.section(t, "monitoring.setup")
st.markdown(t("monitoring.why"))
asked = monitoring.setup(t, view, backend.monitoring, backend.samples)
words = "monitoring.again" if watched else "monitoring.go"
offers.button(t, view, watching, words, partial(backend.monitoring.start, asked) if asked else None)
