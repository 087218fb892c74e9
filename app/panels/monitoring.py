"""A monitoring run on a page: the later sheet that it is asked for with, and what the last one found."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import frame, policies, upload, validation
from app.texts import Texts, markdown, number, percent
from app.view_models import View
from backend.errors import GlassleafError
from backend.services.monitoring import MonitoringRequest
from backend.services.samples import SAMPLES

if TYPE_CHECKING:
    from backend.services.monitoring import Monitored, Monitoring
    from backend.services.samples import Samples

MEGABYTES = SAMPLES.max_bytes // 1_000_000
NO_FEATURE = ""


def last(t: Texts, view: View, run: Monitored) -> None:
    """Draw the verdict, every figure, and predicted against observed by tenth."""
    show = {"pass": st.success, "undecided": st.info, "warn": st.warning, "fail": st.error, "incomplete": st.warning}[
        run.verdict
    ]
    show(t(f"monitoring.overall_{run.verdict}"), icon=validation.VERDICT_ICONS[run.verdict])
    counted = {"n": f"{run.n:,}", "failed": f"{run.failed:,}", "outcomes": f"{run.outcomes:,}"}
    at = t("policy.measured", cutoff=policies.measured_at(t, run.cutoff, run.policy))
    st.markdown(t.joined(t("monitoring.sentence", **counted), at))
    share = percent(run.partial / run.n)
    st.markdown(t("monitoring.partial", n=run.partial, people=f"{run.n:,}", share=share))
    for feature, code, n in run.new_codes:
        words = t("monitoring.new_code", n=n, feature=markdown(feature), code=markdown(code))
        st.warning(words, icon=":material/new_label:")
    validation.table(t, view, run.tests, "monitoring.figures")
    validation.sources(t, run.tests, "monitoring")
    if run.brier is not None:
        st.markdown(f"{t('monitoring.brier')} **{number(run.brier)}**")
    if run.tenths:
        rows = {
            t("monitoring.head_predicted"): [percent(row.predicted) for row in run.tenths],
            t("monitoring.head_observed"): [percent(row.observed) for row in run.tenths],
            t("monitoring.head_people"): [f"{row.n:,}" for row in run.tenths],
        }
        frame.table(rows, t("monitoring.tenths"))
    if run.unexamined:
        st.caption(t("monitoring.unexamined", listed=validation.columns(t, view, run.unexamined)))
    validation.answered_before(t, view, run.again)
    st.caption(t.joined(t("monitoring.run_on", made=run.made[:16].replace("T", " ") + " UTC"), t("monitoring.note")))


def setup(t: Texts, view: View, service: Monitoring, samples: Samples) -> MonitoringRequest | None:
    """What is to be monitored; None until there is a sheet that can be used."""
    features = {feature.name: feature for _, feature in view.federation.features()}
    sheet_column, settings_column = st.columns(2, gap="large")
    with settings_column:
        label = st.text_input(
            t("monitoring.label_label"),
            key="monitoring_label",
            help=t("monitoring.label_help"),
            max_chars=200,
            persist_state="session",
        )
        feature = st.selectbox(
            t("monitoring.feature_label"),
            [NO_FEATURE, *features],
            format_func=lambda name: t.brief(features[name]) if name else t("monitoring.feature_none"),
            key="monitoring_feature",
            persist_state="session",
        )
    with sheet_column:
        file = upload.file(t, t("monitoring.sheet_label"), "monitoring_sheet", MEGABYTES)
        if file is None:
            return None
        take = partial(service.read, view.record.id, file.getvalue(), file.name, label=label.strip())
        try:
            later = upload.read(t, "monitoring", file.name, file.getvalue(), take)
        except GlassleafError as error:
            frame.problem(t, error)
            return None
        if later is None:
            return None
        upload.sheet(t, later.sheet)
        upload.account(t, "monitoring_account", partial(samples.account, view.record.id, later.sheet))
    return MonitoringRequest(view.record.id, later, feature or NO_FEATURE)
