"""The feature dictionary: one table to search, one card to look closer, and what SecureBoost would leave of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from app import reading
from app.panels import frame, palette
from app.reading import View
from app.session import page
from app.texts import Texts, markdown, percent
from backend.service import Feature, Finding

ONE_LINE = 46  # letters of a meaning in one line of the table at 1280 pixels


@dataclass(frozen=True)
class Filters:
    """What the table is narrowed to."""

    search: str
    parties: tuple[str, ...]
    use: str
    flagged: bool
    secureboost: bool


def filters(t: Texts, view: View) -> Filters:
    """The row of filters above the table."""
    parties = (view.model.guest, *view.model.hosts)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            t("features.search"), key="features_search", type="search", live=True, persist_state="session", width=260
        )
        chosen = st.pills(
            t("words.party"),
            parties,
            selection_mode="multi",
            key="features_parties",
            format_func=lambda party: palette.name(t, view.federation, party),
            persist_state="session",
        )
        use = st.segmented_control(
            t("features.use"),
            ("all", "used", "unused"),
            default="all",
            required=True,
            key="features_use",
            format_func=lambda key: t(f"features.use_{key}"),
            persist_state="session",
        )
    with st.container(horizontal=True):
        flagged = st.toggle(t("features.only_flagged"), key="features_flagged", persist_state="session")
        secureboost = st.toggle(
            t("features.secureboost"),
            key="features_secureboost",
            help=t("features.secureboost_help"),
            persist_state="session",
        )
    return Filters(search.strip().lower(), tuple(chosen), str(use), flagged, secureboost)


def matching(t: Texts, view: View, chosen: Filters) -> list[tuple[str, Feature]]:
    """The features that pass the filters, most important first."""
    flags = reading.flags(view.compliance)
    hidden = reading.aliases(view.model) if chosen.secureboost else {}
    splits = {row.feature: row.splits for row in view.importance}
    entries = {feature.name: (party, feature) for party, feature in view.model.dictionary}
    found = []
    for row in view.importance:
        party, feature = entries[row.feature]
        shown = hidden.get(feature.name) or " ".join((feature.name, feature.meaning, feature.meaning_zh))
        if (
            chosen.search in shown.lower()
            and (not chosen.parties or party in chosen.parties)
            and (chosen.use == "all" or (chosen.use == "used") == bool(splits[feature.name]))
            and (not chosen.flagged or (feature.name in flags and feature.name not in hidden))
        ):
            found.append((party, feature))
    return found


def table(
    t: Texts, view: View, rows: Sequence[tuple[str, Feature]], secureboost: bool, on_select: Callable[[], None]
) -> None:
    """The dictionary as a table: meaning first, code name after it; a chosen row opens its card."""
    flags = reading.flags(view.compliance)
    hidden = reading.aliases(view.model) if secureboost else {}
    importance = {row.feature: row for row in view.importance}
    unknown = t("features.unknown")

    def shown(feature: Feature, text: str) -> str:
        return unknown if feature.name in hidden else text

    data = pd.DataFrame(
        {
            "meaning": [hidden.get(f.name, t.meaning(f)) for _, f in rows],
            "share": [100 * importance[f.name].gain_share for _, f in rows],
            "party": [palette.plain(t, view.federation, party) for party, _ in rows],
            "flags": [shown(f, _flagged(t, flags.get(f.name, ()))) for _, f in rows],
            "code": [shown(f, f.name) for _, f in rows],
        }
    )
    tall = frame.row_height(data["meaning"], ONE_LINE)
    st.dataframe(
        data,
        hide_index=True,
        key="features_table",
        on_select=on_select,
        selection_mode="single-row",
        row_height=tall,
        height=min(38 + tall * len(data), 640),
        alt=t("features.table"),
        placeholder="–",
        column_config={
            "meaning": st.column_config.TextColumn(t("features.meaning"), width=300),
            "share": st.column_config.ProgressColumn(
                t("features.share"),
                width=95,
                min_value=0,
                max_value=_top(view),
                format="%.1f %%",
                help=t("glossary.gain"),
            ),
            "party": st.column_config.TextColumn(t("words.party"), width=135),
            "flags": st.column_config.TextColumn(t("features.flags"), width=100, help=t("glossary.flag")),
            "code": st.column_config.TextColumn(t("features.code"), width=150),
        },
    )


def _flagged(t: Texts, findings: Sequence[Finding]) -> str:
    """The worst flag, and how many more there are."""
    if not findings:
        return ""
    more = f" +{len(findings) - 1}" if len(findings) > 1 else ""
    return f"⚑ {t(f'compliance.{findings[0].status}')}{more}"


def _top(view: View) -> float:
    return max([100 * row.gain_share for row in view.importance] + [1e-9])


def summary(t: Texts, view: View, shown: int) -> str:
    """How much of the dictionary is on the table, and what the model makes of it."""
    used = reading.used(view.importance)
    top = t.listed([markdown(t.brief(view.model.feature(row.feature))) for row in used[:2]])
    share = percent(sum(row.gain_share for row in used[:2]))
    return t("features.summary", shown=shown, whole=len(view.importance), used=len(used), top=top, share=share)


def picker(t: Texts, view: View, names: Sequence[str], secureboost: bool, key: str) -> None:
    """The feature to look at closer."""
    hidden = reading.aliases(view.model) if secureboost else {}
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
    """What hiding the Hosts' meanings would cost, counted on this model."""
    hidden = reading.aliases(view.model)
    flags = reading.flags(view.compliance)
    gone = [f for f in flags if f in hidden]
    share = sum(row.gain_share for row in view.importance if row.feature in hidden)
    st.info(
        t(
            "features.lost",
            hidden=len(hidden),
            whole=len(view.model.dictionary),
            share=percent(share),
            gone=len(gone),
            flagged=len(flags),
        ),
        icon=":material/visibility_off:",
        title=t("features.lost_title"),
    )


def card(t: Texts, view: View, name: str) -> None:
    """Everything disclosed about one feature, what the model makes of it, and where."""
    party = view.model.owner_of(name)
    feature = view.model.feature(name)
    row = next(r for r in view.importance if r.feature == name)
    learned = next((d for d in view.directions if d.feature == name), None)
    with st.container(border=True):
        st.markdown(f"#### {markdown(t.meaning(feature))}", anchors=False)
        other = feature.meaning if t.language == "zh" else feature.meaning_zh
        st.caption(f"`{feature.name}`" + (f" · {markdown(other)}" if other and other != t.meaning(feature) else ""))
        facts = {
            t("features.held_by"): palette.name(t, view.federation, party),
            t("features.unit"): markdown(feature.unit) or t(f"features.{feature.kind.value}"),
            t("features.expected"): frame.direction(t, view.task, feature.expected_direction.value),
            t("features.learned"): frame.direction(t, view.task, learned.learned if learned else "unused"),
            t("features.usage"): t(
                "features.usage_is", n=row.splits, splits=row.splits, trees=row.trees, share=percent(row.gain_share)
            ),
        }
        if feature.categories:
            listed = [f"{markdown(code)} = {markdown(text)}" for code, text in feature.categories.items()]
            facts[t("features.codes")] = "; ".join(listed)
        st.table(facts, border="horizontal", alt=t("features.card"))
        if learned is not None and learned.learned in ("hidden", "classes"):
            st.caption(f":material/info: {t(f'direction.{learned.learned}_help')}")
        if learned is not None and learned.contradicts:
            st.markdown(f":red[:material/warning: {t('importance.contradicts')}]")
        for finding in reading.flags(view.compliance).get(name, ()):
            words = t("compliance.flagged_as", status=t(f"compliance.{finding.status}"), rule=_rule(t, finding))
            st.markdown(f":red[:material/flag: {words}]")
        places = reading.where(view.model, name)
        with st.container(horizontal=True):
            for tree, _ in list(dict.fromkeys((tree, 0) for tree, _ in places))[:4]:
                st.page_link(
                    page("structure"),
                    label=t("features.see_tree", tree=tree + 1),
                    icon=":material/account_tree:",
                    query_params={"model": view.record.id, "tree": str(tree + 1)},
                )


def _rule(t: Texts, finding: Finding) -> str:
    return markdown(t.either(finding.title, finding.title_zh))
