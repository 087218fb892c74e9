"""The pages in their groups: which there are, in which order a role sees them, and the links in the sidebar.

Streamlit's own navigation is above everything else in the sidebar and forgets language and model in its links, so
it is hidden and drawn here.
"""

from __future__ import annotations

import json
from importlib.resources import files
from urllib.parse import urlsplit

import streamlit as st
from streamlit.navigation.page import Page

from app import session
from app.panels import links as to
from app.texts import Texts
from backend.services.roles import ANALYST, OPERATOR, REGULATOR, ROLES

PAGE_GROUPS = {
    "start": ("overview", "demonstration"),
    "use": ("score", "people"),
    "understand": ("features", "structure", "importance", "model_card"),
    "govern": ("compliance", "validation", "decide", "report", "audit"),
    "models": ("own_data", "screen", "train", "compare_models"),
    "protection": ("privacy", "protocols", "attack_lab", "host"),
}
PAGE_ICONS = {
    "overview": "home",
    "demonstration": "slideshow",
    "score": "lock",
    "people": "groups",
    "decide": "rule_settings",
    "features": "dictionary",
    "structure": "account_tree",
    "importance": "leaderboard",
    "model_card": "fact_check",
    "compliance": "gavel",
    "validation": "rule",
    "report": "description",
    "audit": "receipt_long",
    "own_data": "upload_file",
    "screen": "query_stats",
    "train": "model_training",
    "compare_models": "compare_arrows",
    "privacy": "visibility",
    "protocols": "flag",
    "attack_lab": "bug_report",
    "host": "domain",
    "help": "help",
}
FIRST_GROUP = {REGULATOR: "govern"}  # role: the group that comes first
# page: whose it is; a courtesy, for roles are not authenticated
FOR = {
    "own_data": (OPERATOR,),
    "screen": (OPERATOR,),
    "train": (OPERATOR,),
    "score": (OPERATOR, ANALYST),
    "people": (OPERATOR, ANALYST),
    "demonstration": (OPERATOR, ANALYST),
    "host": (OPERATOR,),
}
# What comes after what: a presenter shows a score and how it is protected, a regulator asks for the findings first.
NEXT_PAGES = {
    OPERATOR: (
        "overview", "demonstration", "score", "people", "decide", "privacy", "host", "protocols", "attack_lab", "features",
        "structure", "importance", "model_card", "compliance", "validation", "report", "audit", "own_data", "screen", "train",
        "compare_models",
    ),
    ANALYST: (
        "overview", "features", "structure", "importance", "model_card", "demonstration", "score", "people", "decide", "privacy",
        "protocols", "attack_lab", "compliance", "validation", "compare_models", "report", "audit",
    ),
    REGULATOR: (
        "overview", "compliance", "validation", "report", "audit", "decide", "model_card", "features", "structure", "importance",
        "compare_models", "privacy", "protocols", "attack_lab",
    ),
}  # fmt: skip
FIRST_PAGE = "overview"  # what the bare address opens
NOWHERE = "not_found"

SCRIPT = (files("assets") / "page.js").read_text(encoding="utf-8")


def open_to(name: str, role: str) -> bool:
    """Return whether a page is meant for a role."""
    return role in FOR.get(name, ROLES)


def visible(role: str) -> dict[str, list[str]]:
    """Group → pages, in the order in which a role sees them."""
    order = sorted(PAGE_GROUPS, key=lambda group: group != FIRST_GROUP.get(role))
    by_group = {group: [name for name in PAGE_GROUPS[group] if open_to(name, role)] for group in order}
    return {group: names for group, names in by_group.items() if names}


def listed(role: str) -> list[str]:
    """Return all pages that a role sees, in their order."""
    return [name for names in visible(role).values() for name in names]


def find(t: Texts) -> tuple[str, Page]:
    """The page that the address names, as its name and what runs it; an unknown address has a page of its own."""
    pages = {name: _page(t, name, name) for name in PAGE_ICONS}
    # The bare address is a page of its own for Streamlit, so the first page has two: / and /overview.
    first = _page(t, FIRST_PAGE, "home", default=True)
    page_name = urlsplit(st.context.url or "").path.rsplit("/", 1)[-1]
    if page_name and page_name not in (*pages, "home"):
        unknown = [_page(t, NOWHERE, page_name)]
    else:
        unknown = []
    page = st.navigation([first, *pages.values(), *unknown], position="hidden")
    # A link to / would lead from any other page to that page itself, as the browser reads it.
    session.keep("pages", pages | {FIRST_PAGE: first} if page is first else pages)
    if page in unknown:
        return NOWHERE, page
    return page.url_path or FIRST_PAGE, page


def _page(t: Texts, name: str, address: str, *, default: bool = False) -> Page:
    icon = f":material/{PAGE_ICONS.get(name, 'explore_off')}:"
    help_ = t(f"{name}.question")
    return Page(session.page(name), title=t(f"{name}.title"), icon=icon, url_path=address, default=default, help=help_)


def links(t: Texts, role: str) -> None:
    """Draw the links to all pages that the role sees, under the names of their groups."""
    with st.container(key="navigation", gap=6):  # all of it on a screen of 900 pixels
        for group, names in visible(role).items():
            with st.container(gap=4):
                if group != "start":
                    st.caption(t(f"nav.{group}"))
                for name in names:
                    to.page(name, t(f"{name}.title"), PAGE_ICONS[name], width="stretch")


def next_step(t: Texts, role: str, here: str) -> None:
    """At the end of a page: one sentence and a link to what comes next for a role."""
    if here == NOWHERE:  # has its own link
        return
    way = NEXT_PAGES[role]
    if here in way:
        following = way[(way.index(here) + 1) % len(way)]
    else:
        following = FIRST_PAGE
    with st.container(key="next_step", border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f":material/signpost: {t(f'next.{following}')}", width="stretch")
        to.page(following, t("next.go", page=t(f"{following}.title")), side="right")


def tell_browser(t: Texts, role: str, here: str, *, walked: bool) -> None:
    """What Streamlit tells no browser, or in words of its own: the language of the page, that the links are a navigation,
    which one is open, that the first steps are over (a cookie keeps that), how files are taken, that the server is gone.
    """
    pages = listed(role)
    at = pages.index(here) if here in pages else None
    settings: dict[str, object] = {
        "language": t("nav.language_code"),
        "label": t("nav.label"),
        "open": at,
        "walked": walked,
    }
    settings |= {"upload": t("nav.upload"), "most": t("nav.upload_most", size="0")}
    settings |= {"large": t("nav.upload_large", size="0"), "kind": t("nav.upload_kind")}
    settings["menu"] = {"Select all": t("nav.menu_all"), "No results": t("nav.menu_none")}
    settings |= {"gone": t("nav.gone"), "gone_until": t("nav.gone_until")}
    st.html(f"<script>{SCRIPT}({json.dumps(settings)})</script>", unsafe_allow_javascript=True)
