"""What was assessed, against which law, and what speaks of the model as a whole or against an owner's expectation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app import view_models
from app.panels import findings, frame, palette
from app.panels.findings import citation, force, law_badges
from app.texts import Texts, markdown, percent
from app.view_models import View

if TYPE_CHECKING:
    from backend.compliance.assessment import Duty
    from backend.explain.direction import LearnedDirection
    from backend.services.compliance import Finding


def summary(t: Texts, view: View) -> None:
    """How much was assessed, against which rules, and how much was flagged."""
    report = view.compliance
    flagged = {finding.feature for finding in report.findings}
    used = {finding.feature for finding in view_models.open_findings(report)}
    against = [direction for direction in view.directions if direction.contradicts]
    with st.grid(4, min_column_width=170):
        st.metric(t("compliance.assessed"), f"{report.assessed:,}", help=t("compliance.assessed_help"), border=True)
        st.metric(t("compliance.flagged"), f"{len(flagged):,}", help=t("glossary.flag"), border=True)
        st.metric(t("compliance.flagged_used"), f"{len(used):,}", help=t("compliance.used_help"), border=True)
        st.metric(t("compliance.against"), f"{len(against):,}", help=t("glossary.expected_direction"), border=True)
    if report.problems:
        lines = "".join(f"\n- {markdown(problem)}" for problem in report.problems)
        st.warning(f"{t('compliance.problems')}\n{lines}", icon=":material/rule:")
    checked = max((pack.as_of for pack in report.packs), default="")
    st.caption(t("compliance.basis", on=report.on, packs=len(report.packs), as_of=checked))


def packs(t: Texts, view: View) -> None:
    """Which bodies of law were applied, in which version, checked when, from where."""
    found = view.compliance.packs
    columns: frame.Columns = {
        "pack": [markdown(t.either(pack.title, pack.title_zh)) for pack in found],
        "jurisdiction": [markdown(pack.jurisdiction) for pack in found],
        "version": [markdown(pack.version) for pack in found],
        "as_of": [pack.as_of for pack in found],
        "source": [markdown(pack.source) for pack in found],
        "origin": [t(f"compliance.{'built_in' if pack.built_in else 'own'}") for pack in found],
    }
    box = st.expander(t("compliance.packs"), icon=":material/library_books:", key="packs", on_change="rerun")
    if not box.open:
        return
    with box:
        frame.table({t(f"compliance.{name}"): values for name, values in columns.items()}, t("compliance.packs"))


def duties(t: Texts, view: View) -> None:
    """Rules about the model as a whole, law by law; those that are not in force say so."""
    found = view.compliance.duties
    forces = Counter(duty.force for duty in found)
    counts = {force: forces[force] for force in ("in_force", "not_yet", "ended")}
    st.markdown(t("compliance.duties", **counts))
    for index, pack in enumerate(dict.fromkeys((duty.pack, duty.pack_zh) for duty in found)):
        own = [duty for duty in found if (duty.pack, duty.pack_zh) == pack]
        in_force = sum(duty.force == "in_force" for duty in own)
        head = t("compliance.duties_of", pack=markdown(t.either(*pack)), n=len(own), in_force=in_force)
        box = st.expander(head, icon=":material/balance:", key=f"duties_{index}", on_change="rerun")
        if box.open:  # what nobody looks at is not sent
            with box:
                _duties(t, own)


def _duties(t: Texts, own: Sequence[Duty]) -> None:
    for duty in own:
        _law(t, duty)
        offers = markdown(t.either(duty.evidence, duty.evidence_zh))
        st.markdown(f":material/inventory_2: **{t('compliance.offers')}**: {offers}")
        remedy = markdown(t.either(duty.remedy, duty.remedy_zh))
        st.markdown(f":material/build: **{t('compliance.what_to_do')}**: {remedy}")


def _law(t: Texts, law: Duty) -> None:
    """Title, whether it is in force, what it says, and where that is written."""
    st.markdown(f"**{markdown(t.either(law.title, law.title_zh))}**")
    law_badges(t, law)
    st.markdown(markdown(t.either(law.explanation, law.explanation_zh)))
    st.caption(citation(t, law))


def set_aside(t: Texts, view: View) -> None:
    """Matches that do not count because the feature's owner states that it is not sensitive, so that anyone can object."""
    aside = view.compliance.set_aside
    _matches(t, view, aside, "set_aside", t("compliance.set_aside_why"))


def not_in_force(t: Texts, view: View) -> None:
    """Matches of rules that are not in force yet, or no longer."""
    report = view.compliance
    _matches(t, view, report.not_in_force, "not_in_force", t("compliance.not_in_force_why", on=report.on))


def _matches(t: Texts, view: View, found: Sequence[Finding], kind: str, why: str) -> None:
    """A table of matches that are no findings; nothing where there are none."""
    if not found:
        return
    head = t(f"compliance.{kind}", n=len(found))
    columns = {
        "features.meaning": [markdown(t.either(x.meaning, x.meaning_zh)) for x in found],
        "words.party": [palette.name(t, view.federation, x.party) for x in found],
        "compliance.rule": [markdown(t.either(x.title, x.title_zh)) for x in found],
        "compliance.match": [
            t("compliance.matched", matched=markdown(x.matched), place=t(f"compliance.in_{x.matched_in}"))
            for x in found
        ],
        "words.gain": [percent(x.usage.gain_share) for x in found],
    }
    if kind == "not_in_force":
        columns |= {"compliance.force": [force(t, x) for x in found]}
    with st.expander(head, icon=":material/playlist_remove:", key=kind):
        st.markdown(why)
        frame.table({t(key): values for key, values in columns.items()}, head)


def contradictions(t: Texts, view: View) -> None:
    """Features whose learned direction is the opposite of the expected one."""
    against = sorted((d for d in view.directions if d.contradicts), key=lambda d: -abs(d.strength))
    if not against:
        expected = sum(d.expected != "none" for d in view.directions)
        st.markdown(t("compliance.no_contradiction", n=expected) if expected else t("compliance.nothing_expected"))
        return
    st.markdown(t("compliance.contradictions", n=len(against)))
    for _, direction in frame.paged(against, "contradictions_page"):
        _contradiction(t, view, direction)


def _contradiction(t: Texts, view: View, direction: LearnedDirection) -> None:
    row = next(r for r in view.importance if r.feature == direction.feature)
    with st.container(border=True, key=f"contradiction_{direction.feature}"):
        st.badge(t("importance.against_short"), icon=":material/swap_vert:", color="red")
        held = t("compliance.held_by", party=palette.name(t, view.federation, direction.party))
        sentence = t(
            "compliance.contradiction",
            expected=t(f"direction.{direction.expected}"),
            learned=t(f"direction.{direction.learned}"),
            strength=f"{direction.strength:+.2f}".replace("-", "−"),
            gain=percent(row.gain_share),
            n=len(direction.where),
        )
        parts = [f"### {markdown(t.meaning(view.model.feature(direction.feature)))}"]
        parts += [f"{held} · `{direction.feature}`", sentence, f":material/build: {t('compliance.contradiction_do')}"]
        st.markdown("\n\n".join(parts), anchors=False)
        with st.container(horizontal=True):
            findings.to_splits(t, view, direction.feature, direction.where)
