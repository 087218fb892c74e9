"""What a model's policy says of its scores, wherever a decision is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.errors import worded
from app.panels import frame
from app.texts import Texts, bare, markdown, number, percent
from backend.services.policies import MARKS, line_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backend.remark import Remark
    from backend.results import Score, ScoreBatch
    from backend.services.policies import Policy, PolicyStanding, PolicyVersion


def line(t: Texts, policy: Policy) -> None:
    """Draw which policy decides; if none was set, that the base rate does."""
    if not policy.is_set:
        if policy.decline_at is None:
            words = t("policy.nobody")
        else:
            words = t("policy.base_rate", cutoff=percent(policy.cutoff))
        st.info(words, icon=":material/rule:")
        return
    st.caption(f":material/rule: {t.joined(t('policy.by', version=policy.version), bands(t, policy))}")


def standing(t: Texts, policy_standing: PolicyStanding) -> None:
    """Draw the policy that holds, who set it, what waits for a second person, and what speaks against it."""
    line(t, policy_standing.policy)
    if policy_standing.version is not None:
        described(t, policy_standing.policy)
    if policy_standing.proposed is not None:
        words = t.joined(
            t("policy.waits", version=policy_standing.proposed.version), bands(t, policy_standing.proposed.policy)
        )
        st.info(words, icon=":material/hourglass_empty:")
    warned(t, policy_standing.warnings)


def described(t: Texts, policy: Policy) -> None:
    """Draw the points of a policy and what happens to the unusual."""
    scale = policy.points
    points = ""
    if scale is not None:
        points = t("policy.points_are", base=scale.base_points, odds=bare(scale.base_odds), double=scale.double)
    unusual = []
    for mark in MARKS:
        treatment = policy.treatments.of(mark)
        if treatment != "score":
            words = {"mark": t(f"policy.unusual_{mark}"), "treatment": t(f"policy.treat_{treatment}")}
            unusual.append(t("policy.treated_one", **words))
    if unusual:
        treated = t("policy.treated", listed=t.listed(unusual))
    else:
        treated = ""
    if points or treated:
        st.caption(t.joined(points, treated))


def warned(t: Texts, warnings: Sequence[Remark]) -> None:
    """Draw what speaks against a policy."""
    for warning in warnings:
        st.warning(markdown(worded(t, warning)), icon=":material/warning:")


def history(t: Texts, versions: Sequence[PolicyVersion]) -> None:
    """Draw every version that was proposed, newest first."""
    if not versions:
        st.caption(t("policy.no_versions"))
        return
    newest = list(reversed(versions))
    columns: frame.Columns = {
        t("policy.version"): [str(version.version) for version in newest],
        t("policy.state"): [t(f"policy.state_{version.state}") for version in newest],
        t("policy.lines"): [bands(t, version.policy) for version in newest],
        t("policy.first_day"): [version.first_day for version in newest],
        t("policy.owner"): [markdown(t.written(version.owner)) for version in newest],
        t("policy.proposed_by"): [markdown(t.written(version.proposed_by)) for version in newest],
        t("policy.approved_by"): [markdown(t.written(version.approved_by)) or "–" for version in newest],
        t("policy.reason"): [markdown(t.written(version.reason)) for version in newest],
    }
    with st.container(key="cards_policies"):  # on a phone a card each
        frame.table(columns, t("decide.history"))


def bands(t: Texts, policy: Policy) -> str:
    """Return the bands of a policy as a sentence."""
    text_of = number if policy.task == "number" else percent
    if policy.task == "classes":
        if policy.refer_at is None:
            return ""
        return t("policy.bands_classes", refer=percent(policy.refer_at))
    if policy.decline_at is None:
        return ""
    if policy.refer_at is None:
        return t(f"policy.two_{policy.declines}", decline=text_of(policy.decline_at))
    return t(f"policy.three_{policy.declines}", refer=text_of(policy.refer_at), decline=text_of(policy.decline_at))


def measured_at(t: Texts, cutoff: float, version: int | None) -> str:
    """Return a cut-off that something was measured at, and whose line it is."""
    return t(f"policy.at_{line_kind(version)}", cutoff=percent(cutoff), version=version)


def remembered(t: Texts, batch: ScoreBatch) -> str:
    """Return when a person was scored before, and which version of the policy decided."""
    version = batch.scores[0].policy
    if version:
        by = t("policy.by", version=version)
    else:
        by = t("policy.by_base_rate")
    return t.joined(t("policy.remembered", day=batch.decided[:10]), by)


def reasons_of(t: Texts, score: Score) -> str:
    """Return why the decision is not the band's; "" if it is."""
    if score.decision == score.band or not score.marks:
        return ""
    marks = t.listed([t(f"policy.mark_{mark}") for mark in score.marks])
    return t(f"policy.because_{score.decision}", marks=marks)


def what_if(t: Texts, score: Score) -> str:
    """Return what another line would say; "" if none was asked about."""
    if score.what_if:
        return t("policy.what_if_says", decision=t(f"score.{score.what_if}"))
    return ""
