"""What people decided about findings, and who signed the report off: what there is, and the forms to add to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import streamlit as st

from app import session
from app.panels import frame
from app.texts import Texts, cut, markdown

if TYPE_CHECKING:
    from backend.reports.schema import SignOffLine
    from backend.store.reviews import Review

DECISION_ICONS = {"open": "pending", "confirmed": "task_alt", "overridden": "swap_horiz"}
VERDICTS = ("confirmed", "overridden")
SAID = 80  # letters of a statement, where the page says what was signed
SIGNATURE_TEXTS = {True: "report.signature_fits", False: "report.signature_wrong", None: "report.signature_none"}
LONG_WORDS = {
    ("report", "confirmed"): "report.long_confirmed",
    ("report", "overridden"): "report.long_overridden",
    ("questions", "confirmed"): "questions.long_confirmed",
    ("questions", "overridden"): "questions.long_overridden",
}
GO = {"report": "report.decide_go", "questions": "questions.decide_go"}
OTHERS_TEXTS = {"report": "compliance.decide_others", "questions": "questions.decide_others"}
CHOOSE = {"report": "report.choose", "questions": "questions.choose"}

Item = TypeVar("Item")
Attempt = Callable[[str, Callable[[], object]], None]


def standing(t: Texts, about: Sequence[Review], place: str) -> None:
    """Draw what was decided about one finding, by whom, why and when; earlier decisions are one press away."""
    if not about:
        st.caption(f":material/{DECISION_ICONS['open']}: {t('compliance.undecided')}")
        return
    last = about[-1]
    st.markdown(f":material/{DECISION_ICONS[last.verdict]}: {_decided(t, last)}")
    if len(about) > 1:
        with st.expander(t("compliance.earlier", n=len(about) - 1), icon=":material/history:", key=f"earlier_{place}"):
            for review in about[-2::-1]:
                st.markdown(_decided(t, review))


def _decided(t: Texts, review: Review) -> str:
    return t(f"compliance.decided_{review.verdict}", **_given(review))


def answered(t: Texts, answer: Review) -> str:
    """Return who answered a question with what, when and why."""
    return t(f"questions.said_{answer.verdict}", **_given(answer))


def _given(review: Review) -> dict[str, str]:
    time = review.time[:16].replace("T", " ")
    return {"person": markdown(review.person), "time": time, "reason": markdown(review.reason)}


def acting(t: Texts, role: str, actor: str) -> None:
    """Draw the name under which the log will enter the decision."""
    words = {"role": t(f"sidebar.role_{role}"), "actor": markdown(frame.actor(t, actor))}
    st.caption(f":material/badge: {t('compliance.acting', **words)}")


def form(
    t: Texts,
    key: str,
    attempt: Attempt,
    review: Callable[..., object],
    rules: Sequence[Item],
    account: str,
    about: str,
    kind: Literal["report", "questions"] = "report",
) -> None:
    """Verdict, reason and person for the first of the `rules`, or for all; `review` takes a rule (of questions, one of them) and these.

    Whoever is signed in decides as `account`; `about` = what the feature is called where the page says what was decided; `kind` has the
    words: of a decision on a finding, or of an answer to a question.
    """
    emptied(f"{key}_go", f"{key}_reason")
    with st.form(key, border=False):
        # Nothing that decides is preselected.
        verdict = st.radio(
            t(f"{kind}.decision"),
            VERDICTS,
            index=None,
            format_func=lambda word: t(LONG_WORDS[kind, word]),
            key=f"{key}_verdict",
        )
        reason = st.text_area(t("report.reason"), key=f"{key}_reason", help=t("report.reason_help"), height=80)
        person = account or named(t("report.person"), f"{key}_reviewer")
        others = len(rules) - 1
        every = others > 0 and st.checkbox(t(OTHERS_TEXTS[kind], n=others), key=f"{key}_others")
        pressed = st.form_submit_button(t(GO[kind]), icon=":material/gavel:", key=f"{key}_go")
        if pressed and verdict is None:
            frame.outcome(t, (False, t(CHOOSE[kind])))
        elif pressed and verdict is not None:
            decided = rules if every else rules[:1]

            def decide() -> None:
                for rule in decided:
                    review(rule, verdict, reason, person)

            words = t(f"{kind}.decided", n=len(decided), about=about, verdict=t(f"{kind}.{verdict}"))
            attempt(words, emptying(f"{key}_go", decide))


def named(label: str, key: str) -> str:
    """Ask for a person's name; the field begins with what was entered last, on this or another page."""
    person = str(st.text_input(label, session.kept("person", ""), key=key, max_chars=120))
    if person:
        session.keep("person", person)
    return person


def emptying(button: str, save: Callable[[], object]) -> Callable[[], None]:
    """`save`, as a form's button does it: once that is done, and not refused, the form's fields are :func:`emptied`."""

    def done() -> None:
        save()
        session.keep(f"saved:{button}", True)

    return done


def emptied(button: str, *fields: str) -> None:
    """Empty the fields of a form whose content was saved; a refused content stays."""
    if session.kept(f"saved:{button}"):
        session.keep(f"saved:{button}", False)
        for field in fields:
            session.choose(field, "")


@dataclass(frozen=True)
class SignOffs:
    """Who signed the report off.

    Attributes
    ----------
    holds : callable
        Whether the Guest's signature under a line fits.
    sign : callable
        Takes person and statement by name.
    account : str
        As the log names who is signed in; empty if there is no sign-in.
    """

    lines: Sequence[SignOffLine]
    holds: Callable[[SignOffLine], bool | None]
    sign: Callable[..., object]
    account: str


def sign_offs(t: Texts, signing: SignOffs, place: str, attempt: Attempt) -> None:
    """Draw who signed the report off, and a form to add oneself; `place` tells forms of a page apart."""
    lines = signing.lines
    if lines:
        columns: frame.Columns = {
            t("document.head_person"): [s.person for s in lines],
            t("words.role"): [t(f"sidebar.role_{s.role}") for s in lines],
            t("report.statement"): [s.statement for s in lines],
            t("report.covers"): [t("report.covers_yes" if s.covers else "report.covers_no") for s in lines],
            t("report.signature"): [t(SIGNATURE_TEXTS[signing.holds(s)]) for s in lines],
            t("report.time"): [s.time[:16].replace("T", " ") for s in lines],
        }
        frame.cards(columns, f"{place}_sign_offs", t("report.sign"))
    else:
        st.markdown(t("report.no_sign_offs"))
    emptied(f"{place}_sign_go", f"{place}_statement")
    with st.form(f"{place}_sign", border=False):
        st.markdown(t("report.sign_note"))
        person = signing.account or named(t("report.person"), f"{place}_signer")
        statement = st.text_area(t("report.statement"), key=f"{place}_statement", height=80)
        if st.form_submit_button(t("report.sign_go"), icon=":material/signature:", key=f"{place}_sign_go"):
            sign = emptying(f"{place}_sign_go", partial(signing.sign, person=person, statement=statement))
            attempt(t("report.signed", person=person, statement=cut(statement, SAID)), sign)
