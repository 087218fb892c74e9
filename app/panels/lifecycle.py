"""Where a model gets its name, note and owner, and takes its next step: each with its condition, and why one is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.errors import Problem
from app.panels import frame
from app.panels.reviews import Attempt, named
from app.texts import Texts, markdown
from backend.services.federations import PLACES, PRODUCTS

if TYPE_CHECKING:
    from backend.services.lifecycle import ModelStep, NextStep, Standing


@dataclass(frozen=True)
class Manager:
    """What the window shows and does.

    Attributes
    ----------
    account : str
        As the log names who is signed in; empty if there is no sign-in.
    offers : sequence of NextStep
        Steps that lead on from here.
    names : callable
        A model's id → what it is called.
    outcome : (bool, Problem) or None
        What became of the last attempt.
    attempt : callable
        Does what may be refused and reports the outcome.
    federation : (tuple of str, str)
        Where the federation's people live and what it is for: so it is for the model, if it says nothing else.
    describe : callable
        Takes name, note, owner, places and product.
    step : callable
        Takes the step, the person and the reason.
    """

    account: str
    role: str
    standing: Standing
    offers: Sequence[NextStep]
    history: Sequence[ModelStep]
    names: Callable[[str], str]
    outcome: tuple[bool, Problem] | None
    attempt: Attempt
    federation: tuple[Sequence[str], str]
    describe: Callable[[str, str, str, Sequence[str], str], object]
    step: Callable[[str, str, str], object]
    close: Callable[[], None]


def window(t: Texts, managing: Manager) -> None:
    """Draw the window in which the model is managed."""

    def body() -> None:
        frame.outcome(t, managing.outcome)
        if managing.account:
            st.caption(f":material/badge: {t('states.signed_in', name=markdown(managing.account))}")
        else:
            st.caption(f":material/badge: {t('states.self_declared')}")
        _described(t, managing)
        _steps(t, managing)
        _history(t, managing.history)

    st.dialog(t("states.manage"), icon=":material/tune:", width="medium", on_dismiss=managing.close)(body)()


def _described(t: Texts, managing: Manager) -> None:
    model = managing.standing.model
    with st.form("describe", border=False):
        name_column, owner_column = st.columns(2)
        name = name_column.text_input(t("states.name"), model.name, max_chars=120, key=f"name_{model.model_id}")
        owner = owner_column.text_input(
            t("states.owner"), model.owner, max_chars=120, key=f"owner_{model.model_id}", help=t("states.owner_help")
        )
        note = st.text_area(t("states.note"), model.note, height=80, key=f"note_{model.model_id}")
        places, product = _law(t, managing)
        if st.form_submit_button(t("states.save"), icon=":material/save:", key="describe_go"):
            _take(managing, t("states.saved"), lambda: managing.describe(name, note, owner, places, product))


def _law(t: Texts, managing: Manager) -> tuple[Sequence[str], str]:
    """Ask for the model's own places and product, by which law is chosen; without any the federation's hold."""
    model = managing.standing.model
    own_places = model.places.split(",") if model.places else []
    lived_in, made_for = managing.federation
    places_column, product_column = st.columns(2)
    places = places_column.multiselect(
        t("states.places"),
        PLACES,
        own_places,
        key=f"places_{model.model_id}",
        format_func=lambda place: t(f"place.{place}"),
        placeholder=_as_federation(t, t.listed([t(f"place.{place}") for place in lived_in])),
        help=t("states.law_help"),
    )
    product = product_column.selectbox(
        t("states.product"),
        ("", *PRODUCTS),
        ("", *PRODUCTS).index(model.product),
        key=f"product_{model.model_id}",
        format_func=lambda name: (
            t(f"product.{name}") if name else _as_federation(t, t(f"product.{made_for}") if made_for else "")
        ),
        help=t("states.law_help"),
    )
    return places, product


def _as_federation(t: Texts, says: str) -> str:
    """Return the choice of what the federation says, with that."""
    if says:
        return t("states.as_federation", says=says)
    return t("states.as_federation_open")


def _steps(t: Texts, managing: Manager) -> None:
    """Draw the steps from here; the signed-in user acts under that name."""
    frame.section(t, "states.next")
    model = managing.standing.model
    st.caption(t("states.maker", name=markdown(model.maker)) if model.maker else t("states.maker_unknown"))
    if not managing.offers:
        st.markdown(t("states.no_step"))
        return
    with st.form("steps", border=False):
        person = managing.account or named(t("states.person"), "step_person")
        needs_reason = any(offer.reason and offer.mine for offer in managing.offers)
        if needs_reason:
            reason = st.text_area(t("states.reason"), height=80, key="step_reason", help=t("states.reason_help"))
        else:
            reason = ""
        for offer in managing.offers:
            button_column, condition_column = st.columns([2, 3], vertical_alignment="center")
            words = t(f"states.step_{offer.name}")
            key = f"step_{offer.name}"
            if button_column.form_submit_button(words, key=key, disabled=not offer.mine, width="stretch"):
                success = t(f"states.done_{offer.name}")
                _take(managing, success, partial(managing.step, offer.name, person, reason))
            condition_column.caption(_condition(t, offer, managing))


def _condition(t: Texts, offer: NextStep, managing: Manager) -> str:
    """Return what a step needs, or whose it is."""
    if not offer.mine:
        roles = t.listed([t(f"sidebar.role_{role}") for role in offer.roles])
        return t("states.not_mine", roles=roles, role=t(f"sidebar.role_{managing.role}"))
    parts = [t(f"states.about_{offer.name}")]
    if offer.undecided:
        parts.append(t("states.undecided", n=offer.undecided))
    if offer.replaces:
        parts.append(t("states.replaces", model=markdown(managing.names(offer.replaces))))
    return t.joined(*parts)


def _history(t: Texts, steps: Sequence[ModelStep]) -> None:
    if not steps:
        return
    with st.expander(t("states.history", n=len(steps)), icon=":material/history:"):
        for step in reversed(steps):
            line = t(
                "states.step_line",
                time=step.time[:16].replace("T", " "),
                before=t(f"states.{step.before}"),
                after=t(f"states.{step.after}"),
                person=markdown(step.person),
                role=t(f"sidebar.role_{step.role}"),
            )
            st.markdown(f"{line}  \n:small[{markdown(step.reason)}]" if step.reason else line)


def _take(managing: Manager, success: str, act: Callable[[], object]) -> None:
    """Act, and close the window unless that was refused."""

    def close_after() -> None:
        act()
        managing.close()

    managing.attempt(success, close_after)
