"""Which share of the training records reaches each leaf, by the covers of its ancestors. Knows no threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backend.trees.ensemble import GuestModel, Leaf


def leaf_shares(model: GuestModel) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of records that reach each leaf, ``(n_leaves,)`` each, trees in order, leaves left to right.

    Returns
    -------
    of_hosts : ndarray of float64
        Of the records that the Guest's splits lead there: each Host's split goes either way as often as in training.
    of_all : ndarray of float64
        Of all records.
    """
    shares = []
    for t, tree in enumerate(model.trees):
        stack = [(0, 1.0, 1.0)]
        while stack:
            i, of_hosts, of_all = stack.pop()
            node = tree.nodes[i]
            if isinstance(node, Leaf):
                shares.append((of_hosts, of_all))
                continue
            left = tree.nodes[node.left].cover / node.cover if node.cover else 0.5
            for child, share in ((node.right, 1.0 - left), (node.left, left)):
                stack.append((child, of_hosts if (t, i) in model.rules else of_hosts * share, of_all * share))
    table = np.array(shares).reshape(-1, 2)
    return table[:, 0], table[:, 1]
