"""What a model's policy says of its scores, wherever a decision is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.texts import Texts, number, percent

if TYPE_CHECKING:
    from backend.results import Score
    from backend.services.policies import Policy

ICONS = {
    "accept": ":material/check_circle:",
    "refer": ":material/person_search:",
    "decline": ":material/do_not_disturb_on:",
    "refuse": ":material/block:",
}


def line(t: Texts, policy: Policy) -> None:
    """Draw which policy decides; if nobody has set one, that the base rate does."""
    if not policy.is_set:
        words = (
            t("policy.nobody") if policy.decline_at is None else t("policy.base_rate", cutoff=percent(policy.cutoff))
        )
        st.info(words, icon=":material/rule:")
        return
    st.caption(f":material/rule: {t.joined(t('policy.by', version=policy.version), bands(t, policy))}")


def bands(t: Texts, policy: Policy) -> str:
    """Return the bands of a policy as a sentence."""
    shown = number if policy.task == "number" else percent
    if policy.task == "classes":
        return "" if policy.refer_at is None else t("policy.bands_classes", refer=percent(policy.refer_at))
    if policy.decline_at is None:
        return ""
    if policy.refer_at is None:
        return t(f"policy.two_{policy.declines}", decline=shown(policy.decline_at))
    return t(f"policy.three_{policy.declines}", refer=shown(policy.refer_at), decline=shown(policy.decline_at))


def reasons_of(t: Texts, score: Score) -> str:
    """Return why the decision is not the band's; "" if it is."""
    if score.decision == score.band or not score.marks:
        return ""
    marks = t.listed([t(f"policy.mark_{mark}") for mark in score.marks])
    return t(f"policy.because_{score.decision}", marks=marks)


def what_if(t: Texts, score: Score) -> str:
    """Return what another line would say; "" if none was asked about."""
    return t("policy.what_if_says", decision=t(f"score.{score.what_if}")) if score.what_if else ""
