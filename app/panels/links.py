"""Links from one page to another: each takes language, role and model along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import streamlit as st

from app import session
from app.texts import Texts


def page(
    name: str,
    words: str,
    icon: str = "arrow_forward",
    place: Mapping[str, str] | None = None,
    *,
    side: Literal["left", "right"] = "left",
    width: Literal["content", "stretch"] = "content",
) -> None:
    """To a page, or to a `place` on it (``{"feature": "age"}``)."""
    st.page_link(
        session.target(name),
        label=words,
        icon=f":material/{icon}:",
        icon_position=side,
        width=width,
        help="",  # else the page's question, and the link twice: beside what explains it and without
        query_params=session.place(name, **(place or {})),
    )


def go(name: str) -> None:
    """Turn to a page at once, from a button."""
    st.switch_page(session.target(name), query_params=session.place(name))


def to_model(model_id: str, words: str, icon: str = "arrow_forward") -> None:
    """To the overview of a model."""
    page("overview", words, icon, {"model": model_id})


def to_feature(t: Texts, model_id: str, feature: str) -> None:
    """To a feature's card in the dictionary."""
    place = {"model": model_id, "feature": feature, "search": feature}
    page("features", t("compliance.open_feature"), "dictionary", place)


def to_split(t: Texts, model_id: str, tree: int, node: int, icon: str = "account_tree", words: str = "") -> None:
    """To a split, marked in its tree; `tree` counts from 0."""
    words = words or t("compliance.see_split", tree=tree + 1, node=node)
    page("structure", words, icon, {"model": model_id, "tree": str(tree + 1), "node": str(node)})
