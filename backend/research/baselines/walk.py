"""Walking trees in plaintext: their public shape as arrays, one party's own splits, and samples that move along both.

For the protocols that Fed-EINI is compared with. Nodes are numbered across all trees, so a position is a sample and a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.trees.compiled import Conjunctions
from backend.trees.ensemble import Columns, NodeKey, Skeleton, SplitRule

Numbers = NDArray[np.intp]


class Trees:
    """The shape of a model's trees, the same at every party.

    Attributes
    ----------
    parties : tuple of str
        The Guest, then the Hosts in chain order.
    roots : ndarray of int
        ``(n_trees,)``.
    left, right : ndarray of int
        ``(n_nodes,)``: children; a leaf is its own.
    owner : ndarray of int
        ``(n_nodes,)``: index in `parties`; a leaf is the Guest's, who alone knows its weight.
    leaf : ndarray of int
        ``(n_nodes,)``: index among all leaves (trees in order, left to right), -1 at a split.
    tree, depth : ndarray of int
        ``(n_nodes,)``: which tree, and splits above.
    hop : ndarray of int
        ``(n_nodes,)``: handovers of a sample on its way here, starting at the Guest.
    first, last : ndarray of int
        ``(n_nodes,)``: the leaves below are ``first … last - 1``.
    """

    def __init__(self, skeletons: Sequence[Skeleton], guest: str, hosts: Sequence[str]) -> None:
        self.parties = (guest, *hosts)
        party = {name: i for i, name in enumerate(self.parties)}
        self.number: dict[NodeKey, int] = {}
        for t, skeleton in enumerate(skeletons):
            for node in sorted({*skeleton.forks, *skeleton.leaves}):
                self.number[t, node] = len(self.number)
        n = len(self.number)
        self.roots = np.array([self.number[t, 0] for t in range(len(skeletons))], dtype=np.intp)
        self.left = np.arange(n)
        self.right = np.arange(n)
        self.owner, self.tree, self.depth, self.hop, self.first, self.last = np.zeros((6, n), dtype=np.intp)
        self.leaf = np.full(n, -1, dtype=np.intp)
        leaves = 0
        for t, skeleton in enumerate(skeletons):
            below: list[int] = []  # splits in the order in which they were entered
            stack = [(0, 0, 0, 0)]  # node, depth, who had the sample before, hops so far
            while stack:
                node, depth, previous_owner, hop = stack.pop()
                i = self.number[t, node]
                fork = skeleton.forks.get(node)
                self.tree[i], self.depth[i], self.first[i] = t, depth, leaves
                self.owner[i] = 0 if fork is None else party[fork.owner]
                self.hop[i] = hop + (self.owner[i] != previous_owner)
                if fork is None:
                    self.leaf[i], self.last[i] = leaves, leaves + 1
                    leaves += 1
                    continue
                below.append(i)
                self.left[i], self.right[i] = self.number[t, fork.left], self.number[t, fork.right]
                state_below = (depth + 1, int(self.owner[i]), int(self.hop[i]))
                stack += [(fork.right, *state_below), (fork.left, *state_below)]
            for i in reversed(below):
                self.last[i] = self.last[self.right[i]]
        self.n_leaves = leaves

    def __len__(self) -> int:
        """Nodes of all trees."""
        return len(self.left)

    def handovers(self) -> list[set[tuple[int, int]]]:
        """Who may hand samples to whom, round by round; as many rounds as the path with the most handovers."""
        rounds: list[set[tuple[int, int]]] = [set() for _ in range(int(self.hop.max(initial=0)))]
        for root in self.roots:
            if self.owner[root]:
                rounds[0].add((0, int(self.owner[root])))
        for node in np.flatnonzero(self.leaf < 0):
            for child in (self.left[node], self.right[node]):
                if self.owner[child] != self.owner[node]:
                    rounds[self.hop[child] - 1].add((int(self.owner[node]), int(self.owner[child])))
        return rounds


class OwnSplits:
    """One party's splits, compiled once per model."""

    def __init__(self, trees: Trees, rules: Mapping[NodeKey, SplitRule]) -> None:
        self.trees = trees
        self._split_index = np.full(len(trees), -1, dtype=np.intp)
        self._split_index[[trees.number[key] for key in rules]] = np.arange(len(rules))
        self._decisions = Conjunctions(rules, [((tree, node, True),) for tree, node in rules])

    def walk(self, columns: Columns, n: int, has_record: NDArray[np.bool_] | None = None) -> Walk:
        """Decide every own split for ``n`` samples; rows without a record count as missing."""
        return Walk(self.trees, self._split_index, self._decisions.matrix(columns, n, has_record))


class Walk:
    """Some samples at one party.

    Parameters
    ----------
    split_index : ndarray of int
        ``(n_nodes,)``: column of `left` that decides a node, -1 where the party does not.
    left : ndarray of bool
        ``(n, n_own)``: whether a sample goes left.
    """

    def __init__(self, trees: Trees, split_index: Numbers, goes_left: NDArray[np.bool_]) -> None:
        self._trees = trees
        self._split_index = split_index
        self._left = goes_left

    def on(self, rows: Numbers, nodes: Numbers, *, one_step: bool = False) -> Numbers:
        """Move samples down as long as the party decides, or by one split.

        Parameters
        ----------
        rows, nodes : ndarray of int
            ``(k,)``: sample and node of each position.

        Returns
        -------
        ndarray of int
            ``(k,)``: the nodes reached.
        """
        nodes = nodes.copy()
        moving = np.flatnonzero(self._split_index[nodes] >= 0)
        while len(moving):
            at = nodes[moving]
            goes_left = self._left[rows[moving], self._split_index[at]]
            nodes[moving] = np.where(goes_left, self._trees.left[at], self._trees.right[at])
            if one_step:
                break
            moving = moving[self._split_index[nodes[moving]] >= 0]
        return nodes
