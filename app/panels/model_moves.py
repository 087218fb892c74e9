"""A model that moves to another home of the Guest: one press packs it, an upload unpacks it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import frame, upload
from app.texts import Texts, markdown
from backend.errors import GlassleafError
from backend.services.pack_files import PASSPHRASE_MIN, Passphrase

if TYPE_CHECKING:
    from backend.services.model_packs import ModelPacks

ENDING = "pack"  # of a file's name
MEGABYTES = 256


def draw(t: Texts, packs: ModelPacks, federation: str, model_id: str) -> None:
    """Pack this model, or unpack one of this federation; both under a passphrase that is typed here and stored nowhere."""
    box = frame.box(t("moves.title"), "drive_file_move", "moves")
    if box is None:
        return
    with box:
        st.markdown(t("moves.what"))
        typed = st.text_input(
            t("moves.passphrase"), type="password", key="moves_passphrase", help=t("moves.passphrase_help")
        )
        passphrase = Passphrase(typed)
        enough = len(typed) >= PASSPHRASE_MIN
        if typed and not enough:
            st.caption(f":material/password: {t('moves.short', n=PASSPHRASE_MIN)}")
        st.download_button(
            t("moves.pack"),
            data=partial(packs.pack, model_id, passphrase),
            file_name=f"glassleaf-{model_id}.{ENDING}",
            mime="application/octet-stream",
            icon=":material/download:",
            on_click="ignore",
            disabled=not enough,
            key="moves_pack",
        )
        file = upload.file(t, t("moves.file"), "moves_file", MEGABYTES, (ENDING,))
        pressed = st.button(
            t("moves.unpack"), icon=":material/unarchive:", disabled=file is None or not enough, key="moves_unpack"
        )
        if pressed and file is not None:
            _unpack(t, packs, federation, file.getvalue(), passphrase)


def _unpack(t: Texts, packs: ModelPacks, federation: str, file: bytes, passphrase: Passphrase) -> None:
    """Register a model, and tell what it needs to score here; or why nothing was registered."""
    try:
        pack = packs.unpack(federation, file, passphrase)
    except GlassleafError as error:
        frame.problem(t, error)
        return
    hosts = t.listed([markdown(host) for host in pack.hosts])
    if not pack.hosts:
        more = ""
    else:
        more = t("moves.halves" if pack.simulated else "moves.approvals", hosts=hosts)
    st.success(t.joined(t("moves.done", model=pack.record.id), more), icon=":material/check:")
