"""Findings as cards, worst first: what, where, which rule, the evidence, what to do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from app import reading
from app.panels import frame, palette, run
from app.reading import View
from app.session import page
from app.texts import Texts, markdown, number, percent
from backend.service import (
    ComplianceReport,
    Disparity,
    DisparityRequest,
    Evidence,
    Finding,
    Job,
    LearnedDirection,
    Proxies,
    ProxyRequest,
)

if TYPE_CHECKING:
    from backend.assurance.compliance import Law

SHOWN = 5  # rows of proxy evidence on a card; the others are one press away
RATES = {  # measure: its text
    "selection rate": "selection",
    "true positive rate": "true_positive",
    "false positive rate": "false_positive",
}
GROUPS = {"all groups": "all", "no value": "missing", "all smaller groups together": "rest"}  # group: its text
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
    if report.problems:
        lines = "".join(f"\n- {markdown(problem)}" for problem in report.problems)
        st.warning(f"{t('compliance.problems')}\n{lines}", icon=":material/rule:")
    checked = max((pack.as_of for pack in report.packs), default="")
    st.caption(t("compliance.basis", on=report.on, packs=len(report.packs), as_of=checked))


def packs(t: Texts, view: View) -> None:
    """Which bodies of law were applied, in which version, checked when, from where."""
    found = view.compliance.packs
    columns = {
        "pack": [markdown(t.either(pack.title, pack.title_zh)) for pack in found],
        "jurisdiction": [markdown(pack.jurisdiction) for pack in found],
        "version": [markdown(pack.version) for pack in found],
        "as_of": [pack.as_of for pack in found],
        "source": [markdown(pack.source) for pack in found],
        "origin": [t(f"compliance.{'built_in' if pack.built_in else 'own'}") for pack in found],
    }
    with st.expander(t("compliance.packs"), icon=":material/library_books:", key="packs"):
        table = pd.DataFrame({t(f"compliance.{name}"): values for name, values in columns.items()})
        st.table(table, hide_index=True, alt=t("compliance.packs"))


def duties(t: Texts, view: View) -> None:
    """Rules about the model as a whole, law by law; those that are not in force say so."""
    found = view.compliance.duties
    forces = Counter(duty.force for duty in found)
    counts = {force: forces[force] for force in ("in_force", "not_yet", "ended")}
    st.markdown(t("compliance.duties", **counts))
    for place, pack in enumerate(dict.fromkeys((duty.pack, duty.pack_zh) for duty in found)):
        own = [duty for duty in found if (duty.pack, duty.pack_zh) == pack]
        in_force = sum(duty.force == "in_force" for duty in own)
        head = t("compliance.duties_of", pack=markdown(t.either(*pack)), n=len(own), in_force=in_force)
        with st.expander(head, icon=":material/balance:", key=f"duties_{place}"):
            for duty in own:
                _law(t, duty)
                offers = markdown(t.either(duty.evidence, duty.evidence_zh))
                st.markdown(f":material/inventory_2: **{t('compliance.offers')}**: {offers}")
                remedy = markdown(t.either(duty.remedy, duty.remedy_zh))
                st.markdown(f":material/build: **{t('compliance.what_to_do')}**: {remedy}")


def _law(t: Texts, law: Law) -> None:
    """Title, whether it is in force, what it says, and where that is written."""
    st.markdown(f"**{markdown(t.either(law.title, law.title_zh))}**")
    with st.container(horizontal=True, gap="small"):
        st.badge(t(f"compliance.{law.status}"), icon=f":material/{ICONS[law.status]}:", color="gray")
        st.badge(_force(t, law), icon=":material/event:", color="gray")
    st.markdown(markdown(t.either(law.explanation, law.explanation_zh)))
    st.caption(_citation(t, law))


def _force(t: Texts, law: Law) -> str:
    says, day = {
        "in_force": ("since", law.effective_from),
        "not_yet": ("from", law.effective_from),
        "ended": ("until", law.effective_to),
    }[law.force]
    return t(f"compliance.{says}", day=day)


def with_evidence(view: View, report: ComplianceReport) -> View:
    """The view with what was measured since it was first read, from a `report` of now."""
    measured = {finding.feature: finding for finding in report.findings}
    kept = tuple(
        replace(f, proxies=measured[f.feature].proxies, disparities=measured[f.feature].disparities)
        if f.feature in measured
        else f
        for f in view.compliance.findings
    )
    return replace(view, compliance=replace(view.compliance, findings=kept))


def findings(t: Texts, view: View, last: object = None) -> None:
    """A card a finding; where there is none, what that does and does not say. `last` is what was measured last, if anything."""
    if not view.compliance.findings:
        st.info(t("compliance.none", assessed=view.compliance.assessed), icon=":material/search_off:")
        return
    worst = view.compliance.findings[0]
    st.markdown(
        t(
            "compliance.sentence",
            n=len(view.compliance.findings),
            worst=_brief(t, view, worst.feature),
            status=t(f"compliance.{worst.status}").lower(),
            share=percent(worst.usage.gain_share),
        )
    )
    for i, finding in enumerate(view.compliance.findings):
        _card(t, view, finding, i, last)


def _card(t: Texts, view: View, finding: Finding, place: int, last: object) -> None:
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
            st.caption(_citation(t, finding))
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
        proxies, outcomes = st.columns(2, gap="medium")
        with proxies:
            st.markdown(f":material/link: **{t('compliance.proxies')}**", help=t("compliance.proxies_help"))
            _proxies(t, view, finding, place, last)
        with outcomes:
            st.markdown(f":material/groups: **{t('compliance.outcomes')}**", help=t("compliance.outcomes_help"))
            _outcomes(t, finding.disparities, place)
        _links(t, view, finding.feature, reading.where(view.model, finding.feature))


def _proxies(t: Texts, view: View, finding: Finding, place: int, last: object) -> None:
    """Which features go with the flagged one, the closest first, and how much the model uses each."""
    found = finding.proxies
    if found is None:
        st.markdown(t("compliance.not_measured"))
        return
    if not found:
        known = isinstance(last, Proxies) and last.attribute == finding.feature
        records = f"{last.n:,}" if isinstance(last, Proxies) else ""
        st.markdown(t("compliance.proxies_none", records=records) if known else t("compliance.proxies_none_n"))
        return
    holders = {feature.name: party for party, feature in view.model.dictionary}
    gains = {row.feature: row.gain_share for row in view.importance}
    closest = found[0]
    st.markdown(
        t(
            "compliance.proxies_found",
            n=len(found),
            closest=_brief(t, view, closest.about),
            party=palette.name(t, view.federation, holders[closest.about]),
            v=_interval(t, closest, number),
            records=f"{closest.n:,}",
        )
    )
    table = pd.DataFrame(
        {
            t("compliance.other_feature"): [_brief(t, view, row.about) for row in found],
            t("compliance.v"): [_interval(t, row, number) for row in found],
            t("compliance.records"): [f"{row.n:,}" for row in found],
            t("words.gain"): [percent(gains[row.about]) for row in found],
        }
    )
    st.table(table[:SHOWN], hide_index=True, border="horizontal", alt=t("compliance.proxies"))
    if len(found) > SHOWN:
        with st.expander(t("compliance.all_proxies", n=len(found)), icon=":material/table:", key=f"proxies_{place}"):
            st.table(table, hide_index=True, border="horizontal", alt=t("compliance.proxies"))


def _outcomes(t: Texts, found: Sequence[Evidence] | None, place: int) -> None:
    """Who is accepted how often, how far groups are apart and how sure that is; all rates one press away."""
    if found is None:
        st.markdown(t("compliance.not_measured"))
        return
    accepted = [row for row in found if row.measure == "selection rate"]
    told = sorted((row for row in accepted if row.value is not None), key=lambda row: row.value or 0.0)
    if len(told) < 2:
        st.markdown(t("compliance.outcomes_none"))
        return
    overall = {row.measure: row for row in found if row.about == "all groups"}
    gap = overall["selection rate, largest less smallest"]
    st.markdown(_apart(t, told[0], told[-1], gap))
    table = {
        t("compliance.group"): [_group(t, row.about) for row in accepted],
        t("compliance.accepted"): [_interval(t, row, percent) for row in accepted],
        t("compliance.records"): [_records(row) for row in accepted],
    }
    st.table(pd.DataFrame(table), hide_index=True, border="horizontal", alt=t("compliance.outcomes"))
    ratio = overall["selection rate, smallest over largest"]
    said = f"{_interval(t, ratio, number)}, n={_records(ratio)}"
    st.caption(f":material/troubleshoot: {t('compliance.ratio', ratio=said)}")
    with st.expander(t("compliance.all_rates"), icon=":material/table:", key=f"rates_{place}"):
        everything = {
            t("compliance.rate"): [_rate(t, row.measure) for row in found],
            t("compliance.group"): [_group(t, row.about) for row in found],
            t("compliance.value"): [_interval(t, row, number if "over" in row.measure else percent) for row in found],
            t("compliance.records"): [_records(row) for row in found],
        }
        st.table(pd.DataFrame(everything), hide_index=True, border="horizontal", alt=t("compliance.all_rates"))


def _apart(t: Texts, low: Evidence, high: Evidence, gap: Evidence) -> str:
    """Two groups, their shares of acceptance and the difference, as one sentence."""
    if not gap.value:
        return t("compliance.outcomes_equal", share=percent(low.value or 0.0), records=f"{gap.n:,}")
    return t(
        "compliance.outcomes_apart",
        low=_group(t, low.about),
        low_share=percent(low.value or 0.0),
        low_n=f"{low.n:,}",
        high=_group(t, high.about),
        high_share=percent(high.value or 0.0),
        high_n=f"{high.n:,}",
        gap=f"{100 * gap.value:.1f}",
        gap_low=f"{100 * (gap.low or 0.0):.1f}",
        gap_high=f"{100 * (gap.high or 0.0):.1f}",
    )


def _interval(t: Texts, row: Evidence, words: Callable[[float], str]) -> str:
    """A measured number with its interval, or that it is not told."""
    if row.value is None or row.low is None or row.high is None:
        return t("compliance.untold")
    return t("compliance.interval", value=words(row.value), low=words(row.low), high=words(row.high))


def _records(row: Evidence) -> str:
    return "–" if row.value is None else f"{row.n:,}"


def _rate(t: Texts, measure: str) -> str:
    """A measure in words: a rate, or a gap between the groups' rates."""
    rate, _, gap = measure.partition(", ")
    words = t(f"compliance.rate_{RATES[rate]}")
    return t(f"compliance.gap_{gap.split()[0]}", rate=words) if gap else words


def _group(t: Texts, name: str) -> str:
    """A group in words of this language; what a code stands for is its owner's word."""
    if name in GROUPS:
        return t(f"compliance.group_{GROUPS[name]}")
    found = re.match(r"bin (\d+) of (\d+) ", name)
    return t("compliance.group_bin", place=found[1], bins=found[2]) if found else markdown(name)


def flagged(view: View) -> list[str]:
    """The features that there is a finding about, worst first."""
    return list(dict.fromkeys(finding.feature for finding in view.compliance.findings))


def measurable(view: View) -> list[str]:
    """What can be measured of a flagged feature: decisions only where there are two outcomes."""
    return ["disparity", "proxies"] if view.task == "binary" else ["proxies"]


def request(t: Texts, view: View, feature_key: str, kind_key: str) -> DisparityRequest | ProxyRequest:
    """The form: a flagged feature, what to measure of it, and the cut-off where decisions are compared."""
    st.markdown(t("compliance.measure_why"))
    holders = {feature.name: party for party, feature in view.model.dictionary}
    feature = st.selectbox(
        t("compliance.measure_feature"),
        flagged(view),
        format_func=lambda name: (
            f"{t.brief(view.model.feature(name))} · {palette.plain(t, view.federation, holders[name])}"
        ),
        key=feature_key,
    )
    kinds = measurable(view)
    kind = st.radio(
        t("compliance.measure_what"),
        kinds,
        format_func=lambda name: t(f"compliance.kind_{name}"),
        captions=[t(f"compliance.kind_{name}_help") for name in kinds],
        key=kind_key,
    )
    if len(kinds) == 1:
        st.caption(t("compliance.measure_binary"))
    if kind == "proxies":
        return ProxyRequest(view.record.id, feature)
    return DisparityRequest(view.record.id, feature, run.cutoff(t, view.task))


def measured(t: Texts, view: View, job: Job[Any]) -> None:
    """What the last measuring came to, or why it brought nothing."""
    result = job.result
    if isinstance(result, Disparity):
        words = t(
            "compliance.measured_disparity",
            feature=_brief(t, view, result.feature),
            cutoff=percent(result.cutoff),
            records=f"{result.n:,}",
        )
    elif isinstance(result, Proxies):
        words = t(
            "compliance.measured_proxies",
            n=len(result.features),
            feature=_brief(t, view, result.attribute),
            records=f"{result.n:,}",
            found=sum(row.found for row in result.features),
        )
    elif job.state == "failed":
        frame.problem(t, job.error or "")
        return
    else:
        run.ended(t, job)
        return
    st.info(words, icon=":material/check_circle:")
    if isinstance(result, Proxies) and result.not_examined:
        left = t.listed([_brief(t, view, name) for _, name in result.not_examined])
        st.caption(t("compliance.not_examined", features=left))


def _brief(t: Texts, view: View, name: str) -> str:
    return markdown(t.brief(view.model.feature(name)))


def _citation(t: Texts, law: Law) -> str:
    return t(
        "compliance.citation",
        citation=markdown(law.citation),
        jurisdiction=markdown(law.jurisdiction),
        as_of=law.as_of,
    )


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
        columns["compliance.force"] = [_force(t, x) for x in found]
    with st.expander(head, icon=":material/playlist_remove:", key=kind):
        st.markdown(why)
        st.table(pd.DataFrame({t(key): values for key, values in columns.items()}), hide_index=True, alt=head)


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
