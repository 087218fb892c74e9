"""What Streamlit's own server reports over HTTP, which needs no sign-in. Knows no page and no service."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime import Runtime


@st.cache_resource(show_spinner=False)
def hide() -> None:
    """Take away what ``/_stcore/metrics`` tells: names of functions, sessions and memory."""
    if Runtime.exists():
        Runtime.instance().stats_mgr._providers_by_family.clear()  # there is no setting for it
