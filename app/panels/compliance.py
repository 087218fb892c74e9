"""Findings as cards, worst first: what, where, which rule, the evidence, what to do."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app import reading
from app.panels import palette
from app.reading import View
from app.session import page
from app.texts import Texts, markdown, percent
from backend.service import Finding, LearnedDirection

ICONS = {"prohibited": "block", "conditional": "rule", "indicator": "troubleshoot", "informational": "info"}


def summary(t: Texts, view: View) -> None:
    """How much was assessed, against which rules, and how much was flagged."""
    report = view.compliance
    flagged = {finding.feature for finding in report.findings}
    used = {finding.feature for finding in reading.open_findings(report)}
    against = [direction for direction in view.directions if direction.contradicts]
    with st.grid(4, min_column_width=170):
        st.metric(t("compliance.assessed"), f"{report.assessed:,}", help=t("compliance.assessed_help"), border=True)
        st.metric(t("compliance.flagged"), f"{len(flagged):,}", help=t("glossary.flag"), border=True)
        st.metric(t("compliance.flagged_used"), f"{len(used):,}", help=t("compliance.used_help"), border=True)
        st.metric(t("compliance.against"), f"{len(against):,}", help=t("glossary.expected_direction"), border=True)
    for pack in report.packs:
        st.caption(
            t(
                "compliance.basis",
                title=markdown(t.either(pack.title, pack.title_zh)),
                jurisdiction=markdown(pack.jurisdiction),
                version=markdown(pack.version),
                as_of=pack.as_of,
                source=markdown(pack.source),
            )
        )


def findings(t: Texts, view: View) -> None:
    """A card a finding; where there is none, what that does and does not say."""
    if not view.compliance.findings:
        st.info(t("compliance.none", assessed=view.compliance.assessed), icon=":material/search_off:")
        return
    worst = view.compliance.findings[0]
    st.markdown(
        t(
            "compliance.sentence",
            n=len(view.compliance.findings),
            worst=markdown(t.brief(view.model.feature(worst.feature))),
            status=t(f"compliance.{worst.status}").lower(),
            share=percent(worst.usage.gain_share),
        )
    )
    for i, finding in enumerate(view.compliance.findings):
        _card(t, view, finding, i)


def _card(t: Texts, view: View, finding: Finding, place: int) -> None:
    used = finding.usage.splits > 0
    with st.container(border=True, key=f"finding_{place}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(
                t(f"compliance.{finding.status}"),
                icon=f":material/{ICONS[finding.status]}:",
                color="red" if finding.status in ("prohibited", "conditional") else "gray",
                help=t(f"compliance.{finding.status}_help"),
            )
            st.badge(
                t("compliance.used" if used else "compliance.unused"),
                icon=":material/account_tree:" if used else ":material/do_not_disturb_off:",
                color="gray",
                help=t("compliance.used_help"),
            )
        st.markdown(f"#### {markdown(t.either(finding.meaning, finding.meaning_zh))}", anchors=False)
        held = t("compliance.held_by", party=palette.name(t, view.federation, finding.party))
        st.markdown(f"{held} · `{finding.feature}`")
        law, evidence = st.columns(2, gap="medium")
        with law:
            st.markdown(f":material/gavel: **{markdown(t.either(finding.title, finding.title_zh))}**")
            st.markdown(markdown(t.either(finding.explanation, finding.explanation_zh)))
            st.caption(
                t(
                    "compliance.citation",
                    citation=markdown(finding.citation),
                    jurisdiction=markdown(finding.jurisdiction),
                    as_of=finding.as_of,
                )
            )
        with evidence:
            st.markdown(f":material/search: **{t('compliance.why')}**")
            st.markdown(
                t(
                    "compliance.matched",
                    matched=markdown(finding.matched),
                    place=t(f"compliance.in_{finding.matched_in}"),
                )
            )
            st.markdown(_evidence(t, finding) if used else t("compliance.no_use"))
            st.markdown(f":material/build: **{t('compliance.what_to_do')}**")
            st.markdown(markdown(t.either(finding.remedy, finding.remedy_zh)))
        _links(t, view, finding.feature, reading.where(view.model, finding.feature))


def _evidence(t: Texts, finding: Finding) -> str:
    usage = finding.usage
    return t(
        "compliance.evidence",
        n=usage.splits,
        splits=usage.splits,
        trees=usage.trees,
        gain=percent(usage.gain_share),
        cover=percent(usage.cover_share),
    )


def _links(t: Texts, view: View, feature: str, places: Sequence[tuple[int, int]]) -> None:
    with st.container(horizontal=True):
        st.page_link(
            page("features"),
            label=t("compliance.open_feature"),
            icon=":material/dictionary:",
            query_params={"model": view.record.id, "feature": feature},
        )
        for tree in list(dict.fromkeys(tree for tree, _ in places))[:3]:
            st.page_link(
                page("structure"),
                label=t("features.see_tree", tree=tree + 1),
                icon=":material/account_tree:",
                query_params={"model": view.record.id, "tree": str(tree + 1)},
            )


def set_aside(t: Texts, view: View) -> None:
    """Matches that do not count because the feature's owner states that it is not sensitive, so that anyone can object."""
    aside = view.compliance.set_aside
    if not aside:
        return
    with st.expander(t("compliance.set_aside", n=len(aside)), icon=":material/playlist_remove:", key="set_aside"):
        st.markdown(t("compliance.set_aside_why"))
        st.table(
            pd.DataFrame(
                {
                    t("features.meaning"): [markdown(t.either(x.meaning, x.meaning_zh)) for x in aside],
                    t("words.party"): [palette.name(t, view.federation, x.party) for x in aside],
                    t("compliance.rule"): [markdown(t.either(x.title, x.title_zh)) for x in aside],
                    t("compliance.match"): [
                        t("compliance.matched", matched=markdown(x.matched), place=t(f"compliance.in_{x.matched_in}"))
                        for x in aside
                    ],
                    t("words.gain"): [percent(x.usage.gain_share) for x in aside],
                }
            ),
            hide_index=True,
            alt=t("compliance.set_aside", n=len(aside)),
        )


def contradictions(t: Texts, view: View) -> None:
    """Features whose learned direction is the opposite of the expected one."""
    against = sorted((d for d in view.directions if d.contradicts), key=lambda d: -abs(d.strength))
    if not against:
        st.markdown(t("compliance.no_contradiction", n=sum(d.expected != "none" for d in view.directions)))
        return
    st.markdown(t("compliance.contradictions", n=len(against)))
    for direction in against:
        _contradiction(t, view, direction)


def _contradiction(t: Texts, view: View, direction: LearnedDirection) -> None:
    row = next(r for r in view.importance if r.feature == direction.feature)
    with st.container(border=True, key=f"contradiction_{direction.feature}"):
        st.badge(t("importance.against_short"), icon=":material/swap_vert:", color="red")
        st.markdown(f"#### {markdown(t.meaning(view.model.feature(direction.feature)))}", anchors=False)
        held = t("compliance.held_by", party=palette.name(t, view.federation, direction.party))
        st.markdown(f"{held} · `{direction.feature}`")
        st.markdown(
            t(
                "compliance.contradiction",
                expected=t(f"direction.{direction.expected}"),
                learned=t(f"direction.{direction.learned}"),
                strength=f"{direction.strength:+.2f}".replace("-", "−"),
                gain=percent(row.gain_share),
                n=len(direction.where),
            )
        )
        st.markdown(f":material/build: {t('compliance.contradiction_do')}")
        _links(t, view, direction.feature, direction.where)
