"""Questions whether a feature is about what rules look for: what is asked, on which words, what was answered, and a form."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import frame, palette, reviews
from app.panels.casework import Casework
from app.panels.findings import FEATURES_A_PAGE, cited
from app.texts import Texts, code, markdown, percent
from app.view_models import View
from backend.i18n import brief

if TYPE_CHECKING:
    from backend.services.compliance import Question


def listed(t: Texts, view: View, work: Casework) -> None:
    """Draw what a person has to answer: what is asked of which feature, on which words, and a form; nothing if nothing is asked."""
    questions = view.compliance.questions
    if not questions:
        return
    waiting = len(view.compliance.unanswered)
    frame.section(t, "questions.title")
    st.markdown(
        t.joined(t("questions.waiting", n=waiting) if waiting else t("questions.none_waiting"), t("questions.why"))
    )
    for index, question in frame.paged(questions, "questions_page", FEATURES_A_PAGE):
        # the first finding is open already, and the page has two screens
        _question(t, view, question, work, first=index == 0 and not view.compliance.findings)


def _question(t: Texts, view: View, question: Question, work: Casework, *, first: bool) -> None:
    place = f"question_{question.feature}_{question.about}"
    state = question.answer.verdict if question.answer else "open"
    badge = f":gray-badge[:material/{reviews.DECISION_ICONS[state]}: {t(f'questions.{state}')}]"
    if question.usage.splits:
        use = "compliance.share"
    else:
        use = "compliance.unused"
    head = [f"**{words(t, question)}**", t(use, share=percent(question.usage.gain_share))]
    opened = (first and question.answer is None) or work.attempted_at == place
    box = st.expander(f"{' · '.join(head)} {badge}", expanded=opened, key=place, on_change="rerun")
    if not box.open:  # the content of a closed box is not sent
        return
    with box:
        holder = t("compliance.held_by", party=palette.name(t, view.federation, question.party))
        meaning = markdown(t.text(question.meaning))
        st.markdown(f"### {meaning} :small[:gray[{holder} ·] {code(question.feature)}]", anchors=False)
        matched = t(
            "compliance.matched",
            matched=markdown(question.sign.matched),
            place=t(f"compliance.in_{question.sign.matched_in}"),
        )
        why = t(f"questions.why_{question.sign.strength}", word=markdown(question.sign.weighed))
        status = t("questions.if_yes", status=t(f"compliance.{question.status}"), citation=cited(t, question))
        st.markdown(f":material/search: {t.joined(matched, why)}\n\n:material/gavel: {status}")
        if question.answer is not None:
            st.markdown(reviews.answered(t, question.answer))

        # one press answers those that wait and are asked for the same reason
        alike = [question]
        for unanswered in view.compliance.unanswered:
            if unanswered.sign.strength == question.sign.strength and (unanswered.about, unanswered.feature) != (
                question.about,
                question.feature,
            ):
                alike.append(unanswered)

        def answer(question: Question, *decision: str) -> object:
            return work.decide(question.about, question.feature, *decision)

        account = work.signing.account
        about = brief(t.text(question.meaning))
        reviews.form(t, place, partial(work.attempt, place), answer, alike, account, about, "questions")
        reviews.acting(t, *work.as_whom)
        if work.attempted_at == place:
            frame.outcome(t, work.outcome)


def words(t: Texts, question: Question) -> str:
    """Return what is asked of a feature, in one line."""
    feature = markdown(brief(t.text(question.meaning)))
    return t("questions.ask", feature=feature, title=markdown(t.text(question.title)))
