"""One action: train the model again without a flagged feature, and see both models side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import session
from app.panels import evidence, model_comparison, run
from app.texts import Texts, markdown
from app.view_models import View
from backend.services.retraining import RetrainingRequest

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.reports.model_comparison import SideBySide
    from backend.services.compliance import Finding


def request(t: Texts, view: View, finding: Finding, place: str) -> RetrainingRequest:
    """The form: features to do without, whether decisions are compared by the finding's groups, and the cut-off."""
    without_column, by_column = st.columns(2, gap="large")
    with without_column:
        without = st.multiselect(
            t("retraining.without"),
            list(dict.fromkeys((finding.feature, *(f.feature for f in view.compliance.findings)))),
            default=[finding.feature],
            format_func=lambda name: evidence.plain(t, view, name),
            key=f"without_{place}",
            placeholder=t("retraining.choose"),
        )
        st.caption(t("retraining.takes", seconds=t.duration(view.record.seconds)))
    by: tuple[str, ...] = ()
    cutoff: float | None = None
    with by_column:
        if view.task == "binary" and st.checkbox(
            t("retraining.by"), value=True, key=f"by_{place}", help=t("retraining.by_help")
        ):
            by = (finding.feature,)
            cutoff = run.cutoff(t, session.policy(view), f"retrain_cutoff_{place}")
    return RetrainingRequest(view.record.id, tuple(without), by, cutoff)


def not_for(t: Texts, role: str) -> None:
    """Who may do it; a courtesy, for roles are not authenticated."""
    st.caption(f":material/badge: {t('retraining.not_for', role=t(f'sidebar.role_{role}'))}")


def done(t: Texts, view: View, job: Job[SideBySide]) -> None:
    """Draw what the last training again came to; the two models are below."""
    if job.result is None:
        run.ended(t, job, "retraining.cancelled")
        return
    st.caption(
        f":material/check_circle: {t('retraining.done', model=markdown(model_comparison.called(t, view, job.result.after.record)))}"
    )


def beside(t: Texts, view: View, comparison: SideBySide) -> None:
    """Draw the old model and the new: what changed in a sentence, figures and decisions by group; all of it on a page of its own."""
    model_comparison.headline(t, view, comparison)
    if comparison.outcomes:
        model_comparison.outcomes(t, view, comparison)
    model_comparison.open_full(t, view, comparison)
