"""What does a word mean, and how do I find my way?"""

import streamlit as st

from app import glossary, session
from app.panels import frame, help  # noqa: A004 (the page's own panel)

t = session.texts()
session.adopt("term", "help_typed")
frame.header(t, "help", session.notices())
frame.section(t, "help.glossary")
session.announce("term", help.glossary(t, glossary.terms(), "help_typed"))
start_column, keyboard_column = st.columns(2, gap="large")
with start_column:
    frame.section(t, "help.start")
    help.first_steps(t, session.begin_walk)
with keyboard_column:
    frame.section(t, "help.keyboard")
    help.keyboard(t)
model_id = session.chosen_model()
view = session.view(model_id) if model_id else None
frame.fold(
    t("help.about"),
    "info",
    "help_about_box",
    lambda: help.about(t, view, session.service().federations.sha256(view.record.federation) if view else ""),
)
