"""Which cipher a scoring runs under: what each one promises, what it costs, and what it took here the last time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import streamlit as st

from app.panels import controls
from app.texts import Texts, number, size
from app.view_models import Speed
from backend.services.scoring import ScoringRequest

if TYPE_CHECKING:
    from backend.results import ScoreBatch

Engine = Literal["paillier", "rlwe"]
ENGINES: tuple[Engine, ...] = ("paillier", "rlwe")
KEY_BITS = (2048, 3072, 4096)
DEFAULT_BITS = ScoringRequest.key_bits
MANY = 50  # people from which one ciphertext a number is the slow way


def pick(t: Texts, speeds: Mapping[str, Speed], one_output: bool) -> tuple[Engine, int]:
    """Choose a cipher, with both side by side; returns it and the bits of its key (of Paillier's).

    A model of several outputs can be scored under Paillier only.
    """
    if not one_output:
        st.caption(f":material/info: {t('engine.several_outputs')}")
        return "paillier", _bits(t, "score")
    chosen, bits = choose(t, "score", "stretch")
    with st.grid(2, min_column_width=230, gap="medium"):
        for name in ENGINES:
            with st.container(gap=None):
                _card(t, name, bits if name == "paillier" else 0, name == chosen, speeds.get(name))
    return chosen, bits


def choose(t: Texts, page: str, width: Literal["stretch", "content"] = "content") -> tuple[Engine, int]:
    """The two widgets of a page that choose a cipher and, for Paillier, the bits of its key."""
    chosen = controls.choice(
        t("engine.cipher"),
        ENGINES,
        f"{page}_cipher",
        lambda name: t(f"engine.name_{name}"),
        help=t("glossary.cipher"),
        width=width,
    )
    return chosen, _bits(t, page) if chosen == "paillier" else DEFAULT_BITS


def _bits(t: Texts, page: str) -> int:
    return controls.choice(
        t("engine.key_bits"),
        KEY_BITS,
        f"{page}_key_bits",
        lambda bits: t("train.bits", bits=f"{bits:,}"),
        default=DEFAULT_BITS,
        help=t("glossary.key_bits"),
    )


def hint(t: Texts, chosen: Engine, people: int, speeds: Mapping[str, Speed]) -> None:
    """Where many people are to be scored under Paillier: that the other cipher is made for it, and what this one will take."""
    if chosen != "paillier" or people < MANY:
        return
    words = t("engine.many")
    last = speeds.get("paillier")
    if last is not None and last.people:
        words += " " + t("engine.pace", people=f"{people:,}", rough=t.duration(people / last.a_second))
    st.caption(f":material/lightbulb: {words}")


def textbook_bits(done: ScoreBatch) -> int:
    """The Paillier key that a scoring is compared with: its own size, or the one of like security."""
    return done.key_bits if done.cipher == "paillier" else DEFAULT_BITS


def _card(t: Texts, name: Engine, bits: int, chosen: bool, measured: Speed | None) -> None:
    """Two lines on a cipher, what it trades away on hover, and its last run here."""
    icon = ":material/check_circle:" if chosen else ":material/circle:"
    words = {"bits": f"{bits:,}", "bytes": f"{bits // 4:,}", "security": t(f"engine.security_{bits}") if bits else ""}
    st.markdown(f"{icon} **{t(f'engine.name_{name}')}**", help=t(f"engine.help_{name}", **words))
    st.caption(t(f"engine.first_{name}", **words) + "  \n" + t(f"engine.second_{name}", **words))
    if measured is not None and measured.people:
        st.caption(
            ":material/speed: "
            + t(
                "engine.measured",
                n=measured.people,
                people=f"{measured.people:,}",
                seconds=t.duration(measured.seconds),
                rate=number(measured.a_second),
                bytes=size(round(measured.out + measured.between + measured.back)),
            )
        )
