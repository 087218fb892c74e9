"""A scoring run afterwards: every message as a picture and a table, how long each stage took, who learned what."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import charts, frame, palette
from app.texts import Texts, label, markdown, size, wrap
from app.view_models import View, released, speed

if TYPE_CHECKING:
    from backend.protocols.transport.transcript import TranscriptEntry
    from backend.results import ScoreBatch

MESSAGES_DRAWN = 12  # messages in the picture; the table holds all
# pixels: of the parties' names, and of a message
TOP_PIXELS = 52
MESSAGE_ROW_PIXELS = 46
ARROWHEAD = (
    '<defs><marker id="glassleaf-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
    f'<path d="M0 0 8 4 0 8Z" fill="{palette.INK}"/></marker></defs>'
)
LOCK = f'<tspan font-family="{palette.ICONS}" font-size="14">lock</tspan> '


def draw(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw who sent what to whom, and who can read it."""
    entries = batch.transcript
    if not entries:
        return
    total = sum(entry.bytes for entry in entries)
    largest = max(entries, key=lambda entry: entry.bytes)
    sentence = t(
        "transcript.sentence",
        n=len(entries),
        total=size(total),
        largest=markdown(t.party(view.federation, largest.sender)),
        to=markdown(t.party(view.federation, largest.receiver)),
        bytes=size(largest.bytes),
    )
    if len(entries) > MESSAGES_DRAWN:
        sentence = t.joined(sentence, t("transcript.first", n=MESSAGES_DRAWN))
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
    st.markdown(sentence)
    frame.drawing(_sequence(t, view, entries[:MESSAGES_DRAWN], sentence), "transcript")
    frame.table_twin(t, twin, sentence, "transcript")


def _in_words(t: Texts, entry: TranscriptEntry, what: str, otherwise: str) -> str:
    key = f"message.{entry.kind}.{what}"
    return t(key) if t.has(key) else otherwise


def _sequence(t: Texts, view: View, entries: Sequence[TranscriptEntry], sentence: str) -> str:
    """Return the messages as an SVG of the page's width: a lifeline a party, an arrow a message, more on hover."""
    lanes = {party: i for i, party in enumerate((view.model.guest, *view.model.hosts))}
    end = TOP_PIXELS + MESSAGE_ROW_PIXELS * len(entries) + MESSAGE_ROW_PIXELS / 2
    parts = [ARROWHEAD]
    # On a phone the words may be as wide as their gap.
    halo = f'paint-order="stroke" stroke="{charts.background()}" stroke-width="4" stroke-linejoin="round"'
    for party, lane in lanes.items():
        mark = palette.mark(view.federation, party)
        x = _across(lane, lanes)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{TOP_PIXELS}" y2="{end}" stroke="{mark.colour}" stroke-width="2"/>')
        name = wrap(t.party(view.federation, party), 12, 2).split("<br>")
        for line, words in enumerate(name):
            y = TOP_PIXELS - 14 - 15 * (len(name) - 1 - line)
            parts.append(f'<text x="{x}" y="{y}" font-weight="600">{words}</text>')
        parts.append(f'<text x="{x}" y="{TOP_PIXELS + 7}" font-size="20" fill="{mark.colour}">{mark.glyph}</text>')
    for row, entry in enumerate(entries, start=1):
        first = lanes[entry.sender]
        last = lanes[entry.receiver]
        y = TOP_PIXELS + MESSAGE_ROW_PIXELS * row
        # The words of a message are in the first gap of its way, so that no lifeline runs through them.
        middle = _across(first + (0.5 if last > first else -0.5), lanes)
        title = wrap(_in_words(t, entry, "title", entry.kind), 24, 1)
        parts.append(
            f"<g><title>{_hover(t, entry)}</title>"
            f'<line x1="{_across(first, lanes)}" x2="{_across(last, lanes)}" y1="{y}" y2="{y}" '
            f'stroke="{palette.INK}" stroke-width="1.6" marker-end="url(#glassleaf-arrow)"/>'
            f'<text x="{middle}" y="{y - 6}" {halo}>{title}</text>'
            f'<text x="{middle}" y="{y + 15}">{LOCK if "encrypted" in entry.holds else ""}{size(entry.bytes)}</text></g>'
        )
    return charts.svg(parts, end + 4, sentence)


def _across(lane: float, lanes: Sized) -> str:
    """Return the place of a lifeline, in percent of the width."""
    return f"{100 * (lane + 0.5) / len(lanes):.2f}%"


def _hover(t: Texts, entry: TranscriptEntry) -> str:
    """Return what a message holds, who can read it, its size and its time."""
    readable = _in_words(t, entry, "readable", entry.readable_by)
    lines = (
        f"{entry.number}. {_in_words(t, entry, 'title', entry.kind)}",
        _in_words(t, entry, "holds", entry.holds),
        f"{t('transcript.readable')}: {readable}",
        f"{size(entry.bytes)} · {t.duration(entry.seconds)}",
    )
    return label("\n".join(lines))


def stages(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw how long stage stage took."""
    listed = sum(stage.seconds for stage in batch.stages)
    slowest = max(batch.stages, key=lambda stage: stage.seconds)
    words = {"slowest": t(f"stage.{slowest.name}"), "part": t.duration(slowest.seconds)}
    unlisted = max(0.0, batch.seconds - listed)
    st.markdown(t("score.stages_sentence", total=t.duration(batch.seconds), rest=t.duration(unlisted), **words))
    parties = [palette.name(t, view.federation, stage.party) if stage.party else "–" for stage in batch.stages]
    columns: frame.Columns = {
        t("score.stage"): [t(f"stage.{stage.name}") for stage in batch.stages],
        t("words.party"): parties,
        t("score.time"): [t.duration(stage.seconds) for stage in batch.stages],
    }
    frame.table(columns, t("score.stages"))
    took = speed(batch, view.model.guest)
    st.markdown(
        t(
            "score.traffic" if took.between else "score.traffic_direct",
            out=size(round(took.out)),
            between=size(round(took.between)),
            back=size(round(took.back)),
        )
    )


def learned(t: Texts, view: View, batch: ScoreBatch) -> None:
    """Draw what each party knows after this run that it did not know before."""
    with st.container(border=True):
        guest = palette.name(t, view.federation, view.model.guest)
        people = sum(score.scored for score in batch.scores)
        count = {"n": people, "people": f"{people:,}"}
        classes = len(view.model.outputs.classes)
        trees = f"{len(view.model.trees):,}"
        guest_text = t(f"score.learned_guest_{released(view)}", **count, classes=classes, trees=trees)
        lines = [t("words.says", who=guest, said=guest_text)]
        for host in view.model.hosts:
            who = palette.name(t, view.federation, host)
            lines.append(t("words.says", who=who, said=t("score.learned_host", **count)))
        st.markdown("\n\n".join(lines))
        if batch.cipher == "none":
            st.markdown(f":material/science: {t('score.plain')}")
        elif released(view) == "median":
            cipher = frame.cipher(t, batch.cipher, batch.key_bits)
            st.markdown(f":material/lock_open: {t('score.hidden_median', cipher=cipher)}")
        else:
            st.markdown(
                ":material/lock: "
                + t(
                    f"score.hidden_{batch.cipher}",
                    cipher=frame.cipher(t, batch.cipher, batch.key_bits),
                    entries=f"{batch.ciphertexts_per_sample:,}",
                    leaves=f"{batch.leaves:,}",
                ),
                help=t(f"score.hidden_{batch.cipher}_help"),
            )
