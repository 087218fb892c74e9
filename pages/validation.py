"""Does the model pass tests whose thresholds were set beforehand?"""

import streamlit as st

from app import session
from app.panels import frame, offers, validation
from backend.services.validation import OperatorConfig, ValidationRequest

t = session.texts()
model_id = frame.model_or_stop(t, "validation")

view, backend = session.view(model_id), session.service()
(running,) = session.works(model_id, "validation")
frame.header(t, "validation", session.notices(), view.federation)
done = backend.validation.last(model_id)
if done is None:
    st.info(t("validation.none"), icon=":material/rule:")
else:
    frame.section(t, "validation.overall")
    validation.verdict(t, view, done)
    frame.section(t, "validation.chart")
    validation.room(t, done)
    frame.section(t, "validation.tests")
    validation.tests(t, view, done)
frame.section(t, "validation.setup")
st.markdown(t("validation.why"))
challenger, time = validation.setup(t, view, session.models())
wanted = ValidationRequest(model_id, challenger, OperatorConfig(time=time))
words = "validation.again" if done else "validation.go"
offers.button(t, view, running, words, lambda: backend.validation.start(wanted))
