"""Who is signed in, and what is shown in place of every page until then: on the dashboard and on a Host's console."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import streamlit as st

from app.errors import worded
from app.texts import Texts, markdown

if TYPE_CHECKING:
    from backend.errors import SignInError


def draw(t: Texts, why: SignInError, *, console: bool = False) -> None:
    """Draw why a sign-in is needed, and the way in; `console` = of a Host."""
    st.title("Glassleaf", anchor=False)
    st.markdown(t("console.why" if console else "sign_in.why"))
    if why.code != "signed_out":
        st.warning(markdown(worded(t, why)), icon=":material/lock_clock:")
    if why.code != "sign_in_without_provider":
        st.button(t("sidebar.sign_in"), on_click=st.login, icon=":material/login:", key="sign_in")
    if why.code not in ("signed_out", "sign_in_without_provider"):
        _out(t)


def who(t: Texts, account: str) -> None:
    """Draw whose session it is, and the way out."""
    st.caption(t("sidebar.signed_in", name=markdown(account)))
    _out(t)


def _out(t: Texts) -> None:
    st.button(t("sidebar.sign_out"), on_click=st.logout, icon=":material/logout:", key="sign_out")


def open_to_all(t: Texts, *, console: bool = False) -> None:
    """Above every page that comes over a network without a sign-in."""
    st.warning(t("console.open" if console else "sign_in.open"), icon=":material/lock_open:")


def from_elsewhere() -> bool:
    """Whether the page was asked for from another machine."""
    host = urlsplit(st.context.url or "").hostname or "localhost"
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return not (host == "localhost" or host.endswith(".localhost"))
