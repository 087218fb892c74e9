"""The search that every page has: a button with a key of its own, and a window that lists what is found as one types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import links
from app.texts import Texts, markdown

if TYPE_CHECKING:
    from app.search import Hit

SHORTCUT = "Mod+K"
HITS_A_KIND = 5  # of a kind; more are counted
KIND_ICONS = {
    "pages": "web",
    "models": "deployed_code",
    "features": "dictionary",
    "findings": "gavel",
    "trees": "account_tree",
    "terms": "menu_book",
}


def button(t: Texts) -> bool:
    """The button in the sidebar; True when it was pressed."""
    return st.button(t("search.open"), icon=":material/search:", shortcut=SHORTCUT, width="stretch", key="search_open")


def window(
    t: Texts,
    find: Callable[[str], Mapping[str, Sequence[Hit]]],
    knows: Callable[[str], bool],
    choose: Callable[[str], None],
) -> None:
    """Draw the field and, while one types, what is found; whom the Guest `knows` by the whole id is chosen by a press, not by a link."""

    def body() -> None:
        typed = st.text_input(t("search.field"), key="search_typed", live=True, placeholder=t("search.example"))
        hits_by_kind = find(typed)
        is_person = knows(typed.strip())
        if typed.strip() and not hits_by_kind and not is_person:
            st.info(t("search.nothing", typed=markdown(typed)), icon=":material/search_off:")
        if is_person:
            with st.container(gap="xsmall"):
                st.caption(t("search.people"))
                words = markdown(typed.strip())
                place = ":material/person:"
                if st.button(
                    words, icon=place, key="search_person", on_click=choose, args=(typed.strip(),), width="stretch"
                ):
                    links.go("score")
        for kind, hits in hits_by_kind.items():
            with st.container(gap="xsmall"):
                st.caption(t(f"search.{kind}"))
                for hit in hits[:HITS_A_KIND]:
                    links.page(hit.page, hit.words, KIND_ICONS[kind], hit.place, width="stretch")
                if len(hits) > HITS_A_KIND:
                    st.caption(t("search.more", n=len(hits) - HITS_A_KIND))

    st.dialog(t("search.title"), icon=":material/search:")(body)()
