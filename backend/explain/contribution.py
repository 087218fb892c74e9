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
    """Cover-weighted expectations of one model's margins, built once a model: they are linear in the Guest's candidate leaves.

    A median over trees is no sum, so that it has no parts: all are NaN.

    Attributes
    ----------
    base : ndarray of float64
        ``(outputs.count,)``: given nothing.
    """

    def __init__(self, model: GuestModel) -> None:
        weights, of_hosts, of_all = _leaf_shares(model)
        self._base_scores = np.array(model.base_scores)
        if model.outputs.aggregation == "median":
            self._base_scores = np.full(model.outputs.count, np.nan)
        self.base = self._base_scores + of_all @ weights
        self._worth = csr_array((weights * of_hosts[:, None]).T)  # sums leaf by leaf: the same in every batch
        self._candidates = Conjunctions(model.rules, own_conditions(model.skeletons, model.rules))

    def given(self, columns: Columns, n: int) -> NDArray[np.float64]:
        """Given the Guest's columns, ``(n, outputs.count)``."""
        out = np.empty((n, len(self.base)))
        for rows, kept in self._candidates.blocks(columns, n):
            out[rows] = self._base_scores + (self._worth @ kept).T
        return out


def _leaf_shares(model: GuestModel) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Weights, ``(n_leaves, outputs.count)``, and the shares of samples that reach each leaf by the Hosts' splits and by all."""
    weights, shares = [], []
    for t, tree in enumerate(model.trees):
        stack = [(0, 1.0, 1.0)]
        while stack:
            i, of_hosts, of_all = stack.pop()
            node = tree.nodes[i]
            if isinstance(node, Leaf):
                weights.append(model.weights_of(t, node))
                shares.append((of_hosts, of_all))
                continue
            left = tree.nodes[node.left].cover / node.cover if node.cover else 0.5
            for child, share in ((node.right, 1.0 - left), (node.left, left)):
                stack.append((child, of_hosts if (t, i) in model.rules else of_hosts * share, of_all * share))
    of_hosts, of_all = np.array(shares).T
    return np.array(weights), of_hosts, of_all
