"""Parts of a score that the Guest can attribute by itself: base, its own part, and the Hosts' part together.

The Guest knows its own candidate leaves and the covers, so it can take the expectation over the Hosts' splits (each branch weighted
by its cover); the rest of the score is the Hosts' part. Splitting that rest by Host would need their paths.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backend.trees.backgrounds import leaf_shares
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import Columns, GuestModel, Leaf


class Expectation:
    """Cover-weighted expectations of one model's margins, built once per model: they are linear in the Guest's candidate leaves.

    A median over trees is not a sum and has no parts: all are NaN.

    Attributes
    ----------
    base : ndarray of float64
        ``(outputs.count,)``: given nothing.
    """

    def __init__(self, model: GuestModel) -> None:
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and few runs need it

        of_hosts, of_all = leaf_shares(model)
        leaves = ((t, tree.nodes[i]) for t, tree in enumerate(model.trees) for i in tree.leaves)
        weights = np.array([model.weights_of(t, leaf) for t, leaf in leaves if isinstance(leaf, Leaf)])
        self._base_scores = np.array(model.base_scores)
        if model.outputs.aggregation == "median":
            self._base_scores = np.full(model.outputs.count, np.nan)
        self.base = self._base_scores + of_all @ weights
        # sparse, because its product adds leaf by leaf: the same to the last bit in every batch
        self._expected = csr_array((weights * of_hosts[:, None]).T)
        self._candidates = Conjunctions(model.rules, own_conditions(model.skeletons, model.rules))

    def given(self, columns: Columns, n: int) -> NDArray[np.float64]:
        """Given the Guest's columns, ``(n, outputs.count)``."""
        out = np.empty((n, len(self.base)))
        for rows, candidates in self._candidates.blocks(columns, n):
            out[rows] = self._base_scores + (self._expected @ candidates).T
        return out
