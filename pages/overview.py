"""What is this model, who is in it, can I use it?"""

import streamlit as st

from app import session
from app.panels import frame, parties

t = session.texts()
model_id = frame.model_or_stop(t, "overview")

view = session.view(model_id)
session.service().federations.warm_up(view.record.federation)
frame.header(t, "overview", session.notices(), view.federation)
left, right = st.columns([6, 5], gap="large")
with left:
    frame.section(t, "overview.parties", "federation")
    parties.network(t, view)
with right:
    frame.section(t, "overview.card", "model")
    parties.card(t, view)
frame.section(t, "overview.verdicts")
parties.tiles(t, view)
frame.section(t, "overview.who_holds", "host")
parties.holdings(t, view)
