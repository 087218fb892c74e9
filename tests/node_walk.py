"""The oracle of compiled conditions: walk every tree node by node (Fed-EINI §III-A)."""

import numpy as np


def goes_left(rule, columns, n):
    """``(n,)``: whether each sample goes left; an absent column counts as missing."""
    return rule.goes_left(columns[rule.feature]) if rule.feature in columns else np.full(n, rule.default_left)


def walked_candidates(skeletons, rules, columns, n):
    """One ``(n, n_leaves)`` array per tree: own splits decide, at all others both branches are taken."""
    return [_walked(t, skeleton, rules, columns, n) for t, skeleton in enumerate(skeletons)]


def _walked(tree, skeleton, rules, columns, n):
    out = np.empty((n, len(skeleton.leaves)), dtype=bool)
    stack = [(0, np.ones(n, dtype=bool))]
    while stack:
        node, reached = stack.pop()
        fork = skeleton.forks.get(node)
        if fork is None:
            out[:, skeleton.leaves.index(node)] = reached
            continue
        rule = rules.get((tree, node))
        left = np.ones(n, dtype=bool) if rule is None else goes_left(rule, columns, n)
        right = left if rule is None else ~left
        stack += [(fork.left, reached & left), (fork.right, reached & right)]
    return out
