"""Which tree, which part of it, which of its splits: previews, menus and what a link has marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from app import view_models
from app.panels import links, palette
from app.texts import Texts, cut, markdown, number, percent
from app.view_models import View
from backend.services.tree_nodes import Split

if TYPE_CHECKING:
    from backend.trees.ensemble import GuestTree

STRIP = 7  # previews beside each other
WHOLE_TREE_LEAVES = 16  # leaves that are drawn at once; a larger tree is shown in parts
LEVELS = 3  # questions in such a part, as many as a phone has room for


def strip(t: Texts, view: View, current: int, choose: Callable[[str, str], None]) -> None:
    """Draw small previews of the current tree, which is marked, and of those nearest to it by gain; a click moves on."""
    ordered = view_models.by_gain(view.model.trees)
    first = max(0, min(ordered.index(current) - 3, len(ordered) - STRIP))
    with st.container(horizontal=True, wrap=False, key="tree_strip", gap="small"):
        for i in ordered[first : first + STRIP]:
            tree = view.model.trees[i]
            with st.container(width=100, gap="xsmall", horizontal_alignment="center"):
                st.image(_preview(view, tree), width=84, alt=t("structure.preview", tree=i + 1, n=len(tree.splits)))
                st.button(
                    t("structure.tree", tree=i + 1),
                    key=f"tree_{i}",
                    type="primary" if i == current else "tertiary",
                    on_click=choose,
                    args=("tree", str(i + 1)),
                    width="stretch",
                )


def _preview(view: View, tree: GuestTree) -> str:
    positions = view_models.positions(tree, levels=LEVELS)
    depth = max(d for d, _ in positions.values()) or 1
    rows = 1 + max(row for _, row in positions.values())

    def spot(node: int) -> tuple[float, float]:
        d, row = positions[node]
        return 6 + 72 * d / depth, 5 + 46 * (row + 0.5) / rows

    parts = []
    for node, split in tree.splits.items():
        for child in (split.left, split.right):
            if child in positions:
                x, y = spot(node)
                cx, cy = spot(child)
                line = f'<path d="M{x:.1f} {y:.1f}L{cx:.1f} {cy:.1f}" stroke="{palette.INK}" opacity=".6"/>'
                parts.append(line)
    for node in positions:
        x, y = spot(node)
        item = tree.nodes[node]
        if isinstance(item, Split):
            colour = palette.mark(view.federation, item.owner).colour
        else:
            colour = palette.INK
        if isinstance(item, Split):
            radius = max(1.6, min(4.0, 20 / rows))
        else:
            radius = 1.6
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}"/>')
    body = "".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 84 56" width="84" height="56">{body}</svg>'


def named(t: Texts, view: View, index: int) -> str:
    """Return a tree in the menu: its number and how much its questions improve the fit."""
    gain = t("structure.gain_short", gain=number(view_models.gain(view.model.trees[index])))
    of = view_models.class_of(view, index)
    return " · ".join(filter(None, (t("structure.tree", tree=index + 1), cut(of, 16), gain)))


def parts(view: View, index: int) -> tuple[int, ...]:
    """Return the nodes from which a tree is drawn; only its root if it can be read at once."""
    return view_models.branches(view.model.trees[index], WHOLE_TREE_LEAVES, LEVELS)


def nodes(view: View, number: str) -> tuple[str, ...]:
    """Return the splits of a tree, by which a link may name one; `number` counts trees from 1."""
    return tuple(str(node) for node in view.model.trees[int(number) - 1].splits)


def part_with(view: View, index: int, node: int) -> int:
    """Return the part of a tree, as `parts` divides it, in which a split is drawn."""
    tree = view.model.trees[index]
    above = view_models.parents(view.model.trees[index])
    tops = parts(view, index)
    while node not in tops:
        node = above[node]
    return node if tree.splits else 0


def mark(t: Texts, view: View, index: int, node: int) -> None:
    """Draw which split a link has marked, and the way on: to its feature, and to the other splits on it."""
    split = view.model.trees[index].splits[node]
    with st.container(border=True, key="marked_split"):
        st.markdown(
            t(
                "structure.marked",
                node=node,
                meaning=markdown(t.brief(view.model.feature(split.feature))),
                party=palette.name(t, view.federation, split.owner),
                share=percent(split.gain / (view_models.gain(view.model.trees[index]) or 1)),
            )
        )
        where = view_models.where(view.model, split.feature)
        at = where.index((index, node))
        with st.container(horizontal=True):
            links.to_feature(t, view.record.id, split.feature)
            for step, icon in ((-1, "arrow_back"), (1, "arrow_forward")):
                if 0 <= at + step < len(where):
                    tree_index, other_node = where[at + step]
                    links.to_split(t, view.record.id, tree_index, other_node, icon)
        st.caption(t("structure.marked_place", place=at + 1, n=len(where)))


def branch(t: Texts, view: View, index: int, key: str) -> int:
    """Which part of a tree that is too large to be read at once; the node that the part begins with."""
    tree = view.model.trees[index]

    def in_words(node: int) -> str:
        if node == 0:
            return t("structure.from_top", levels=LEVELS)
        meaning = t.brief(view.model.feature(tree.splits[node].feature))
        leaves = view_models.leaves_below(tree, node)
        return t("structure.from_node", node=node, meaning=meaning, leaves=leaves)

    return st.selectbox(
        t("structure.part"), parts(view, index), key=key, format_func=in_words, help=t("structure.part_help"), width=420
    )
