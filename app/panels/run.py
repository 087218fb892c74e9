"""A scoring or a training while it happens: which stage, whose turn, how far, how long, and a way to stop it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import session, user_jobs
from app.panels import charts, frame, lines, links, palette, parties, release, waits
from app.texts import Texts, amount, bare, markdown, number
from app.view_models import View

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.data.label import Label
    from backend.jobs import Job
    from backend.protocols.guest_runtime import PoolLevel
    from backend.protocols.training.parameters import TreeProgress
    from backend.results import ModelRecord
    from backend.services.policies import Policy

SCORING_STAGES = ("key", "encode", "encrypt", "mask", "decrypt")


def what_if(t: Texts, policy: Policy, key: str = "score_cutoff") -> float | None:
    """Draw the slider for another line than the policy's; return it, or None at the policy's own line or if the model has none.

    It is forgotten when the page is left, and says that it is no decision.
    """
    if policy.task != "binary":
        return None
    usual = min(99, max(1, round(100 * policy.cutoff)))
    percent_line = int(st.slider(t("policy.line"), 1, 99, usual, format="%d %%", key=key, help=t("policy.line_help")))
    if percent_line == usual:
        return None
    st.caption(f":material/help: {t('policy.what_if', cutoff=f'{percent_line} %')}")
    return percent_line / 100


def what_if_box(t: Texts, policy: Policy) -> float | None:
    """Draw a box with the slider for another line; return it, or None while the box is closed."""
    if policy.task != "binary":
        return None
    opened = frame.box(t("score.other_line"), "rule", "score_other_line")
    if opened is None:
        return None
    with opened:
        return what_if(t, policy)


def cutoff(t: Texts, policy: Policy, key: str) -> float | None:
    """Draw the slider for the line that something is measured at; return None at the policy's own line."""
    return what_if(t, policy, key)


@st.fragment(run_every=1.0)
def pools_filling(draw: Callable[[], None], filled: Callable[[], bool]) -> None:
    """Draw how far the pools are while nothing else is under way: a second clock beside a job's could drop what is drawn at the job's end.

    Once they are `filled` the page is drawn again, which said before that they were not.
    """
    user_jobs.note_clock()
    draw()
    if filled():
        st.rerun()


def lacking(levels: Sequence[PoolLevel], usage: Mapping[str, int]) -> int:
    """Obfuscators that are still to be made until a score is fast: as many as it has `usage` then, at most a quarter of a pool.

    A party of which it is not known what is taken of its pool has to have a quarter.
    """
    needed_of = {level.party: min(level.target // 4, usage.get(level.party, level.target)) for level in levels}
    return sum(max(0, needed_of[level.party] - level.ready) for level in levels)


def readiness(t: Texts, words: str, read: Callable[[], int]) -> None:
    """Draw the line on the cipher, and how many obfuscators the next score waits for, how long at the pace of the last that came."""
    n_lacking = read()
    now = time.monotonic()
    since, previous, each = session.kept("pools_lacking", (now, n_lacking, 0.0))
    if n_lacking > previous:  # other people, or another key
        since = now
        previous = n_lacking
        each = 0.0
    elif n_lacking < previous:
        since, previous, each = now, n_lacking, (now - since) / (previous - n_lacking)
    session.keep("pools_lacking", (since, previous, each))
    parts = [words, t("engine.preparing") if n_lacking else t("engine.ready")]
    still = n_lacking * each - (now - since)
    if still > 0:  # else they come slower than before: nothing is known
        parts.append(frame.time_left(t, still))
    st.caption(" · ".join(parts))


def needed(view: View, levels: Sequence[PoolLevel], cipher: str) -> list[PoolLevel]:
    """Return the pools that a scoring under `cipher` draws from."""
    with_pool = [level for level in levels if level.target]
    if cipher == "rlwe":
        return [level for level in with_pool if level.party != view.model.guest]  # it draws its randomness as it goes
    return with_pool


def _prepared(
    t: Texts, view: View, read: Callable[[], Sequence[PoolLevel]], cipher: str, usage: Mapping[str, int]
) -> None:
    """Draw one line on whether the next score will be fast; nothing if no randomness is kept."""
    levels = needed(view, read(), cipher)
    if levels:
        icon, words = ("hourglass_top", t("score.warming")) if lacking(levels, usage) else ("check", t("score.warm"))
        st.caption(f":material/{icon}: {words}", help=t(f"score.pools_{cipher}"))


def pools(t: Texts, view: View, read: Callable[[], Sequence[PoolLevel]], cipher: str, usage: Mapping[str, int]) -> None:
    """Draw how much randomness each party has ready for `cipher`; nothing if none is kept."""
    levels = needed(view, read(), cipher)
    if not levels:
        return
    _prepared(t, view, read, cipher, usage)
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
    kind: str,
    redraw: Callable[[], None],
) -> None:
    """Draw the stages as they happen; `redraw` draws the page once the job `kind` has ended."""
    _live(t, view, job, kind)
    if job.state != "running":
        redraw()


def _live(t: Texts, view: View, job: Job[Any], kind: str) -> None:
    n_done = user_jobs.progress(kind)
    with st.container(border=True):
        if job.stage in SCORING_STAGES:
            reached = SCORING_STAGES.index(job.stage)
        elif job.stage == "done":
            reached = len(SCORING_STAGES)
        else:
            reached = 0
        lines = []
        for i, stage in enumerate(SCORING_STAGES):
            words = t(f"stage.{stage}")
            if i < reached:
                lines.append(f":material/check: :gray[{words}]")
            elif i == reached:
                if job.party in _parties(view):
                    who = palette.name(t, view.federation, job.party)
                else:
                    who = ""
                lines.append(f":material/arrow_right_alt: **{words}** {who}")
            else:
                lines.append(f":material/more_horiz: :gray[{words}]")
        st.markdown("  \n".join(lines))
        many = job.total > 1
        if many:
            share = n_done / job.total
        else:
            share = reached / len(SCORING_STAGES)
        frame.progress(t, job, share, n_done)
        frame.stop(t, job, kind)


def _parties(view: View) -> tuple[str, ...]:
    return (view.model.guest, *view.model.hosts)


def ended(t: Texts, job: Job[Any], cancelled: str = "stage.cancelled", again: Callable[[], None] | None = None) -> None:
    """Draw what became of a job that brought no result; `again` starts it once more, if it waits for an approval."""
    if job.state == "cancelled":
        st.info(t(cancelled), icon=":material/stop_circle:")
    elif job.state == "failed" and not waits.draw(t, job.failure, again):
        frame.problem(t, job.failure or "")


@st.fragment(run_every=0.5)
def train(t: Texts, federation: Federation, job: Job[Any], name: str, redraw: Callable[[], None]) -> None:
    """Draw a training: its stage, how far it is, the curves so far, and a way to stop; `redraw` draws the page once it has ended."""
    who = [party.name for party in (federation.guest, *federation.hosts)]
    if job.party in who:
        turn = palette.name(t, federation, job.party)
    else:
        turn = ""
    frame.working(t, job, t(f"stage.{job.stage}"), "train", turn)
    if job.points:
        curves(t, federation.label, job.points, name, "train_live")
    if job.state != "running":
        redraw()


def trained(t: Texts, federation: Federation, job: Job[ModelRecord], again: Callable[[], None] | None = None) -> None:
    """Draw the new model and where to look at it, or why there is none; `again` trains the same once more."""
    record = job.result
    if record is None:
        ended(t, job, "train.cancelled", again)
        return
    st.info(
        t(
            "train.done",
            trees=t("train.trees", n=record.n_trees),
            leaves=f"{record.n_leaves:,}",
            seconds=t.duration(job.seconds),
            quality=frame.quality(t, record, markdown(t.unit(federation.label))),
        ),
        icon=":material/check_circle:",
        title=t("train.registered"),
    )
    if record.alignment is not None and record.hosts:
        st.markdown(f":material/join_inner: {parties.aligned(t, federation, record.alignment)}")
    links.to_model(record.id, t("train.open"))
    release.taken(t, record)
    if record.curve:
        curves(t, federation.label, record.curve, record.algorithm, "train_done")


def curves(t: Texts, label: Label, points: Sequence[TreeProgress], name: str, key: str) -> None:
    """Draw loss and AUC after each round, or the error of a number; one round alone is no curve."""
    number_label = label.task == "number"
    last = points[-1]
    if number_label:
        best = min(points, key=lambda point: point.log_loss_validation)
    else:
        best = max(points, key=lambda point: _known(point.auc_validation))
    st.markdown(
        t(
            "train.curve_number" if number_label else "train.curve_sentence",
            grown=t("train.rounds", n=last.tree),
            loss=markdown(amount(last.log_loss_validation, t.unit(label) if number_label else "")),
            auc=number(last.auc_validation),
            best=best.tree,
        )
    )
    note = {"forest": "train.out_of_bag", "opboost": "train.noisy"}.get(name)
    if note:
        st.caption(f":material/info: {t(note)}")
    measures = [("rmse" if number_label else "log_loss", "log_loss")] + ([] if number_label else [("auc", "auc")])
    if len(points) > 1:
        for column, (title, field) in zip(st.columns(len(measures)), measures, strict=True):
            with column:
                words = t(f"train.{title}")
                unit = t.unit(label) if title == "rmse" else ""
                st.markdown(f"**{words}**")
                frame.drawing(_lines(t, points, field, unit, words), f"{key}_{title}")
    columns: dict[str, Sequence[Any]] = {t("train.round"): [point.tree for point in points]}
    for title, field in measures:
        for part in ("training", "validation"):
            values = [number(getattr(point, f"{field}_{part}")) for point in points]
            columns[t.noted(t(f"figure.{title}"), t(f"score.part_{part}"))] = values
    columns[t("score.time")] = [t.duration(point.seconds) for point in points]
    frame.table_twin(t, columns, t("train.curves"), key)


def _known(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _lines(t: Texts, points: Sequence[TreeProgress], field: str, unit: str, sentence: str) -> charts.Drawing:
    """Return a chart with a line for the training rows and one for the validation rows, over the rounds."""
    rounds = [point.tree for point in points]
    values = {}
    for part in ("training", "validation"):
        values[t(f"score.part_{part}")] = [getattr(point, f"{field}_{part}") for point in points]
    texts = {name: [amount(value, unit) for value in row] for name, row in values.items()}
    hover = lines.hover(rounds, texts)
    values_measured = [value for row in values.values() for value in row if not math.isnan(value)]
    parts = [
        lines.Line(rounds, row, name, dash=dash, dots=True)
        for (name, row), dash in zip(values.items(), ("dot", "solid"), strict=True)
    ]
    across = lines.between(t("train.round_axis"), 0, rounds[-1], bare)
    up = lines.rounded(unit, values_measured or [0.0], "{:,.6g}".format)
    return lines.drawing(parts, across, up, sentence, hover)
