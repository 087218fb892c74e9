"""A scoring run afterwards: every message as a picture and a table, how long each stage took, who learned what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
import streamlit as st

from app.panels import charts, frame, palette
from app.texts import Texts, label, size, wrap
from app.view_models import View, released, speed

if TYPE_CHECKING:
    from backend.protocols.transport.transcript import TranscriptEntry
    from backend.results import ScoreBatch

DRAWN = 12  # messages in the picture; the table holds all
GAP = 0.08  # of a message's row, between its arrow and the words
LOCK = f"<span style='font-family: {palette.ICONS}; font-size: 14px'>lock</span> "


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
        sentence = t.joined(sentence, t("transcript.first", n=DRAWN))
    twin: frame.Columns = {
        t("transcript.number"): [entry.number for entry in entries],
        t("transcript.sender"): [palette.plain(t, view.federation, entry.sender) for entry in entries],
        t("transcript.receiver"): [palette.plain(t, view.federation, entry.receiver) for entry in entries],
        t("transcript.holds"): [_in_words(t, entry, "holds", entry.holds) for entry in entries],
        t("transcript.readable"): [_in_words(t, entry, "readable", entry.readable_by) for entry in entries],
        t("transcript.size"): [size(entry.bytes) for entry in entries],
        t("transcript.when"): [t.duration(entry.seconds) for entry in entries],
        t("transcript.kind"): [_in_words(t, entry, "title", entry.kind) for entry in entries],
    }
    frame.chart(t, _sequence(t, view, entries[:DRAWN]), sentence, twin, "transcript")


def _in_words(t: Texts, entry: TranscriptEntry, what: str, otherwise: str) -> str:
    key = f"message.{entry.kind}.{what}"
    return t(key) if t.has(key) else otherwise


def _sequence(t: Texts, view: View, entries: tuple[TranscriptEntry, ...]) -> go.Figure:
    parties = (view.model.guest, *view.model.hosts)
    lanes = {party: i for i, party in enumerate(parties)}
    marks = [palette.mark(view.federation, party) for party in parties]
    # The words of a message stand in the first gap of its way, so that no lifeline runs through them.
    gaps = [lanes[e.sender] + (0.5 if lanes[e.receiver] > lanes[e.sender] else -0.5) for e in entries]
    rows = list(range(1, len(entries) + 1))
    titles = [wrap(_in_words(t, entry, "title", entry.kind), 24, 1) for entry in entries]
    sizes = [(LOCK if "encrypted" in entry.holds else "") + size(entry.bytes) for entry in entries]
    # Few traces: Plotly measures each word of an annotation by itself, which takes the browser most of its time.
    lifelines = [
        {
            "x": [lane, lane],
            "y": [0, len(entries) + 0.5],
            "mode": "lines",
            "line": {"color": mark.colour, "width": 2},
            "hoverinfo": "skip",
        }
        for lane, mark in enumerate(marks)
    ]
    heads = {
        "x": list(range(len(parties))),
        "y": [0] * len(parties),
        "mode": "markers+text",
        "marker": {"symbol": [m.symbol for m in marks], "size": 16, "color": [m.colour for m in marks]},
        "text": [f"<b>{wrap(t.party(view.federation, party), 12, 2)}</b>" for party in parties],
        "textposition": "top center",
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
    arrows = {
        "x": [x for e in entries for x in (lanes[e.sender], lanes[e.receiver], None)],
        "y": [y for row in rows for y in (row, row, None)],
        "mode": "lines+markers",
        "line": {"color": palette.INK, "width": 1.6},
        "marker": {"symbol": "arrow", "angleref": "previous", "size": [0, 11, 0] * len(entries), "color": palette.INK},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
    words = {
        "x": gaps * 2,
        "y": [*(row - GAP for row in rows), *(row + GAP for row in rows)],
        "mode": "text",
        "text": [*titles, *sizes],
        "textposition": ["top center"] * len(entries) + ["bottom center"] * len(entries),
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
    hovers = {
        "x": gaps,
        "y": rows,
        "mode": "markers",
        "marker": {"size": 34, "opacity": 0},
        "hovertext": [
            f"<b>{entry.number}. {label(_in_words(t, entry, 'title', entry.kind))}</b><br>"
            f"{wrap(_in_words(t, entry, 'holds', entry.holds), 44, 3)}<br>"
            f"{t('transcript.readable')}: {wrap(_in_words(t, entry, 'readable', entry.readable_by), 36, 3)}<br>"
            f"{size(entry.bytes)} · {t.duration(entry.seconds)}"
            for entry in entries
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    figure = charts.figure(80 + 48 * len(entries), showlegend=False)
    figure.add_traces([go.Scatter(one) for one in (*lifelines, heads, arrows, words, hovers)])
    figure.update_xaxes(visible=False, range=[-0.4, len(parties) - 0.6])
    return figure.update_yaxes(visible=False, range=[len(entries) + 0.6, -0.9])


def stages(t: Texts, view: View, done: ScoreBatch) -> None:
    """How long each stage took."""
    listed = sum(stage.seconds for stage in done.stages)
    slowest = max(done.stages, key=lambda stage: stage.seconds)
    words = {"slowest": t(f"stage.{slowest.name}"), "part": t.duration(slowest.seconds)}
    rest = max(0.0, done.seconds - listed)
    st.markdown(t("score.stages_sentence", total=t.duration(done.seconds), rest=t.duration(rest), **words))
    parties = [palette.plain(t, view.federation, stage.party) if stage.party else "–" for stage in done.stages]
    columns: frame.Columns = {
        t("score.stage"): [t(f"stage.{stage.name}") for stage in done.stages],
        t("words.party"): parties,
        t("score.time"): [t.duration(stage.seconds) for stage in done.stages],
    }
    frame.table(columns, t("score.stages"))
    took = speed(done, view.model.guest)
    st.markdown(
        t(
            "score.traffic" if took.between else "score.traffic_direct",
            out=size(round(took.out)),
            between=size(round(took.between)),
            back=size(round(took.back)),
        )
    )


def learned(t: Texts, view: View, done: ScoreBatch) -> None:
    """What each party knows after this run that it did not know before."""
    with st.container(border=True):
        guest = palette.name(t, view.federation, view.model.guest)
        people = sum(score.status == "ok" for score in done.scores)
        count = {"n": people, "people": f"{people:,}"}
        classes, trees = len(view.model.outputs.classes), f"{len(view.model.trees):,}"
        st.markdown(
            t(
                "words.says",
                who=guest,
                said=t(f"score.learned_guest_{released(view)}", **count, classes=classes, trees=trees),
            )
        )
        for host in view.model.hosts:
            st.markdown(
                t("words.says", who=palette.name(t, view.federation, host), said=t("score.learned_host", **count))
            )
        if done.cipher == "none":
            st.markdown(f":material/science: {t('score.plain')}")
        elif released(view) == "median":
            cipher = frame.cipher(t, done.cipher, done.key_bits)
            st.markdown(f":material/lock_open: {t('score.hidden_median', cipher=cipher)}")
        else:
            st.markdown(
                ":material/lock: "
                + t(
                    f"score.hidden_{done.cipher}",
                    cipher=frame.cipher(t, done.cipher, done.key_bits),
                    entries=f"{done.ciphertexts_per_sample:,}",
                    leaves=f"{done.leaves:,}",
                ),
                help=t(f"score.hidden_{done.cipher}_help"),
            )
