"""What the Guest can say of a score by itself: base, its own part, and the Hosts' part together.

The Guest knows its own candidate leaves and the covers, so it can take the expectation over the Hosts' splits (each branch weighted
by its cover); the rest of the score is the Hosts' part. Splitting that rest by Host would need their paths.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from backend.trees.candidates import decide
from backend.trees.ensemble import Columns, GuestModel, GuestTree, Leaf, NodeKey


def expected_logits(model: GuestModel, columns: Columns, n: int) -> NDArray[np.float64]:
    """Cover-weighted expectation of the logit given the Guest's columns, ``(n,)``."""
    return model.base_score + _expectation(model, columns, n, own=True)


def base_logit(model: GuestModel) -> float:
    """Cover-weighted expectation of the logit given nothing."""
    return float(model.base_score + _expectation(model, {}, 1, own=False)[0])


def _expectation(model: GuestModel, columns: Columns, n: int, *, own: bool) -> NDArray[np.float64]:
    decided = {k: decide(rule, columns, n) for k, rule in model.rules.items()} if own else {}
    total = np.zeros(n)
    for t, tree in enumerate(model.trees):
        total += _below(t, tree, 0, decided, n)
    return total


def _below(
    t: int, tree: GuestTree, i: int, decided: Mapping[NodeKey, NDArray[np.bool_]], n: int
) -> NDArray[np.float64]:
    node = tree.nodes[i]
    if isinstance(node, Leaf):
        return np.full(n, node.weight)
    left, right = _below(t, tree, node.left, decided, n), _below(t, tree, node.right, decided, n)
    if (t, i) in decided:
        return np.where(decided[t, i], left, right)
    share = tree.nodes[node.left].cover / node.cover if node.cover else 0.5
    return share * left + (1.0 - share) * right
