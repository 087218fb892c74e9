"""The help page: the first steps again, the keyboard, every word with its meaning, and what exactly is running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import finder, frame
from app.texts import Texts, markdown
from backend import __version__

if TYPE_CHECKING:
    from app.glossary import Term
    from app.view_models import View

# key: what it does
SHORTCUTS = {
    finder.SHORTCUT.replace("Mod", "Ctrl"): "search",
    "Tab": "tab",
    "Enter": "enter",
    "Esc": "escape",
    "Alt+←": "back",
    "Ctrl+P": "print",
}


def first_steps(t: Texts, begin: Callable[[], None]) -> None:
    """Draw what the dashboard is for, and the walk again."""
    st.markdown(t("help.purpose"))
    st.button(t("help.walk"), icon=":material/waving_hand:", on_click=begin, key="walk_begin")


def keyboard(t: Texts) -> None:
    """Draw the keys that do something."""
    st.table(
        {f"`{key}`": t(f"help.key_{what}") for key, what in SHORTCUTS.items()},
        border="horizontal",
        alt=t("help.keyboard"),
    )


def glossary(t: Texts, terms: Sequence[Term], field: str) -> str:
    """The words that have what is typed in the field; returns what is typed."""
    typed = st.text_input(t("help.find"), key=field, icon=":material/search:", live=True, width=320)
    if not typed.strip():
        frame.fold(t("help.every_word", n=len(terms)), "menu_book", "help_every_word", partial(_words, t, terms))
        return typed
    matches = [term for term in terms if term.has(typed.strip())]
    if not matches:
        st.info(t("help.no_word", typed=markdown(typed)), icon=":material/search_off:")
        return typed
    _words(t, matches)
    return typed


def _words(t: Texts, terms: Sequence[Term]) -> None:
    other_language = "en" if t.language == "zh" else "zh"
    frame.table(
        {
            t("help.word"): [f"**{term.words[t.language]}**" for term in terms],
            t("help.other_language"): [term.words[other_language] for term in terms],
            t("help.meaning"): [term.meaning(t.language) for term in terms],
        },
        t("help.glossary"),
    )


def about(t: Texts, view: View | None, federation_hash: str) -> None:
    """Version, and the hashes that say which model and which federation file these pages show."""
    facts = {t("help.version"): f"Glassleaf {__version__}"}
    if view is not None:
        facts |= _hashes(t, view, federation_hash)
    st.table(facts, border="horizontal", alt=t("help.about"))
    st.caption(t("help.licence"))


def _hashes(t: Texts, view: View, federation_hash: str) -> Mapping[str, str]:
    record = view.record
    hosts = {}
    for name, digest in record.host_hashes.items():
        hosts[t("help.host_hash", party=markdown(t.party(view.federation, name)))] = f"`{digest}`"
    return {
        t("help.model"): f"`{record.id}`",
        t("help.guest_hash"): f"`{record.content_hash}`",
        **hosts,
        t("help.federation_hash"): f"`{federation_hash}`",
    }
