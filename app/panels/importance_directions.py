"""Which way the model moves with each feature: expected against learned, and where in the trees it contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from app.panels import frame, links, palette
from app.texts import Texts, markdown, percent
from app.view_models import View

if TYPE_CHECKING:
    from backend.explain.direction import LearnedDirection

DIRECTION_SIGNS = {"up": "▲", "down": "▼", "mixed": "◆", "hidden": "?"}  # all other words have no direction
LINKED_SPLITS = 4  # links to trees a feature


def directions(t: Texts, view: View) -> None:
    """Draw what was expected of each feature against what the model learned."""
    rows = [d for d in view.directions if d.learned != "unused"]
    ordered = sorted(rows, key=lambda d: (not d.contradicts, -abs(d.strength)))
    if view.task == "classes":
        st.markdown(t("importance.directions_classes", used=len(rows)))
    else:
        st.markdown(
            t(
                "importance.directions",
                n=sum(d.contradicts for d in rows),
                expected=sum(d.expected != "none" for d in rows),
                used=len(rows),
            )
        )
    hidden = sum(d.learned == "hidden" for d in rows)
    if hidden:
        st.markdown(f":material/lock: {t('importance.hidden', n=hidden)}", help=t("direction.hidden_help"))
    if not ordered:
        return
    heads = [
        ("features.meaning", None),
        ("words.party", None),
        ("features.expected", "expected_direction"),
        ("features.learned", "learned_direction"),
        ("importance.strength", "strength"),
        ("importance.verdict", None),
    ]
    cells = zip(*(_row(t, view, direction) for direction in ordered), strict=True)
    columns = {t(head): column for (head, _), column in zip(heads, cells, strict=True)}
    about = {t(head): st.column_config.TextColumn(help=t(f"glossary.{term}")) for head, term in heads if term}
    frame.rows(t, columns, "directions", t("importance.directions_title"), looks=about)


def _row(t: Texts, view: View, direction: LearnedDirection) -> tuple[str, ...]:
    """Return what a feature means, whose it is, the two directions, how sure the learned one is, and whether they agree."""
    has_direction = direction.learned in ("up", "down", "mixed")
    return (
        t.meaning(view.model.feature(direction.feature)),
        palette.plain(t, view.federation, direction.party),
        _arrow(t, view, direction.expected),
        _arrow(t, view, direction.learned),
        f"{direction.strength:+.2f}".replace("-", "−") if has_direction else "–",
        _verdict(t, direction),
    )


def contradictions(t: Texts, view: View) -> None:
    """Draw where in the trees a feature points against its expectation, with a link to each of the largest such splits."""
    gains = {row.feature: row.gain for row in view.importance}
    against = sorted((d for d in view.directions if d.contradicts), key=lambda d: -abs(d.strength))
    for _, direction in frame.paged(against, "importance_against_page"):
        with st.container(border=True, key=f"importance_against_{direction.feature}"):
            splits = [view.model.trees[tree].splits[node] for tree, node in direction.where]
            share = sum(split.gain for split in splits) / (gains[direction.feature] or 1.0)
            st.markdown(
                t(
                    "importance.where",
                    feature=markdown(t.brief(view.model.feature(direction.feature))),
                    party=palette.name(t, view.federation, direction.party),
                    expected=frame.direction(t, view.task, direction.expected),
                    n=len(direction.where),
                    gain=percent(share),
                )
            )
            _links(t, view, direction.where)


def _links(t: Texts, view: View, where: Sequence[tuple[int, int]]) -> None:
    first: dict[int, int] = {}
    for tree, node in where:
        first.setdefault(tree, node)
    with st.container(horizontal=True):
        for tree, node in list(first.items())[:LINKED_SPLITS]:
            links.to_split(t, view.record.id, tree, node, words=t("features.see_tree", tree=tree + 1))


def explained(t: Texts, view: View, learned: str) -> str:
    """Return a learned direction as a sentence if one word does not say enough; else the word."""
    if learned in ("hidden", "classes"):
        return t(f"direction.{learned}_help")
    return frame.direction(t, view.task, learned)


def _arrow(t: Texts, view: View, direction: str) -> str:
    return f"{DIRECTION_SIGNS.get(direction, '–')} {frame.direction(t, view.task, direction)}"


def _verdict(t: Texts, direction: LearnedDirection) -> str:
    if direction.contradicts:
        return f"⚠ {t('importance.against_short')}"
    if direction.expected == "none" or direction.learned == "unordered":
        return t("importance.no_expectation")
    if direction.learned == "mixed":
        return t("importance.both_ways")
    return t("importance.as_expected" if direction.learned in ("up", "down") else "importance.cannot_tell")
