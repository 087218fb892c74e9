"""One feature closer: everything disclosed about it, what the model makes of it, its findings, and every split on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import view_models
from app.panels import frame, links, palette, questions, reviews
from app.texts import Texts, code, markdown, percent
from app.view_models import View

if TYPE_CHECKING:
    from backend.services.compliance import Finding

LINKED_SPLITS = 6  # splits that a card leads to at once; its table leads to all
TALL = 300  # pixels of that table


def card(t: Texts, view: View, name: str) -> None:
    """Draw everything disclosed about one feature, what the model makes of it, and where."""
    party = view.model.owner_of(name)
    feature = view.model.feature(name)
    row = next(r for r in view.importance if r.feature == name)
    learned = next((d for d in view.directions if d.feature == name), None)
    with st.container(border=True):
        st.markdown(f"### {markdown(t.meaning(feature))}", anchors=False)
        if t.language == "zh":
            other_language = feature.meaning.en
        else:
            other_language = feature.meaning.zh
        st.caption(
            code(feature.name)
            + (f" · {markdown(other_language)}" if other_language and other_language != t.meaning(feature) else "")
        )
        facts = {
            t("features.held_by"): palette.name(t, view.federation, party),
            **(
                {t("features.unit"): markdown(t.unit(feature))}
                if t.unit(feature)
                else {t("features.values"): t(f"features.{feature.kind.value}")}
            ),
            t("features.expected"): frame.direction(t, view.task, feature.expected_direction.value),
            t("features.learned"): frame.direction(t, view.task, learned.learned if learned else "unused"),
            t("features.usage"): t(
                "features.usage_is", n=row.splits, splits=row.splits, trees=row.trees, share=percent(row.gain_share)
            ),
        }
        if feature.categories:
            listed = [f"{markdown(code)} = {markdown(text)}" for code, text in t.codes(feature).items()]
            facts[t("features.codes")] = t("document.semicolon").join(listed)
        st.table(facts, border="horizontal", alt=t("features.card"))
        if learned is not None and learned.learned in ("hidden", "classes"):
            st.caption(f":material/info: {t(f'direction.{learned.learned}_help')}")
        if learned is not None and learned.contradicts:
            st.markdown(f":red[:material/warning: {t('importance.contradicts')}]")
        for finding in view_models.flags(view.compliance).get(name, ()):
            words = t("compliance.flagged_as", status=t(f"compliance.{finding.status}"), rule=_rule(t, finding))
            key = view_models.key_of(finding)
            links.page("compliance", f":red[{words}]", "flag", {"model": view.record.id, "finding": key})
        for question in view.compliance.questions:
            if question.feature != name:
                continue
            question_text = questions.words(t, question)
            if question.answer is None:
                words = t("questions.open_one", asked=question_text)
                links.page("compliance", words, "contact_support", {"model": view.record.id})
            else:
                answer_text = t.joined(question_text, reviews.answered(t, question.answer))
                st.markdown(f":material/{reviews.DECISION_ICONS[question.answer.verdict]}: {answer_text}")
        _splits(t, view, name)


def _splits(t: Texts, view: View, name: str) -> None:
    """Draw where the model asks about a feature: the splits that gain most as links, all of them as a table."""
    where = view_models.where(view.model, name)
    if not where:
        return
    st.markdown(f"**{t('features.splits', n=len(where))}**")
    with st.container(horizontal=True):
        for tree, node in where[:LINKED_SPLITS]:
            links.to_split(t, view.record.id, tree, node)
    if len(where) <= LINKED_SPLITS:
        return
    with st.expander(t("features.all_splits"), icon=":material/table:", key="features_splits"):
        splits = [view.model.trees[tree].splits[node] for tree, node in where]
        columns: frame.Columns = {
            t("features.tree"): [tree + 1 for tree, _ in where],
            t("structure.node"): [node for _, node in where],
            t("words.gain"): [split.gain for split in splits],
            t("words.cover"): [split.cover for split in splits],
        }
        picking = {"on_select": "rerun", "selection_mode": "single-row"}
        height = min(38 + frame.TABLE_ROW_PIXELS * len(where), TALL)
        picked = frame.data(columns, f"splits_{name}", t("features.all_splits"), height=height, **picking)
        for row in picked["selection"]["rows"]:
            tree, node = where[row]
            links.to_split(t, view.record.id, tree, node, "arrow_forward")


def _rule(t: Texts, finding: Finding) -> str:
    return markdown(t.text(finding.title))
