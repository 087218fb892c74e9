"""What the Guest can say of a score by itself: base, its own part, and the Hosts' part together.

The Guest knows its own candidate leaves and the covers, so it can take the expectation over the Hosts' splits (each branch weighted
by its cover); the rest of the score is the Hosts' part. Splitting that rest by Host would need their paths.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import Columns, GuestModel, Leaf


class Expectation:
    """Cover-weighted expectations of one model's logit, built once a model: they are linear in the Guest's candidate leaves.

    Attributes
    ----------
    base : float
        Given nothing.
    """

    def __init__(self, model: GuestModel) -> None:
        weights, of_hosts, of_all = _leaf_shares(model)
        self.base = model.base_score + float(weights @ of_all)
        self._base_score = model.base_score
        self._worth = csr_array(
            [weights * of_hosts]
        )  # sums leaf by leaf, so that a sample's result is the same in every batch
        self._candidates = Conjunctions(model.rules, own_conditions(model.skeletons, model.rules))

    def given(self, columns: Columns, n: int) -> NDArray[np.float64]:
        """Given the Guest's columns, ``(n,)``."""
        out = np.empty(n)
        for rows, kept in self._candidates.blocks(columns, n):
            out[rows] = self._base_score + (self._worth @ kept)[0]
        return out


def _leaf_shares(model: GuestModel) -> NDArray[np.float64]:
    """``(3, n_leaves)``: weight, and the share of its samples that reach it by the Hosts' splits and by all splits."""
    out = []
    for t, tree in enumerate(model.trees):
        stack = [(0, 1.0, 1.0)]
        while stack:
            i, of_hosts, of_all = stack.pop()
            node = tree.nodes[i]
            if isinstance(node, Leaf):
                out.append((node.weight, of_hosts, of_all))
                continue
            left = tree.nodes[node.left].cover / node.cover if node.cover else 0.5
            for child, share in ((node.right, 1.0 - left), (node.left, left)):
                stack.append((child, of_hosts if (t, i) in model.rules else of_hosts * share, of_all * share))
    return np.array(out).T
