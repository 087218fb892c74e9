"""What matters most to the model, and in which direction?"""

import streamlit as st

from app import session
from app.panels import frame, importance

t = session.texts()
model_id = session.chosen_model()
if model_id is None:
    frame.header(t, "importance", session.notices())
    frame.empty(t, session.service().prepare_demo, session.page("train"))
    st.stop()

view = session.view(model_id)
frame.header(t, "importance", session.notices(), view.federation)
measure, everything = importance.controls(t, view)
left, right = st.columns([7, 4], gap="large")
with left:
    frame.section(t, "importance.by_feature", "gain")
    importance.by_feature(t, view, measure, everything)
with right:
    frame.section(t, "importance.by_party", "cover")
    importance.by_party(t, view, measure)
frame.section(t, "importance.directions_title", "expected_direction")
importance.directions(t, view)
