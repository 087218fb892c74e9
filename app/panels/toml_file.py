"""A form as a file: what stands as TOML to download, and one that was filled in to take over."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app.panels import upload
from app.panels.reviews import Attempt
from app.texts import Texts

MEGABYTES = 1


def panel(
    t: Texts, part: str, template: Callable[[], str], keep: Callable[[str], object], success: str, attempt: Attempt
) -> None:
    """Draw what `template` gives, and what `keep` takes, of one part of the dashboard; `success` once it is kept."""
    st.download_button(
        t("details.download"),
        lambda: template().encode(),
        f"glassleaf-{part.replace('_', '-')}.toml",
        "application/toml",
        key=f"{part}_toml",
        icon=":material/download:",
        on_click="ignore",
    )
    file = upload.file(t, t("details.upload"), f"{part}_file", MEGABYTES, ["toml"])
    if file is not None and st.button(t("details.take"), key=f"{part}_take", icon=":material/upload_file:"):
        text = file.getvalue().decode("utf-8", errors="replace")
        attempt(success, lambda: keep(text))
