"""What was assessed, against which law, and what speaks of the model as a whole or against an owner's expectation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import view_models
from app.panels import casework, evidence, findings, frame, model_comparison, palette, reviews, verdict
from app.panels.casework import Casework
from app.panels.findings import citation, force, law_badges
from app.texts import Texts, code, markdown, percent
from app.view_models import View

if TYPE_CHECKING:
    from backend.compliance.assessment import Duty, Examined
    from backend.explain.direction import LearnedDirection
    from backend.reports.model_comparison import SideBySide
    from backend.services.compliance import Finding


SIGN_OFF_PLACE = "sign"  # the place of sign-offs if there is no finding


def summary(t: Texts, view: View) -> None:
    """Draw how much was assessed, against which rules, and how much was flagged, in one line."""
    report = view.compliance
    flagged = {finding.feature for finding in report.findings}
    in_use = {finding.feature for finding in view_models.open_findings(report)}
    against = sum(direction.contradicts for direction in view.directions)
    counts = {"assessed": report.assessed, "flagged": len(flagged)}
    counts |= {"used": len(in_use)} if flagged else {}
    counts |= {"against": against} if against else {}
    basis = t("compliance.basis", on=report.on, packs=len(report.packs))
    words = " · ".join(t(f"compliance.counts_{name}", n=f"{count:,}") for name, count in counts.items())
    scope = markdown(t.text(report.scope))
    st.markdown(f"{words}  \n:small[:gray[{basis}]]  \n:small[:gray[{scope}]]", help=t("compliance.assessed_help"))
    if report.problems:
        lines = "".join(f"\n- {markdown(t.text(problem))}" for problem in report.problems)
        st.warning(f"{t('compliance.problems')}\n{lines}", icon=":material/rule:")


def replaces(t: Texts, view: View, comparison: SideBySide) -> None:
    """Draw what changed against the model that this one replaces."""
    with st.container(border=True):
        verdict.which(t, comparison.changes)
        model_comparison.basis(t, view, comparison)
        model_comparison.open_full(t, view, comparison)


def kept_out(t: Texts, view: View, features: Sequence[Examined], work: Casework) -> None:
    """Draw features that the model was not given: what is left of a gap, their proxies, and a form to measure it."""
    for row in features:
        if evidence.named(view, row.feature) is None:  # no party has it any longer
            continue
        words = t("compliance.kept_out", feature=evidence.brief(t, view, row.feature))
        box = frame.box(words, "visibility_off", f"kept_out_{row.feature}")
        if box is not None:
            with box:
                casework.measure(t, view, row, evidence.measurable(view, None), work, row.feature)


def sign(t: Texts, work: Casework) -> None:
    """Draw the sign-off of a model without findings."""
    if work.attempted_at == SIGN_OFF_PLACE:
        frame.outcome(t, work.outcome)
    reviews.acting(t, *work.as_whom)
    reviews.sign_offs(t, work.signing, SIGN_OFF_PLACE, partial(work.attempt, SIGN_OFF_PLACE))


def packs(t: Texts, view: View) -> None:
    """Draw which bodies of law were applied, in which version, checked when, from where."""
    rule_packs = view.compliance.packs
    box = frame.box(t("compliance.packs"), "library_books", "packs")
    if box is None:
        return
    columns: frame.Columns = {
        "pack": [markdown(t.text(pack.title)) for pack in rule_packs],
        "jurisdiction": [markdown(t.jurisdiction(pack.jurisdiction)) for pack in rule_packs],
        "scope": [markdown(t.text(pack.applies_to) or "–") for pack in rule_packs],
        "version": [markdown(pack.version) for pack in rule_packs],
        "as_of": [pack.as_of for pack in rule_packs],
        "source": [markdown(t.text(pack.source)) for pack in rule_packs],
        "origin": [t(f"compliance.{'built_in' if pack.built_in else 'own'}") for pack in rule_packs],
    }
    with box:
        frame.table({t(f"compliance.{name}"): values for name, values in columns.items()}, t("compliance.packs"))


def duties(t: Texts, view: View) -> None:
    """Draw rules about the model as a whole, those of one law at a time; those that are not in force say so."""
    every_duty = view.compliance.duties
    forces = Counter(duty.force for duty in every_duty)
    counts = [
        t(f"compliance.duties_{force}", n=forces[force]) for force in ("in_force", "not_yet", "ended") if forces[force]
    ]
    words = t("compliance.duties_of_model", counts=t("words.comma").join(counts))
    if every_duty:
        box = frame.box(words, "balance", "duties")
    else:
        box = None
    if box is None:
        return
    laws: dict[str, list[Duty]] = {}
    for duty in every_duty:
        laws.setdefault(t.text(duty.pack), []).append(duty)

    def counted(law: str) -> str:
        in_force = sum(duty.force == "in_force" for duty in laws[law])
        return t("compliance.duties_of", pack=markdown(law), n=len(laws[law]), in_force=in_force)

    with box:
        st.markdown(t("compliance.duties"))
        law_name = st.pills(t("compliance.duties_law"), list(laws), format_func=counted, key="duties_law")
        if law_name is not None:
            _duties(t, laws[law_name])


def _duties(t: Texts, duties: Sequence[Duty]) -> None:
    for duty in duties:
        _law(t, duty)
        offers = markdown(t.text(duty.evidence))
        st.markdown(f":material/inventory_2: {t('words.about', what=t('compliance.offers'), said=offers)}")
        remedy = markdown(t.text(duty.remedy))
        st.markdown(f":material/build: {t('words.about', what=t('compliance.what_to_do'), said=remedy)}")


def _law(t: Texts, law: Duty) -> None:
    """Title, whether it is in force, what it says, and where that is written."""
    st.markdown(f"**{markdown(t.text(law.title))}**")
    law_badges(t, law)
    st.markdown(markdown(t.text(law.explanation)))
    st.caption(citation(t, law))


def set_aside(t: Texts, view: View) -> None:
    """Draw matches that do not count because the feature's owner states that it is not sensitive, so that anyone can object."""
    aside = view.compliance.set_aside
    _matches(t, view, aside, "set_aside", t("compliance.set_aside_why"))


def not_in_force(t: Texts, view: View) -> None:
    """Draw matches of rules that are not in force yet, or no longer."""
    report = view.compliance
    _matches(t, view, report.not_in_force, "not_in_force", t("compliance.not_in_force_why", on=report.on))


def _matches(t: Texts, view: View, matches: Sequence[Finding], kind: str, why: str) -> None:
    """Draw a table of matches that are not findings; nothing if there are none."""
    if not matches:
        return
    head = t(f"compliance.{kind}", n=len(matches))
    columns = {
        "features.meaning": [markdown(t.text(x.meaning)) for x in matches],
        "words.party": [palette.name(t, view.federation, x.party) for x in matches],
        "compliance.rule": [markdown(t.text(x.title)) for x in matches],
        "compliance.match": [
            t("compliance.matched", matched=markdown(x.matched), place=t(f"compliance.in_{x.matched_in}"))
            for x in matches
        ],
        "words.gain": [percent(x.usage.gain_share) for x in matches],
    }
    if kind == "not_in_force":
        columns |= {"compliance.force": [force(t, x) for x in matches]}
    with st.expander(head, icon=":material/playlist_remove:", key=kind):
        st.markdown(why)
        frame.table({t(key): values for key, values in columns.items()}, head)


def not_understood(t: Texts, view: View) -> None:
    """Draw the features without an explanation, which their holders have to give; nothing if there are none."""
    columns_unknown = view.compliance.not_understood
    if not columns_unknown:
        return
    head = t("not_understood.head", n=len(columns_unknown))
    with st.expander(head, icon=":material/contact_support:", key="not_understood"):
        st.markdown(t("not_understood.why"))
        columns = {
            "not_understood.name": [code(row.feature) for row in columns_unknown],
            "words.party": [palette.name(t, view.federation, row.party) for row in columns_unknown],
        }
        frame.table({t(key): values for key, values in columns.items()}, head)


def contradictions(t: Texts, view: View) -> None:
    """Draw features whose learned direction is the opposite of the expected one, each once opened."""
    against = sorted((d for d in view.directions if d.contradicts), key=lambda d: -abs(d.strength))
    if not against:
        expected = sum(d.expected != "none" for d in view.directions)
        st.caption(t("compliance.no_contradiction", n=expected) if expected else t("compliance.nothing_expected"))
        return
    box = frame.box(t("compliance.contradictions", n=len(against)), "swap_vert", "against")
    if box is not None:
        with box:
            for _, direction in frame.paged(against, "contradictions_page"):
                _contradiction(t, view, direction)


def _contradiction(t: Texts, view: View, direction: LearnedDirection) -> None:
    row = next(r for r in view.importance if r.feature == direction.feature)
    with st.container(border=True, key=f"contradiction_{direction.feature}"):
        st.badge(t("importance.against_short"), icon=":material/swap_vert:", color="red")
        holder = t("compliance.held_by", party=palette.name(t, view.federation, direction.party))
        sentence = t(
            "compliance.contradiction",
            expected=t(f"direction.{direction.expected}"),
            learned=t(f"direction.{direction.learned}"),
            strength=f"{direction.strength:+.2f}".replace("-", "−"),
            gain=percent(row.gain_share),
            n=len(direction.where),
        )
        parts = [f"### {markdown(t.meaning(view.model.feature(direction.feature)))}"]
        parts += [
            f"{holder} · {code(direction.feature)}",
            sentence,
            f":material/build: {t('compliance.contradiction_do')}",
        ]
        st.markdown("\n\n".join(parts), anchors=False)
        with st.container(horizontal=True):
            findings.to_splits(t, view, direction.feature, direction.where)
