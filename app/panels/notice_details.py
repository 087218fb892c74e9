"""Names and addresses that notices state: what is lacking, a form for it, and the same as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.panels import frame, toml_file
from app.panels.reviews import Attempt
from app.texts import Texts, markdown
from backend.i18n import Text
from backend.services.notice_details import AGENCY, fields_of, label_of

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from backend.services.notice_details import NoticeParty

MAX_CHARS = 2000


@dataclass(frozen=True)
class NoticeDetailsPanel(toml_file.DetailsPanel):
    """What is stored, and how it is changed.

    Attributes
    ----------
    by_party : mapping of str to NoticeParty
        Party → what notices state of it.
    lacking : sequence of (str, str)
        Party and field of what a notice would call not provided.
    """

    by_party: Mapping[str, NoticeParty]
    lacking: Sequence[tuple[str, str]]


def panel(t: Texts, details: NoticeDetailsPanel, attempt: Attempt) -> None:
    """Draw what is lacking, and in a box the form and the file."""
    box = frame.box(t("notice_details.title"), "edit_note", "notice_details_box")
    if box is None:
        return
    with box:
        st.caption(t("notice_details.note"))
        lacking = [_of(t, details, party, name) for party, name in details.lacking]
        if lacking:
            text = t("notice_details.missing", fields=t.listed(lacking))
        else:
            text = t("notice_details.complete")
        st.markdown(text)
        _form(t, details, attempt)
        toml_file.panel(t, "notice_details", details, t("notice_details.saved"), attempt)


def _of(t: Texts, details: NoticeDetailsPanel, party: str, name: str) -> str:
    return t("notice_details.of_party", field=t(f"notice_details.{name}"), party=markdown(details.parties[party]))


def _form(t: Texts, details: NoticeDetailsPanel, attempt: Attempt) -> None:
    with st.form("notice_details", border=False):
        by_party = {}
        titles = [markdown(details.parties[party]) for party in details.by_party]
        for tab, party in zip(st.tabs(titles), details.by_party, strict=True):
            with tab:
                by_party[party] = _fields(t, details, party)
        if st.form_submit_button(t("notice_details.save"), icon=":material/save:", key="notice_details_go"):
            attempt(t("notice_details.saved"), lambda: details.keep(by_party))


def _fields(t: Texts, details: NoticeDetailsPanel, party: str) -> dict[str, Any]:
    details_of_party = details.by_party[party]
    values: dict[str, Any] = {}
    for name in fields_of(details_of_party.reporting_agency is None):
        value = getattr(details_of_party, name)
        row = st.columns(2, vertical_alignment="bottom")
        if isinstance(value, Text):
            values[name] = {
                "en": _input(t, row[0], party, label_of(name, "en"), value.en),
                "zh": _input(t, row[1], party, label_of(name, "zh"), value.zh),
            }
        else:
            values[name] = _input(t, row[0], party, name, value)
    if details_of_party.reporting_agency is not None:
        values[AGENCY] = st.checkbox(
            t(f"notice_details.{AGENCY}"), details_of_party.reporting_agency, f"notice_details_{party}_{AGENCY}"
        )
    return values


def _input(t: Texts, place: DeltaGenerator, party: str, name: str, value: str) -> str:
    return place.text_input(t(f"notice_details.{name}"), value, MAX_CHARS, f"notice_details_{party}_{name}")
