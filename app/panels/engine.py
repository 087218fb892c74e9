"""Which cipher a scoring runs under: what each one promises, what it costs, and what it took here the last time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import streamlit as st

from app.panels import controls
from app.texts import Texts, number, size
from app.view_models import Speed
from backend.services.scoring import ScoringRequest

if TYPE_CHECKING:
    from backend.results import ScoreBatch

Ready = Callable[[str, int], Callable[[str], None]]

Engine = Literal["paillier", "rlwe"]
ENGINES: tuple[Engine, ...] = ("paillier", "rlwe")
SUITED = "suited"  # whichever suits the batch
KEY_SIZES = (2048, 3072, 4096)
DEFAULT_BITS = ScoringRequest.key_bits


def line(
    t: Texts, people: int, speeds: Mapping[str, Speed], one_output: bool, suited: Callable[[int], str], ready: Ready
) -> tuple[Engine, int]:
    """One line on the cipher, and behind it the choice, what each one promises, and what the parties have ready.

    Parameters
    ----------
    suited : callable
        People to be scored → the cipher that suits them.
    ready : callable
        Cipher and bits → draws what is ready, and returns what draws the line with how far that is.

    Returns
    -------
    tuple of (str, int)
        The cipher, and the bits of its key (of Paillier's).
    """
    with st.container(horizontal=True, vertical_alignment="center", key="engine_line"):
        slot = st.container(width="content")
        with st.popover(t("engine.change"), icon=":material/tune:", type="tertiary", key="engine_panel"):
            choice = _wanted(t) if one_output else _alone(t)
            automatic = choice == SUITED
            name_chosen = suited(people) if automatic else choice
            cipher: Engine = "rlwe" if name_chosen == "rlwe" else "paillier"
            if cipher == "paillier":
                bits = _bits(t, "score")
            else:
                bits = DEFAULT_BITS
            for name in ENGINES if one_output else ENGINES[:1]:
                _card(t, name, bits if name == "paillier" else 0, name == cipher, speeds.get(name))
            draw_line = ready(cipher, bits)
    words = [f"**{t(f'engine.name_{cipher}')}**" + (t("engine.bits", bits=bits) if cipher == "paillier" else "")]
    if automatic:
        words.append(t(f"engine.suits_{cipher}", n=people))
    last = speeds.get(cipher)
    if people > 1 and last is not None and last.people:
        words.append(t("engine.pace", rough=t.about(people / last.a_second)))
    with slot:
        draw_line(":material/lock: " + " · ".join(words))
    return cipher, bits


def _wanted(t: Texts) -> str:
    return controls.choice(
        t("engine.cipher"),
        (SUITED, *ENGINES),
        "score_cipher",
        lambda name: t(f"engine.name_{name}"),
        help=t("glossary.cipher"),
    )


def _alone(t: Texts) -> str:
    """A model of several outputs can be scored under Paillier only."""
    st.caption(f":material/info: {t('engine.several_outputs')}")
    return "paillier"


def choose(t: Texts, page: str, width: Literal["stretch", "content"] = "content") -> tuple[Engine, int]:
    """Return the two widgets of a page that choose a cipher and, for Paillier, the bits of its key."""
    cipher = controls.choice(
        t("engine.cipher"),
        ENGINES,
        f"{page}_cipher",
        lambda name: t(f"engine.name_{name}"),
        help=t("glossary.cipher"),
        width=width,
    )
    return cipher, _bits(t, page) if cipher == "paillier" else DEFAULT_BITS


def _bits(t: Texts, page: str) -> int:
    return controls.choice(
        t("engine.key_bits"),
        KEY_SIZES,
        f"{page}_key_bits",
        lambda bits: t("train.bits", bits=f"{bits:,}"),
        default=DEFAULT_BITS,
        help=t("glossary.key_bits"),
    )


def textbook_bits(batch: ScoreBatch) -> int:
    """Return the Paillier key that a scoring is compared with: its own size, or the one of like security."""
    if batch.cipher == "paillier":
        return batch.key_bits
    return DEFAULT_BITS


def _card(t: Texts, name: Engine, bits: int, is_chosen: bool, measured: Speed | None) -> None:
    """Draw two lines on a cipher, what it trades away on hover, and its last run here."""
    if is_chosen:
        icon = ":material/check_circle:"
    else:
        icon = ":material/circle:"
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
