"""The audit log: is the chain whole, what was done, by whom, with what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import session
from app.panels import controls, frame, palette, run
from app.panels.controls import narrow
from app.texts import Texts, markdown
from app.user_jobs import Work
from app.view_models import View

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.jobs import Job
    from backend.results import ModelRecord
    from backend.store.audit_log import Entry, Verdict

SHORT = 12  # digits of a hash in the table
VERDICT_ICONS = {True: ":material/verified:", False: ":material/gpp_bad:"}


def verify(t: Texts, view: View, checking: Work, start: Callable[[], Job[Verdict]]) -> None:
    """Draw a button; after it is pressed, how far the check is, and what was found."""
    st.markdown(t("audit.chain"))
    words = t("audit.verify")
    icon = ":material/verified_user:"
    if st.button(words, type=frame.emphasis(), icon=icon, key="audit_verify", disabled=checking.busy):
        checking.start(start)
        checking.redraw()
    job: Job[Verdict] | None = checking.job
    if checking.refused:
        frame.problem(t, checking.refused)
    if job is None:
        return
    if job.state == "running":
        frame.follow(t, job, lambda stage: t("audit.verifying"), "audit", checking.redraw)
    elif job.result is None:
        run.ended(t, job)
    else:
        _verdict(t, view, job.result)
        checked = datetime.now(UTC) - timedelta(seconds=job.seconds_ago)
        st.caption(t("audit.checked", time=session.clock(checked, st.context.timezone)))


def _verdict(t: Texts, view: View, verdict: Verdict) -> None:
    """Draw what the last check found."""
    witnesses = t.listed([palette.plain(t, view.federation, host) for host in verdict.witnesses])
    compared = t("audit.witnessed", hosts=markdown(witnesses), heads=f"{verdict.heads:,}")
    if verdict.witnesses:
        witnessed = compared
    else:
        witnessed = t("audit.no_witness")
    silent = [palette.plain(t, view.federation, host) for host in view.model.hosts if host not in verdict.witnesses]
    if silent and verdict.witnesses:
        witnessed = t.joined(witnessed, t("audit.no_head", hosts=markdown(t.listed(silent))))
    if verdict.holds:
        st.success(t.joined(t("audit.holds", n=verdict.entries), witnessed), icon=VERDICT_ICONS[True])
    else:
        problems = "\n".join(f"- {markdown(problem)}" for problem in verdict.problems)
        st.error(
            f"{t('audit.broken', n=len(verdict.problems))}\n\n{problems}\n\n{witnessed}", icon=VERDICT_ICONS[False]
        )
    st.caption(t("audit.head"))
    st.code(verdict.head.hash, language=None, wrap_lines=True)


def filters(t: Texts, entries: Sequence[Entry], federation: Federation, record: ModelRecord) -> list[Entry]:
    """The entries that pass the filters, newest first."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        offered = sorted({entry.action for entry in entries})
        actions = narrow(t, t("audit.action"), offered, "audit_action", lambda action: action_in_words(t, action))
        actors = sorted({entry.actor for entry in entries})
        people = narrow(t, t("audit.actor"), actors, "audit_actor", partial(frame.actor, t))
        outcomes = narrow(
            t, t("audit.outcome"), ("done", "not_done"), "audit_outcome", lambda word: t(f"audit.outcome_{word}")
        )
        parties = narrow(
            t, t("audit.by_party"), record.hosts, "audit_party", lambda name: palette.plain(t, federation, name)
        )
        of_model = st.toggle(t("audit.own"), key="audit_own")
    matching = [
        entry
        for entry in entries
        if controls.passes(actions, entry.action)
        and controls.passes(people, entry.actor)
        and controls.passes(outcomes, _outcome(entry))
        and (not parties or _took_part(entry) & set(parties))
        and (not of_model or entry.body.get("model_sha256") == record.content_hash)
    ]
    return matching[::-1]


def _outcome(entry: Entry) -> str:
    if entry.body.get("outcome", "done") == "done":
        return "done"
    return "not_done"


def _took_part(entry: Entry) -> set[str]:
    """Parties between which messages travelled."""
    return {name for line in entry.body.get("traffic", ()) for name in line[1:3]}


def action_in_words(t: Texts, action: str) -> str:
    """Return an action in words."""
    if t.has(f"audit.did_{action}"):
        return t(f"audit.did_{action}")
    return action


def table(t: Texts, entries: Sequence[Entry], models: Mapping[str, str]) -> None:
    """Draw a row for each entry, newest first, what was done before by whom: a phone shows that much; the exported file holds all of each.

    Parameters
    ----------
    models : mapping of str to str
        A model's id → what it is called.
    """
    if not entries:
        st.info(t("audit.none"), icon=":material/filter_alt_off:")
        return
    [(action, times), *_] = Counter(entry.action for entry in entries).most_common()
    st.markdown(t("audit.sentence", n=len(entries), action=action_in_words(t, action), times=f"{times:,}"))
    columns: frame.Columns = {
        t("audit.number"): [entry.number for entry in entries],
        t("audit.action"): [action_in_words(t, entry.action) for entry in entries],
        t("audit.with"): [_with(t, entry, models) for entry in entries],
        t("audit.time"): [entry.time[:19].replace("T", " ") for entry in entries],
        t("audit.actor"): [frame.actor(t, entry.actor) for entry in entries],
        t("words.role"): [_role(t, entry.role) for entry in entries],
        t("audit.hash"): [entry.hash[:SHORT] for entry in entries],
    }
    frame.data(columns, "audit_table", t("audit.entries"))


def _role(t: Texts, role: str) -> str:
    if t.has(f"sidebar.role_{role}"):
        return t(f"sidebar.role_{role}")
    return role


def _with(t: Texts, entry: Entry, models: Mapping[str, str]) -> str:
    """Return what an entry is about, in words; hashes are left to the file."""
    body = entry.body
    about = [str(body[name]) for name in ("model", "new_model") if name in body]
    parts = [" → ".join(models.get(model, model) for model in about)]
    if "step" in body:
        parts.append(t(f"states.step_{body['step']}"))
    if "rows" in body:
        parts.append(t("audit.rows", rows=f"{body['rows']:,}"))
    if "cipher" in body and "key_bits" in body and t.has(f"engine.label_{body['cipher']}"):
        parts.append(frame.cipher(t, body["cipher"], body["key_bits"]))
    parts += [str(body[name]) for name in ("format", "rule", "feature") if name in body]
    if "verdict" in body:
        parts.append(t(f"report.{body['verdict']}"))  # of a decision
    parts += [str(body[name]) for name in ("person", "way") if name in body]
    if body.get("outcome", "done") != "done":
        parts.append(_ended(t, body["outcome"]))
    return " · ".join(part for part in parts if part)


def _ended(t: Texts, error: str) -> str:
    """Return how work ended that was not done; the log keeps the error's type."""
    if t.has(f"audit.ended_{error}"):
        return t(f"audit.ended_{error}")
    return t("audit.failed", error=error)


def export(t: Texts, federation: str, lines: Callable[[], str]) -> None:
    """Draw the whole log as a file; it is made, and logged, when the button is pressed."""
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
