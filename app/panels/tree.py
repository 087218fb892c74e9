"""One tree as a picture: owners by colour and shape, the Guest's thresholds open, the Hosts' kept by the Hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import streamlit as st

from app import view_models
from app.panels import charts, frame, palette
from app.panels.tree_choice import LEVELS, WHOLE_TREE_LEAVES
from app.texts import Texts, amount, bare, cut, label, markdown, number, percent, signed, wrap
from app.view_models import View
from backend.services.tree_nodes import Leaf, Split

if TYPE_CHECKING:
    from backend.data.dictionary import Feature
    from backend.trees.ensemble import GuestTree

NO_HOVER = {"hoverinfo": "skip", "showlegend": False}
LANE_PIXELS = 66  # pixels between two ends
LETTER_PIXELS = 8  # pixels
# letters and lines of a split's words and of its rule, so that on a phone they meet no line; the hover has them whole
WORDS_WRAP = (13, 4)
RULE = (14, 3)
TWIN = (
    *(f"structure.{name}" for name in ("node", "depth")),
    *("words.party", "features.meaning"),
    *(f"structure.{name}" for name in ("asks", "leads")),
    *("words.gain", "words.cover", "structure.state"),
)
FOLDED_LANE = 104  # where an end is a question with up to five lines above it


def sentence(t: Texts, view: View, index: int) -> str:
    """Return what to see in this tree."""
    tree = view.model.trees[index]
    splits = tree.splits
    of = view_models.class_of(view, index)
    if of:
        class_words = " " + t("structure.of_class", name=markdown(of))
    else:
        class_words = ""
    if not splits:
        return t("structure.single", tree=index + 1) + class_words
    hidden = sum(split.owner != view.model.guest for split in splits.values())
    best = max(splits.values(), key=lambda split: split.gain)
    words = t(
        "structure.sentence",
        tree=index + 1,
        n=len(splits),
        hidden=t("structure.hidden", n=hidden),
        meaning=markdown(t.brief(view.model.feature(best.feature))),
        share=percent(best.gain / (view_models.gain(tree) or 1)),
    )
    return words + class_words


@dataclass(frozen=True)
class _Sight:
    """One tree as it is being drawn: the places of its nodes and which are still open."""

    t: Texts
    view: View
    index: int
    picture: go.Figure
    positions: Mapping[int, tuple[int, float]]
    alive: frozenset[int]
    overlaid: bool

    @property
    def tree(self) -> GuestTree:
        return self.view.model.trees[self.index]

    @property
    def ways(self) -> list[tuple[int, Split]]:
        """The splits whose two ways are drawn."""
        return [(node, split) for node, split in self.tree.splits.items() if split.left in self.positions]

    def at(self, node: int) -> tuple[float, float]:
        """Return the place of a node: depth, row."""
        return self.positions[node]

    def opacity(self, node: int) -> float:
        return 1.0 if node in self.alive else 0.3


@charts.cached
def figure(
    t: Texts, view: View, index: int, candidates: Sequence[int] | None = None, top: int = 0, marked: int | None = None
) -> go.Figure:
    """Return the tree from left (root) to right (leaves); with `candidates`, what the Guest has ruled out fades.

    The split `marked` has a ring.

    A tree with many leaves is drawn from the node `top` on, a few questions deep.
    """
    tree = view.model.trees[index]
    positions = view_models.positions(tree, top, LEVELS if len(tree.leaves) > WHOLE_TREE_LEAVES else None)
    if candidates is None:
        alive = frozenset(tree.splits) | frozenset(tree.leaves)
    else:
        alive = view_models.alive(tree, candidates)
    depth = max(d for d, _ in positions.values())
    rows = 1 + max(row for _, row in positions.values())
    folded = any(split.left not in positions for node, split in tree.splits.items() if node in positions)
    picture = charts.figure(max(260, (FOLDED_LANE if folded else LANE_PIXELS) * rows + 110), top=36)
    sight = _Sight(t, view, index, picture, positions, alive, candidates is not None)
    _edges(sight)
    if marked is not None and marked in positions:
        _ring(sight, marked)
    for party in (view.model.guest, *view.model.hosts):
        nodes = [node for node in positions if node in tree.splits and tree.splits[node].owner == party]
        if nodes:
            _splits(sight, party, nodes)
    _leaves(sight)
    _folded(sight)
    picture.update_xaxes(visible=False, range=[-0.55, depth + 0.6])
    picture.update_yaxes(visible=False, range=[rows - 0.4, -1.7])
    return picture.update_layout(margin_r=_room(t, view, tree, positions))


def _ring(sight: _Sight, node: int) -> None:
    x, y = sight.positions[node]
    ring = {"size": 30, "symbol": "circle-open", "color": palette.INK, "line": {"width": 2, "color": palette.INK}}
    sight.picture.add_scatter(
        x=[x], y=[y], mode="markers", marker=ring, name=sight.t("structure.ring"), hoverinfo="skip"
    )


def _room(t: Texts, view: View, tree: GuestTree, positions: Mapping[int, tuple[int, float]]) -> int:
    """Pixels beside the last leaves for words that are longer than a weight."""
    leaves = []
    for node, item in enumerate(tree.nodes):
        if node in positions and isinstance(item, Leaf):
            leaves.append(item)
    longest = max((len(leaf_short(t, view, leaf)) for leaf in leaves), default=0)
    return max(0, longest - len("+0.123")) * LETTER_PIXELS


def _edges(sight: _Sight) -> None:
    """All ways of one look in one trace: a trace for each would be slow."""
    lines: dict[tuple[bool, bool], tuple[list[float | None], list[float | None]]] = {}
    words: dict[bool, list[tuple[float, float, str]]] = {}
    for node, split in sight.ways:
        of_guest = split.owner == sight.view.model.guest
        x, y = sight.positions[node]
        if of_guest:
            keys = ("structure.yes", "structure.no")
        else:
            keys = _sides(sight.view, split)
        for child, key in zip((split.left, split.right), keys, strict=True):
            cx, cy = sight.positions[child]
            xs, ys = lines.setdefault((of_guest, child in sight.alive), ([], []))
            xs += [x, x + 0.54, x + 0.54, cx, None]
            ys += [y, y, cy, cy, None]
            words.setdefault(child in sight.alive, []).append((x + 0.56, cy + 0.09, sight.t(key)))
    for (of_guest, way_open), (xs, ys) in lines.items():
        line = {"color": palette.INK, "width": 2 if way_open else 1, "dash": "solid" if of_guest else "dash"}
        sight.picture.add_scatter(x=xs, y=ys, mode="lines", line=line, opacity=1.0 if way_open else 0.3, **NO_HOVER)
    for way_open, labels in words.items():
        _write(
            sight,
            labels,
            "bottom right",
            {"size": charts.TEXT, "shadow": charts.halo()},
            opacity=1.0 if way_open else 0.45,
        )


def _write(sight: _Sight, labels: Sequence[tuple[float, float, str]], where: str, font: object, **trace: Any) -> None:
    """Words at their positions, all in one trace."""
    xs, ys, texts = zip(*labels, strict=True)
    look = {"mode": "text", "textposition": where, "textfont": font} | NO_HOVER | trace
    sight.picture.add_scatter(x=xs, y=ys, text=texts, **look)


def _sides(view: View, split: Split) -> tuple[str, str]:
    """Return what is known of the two ways of a Host's split."""
    if view.model.feature(split.feature).kind.value == "numeric" and not view.model.sides_hidden:
        return ("structure.lower", "structure.higher")
    return ("structure.some", "structure.others")


def rule(t: Texts, view: View, index: int, node: int) -> str:
    """Return what a split asks: the Guest's threshold or categories, or who keeps them."""
    split = view.model.trees[index].splits[node]
    guest_rule = view.model.rules.get((index, node))
    if guest_rule is None:
        return t("structure.kept", party=t.party(view.federation, split.owner))
    feature = view.model.feature(split.feature)
    if guest_rule.threshold is not None:
        return t("structure.below", threshold=bare(guest_rule.threshold), unit=t.after(feature))
    codes = t.codes(feature)
    return t(
        "structure.one_of",
        listed=t("words.comma").join(codes.get(code, code) for code in sorted(guest_rule.left_categories)),
    )


def _splits(sight: _Sight, party: str, splits: list[int]) -> None:
    t = sight.t
    sign = palette.mark(sight.view.federation, party)
    title = label(t.party(sight.view.federation, party))
    sight.picture.add_scatter(
        x=[None], y=[None], mode="markers", name=title, marker={"size": 12, "symbol": sign.symbol, "color": sign.colour}
    )
    for nodes in ([n for n in splits if n in sight.alive], [n for n in splits if n not in sight.alive]):
        if not nodes:
            continue
        spots = {"x": [sight.positions[node][0] for node in nodes], "y": [sight.positions[node][1] for node in nodes]}
        sight.picture.add_scatter(
            **spots,
            mode="markers+text",
            marker={"size": 20, "symbol": sign.symbol, "color": sign.colour},
            opacity=sight.opacity(nodes[0]),
            text=[
                f"<b>{wrap(t.brief(_feature(sight, node)), *WORDS_WRAP)}</b><br>"
                f"{wrap(rule(t, sight.view, sight.index, node), *RULE)}"
                for node in nodes
            ],
            textposition="top center",
            textfont={"size": charts.TEXT, "shadow": charts.halo()},
            hovertext=[_hover(sight, node, party) for node in nodes],
            hovertemplate="%{hovertext}<extra></extra>",
            cliponaxis=False,
            showlegend=False,
        )
        if party != sight.view.model.guest:
            locks = [(*sight.at(node), "lock") for node in nodes]
            _write(sight, locks, "middle center", {"family": palette.ICONS, "size": 13, "color": "white"})


def _feature(sight: _Sight, node: int) -> Feature:
    return sight.view.model.feature(sight.tree.splits[node].feature)


def _hover(sight: _Sight, node: int, party: str) -> str:
    t = sight.t
    split = sight.tree.splits[node]
    sides_kept = sight.view.model.sides_hidden and party != sight.view.model.guest
    return "<br>".join(
        (
            f"<b>{wrap(t.meaning(_feature(sight, node)), 44, 3)}</b>",
            wrap(rule(t, sight.view, sight.index, node), 44, 4),
            label(t("structure.owner_is", party=t.party(sight.view.federation, party))),
            *([wrap(t("structure.sides_hidden"), 44, 3)] if sides_kept else []),
            t("structure.gain_is", gain=number(split.gain)),
            t("structure.cover_is", cover=number(split.cover)),
            t("structure.missing_left" if split.default_left else "structure.missing_right"),
        )
    )


def leaf_words(t: Texts, view: View, index: int, leaf: Leaf) -> str:
    """Return what a leaf says, in a sentence."""
    kind = view_models.scale(view)
    answer = view_models.answer(view, leaf)
    if kind == "class_share":
        shares = sorted(zip(view.model.outputs.classes, answer, strict=True), key=lambda item: -item[1])
        listed = []
        for name, share in shares[:3]:
            if share > 0:
                listed.append(f"{label(cut(name, 20))} {percent(share)}")
        return t("structure.says_class_share", listed=t.listed(listed))
    words = {"weight": label(leaf_short(t, view, leaf)), "name": label(view_models.class_of(view, index))}
    if kind in ("share", "value"):
        return t(f"structure.says_{kind}", **words)
    return t(f"structure.raises_{kind}" if answer[0] > 0 else f"structure.lowers_{kind}", **words)


def leaf_short(t: Texts, view: View, leaf: Leaf) -> str:
    """Return the words next to a leaf: its weight, share or value; of several classes the likeliest."""
    kind = view_models.scale(view)
    answer = view_models.answer(view, leaf)
    if kind in ("log_odds", "class_score"):
        return signed(answer[0])
    if kind == "share":
        return percent(answer[0])
    if kind == "class_share":
        best = max(range(len(answer)), key=answer.__getitem__)
        return f"{cut(view.model.outputs.classes[best], 12)} {percent(answer[best])}"
    plus = "+" if kind == "step" and answer[0] >= 0 else ""
    return plus + amount(answer[0], t.unit(view.federation.label))


def _leaves(sight: _Sight) -> None:
    t = sight.t
    view = sight.view
    leaves = {}
    for n, item in enumerate(sight.tree.nodes):
        if isinstance(item, Leaf) and n in sight.positions:
            leaves[n] = item
    if not leaves:
        return
    hovers = {
        node: [leaf_words(t, view, sight.index, leaf), t("structure.cover_is", cover=number(leaf.cover))]
        for node, leaf in leaves.items()
    }
    if sight.overlaid:
        for node, lines in hovers.items():
            lines.append(t("structure.open" if node in sight.alive else "structure.ruled_out"))
    strong = sight.alive if sight.overlaid else ()
    short = {node: label(leaf_short(t, view, leaf)) for node, leaf in leaves.items()}
    middle = view_models.middle(view, sight.tree)
    several = view_models.scale(view) == "class_share"
    sight.picture.add_scatter(
        x=[sight.positions[node][0] for node in leaves],
        y=[sight.positions[node][1] for node in leaves],
        mode="markers+text",
        name=t(f"structure.leaf_{view_models.scale(view)}"),
        marker={
            "size": 11,
            "symbol": [
                "circle" if several or view_models.answer(view, leaf)[0] > middle else "circle-open"
                for leaf in leaves.values()
            ],
            "color": palette.INK,
            "line": {"width": 2, "color": palette.INK},
            "opacity": [sight.opacity(node) for node in leaves],
        },
        text=[f"<b>{words}</b>" if node in strong else words for node, words in short.items()],
        textposition="middle right",
        textfont={"size": 12},
        hovertext=["<br>".join(hovers[node]) for node in leaves],
        hovertemplate="%{hovertext}<extra></extra>",
        cliponaxis=False,
    )


def _folded(sight: _Sight) -> None:
    """Draw what is below the splits at which the drawn part ends."""
    ends = [
        node
        for node, split in sight.tree.splits.items()
        if node in sight.positions and split.left not in sight.positions
    ]
    below = {node: sight.t("structure.folded", n=view_models.leaves_below(sight.tree, node)) for node in ends}
    if ends:
        labels = [(*sight.at(node), f"\u2003\u2003{words}") for node, words in below.items()]
        _write(sight, labels, "middle right", {"size": charts.TEXT}, cliponaxis=False)


def outline(
    t: Texts, view: View, index: int, candidates: Sequence[int] | None = None, top: int = 0, marked: int | None = None
) -> None:
    """Draw what `figure` shows as a list, each node below the one that leads to it: on a phone a picture's words would meet."""
    tree = view.model.trees[index]
    positions = view_models.positions(tree, top, LEVELS if len(tree.leaves) > WHOLE_TREE_LEAVES else None)
    if candidates is None:
        alive = None
    else:
        alive = view_models.alive(tree, candidates)
    lines: list[str] = []

    def visit(node: int, depth: int, way: str) -> None:
        item = tree.nodes[node]
        lead = f":small[:gray[{t(way)}]] " if way else ""
        ring = ":material/adjust: " if node == marked else ""
        if isinstance(item, Leaf):
            words = _leaf_line(t, view, item)
        else:
            words = _split_line(t, view, index, node)
        if alive is not None and node not in alive:
            words = f":gray[{words}]"
        lines.append(f"{'    ' * depth}- {lead}{ring}{words}")
        if not isinstance(item, Split):
            return
        if item.left not in positions:
            lines[-1] += f" :small[:gray[{t('structure.folded', n=view_models.leaves_below(tree, node))}]]"
            return
        of_guest = item.owner == view.model.guest
        if of_guest:
            ways = ("structure.yes", "structure.no")
        else:
            ways = _sides(view, item)
        for child, side in zip((item.left, item.right), ways, strict=True):
            visit(child, depth + 1, side)

    visit(top, 0, "")
    st.markdown("\n".join(lines))
    parties = " ".join(palette.name(t, view.federation, party) for party in (view.model.guest, *view.model.hosts))
    leaf = t(f"structure.leaf_{view_models.scale(view)}")
    st.caption(f"{parties}  \n{t('structure.reading_list', leaf=leaf)}")


def _split_line(t: Texts, view: View, index: int, node: int) -> str:
    """Return whose question it is, about which feature, and the Guest's threshold, or a lock for a Host's."""
    split = view.model.trees[index].splits[node]
    sign = palette.mark(view.federation, split.owner)
    if split.owner == view.model.guest:
        condition = markdown(rule(t, view, index, node))
    else:
        condition = ":material/lock:"
    about = markdown(t.brief(view.model.feature(split.feature)))
    return f':color[{sign.glyph}]{{foreground="{sign.colour}"}} **{about}** {condition}'


def _leaf_line(t: Texts, view: View, leaf: Leaf) -> str:
    return f":material/arrow_right_alt: **{markdown(leaf_short(t, view, leaf))}**"


def legend(t: Texts, view: View) -> None:
    """Draw how the picture is read."""
    words = t("structure.reading", leaves=t(f"structure.reading_{view_models.scale(view)}"))
    if view.model.sides_hidden and view.model.hosts:
        words = t.joined(words, t("structure.sides_hidden"))
    st.caption(words, help=t("glossary.candidate_leaves"))


def twin(t: Texts, view: View, index: int, candidates: Sequence[int] | None = None) -> frame.Columns:
    """Return the tree as a table, one row a node."""
    tree = view.model.trees[index]
    positions = view_models.positions(tree)
    leaf = t(f"structure.leaf_{view_models.scale(view)}")
    rows = []
    for node, item in enumerate(tree.nodes):
        split = item if isinstance(item, Split) else None
        if split:
            state = ""
        else:
            state = t("structure.open" if node in (candidates or ()) else "structure.ruled_out")
        rows.append(
            (
                node,
                positions[node][0],
                palette.plain(t, view.federation, split.owner) if split else leaf,
                t.meaning(view.model.feature(split.feature)) if split else "",
                leaf_short(t, view, item) if isinstance(item, Leaf) else rule(t, view, index, node),
                f"{split.left} / {split.right}" if split else "",
                split.gain if split else None,
                item.cover,
                state,
            )
        )
    heads = [t(key) for key in TWIN]
    columns = dict(zip(heads, zip(*rows, strict=True), strict=True))
    if candidates is not None:
        return columns
    return {head: columns[head] for head in heads[:-1]}
