"""Candidate leaves (Fed-EINI §III-A) of many samples at once: one party's conditions as arrays, compiled once a model.

The rules of a column divide its values into intervals: between two neighbouring thresholds all values go the same way, and so do all
categories that no rule lists, and all missing values. Each rule is evaluated once per interval; a sample is then a table lookup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from backend.trees.ensemble import Columns, NodeKey, Skeleton, SplitRule
from backend.trees.folding import Conditions, leaf_conditions

BLOCK = 512  # samples at a time, so that the 0/1 of some thousand leaves stay in a core's cache

Literal = tuple[SplitRule, bool]  # a rule and the side


def own_conditions(skeletons: Sequence[Skeleton], rules: Mapping[NodeKey, SplitRule]) -> list[Conditions]:
    """Conditions of `rules` on the path to each leaf: trees in order, leaves left to right."""
    return [path for leaves in leaf_conditions(skeletons, rules.__contains__) for path in leaves]


def candidate_leaves(
    skeletons: Sequence[Skeleton], rules: Mapping[NodeKey, SplitRule], columns: Columns, n: int
) -> list[NDArray[np.bool_]]:
    """Return the leaves that a party cannot rule out (Fed-EINI §III-A): its own splits decide, at all others both branches stay open.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The party's columns, each ``(n,)``; a feature that is absent counts as missing.

    Returns
    -------
    list of ndarray of bool
        One ``(n, n_leaves)`` array per tree: True = candidate (f_k^m(x^m) of eq. 5).
    """
    candidates = Conjunctions(rules, own_conditions(skeletons, rules)).matrix(columns, n)
    return np.split(candidates, np.cumsum([len(s.leaves) for s in skeletons])[:-1], axis=1)


@dataclass(frozen=True, eq=False, repr=False)  # a Host's thresholds show in no traceback
class _Column:
    """The intervals of one column and which literals hold in each.

    Attributes
    ----------
    cuts : ndarray of float64 or dict of str to int
        Numbers: ascending thresholds, then NaN; interval k is [cut k-1, cut k). Categories: category → interval.
    holds : ndarray of bool
        ``(n_literals, n_intervals)``; the last interval is that of missing values.
    """

    feature: str
    cuts: NDArray[np.float64] | dict[str, int]
    holds: NDArray[np.bool_]

    @classmethod
    def of(cls, literals: Sequence[Literal]) -> _Column:
        """Evaluate the rules of one column, all of one kind, in every interval."""
        rules = [rule for rule, _ in literals]
        cuts: NDArray[np.float64] | dict[str, int]
        probes: NDArray[np.generic]
        if rules[0].threshold is not None:
            cuts = np.unique(np.array([*(rule.threshold for rule in rules), np.nan], dtype=np.float64))
            probes = np.concatenate([[-np.inf], cuts])
        else:
            codes = set[str]()
            for rule in rules:
                codes |= rule.left_categories | rule.right_categories
            categories = sorted(codes)
            cuts = {category: interval for interval, category in enumerate(categories)}
            probes = np.array([*categories, None], dtype=object)
        holds = [rule.goes_left(probes) == goes_left for rule, goes_left in literals]
        return cls(rules[0].feature, cuts, np.stack(holds))

    def intervals(self, columns: Columns, n: int, has_record: NDArray[np.bool_] | None) -> NDArray[np.intp]:
        """Return the interval of each sample's value, ``(n,)``."""
        missing = self.holds.shape[1] - 1
        if self.feature not in columns:
            return np.full(n, missing, dtype=np.intp)
        column = columns[self.feature]
        if isinstance(self.cuts, dict):
            interval_of = np.fromiter((self.cuts.get(v, missing) for v in column), dtype=np.intp, count=len(column))
        else:
            interval_of = np.searchsorted(self.cuts, column.astype(np.float64), side="right")
        if has_record is None:
            return interval_of
        return np.where(has_record, interval_of, missing)


class Conjunctions:
    """Conjunctions of conditions, evaluated for many samples at once.

    Parameters
    ----------
    conjunctions : sequence of Conditions
        ``m`` of them, of the party's own conditions; an empty one is always true.
    """

    def __init__(self, rules: Mapping[NodeKey, SplitRule], conjunctions: Sequence[Conditions]) -> None:
        literals_of: list[list[Literal]] = []
        for conditions in conjunctions:
            literals_of.append([(rules[tree, node], goes_left) for tree, node, goes_left in conditions])
        # Each literal once, sorted by column.
        by_column: dict[tuple[str, bool], list[Literal]] = {}
        for literal in dict.fromkeys(chain.from_iterable(literals_of)):
            rule = literal[0]
            by_column.setdefault((rule.feature, rule.threshold is None), []).append(literal)
        self._columns = [_Column.of(literals) for literals in by_column.values()]
        line = {literal: i for i, literal in enumerate(chain.from_iterable(by_column.values()))}
        self._always = len(line)
        depth = max([1, *(len(literals) for literals in literals_of)])
        self._lines = np.full((depth, len(literals_of)), self._always, dtype=np.intp)  # short ones are padded
        for e, literals in enumerate(literals_of):
            self._lines[: len(literals), e] = [line[literal] for literal in literals]

    def blocks(
        self, columns: Columns, n: int, has_record: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Evaluate block by block.

        Parameters
        ----------
        columns : mapping of str to ndarray
            The party's columns, each ``(n,)``; a feature that is absent counts as missing.
        has_record : ndarray of bool, optional
            ``(n,)``: a row without a record counts as missing.

        Yields
        ------
        rows : slice
        holds : ndarray of bool
            ``(m, len(rows))``: whether each conjunction holds; overwritten by the next block.
        """
        intervals = [column.intervals(columns, n, has_record) for column in self._columns]
        literals = np.ones((self._always + 1, min(n, BLOCK)), dtype=bool)
        holds, literal_holds = np.empty((2, self._lines.shape[1], min(n, BLOCK)), dtype=bool)
        for begin in range(0, n, BLOCK):
            rows = slice(begin, min(n, begin + BLOCK))
            width = rows.stop - begin
            line = 0
            for column, interval in zip(self._columns, intervals, strict=True):
                literals[line : line + len(column.holds), :width] = column.holds[:, interval[rows]]
                line += len(column.holds)
            # mode="clip" because take buffers its output otherwise; no line is out of bounds
            np.take(literals, self._lines[0], axis=0, out=holds, mode="clip")
            for lines in self._lines[1:]:
                np.take(literals, lines, axis=0, out=literal_holds, mode="clip")
                holds &= literal_holds
            yield rows, holds[:, :width]

    def matrix(self, columns: Columns, n: int, has_record: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Return all blocks in one array, ``(n, m)``."""
        out = np.empty((n, self._lines.shape[1]), dtype=bool)
        for rows, holds in self.blocks(columns, n, has_record):
            out[rows] = holds.T
        return out
