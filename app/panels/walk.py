"""Three steps for a first visit: a line above the page that says what to do there and what comes next."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app.panels import links
from app.texts import Texts
from backend.services.roles import ANALYST, OPERATOR, REGULATOR

# role: pages
WALK_STEPS = {
    OPERATOR: ("overview", "score", "privacy"),
    ANALYST: ("overview", "features", "score"),
    REGULATOR: ("overview", "compliance", "report"),
}


def line(t: Texts, role: str, here: str, end: Callable[[], None]) -> None:
    """Draw the step that belongs to this page, if any; `end` is called when the walk is over or skipped."""
    steps = WALK_STEPS[role]
    if here not in steps:
        return
    at = steps.index(here)
    following = steps[at + 1 :]
    with st.container(key="walk", horizontal=True, vertical_alignment="center"):
        if at == 0:
            new = t("walk.new")
        else:
            new = t("walk.step", step=at + 1, steps=len(steps))
        st.markdown(f":material/waving_hand: **{new}** {t(f'walk.{here}')}", width="stretch")
        if following:
            links.page(following[0], t("walk.next", page=t(f"{following[0]}.title")), side="right")
        st.button(t("walk.skip" if following else "walk.done"), on_click=end, key="walk_end", type="tertiary")
