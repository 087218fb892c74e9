"""A Host's own console: ``glassleaf host run``. Reads the Host's folder alone; nothing of a Guest's is reachable from here."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from importlib.resources import files
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[1])
# In front of the folder that Streamlit was started in, which may hold another project's app/ or backend/.
if sys.path[0] != ROOT:
    sys.path.insert(0, ROOT)

import streamlit as st  # noqa: E402

from app import server_figures  # noqa: E402
from app.errors import worded  # noqa: E402
from app.panels import host_console, sign_in  # noqa: E402
from app.texts import Texts, markdown  # noqa: E402
from backend.errors import GlassleafError, SignInError  # noqa: E402
from backend.i18n import LANGUAGES  # noqa: E402
from backend.services.host_operator import operator_of, own_host  # noqa: E402
from backend.services.system_user import system_user  # noqa: E402

ASSETS = Path(str(files("assets")))
SHOWN = {"en": "EN", "zh": "中文"}

server_figures.hide()
st.set_page_config(page_title="Glassleaf", page_icon=ASSETS / "mark.svg", layout="wide")
st.html(ASSETS / "page.css")
wishes = [st.query_params.get("lang", ""), st.context.locale or ""]  # what a link names, else the browser's
first = next((language for wish in wishes for language in LANGUAGES if wish.startswith(language)), LANGUAGES[0])
title_column, settings_column = st.columns([4, 1], vertical_alignment="center")
with settings_column:
    language = st.segmented_control(
        Texts(first)("sidebar.language"),
        LANGUAGES,
        default=first,
        format_func=SHOWN.__getitem__,
        key="language",
        required=True,
        label_visibility="collapsed",
    )
t = Texts(language or first)
st.html(
    f"<script>document.documentElement.lang = {json.dumps(t('nav.language_code'))}</script>",
    unsafe_allow_javascript=True,
)
try:
    user = dict(st.user)
    folder = Path(os.environ.get("GLASSLEAF_HOST", "").strip() or ".")
    account = operator_of(folder, user)
    opened = partial(own_host, folder, system_user(), user)
    operator = opened()
    if account is None and sign_in.from_elsewhere():
        sign_in.open_to_all(t, console=True)
    with title_column:
        st.title(t("host.console", host=markdown(operator.title.in_language(t.language))), anchor=False)
        st.markdown(f":gray[{t('host.console_question')}]")
    if account is not None:
        with settings_column:
            sign_in.who(t, account.name)
        if st.session_state.get("signed_in") != account.actor:
            operator.note_sign_in("oidc")
            st.session_state["signed_in"] = account.actor
    state = host_console.standing(operator)
    host_console.draw(t, operator, "own")
    host_console.follow(state, opened)
    operator.close()
except SignInError as why:
    with title_column:
        sign_in.draw(t, why, console=True)
except GlassleafError as error:
    st.warning(markdown(worded(t, error)), icon=":material/report:", title=t("host.failed"))
