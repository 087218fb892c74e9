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
NONE = ""


def last(t: Texts, view: View, done: Monitored) -> None:
    """The verdict, every figure, and predicted against observed by tenth."""
    show = {"pass": st.success, "undecided": st.info, "warn": st.warning, "fail": st.error, "incomplete": st.warning}[
        done.verdict
    ]
    show(t(f"monitoring.overall_{done.verdict}"), icon=validation.ICONS[done.verdict])
    counted = {"n": f"{done.n:,}", "failed": f"{done.failed:,}", "outcomes": f"{done.outcomes:,}"}
    at = t("policy.measured", cutoff=policies.measured_at(t, done.cutoff, done.policy))
    st.markdown(t.joined(t("monitoring.sentence", **counted), at))
    share = percent(done.partial / done.n)
    st.markdown(t("monitoring.partial", n=done.partial, people=f"{done.n:,}", share=share))
    for feature, code, n in done.new_codes:
        words = t("monitoring.new_code", n=n, feature=markdown(feature), code=markdown(code))
        st.warning(words, icon=":material/new_label:")
    validation.table(t, view, done.tests, "monitoring.figures")
    validation.sources(t, done.tests, "monitoring")
    if done.brier is not None:
        st.markdown(f"{t('monitoring.brier')} **{number(done.brier)}**")
    if done.tenths:
        rows = {
            t("monitoring.head_predicted"): [percent(row.predicted) for row in done.tenths],
            t("monitoring.head_observed"): [percent(row.observed) for row in done.tenths],
            t("monitoring.head_people"): [f"{row.n:,}" for row in done.tenths],
        }
        frame.table(rows, t("monitoring.tenths"))
    if done.unexamined:
        st.caption(t("monitoring.unexamined", listed=validation.columns(t, view, done.unexamined)))
    validation.answered_before(t, view, done.again)
    st.caption(t.joined(t("monitoring.run_on", made=done.made[:16].replace("T", " ") + " UTC"), t("monitoring.note")))


def setup(t: Texts, view: View, service: Monitoring, samples: Samples) -> MonitoringRequest | None:
    """What is to be monitored; None until there is a sheet that can be used."""
    known = {feature.name: feature for _, feature in view.federation.features()}
    left, right = st.columns(2, gap="large")
    with right:
        label = st.text_input(
            t("monitoring.label_label"),
            key="monitoring_label",
            help=t("monitoring.label_help"),
            max_chars=200,
            persist_state="session",
        )
        feature = st.selectbox(
            t("monitoring.feature_label"),
            [NONE, *known],
            format_func=lambda name: t.brief(known[name]) if name else t("monitoring.feature_none"),
            key="monitoring_feature",
            persist_state="session",
        )
    with left:
        given = upload.file(t, t("monitoring.sheet_label"), "monitoring_sheet", MEGABYTES)
        if given is None:
            return None
        take = partial(service.read, view.record.id, given.getvalue(), given.name, label=label.strip())
        try:
            later = upload.read(t, "monitoring", given.name, given.getvalue(), take)
        except GlassleafError as error:
            frame.problem(t, error)
            return None
        if later is None:
            return None
        upload.sheet(t, later.sheet)
        upload.account(t, "monitoring_account", partial(samples.account, view.record.id, later.sheet))
    return MonitoringRequest(view.record.id, later, feature or NONE)
