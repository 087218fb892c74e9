"""How much the scores of a new model may give away: the bound before a training, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.errors import worded
from app.panels import frame
from app.texts import Texts, percent
from backend.errors import ReleaseRefused
from backend.results import told_by_scores
from backend.services.training import SecureBoostParameters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backend.jobs import Job
    from backend.remark import Remark
    from backend.results import ModelRecord
    from backend.services.sealing import Sealed


@dataclass(frozen=True)
class Steps:
    """What the page does with a sealed model."""

    coarser: Callable[[Sealed], None]
    grow: Callable[[Sealed, int], None]
    measure: Callable[[Sealed], None]
    discard: Callable[[Sealed], None]


def bound(t: Texts, algorithm: str) -> tuple[float | None, bool, int]:
    """The largest share of scores that may identify a path (None: the default), whether scores may be rounded, and the trees to approve."""
    box = frame.box(t("release.title"), "visibility_lock", "train_release")
    max_named = st.session_state.get("train_max_named")
    coarser = st.session_state.get("train_coarser")
    trees = st.session_state.get("train_approved_trees")
    grows = algorithm == SecureBoostParameters.ALGORITHM
    if box is not None:
        max_named = box.number_input(
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
        if grows:
            trees = box.number_input(
                t("release.approved_trees"),
                min_value=1,
                max_value=SecureBoostParameters.RANGES["trees"][1],
                value=None,
                key="train_approved_trees",
                help=t("release.approved_trees_help"),
                persist_state="session",
            )
    approved = int(trees) if grows and trees else 0
    return (None if max_named is None else max_named / 100), bool(coarser), approved


def foretold(t: Texts, remark: Remark | None) -> None:
    """Say before a training what its scores are likely to tell; nothing if no Host takes part."""
    if remark is not None:
        st.caption(f":material/visibility: {worded(t, remark)}")


def refused(t: Texts, job: Job[Any]) -> bool:
    """Why a model was not registered and what to do; False, and nothing, if it was or something else went wrong."""
    why = job.failure
    if not isinstance(why, ReleaseRefused):
        return False
    reason = t("release.refused", named=percent(why.named), bound=percent(why.bound))
    if why.bits is None:
        do = t("release.do_none")
    else:
        do = t("release.do_bits", bits=why.bits)
    st.warning(f"{reason}\n\n{do}", icon=":material/visibility:", title=t("release.refused_title"))
    return True


def sealed(t: Texts, models: Sequence[Sealed], busy: bool, steps: Steps) -> None:
    """Draw the sealed models of this account, each with what it can still become; nothing if there are none."""
    if not models:
        return
    frame.section(t, "release.sealed_title")
    st.caption(t("release.sealed_about"))
    for model in models:
        with st.container(border=True):
            _sealed(t, model, busy, steps)


def _sealed(t: Texts, model: Sealed, busy: bool, steps: Steps) -> None:
    model_id = model.record.id
    told_bits = worded(t, told_by_scores(model.record.release, model.record.score_bits))
    algorithm = frame.algorithm(t, model.record)
    trees = t("train.trees", n=model.record.n_trees)
    st.markdown(t("release.sealed_model", id=model_id, algorithm=algorithm, trees=trees, told=told_bits))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if model.bits is not None and model.bits < model.record.score_bits:
            words = t("release.do_coarser", bits=model.bits)
            if st.button(words, key=f"sealed_coarser_{model_id}", disabled=busy, icon=":material/grid_on:"):
                steps.coarser(model)
        if model.trees < model.approved_trees:
            n_trees = st.number_input(
                t("release.do_trees"),
                min_value=model.trees + 1,
                max_value=model.approved_trees,
                value=model.approved_trees,
                key=f"sealed_trees_{model_id}",
                width=140,
            )
            if st.button(t("release.do_grow"), key=f"sealed_grow_{model_id}", disabled=busy, icon=":material/park:"):
                steps.grow(model, int(n_trees))
        measure = st.button(
            t("release.do_measure"),
            key=f"sealed_measure_{model_id}",
            disabled=busy,
            icon=":material/visibility:",
            help=t("release.do_measure_help"),
        )
        if measure:
            steps.measure(model)
        if st.button(
            t("release.do_discard"), key=f"sealed_discard_{model_id}", disabled=busy, icon=":material/delete:"
        ):
            steps.discard(model)


def taken(t: Texts, record: ModelRecord) -> None:
    """Draw what the scores of a registered model give away, and whether a coarser scale was taken."""
    release = record.release
    if release is None:
        return
    st.markdown(f":material/visibility: {sentence(t, record)}")
    if release.asked_bits is not None:
        st.markdown(f":material/grid_on: {t('release.taken', bits=record.score_bits, asked=release.asked_bits)}")


def sentence(t: Texts, record: ModelRecord) -> str:
    """Return what every page says about scores, as it was measured before the model was registered."""
    return worded(t, told_by_scores(record.release, record.score_bits))


def before(t: Texts, record: ModelRecord) -> None:
    """Draw the same next to a second measurement on other people."""
    if record.release is not None:
        st.markdown(f":material/visibility: {t.joined(sentence(t, record), t('release.again'))}")
