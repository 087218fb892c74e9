"""What the operator alone can say about a model: a form for it, and the same as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.panels import frame, toml_file
from app.panels.reviews import Attempt
from app.texts import Texts, markdown
from backend.services.report_details import BY_PARTY, FIELD_GROUPS

if TYPE_CHECKING:
    from backend.services.report_details import DetailsSection

MAX_CHARS = 2000
ONE_LINE_FIELDS = ("owner", "tier", "period", "validator")  # that one line holds


@dataclass(frozen=True)
class ReportDetailsPanel(toml_file.DetailsPanel):
    """What is stored, and how it is changed.

    Attributes
    ----------
    lacking : sequence of str
        Fields that were not provided.
    others : mapping of str to str
        Other models of the federation → what they are called.
    """

    section: DetailsSection | None
    lacking: Sequence[str]
    others: Mapping[str, str]


def panel(t: Texts, details: ReportDetailsPanel, attempt: Attempt) -> None:
    """Draw how much is provided, a form for the rest, and the same as a file."""
    lacking = len(details.lacking)
    st.markdown(t("details.state", n=lacking) if lacking else t("details.complete"))
    if lacking:
        st.caption(t.listed([markdown(t(f"details.{name}")) for name in details.lacking]))
    box = frame.box(t("details.form"), "edit_note", "details_box")
    if box is None:
        return
    with box:
        _form(t, details, attempt)
        toml_file.panel(t, "report_details", details, t("details.saved"), attempt)


def _form(t: Texts, details: ReportDetailsPanel, attempt: Attempt) -> None:
    st.caption(t("details.form_note"))
    with st.form("details", border=False):
        values: dict[str, Any] = {}
        for group, names in FIELD_GROUPS.items():
            st.subheader(t(f"details.group_{group}"), anchor=False)
            values |= {name: _field(t, details, name) for name in names}
        for name in BY_PARTY:
            st.subheader(t(f"details.{name}"), anchor=False)
            values[name] = _by_party(t, details, name)
        if st.form_submit_button(t("details.save"), icon=":material/save:", key="details_go"):
            attempt(t("details.saved"), lambda: details.keep(values))


def _field(t: Texts, details: ReportDetailsPanel, name: str) -> str:
    text = str(getattr(details.section, name, ""))
    key = f"details_{name}"
    title = t(f"details.{name}")
    why = t(f"details.{name}_help")
    if name == "challenger":
        models = ["", *details.others]
        at = models.index(text) if text in models else 0
        challenger: str = st.selectbox(
            title, models, at, lambda model_id: details.others.get(model_id, t("details.no_choice")), key, why
        )
        return challenger
    if name in ONE_LINE_FIELDS:
        return st.text_input(title, text, MAX_CHARS, key, help=why)
    return st.text_area(title, text, 80, MAX_CHARS, key, help=why)


def _by_party(t: Texts, details: ReportDetailsPanel, name: str) -> dict[str, str]:
    texts_by_party: Mapping[str, str] = getattr(details.section, name, {})
    return {
        party: st.text_area(
            t("details.of_party", field=t(f"details.{name}"), party=markdown(title)),
            texts_by_party.get(party, ""),
            80,
            MAX_CHARS,
            f"details_{name}_{party}",
            help=t(f"details.{name}_help"),
        )
        for party, title in details.parties.items()
    }
