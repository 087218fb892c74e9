"""The sidebar around the navigation: which model, which language, in which role, which version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app import session
from app.panels import frame, links, sign_in
from app.texts import Texts, cut
from backend import __version__
from backend.i18n import LANGUAGES, wide

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.results import ModelRecord
    from backend.services.lifecycle import ModelState

PICKER_LETTERS = 29  # letters that the picker has room for
ID_LETTERS = 4  # letters of an id that tell models apart
SHOWN = {"en": "EN", "zh": "中文"}


def models(
    t: Texts,
    records: Sequence[ModelRecord],
    federations: Mapping[str, Federation],
    states: Mapping[str, ModelState],
    key: str,
) -> None:
    """Draw the model picker: federation › model · state."""
    by_id = {record.id: record for record in records}

    def placed(model_id: str) -> str:
        record = by_id[model_id]
        federation = federations.get(record.federation)
        if federation:
            title = t.federation(federation)
        else:
            title = record.federation
        if len(federations) > 1:
            prefix = f"{cut(re.split(r'[:：]', title)[0], 9)} › "
        else:
            prefix = ""
        return f"{prefix}{named(t, record, states[model_id], PICKER_LETTERS - wide(prefix))}"

    now = session.chosen_model()
    if now in by_id and session.once("model_named", placed(now)):
        session.choose(
            key, now
        )  # else a browser would go on showing the words that it was picked by, such as an earlier state
    picked = st.selectbox(t("sidebar.model"), list(by_id), key=key, format_func=placed, help=t("glossary.model"))
    record = by_id[picked]
    state = states[picked]
    if record.federation in federations:
        unit = t.unit(federations[record.federation].label)
    else:
        unit = ""
    words = t("sidebar.summary", n=record.n_trees, quality=frame.quality(t, record, unit), id=record.id[:8])
    st.caption(f":material/{frame.STATE_ICONS[state.state]}: {words}")


def named(t: Texts, record: ModelRecord, state: ModelState, room: int = PICKER_LETTERS) -> str:
    """Return a model's name and state, as the picker has them: the name is cut, so that the state is read whole."""
    suffix = f" · {t(f'states.{state.state}')}"
    return f"{_called(t, record, state, room - wide(suffix))}{suffix}"


def _called(t: Texts, record: ModelRecord, state: ModelState, room: int) -> str:
    """Return a model's name, or when it was made; a widget knows its options by their labels, so that no two are alike."""
    mark = record.id[1 : 1 + ID_LETTERS]
    name = t.model(state.name)
    if name:
        if wide(name) <= room:
            return name
        return f"{cut(name, room - ID_LETTERS - 2)} {mark}"
    moment = session.made(record)
    full_name = f"{moment} · {mark}"
    if len(full_name) <= room:
        return full_name
    return f"{moment.split()[0]} · {mark}"


def footer(t: Texts, account: str, roles: Sequence[str]) -> None:
    """Below the navigation: language, role and version."""
    with st.container(key="footer", gap="xsmall"):
        language_column, role_column = st.columns(2, gap="xsmall")
        with language_column:
            _language(t)
        with role_column:
            _role(t, roles, account)
        if account:
            sign_in.who(t, account)
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            links.page("help", t("help.title"), "help")
            st.caption(f"Glassleaf {__version__}", width="content")


def _language(t: Texts) -> None:
    st.segmented_control(
        t("sidebar.language"),
        LANGUAGES,
        key="language",
        format_func=SHOWN.__getitem__,
        required=True,
        persist_state="session",
        label_visibility="collapsed",
    )


def _role(t: Texts, roles: Sequence[str], account: str) -> None:
    """Draw the role switch: the account's roles, or all if there is no sign-in; it says that this is no authentication."""
    st.selectbox(
        t("sidebar.role"),
        roles,
        key="role",
        format_func=lambda role: t(f"sidebar.role_{role}"),
        help=t("sign_in.role_help") if account else t("sidebar.role_help"),
        persist_state="session",
        label_visibility="collapsed",
        width="stretch",
    )


def not_for(t: Texts, page: str, roles: Sequence[str], account: str) -> None:
    """In place of a page that the chosen role is not meant to use."""
    st.title(t(f"{page}.title"), anchor=False)
    role_names = t.listed([t(f"sidebar.role_{role}") for role in roles])
    words = "sign_in.not_for" if account else "sidebar.not_for"
    st.info(t(words, roles=role_names), icon=":material/badge:")
