"""Links from one page to another: to a model, to a feature, to a split in its tree."""

from __future__ import annotations

import streamlit as st

from app.session import page
from app.texts import Texts


def to_model(model_id: str, words: str, icon: str = "arrow_forward") -> None:
    """To the overview of a model."""
    st.page_link(page("overview"), label=words, icon=f":material/{icon}:", query_params={"model": model_id})


def to_feature(t: Texts, model_id: str, feature: str) -> None:
    """To a feature's card in the dictionary."""
    st.page_link(
        page("features"),
        label=t("compliance.open_feature"),
        icon=":material/dictionary:",
        query_params={"model": model_id, "feature": feature, "search": feature},
    )


def to_split(t: Texts, model_id: str, tree: int, node: int, icon: str = "account_tree", words: str = "") -> None:
    """To a split, marked in its tree; `tree` counts from 0."""
    st.page_link(
        page("structure"),
        label=words or t("compliance.see_split", tree=tree + 1, node=node),
        icon=f":material/{icon}:",
        query_params={"model": model_id, "tree": str(tree + 1), "node": str(node)},
    )
