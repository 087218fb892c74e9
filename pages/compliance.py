"""What would a regulator object to?"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import session, view_models
from app.panels import compliance, evidence, findings, frame, law_calendar, offers, retraining, reviews
from backend.services.age_check import AgeRequest
from backend.services.audit import OPERATOR

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.services.fairness import DisparityRequest, ProxyRequest

t = session.texts()
model_id = frame.model_or_stop(t, "compliance")

backend, role = session.service(), session.role()
measuring, retrain = session.works(model_id, "evidence", "retrain")
report = backend.compliance.assess(model_id)  # after the jobs' state: never older
view = replace(session.view(model_id), compliance=report)
found = {view_models.key_of(finding): finding for finding in report.findings}
linked = session.linked("finding", found)
frame.header(t, "compliance", session.notices(), view.federation)
deciding = reviews.ReviewForm(
    (role, session.actor()),
    session.kept("deciding") if session.kept("deciding") in report.findings else None,
    session.outcome(),
    lambda finding: session.keep("deciding", finding),
    session.attempt,
    lambda *given: backend.reviews.decide(model_id, *given),
)
if deciding.asked is None:
    frame.outcome(t, deciding.outcome)
reviews.window(t, deciding)
compliance.summary(t, view)

frame.section(t, "compliance.findings", "flag")
history = backend.reviews.history(model_id)
if linked is not None:
    findings.only(t, view, found[linked], history, deciding, lambda: session.forget("finding"))
else:
    findings.listed(t, view, history, deciding)
compliance.set_aside(t, view)
compliance.not_in_force(t, view)
law_calendar.proposed(t, backend.compliance.proposed(model_id))
evidence.kept_out(t, view, backend.compliance.kept_out(model_id))


def measure(request: "DisparityRequest | ProxyRequest | AgeRequest") -> "Job[Any]":
    """Start the measurement that the form asks for."""
    return backend.age_check.start(request) if isinstance(request, AgeRequest) else backend.fairness.start(request)


known = evidence.assessable(view)
if known:
    frame.section(t, "compliance.measure", "evidence")
    keys = session.remember("evidence_feature", known), session.remember("evidence_kind", evidence.measurable(view))
    form = partial(evidence.request, t, view, *keys)
    offers.form(t, view, measuring, form, measure, evidence.measured)
before, after = backend.models.lineage(model_id)
if known or before or after:
    frame.section(t, "retraining.title", "retraining")
    if role == OPERATOR:
        retrain_form = partial(retraining.request, t, view)
        offers.form(t, view, retrain, retrain_form, backend.retraining.start, retraining.done)
    else:
        retraining.not_for(t, role)
    pair = (model_id, after[0].id) if after else (before.id, model_id) if before else None
    if pair is not None:
        retraining.beside(t, view, backend.reports.compare(*pair), retrain.job is not None)

frame.section(t, "compliance.contradictions_title", "expected_direction")
compliance.contradictions(t, view)
frame.section(t, "compliance.duties_title")
compliance.duties(t, view)
compliance.packs(t, view)
frame.section(t, "report.sign")
reviews.acting(t, role, session.actor())
reviews.sign_offs(
    t,
    backend.reports.sign_offs(model_id),
    partial(backend.reports.sign_off_holds, model_id),
    session.attempt,
    lambda **given: backend.reports.sign_off(model_id, **given),
)
law_calendar.panel(t, backend.compliance.calendar(model_id))
st.caption(t("compliance.limits"))
