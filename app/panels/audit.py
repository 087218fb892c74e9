"""The audit log: is the chain whole, what was done, by whom, with what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.panels import frame, palette
from app.texts import Texts, label, markdown
from app.view_models import View
from backend.services import Entry, Federation, ModelRecord, Verdict

LINE = 34  # pixels of a bar with its words
SHORT = 12  # digits of a hash in the table
ICONS = {True: ":material/verified:", False: ":material/gpp_bad:"}


def verify(t: Texts, view: View, check: Callable[[], Verdict]) -> None:
    """A button; after it is pressed, what was found."""
    st.markdown(t("audit.chain"))
    if not st.button(t("audit.verify"), type=frame.emphasis(), icon=":material/verified_user:", key="audit_verify"):
        return
    with st.spinner(t("audit.verifying")):
        verdict = check()
    kept = t.listed([palette.plain(t, view.federation, host) for host in verdict.witnesses])
    told = t("audit.witnessed", hosts=markdown(kept)) if verdict.witnesses else t("audit.no_witness")
    if verdict.holds:
        st.success(f"{t('audit.holds', n=verdict.entries)} {told}", icon=ICONS[True])
    else:
        found = "\n".join(f"- {markdown(problem)}" for problem in verdict.problems)
        st.error(f"{t('audit.broken', n=len(verdict.problems))}\n\n{found}\n\n{told}", icon=ICONS[False])
    st.caption(t("audit.head"))
    st.code(verdict.head.hash, language=None, wrap_lines=True)


def filters(t: Texts, entries: Sequence[Entry], federation: Federation, record: ModelRecord) -> list[Entry]:
    """The entries that pass the filters, newest first."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        actions = st.multiselect(
            t("audit.action"),
            sorted({entry.action for entry in entries}),
            format_func=lambda action: said(t, action),
            placeholder=t("audit.all"),
            key="audit_action",
        )
        people = st.multiselect(
            t("audit.actor"), sorted({entry.actor for entry in entries}), placeholder=t("audit.all"), key="audit_actor"
        )
        outcomes = st.multiselect(
            t("audit.outcome"),
            ("done", "not_done"),
            format_func=lambda word: t(f"audit.outcome_{word}"),
            placeholder=t("audit.all"),
            key="audit_outcome",
        )
        parties = st.multiselect(
            t("audit.by_party"),
            record.hosts,
            format_func=lambda name: palette.plain(t, federation, name),
            placeholder=t("audit.all"),
            key="audit_party",
        )
        own = st.toggle(t("audit.own"), key="audit_own")
    kept = [
        entry
        for entry in entries
        if (not actions or entry.action in actions)
        and (not people or entry.actor in people)
        and (not outcomes or _outcome(entry) in outcomes)
        and (not parties or _took_part(entry) & set(parties))
        and (not own or entry.body.get("model_sha256") == record.content_hash)
    ]
    return kept[::-1]


def _outcome(entry: Entry) -> str:
    return "done" if entry.body.get("outcome", "done") == "done" else "not_done"


def _took_part(entry: Entry) -> set[str]:
    """Parties between which messages travelled."""
    return {name for line in entry.body.get("traffic", ()) for name in line[1:3]}


def said(t: Texts, action: str) -> str:
    """An action in words."""
    return t(f"audit.did_{action}") if t.has(f"audit.did_{action}") else action


def chart(t: Texts, entries: Sequence[Entry]) -> None:
    """How often what was done."""
    if not entries:
        st.info(t("audit.none"), icon=":material/filter_alt_off:")
        return
    counts = Counter(entry.action for entry in entries).most_common()
    most, times = counts[0]
    sentence = t("audit.sentence", n=len(entries), most=said(t, most), times=f"{times:,}")
    figure = go.Figure()
    for row, (action, count) in enumerate(counts):
        text = f"{label(said(t, action))}  {count:,}"
        figure.add_annotation(x=0, y=-row + 0.28, text=text, showarrow=False, xanchor="left", font={"size": 12})
        figure.add_bar(
            x=[count], y=[-row - 0.12], orientation="h", width=0.28, marker={"color": palette.INK}, hoverinfo="skip"
        )
    figure.update_xaxes(visible=False, fixedrange=True)
    figure.update_yaxes(visible=False, fixedrange=True, range=[-len(counts) + 0.4, 0.6])
    figure.update_layout(height=LINE * len(counts) + 16, showlegend=False, margin={"l": 0, "r": 0, "t": 0, "b": 0})
    twin = pd.DataFrame({t("audit.action"): [said(t, a) for a, _ in counts], t("audit.count"): [c for _, c in counts]})
    frame.chart(t, figure, sentence, twin, "audit_chart")


def table(t: Texts, entries: Sequence[Entry]) -> None:
    """One row an entry, newest first; the exported file holds all of each."""
    if not entries:
        return
    st.dataframe(
        pd.DataFrame(
            {
                t("audit.number"): [entry.number for entry in entries],
                t("audit.time"): [entry.time[:19].replace("T", " ") for entry in entries],
                t("audit.action"): [said(t, entry.action) for entry in entries],
                t("audit.actor"): [entry.actor for entry in entries],
                t("words.role"): [_role(t, entry.role) for entry in entries],
                t("audit.with"): [_with(t, entry) for entry in entries],
                t("audit.hash"): [entry.hash[:SHORT] for entry in entries],
            }
        ),
        hide_index=True,
        key="audit_table",
        alt=t("audit.entries"),
    )


def _role(t: Texts, role: str) -> str:
    return t(f"sidebar.role_{role}") if t.has(f"sidebar.role_{role}") else role


def _with(t: Texts, entry: Entry) -> str:
    """What an entry is about, in words; hashes are left to the file."""
    body = entry.body
    parts = [str(body["model"])] if "model" in body else []
    if "rows" in body:
        parts.append(t("audit.rows", rows=f"{body['rows']:,}"))
    if "cipher" in body and "key_bits" in body and t.has(f"engine.label_{body['cipher']}"):
        parts.append(frame.cipher(t, body["cipher"], body["key_bits"]))
    parts += [str(body[name]) for name in ("format", "rule", "feature", "verdict", "person", "way") if name in body]
    if body.get("outcome", "done") != "done":
        parts.append(t("audit.failed", error=body["outcome"]))
    return " · ".join(parts)


def export(t: Texts, federation: str, lines: Callable[[], str]) -> None:
    """The whole log as a file; it is made, and logged, when the button is pressed."""
    st.download_button(
        t("audit.export"),
        data=lines,
        file_name=f"glassleaf-audit-{federation}.jsonl",
        mime="application/jsonl",
        key="audit_export",
        icon=":material/download:",
        on_click="ignore",
    )
    st.caption(t("audit.export_note"))
