"""A dashboard of titles alone: what a page costs before it says anything (:mod:`bench.pages`)."""

import streamlit as st


def draw() -> None:
    """A page."""
    st.title(here.title)


pages = [st.Page(draw, title=name, url_path=name.lower()) for name in ("Start", "Help", "Empty")]
here = st.navigation(pages, position="hidden")
with st.sidebar, st.container(key="navigation"):
    for page in pages:
        st.page_link(page)
here.run()
