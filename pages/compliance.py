"""What would a regulator object to?"""

from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import session, user_jobs, view_models
from app.panels import alternatives, compliance, findings, frame, law_calendar, questions, reviews, verdict
from app.panels.casework import Casework
from app.user_jobs import Work
from backend.services.age_check import AgeRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from backend.jobs import Job
    from backend.services.fairness import DisparityRequest, ProxyRequest

t = session.texts()
model_id = frame.model_or_stop(t, "compliance")

backend = session.service()
role = session.role()
measuring, retraining, searching = user_jobs.works(model_id, "evidence", "retrain", "alternatives")
view = session.view(model_id)  # after the jobs' state: never older
findings_by_key = {view_models.key_of(finding): finding for finding in view.compliance.findings}
linked = session.linked("finding", findings_by_key)
predecessor, successors = backend.models.lineage(model_id)


def measure(request: "DisparityRequest | ProxyRequest | AgeRequest") -> "Job[Any]":
    """Start the measurement that a form asks for."""
    return backend.age_check.start(request) if isinstance(request, AgeRequest) else backend.fairness.start(request)


def attempt(place: str, success: str, act: "Callable[[], object]") -> None:
    """Do what may be refused; what became of it is said at its place."""
    session.keep("attempted_at", place)
    session.attempt(success, act)


def begin(place: str, work: Work, start: "Callable[[], Job[Any]]") -> None:
    """Start a job; its progress and result are shown at its place."""
    session.keep(f"{work.name}_at:{model_id}", place)
    work.start(start)


work = Casework(
    as_whom=(role, session.actor()),
    history=backend.reviews.history(model_id),
    attempted_at=session.kept("attempted_at", ""),
    outcome=session.outcome(),
    measuring=measuring,
    retraining=retraining,
    at={each.name: session.kept(f"{each.name}_at:{model_id}", "") for each in (measuring, retraining, searching)},
    successors=successors,
    attempt=attempt,
    begin=begin,
    decide=partial(backend.reviews.decide, model_id),
    measure=measure,
    retrain=backend.retraining.start,
    compare=lambda successor: backend.reports.compare(model_id, successor.id),
    signing=reviews.SignOffs(
        backend.reports.sign_offs(model_id),
        partial(backend.reports.sign_off_holds, model_id),
        partial(backend.reports.sign_off, model_id),
        session.decides_as(),
    ),
)

search = alternatives.Searching(
    work.offered(searching, alternatives.PLACE),
    backend.alternatives.searches(model_id),
    backend.alternatives.expected(model_id),
    backend.alternatives.start,
    partial(backend.alternatives.opened, model_id),
    partial(backend.alternatives.choose, model_id),
    partial(attempt, alternatives.PLACE),
)

frame.header(t, "compliance", session.notices(), view.federation)
judged = backend.verdicts.of(model_id)
# What is broken about groups of people is no finding of a rule; the findings below say the rest.
broken = [fact for fact in judged.facts if fact.state == "broken" and fact.kind in ("outcomes", "ages")]
verdict.draw(t, judged, "compliance", broken)
compliance.summary(t, view)
if predecessor is not None:
    compliance.replaces(t, view, backend.reports.compare(predecessor.id, model_id))
frame.section(t, "compliance.findings", "flag")
if linked is not None:
    findings.only(t, view, findings_by_key[linked], work, lambda: session.forget("finding"))
else:
    findings.listed(t, view, work)
questions.listed(t, view, work)
with st.container(gap="xsmall"):  # a list of lines, each of which opens
    alternatives.panel(t, view, search, work.outcome if work.attempted_at == alternatives.PLACE else None)
    compliance.not_understood(t, view)
    compliance.kept_out(t, view, backend.compliance.kept_out(model_id), work)
    compliance.set_aside(t, view)
    compliance.not_in_force(t, view)
    compliance.contradictions(t, view)
    compliance.duties(t, view)
    compliance.packs(t, view)
    law_calendar.panel(t, backend.compliance.calendar(model_id))
if not findings_by_key:
    frame.section(t, "report.sign")
    compliance.sign(t, work)
st.caption(t("compliance.limits"))
