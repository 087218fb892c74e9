"""What people decided about findings, and who stands by the report: what there is, and the forms to add to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import frame
from app.texts import Texts, markdown

if TYPE_CHECKING:
    from backend.reports.schema import SignOffLine
    from backend.services.compliance import Finding
    from backend.store.reviews import Review

ICONS = {"open": "pending", "confirmed": "task_alt", "overridden": "swap_horiz"}
VERDICTS = ("confirmed", "overridden")
SIGNED = {True: "report.signature_fits", False: "report.signature_wrong", None: "report.signature_none"}

Attempt = Callable[[str, Callable[[], object]], None]


def standing(t: Texts, about: Sequence[Review], index: int) -> None:
    """What was decided about one finding, by whom, why and when; earlier decisions are one press away."""
    if not about:
        st.caption(f":material/{ICONS['open']}: {t('compliance.undecided')}")
        return
    last = about[-1]
    st.markdown(f":material/{ICONS[last.verdict]}: {_decided(t, last)}")
    if len(about) > 1:
        with st.expander(t("compliance.earlier", n=len(about) - 1), icon=":material/history:", key=f"earlier_{index}"):
            for review in about[-2::-1]:
                st.markdown(_decided(t, review))


def _decided(t: Texts, review: Review) -> str:
    return t(
        f"compliance.decided_{review.verdict}",
        person=markdown(review.person),
        time=review.time[:16].replace("T", " "),
        reason=markdown(review.reason),
    )


def acting(t: Texts, role: str, actor: str) -> None:
    """As whom the log will name whoever decides."""
    st.caption(f":material/badge: {t('compliance.acting', role=t(f'sidebar.role_{role}'), actor=markdown(actor))}")


def form(t: Texts, key: str, attempt: Attempt, review: Callable[[str, str, str], object]) -> None:
    """Verdict, reason and person; `review` takes them in this order."""
    with st.form(key, border=False):
        verdict = st.radio(
            t("report.decision"), VERDICTS, format_func=lambda word: t(f"report.long_{word}"), key=f"{key}_verdict"
        )
        reason = st.text_area(t("report.reason"), key=f"{key}_reason", help=t("report.reason_help"))
        person = st.text_input(t("report.person"), key=f"{key}_reviewer")
        if st.form_submit_button(t("report.decide_go"), icon=":material/gavel:"):
            attempt(t("report.decided"), lambda: review(verdict, reason, person))


@dataclass(frozen=True)
class ReviewForm:
    """Where findings are decided on, one at a time.

    Attributes
    ----------
    as_whom : (role, actor)
        As the log will name whoever decides.
    asked : Finding or None
        What is being decided on, in a window of its own.
    outcome : (bool, str) or None
        What became of the last attempt.
    choose : callable
        Opens the window for a finding, or closes it with None.
    attempt : callable
        Does what may be refused and reports the outcome.
    review : callable
        Takes rule, feature, verdict, reason and person.
    """

    as_whom: tuple[str, str]
    asked: Finding | None
    outcome: tuple[bool, str] | None
    choose: Callable[[Finding | None], None]
    attempt: Attempt
    review: Callable[..., object]


def window(t: Texts, deciding: ReviewForm) -> None:
    """The form for the finding that is being decided on; nothing where none is."""
    asked = deciding.asked
    if asked is None:
        return

    def keep(*given: str) -> None:
        deciding.review(asked.rule_id, asked.feature, *given)
        deciding.choose(None)

    def body() -> None:
        st.markdown(f"**{markdown(t.either(asked.meaning, asked.meaning_zh))}**")
        st.markdown(markdown(t.either(asked.title, asked.title_zh)))
        frame.outcome(t, deciding.outcome)
        form(t, "decide", deciding.attempt, keep)
        acting(t, *deciding.as_whom)

    close = partial(deciding.choose, None)
    st.dialog(t("report.decide_form"), icon=":material/gavel:", on_dismiss=close)(body)()


def sign_offs(
    t: Texts,
    lines: Sequence[SignOffLine],
    holds: Callable[[SignOffLine], bool | None],
    attempt: Attempt,
    sign_off: Callable[..., object],
) -> None:
    """Who stands by the report, and a form to add oneself; `holds` says whether the Guest's signature under a statement fits."""
    if lines:
        columns: frame.Columns = {
            t("report.person"): [s.person for s in lines],
            t("words.role"): [t(f"sidebar.role_{s.role}") for s in lines],
            t("report.statement"): [s.statement for s in lines],
            t("report.covers"): [t("report.covers_yes" if s.covers else "report.covers_no") for s in lines],
            t("report.signature"): [t(SIGNED[holds(s)]) for s in lines],
            t("report.time"): [s.time[:16].replace("T", " ") for s in lines],
        }
        frame.data(columns, "report_sign_offs", t("report.sign"))
    else:
        st.markdown(t("report.no_sign_offs"))
    with st.expander(t("report.sign_form"), icon=":material/signature:"), st.form("report_sign", border=False):
        st.markdown(t("report.sign_note"))
        person = st.text_input(t("report.person"), key="report_signer")
        statement = st.text_area(t("report.statement"), key="report_statement")
        if st.form_submit_button(t("report.sign_go"), icon=":material/signature:"):
            attempt(t("report.signed"), lambda: sign_off(person=person, statement=statement))
