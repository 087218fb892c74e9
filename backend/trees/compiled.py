"""One party's conditions as arrays, worked out once a model: the walk of :mod:`backend.trees.candidates` without its Python.

A rule looks at a value only through the cuts of its column: between two neighbouring thresholds all values go the same way, and so do
all categories that no rule names, and all missing ones. Each rule is therefore asked once about every such place; a sample is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.trees.ensemble import Columns, NodeKey, Skeleton, SplitRule
from backend.trees.folding import Conditions

BLOCK = 512  # samples worked on together, so that the 0/1 of some thousand leaves stay in a core's cache

Literal = tuple[SplitRule, bool]  # a rule and the side that is asked for


def own_conditions(skeletons: Sequence[Skeleton], rules: Mapping[NodeKey, SplitRule]) -> list[Conditions]:
    """Conditions of `rules` on the path to each leaf: trees in order, leaves left to right."""
    out: list[Conditions] = []
    for t, skeleton in enumerate(skeletons):
        stack: list[tuple[int, Conditions]] = [(0, ())]
        while stack:
            node, path = stack.pop()
            fork = skeleton.forks.get(node)
            if fork is None:
                out.append(path)
                continue
            ours = (t, node) in rules
            stack.append((fork.right, (*path, (t, node, False)) if ours else path))
            stack.append((fork.left, (*path, (t, node, True)) if ours else path))
    return out


@dataclass(frozen=True, eq=False, repr=False)  # a Host's thresholds show in no traceback
class _Column:
    """The places of one column and what holds there.

    Attributes
    ----------
    feature : str
    cuts : ndarray of float64 or dict of str to int
        Numbers: thresholds upwards, then NaN; place k is from cut k-1 to below cut k. Categories: category → place.
    holds : ndarray of bool
        ``(n_literals, n_places)``; missing is the last place.
    """

    feature: str
    cuts: NDArray[np.float64] | dict[str, int]
    holds: NDArray[np.bool_]

    @classmethod
    def of(cls, literals: Sequence[Literal]) -> _Column:
        """Ask the rules of one column, all of one kind, about every place."""
        rules = [rule for rule, _ in literals]
        cuts: NDArray[np.float64] | dict[str, int]
        probes: NDArray[np.generic]
        if rules[0].threshold is not None:
            cuts = np.unique(np.array([*(rule.threshold for rule in rules), np.nan], dtype=np.float64))
            probes = np.concatenate([[-np.inf], cuts])
        else:
            named = sorted(frozenset[str]().union(*(rule.left_categories | rule.right_categories for rule in rules)))
            cuts = {category: place for place, category in enumerate(named)}
            probes = np.array([*named, None], dtype=object)
        return cls(rules[0].feature, cuts, np.stack([rule.goes_left(probes) == left for rule, left in literals]))

    def places(self, columns: Columns, n: int, held: NDArray[np.bool_] | None) -> NDArray[np.intp]:
        """``(n,)``: where each sample's value falls."""
        missing = self.holds.shape[1] - 1
        if self.feature not in columns:
            return np.full(n, missing, dtype=np.intp)
        column = columns[self.feature]
        if isinstance(self.cuts, dict):
            places = np.fromiter((self.cuts.get(v, missing) for v in column), dtype=np.intp, count=len(column))
        else:
            places = np.searchsorted(self.cuts, column.astype(np.float64), side="right")
        return places if held is None else np.where(held, places, missing)


class Conjunctions:
    """Whether all of some conditions hold, for many such sets of conditions and many samples at once.

    Parameters
    ----------
    rules : mapping of (tree, node) to SplitRule
        The party's own.
    conjunctions : sequence of Conditions
        ``m`` sets of the party's own conditions; an empty one always holds.
    """

    def __init__(self, rules: Mapping[NodeKey, SplitRule], conjunctions: Sequence[Conditions]) -> None:
        asked = [[(rules[tree, node], left) for tree, node, left in conditions] for conditions in conjunctions]
        by_column: dict[tuple[str, bool], list[Literal]] = {}
        for literal in dict.fromkeys(literal for literals in asked for literal in literals):
            by_column.setdefault((literal[0].feature, literal[0].threshold is None), []).append(literal)
        self._columns = [_Column.of(literals) for literals in by_column.values()]
        line = {literal: i for i, literal in enumerate(x for literals in by_column.values() for x in literals)}
        self._always = len(line)
        depth = max([1, *(len(literals) for literals in asked)])
        self._lines = np.full((depth, len(asked)), self._always, dtype=np.intp)  # short ones are filled up
        for e, literals in enumerate(asked):
            self._lines[: len(literals), e] = [line[literal] for literal in literals]

    def blocks(
        self, columns: Columns, n: int, held: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Some samples at a time.

        Parameters
        ----------
        columns : mapping of str to ndarray
            The party's columns, each ``(n,)``; a feature that is absent counts as missing.
        n : int
            Samples.
        held : ndarray of bool, optional
            ``(n,)``: rows that are not held count as missing.

        Yields
        ------
        rows : slice
        kept : ndarray of bool
            ``(m, len(rows))``; overwritten by the next block.
        """
        places = [column.places(columns, n, held) for column in self._columns]
        literals = np.ones((self._always + 1, min(n, BLOCK)), dtype=bool)
        kept, other = np.empty((2, self._lines.shape[1], min(n, BLOCK)), dtype=bool)
        for begin in range(0, n, BLOCK):
            rows = slice(begin, min(n, begin + BLOCK))
            width = rows.stop - begin
            line = 0
            for column, place in zip(self._columns, places, strict=True):
                literals[line : line + len(column.holds), :width] = column.holds[:, place[rows]]
                line += len(column.holds)
            np.take(literals, self._lines[0], axis=0, out=kept, mode="clip")  # no line is out of bounds; not buffered
            for lines in self._lines[1:]:
                np.take(literals, lines, axis=0, out=other, mode="clip")
                kept &= other
            yield rows, kept[:, :width]
