"""One action: train the model again without flagged features, and see both models side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.panels import evidence, links, model_comparison, run
from app.texts import Texts
from app.view_models import View
from backend.services.retraining import RetrainingRequest

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.reports.model_comparison import SideBySide


def request(t: Texts, view: View) -> RetrainingRequest:
    """The form: features to do without, by which of them decisions are compared, and the cut-off."""
    st.markdown(t("retraining.why"))
    offered = [name for name in evidence.assessable(view) if any(row.feature == name for row in view.importance)]
    worst = [f.feature for f in view.compliance.findings if f.status == "prohibited" and f.usage.splits]
    without = st.multiselect(
        t("retraining.without"),
        offered,
        default=list(dict.fromkeys(worst)),
        format_func=lambda name: evidence.plain(t, view, name),
        key=f"retrain_without_{view.record.id}",
        placeholder=t("retraining.choose"),
    )
    by: list[str] = []
    if view.task == "binary":
        known = evidence.assessable(view)
        by = st.multiselect(
            t("retraining.by"),
            known,
            default=list(dict.fromkeys(worst))[:1],
            format_func=lambda name: evidence.plain(t, view, name),
            key=f"retrain_by_{view.record.id}",
            help=t("retraining.by_help"),
            placeholder=t("retraining.choose"),
        )
    cutoff = run.cutoff(t, view.task, "retrain_cutoff") if by else RetrainingRequest.cutoff
    st.caption(t("retraining.takes", seconds=t.duration(view.record.seconds)))
    return RetrainingRequest(view.record.id, tuple(without), tuple(by), cutoff)


def not_for(t: Texts, role: str) -> None:
    """Who may do it; a courtesy, for roles are not authenticated."""
    st.caption(f":material/badge: {t('retraining.not_for', role=t(f'sidebar.role_{role}'))}")


def done(t: Texts, view: View, job: Job[SideBySide]) -> None:
    """What the last training again came to; the two models stand below."""
    if job.result is None:
        run.ended(t, job, "retraining.cancelled")
        return
    st.info(t("retraining.done", model=job.result.after.record.id), icon=":material/check_circle:")


def beside(t: Texts, view: View, found: SideBySide, fresh: bool) -> None:
    """The old model and the new: quality at once, the rest once opened (a `fresh` pair is open); all of it on a page of its own."""
    model_comparison.headline(t, view, found)
    key = f"beside_{found.before.record.id}_{found.after.record.id}"
    box = st.expander(
        t("retraining.beside"), expanded=fresh, icon=":material/compare_arrows:", key=key, on_change="rerun"
    )
    if box.open:  # what nobody looks at is not sent
        with box:
            model_comparison.details(t, view, found)
    with st.container(horizontal=True):
        pair = {"model": found.before.record.id, "other": found.after.record.id}
        links.page("compare_models", t("comparison.open"), "compare_arrows", pair)
    model_comparison.to_both(t, found)
