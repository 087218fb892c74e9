"""In which direction a model moves with each feature, from structure and leaf weights at the Guest; no threshold is needed.

At a split the low values go left, so the sign of (mean leaf weight right - mean leaf weight left) shows whether higher values
raise the score there. Splits are weighted by gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from backend.data.dictionary import ExpectedDirection, Kind
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, NodeKey

CLEAR = 0.2  # |strength| below this counts as mixed: less than 60 % of the gain points one way

Learned = Literal["up", "down", "mixed", "unused", "unordered", "hidden", "classes"]


@dataclass(frozen=True)
class LearnedDirection:
    """Effect of a higher value of one feature on the risk, expected and learned.

    Attributes
    ----------
    expected : {"up", "down", "none"}
        From the feature dictionary.
    learned : {"up", "down", "mixed", "unused", "unordered", "hidden", "classes"}
        ``unordered``: a categorical feature has no higher and lower; ``hidden``: the Host did not say which side of its splits is
        the lower one; ``classes``: with several classes there is no one direction.
    strength : float
        -1 (every bit of gain points down) … 1 (up).
    contradicts : bool
        Expected up and learned down, or the other way round.
    where : tuple of (tree, node)
        Splits that point against the expectation, largest gain first.
    """

    party: str
    feature: str
    expected: str
    learned: Learned
    strength: float
    contradicts: bool
    where: tuple[NodeKey, ...]


def learned_directions(model: GuestModel) -> tuple[LearnedDirection, ...]:
    """Direction of every feature in the model's dictionary, in its order."""
    signs: dict[str, list[tuple[float, float, NodeKey]]] = {f.name: [] for _, f in model.dictionary}
    for t, tree in enumerate(model.trees):
        means = _subtree_means(tree)
        for i, split in tree.splits.items():
            rise = means[split.right] - means[split.left]
            signs[split.feature].append((split.gain, rise, (t, i)))
    out = []
    for party, feature in model.dictionary:
        splits = signs[feature.name]
        total = sum(gain for gain, _, _ in splits)
        if total:
            strength = sum(gain * ((rise > 0) - (rise < 0)) for gain, rise, _ in splits) / total
        else:
            strength = 0.0
        expected = feature.expected_direction
        sign = {ExpectedDirection.UP: 1, ExpectedDirection.DOWN: -1, ExpectedDirection.NONE: 0}[expected]
        hidden = model.sides_hidden and party != model.guest
        learned = _name(feature.kind, bool(splits), strength, hidden, model.outputs.task == "classes")
        against = sorted((s for s in splits if s[1] * sign < 0), key=lambda s: -s[0])
        if learned in ("unordered", "hidden", "classes"):
            strength = 0.0
            against = []
        contradicts = (learned, sign) in {("up", -1), ("down", 1)}
        where = tuple(key for _, _, key in against)
        out.append(LearnedDirection(party, feature.name, expected.value, learned, strength, contradicts, where))
    return tuple(out)


def _name(kind: Kind, is_used: bool, strength: float, hidden: bool, classes: bool) -> Learned:
    if not is_used:
        return "unused"
    if classes:
        return "classes"
    if kind is Kind.CATEGORICAL:
        return "unordered"
    if hidden:
        return "hidden"
    if abs(strength) < CLEAR:
        return "mixed"
    return "up" if strength > 0 else "down"


def _subtree_means(tree: GuestTree) -> dict[int, float]:
    """Cover-weighted mean leaf weight below each node."""
    sums: dict[int, tuple[float, float]] = {}

    def below(i: int) -> tuple[float, float]:
        node = tree.nodes[i]
        if isinstance(node, Leaf):
            sums[i] = (node.weight * node.cover, node.cover)
        else:
            left = below(node.left)
            right = below(node.right)
            sums[i] = (left[0] + right[0], left[1] + right[1])
        return sums[i]

    below(0)
    return {i: total / cover if cover else 0.0 for i, (total, cover) in sums.items()}
