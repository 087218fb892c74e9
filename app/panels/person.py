"""Whom to score: picked from the Guest's own records, with values that are assumed, typed in, or uploaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pandas as pd
import streamlit as st

from app.panels import controls, palette
from app.panels import upload as uploads
from app.texts import Texts, markdown, number
from app.view_models import View
from backend.results import OUTSIDE, PARTS
from backend.services.job_registry import Upload
from backend.services.samples import SAMPLES

if TYPE_CHECKING:
    from backend.data.dictionary import Feature
    from backend.data.table import SampleSheet

INPUT_WAYS = ("pick", "type")
MENU_PEOPLE = 100  # people in a menu, each of whom a browser draws though the menu is closed
FACTS = 16  # values of a person on a page: hundreds at once would be slow to draw
EVERYONE = ""


def way(t: Texts) -> str:
    """Return which of the two ways one person is given."""
    return controls.choice(t("score.way"), INPUT_WAYS, "score_way", lambda key: t(f"score.way_{key}"))


def options(people: pd.DataFrame, current: str | None) -> list[str]:
    """People for a menu: the one chosen before, then some of those held out for testing."""
    ids = []
    for sample in people.index[people["part"] == parts_of(people)[0]][:MENU_PEOPLE]:
        ids.append(str(sample))
    if current is None or current not in people.index:
        return ids
    return [current, *(i for i in ids if i != current)]


def parts_of(people: pd.DataFrame) -> list[str]:
    """Return the parts that the records have, in the order in which doors offer them."""
    parts = set(people["part"])
    return [part for part in (*PARTS, OUTSIDE) if part in parts] or [PARTS[0]]


def known(t: Texts, ids: Sequence[str], key: str) -> str:
    """A menu of people the Guest knows."""
    return str(st.selectbox(t("score.person"), ids, key=key, width=260))


def pick(
    t: Texts,
    view: View,
    people: pd.DataFrame,
    current: str | None,
    remember: Callable[[str, Sequence[str]], str],
    draw: Callable[[str, Sequence[str]], None],
) -> str | None:
    """Choose one of the Guest's records or draw one at random, among all or those narrowed to; `current` is among them if it can be."""
    menu = st.container(horizontal=True, vertical_alignment="bottom", width="content")
    with st.popover(t("score.filter"), icon=":material/filter_list:", key="score_narrow"):
        records = _chosen(t, view, people)
    ids = [str(sample) for sample in records.index]
    if not ids:
        st.info(t("score.nobody"), icon=":material/person_off:")
        return None
    with menu:
        listed = ids[:MENU_PEOPLE]
        if current in ids and current not in listed:
            listed = [current, *listed[:-1]]
        picked = st.selectbox(t("score.person"), listed, key=remember("sample", listed), width=150)
        st.button(
            t("score.random"), icon=":material/shuffle:", on_click=draw, args=("sample", listed), key="random_person"
        )
    return str(picked)


def _chosen(t: Texts, view: View, people: pd.DataFrame) -> pd.DataFrame:
    """Records of one part, narrowed by one feature."""
    features = {}
    for party, feature in view.model.dictionary:
        if party == view.model.guest:
            features[feature.name] = feature
    part = controls.choice(
        t("score.part"),
        parts_of(people),
        "score_part",
        lambda name: t("score.part_outside" if name == OUTSIDE else f"score.part_{name}"),
        help=t("glossary.parts"),
    )
    records = people[people["part"] == part]
    by = st.selectbox(
        t("score.filter"),
        (EVERYONE, *features),
        key="score_filter",
        format_func=lambda name: t.meaning(features[name]) if name else t("score.everyone"),
        persist_state="session",
    )
    if by:
        records = _narrowed(t, features[by], records)
    st.caption(t("score.matching", n=len(records), people=f"{len(records):,}", listed=MENU_PEOPLE))
    return records


def _narrowed(t: Texts, feature: Feature, records: pd.DataFrame) -> pd.DataFrame:
    column = records[feature.name]
    if feature.kind.value == "categorical":
        codes = sorted(column.dropna().unique())
        codes_chosen = st.multiselect(
            t("score.values"),
            codes,
            key=f"score_filter_{feature.name}",
            format_func=lambda c: t.codes(feature).get(c, c),
        )
        if codes_chosen:
            return records[column.isin(codes_chosen)]
        return records
    low = float(np.nanmin(column))
    high = float(np.nanmax(column))
    if low >= high:
        return records
    title = t.noted(t("score.range"), t.unit(feature))
    first, last = st.slider(title, low, high, (low, high), key=f"score_filter_{feature.name}")
    if (first, last) != (low, high):
        return records[column.between(first, last)]
    return records


def row(people: pd.DataFrame, sample: str) -> pd.Series[Any]:
    """Return the Guest's values of one person."""
    return cast("pd.Series[Any]", people.loc[sample])


def card(t: Texts, view: View, row: pd.Series[Any]) -> None:
    """Draw what the Guest holds about the chosen person, and what it does not."""
    guest_features = [feature for party, feature in view.model.dictionary if party == view.model.guest]
    table = st.container()
    pages = -(-len(guest_features) // FACTS)
    if pages > 1:
        at = min(st.pagination(pages, key="person_page"), pages)
    else:
        at = 1
    facts = {
        markdown(t.meaning(feature)): f"**{markdown(shown(t, feature, row.get(feature.name)))}**"
        for feature in guest_features[(at - 1) * FACTS : at * FACTS]
    }
    for host in view.model.hosts:
        count = sum(party == host for party, _ in view.model.dictionary)
        facts[palette.name(t, view.federation, host)] = f":gray[:material/lock: {t('score.kept', n=count)}]"
    table.table(facts, border="horizontal", alt=t("score.card"))


def shown(t: Texts, feature: Feature, value: Any) -> str:
    """Return a value with its unit, or its category in words."""
    if pd.isna(value):
        return t("score.missing")
    if feature.kind.value == "categorical":
        return t.codes(feature).get(str(value), str(value))
    if feature.kind.value == "boolean":
        return t("structure.yes" if float(value) else "structure.no")
    if float(value).is_integer():
        text = f"{value:,.0f}".replace("-", "−")
    else:
        text = number(float(value))
    return text + t.after(feature)


def typed(
    t: Texts, view: View, start: pd.Series[Any] | None, empty: Callable[[Sequence[str]], None]
) -> tuple[str, dict[str, str | float | None]]:
    """A form with one field a Guest feature; empty fields count as missing.

    Parameters
    ----------
    start : Series, optional
        Whose values the form begins with; its name is said.
    empty : callable
        Empties the fields of these keys.
    """
    guest_features = [feature for party, feature in view.model.dictionary if party == view.model.guest]
    st.caption(t("score.type_hint"))
    if start is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f":material/content_copy: {t('score.type_from', id=markdown(str(start.name)))}", width="content"
            )
            st.button(
                t("score.type_empty"),
                icon=":material/backspace:",
                on_click=empty,
                args=([f"typed_{feature.name}" for feature in guest_features],),
                key="type_empty",
            )
    sample = st.text_input(
        t("score.id"),
        value=t("score.new_id"),
        key="typed_id",
        help=t("score.id_help"),
        max_chars=60,
        on_change="ignore",
    )
    values: dict[str, str | float | None] = {}
    with st.grid(2, min_column_width=190):
        for feature in guest_features:
            values[feature.name] = _field(t, feature, None if start is None else start.get(feature.name))
    return sample.strip() or t("score.new_id"), values


def assumed(t: Texts, view: View, start: pd.Series[Any]) -> tuple[dict[str, str | float | None], tuple[str, ...]]:
    """Draw a form with a person's values of the Guest; return the values as they are assumed, and the features that differ."""
    st.caption(t("score.assume_hint"))
    values: dict[str, str | float | None] = {}
    changed = []
    for party, feature in view.model.dictionary:
        if party != view.model.guest:
            continue
        record_value = start.get(feature.name)
        values[feature.name] = _field(t, feature, record_value, f"assumed_{start.name}", "rerun")
        unchanged = None if pd.isna(record_value) else record_value
        if values[feature.name] != unchanged:
            changed.append(feature.name)
    return values, tuple(changed)


def _field(
    t: Texts, feature: Feature, start: Any, prefix: str = "typed", on_change: Literal["ignore", "rerun"] = "ignore"
) -> str | float | None:
    title = markdown(t.noted(t.meaning(feature), t.unit(feature)))
    key = f"{prefix}_{feature.name}"
    known_start = None if pd.isna(start) else start
    if feature.kind.value == "categorical":
        codes = list(feature.categories)
        return st.selectbox(
            title,
            codes,
            index=codes.index(str(known_start)) if known_start in codes else None,
            key=key,
            format_func=t.codes(feature).__getitem__,
            placeholder=t("score.missing"),
            accept_new_options=not codes,
            on_change=on_change,
        )
    if feature.kind.value == "boolean":
        choices = {1.0: t("structure.yes"), 0.0: t("structure.no")}
        return st.segmented_control(
            title, list(choices), default=known_start, key=key, format_func=choices.__getitem__, on_change=on_change
        )
    value = None if known_start is None else float(known_start)
    return st.number_input(
        title, value=value, format="%g", key=key, placeholder=t("score.missing"), on_change=on_change
    )


def upload(t: Texts, template: Callable[[], bytes]) -> Upload | None:
    """A table of people to score, and a template to fill in that is made on a click."""
    st.caption(t("upload.hint"))
    st.download_button(
        t("upload.template"),
        template,
        "glassleaf-samples.csv",
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="template",
    )
    file = uploads.file(t, t("upload.file"), "people_upload", SAMPLES.max_bytes // 1_000_000)
    if file is None:
        return None
    return Upload(file.name, file.getvalue())


def sheet(t: Texts, view: View, read: SampleSheet) -> None:
    """Draw what was read from an upload: how many, who plays which Host, what is wrong with which row."""
    hosts = [palette.name(t, view.federation, host) for host in read.hosts]
    if hosts:
        st.markdown(f":material/groups: {t('upload.plays', hosts=t.listed(hosts))}")
    uploads.sheet(t, read)
