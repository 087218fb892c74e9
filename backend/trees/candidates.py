"""Candidate leaves (Fed-EINI §III-A): which leaves a party cannot rule out from its own splits and its own columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.trees.ensemble import Columns, NodeKey, Skeleton, SplitRule


def candidate_leaves(
    skeletons: Sequence[Skeleton], rules: Mapping[NodeKey, SplitRule], columns: Columns, n: int
) -> list[NDArray[np.bool_]]:
    """Walk every tree, deciding at the party's own splits and taking both branches at all others.

    Parameters
    ----------
    skeletons : sequence of Skeleton
        One per tree.
    rules : mapping of (tree, node) to SplitRule
        The party's own splits.
    columns : mapping of str to ndarray
        The party's columns, each ``(n,)``; a feature that is absent counts as missing.
    n : int
        Samples.

    Returns
    -------
    list of ndarray of bool
        One ``(n, n_leaves)`` array per tree: True = candidate (f_k^m(x^m) of eq. 5).
    """
    return [_walk(t, skeleton, rules, columns, n) for t, skeleton in enumerate(skeletons)]


def _walk(
    tree: int, skeleton: Skeleton, rules: Mapping[NodeKey, SplitRule], columns: Columns, n: int
) -> NDArray[np.bool_]:
    alive = {0: np.ones(n, dtype=bool)}
    out = np.empty((n, len(skeleton.leaves)), dtype=bool)
    place = {leaf: i for i, leaf in enumerate(skeleton.leaves)}
    stack = [0]
    while stack:
        node = stack.pop()
        here = alive.pop(node)
        fork = skeleton.forks.get(node)
        if fork is None:
            out[:, place[node]] = here
            continue
        rule = rules.get((tree, node))
        if rule is None:
            alive[fork.left], alive[fork.right] = here, here
        else:
            left = decide(rule, columns, n)
            alive[fork.left], alive[fork.right] = here & left, here & ~left
        stack += [fork.right, fork.left]
    return out


def decide(rule: SplitRule, columns: Columns, n: int) -> NDArray[np.bool_]:
    """``(n,)``: whether each sample goes left at a split that the party owns."""
    if rule.feature not in columns:
        return np.full(n, rule.default_left)
    return rule.goes_left(columns[rule.feature])
