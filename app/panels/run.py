"""A scoring run while it happens: which stage, whose turn, how far, how long, and a way to stop it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


@st.fragment(run_every=1.0)
def pools(t: Texts, view: View, read: Callable[[], Sequence[PoolLevel]], cipher: str) -> None:
    """How much randomness each party has ready for `cipher`, as it fills and empties; nothing where none is kept."""
    levels = [level for level in read() if level.target]
    if cipher == "rlwe":
        levels = [level for level in levels if level.party != view.model.guest]  # it draws its randomness as it goes
    if not levels:
        return
    low = any(level.ready < level.target / 4 for level in levels)
    icon, words = ("hourglass_top", t("score.warming")) if low else ("check", t("score.warm"))
    st.caption(f":material/{icon}: {words}", help=t(f"score.pools_{cipher}"))
    with st.grid("auto", min_column_width=170):
        for level in levels:
            ready = min(level.ready, level.target)  # the last handful may overshoot
            st.progress(
                ready / level.target,
                text=t(
                    "score.pool",
                    party=palette.name(t, view.federation, level.party),
                    ready=f"{ready:,}",
                    target=f"{level.target:,}",
                ),
            )


@st.fragment(run_every=0.4)
def follow(t: Texts, view: View, job: Job[Any], progress: Callable[[], int], redraw: Callable[[], None]) -> None:
    """The stages as they happen; `redraw` draws the whole page once the job has ended."""
    _live(t, view, job, progress())
    if job.state != "running":
        redraw()


def _live(t: Texts, view: View, job: Job[Any], done: int) -> None:
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
        share = done / job.total if many else reached / len(STAGES)
        words = [t("stage.count", done=f"{done:,}", total=f"{job.total:,}")] if many else []
        words.append(t("stage.elapsed", seconds=t.duration(job.seconds)))
        if many and 0 < done < job.total:
            words.append(t("stage.left", seconds=t.duration(job.seconds / done * (job.total - done))))
        st.progress(min(share, 1.0), text=" · ".join(words))
        if job.cancelled():
            st.button(t("stage.cancelling"), icon=":material/stop_circle:", key="cancel_score", disabled=True)
        else:
            st.button(t("stage.cancel"), icon=":material/stop_circle:", key="cancel_score", on_click=job.cancel)


def _parties(view: View) -> tuple[str, ...]:
    return (view.model.guest, *view.model.hosts)


def ended(t: Texts, job: Job[Any]) -> None:
    """What became of a job that brought no result."""
    if job.state == "cancelled":
        st.info(t("stage.cancelled"), icon=":material/stop_circle:")
    elif job.state == "failed":
        st.warning(markdown(job.error or ""), icon=":material/report:", title=t("frame.problem"))
