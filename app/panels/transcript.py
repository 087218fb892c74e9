"""Every message of a run: a sequence picture and a table."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from app.panels import frame, palette
from app.reading import View
from app.texts import Texts, label, size, wrap
from backend.service import ScoreBatch, TranscriptEntry

DRAWN = 12  # messages in the picture; the table holds all


def draw(t: Texts, view: View, done: ScoreBatch) -> None:
    """Who sent what to whom, and who can read it."""
    entries = done.transcript
    if not entries:
        return
    total = sum(entry.bytes for entry in entries)
    largest = max(entries, key=lambda entry: entry.bytes)
    sentence = t(
        "transcript.sentence",
        n=len(entries),
        total=size(total),
        largest=t.party(view.federation, largest.sender),
        to=t.party(view.federation, largest.receiver),
        bytes=size(largest.bytes),
    )
    if len(entries) > DRAWN:
        sentence += " " + t("transcript.first", n=DRAWN)
    twin = pd.DataFrame(
        {
            t("transcript.number"): [entry.number for entry in entries],
            t("transcript.sender"): [palette.plain(t, view.federation, entry.sender) for entry in entries],
            t("transcript.receiver"): [palette.plain(t, view.federation, entry.receiver) for entry in entries],
            t("transcript.holds"): [_said(t, entry, "holds", entry.holds) for entry in entries],
            t("transcript.readable"): [_said(t, entry, "readable", entry.readable_by) for entry in entries],
            t("transcript.size"): [size(entry.bytes) for entry in entries],
            t("transcript.when"): [t.duration(entry.seconds) for entry in entries],
            t("transcript.kind"): [_said(t, entry, "title", entry.kind) for entry in entries],
        }
    )
    frame.chart(t, _sequence(t, view, entries[:DRAWN]), sentence, twin, "transcript")


def _said(t: Texts, entry: TranscriptEntry, what: str, otherwise: str) -> str:
    key = f"message.{entry.kind}.{what}"
    return t(key) if t.has(key) else otherwise


def _sequence(t: Texts, view: View, entries: tuple[TranscriptEntry, ...]) -> go.Figure:
    parties = (view.model.guest, *view.model.hosts)
    lanes = {party: i for i, party in enumerate(parties)}
    figure = go.Figure()
    for party, lane in lanes.items():
        sign = palette.mark(view.federation, party)
        figure.add_scatter(
            x=[lane, lane],
            y=[0, len(entries) + 0.5],
            mode="lines",
            line={"color": sign.colour, "width": 2},
            hoverinfo="skip",
        )
        figure.add_scatter(
            x=[lane],
            y=[0],
            mode="markers+text",
            marker={"symbol": sign.symbol, "size": 16, "color": sign.colour},
            text=[f"<b>{wrap(t.party(view.federation, party), 12, 2)}</b>"],
            textposition="top center",
            textfont={"size": 12},
            hoverinfo="skip",
            cliponaxis=False,
        )
    # The words of a message stand in the first gap of its way, so that no lifeline runs through them.
    gaps = [lanes[e.sender] + (0.5 if lanes[e.receiver] > lanes[e.sender] else -0.5) for e in entries]
    for row, (entry, gap) in enumerate(zip(entries, gaps, strict=True), start=1):
        figure.add_annotation(
            x=lanes[entry.receiver],
            y=row,
            ax=lanes[entry.sender],
            ay=row,
            xref="x",
            yref="y",
            axref="x",
            ayref="y",
            showarrow=True,
            arrowhead=2,
            arrowwidth=1.6,
            arrowcolor=palette.INK,
            text="",
        )
        title = wrap(_said(t, entry, "title", entry.kind), 24, 1)
        figure.add_annotation(x=gap, y=row, yshift=10, showarrow=False, text=title, font={"size": 11})
        figure.add_annotation(x=gap, y=row, yshift=-10, showarrow=False, text=size(entry.bytes), font={"size": 11})
        if "encrypted" in entry.holds:
            figure.add_annotation(
                x=gap,
                y=row,
                yshift=-9,
                xshift=-34,
                showarrow=False,
                text="lock",
                font={"family": palette.ICONS, "size": 14, "color": palette.INK},
            )
    figure.add_scatter(
        x=gaps,
        y=list(range(1, len(entries) + 1)),
        mode="markers",
        marker={"size": 34, "opacity": 0},
        hovertext=[
            f"<b>{entry.number}. {label(_said(t, entry, 'title', entry.kind))}</b><br>"
            f"{wrap(_said(t, entry, 'holds', entry.holds), 44, 3)}<br>"
            f"{t('transcript.readable')}: {wrap(_said(t, entry, 'readable', entry.readable_by), 36, 3)}<br>"
            f"{size(entry.bytes)} · {t.duration(entry.seconds)}"
            for entry in entries
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    figure.update_xaxes(visible=False, fixedrange=True, range=[-0.4, len(parties) - 0.6])
    figure.update_yaxes(visible=False, fixedrange=True, range=[len(entries) + 0.6, -0.9])
    figure.update_layout(height=80 + 48 * len(entries), showlegend=False, margin={"l": 0, "r": 0, "t": 0, "b": 0})
    return figure
