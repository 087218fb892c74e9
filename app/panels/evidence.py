"""Evidence behind a finding, claim by claim, and the form that has it measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import session
from app.panels import disparity, frame, palette, policies, run, verdict
from app.texts import Texts, markdown, number, percent
from app.view_models import View
from backend.services.age_check import AgeCheck, AgeRequest
from backend.services.compliance import Finding
from backend.services.fairness import (
    DIFFERENCE,
    MEASURES,
    PAIR,
    PAIR_P,
    RATIO,
    REFERENCE_GROUP,
    WINDOW_DAYS,
    Disparity,
    DisparityRequest,
    P,
    Proxies,
    ProxyRequest,
    ages_in_words,
    features_of,
    measure_in_words,
    widest,
)

if TYPE_CHECKING:
    from backend.compliance.assessment import Examined
    from backend.data.dictionary import Feature
    from backend.fairness.evidence import Basis, Evidence
    from backend.i18n import Text
    from backend.jobs import Job

EVIDENCE = {"proxies": "link", "outcomes": "groups", "together": "join_inner"}


def both(t: Texts, view: View, finding: Examined, place: str) -> None:
    """Draw what goes with a feature, and outcomes by its groups; what was not measured is a line, or both are."""
    on = {"proxies": finding.proxies_on, "outcomes": finding.disparities_on}
    lacking = [name for name in on if (finding.proxies if name == "proxies" else finding.disparities) is None]
    with st.container(horizontal=True):
        for name in lacking:
            _titled(t, name, _not_measured(t, view, on[name]))
    if "proxies" not in lacking:
        _titled(t, "proxies")
        proxies(t, view, finding, place)
    if "outcomes" not in lacking:
        _titled(t, "outcomes")
        outcomes(t, view, finding, place)
    together(t, view, finding.feature, place)
    if isinstance(finding, Finding):
        ages(t, finding, place)


def of_kind(
    t: Texts,
    view: View,
    finding: Examined,
    request: DisparityRequest | ProxyRequest | AgeRequest,
    place: str,
) -> None:
    """Draw what was measured of a feature so far, of the kind that is asked for."""
    if isinstance(request, ProxyRequest):
        _titled(t, "proxies")
        proxies(t, view, finding, place)
    elif isinstance(request, DisparityRequest):
        if not request.crossed:
            _titled(t, "outcomes")
            outcomes(t, view, finding, place)
        together(t, view, finding.feature, place)
    elif isinstance(finding, Finding):
        ages(t, finding, place)


def _not_measured(t: Texts, view: View, on: Basis | None) -> str:
    """That nothing was measured; if a Host has not agreed, that."""
    if on is None or not on.refused:
        return t("compliance.not_measured")
    return t("disparity.not_agreed", host=palette.name(t, view.federation, on.refused))


def _titled(t: Texts, name: str, more: str = "") -> None:
    what = t(f"compliance.{name}")
    if more:
        title = t("words.about", what=what, said=more)
    else:
        title = f"**{what}**"
    st.markdown(f":material/{EVIDENCE[name]}: {title}", help=t(f"compliance.{name}_help"))


def proxies(t: Texts, view: View, finding: Examined, place: str) -> None:
    """Draw which features go with the flagged one, the closest first, and how much the model uses each."""
    closest_features = finding.proxies
    on = finding.proxies_on
    if closest_features is None:
        st.markdown(_not_measured(t, view, on))
        return
    if not closest_features:
        st.markdown(t("compliance.proxies_none", records=f"{on.n:,}") if on else t("compliance.proxies_none_n"))
        return
    gains = {row.feature: row.gain_share for row in view.importance}
    closest = closest_features[0]
    st.markdown(
        t(
            "compliance.proxies_found",
            n=len(closest_features),
            closest=brief(t, view, closest.about.en),
            party=palette.name(t, view.federation, view.model.owner_of(closest.about.en)),
            v=interval(t, closest, number),
            records=f"{closest.n:,}",
        )
    )
    table: frame.Columns = {
        t("compliance.other_feature"): [brief(t, view, row.about.en) for row in closest_features],
        t("compliance.v"): [interval(t, row, number) for row in closest_features],
        t("compliance.records"): [f"{row.n:,}" for row in closest_features],
        t("words.gain"): [percent(gains[row.about.en]) for row in closest_features],
    }
    with st.expander(t("frame.as_table"), icon=":material/table:", key=f"proxies_{place}"):
        frame.table(table, t("compliance.proxies"))


def outcomes(t: Texts, view: View, finding: Examined, place: str) -> None:
    """Draw groups at a glance: the verdict, acceptance by group as dots, the ratio along the cut-off; all rates one press away."""
    if finding.disparities is None:
        st.markdown(_not_measured(t, view, finding.disparities_on))
        return
    _groups(t, view, finding.feature, finding.disparities, finding.disparities_on, place)


def together(t: Texts, view: View, feature: str, place: str) -> None:
    """Draw what was measured of a feature together with another one: groups of both, and which were too small."""
    for name, (rows, on) in session.service().compliance.together(view.record.id, feature).items():
        _titled(t, "together", brief(t, view, name))
        _groups(t, view, name, rows, on, f"{place}_{name}")
        small = []
        for row in rows:
            if row.measure == "selection rate" and row.value is None:
                small.append(group(t, row))
        if small:
            st.caption(f":material/visibility_off: {t('compliance.small', n=len(small), groups=t.listed(small))}")


def _groups(t: Texts, view: View, name: str, evidence: Sequence[Evidence], on: Basis | None, place: str) -> None:
    """Draw the groups of a feature, or of two together."""
    accepted = [row for row in evidence if row.measure == "selection rate"]
    compared = {(row.about, row.measure): row for row in evidence}
    reference = next((row for row in evidence if row.measure == f"selection rate, {REFERENCE_GROUP}"), None)
    furthest = widest(evidence)
    if sum(row.value is not None for row in accepted) < 2 or reference is None or furthest is None:
        st.markdown(t.joined(t("compliance.outcomes_none"), _at(t, on)))
        return
    facts = [row for row in session.service().verdicts.of(view.record.id).of("outcomes") if row.about == name]
    for fact in facts:
        verdict.line(t, fact)
    apart = t.joined(_apart(t, reference, furthest, compared), _at(t, on))
    if _line_decides(view, on):
        if not facts:
            st.markdown(apart)
        disparity.dots(t, accepted, apart, place)
    disparity.across(t, evidence, place)
    table: frame.Columns = {
        t("compliance.group"): [group(t, row) for row in accepted],
        t("compliance.accepted"): [interval(t, row, percent) for row in accepted],
        t("compliance.difference"): [_against(t, row, compared, DIFFERENCE, points) for row in accepted],
        t("compliance.over"): [_against(t, row, compared, RATIO, number) for row in accepted],
        t("compliance.records"): [records(row) for row in accepted],
    }
    rates = [row for row in evidence if row.measure.partition(", ")[0] in MEASURES]
    with st.expander(t("compliance.all_rates"), icon=":material/table:", key=f"rates_{place}"):
        st.markdown(apart)
        disparity.sentences(t, evidence)
        with st.container(key=f"cards_outcomes_{place}"):
            frame.table(table, t("compliance.outcomes"))
        st.caption(f":material/troubleshoot: {t('compliance.ratio', reference=group(t, reference))}")
        disparity.scores(t, evidence, place)
        everything = {
            t("compliance.rate"): [measure_in_words(t, row.measure) for row in rates],
            t("compliance.group"): [group(t, row) for row in rates],
            t("compliance.value"): [figure(t, row) for row in rates],
            t("compliance.records"): [records(row) for row in rates],
        }
        frame.table(everything, t("compliance.all_rates"))


def _line_decides(view: View, on: Basis | None) -> bool:
    """Return whether groups were measured at the line that was set and is in force; no other line decides."""
    policy = session.policy(view)
    return on is not None and policy.is_set and on.policy == policy.version


def figure(t: Texts, row: Evidence) -> str:
    """Return a figure of outcomes by group with its interval, in the unit that it has."""
    _, _, gap = row.measure.partition(", ")
    if gap in (P, PAIR_P) and row.value is not None:
        return disparity.chance(row.value)
    return interval(t, row, {RATIO: number, DIFFERENCE: points}.get(gap, percent))


def points(share: float) -> str:
    """Return a difference of two shares with its sign."""
    return f"{100 * share:+.1f}".replace("-", "−")


def _against(
    t: Texts,
    row: Evidence,
    compared: Mapping[tuple[Text, str], Evidence],
    what: str,
    words: Callable[[float], str],
) -> str:
    """Return a group's rate against the reference group's; a dash for that group itself and where a rate is suppressed."""
    comparison = compared.get((row.about, f"selection rate, {what}"))
    if comparison is None:
        return "–"
    return interval(t, comparison, words)


def _at(t: Texts, on: Basis | None) -> str:
    """Say at which cut-off decisions were compared, if it is stored, and when, if on an earlier day."""
    if on is None:
        return ""
    if on.cutoff is None:
        at = ""
    else:
        at = t("compliance.at_cutoff", cutoff=policies.measured_at(t, on.cutoff, on.policy))
    return t.joined(at, t("compliance.answered_before", day=on.measured) if on.measured else "")


def _apart(t: Texts, reference: Evidence, furthest: Evidence, compared: Mapping[tuple[Text, str], Evidence]) -> str:
    """Return the reference group's share of acceptance, the group that is furthest from it, and what chance alone would do."""
    share = compared[furthest.about, "selection rate"]
    by_chance = next((row.value for (_, measure), row in compared.items() if measure == f"selection rate, {P}"), None)
    p = disparity.chance(by_chance)
    return t(
        "compliance.outcomes_apart",
        reference=group(t, reference),
        reference_share=percent(reference.value or 0.0),
        reference_n=f"{reference.n:,}",
        furthest=group(t, furthest),
        share=percent(share.value or 0.0),
        n=f"{share.n:,}",
        gap=points(furthest.value or 0.0),
        gap_low=points(furthest.low or 0.0),
        gap_high=points(furthest.high or 0.0),
        p=p if p.startswith("<") else f"= {p}",
    )


def interval(t: Texts, row: Evidence, words: Callable[[float], str]) -> str:
    """Return a measured number with its interval, or that it is suppressed."""
    if row.value is None or row.low is None or row.high is None:
        return t("compliance.suppressed")
    return t("compliance.interval", value=words(row.value), low=words(row.low), high=words(row.high))


def records(row: Evidence) -> str:
    """Return how many records are behind a number that is not suppressed."""
    return "–" if row.value is None else f"{row.n:,}"


def group(t: Texts, row: Evidence) -> str:
    """Return a group in words of this language; the meaning of a code is its owner's text."""
    return markdown(t.text(row.about))


def ages(t: Texts, finding: Finding, place: str) -> None:
    """Draw whether elderly ages have a negative factor, if the rule asks; the figures one press away."""
    if not finding.check:
        return
    st.markdown(f":material/elderly: **{t('document.elderly')}**", help=t("compliance.elderly_help"))
    check = finding.ages
    refused = finding.ages_on.refused if finding.ages_on else ""
    st.markdown(markdown(ages_in_words(t, check, finding.usage.splits > 0, refused)))
    if check is None:
        return
    rows = [(t("document.ages_elderly"), check.predicted, "", "")]
    rows += [
        (
            t("document.ages_younger", place=gap.place, classes=len(check.gaps)),
            gap.predicted,
            f"{gap.worse:+.4f}".replace("-", "−"),
            f"[{gap.low:+.4f}, {gap.high:+.4f}]".replace("-", "−"),
        )
        for gap in check.gaps
    ]
    heads = []
    for head in ("ages", "mean_probability", "elderly_less", "interval_95"):
        heads.append(t(f"document.head_{head}"))
    with st.expander(t("compliance.all_ages"), icon=":material/table:", key=f"ages_{place}"):
        frame.table(dict(zip(heads, zip(*rows, strict=True), strict=True)), t("document.elderly"))


def measurable(view: View, finding: Finding | None) -> list[str]:
    """Return what can be measured of a feature: decisions only if there are two outcomes, elderly ages only if its rule asks."""
    if view.task != "binary":
        return ["proxies"]
    return ["disparity", "proxies", *(["elderly"] if finding is not None and finding.check else [])]


def request(
    t: Texts, view: View, feature: str, kinds: Sequence[str], place: str
) -> DisparityRequest | ProxyRequest | AgeRequest:
    """The form: what to measure of a feature, and the cut-off where decisions are compared."""
    kind_column, settings_column = st.columns(2, gap="large")
    with kind_column:
        kind = st.radio(
            t("compliance.measure_what"),
            kinds,
            format_func=lambda name: t(f"compliance.kind_{name}"),
            captions=[t(f"compliance.kind_{name}_help") for name in kinds],
            key=f"kind_{place}",
        )
    with settings_column:
        if kind == "proxies":
            st.caption(t("compliance.proxies_help" if view.task == "binary" else "compliance.measure_binary"))
            return ProxyRequest(view.record.id, feature)
        if kind == "elderly":
            st.caption(t("compliance.elderly_help"))
            return AgeRequest(view.record.id, feature)
        entry = named(view, feature)
        cutoff = run.cutoff(t, session.policy(view), f"measure_cutoff_{place}")
        crossed = _crossed(t, view, feature, place)
        if crossed:
            return DisparityRequest(view.record.id, feature, cutoff, crossed=crossed)
        return DisparityRequest(view.record.id, feature, cutoff, disparity.reference(t, entry and entry[1], place))


def _crossed(t: Texts, view: View, feature: str, place: str) -> str:
    """Ask for a second feature to count by, too; empty = none. Flagged ones come first."""
    flagged = {finding.feature for finding in view.compliance.findings}
    partners = []
    for partner in session.service().fairness.partners(view.record, feature):
        partners.append(partner.name)
    partners.sort(key=lambda name: name not in flagged)

    def words(name: str) -> str:
        return plain(t, view, name) if name else t("compliance.alone")

    crossed = str(
        st.selectbox(
            t("compliance.together_with"),
            ["", *partners],
            format_func=words,
            help=t("compliance.together_help"),
            key=f"together_{place}",
        )
    )
    host = session.service().fairness.answers_once(view.record, feature, crossed)
    if host:
        name = palette.name(t, view.federation, host)
        st.caption(f":material/event_busy: {t('compliance.together_once', host=name, days=WINDOW_DAYS)}")
    return crossed


def measured(t: Texts, view: View, job: Job[Any]) -> None:
    """Draw what the last measuring came to, or why it brought nothing."""
    result = job.result
    if isinstance(result, Disparity):
        words = t(
            "compliance.measured_disparity",
            feature=brief(t, view, result.feature),
            cutoff=policies.measured_at(t, result.cutoff, result.policy),
            records=f"{result.n:,}",
        )
    elif isinstance(result, AgeCheck):
        words = markdown(ages_in_words(t, result, is_split=True))
    elif isinstance(result, Proxies):
        words = t(
            "compliance.measured_proxies",
            n=len(result.features),
            feature=brief(t, view, result.attribute),
            records=f"{result.n:,}",
            found=sum(row.found for row in result.features),
        )
    else:
        run.ended(t, job)
        return
    st.caption(f":material/check_circle: {words}")
    if isinstance(result, Proxies) and result.not_examined:
        not_examined = t.listed([brief(t, view, name) for _, name in result.not_examined])
        st.caption(t("compliance.not_examined", features=not_examined))


def named(view: View, name: str) -> tuple[str, Feature] | None:
    """Party and entry of a feature, which training need not have been given; None if no party has it any longer."""
    if view.model.knows(name):
        return view.model.owner_of(name), view.model.feature(name)
    return next(((party, f) for party, f in view.federation.features() if f.name == name), None)


def plain(t: Texts, view: View, name: str) -> str:
    """Return a feature's meaning in short, of two together both; its name if no party has it any longer."""
    names = features_of(name, [name] if named(view, name) else ())
    if len(names) > 1:
        return PAIR.join(plain(t, view, part) for part in names)
    entry = named(view, name)
    return t.brief(entry[1]) if entry else name


def brief(t: Texts, view: View, name: str) -> str:
    """Return the same as Markdown."""
    return markdown(plain(t, view, name))
