"""What is shown at an address that no page has."""

import streamlit as st

from app import session
from app.panels import frame, links

t = session.texts()
frame.header(t, "not_found", session.notices())
st.markdown(t("not_found.text"))
links.page("overview", t("not_found.first"), "home")
