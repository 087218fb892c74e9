"""A scoring run while it happens: which stage, whose turn, how far, how long, and a way to stop it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.panels import palette
from app.reading import View
from app.texts import Texts, markdown
from backend.service import Job, PoolLevel

STAGES = ("key", "encode", "encrypt", "mask", "decrypt")


def cutoff(t: Texts) -> float:
    """The probability from which the decision is to decline, 0..1."""
    chosen = st.slider(
        t("score.cutoff"),
        1,
        99,
        50,
        format="%d %%",
        key="score_cutoff",
        help=t("glossary.cutoff"),
        persist_state="session",
    )
    return chosen / 100


def pools(t: Texts, view: View, levels: Sequence[PoolLevel]) -> None:
    """How much randomness each party has prepared, and what it means while that is little."""
    kept = [level for level in levels if level.target]
    if not kept:
        return
    listed = " · ".join(
        t(
            "score.pool",
            party=palette.name(t, view.federation, level.party),
            ready=f"{level.ready:,}",
            target=f"{level.target:,}",
        )
        for level in kept
    )
    if any(level.ready < level.target / 4 for level in kept):
        st.caption(f":material/hourglass_top: {t('score.warming')} {listed}", help=t("glossary.obfuscator"))
    else:
        st.caption(f"{t('score.pools')} {listed}", help=t("glossary.obfuscator"))


def live(t: Texts, view: View, job: Job[Any]) -> None:
    """The stages as they happen."""
    with st.container(border=True):
        reached = STAGES.index(job.stage) if job.stage in STAGES else len(STAGES) if job.stage == "done" else 0
        lines = []
        for i, stage in enumerate(STAGES):
            words = t(f"stage.{stage}")
            if i < reached:
                lines.append(f":material/check: :gray[{words}]")
            elif i == reached:
                who = palette.name(t, view.federation, job.party) if job.party in _parties(view) else ""
                lines.append(f":material/arrow_right_alt: **{words}** {who}")
            else:
                lines.append(f":material/more_horiz: :gray[{words}]")
        st.markdown("  \n".join(lines))
        many = job.total > 1
        share = job.done / job.total if many else reached / len(STAGES)
        left = job.seconds / job.done * (job.total - job.done) if many and job.done else None
        words = [t("stage.count", done=f"{job.done:,}", total=f"{job.total:,}")] if many else []
        words.append(t("stage.elapsed", seconds=t.duration(job.seconds)))
        if left is not None:
            words.append(t("stage.left", seconds=t.duration(left)))
        st.progress(min(share, 1.0), text=" · ".join(words))
        if st.button(t("stage.cancel"), icon=":material/stop_circle:", key="cancel_score"):
            job.cancel()


def _parties(view: View) -> tuple[str, ...]:
    return (view.model.guest, *view.model.hosts)


def ended(t: Texts, job: Job[Any]) -> None:
    """What became of a job that brought no result."""
    if job.state == "cancelled":
        st.info(t("stage.cancelled"), icon=":material/stop_circle:")
    elif job.state == "failed":
        st.warning(markdown(job.error or ""), icon=":material/report:", title=t("frame.problem"))
