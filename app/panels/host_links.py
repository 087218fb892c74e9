"""Which Hosts at their own companies a Guest reaches, since when, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from app.texts import Texts, markdown

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.protocols.transport.wire import LinkState


def draw(t: Texts, federation: Federation, links: Mapping[str, LinkState]) -> None:
    """Draw a line for each Host."""
    lines = []
    for link in links.values():
        mark = ":green[●]" if link.up else ":gray[○]"
        state = link.remark.sentence(t.language, lambda name: t.party(federation, name))
        lines.append(f"- {mark} {markdown(state)}")
    st.markdown("\n".join(lines))
