"""A scoring or a training while it happens: which stage, whose turn, how far, how long, and a way to stop it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.panels import frame, palette, parties, release
from app.session import page
from app.texts import Texts, amount, markdown, number
from app.texts import label as escape
from app.view_models import View
from backend.services import Federation, Job, Label, ModelRecord, PoolLevel, ScoringRequest, TreeProgress

STAGES = ("key", "encode", "encrypt", "mask", "decrypt")


def cutoff(t: Texts, task: str = "binary", key: str = "score_cutoff") -> float:
    """The probability from which the decision is to decline, 0..1; where nothing is decided, nothing is asked."""
    if task != "binary":
        return ScoringRequest.cutoff
    chosen = st.slider(
        t("score.cutoff"),
        1,
        99,
        50,
        format="%d %%",
        key=key,
        help=t("glossary.cutoff"),
        persist_state="session",
    )
    return chosen / 100


@st.fragment(run_every=1.0)
def pools_filling(draw: Callable[[], None]) -> None:
    """The pools while nothing else is under way: a second clock beside a job's could drop what is drawn at the job's end."""
    draw()


def pools(t: Texts, view: View, read: Callable[[], Sequence[PoolLevel]], cipher: str) -> None:
    """How much randomness each party has ready for `cipher`; nothing where none is kept."""
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
def follow(
    t: Texts,
    view: View,
    job: Job[Any],
    progress: Callable[[], int],
    redraw: Callable[[], None],
    above: Callable[[], None],
) -> None:
    """What stands above, and the stages, as they happen; `redraw` draws the whole page once the job has ended."""
    above()
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


def ended(t: Texts, job: Job[Any], cancelled: str = "stage.cancelled") -> None:
    """What became of a job that brought no result."""
    if job.state == "cancelled":
        st.info(t(cancelled), icon=":material/stop_circle:")
    elif job.state == "failed":
        st.warning(markdown(job.error or ""), icon=":material/report:", title=t("frame.problem"))


@st.fragment(run_every=0.5)
def train(t: Texts, chosen: Federation, job: Job[ModelRecord], name: str, redraw: Callable[[], None]) -> None:
    """A training: its stage, how far it is, the curves so far, and a way to stop; `redraw` draws the page once it has ended."""
    who = [party.name for party in (chosen.guest, *chosen.hosts)]
    with st.container(border=True):
        turn = palette.name(t, chosen, job.party) if job.party in who else ""
        st.markdown(f":material/arrow_right_alt: **{t(f'stage.{job.stage}')}** {turn}")
        many = job.total > 1
        words = [t("stage.count", done=f"{job.done:,}", total=f"{job.total:,}")] if many else []
        words.append(t("stage.elapsed", seconds=t.duration(job.seconds)))
        if many and 0 < job.done < job.total and job.points:
            words.append(t("stage.left", seconds=t.duration(_left(job))))
        st.progress(min(job.done / job.total, 1.0) if job.total else 0.0, text=" · ".join(words))
        stopping = job.cancelled()
        st.button(
            t("stage.cancelling") if stopping else t("stage.cancel"),
            icon=":material/stop_circle:",
            key="cancel_train",
            disabled=stopping,
            on_click=job.cancel,
        )
    if job.points:
        curves(t, chosen.label, job.points, name, "train_live")
    if job.state != "running":
        redraw()


def _left(job: Job[ModelRecord]) -> float:
    """Seconds, from the mode of the trees alone: alignment and encryption come before them, once."""
    last = job.points[-1]
    return last.seconds / last.tree * (job.total - last.tree)


def trained(t: Texts, chosen: Federation, job: Job[ModelRecord]) -> None:
    """The new model and where to look at it, or why there is none."""
    record = job.result
    if record is None:
        ended(t, job, "train.cancelled")
        return
    st.info(
        t(
            "train.done",
            trees=t("train.trees", n=record.n_trees),
            leaves=f"{record.n_leaves:,}",
            seconds=t.duration(job.seconds),
            quality=frame.quality(t, record, markdown(chosen.label.unit)),
        ),
        icon=":material/check_circle:",
        title=t("train.registered"),
    )
    if record.alignment is not None and record.hosts:
        st.markdown(f":material/join_inner: {parties.aligned(t, chosen, record.alignment)}")
    st.page_link(
        page("overview"), label=t("train.open"), icon=":material/arrow_forward:", query_params={"model": record.id}
    )
    release.taken(t, record)
    if record.curve:
        curves(t, chosen.label, record.curve, record.algorithm, "train_done")


def curves(t: Texts, label: Label, points: Sequence[TreeProgress], name: str, key: str) -> None:
    """Loss and AUC after each round, or the error of a number; one round alone is no curve."""
    number_label, last = label.task == "number", points[-1]
    best = (
        min(points, key=lambda point: point.log_loss_validation)
        if number_label
        else max(points, key=lambda point: _known(point.auc_validation))
    )
    st.markdown(
        t(
            "train.curve_number" if number_label else "train.curve_sentence",
            grown=t("train.rounds", n=last.tree),
            loss=markdown(amount(last.log_loss_validation, label.unit if number_label else "")),
            auc=number(last.auc_validation),
            best=best.tree,
        )
    )
    note = {"forest": "train.out_of_bag", "opboost": "train.noisy"}.get(name)
    if note:
        st.caption(f":material/info: {t(note)}")
    drawn = [("rmse" if number_label else "log_loss", "log_loss")] + ([] if number_label else [("auc", "auc")])
    if len(points) > 1:
        for column, (title, field) in zip(st.columns(len(drawn)), drawn, strict=True):
            with column:
                frame.picture(_lines(t, points, title, field, label.unit), t(f"train.{title}"), f"{key}_{title}")
    with st.expander(t("frame.as_table"), icon=":material/table:"):
        columns = {t("train.round"): [point.tree for point in points]}
        for title, field in drawn:
            for part in ("training", "validation"):
                values = [number(getattr(point, f"{field}_{part}")) for point in points]
                columns[f"{t(f'figure.{title}')} ({t(f'score.part_{part}')})"] = values
        columns[t("score.time")] = [t.duration(point.seconds) for point in points]
        st.dataframe(pd.DataFrame(columns), hide_index=True, key=f"{key}_table", alt=t("train.curves"))


def _known(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _lines(t: Texts, points: Sequence[TreeProgress], title: str, field: str, unit: str) -> go.Figure:
    figure = go.Figure()
    for part, dash in (("training", "dot"), ("validation", "solid")):
        figure.add_scatter(
            x=[point.tree for point in points],
            y=[getattr(point, f"{field}_{part}") for point in points],
            mode="lines+markers",
            name=t(f"score.part_{part}"),
            line={"color": palette.INK, "dash": dash, "width": 2},
            marker={"size": 5},
            hovertemplate=f"{t(f'score.part_{part}')}: %{{y:.5~g}}<extra></extra>",
        )
    figure.update_xaxes(title=t("train.round_axis"), fixedrange=True, rangemode="tozero")
    figure.update_yaxes(title=None, fixedrange=True)
    words = t(f"train.{title}") + (f" ({unit})" if title == "rmse" and unit else "")
    figure.update_layout(
        title={"text": escape(words), "font": {"size": 14}},
        height=290,
        margin={"l": 0, "r": 0, "t": 40, "b": 0},
        legend={**palette.LEGEND, "y": -0.3, "yanchor": "top"},
        hovermode="x unified",
    )
    return figure
