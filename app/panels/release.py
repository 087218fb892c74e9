"""How much the scores of a new model may give away: the bound before a training, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from app.errors import worded
from app.panels import frame
from app.texts import Texts, percent
from backend.errors import ReleaseRefused
from backend.results import told_by_scores

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.remark import Remark
    from backend.results import ModelRecord


def bound(t: Texts) -> tuple[float | None, bool]:
    """The largest share of scores that may identify a path (None: the default), and whether a coarser scale may be used instead."""
    box = frame.box(t("release.title"), "visibility_lock", "train_release")
    named, coarser = (st.session_state.get(key) for key in ("train_max_named", "train_coarser"))
    if box is not None:
        named = box.number_input(
            t("release.max_share"),
            min_value=0.0,
            max_value=100.0,
            value=None,
            step=1.0,
            format="%g",
            key="train_max_named",
            help=t("release.max_share_help"),
            placeholder=t("release.usual"),
            persist_state="session",
        )
        coarser = box.toggle(
            t("release.coarser"), key="train_coarser", help=t("release.coarser_help"), persist_state="session"
        )
    return (None if named is None else named / 100), bool(coarser)


def foretold(t: Texts, remark: Remark | None) -> None:
    """Say before a training what its scores are likely to tell; nothing if no Host takes part."""
    if remark is not None:
        st.caption(f":material/visibility: {worded(t, remark)}")


def refused(t: Texts, job: Job[Any]) -> bool:
    """Why a model was not registered and what to do; False, and nothing, where it was or something else went wrong."""
    why = job.failure
    if not isinstance(why, ReleaseRefused):
        return False
    reason = t("release.refused", named=percent(why.named), bound=percent(why.bound))
    do = t("release.do_none") if why.bits is None else t("release.do_bits", bits=why.bits)
    st.warning(f"{reason}\n\n{do}", icon=":material/visibility:", title=t("release.refused_title"))
    return True


def taken(t: Texts, record: ModelRecord) -> None:
    """What the scores of a registered model give away, and that a coarser scale was taken, where it was."""
    release = record.release
    if release is None:
        return
    st.markdown(f":material/visibility: {sentence(t, record)}")
    if release.asked_bits is not None:
        st.markdown(f":material/grid_on: {t('release.taken', bits=record.score_bits, asked=release.asked_bits)}")


def sentence(t: Texts, record: ModelRecord) -> str:
    """Return what every page says about scores, as it was measured before the model was registered."""
    return worded(t, told_by_scores(record.release, record.score_bits))


def headline(t: Texts, record: ModelRecord) -> str:
    """Return the same in a few words: the share, or that it could not be measured."""
    release = record.release
    if release is None or not release.measurable:
        return t("overview.not_measurable")
    return t("overview.gives_away", share=percent(release.named))


def before(t: Texts, record: ModelRecord) -> None:
    """The same beside what is measured again on other people."""
    if record.release is not None:
        st.markdown(f":material/visibility: {t.joined(sentence(t, record), t('release.again'))}")
