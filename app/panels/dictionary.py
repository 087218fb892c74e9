"""The feature dictionary: one table to search, one card to look closer, and what SecureBoost would leave of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from app import view_models
from app.panels import controls, findings, frame, palette
from app.texts import Texts, markdown, percent
from app.view_models import View

if TYPE_CHECKING:
    from backend.data.dictionary import Feature
    from backend.services.compliance import Finding

MEANING_LETTERS = 48  # letters of a meaning in one line of the table on a phone

FILTER_KEYS = tuple(f"features_{name}" for name in ("parties", "use", "flagged", "status", "pack", "secureboost"))


@dataclass(frozen=True)
class DictionaryFilters:
    """What the table is narrowed to; `typed` is the search as it was written."""

    typed: str
    parties: tuple[str, ...]
    use: str
    statuses: tuple[str, ...]
    packs: tuple[str, ...]
    flagged: bool
    secureboost: bool

    @property
    def search(self) -> str:
        """As it is compared."""
        return self.typed.strip().lower()


def filters(t: Texts, view: View) -> DictionaryFilters:
    """The row of filters above the table, most of them behind one button: the table is what the page is about."""
    parties = (view.model.guest, *view.model.hosts)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            t("features.search"),
            key="features_search",
            type="search",
            placeholder=t("search.open"),
            live=True,
            persist_state="session",
            width=260,
        )
        party_names = st.pills(
            t("words.party"),
            parties,
            selection_mode="multi",
            key="features_parties",
            format_func=lambda party: palette.name(t, view.federation, party),
            persist_state="session",
        )
        with st.popover(t("compliance.filter"), icon=":material/filter_list:", key="features_filter"):
            use = controls.choice(
                t("features.use"), ("all", "used", "unused"), "features_use", lambda key: t(f"features.use_{key}")
            )
            statuses, packs = findings.by_law(t, view, "features", 260) if view.compliance.findings else ((), ())
            flagged = st.toggle(t("features.only_flagged"), key="features_flagged", persist_state="session")
        secureboost = st.toggle(
            t("features.secureboost"),
            key="features_secureboost",
            help=t("features.secureboost_help"),
            persist_state="session",
        )
    return DictionaryFilters(search, tuple(party_names), use, statuses, packs, flagged, secureboost)


def matching(view: View, filters: DictionaryFilters) -> list[tuple[str, Feature]]:
    """Return the features that pass the filters, most important first."""
    flags = view_models.flags(view.compliance)
    if filters.secureboost:
        hidden = view_models.aliases(view.model)
    else:
        hidden = {}
    splits = {row.feature: row.splits for row in view.importance}
    entries = {feature.name: (party, feature) for party, feature in view.model.dictionary}
    rows = []
    for row in view.importance:
        party, feature = entries[row.feature]
        searchable = hidden.get(feature.name) or " ".join((feature.name, feature.meaning.en, feature.meaning.zh))
        if (
            filters.search in searchable.lower()
            and controls.passes(filters.parties, party)
            and (filters.use == "all" or (filters.use == "used") == bool(splits[feature.name]))
            and (
                not _asked(filters)
                or (feature.name not in hidden and _flagged_so(flags.get(feature.name, ()), filters))
            )
        ):
            rows.append((party, feature))
    return rows


def _asked(filters: DictionaryFilters) -> bool:
    return bool(filters.flagged or filters.statuses or filters.packs)


def _flagged_so(findings: Sequence[Finding], filters: DictionaryFilters) -> bool:
    """Return whether one of a feature's findings has a status and a rule pack that are looked for."""
    return any(
        controls.passes(filters.statuses, f.status) and controls.passes(filters.packs, f.pack.en) for f in findings
    )


def table(
    t: Texts, view: View, rows: Sequence[tuple[str, Feature]], secureboost: bool, on_select: Callable[[], None]
) -> None:
    """Draw the dictionary as a table: meaning first, code name after it; a chosen row opens its card."""
    flags = view_models.flags(view.compliance)
    if secureboost:
        hidden = view_models.aliases(view.model)
    else:
        hidden = {}
    importance = {row.feature: row for row in view.importance}
    unknown = t("features.unknown")

    def shown(feature: Feature, text: str) -> str:
        return unknown if feature.name in hidden else text

    # With a flag: a phone shows the gain, the party's mark and this column.
    meanings = []
    for _, feature in rows:
        if flags.get(feature.name) and feature.name not in hidden:
            flag = "⚑ "
        else:
            flag = ""
        meanings.append(f"{flag}{hidden.get(feature.name, t.meaning(feature))}")
    marks = {party: palette.mark(view.federation, party) for party, _ in view.model.dictionary}
    glyphs = {mark.glyph: mark.colour for mark in marks.values()}
    parties = [t.party(view.federation, party) for party, _ in rows]
    questions = view_models.asked(view.compliance)
    flagged = [shown(f, _flagged(t, flags.get(f.name, ()), bool(questions.get(f.name)))) for _, f in rows]
    text = st.column_config.TextColumn
    bar = st.column_config.ProgressColumn
    gains = bar(
        t("features.share"), width=85, min_value=0, max_value=_top(view), format="%.1f %%", help=t("glossary.gain")
    )
    tall = frame.row_height(meanings, MEANING_LETTERS)
    frame.dressed(
        {
            "share": ([100 * importance[f.name].gain_share for _, f in rows], gains),
            "mark": (
                [[marks[party].glyph] for party, _ in rows],
                st.column_config.MultiselectColumn("", width=45, options=[*glyphs], color=[*glyphs.values()]),
            ),
            "meaning": (meanings, text(t("features.meaning"), width=320)),
            "party": (parties, text(t("words.party"), width=115)),
            "flags": (flagged, text(t("features.flags"), width=100, help=t("glossary.flag"))),
            "code": ([shown(f, f.name) for _, f in rows], text(t("features.code"), width=125)),
        },
        "features_table",
        t("features.table"),
        on_select=on_select,
        selection_mode="single-row",
        row_height=tall,
        height=min(38 + tall * len(rows), 640),
    )


def _flagged(t: Texts, findings: Sequence[Finding], has_question: bool) -> str:
    """Return the worst flag, and how many more there are; without one, whether something is asked."""
    if not findings:
        return f"? {t('questions.open')}" if has_question else ""
    more = f" +{len(findings) - 1}" if len(findings) > 1 else ""
    return f"⚑ {t(f'compliance.{findings[0].status}')}{more}"


def _top(view: View) -> float:
    return max([100 * row.gain_share for row in view.importance] + [1e-9])


def summary(t: Texts, view: View, n_shown: int) -> str:
    """Return how much of the dictionary is on the table, and what the model makes of it."""
    rows_in_use = view_models.used(view.importance)
    top = t.listed([markdown(t.brief(view.model.feature(row.feature))) for row in rows_in_use[:2]])
    share = percent(sum(row.gain_share for row in rows_in_use[:2]))
    return t("features.summary", shown=n_shown, whole=len(view.importance), used=len(rows_in_use), top=top, share=share)


def picker(t: Texts, view: View, names: Sequence[str], secureboost: bool, key: str) -> None:
    """Draw the feature to look at closer."""
    if secureboost:
        hidden = view_models.aliases(view.model)
    else:
        hidden = {}
    st.selectbox(
        t("features.pick"),
        names,
        key=key,
        format_func=lambda name: (
            f"{palette.mark(view.federation, view.model.owner_of(name)).glyph} "
            f"{hidden.get(name) or t.meaning(view.model.feature(name))}"
        ),
    )


def lost(t: Texts, view: View) -> None:
    """Draw what hiding the Hosts' meanings would cost, counted on this model."""
    hidden = view_models.aliases(view.model)
    flags = view_models.flags(view.compliance)
    gone = [f for f in flags if f in hidden]
    share = sum(row.gain_share for row in view.importance if row.feature in hidden)
    words = t("features.lost", hidden=len(hidden), whole=len(view.model.dictionary), share=percent(share))
    st.info(
        t.joined(words, t("features.lost_flags", n=len(gone), flagged=len(flags)) if gone else ""),
        icon=":material/visibility_off:",
        title=t("features.lost_title"),
    )
