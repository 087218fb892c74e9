"""Ways of scoring side by side: what is to be run, over which network, how far it is, and the figures of a finished run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.panels import controls, engine, frame, palette
from app.texts import Texts, size
from app.view_models import View
from backend.services.protocol_comparison import NODE_BY_NODE_SAMPLES, PROTOCOLS, SHAPE_LIMITS, Link, Shape

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.research.baselines.comparison import ProtocolResult
    from backend.research.baselines.disclosure import Learned
    from backend.services.protocol_comparison import Compared

OURS = PROTOCOLS[0]
SOURCES = ("own", "synthetic")
MAX_PEOPLE = 100
LATENCIES = (0, 1, 5, 10, 20, 50, 100, 200, 300)  # milliseconds
BANDWIDTHS = (30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 100_000_000)  # bytes a second
USUAL_LINK = Link()
HEAVY = 50_000  # leaf weights from which one ciphertext each is the slow way


@dataclass(frozen=True)
class Setup:
    """What is to be run; `shape` is a synthetic model's."""

    samples: int
    cipher: engine.Engine
    key_bits: int
    shape: Shape | None


def setup(t: Texts) -> Setup:
    """Which model, how many people, and Fed-EINI's cipher."""
    source = controls.choice(
        t("protocols.source"),
        SOURCES,
        "protocols_source",
        lambda name: t(f"protocols.source_{name}"),
        help=t("protocols.source_help"),
    )
    shape = _shape(t) if source == "synthetic" else None
    shared: dict[str, Any] = {"help": t("protocols.samples_help"), "persist_state": "session"}
    samples = st.slider(t("protocols.samples"), 1, MAX_PEOPLE, 1, key="protocols_samples", **shared)
    cipher, bits = engine.choose(t, "protocols")
    if samples > NODE_BY_NODE_SAMPLES:
        st.caption(f":material/info: {t('protocols.node_left_out', people=NODE_BY_NODE_SAMPLES)}")
    if shape is not None and cipher == "paillier" and shape.leaves * samples > HEAVY:
        st.caption(f":material/hourglass: {t('protocols.heavy', weights=f'{shape.leaves * samples:,}')}")
    return Setup(samples, cipher, bits, shape)


def _shape(t: Texts) -> Shape:
    def slider(name: str) -> int:
        limits = SHAPE_LIMITS[name]
        usual = int(getattr(Shape, name))
        shared: dict[str, Any] = {"help": t(f"protocols.{name}_help"), "persist_state": "session"}
        return int(st.slider(t(f"protocols.{name}"), limits[0], limits[-1], usual, key=f"protocols_{name}", **shared))

    trees = slider("trees")
    depth_column, features_column = st.columns(2)
    with depth_column:
        depth = slider("depth")
    with features_column:
        features = slider("features")
    shape = Shape(trees, depth, features)
    st.caption(t("protocols.leaves", leaves=f"{shape.leaves:,}"))
    return shape


def link(t: Texts) -> Link:
    """The network between any two parties."""
    latency_column, bandwidth_column = st.columns(2, gap="medium")

    def slider(
        column: DeltaGenerator, name: str, values: Sequence[int], usual: int, words: Callable[[int], str]
    ) -> int:
        shared: dict[str, Any] = {"help": t(f"protocols.{name}_help"), "persist_state": "session"}
        shared |= {"key": f"protocols_{name}", "format_func": words}
        return int(column.select_slider(t(f"protocols.{name}"), values, value=usual, **shared))

    latency = slider(
        latency_column, "latency", LATENCIES, round(USUAL_LINK.latency * 1000), lambda n: t("protocols.ms", n=n)
    )
    bandwidth = slider(bandwidth_column, "bandwidth", BANDWIDTHS, int(USUAL_LINK.bandwidth), lambda n: f"{size(n)}/s")
    return Link(latency / 1000, float(bandwidth))


def follow(t: Texts, job: Job[Compared], result_drawn: Compared | None, redraw: Callable[[], None]) -> None:
    """Draw what is at work, and a way to stop; `redraw` draws the whole page once the job has ended or has more than is `result_drawn`."""

    def words(stage: str) -> str:
        step = {"number": job.done + 1, "total": job.total}
        if stage in PROTOCOLS:
            return t("protocols.running", **step, name=named(t, stage))
        if stage in ("pools", "batches"):
            return t(f"protocols.{stage}", **step)
        return t(f"stage.{stage}")

    frame.follow(t, job, words, "protocols", redraw, lambda: job.result is not result_drawn)


def named(t: Texts, protocol: str) -> str:
    """Return a protocol in words."""
    return t(f"protocols.name_{protocol}")


def marked(t: Texts, protocol: str) -> str:
    """Return the same with a mark on those that send plaintext."""
    return named(t, protocol) + ("" if protocol == OURS else " ◇")


def model(t: Texts, comparison: Compared) -> str:
    """On which model it was run."""
    if comparison.shape is None:
        return t("protocols.on_own")
    shape = comparison.shape
    return t(
        "protocols.on_synthetic", n=shape.trees, depth=shape.depth, features=shape.features, leaves=f"{shape.leaves:,}"
    )


def figures(t: Texts, comparison: Compared) -> None:
    """Draw the race's table twin, in two tables that a phone puts below each other."""
    rows = comparison.runs.rows
    exchanges = [row.exchange for row in rows]
    tables = {
        "times": {
            "total": [t.duration(e.total) for e in exchanges],
            "compute_column": [t.duration(e.compute) for e in exchanges],
            "network_column": [t.duration(e.network) for e in exchanges],
        },
        "messages": {
            "rounds": [f"{e.rounds:,}" for e in exchanges],
            "hops": [f"{e.hops:,}" for e in exchanges],
            "bytes": [size(e.bytes) for e in exchanges],
        },
    }
    protocols = {t("protocols.protocol"): [marked(t, row.protocol) for row in rows]}
    for column, (name, cells) in zip(st.columns(2, gap="large"), tables.items(), strict=True):
        unbroken = {}
        for c in cells:
            unbroken[t(f"protocols.{c}")] = [cell.replace(" ", "\u00a0") for cell in cells[c]]
        with column:
            frame.table(protocols | unbroken, t(f"protocols.{name}"))
    if all(row.equal for row in rows):
        equal = t("protocols.equal") + " "
    else:
        equal = ""
    st.caption(equal + t("protocols.rounds_caption", round=t("glossary.round"), hop=t("glossary.hop")))
    with st.expander(t("protocols.what"), icon=":material/help:"):
        st.markdown("\n".join(f"- **{named(t, row.protocol)}.** {t(f'protocols.what_{row.protocol}')}" for row in rows))


def learned(t: Texts, view: View, comparison: Compared) -> None:
    """Draw what each party got to know, in bits a person."""
    rows = comparison.runs.rows
    table: frame.Columns = {
        t("protocols.protocol"): [marked(t, row.protocol) for row in rows],
        t("protocols.guest_learned"): [_guest(t, row) for row in rows],
        t("protocols.hosts_learned"): [_hosts(t, view, comparison, row.learned[1:]) for row in rows],
    }
    frame.table(table, t("protocols.learned"))
    st.caption(t("protocols.learned_caption"))


def _guest(t: Texts, row: ProtocolResult) -> str:
    guest = row.learned[0]
    if guest.directions:
        return t("protocols.learned_path", bits=bits(t, guest.directions))
    return t("protocols.learned_score", bits=bits(t, guest.score))


def _hosts(t: Texts, view: View, comparison: Compared, hosts: Sequence[Learned]) -> str:
    if all(host.bits == 0 for host in hosts):
        return t("protocols.learned_nothing")

    def name(party: str) -> str:
        if comparison.shape is not None:
            return t("words.host")
        return palette.name(t, view.federation, party)

    return t.listed([t("protocols.host_learned", party=name(host.party), bits=bits(t, host.bits)) for host in hosts])


def bits(t: Texts, count: float | None) -> str:
    """Return a number of bits, if it was counted."""
    if count is None:
        return t("protocols.learned_uncounted")
    return f"{count:.1f}".removesuffix(".0")
