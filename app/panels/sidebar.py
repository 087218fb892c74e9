"""The sidebar below the navigation: which model, which language, what runs in the background."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import streamlit as st

from app.texts import LANGUAGES, Texts, cut, number
from backend.service import Federation, ModelRecord

SHOWN = {"en": "English", "zh": "中文"}


def models(t: Texts, records: Sequence[ModelRecord], federations: Mapping[str, Federation], key: str) -> None:
    """The model picker: federation › model."""
    by_id = {record.id: record for record in records}

    def named(model_id: str) -> str:
        record = by_id[model_id]
        federation = federations.get(record.federation)
        title = t.federation(federation) if federation else record.federation
        when = record.created[5:16].replace("T", " ")
        short = re.split(r"[:：]", title)[0]
        return f"{cut(short, 15)} › {when}" if len(federations) > 1 else t("sidebar.named", n=record.n_trees, when=when)

    chosen = st.selectbox(t("sidebar.model"), list(by_id), key=key, format_func=named, help=t("glossary.model"))
    record = by_id[chosen]
    st.caption(t("sidebar.summary", n=record.n_trees, auc=number(record.metrics.auc), id=record.id[:8]))


def language(t: Texts, key: str) -> None:
    """The language switch."""
    st.segmented_control(
        t("sidebar.language"), LANGUAGES, key=key, format_func=SHOWN.__getitem__, required=True, persist_state="session"
    )
