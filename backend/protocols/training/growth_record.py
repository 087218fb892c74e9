"""The trees of one training as they have grown at one Host: which messages may come next. Pure state; knows row numbers, no value.

What a Guest says of a node is no bound. The Host takes the terms from what was approved, a node's rows from what it answered itself, and
refuses before it looks at a record:

- A tree is one of those approved, a node is a child of a node that this Host was told of, and no deeper than approved.
- A node is summed once and split once. Two children share a parent, and no row of the parent is in both.
- Rows below a split of this Host are those that it answered; below another party's split they are some of the parent's, and the sibling
  has the others.
- At least `least` people who count are in a node that is summed or split, and in its sibling, whose sums follow by subtraction.

Below a split of this Host the last check cannot fail unless the Guest knows that it will: it was told which rows go left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError
from backend.trees.ensemble import Skeleton

Flags = NDArray[np.bool_]
PEOPLE = 20  # fewest in a node, as in a group of which anything is said
ROOT = -1  # the parent of a tree's first node
OPEN_TREES = 64  # trees of which the rows are in memory; messages about earlier ones are refused


def least_people(group_size: int, named_share: float, bits: int) -> int:
    """Return the smallest number of people in a node whose sums are answered.

    A Guest that gives each person's number a separate digit reads from the sums by bin the bins of as many people as a sum has bits.
    They are at most the share `named_share` of the node (docs/decisions/groups.md).

    Parameters
    ----------
    named_share : float
        0 = people need no protection.
    bits : int
        The bits of a sum, all batches together.

    Examples
    --------
    >>> least_people(20, 0.5, 72)
    144
    >>> least_people(20, 0.0, 72)
    20
    """
    return max(1, group_size, ceil(bits / named_share) if named_share else 0)


@dataclass(frozen=True)
class Terms:
    """What was approved of a training.

    Attributes
    ----------
    trees, depth : int
        Most of them, and splits on a path.
    """

    trees: int
    depth: int


@dataclass(eq=False, repr=False)
class _Node:
    """A node that this Host was told of, or whose sibling it was told of.

    Attributes
    ----------
    depth : int
        Splits above it.
    counted : ndarray of uint8, optional
        Rows whose numbers were summed, as bits; None if no sums were asked for.
    routed : ndarray of uint8, optional
        All joint rows of the node, as bits; None if this Host does not know them.
    left_rows : ndarray of uint8, optional
        Of `routed`, those that go left at this Host's split; None if another party splits the node, or none does.
    children : int
        Number of its left child; 0 = none was named.
    """

    depth: int
    counted: NDArray[np.uint8] | None = None
    routed: NDArray[np.uint8] | None = None
    left_rows: NDArray[np.uint8] | None = None
    children: int = 0
    summed: bool = False


class GrowthRecord:
    """What has grown at this Host.

    Parameters
    ----------
    terms : Terms, optional
        None = nothing was approved (a simulated Host): trees and depth are not bounded.
    training : ndarray of bool
        ``(n_joint,)``: training rows.
    """

    def __init__(self, terms: Terms | None, training: Flags) -> None:
        self._terms = terms
        self._training = training
        self._n = len(training)
        self._trees: dict[int, dict[int, _Node]] = {}
        self._closed = -1  # last tree whose rows were forgotten

    def begin_sums(self, tree: int, node: int, parent: int, counted: Flags, min_people: int) -> None:
        """Record a request for the sums of a node.

        Parameters
        ----------
        counted : ndarray of bool
            ``(n_joint,)``: the node's rows whose numbers are summed.
        min_people : int
            The smallest number of people whose sums are answered.

        Raises
        ------
        SecurityError
            If the growth so far does not lead to this node, or it is too small.
        """
        below = self._placed(tree, node, parent)
        here = self._trees[tree].get(node)
        if here is not None and here.summed:
            raise SecurityError("node_summed_already", tree=tree, node=node)
        bits = np.packbits(counted)
        others = None
        if below is not None:
            others = self._siblings(below, node, bits)
        if here is not None and here.counted is not None and not np.array_equal(here.counted, bits):
            raise SecurityError("node_of_other_rows", tree=tree, node=node)
        self._check_size(bits, min_people)
        if others is not None:
            self._check_size(others, min_people)
        self._enter(tree, node, parent)
        here = self._trees[tree][node]
        here.counted = bits
        here.summed = True
        if others is not None:
            sibling = self._trees[tree][_sibling(node)]
            sibling.counted = others

    def begin_split(self, tree: int, node: int, parent: int, routed: Flags, min_people: int) -> None:
        """Record that this Host splits a node; `routed` are all of its joint rows. Raises as :meth:`begin_sums`."""
        below = self._placed(tree, node, parent)
        here = self._trees[tree].get(node)
        if here is not None and (here.left_rows is not None or here.children):
            raise SecurityError("node_split_already", tree=tree, node=node)
        bits = np.packbits(routed)
        if below is None:
            fits = bool(routed.all())
        elif below.left_rows is not None and below.routed is not None:
            fits = np.array_equal(bits, _side(below, node))
        else:
            fits = below.routed is None or not (bits & ~below.routed).any()
        # Sums are answered before a split is chosen by them: its rows that count are those of the sums.
        root = self._trees[tree].get(0)
        if here is None or here.counted is None or root is None or root.counted is None:
            raise SecurityError("split_without_sums", tree=tree, node=node)
        if not fits or not np.array_equal(bits & root.counted, here.counted):
            raise SecurityError("node_of_other_rows", tree=tree, node=node)
        self._check_size(here.counted, min_people)
        here.routed = bits

    def awaits_split(self, tree: int, node: int) -> bool:
        """Whether this Host has answered the node's sums since it was started, and has not split it."""
        here = self._trees.get(tree, {}).get(node)
        return here is not None and here.counted is not None and here.left_rows is None and not here.children

    def split(self, tree: int, node: int, parent: int, routed: Flags, goes_left: Flags) -> None:
        """Record how this Host has split a node; `goes_left` are the rows of `routed` that go left, ``(n_joint,)``."""
        self._open(tree)
        if node not in self._trees[tree]:
            self._enter(tree, node, parent)
        here = self._trees[tree][node]
        here.routed = np.packbits(routed)
        here.left_rows = np.packbits(goes_left & routed)

    def check_model(self, skeletons: Sequence[Skeleton]) -> None:
        """Raise SecurityError unless the trees of a model are those that grew, as far as this Host was told of them."""
        for tree, skeleton in enumerate(skeletons):
            if self._terms is not None and (tree >= self._terms.trees or skeleton.depth > self._terms.depth):
                raise SecurityError("model_did_not_grow")
            for number, node in self._trees.get(tree, {}).items():
                fork = skeleton.forks.get(number)
                if node.children and (fork is None or (fork.left, fork.right) != (node.children, node.children + 1)):
                    raise SecurityError("model_did_not_grow")

    def _open(self, tree: int) -> None:
        """Make room for a tree; forget the rows of earlier ones."""
        if not self._closed < tree or (self._terms is not None and tree >= self._terms.trees):
            raise SecurityError("tree_not_approved", tree=tree)
        if tree not in self._trees:
            self._trees[tree] = {}
            while len(self._trees) > OPEN_TREES:
                self._closed = min(self._trees)
                del self._trees[self._closed]

    def _placed(self, tree: int, node: int, parent: int) -> _Node | None:
        """Return a node's parent; None if the node is a root.

        Raises
        ------
        SecurityError
            If the tree was not approved, the parent is unknown or has other children, or the node is too deep.
        """
        self._open(tree)
        if node == 0 and parent == ROOT:
            return None
        above = self._trees[tree].get(parent)
        if above is None or not 0 <= parent < node or above.children not in (0, _first(node)):
            raise SecurityError("unknown_node", tree=tree, node=node)
        existing = self._trees[tree].get(node)
        if existing is None and self._is_child(tree, _first(node)):
            raise SecurityError("unknown_node", tree=tree, node=node)
        if self._terms is not None and above.depth + 1 >= self._terms.depth:
            raise SecurityError("node_too_deep", tree=tree, node=node, depth=self._terms.depth)
        return above

    def _is_child(self, tree: int, first: int) -> bool:
        """Return whether a pair of children has a parent already."""
        return any(above.children == first for above in self._trees[tree].values())

    def _enter(self, tree: int, node: int, parent: int) -> None:
        """Note a node, and with it its sibling."""
        nodes = self._trees[tree]
        if node == 0:
            nodes.setdefault(0, _Node(0))
            return
        above = nodes.get(parent)
        depth = 0 if above is None else above.depth + 1
        nodes.setdefault(node, _Node(depth))
        nodes.setdefault(_sibling(node), _Node(depth))
        if above is not None:
            above.children = _first(node)

    @staticmethod
    def _siblings(above: _Node, node: int, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return which of the parent's rows that count are not in a node.

        Raises
        ------
        SecurityError
            If the node has other rows than the parent, or than this Host answered at its split.
        """
        if above.counted is None or (bits & ~above.counted).any():
            raise SecurityError("rows_not_of_parent", node=node)
        if above.left_rows is not None and not np.array_equal(bits, _side(above, node) & above.counted):
            raise SecurityError("rows_not_of_parent", node=node)
        others: NDArray[np.uint8] = above.counted & ~bits
        return others

    @staticmethod
    def _check_size(bits: NDArray[np.uint8], min_people: int) -> None:
        people = int(np.bitwise_count(bits).sum())
        if people < min_people:
            raise SecurityError("few_people_in_node", people=people, least=min_people)


def _first(node: int) -> int:
    """Return the number of the left one of two siblings: children are numbered in pairs, after the root."""
    return node if node % 2 else node - 1


def _sibling(node: int) -> int:
    return node + 1 if node % 2 else node - 1


def _side(above: _Node, node: int) -> NDArray[np.uint8]:
    """Return the rows of a node below this Host's own split."""
    assert above.left_rows is not None and above.routed is not None  # noqa: S101 - the caller has looked
    side: NDArray[np.uint8] = above.left_rows if node % 2 else above.routed & ~above.left_rows
    return side
