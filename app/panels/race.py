"""The race drawn: its verdict, a bar for each protocol that grows in simulated time, and who is faster at which size of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import streamlit as st

from app.panels import charts, frame, lines, palette
from app.panels.protocols import OURS, bits, marked, model, named
from app.texts import Texts, bare, label, number, wrap
from backend.services.protocol_comparison import PAIR, leads

if TYPE_CHECKING:
    from backend.research.baselines.batch_sizes import BatchTimes, Lead
    from backend.research.baselines.comparison import ProtocolResult
    from backend.services.protocol_comparison import Compared

FRAMES = 40
FRAME_MS = 80
CUT_FROM_TIMES = 6.0  # a bar is cut if it is this many times as long as Fed-EINI's
LANE_PIXELS = 46  # pixels


def verdict(t: Texts, rows: Sequence[ProtocolResult]) -> str:
    """Return which protocol is fastest over this network, what that costs, and whom Fed-EINI beats."""
    ours = next(row for row in rows if row.protocol == OURS)
    others = sorted((row for row in rows if row is not ours), key=lambda row: row.exchange.total)
    best = others[0]
    revealed = max((host.bits or 0.0 for host in best.learned[1:]), default=0.0)
    faster = best.exchange.total < ours.exchange.total
    words = t(
        "protocols.loses" if faster else "protocols.wins",
        name=named(t, best.protocol),
        other=t.duration(best.exchange.total),
        total=t.duration(ours.exchange.total),
        ratio=number(ours.exchange.total / best.exchange.total),
        bits=bits(t, best.learned[0].directions),
        hosts=t("protocols.to_hosts", bits=bits(t, revealed)) if revealed else "",
    )
    beaten = [named(t, row.protocol) for row in others if row.exchange.total > ours.exchange.total]
    if faster and beaten:
        words = t.joined(words, t("protocols.beats", names=t.listed(beaten)))
    if faster and all(row.learned[0].directions for row in others):
        words = t.joined(t("protocols.best_private"), words)
    return words


def draw(t: Texts, comparison: Compared) -> None:
    """Draw the verdict, and a bar for each protocol that grows in simulated time."""
    runs = comparison.runs
    wrong = [named(t, row.protocol) for row in runs.rows if not row.equal]
    if wrong:
        frame.problem(t, t("protocols.unequal", names=t.listed(wrong)))
    words = verdict(t, runs.rows)
    st.markdown(words)
    frame.picture(_bars(t, runs.rows), words, "protocols_race")
    ours = _ours(runs.rows)
    longest = max(row.exchange.total for row in runs.rows)
    st.caption(
        (t("protocols.cut", times=bare(CUT_FROM_TIMES)) + " " if longest > CUT_FROM_TIMES * ours else "")
        + t(
            "protocols.ran",
            n=runs.samples,
            model=model(t, comparison),
            key=frame.cipher(t, runs.cipher, runs.key_bits),
            pools=t(f"protocols.pools_{comparison.pools}"),
        )
        + " "
        + t("protocols.only", words=t("protocols.comparison_only")),
        help=t("glossary.simulated_time"),
    )


def _ours(rows: Sequence[ProtocolResult]) -> float:
    return next(row for row in rows if row.protocol == OURS).exchange.total


def _bars(t: Texts, rows: Sequence[ProtocolResult]) -> go.Figure:
    end = min(max(row.exchange.total for row in rows), CUT_FROM_TIMES * _ours(rows))
    heights = [-LANE_PIXELS * i - 30 for i in range(len(rows))]
    figure = charts.figure(LANE_PIXELS * len(rows) + 76, top=70, barmode="stack", updatemenus=[_play(t)])
    figure.add_traces(_at(t, rows, heights, end, None))
    words = []
    for height, row in zip(heights, rows, strict=True):
        text = wrap(marked(t, row.protocol), 60, 1)
        bold = f"<b>{text}</b>" if row.protocol == OURS else text
        words.append({"x": 0, "y": height + 8, "text": bold, "yanchor": "bottom"})
    charts.write(figure, words)
    moments = [(str(i), end * (i + 1) / FRAMES) for i in range(FRAMES)] + [("end", None)]
    figure.frames = [go.Frame(data=_at(t, rows, heights, end, now), name=name) for name, now in moments]
    figure.update_xaxes(visible=False, range=[0, end * 1.3])
    return figure.update_yaxes(visible=False, range=[heights[-1] - 14, 0])


def _play(t: Texts) -> dict[str, Any]:
    """Return the button that starts the race."""
    frame_by_frame = {"frame": {"duration": FRAME_MS, "redraw": True}, "transition": {"duration": 0}}
    moving = {**frame_by_frame, "fromcurrent": False, "mode": "immediate"}
    # At the right the buttons that save the chart would cover it.
    where = {"x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom", "pad": {"b": 30}}
    button = {"label": t("protocols.play"), "method": "animate", "args": [None, moving]}
    look = {"bgcolor": "rgba(0,0,0,0)", "bordercolor": palette.INK}
    return {"type": "buttons", "showactive": False, **where, **look, "buttons": [button]}


def _at(
    t: Texts, rows: Sequence[ProtocolResult], heights: Sequence[int], end: float, now: float | None
) -> list[go.Bar | go.Scatter]:
    """Return the race at simulated second `now` (None = over): compute, network, and the time at the end of each bar."""
    totals = [row.exchange.total for row in rows]
    reached = [total if now is None else min(total, now) for total in totals]
    shares = [row.exchange.compute / total if total else 0.0 for row, total in zip(rows, totals, strict=True)]
    lengths = [min(value, end) for value in reached]
    hover = [_hover(t, row, end) for row in rows]
    parts = (
        ("compute", [v * s for v, s in zip(lengths, shares, strict=True)], {"color": palette.INK}),
        (
            "network_time",
            [v * (1 - s) for v, s in zip(lengths, shares, strict=True)],
            {"color": palette.FAINT, "pattern": {"shape": "/", "fgcolor": palette.INK, "size": 5}},
        ),
    )
    over = [value >= total for value, total in zip(reached, totals, strict=True)]
    words = []
    for value, total, finished in zip(reached, totals, over, strict=True):
        cut = "» " if total > end else ""
        check = " ✓" if finished else ""
        words.append(f"{cut}{t.duration(value)}{check}")
    bars = []
    for name, lengths_of, marker in parts:
        bars.append(
            go.Bar(
                x=lengths_of,
                y=list(heights),
                orientation="h",
                width=14,
                name=t(f"protocols.{name}"),
                marker=marker,
                hovertext=hover,
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    times_beside = go.Scatter(
        x=lengths,
        y=list(heights),
        mode="text",
        text=[f" {w}" for w in words],
        textposition="middle right",
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
    )
    return [*bars, times_beside]


def _hover(t: Texts, row: ProtocolResult, end: float) -> str:
    """Return what a protocol does, its two times, and by how much its bar is cut."""
    exchange = row.exchange
    lines_of_hover = [
        f"<b>{label(named(t, row.protocol))}</b>",
        wrap(t(f"protocols.what_{row.protocol}"), 48, 6),
        f"{t('protocols.compute')}: {t.duration(exchange.compute)}",
        f"{t('protocols.network_time')}: {t.duration(exchange.network)}",
    ]
    if exchange.total > end:
        lines_of_hover.append(label(t("protocols.cut_here", times=number(exchange.total / end))))
    return "<br>".join(lines_of_hover)


def batches(t: Texts, comparison: Compared) -> None:
    """Draw Fed-EINI against its baseline by the number of people scored together."""
    measured = comparison.points
    sentence = who_wins(t, leads(measured))
    frame.chart(t, _lines(t, measured, sentence), sentence, _table(t, measured), "protocols_batches")
    runs = [comparison, *comparison.batches]
    warm = max((run.runs.samples for run in runs if run.pools == "warm"), default=0)
    notes = [t("protocols.batches_caption")]
    if warm and any(run.pools == "cold" for run in runs):
        notes.append(t("protocols.batches_warm", n=warm))
    if comparison.left_out:
        notes.append(t("protocols.batches_left_out", sizes=t.listed([str(size) for size in comparison.left_out])))
    st.caption(t.joined(*notes))


def who_wins(t: Texts, stretches: Sequence[Lead]) -> str:
    """Return which of the two is faster from which size to which, and where the lines cross."""

    def sizes(lead: Lead) -> str:
        if lead.first == lead.last:
            return t("protocols.size", n=lead.first)
        return t("protocols.sizes", first=lead.first, last=lead.last)

    def winner(lead: Lead) -> str:
        return named(t, PAIR[0 if lead.wins else 1])

    if len(stretches) == 1:
        return t("protocols.wins_all", name=winner(stretches[0]), sizes=sizes(stretches[0]))
    each = [t("protocols.wins_at", name=winner(lead), sizes=sizes(lead)) for lead in stretches]
    where = [f"{max(1, round(lead.until)):,}" for lead in stretches if lead.until is not None]
    return t.joined(
        t("protocols.wins_some", each=t.listed(each)), t("protocols.cross", n=len(where), where=t.listed(where))
    )


def _table(t: Texts, measured: Sequence[BatchTimes]) -> frame.Columns:
    return {
        t("protocols.people"): [point.samples for point in measured],
        named(t, PAIR[0]): [t.duration(point.fed_eini) for point in measured],
        named(t, PAIR[1]): [t.duration(point.by_level) for point in measured],
        t("protocols.faster"): [named(t, PAIR[0 if point.wins else 1]) for point in measured],
    }


def _lines(t: Texts, measured: Sequence[BatchTimes], sentence: str) -> charts.Drawing:
    """Seconds by people, both logarithmic; the stretches where Fed-EINI is ahead are shaded."""
    people = [point.samples for point in measured]
    every = ([point.fed_eini for point in measured], [point.by_level for point in measured])
    ticks = _ticks(min(map(min, every)), max(map(max, every)))
    up = lines.Axis("", math.log10(ticks[0]), math.log10(ticks[-1]), {math.log10(v): t.duration(v) for v in ticks})
    counts = {math.log10(n): f"{n:,}" for n in people}
    across = lines.Axis(t("protocols.people"), math.log10(people[0]), math.log10(people[-1]), counts)
    names = [marked(t, protocol) for protocol in PAIR]
    x = [math.log10(n) for n in people]
    curves = []
    texts = {}
    for name, seconds, dash in zip(names, every, ("solid", "dot"), strict=True):
        y = [math.log10(value) for value in seconds]
        curves.append(lines.Line(x, y, name, dash=dash, dots=True))
        texts[name] = [t.duration(value) for value in seconds]
    hover = lines.hover(x, texts)
    stretches = leads(measured)
    edges = [across.low, *(math.log10(lead.until) if lead.until else across.high for lead in stretches)]
    ahead = lines.Bars(
        edges, [up.high if lead.wins else up.low for lead in stretches], t("protocols.ahead"), palette.FAINT, 0
    )
    return lines.drawing(curves, across, up, sentence, hover, ahead)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from below `low` to above `high`: 1, 2 and 5 times powers of ten, or these alone over more than two powers."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= 3 else (1,)
    every = [step * 10.0**power for power in powers for step in steps]
    return [
        *[v for v in every if v < low][-1:],
        *[v for v in every if low <= v <= high],
        *[v for v in every if v > high][:1],
    ]
