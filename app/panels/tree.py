"""One tree as a picture: owners by colour and shape, the Guest's thresholds open, the Hosts' kept by the Hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import reading
from app.panels import frame, palette
from app.reading import View
from app.texts import Texts, bare, label, markdown, number, percent, signed, wrap
from backend.service import GuestTree, Leaf, Split

STRIP = 8  # previews beside each other


def strip(t: Texts, view: View, current: int, choose: Callable[[str, str], None]) -> None:
    """Small previews of the trees around the current one, which is marked; a click moves on."""
    first = max(0, min(current - 3, len(view.model.trees) - STRIP))
    with st.container(horizontal=True, wrap=False, key="tree_strip", gap="small"):
        for i, tree in list(enumerate(view.model.trees))[first : first + STRIP]:
            with st.container(width=118, border=True, gap="xsmall"):
                st.image(_preview(view, tree), width=84, alt=t("structure.preview", tree=i + 1, n=len(tree.splits)))
                st.button(
                    t("structure.tree", tree=i + 1),
                    key=f"tree_{i}",
                    type=frame.emphasis() if i == current else "tertiary",
                    on_click=choose,
                    args=("tree", str(i + 1)),
                    width="stretch",
                )
                st.caption(t("structure.gain_short", gain=number(reading.gain(tree))), text_alignment="center")


def _preview(view: View, tree: GuestTree) -> str:
    places = reading.places(tree)
    depth, rows = max(d for d, _ in places.values()) or 1, len(tree.leaves)

    def spot(node: int) -> tuple[float, float]:
        d, row = places[node]
        return 6 + 72 * d / depth, 5 + 46 * (row + 0.5) / rows

    parts = []
    for node, split in tree.splits.items():
        x, y = spot(node)
        for child in (split.left, split.right):
            cx, cy = spot(child)
            parts.append(
                f'<path d="M{x:.1f} {y:.1f}L{cx:.1f} {cy:.1f}" stroke="{palette.INK}" stroke-width="1" opacity=".6"/>'
            )
    for node in places:
        x, y = spot(node)
        item = tree.nodes[node]
        colour = palette.mark(view.federation, item.owner).colour if isinstance(item, Split) else palette.INK
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4 if isinstance(item, Split) else 1.8}" fill="{colour}"/>')
    body = "".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 84 56" width="84" height="56">{body}</svg>'


def sentence(t: Texts, view: View, index: int) -> str:
    """What to see in this tree."""
    tree = view.model.trees[index]
    splits = tree.splits
    if not splits:
        return t("structure.single", tree=index + 1)
    hidden = sum(split.owner != view.model.guest for split in splits.values())
    best = max(splits.values(), key=lambda split: split.gain)
    return t(
        "structure.sentence",
        tree=index + 1,
        n=len(splits),
        hidden=hidden,
        meaning=markdown(t.meaning(view.model.feature(best.feature))),
        share=percent(best.gain / (reading.gain(tree) or 1)),
    )


@dataclass(frozen=True)
class _Sight:
    """One tree as it is being drawn: where its nodes stand and which are still open."""

    t: Texts
    view: View
    index: int
    picture: go.Figure
    places: Mapping[int, tuple[int, float]]
    alive: frozenset[int]
    overlaid: bool

    @property
    def tree(self) -> GuestTree:
        return self.view.model.trees[self.index]

    def opacity(self, node: int) -> float:
        return 1.0 if node in self.alive else 0.3


def figure(t: Texts, view: View, index: int, candidates: Sequence[int] | None = None) -> go.Figure:
    """The tree from left (root) to right (leaves); with `candidates`, what the Guest has ruled out fades."""
    tree = view.model.trees[index]
    places = reading.places(tree)
    alive = frozenset(places) if candidates is None else reading.alive(tree, candidates)
    sight = _Sight(t, view, index, go.Figure(), places, alive, candidates is not None)
    for node, split in tree.splits.items():
        _edges(sight, node, split)
    for party in (view.model.guest, *view.model.hosts):
        own = [node for node, split in tree.splits.items() if split.owner == party]
        if own:
            _splits(sight, party, own)
    _leaves(sight)
    depth = max(d for d, _ in places.values())
    sight.picture.update_xaxes(visible=False, range=[-0.55, depth + 0.6], fixedrange=True)
    sight.picture.update_yaxes(visible=False, range=[len(tree.leaves) - 0.4, -1.1], fixedrange=True)
    sight.picture.update_layout(
        height=max(260, 66 * len(tree.leaves) + 70),
        margin={"l": 0, "r": 0, "t": 36, "b": 0},
        legend=palette.LEGEND,
    )
    return sight.picture


def _edges(sight: _Sight, node: int, split: Split) -> None:
    own = split.owner == sight.view.model.guest
    x, y = sight.places[node]
    words = ("structure.yes", "structure.no") if own else _sides(sight.view, split)
    for child, word in zip((split.left, split.right), words, strict=True):
        cx, cy = sight.places[child]
        way_open = child in sight.alive
        sight.picture.add_scatter(
            x=[x, x + 0.54, x + 0.54, cx],
            y=[y, y, cy, cy],
            mode="lines",
            line={
                "color": palette.INK,
                "width": 2 if way_open else 1,
                "dash": "solid" if own else "dash",
            },
            opacity=sight.opacity(child),
            hoverinfo="skip",
            showlegend=False,
        )
        sight.picture.add_annotation(
            x=x + 0.56,
            y=cy,
            text=sight.t(word),
            showarrow=False,
            xanchor="left",
            yshift=-9,
            font={"size": 10},
            opacity=sight.opacity(child),
        )


def _sides(view: View, split: Split) -> tuple[str, str]:
    if view.model.feature(split.feature).kind.value == "numeric":
        return ("structure.lower", "structure.higher")
    return ("structure.some", "structure.others")


def rule(t: Texts, view: View, index: int, node: int) -> str:
    """What a split asks: the Guest's threshold or categories, or who keeps them."""
    split = view.model.trees[index].splits[node]
    own = view.model.rules.get((index, node))
    if own is None:
        return t("structure.kept", party=t.party(view.federation, split.owner))
    feature = view.model.feature(split.feature)
    if own.threshold is not None:
        unit = f" {feature.unit}" if feature.unit else ""
        return t("structure.below", threshold=bare(own.threshold), unit=unit)
    named = [feature.categories.get(code, code) for code in sorted(own.left_categories)]
    return t("structure.one_of", listed=", ".join(named))


def _splits(sight: _Sight, party: str, own: list[int]) -> None:
    t, sign = sight.t, palette.mark(sight.view.federation, party)
    title = label(t.party(sight.view.federation, party))
    sight.picture.add_scatter(
        x=[None], y=[None], mode="markers", name=title, marker={"size": 12, "symbol": sign.symbol, "color": sign.colour}
    )
    for nodes in ([n for n in own if n in sight.alive], [n for n in own if n not in sight.alive]):
        if not nodes:
            continue
        spots = {"x": [sight.places[node][0] for node in nodes], "y": [sight.places[node][1] for node in nodes]}
        sight.picture.add_scatter(
            **spots,
            mode="markers+text",
            marker={"size": 20, "symbol": sign.symbol, "color": sign.colour},
            opacity=sight.opacity(nodes[0]),
            text=[
                f"<b>{wrap(_meaning(sight, node), 17, 3)}</b><br>{wrap(rule(t, sight.view, sight.index, node), 19, 2)}"
                for node in nodes
            ],
            textposition="top center",
            textfont={"size": 11},
            hovertext=[_told(sight, node, party) for node in nodes],
            hovertemplate="%{hovertext}<extra></extra>",
            cliponaxis=False,
            showlegend=False,
        )
        if party != sight.view.model.guest:
            sight.picture.add_scatter(
                **spots,
                mode="text",
                text=["lock"] * len(nodes),
                textfont={"family": palette.ICONS, "size": 13, "color": "white"},
                hoverinfo="skip",
                showlegend=False,
            )


def _meaning(sight: _Sight, node: int) -> str:
    return sight.t.meaning(sight.view.model.feature(sight.tree.splits[node].feature))


def _told(sight: _Sight, node: int, party: str) -> str:
    t, split = sight.t, sight.tree.splits[node]
    return "<br>".join(
        (
            f"<b>{wrap(_meaning(sight, node), 44, 3)}</b>",
            wrap(rule(t, sight.view, sight.index, node), 44, 4),
            label(t("structure.owner_is", party=t.party(sight.view.federation, party))),
            t("structure.gain_is", gain=number(split.gain)),
            t("structure.cover_is", cover=number(split.cover)),
            t("structure.missing_left" if split.default_left else "structure.missing_right"),
        )
    )


def _leaves(sight: _Sight) -> None:
    t = sight.t
    leaves = {node: item for node, item in enumerate(sight.tree.nodes) if isinstance(item, Leaf)}
    told = {
        node: [
            t("structure.raises" if leaf.weight > 0 else "structure.lowers", weight=signed(leaf.weight)),
            t("structure.cover_is", cover=number(leaf.cover)),
        ]
        for node, leaf in leaves.items()
    }
    if sight.overlaid:
        for node, lines in told.items():
            lines.append(t("structure.open" if node in sight.alive else "structure.ruled_out"))
    strong = sight.alive if sight.overlaid else ()
    sight.picture.add_scatter(
        x=[sight.places[node][0] for node in leaves],
        y=[sight.places[node][1] for node in leaves],
        mode="markers+text",
        name=t("structure.leaf"),
        marker={
            "size": 11,
            "symbol": ["circle" if leaf.weight > 0 else "circle-open" for leaf in leaves.values()],
            "color": palette.INK,
            "line": {"width": 2, "color": palette.INK},
            "opacity": [sight.opacity(node) for node in leaves],
        },
        text=[f"<b>{signed(x.weight)}</b>" if node in strong else signed(x.weight) for node, x in leaves.items()],
        textposition="middle right",
        textfont={"size": 12},
        hovertext=["<br>".join(told[node]) for node in leaves],
        hovertemplate="%{hovertext}<extra></extra>",
        cliponaxis=False,
    )


def twin(t: Texts, view: View, index: int, candidates: Sequence[int] | None = None) -> pd.DataFrame:
    """The tree as a table, one row a node."""
    tree = view.model.trees[index]
    places = reading.places(tree)
    rows = []
    for node, item in enumerate(tree.nodes):
        split = item if isinstance(item, Split) else None
        rows.append(
            {
                t("structure.node"): node,
                t("structure.depth"): places[node][0],
                t("words.party"): palette.plain(t, view.federation, split.owner) if split else t("structure.leaf"),
                t("features.meaning"): t.meaning(view.model.feature(split.feature)) if split else "",
                t("structure.asks"): rule(t, view, index, node) if split else signed(item.weight),
                t("structure.leads"): f"{split.left} / {split.right}" if split else "",
                t("words.gain"): split.gain if split else None,
                t("words.cover"): item.cover,
            }
            | (
                {t("structure.state"): t("structure.open" if node in candidates else "structure.ruled_out")}
                if candidates is not None and split is None
                else {}
            )
        )
    return pd.DataFrame(rows)
