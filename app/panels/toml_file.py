"""A form as a file: the stored values as TOML to download, and a filled-in file to upload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.panels import upload
from app.panels.reviews import Attempt
from app.texts import Texts

MEGABYTES = 1


@dataclass(frozen=True)
class DetailsPanel:
    """What people add, and how it is kept: by a form or as a file.

    Attributes
    ----------
    parties : mapping of str to str
        Party → its title.
    keep : callable
        Takes fields by name.
    keep_file : callable
        Takes a TOML file's text.
    template : callable
        Gives the TOML file.
    """

    parties: Mapping[str, str]
    keep: Callable[[Mapping[str, Any]], object]
    keep_file: Callable[[str], object]
    template: Callable[[], str]


def panel(t: Texts, part: str, details: DetailsPanel, success: str, attempt: Attempt) -> None:
    """Draw the file of one part of the dashboard, to download and to take over; `success` once it is kept."""
    st.download_button(
        t("details.download"),
        lambda: details.template().encode(),
        f"glassleaf-{part.replace('_', '-')}.toml",
        "application/toml",
        key=f"{part}_toml",
        icon=":material/download:",
        on_click="ignore",
    )
    file = upload.file(t, t("details.upload"), f"{part}_file", MEGABYTES, ["toml"])
    if file is not None and st.button(t("details.take"), key=f"{part}_take", icon=":material/upload_file:"):
        text = file.getvalue().decode("utf-8", errors="replace")
        attempt(success, lambda: details.keep_file(text))
