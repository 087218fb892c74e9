"""The work on a finding on its card, step by step: evidence, decision, measurement, retraining with its comparison, sign-off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import session, view_models
from app.errors import Problem
from app.panels import attention, evidence, frame, links, offers, retraining, reviews
from app.panels.reviews import SignOffs
from app.texts import Texts
from app.user_jobs import Work
from app.view_models import View
from backend.services.roles import OPERATOR

if TYPE_CHECKING:
    from backend.compliance.assessment import Examined
    from backend.jobs import Job
    from backend.reports.model_comparison import SideBySide
    from backend.results import ModelRecord
    from backend.services.age_check import AgeRequest
    from backend.services.compliance import Finding
    from backend.services.fairness import DisparityRequest, ProxyRequest
    from backend.services.retraining import RetrainingRequest
    from backend.store.reviews import Review

STEP_ICONS = {
    "evidence": "search",
    "decide": "gavel",
    "measure": "science",
    "retrain": "model_training",
    "sign": "signature",
}
LED = "led_to_step"  # place and step that a button led to last


@dataclass(frozen=True)
class Casework:
    """What is known of the work on a model's findings, and what can be done; a place is a finding's key, or a feature's name.

    Attributes
    ----------
    as_whom : (role, actor)
        As the log will name the person who acts.
    history : sequence of Review
        Every decision, oldest first.
    attempted_at : str
        The place of the last attempt.
    outcome : (bool, Problem) or None
        What became of it just now.
    at : mapping of str to str
        Name of a work → the place that started it last.
    successors : sequence of ModelRecord
        Models retrained from this one, newest first.
    attempt : callable
        Takes a place, the words for success, and what may be refused.
    begin : callable
        Takes a place, a work and what starts its job.
    decide : callable
        Takes rule, feature, verdict, reason and person.
    measure, retrain : callable
        Start a job for a request.
    compare : callable
        This model next to a successor.
    """

    as_whom: tuple[str, str]
    history: Sequence[Review]
    attempted_at: str
    outcome: tuple[bool, Problem] | None
    measuring: Work
    retraining: Work
    at: Mapping[str, str]
    successors: Sequence[ModelRecord]
    attempt: Callable[[str, str, Callable[[], object]], None]
    begin: Callable[[str, Work, Callable[[], Job[Any]]], None]
    decide: Callable[..., object]
    measure: Callable[[DisparityRequest | ProxyRequest | AgeRequest], Job[Any]]
    retrain: Callable[[RetrainingRequest], Job[SideBySide]]
    compare: Callable[[ModelRecord], SideBySide]
    signing: SignOffs

    @cached_property
    def standing(self) -> Mapping[tuple[str, str], Review]:
        """Rule and feature → the decision in force."""
        return {(review.rule, review.feature): review for review in self.history}

    def without(self, feature: str) -> ModelRecord | None:
        """Return the newest model that was retrained without a feature."""
        return next((record for record in self.successors if feature in record.exclude), None)

    def offered(self, work: Work, place: str) -> offers.Offer:
        """Return a work as a place offers it; its progress and result show only if it was started."""
        return offers.Offer(work, place, self.at.get(work.name) == place, partial(self.begin, place, work))


@dataclass(frozen=True)
class Steps:
    """The steps of one finding; evidence, and links to the feature and its splits, are drawn by who calls."""

    t: Texts
    view: View
    finding: Finding
    work: Casework
    draw_evidence: Callable[[], None]
    link_splits: Callable[[], None]

    @cached_property
    def place(self) -> str:
        """The finding's key."""
        return view_models.key_of(self.finding)

    def draw(self) -> None:
        """Draw the steps as a row, and the chosen one below; who is led to a step has it in view."""
        t = self.t
        place = self.place
        with st.container(key=f"work_{place}"):
            step = self._chosen()
            self._step(step)
            self._outcome()
            self._onwards(step)
            if session.kept(LED) == (place, step):
                words = t(f"compliance.step_{_called(step, self.work)}")
                attention.to(f"work_{place}", t("compliance.step"), step, words)

    def _chosen(self) -> str:
        t = self.t
        step = st.segmented_control(
            t("compliance.step"),
            list(STEP_ICONS),
            key=session.remember(f"step_{self.place}", list(STEP_ICONS)),
            format_func=lambda name: (
                f":material/{STEP_ICONS[name]}: {t(f'compliance.step_{_called(name, self.work)}')}"
            ),
            required=True,
            label_visibility="collapsed",
        )
        return step or "evidence"

    def _step(self, step: str) -> None:
        t = self.t
        view = self.view
        work = self.work
        place = self.place
        if step == "evidence":
            self.draw_evidence()
        elif step == "decide":
            self._decide()
        elif step == "measure":
            measure(t, view, self.finding, evidence.measurable(view, self.finding), work, place)
        elif step == "retrain":
            self._retrain()
        else:
            reviews.acting(t, *work.as_whom)
            reviews.sign_offs(t, work.signing, place, partial(work.attempt, place))

    def _outcome(self) -> None:
        """Draw what became of what was tried here."""
        t = self.t
        work = self.work
        if work.attempted_at == self.place and work.outcome is not None:
            container = f"said_{self.place}"
            with st.container(key=container):
                frame.outcome(t, work.outcome)
            # a decision makes a new line of the card, for which a browser may go back to the top
            attention.to(
                container,
                t("compliance.step"),
                f"{len(work.history)}:{len(work.signing.lines)}",
                frame.explained(t, work.outcome[1]),
            )

    def _onwards(self, step: str) -> None:
        """Draw what a role may do next; before that, next to evidence, the feature and its splits."""
        t = self.t
        review = self.work.standing.get((self.finding.rule_id, self.finding.feature))
        following = self._following(step, review)
        report = step == "sign" and review is not None
        if not following and not report and step != "evidence":
            return
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            if step == "evidence":
                self.link_splits()
            for name in following:
                words = t(f"compliance.next_{_called(name, self.work)}")
                icon = f":material/{STEP_ICONS[name]}:"
                key = f"next_{name}_{self.place}"
                st.button(words, icon=icon, key=key, on_click=_lead, args=(self.place, name))
            if report:
                links.page("report", t("compliance.next_report"), "description")

    def _following(self, step: str, review: Review | None) -> tuple[str, ...]:
        """Of a confirmed finding measure (once), retrain or compare, then sign; of one overridden, sign; then the report."""
        if review is None:
            return ("decide",) if step == "evidence" else ()
        # only an operator has anything at that step before there is a model without the feature
        operator = self.work.as_whom[0] == OPERATOR
        if operator or self.work.without(self.finding.feature):
            another = ("retrain",)
        else:
            another = ("sign",)
        if step in ("evidence", "decide"):
            if review.verdict != "confirmed":
                return ("sign",)
            measured = self.finding.disparities is not None or self.finding.proxies is not None
            return another if measured else ("measure", *another)
        return {"measure": another, "retrain": ("sign",)}.get(step, ())

    def _decide(self) -> None:
        """Draw what was decided so far, and a form to decide, on request for every undecided law that flags the feature."""
        t = self.t
        view = self.view
        finding = self.finding
        work = self.work
        place = self.place
        about = []
        for r in work.history:
            if (r.rule, r.feature) == (finding.rule_id, finding.feature):
                about.append(r)
        reviews.standing(t, about, place)
        waiting = []
        for finding_of_feature in view.compliance.findings:
            if (
                finding_of_feature.feature == finding.feature
                and finding_of_feature.rule_id != finding.rule_id
                and (finding_of_feature.rule_id, finding_of_feature.feature) not in work.standing
            ):
                waiting.append(finding_of_feature.rule_id)

        def review(rule: str, *decision: str) -> object:
            return work.decide(rule, finding.feature, *decision)

        reviews.form(
            t,
            f"decide_{place}",
            partial(work.attempt, place),
            review,
            [finding.rule_id, *waiting],
            work.signing.account,
            evidence.plain(t, view, finding.feature),
        )
        reviews.acting(t, *work.as_whom)

    def _retrain(self) -> None:
        """Draw the form that retrains without the feature; once there is a model that does without, both side by side."""
        t = self.t
        view = self.view
        work = self.work
        place = self.place
        role = work.as_whom[0]
        without = work.without(self.finding.feature)
        offer = work.offered(work.retraining, place)
        if without is not None and not (offer.here and work.retraining.busy):
            if offer.here and work.retraining.job is not None:
                retraining.done(t, view, work.retraining.job)
            retraining.beside(t, view, work.compare(without))
        elif role == OPERATOR:
            request = partial(retraining.request, t, view, self.finding, place)
            offers.form(t, view, offer, request, work.retrain, retraining.done, t("retraining.why"))
        else:
            retraining.not_for(t, role)


def _lead(place: str, step: str) -> None:
    """Go to a step, by the button that offers it."""
    session.choose(f"step_{place}", step)
    session.keep(LED, (place, step))


def _called(step: str, work: Casework) -> str:
    """Return what a step is to a role: only an operator retrains, others compare what an operator retrained."""
    if step == "retrain" and work.as_whom[0] != OPERATOR:
        return "compare"
    return step


def measure(t: Texts, view: View, about: Examined, kinds: Sequence[str], work: Casework, place: str) -> None:
    """Draw the form that has something measured of a feature, and what is known of it."""
    offers.form(
        t,
        view,
        work.offered(work.measuring, place),
        partial(evidence.request, t, view, about.feature, kinds, place),
        work.measure,
        evidence.measured,
        t("compliance.measure_why"),
        lambda request: evidence.of_kind(t, view, about, request, place),
    )
