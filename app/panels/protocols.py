"""Ways of scoring side by side: what is run, a race over the chosen network, and what each party got to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.panels import frame, palette
from app.reading import View
from app.texts import Texts, label, number, size, wrap
from backend.service import NODE_BY_NODE_SAMPLES, PROTOCOLS, Compared, ComparisonRequest, Job, Link, Row

OURS = PROTOCOLS[0]
ENGINES = ("paillier", "rlwe")
KEY_BITS = (2048, 3072, 4096)
MOST = 100  # people
LATENCIES = (0, 1, 5, 10, 20, 50, 100, 200, 300)  # milliseconds
BANDWIDTHS = (30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 100_000_000)  # bytes a second
USUAL = Link()
FRAMES, FRAME_MS = 40, 80
CUT = 6.0  # a bar is cut where it is so many times as long as Fed-EINI's
LANE = 46  # pixels


@dataclass(frozen=True)
class Setup:
    """What is to be run."""

    samples: int
    cipher: Literal["paillier", "rlwe"]
    key_bits: int


def setup(t: Texts) -> Setup:
    """How many people, and Fed-EINI's cipher."""
    samples = st.slider(
        t("protocols.samples"), 1, MOST, 1, key="protocols_samples", help=t("protocols.samples_help"),
        persist_state="session",
    )  # fmt: skip
    cipher = st.segmented_control(
        t("engine.cipher"),
        ENGINES,
        default=ENGINES[0],
        required=True,
        key="protocols_cipher",
        format_func=lambda name: t(f"engine.name_{name}"),
        help=t("glossary.cipher"),
        persist_state="session",
    )
    bits = ComparisonRequest.key_bits
    if cipher == "paillier":
        bits = st.segmented_control(
            t("engine.key_bits"),
            KEY_BITS,
            default=bits,
            required=True,
            key="protocols_key_bits",
            format_func=lambda bits: t("train.bits", bits=f"{bits:,}"),
            help=t("glossary.key_bits"),
            persist_state="session",
        )
    if samples > NODE_BY_NODE_SAMPLES:
        st.caption(f":material/info: {t('protocols.node_left_out', most=NODE_BY_NODE_SAMPLES)}")
    return Setup(samples, cipher, bits)


def link(t: Texts) -> Link:
    """The network between any two parties."""
    latency = st.select_slider(
        t("protocols.latency"),
        LATENCIES,
        value=round(USUAL.latency * 1000),
        key="protocols_latency",
        format_func=lambda n: t("protocols.ms", n=n),
        help=t("protocols.latency_help"),
        persist_state="session",
    )
    bandwidth = st.select_slider(
        t("protocols.bandwidth"),
        BANDWIDTHS,
        value=int(USUAL.bandwidth),
        key="protocols_bandwidth",
        format_func=lambda n: f"{size(n)}/s",
        help=t("protocols.bandwidth_help"),
        persist_state="session",
    )
    return Link(latency / 1000, float(bandwidth))


@st.fragment(run_every=0.4)
def follow(t: Texts, job: Job[Compared], redraw: Callable[[], None]) -> None:
    """Which protocol is at work, and a way to stop; `redraw` draws the whole page once the job has ended."""
    with st.container(border=True):
        if job.stage in PROTOCOLS:
            words = t("protocols.running", number=job.done + 1, total=job.total, name=named(t, job.stage))
        else:
            words = t("protocols.pools") if job.stage == "pools" else t(f"stage.{job.stage}")
        st.markdown(f":material/arrow_right_alt: **{words}**")
        st.progress(job.done / job.total, text=t("stage.elapsed", seconds=t.duration(job.seconds)))
        stopping = job.cancelled()
        st.button(
            t("stage.cancelling") if stopping else t("stage.cancel"),
            icon=":material/stop_circle:",
            key="cancel_protocols",
            disabled=stopping,
            on_click=job.cancel,
        )
    if job.state != "running":
        redraw()


def named(t: Texts, protocol: str) -> str:
    """A protocol in words."""
    return t(f"protocols.name_{protocol}")


def _marked(t: Texts, protocol: str) -> str:
    return named(t, protocol) + ("" if protocol == OURS else " ◇")


def verdict(t: Texts, rows: Sequence[Row]) -> str:
    """Which protocol is fastest over this network, what that costs, and whom Fed-EINI beats."""
    ours = next(row for row in rows if row.protocol == OURS)
    others = sorted((row for row in rows if row is not ours), key=lambda row: row.exchange.total)
    best = others[0]
    told = max((host.bits or 0.0 for host in best.learned[1:]), default=0.0)
    faster = best.exchange.total < ours.exchange.total
    words = t(
        "protocols.loses" if faster else "protocols.wins",
        name=named(t, best.protocol),
        other=t.duration(best.exchange.total),
        total=t.duration(ours.exchange.total),
        ratio=number(ours.exchange.total / best.exchange.total),
        bits=_bits(t, best.learned[0].directions),
        hosts=t("protocols.to_hosts", bits=_bits(t, told)) if told else "",
    )
    beaten = [named(t, row.protocol) for row in others if row.exchange.total > ours.exchange.total]
    if faster and beaten:
        words += " " + t("protocols.beats", names=t.listed(beaten))
    if faster and all(row.learned[0].directions for row in others):
        words += " " + t("protocols.best_private")
    return words


def race(t: Texts, done: Compared) -> None:
    """The verdict, and a bar for each protocol that grows in simulated time."""
    runs = done.runs
    wrong = [named(t, row.protocol) for row in runs.rows if not row.equal]
    if wrong:
        frame.problem(t, t("protocols.unequal", names=t.listed(wrong)))
    words = verdict(t, runs.rows)
    st.markdown(words)
    frame.picture(_bars(t, runs.rows), words, "protocols_race")
    key = frame.cipher(t, runs.cipher, runs.key_bits)
    st.caption(
        t("protocols.ran", n=runs.samples, key=key, pools=t(f"protocols.pools_{done.pools}"))
        + " "
        + t("protocols.only", words=t("protocols.comparison_only")),
        help=t("glossary.simulated_time"),
    )


def _bars(t: Texts, rows: Sequence[Row]) -> go.Figure:
    ours = next(row for row in rows if row.protocol == OURS).exchange.total
    end = min(max(row.exchange.total for row in rows), CUT * ours)
    places = [-LANE * i - 30 for i in range(len(rows))]
    figure = go.Figure(_at(t, rows, places, end, None))
    for place, row in zip(places, rows, strict=True):
        text = wrap(_marked(t, row.protocol), 60, 1)
        figure.add_annotation(
            x=0,
            y=place + 8,
            text=f"<b>{text}</b>" if row.protocol == OURS else text,
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
            font={"size": 12},
        )
    figure.frames = [
        go.Frame(data=_at(t, rows, places, end, end * (i + 1) / FRAMES), name=str(i)) for i in range(FRAMES)
    ] + [go.Frame(data=_at(t, rows, places, end, None), name="end")]
    moving = {
        "frame": {"duration": FRAME_MS, "redraw": True},
        "transition": {"duration": 0},
        "fromcurrent": False,
        "mode": "immediate",
    }
    figure.update_xaxes(visible=False, fixedrange=True, range=[0, end * 1.3])
    figure.update_yaxes(visible=False, fixedrange=True, range=[places[-1] - 14, 0])
    figure.update_layout(
        barmode="stack",
        height=LANE * len(rows) + 70,
        margin={"l": 0, "r": 0, "t": 64, "b": 0},
        legend=palette.LEGEND,
        updatemenus=[
            {
                "type": "buttons",
                "showactive": False,
                "x": 1,
                "y": 1,
                "xanchor": "right",
                "yanchor": "bottom",
                "pad": {"b": 24, "r": 4},
                "bgcolor": "rgba(0,0,0,0)",
                "bordercolor": palette.INK,
                "buttons": [{"label": t("protocols.play"), "method": "animate", "args": [None, moving]}],
            }
        ],
    )
    return figure


def _at(
    t: Texts, rows: Sequence[Row], places: Sequence[int], end: float, now: float | None
) -> list[go.Bar | go.Scatter]:
    """The race at simulated second `now` (None = over): compute, network, and the time beside each bar."""
    totals = [row.exchange.total for row in rows]
    reached = [total if now is None else min(total, now) for total in totals]
    shares = [row.exchange.compute / total if total else 0.0 for row, total in zip(rows, totals, strict=True)]
    lengths = [min(value, end) for value in reached]
    hover = [
        f"<b>{label(named(t, row.protocol))}</b><br>{t('protocols.compute')}: {t.duration(row.exchange.compute)}"
        f"<br>{t('protocols.network_time')}: {t.duration(row.exchange.network)}"
        for row in rows
    ]
    parts = (
        ("compute", [v * s for v, s in zip(lengths, shares, strict=True)], {"color": palette.INK}),
        (
            "network_time",
            [v * (1 - s) for v, s in zip(lengths, shares, strict=True)],
            {"color": palette.FAINT, "pattern": {"shape": "/", "fgcolor": palette.INK, "size": 5}},
        ),
    )
    over = [value >= total for value, total in zip(reached, totals, strict=True)]
    words = [
        f"{'» ' if total > end else ''}{t.duration(value)}{' ✓' if finished else ''}"
        for value, total, finished in zip(totals if now is None else reached, totals, over, strict=True)
    ]
    bars = [
        go.Bar(
            x=lengths_of,
            y=list(places),
            orientation="h",
            width=14,
            name=t(f"protocols.{name}"),
            marker=marker,
            hovertext=hover,
            hovertemplate="%{hovertext}<extra></extra>",
        )
        for name, lengths_of, marker in parts
    ]
    beside = go.Scatter(
        x=lengths, y=list(places), mode="text", text=[f" {w}" for w in words], textposition="middle right",
        hoverinfo="skip", showlegend=False, cliponaxis=False,
    )  # fmt: skip
    return [*bars, beside]


def figures(t: Texts, done: Compared) -> None:
    """The race's table twin."""
    rows = done.runs.rows
    column = st.column_config.TextColumn
    st.dataframe(
        pd.DataFrame(
            {
                "protocol": [_marked(t, row.protocol) for row in rows],
                "total": [t.duration(row.exchange.total) for row in rows],
                "compute": [t.duration(row.exchange.compute) for row in rows],
                "network": [t.duration(row.exchange.network) for row in rows],
                "rounds": [f"{row.exchange.rounds:,}" for row in rows],
                "hops": [f"{row.exchange.hops:,}" for row in rows],
                "bytes": [size(row.exchange.bytes) for row in rows],
                "equal": [t("protocols.yes") if row.equal else t("protocols.no") for row in rows],
            }
        ),
        hide_index=True,
        height="content",
        key="protocols_table",
        alt=t("protocols.figures"),
        column_config={
            "protocol": column(t("protocols.protocol"), width=190),
            "total": column(t("protocols.total"), width=75),
            "compute": column(t("protocols.compute_column"), width=75),
            "network": column(t("protocols.network_column"), width=75, help=t("glossary.simulated_time")),
            "rounds": column(t("protocols.rounds"), width=65, help=t("glossary.round")),
            "hops": column(t("protocols.hops"), width=60, help=t("glossary.hop")),
            "bytes": column(t("protocols.bytes"), width=75),
            "equal": column(t("protocols.equal"), width=95),
        },
    )


def learned(t: Texts, view: View, done: Compared) -> None:
    """What each party got to know, in bits a person."""
    rows = done.runs.rows
    told = [_guest(t, row) for row in rows]
    hosts = {host.party: i for i, host in enumerate(rows[0].learned) if i}
    column = st.column_config.TextColumn
    st.dataframe(
        pd.DataFrame(
            {
                "protocol": [_marked(t, row.protocol) for row in rows],
                "guest": told,
                **{host: [_bits(t, row.learned[i].bits) for row in rows] for host, i in hosts.items()},
            }
        ),
        hide_index=True,
        height="content",
        row_height=frame.row_height(told, 50),
        key="protocols_learned",
        alt=t("protocols.learned"),
        column_config={
            "protocol": column(t("protocols.protocol"), width=190),
            "guest": column(t("protocols.guest_learned"), width=260, help=t("glossary.direction")),
            **{
                host: column(t("protocols.host_learned", party=palette.plain(t, view.federation, host)), width=185)
                for host in hosts
            },
        },
    )
    st.caption(t("protocols.learned_caption"))


def _guest(t: Texts, row: Row) -> str:
    guest = row.learned[0]
    if guest.directions:
        return t("protocols.learned_path", bits=_bits(t, guest.directions))
    return t("protocols.learned_score", bits=_bits(t, guest.score))


def _bits(t: Texts, count: float | None) -> str:
    return t("protocols.learned_uncounted") if count is None else f"{count:.1f}".removesuffix(".0")
