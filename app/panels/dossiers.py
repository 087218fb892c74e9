"""What Hosts document and sign about their columns: what there is, what is lacking, and a place to hand one in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import frame, palette, upload
from app.panels.reviews import Attempt
from app.texts import Texts, markdown
from app.view_models import View

if TYPE_CHECKING:
    from backend.reports.schema import DossierColumn, DossierSection

MEGABYTES = 2


def panel(
    t: Texts,
    view: View,
    dossiers: Sequence[DossierSection],
    lacking: Sequence[str],
    attempt: Attempt,
    take: Callable[[str, str], object],
) -> None:
    """Host by Host: its dossier as a table, or that it gave none; `take` gets a file's text and a public key."""
    for host in lacking:
        host_name = palette.name(t, view.federation, host)
        st.caption(f":material/rule: {t('dossier.incomplete', host=host_name)}")
    for dossier in dossiers:
        title = palette.plain(t, view.federation, dossier.host)
        line = t("dossier.here", host=title, day=dossier.day, n=len(dossier.columns))
        with st.expander(markdown(line), icon=":material/verified:", key=f"dossier_{dossier.host}"):
            frame.data(_columns(t, view, dossier.since(view.record.id).columns), f"dossier_table_{dossier.host}", line)
            st.caption(markdown(t("dossier.bands_note")))
            st.code(dossier.public_key, language=None)
    with st.expander(t("dossier.upload"), icon=":material/upload_file:", key="dossier_upload_box"):
        file = upload.file(t, t("dossier.upload"), "dossier_file", MEGABYTES, ["json"])
        key = st.text_input(t("dossier.key"), key="dossier_key", max_chars=2000)
        if st.button(t("dossier.take"), key="dossier_take", icon=":material/verified:", disabled=file is None):
            if file:
                text = file.getvalue().decode("utf-8", errors="replace")
            else:
                text = ""
            attempt(t("dossier.taken"), lambda: take(text, key.strip()))


def _columns(t: Texts, view: View, columns: Sequence[DossierColumn]) -> frame.Columns:
    features = {feature.name: feature for _, feature in view.model.dictionary}

    def about(share: float) -> str:
        return t("dossier.about", share=f"{100 * share:.0f}")

    return {
        t("dossier.head_column"): [
            t.meaning(features[c.name]) if c.name in features else t.text(c.meaning) for c in columns
        ],
        t("dossier.head_source"): [c.source for c in columns],
        t("dossier.head_basis"): [c.lawful_basis for c in columns],
        t("dossier.head_refresh"): [c.refresh for c in columns],
        t("dossier.head_owner"): [c.owner for c in columns],
        t("dossier.head_missing"): [about(c.missing) for c in columns],
        t("dossier.head_bands"): [
            " · ".join(f"{name}: {about(share)}" for name, share in c.bands) or "–" for c in columns
        ],
        t("dossier.head_drift"): [t(f"dossier.drift_{c.drift.replace(' ', '_')}") for c in columns],
    }
