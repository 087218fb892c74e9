"""Making another model: who takes part, with which parameters, and the curves while it grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.panels import frame, palette
from app.session import page
from app.texts import Texts, markdown, number
from backend.service import Federation, Job, ModelRecord, SecureBoostParameters, TreeProgress

DEFAULTS = SecureBoostParameters()
NUMBERS = {  # name: lowest, highest, step
    "trees": (1, 500, 1),
    "depth": (1, 8, 1),
    "learning_rate": (0.01, 1.0, 0.05),
    "bins": (2, 128, 1),
    "reg_lambda": (0.0, 100.0, 0.5),
    "gamma": (0.0, 100.0, 0.1),
    "min_child_weight": (0.0, 100.0, 0.5),
    "early_stopping": (0, 50, 1),
    "seed": (0, 1_000_000, 1),
}
FIRST = ("trees", "depth", "learning_rate", "bins")
CIPHERS = ("paillier", "none")
KEY_BITS = (2048, 3072, 4096)


def federation(t: Texts, federations: Sequence[Federation], key: str) -> None:
    """Whose data."""
    titles = {item.name: t.federation(item) for item in federations}
    st.selectbox(
        t("train.federation"), list(titles), key=key, format_func=titles.__getitem__, help=t("glossary.federation")
    )


def parties(t: Texts, chosen: Federation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which Hosts take part and which features stay out; returns (hosts, excluded feature names)."""
    hosts = st.pills(
        t("train.hosts"),
        [host.name for host in chosen.hosts],
        selection_mode="multi",
        default=[host.name for host in chosen.hosts],
        key=f"train_hosts_{chosen.name}",
        format_func=lambda name: palette.name(t, chosen, name),
        help=t("glossary.host"),
    )
    offered = {
        feature.name: feature for party, feature in chosen.features() if party == chosen.guest.name or party in hosts
    }
    excluded = st.multiselect(
        t("train.exclude"),
        list(offered),
        key=f"train_exclude_{chosen.name}",
        format_func=lambda name: t.meaning(offered[name]),
        help=t("train.exclude_help"),
        placeholder=t("train.exclude_none"),
    )
    return tuple(hosts), tuple(excluded)


def parameters(t: Texts) -> dict[str, Any]:
    """The numbers that steer growth, as keyword arguments for `SecureBoostParameters`."""
    chosen: dict[str, Any] = {}
    with st.grid("auto", min_column_width=150):
        for name in FIRST:
            chosen[name] = _number(t, name)
    with st.expander(t("train.more"), icon=":material/tune:"), st.grid("auto", min_column_width=150):
        for name in NUMBERS:
            if name not in FIRST:
                chosen[name] = _number(t, name)
    chosen["cipher"] = st.segmented_control(
        t("train.cipher"),
        CIPHERS,
        default=DEFAULTS.cipher,
        required=True,
        key="train_cipher",
        format_func=lambda name: t(f"train.cipher_{name}"),
        help=t("glossary.paillier"),
        persist_state="session",
    )
    if chosen["cipher"] == "paillier":
        chosen["key_bits"] = st.segmented_control(
            t("train.key_bits"),
            KEY_BITS,
            default=DEFAULTS.key_bits,
            required=True,
            key="train_key_bits",
            format_func=lambda bits: t("train.bits", bits=f"{bits:,}"),
            help=t("glossary.key_bits"),
            persist_state="session",
        )
    else:
        st.info(t("train.plain_warning"), icon=":material/science:")
    return chosen


def _number(t: Texts, name: str) -> float:
    low, high, step = NUMBERS[name]
    return st.number_input(
        t(f"parameter.{name}"),
        min_value=low,
        max_value=high,
        value=getattr(DEFAULTS, name),
        step=step,
        key=f"train_{name}",
        help=t(f"parameter.{name}_help"),
        persist_state="session",
    )


def cost(t: Texts, chosen: Federation, cipher: str, trees: int, records: Sequence[ModelRecord]) -> None:
    """How long it may take, from a measured run on the same data with the same cipher; else that none was measured."""
    measured = [
        r for r in records if r.federation == chosen.name and (r.cipher == "none") == (cipher == "none") and r.n_trees
    ]
    if not measured:
        st.caption(f":material/schedule: {t('train.no_cost')}")
        return
    last = measured[0]
    st.caption(
        ":material/schedule: "
        + t(
            "train.cost",
            trees=last.n_trees,
            seconds=t.duration(last.seconds),
            rough=t.duration(last.seconds / last.n_trees * trees),
            n=trees,
        )
    )


def live(t: Texts, job: Job[ModelRecord], chosen: Federation) -> None:
    """Stage, progress, curves and a way to stop."""
    who = [party.name for party in (chosen.guest, *chosen.hosts)]
    with st.container(border=True):
        turn = palette.name(t, chosen, job.party) if job.party in who else ""
        st.markdown(f":material/arrow_right_alt: **{t(f'stage.{job.stage}')}** {turn}")
        share = job.done / job.total if job.total else 0.0
        count = t("stage.count", done=f"{job.done:,}", total=f"{job.total:,}") if job.total else ""
        words = [count, t("stage.elapsed", seconds=t.duration(job.seconds))]
        if 0 < job.done < job.total:
            words.append(t("stage.left", seconds=t.duration(job.seconds / job.done * (job.total - job.done))))
        st.progress(min(share, 1.0), text=" · ".join(filter(None, words)))
        if st.button(t("stage.cancel"), icon=":material/stop_circle:", key="cancel_train"):
            job.cancel()
    if job.points:
        curves(t, job.points, "train_live")


def curves(t: Texts, points: Sequence[TreeProgress], key: str) -> None:
    """Log-loss and AUC after each tree."""
    last = points[-1]
    best = max(points, key=lambda point: point.auc_validation)
    st.markdown(
        t(
            "train.curve_sentence",
            n=last.tree,
            loss=number(last.log_loss_validation),
            auc=number(last.auc_validation),
            best=best.tree,
        )
    )
    trees = [point.tree for point in points]
    left, right = st.columns(2)
    with left:
        loss = _lines(
            t, trees, [p.log_loss_training for p in points], [p.log_loss_validation for p in points], "log_loss"
        )
        frame.picture(loss, t("train.log_loss"), f"{key}_loss")
    with right:
        auc = _lines(t, trees, [p.auc_training for p in points], [p.auc_validation for p in points], "auc")
        frame.picture(auc, t("train.auc"), f"{key}_auc")
    with st.expander(t("frame.as_table"), icon=":material/table:"):
        st.dataframe(
            pd.DataFrame(
                {
                    t("structure.tree_number"): trees,
                    t("train.log_loss_training"): [number(p.log_loss_training) for p in points],
                    t("train.log_loss_validation"): [number(p.log_loss_validation) for p in points],
                    t("train.auc_training"): [number(p.auc_training) for p in points],
                    t("train.auc_validation"): [number(p.auc_validation) for p in points],
                    t("score.time"): [t.duration(p.seconds) for p in points],
                }
            ),
            hide_index=True,
            key=f"{key}_table",
            alt=t("train.curves"),
        )


def _lines(t: Texts, trees: list[int], training: list[float], validation: list[float], what: str) -> go.Figure:
    figure = go.Figure()
    for values, name, dash in ((training, "training", "dot"), (validation, "validation", "solid")):
        figure.add_scatter(
            x=trees,
            y=values,
            mode="lines+markers",
            name=t(f"score.part_{name}"),
            line={"color": palette.INK, "dash": dash, "width": 2},
            marker={"size": 5},
            hovertemplate=f"{t(f'score.part_{name}')}: %{{y:.4f}}<extra></extra>",
        )
    figure.update_xaxes(title=t("train.tree_axis"), fixedrange=True, rangemode="tozero")
    figure.update_yaxes(title=None, fixedrange=True)
    figure.update_layout(
        title={"text": t(f"train.{what}"), "font": {"size": 14}},
        height=290,
        margin={"l": 0, "r": 0, "t": 40, "b": 0},
        legend={**palette.LEGEND, "y": -0.3, "yanchor": "top"},
        hovermode="x unified",
    )
    return figure


def finished(t: Texts, job: Job[ModelRecord]) -> None:
    """The new model and where to look at it, or why there is none."""
    record = job.result
    if record is not None:
        st.info(
            t("train.done", n=record.n_trees, seconds=t.duration(job.seconds), auc=number(record.metrics.auc)),
            icon=":material/check_circle:",
            title=t("train.registered"),
        )
        st.page_link(
            page("overview"), label=t("train.open"), icon=":material/arrow_forward:", query_params={"model": record.id}
        )
        curves(t, record.curve, "train_done")
    elif job.state == "cancelled":
        st.info(t("train.cancelled"), icon=":material/stop_circle:")
    else:
        st.warning(markdown(job.error or ""), icon=":material/report:", title=t("frame.problem"))
