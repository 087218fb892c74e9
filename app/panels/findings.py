"""Flagged features, worst first, each a line that opens into its card: laws, evidence and work; narrowed by filters and links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import session, view_models
from app.panels import casework, controls, evidence, frame, links, palette, reviews
from app.panels.casework import Casework
from app.session import address
from app.texts import Texts, code, markdown, percent
from app.view_models import View
from backend.i18n import brief
from backend.services.compliance import wording

if TYPE_CHECKING:
    from backend.compliance.assessment import Law
    from backend.services.compliance import Finding, LawDate, Question
    from backend.store.reviews import Review

STATUS_ICONS = {"prohibited": "block", "conditional": "rule", "indicator": "troubleshoot", "informational": "info"}
LINKED_TREES = 3  # linked from a card
FEATURES_A_PAGE = 8  # features on a page, each a line until it is opened
DECISIONS = ("open", "confirmed", "overridden")


@dataclass(frozen=True)
class FindingFilters:
    """What the cards are narrowed to; an empty tuple narrows nothing."""

    parties: tuple[str, ...]
    statuses: tuple[str, ...]
    packs: tuple[str, ...]
    decisions: tuple[str, ...]
    only_used: bool


def filters(t: Texts, view: View) -> FindingFilters:
    """The filters behind one button, which says how many are set."""
    findings = view.compliance.findings
    parties_flagged = []
    for p in (view.model.guest, *view.model.hosts):
        if any(f.party == p for f in findings):
            parties_flagged.append(p)
    with st.popover(t("compliance.filter"), icon=":material/filter_list:", key="findings_filter"):
        parties = narrow(t, "findings", "party", parties_flagged, partial(palette.plain, t, view.federation), 320)
        statuses, packs = by_law(t, view, "findings", 320)
        decisions = narrow(t, "findings", "decision", DECISIONS, lambda word: t(f"report.{word}"), 320)
        only_used = st.toggle(t("compliance.only_used"), key="findings_used", persist_state="session")
    return FindingFilters(parties, statuses, packs, decisions, only_used)


def by_law(t: Texts, view: View, page: str, width: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the filters by status and by rule pack."""
    findings = view.compliance.findings
    packs = {finding.pack.en: t.text(finding.pack) for finding in findings}
    statuses = [status for status in view_models.SEVERITY if any(f.status == status for f in findings)]
    return (
        narrow(t, page, "status", statuses, lambda status: t(f"compliance.{status}"), width),
        narrow(t, page, "pack", list(packs), packs.__getitem__, width),
    )


def narrow(
    t: Texts, page: str, name: str, options: Sequence[str], words: Callable[[str], str], width: int
) -> tuple[str, ...]:
    """Return one filter of findings."""
    settings = {"persist_state": "session", "width": width}
    return controls.narrow(t, t(f"compliance.by_{name}"), options, f"{page}_{name}", words, **settings)


def matching(
    findings: Sequence[Finding], filters: FindingFilters, standing: Mapping[tuple[str, str], Review]
) -> list[Finding]:
    """Return the findings that pass the filters, in their order."""

    def passes(finding: Finding) -> bool:
        review = standing.get((finding.rule_id, finding.feature))
        conditions = (
            (filters.parties, finding.party),
            (filters.statuses, finding.status),
            (filters.packs, finding.pack.en),
            (filters.decisions, review.verdict if review else "open"),
        )
        return all(controls.passes(filter_values, value) for filter_values, value in conditions) and (
            finding.usage.splits > 0 or not filters.only_used
        )

    return [finding for finding in findings if passes(finding)]


def listed(t: Texts, view: View, work: Casework) -> None:
    """Draw all findings that pass the filters, each of which opens; if there is none, what that does and does not say."""
    findings = view.compliance.findings
    if not findings:
        st.info(t("compliance.none", assessed=view.compliance.assessed), icon=":material/search_off:")
        return
    sentence_column, filter_column = st.columns([8, 1], vertical_alignment="center")
    with filter_column:
        set_filters = filters(t, view)
    passing = matching(findings, set_filters, work.standing)
    sentence_column.markdown(sentence(t, view, len(passing), work.standing))
    if not passing:
        st.info(t("compliance.none_pass"), icon=":material/filter_alt_off:")
    by_feature: dict[str, list[Finding]] = {}
    for finding in passing:
        by_feature.setdefault(finding.feature, []).append(finding)
    for index, of_feature in frame.paged(list(by_feature.values()), "findings_page", FEATURES_A_PAGE):
        card(t, view, of_feature, work, first=index == 0 and frame.BOXES_OPEN)


def only(t: Texts, view: View, finding: Finding, work: Casework, show_all: Callable[[], None]) -> None:
    """Draw the one finding that a link leads to, and the way to all."""
    label = t("compliance.show_all", n=len(view.compliance.findings))
    st.button(label, icon=":material/list:", key="findings_all", on_click=show_all)
    card(t, view, [finding], work, first=True)


def sentence(t: Texts, view: View, n_shown: int, standing: Mapping[tuple[str, str], Review]) -> str:
    """Return how many there are, the worst of them, and how many wait for a decision."""
    findings = view.compliance.findings
    worst = findings[0]
    words = {"status": t(f"compliance.{worst.status}").lower(), "share": percent(worst.usage.gain_share)}
    words["features"] = f"{len({finding.feature for finding in findings}):,}"
    waiting = sum((f.rule_id, f.feature) not in standing for f in findings)
    parts = [t("compliance.sentence", n=len(findings), worst=evidence.brief(t, view, worst.feature), **words)]
    parts.append(t("compliance.waiting", n=waiting))
    if n_shown < len(findings):
        parts.append(t("compliance.narrowed", shown=n_shown))
    return t.joined(*parts)


def card(t: Texts, view: View, of_feature: Sequence[Finding], work: Casework, *, first: bool) -> None:
    """Draw one feature's findings: a line that says what they are, and once opened the work on one law's at a time."""
    feature = of_feature[0].feature
    # a line that changes is a new one to Streamlit, so that a decision would close its card
    opened = first or work.attempted_at in map(view_models.key_of, of_feature)
    box = st.expander(_headline(t, of_feature, work), expanded=opened, key=f"finding_{feature}", on_change="rerun")
    if not box.open:  # the content of a closed box is not sent
        return
    with box:
        if len(of_feature) > 1:
            finding = _of_law(t, of_feature, work)
        else:
            finding = of_feature[0]
        with st.container(horizontal=True):
            holder = t("compliance.held_by", party=palette.name(t, view.federation, finding.party))
            meaning = markdown(t.text(finding.meaning))
            st.markdown(f"### {meaning} :small[:gray[{holder} ·] {code(feature)}]", anchors=False, width="stretch")
            if finding.quote:  # long, and the same for every feature
                key = f"quote_{view_models.key_of(finding)}"
                with st.popover(t("law.quote"), icon=":material/format_quote:", type="tertiary", key=key):
                    st.markdown(quoted(t, finding))
            link(t, view, finding)
        splits = view_models.where(view.model, feature)
        contents = partial(_evidence, t, view, finding), partial(to_splits, t, view, feature, splits)
        casework.Steps(t, view, finding, work, *contents).draw()


def _of_law(t: Texts, of_feature: Sequence[Finding], work: Casework) -> Finding:
    """The finding of the law that was chosen, of several that flag one feature."""
    by_key = {view_models.key_of(finding): finding for finding in of_feature}

    def words(key: str) -> str:
        finding = by_key[key]
        title = markdown(t.text(finding.title))
        return f":material/{reviews.DECISION_ICONS[_verdict(finding, work)]}: {markdown(t.jurisdiction(finding.jurisdiction))} · {title}"

    key = session.remember(f"law_{of_feature[0].feature}", list(by_key))
    law = st.pills(
        t("compliance.law"), list(by_key), key=key, format_func=words, required=True, label_visibility="collapsed"
    )
    return by_key.get(law or "", of_feature[0])


def _verdict(finding: Finding, work: Casework) -> str:
    review = work.standing.get((finding.rule_id, finding.feature))
    return review.verdict if review else "open"


def _headline(t: Texts, of_feature: Sequence[Finding], work: Casework) -> str:
    worst = of_feature[0]
    if worst.status in ("prohibited", "conditional"):
        colour = "red"
    else:
        colour = "gray"
    badge = f":{colour}-badge[:material/{STATUS_ICONS[worst.status]}: {t(f'compliance.{worst.status}')}]"
    meaning = markdown(brief(t.text(worst.meaning)))
    if worst.usage.splits:
        use = "compliance.share"
    else:
        use = "compliance.unused"
    parts = [f"{badge} **{meaning}**", t(use, share=percent(worst.usage.gain_share))]
    if len(of_feature) > 1:
        parts.append(t("compliance.laws", n=len(of_feature)))
    verdicts = [_verdict(finding, work) for finding in of_feature]
    decided = sum(verdict != "open" for verdict in verdicts)
    alike = len(set(verdicts)) == 1
    if alike:
        text = t(f"report.{verdicts[0]}")
    else:
        text = t("compliance.partly", n=decided, whole=len(of_feature))
    icon = reviews.DECISION_ICONS[verdicts[0] if alike else "open"]
    return f"{' · '.join(parts)} :gray-badge[:material/{icon}: {text}]"


def _evidence(t: Texts, view: View, finding: Finding) -> None:
    """Draw what the rule says and why it matches, what was measured, and where the model asks about the feature."""
    law, reasons = st.columns(2, gap="medium")
    with law:
        title = markdown(t.text(finding.title))
        explanation = markdown(t.text(finding.explanation))
        st.markdown(f":material/gavel: **{title}**\n\n{explanation}", help=t(f"compliance.{finding.status}_help"))
        st.caption(where(t, finding) if finding.quote else citation(t, finding))
    with reasons:
        answers = []
        for q in view.compliance.questions:
            if q.feature == finding.feature and q.answer:
                answers.append(q.answer)
        st.markdown(
            _why(t, finding, [answer for answer in answers if answer.verdict == "confirmed"])
        )  # one element: many small ones would make the page slow
    with st.container(gap="xsmall"):
        evidence.both(t, view, finding, view_models.key_of(finding))


def _why(t: Texts, finding: Finding, yes: Sequence[Review]) -> str:
    """Return what speaks for the finding, a person's answers to questions included, and what to do about it."""
    usage = finding.usage
    place = t(f"compliance.in_{finding.matched_in}")
    parts = [f":material/search: **{t('compliance.why')}**"]
    matched = t("compliance.matched", matched=markdown(finding.matched), place=place)
    shares = {"gain": percent(usage.gain_share), "cover": percent(usage.cover_share)}
    use = t("compliance.evidence", n=usage.splits, splits=usage.splits, trees=usage.trees, **shares)
    answers = (reviews.answered(t, answer) for answer in yes)
    parts.append(t.joined(matched, *answers, use if usage.splits else t("compliance.no_use")))
    parts.append(f":material/build: **{t('compliance.what_to_do')}**")
    parts.append(markdown(t.text(finding.remedy)))
    return "\n\n".join(parts)


def link(t: Texts, view: View, finding: Finding) -> None:
    """Draw the address of a finding, to be copied."""
    key = f"link_{view_models.key_of(finding)}"
    with st.popover(t("compliance.link"), icon=":material/link:", type="tertiary", key=key):
        st.markdown(t("compliance.link_why"))
        st.code(
            address("compliance", model=view.record.id, finding=view_models.key_of(finding)),
            language=None,
            wrap_lines=True,
        )


def to_splits(t: Texts, view: View, feature: str, splits: Sequence[tuple[int, int]]) -> None:
    """To the feature, and to the splits on it that gain most, each marked in its tree; drawn into the row around them."""
    links.to_feature(t, view.record.id, feature)
    for tree, node in splits[:LINKED_TREES]:
        links.to_split(t, view.record.id, tree, node)


def law_badges(t: Texts, law: Law) -> None:
    """Draw what a rule is, and whether it is in force."""
    with st.container(horizontal=True, gap="small"):
        st.badge(t(f"compliance.{law.status}"), icon=f":material/{STATUS_ICONS[law.status]}:", color="gray")
        st.badge(force(t, law), icon=":material/event:", color="gray")


def force(t: Texts, law: Law) -> str:
    """Since when, from when or until when a rule is in force."""
    says, day = {
        "in_force": ("since", law.effective_from),
        "not_yet": ("from", law.effective_from),
        "ended": ("until", law.effective_to),
    }[law.force]
    return t(f"compliance.{says}", day=day)


def citation(t: Texts, law: Law) -> str:
    """Return where a rule is written, and its wording or that this is a paraphrase."""
    return f"{where(t, law)}  \n{quoted(t, law)}"


def where(t: Texts, law: Law) -> str:
    """Return where a rule is written, and as of when."""
    return t(
        "compliance.citation",
        citation=cited(t, law),
        jurisdiction=markdown(t.jurisdiction(law.jurisdiction)),
        as_of=law.as_of,
    )


def cited(t: Texts, law: Law | LawDate | Question) -> str:
    """Return a citation in the reader's language."""
    return markdown(t.text(law.citation))


def quoted(t: Texts, law: Law) -> str:
    """Return a rule's wording with its source, or that this is a paraphrase."""
    source = markdown(t.text(law.quote_from))
    return wording(t, markdown(law.quote), source, law.as_of, law.checked)
