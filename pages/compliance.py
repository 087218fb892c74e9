"""What would a regulator object to?"""

import streamlit as st

from app import session
from app.panels import compliance, frame

t = session.texts()
model_id = session.chosen_model()
if model_id is None:
    frame.header(t, "compliance", session.notices())
    frame.empty(t, session.service().prepare_demo, session.page("train"))
    st.stop()

view = session.view(model_id)
frame.header(t, "compliance", session.notices(), view.federation)
compliance.summary(t, view)
frame.section(t, "compliance.findings", "flag")
compliance.findings(t, view)
compliance.set_aside(t, view)
compliance.not_in_force(t, view)
frame.section(t, "compliance.contradictions_title", "expected_direction")
compliance.contradictions(t, view)
frame.section(t, "compliance.duties_title")
compliance.duties(t, view)
compliance.packs(t, view)
st.caption(t("compliance.limits"))
