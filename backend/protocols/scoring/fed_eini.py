"""Fed-EINI (§III, Algorithm 1): each party's decision vector, and how Hosts turn the Guest's encrypted one into a score.

The steps in the paper's order, one function each. Where we differ: leaves that share their Host conditions share one entry
(:mod:`backend.trees.folding`), leaves without Host conditions stay at the Guest, all samples of a message are handled at once, and
every number a Host computed is refreshed before it leaves (the paper's reply can be traced back to the kept leaves by the Guest,
who knows each ciphertext's randomness).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from backend.crypto.fixedpoint import narrow
from backend.crypto.interface import FoldPlan
from backend.protocols.scoring.packing import CANARY_BITS, GUARD_BITS, Packing
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import Columns, GuestModel, NodeKey, SplitRule
from backend.trees.folding import Folding, Step, fold_structure

SMALL_BATCH = 32  # people; up to this number, all leaves together are faster than tree by tree


class CompiledGuest:
    """Stage 1 at the Guest, eq. 8: w_(j,k) for candidate leaves and 0 for the others, folded. Built once a model.

    Attributes
    ----------
    score_bits : int
        Units are 2**-score_bits.
    packing : Packing
        How several outputs share a number.
    largest : int
        No sum of a sample's entries has a larger absolute value.
    bound_entries : ndarray of int
        Entries of the tree that binds a score to its request.
    features : tuple of str
        The Guest's features that the model uses.
    """

    def __init__(self, model: GuestModel) -> None:
        self.score_bits = model.score_bits
        self.features = tuple(sorted({rule.feature for rule in model.rules.values()}))
        self.packing = packing = Packing(model)
        self.folding = folding = fold_structure(model.skeletons, model.guest, model.hosts)
        self.largest = packing.largest
        self._constant = folding.n_entries  # leaves without a Host's condition stand behind the entries
        entries = (e for leaves in folding.entry_of_leaf for e in leaves)
        entry_of = np.array([self._constant if e is None else e for e in entries])
        # a line of sums per entry and, if there are several, slot
        lines = entry_of[packing.leaf] * packing.slots + packing.slot
        self._lines = np.arange(self._constant + 1)
        if packing.slots > 1:
            self._lines, lines = np.unique(lines, return_inverse=True)
        bound = np.bincount(lines, np.abs(packing.unit).astype(np.float64))
        self._dtype = np.int32 if bound.max() <= np.iinfo(np.int32).max else np.int64
        self._candidates = Conjunctions(model.rules, own_conditions(model.skeletons, model.rules))
        self._units = csr_array(
            (packing.unit.astype(self._dtype), (lines, packing.leaf)), shape=(len(self._lines), packing.n_leaves)
        )
        counts = [len(tree.leaves) for tree in model.trees]
        self._spans = _Spans(packing, counts)
        self._tree_of = np.repeat(np.arange(len(counts)), counts)
        ones = np.ones(packing.n_leaves, dtype=np.int64)
        leaves = np.arange(packing.n_leaves)
        self._by_entry = csr_array((ones, (entry_of, leaves)), shape=(self._constant + 1, packing.n_leaves))
        self._bound_leaves = self._leaves_to_bind(entry_of, counts)
        self.bound_entries = entry_of[self._bound_leaves]
        self.trees = len(counts)
        self.canary_shift = packing.width * packing.slots or packing.largest.bit_length() + 1
        self.largest_canary = len(counts) << (CANARY_BITS + self.canary_shift)

    def _leaves_to_bind(self, entry_of: NDArray[np.intp], counts: Sequence[int]) -> NDArray[np.intp]:
        """Return the leaves with a Host's condition of the tree that has the most of them, for its size."""
        edges = np.concatenate([[0], np.cumsum(counts)])
        encrypted = entry_of < self._constant
        shares = [encrypted[begin:end].mean() for begin, end in pairwise(edges.tolist())]
        tree = int(np.argmax(shares)) if shares else 0
        if shares:
            leaves = np.arange(edges[tree], edges[tree + 1])
        else:
            leaves = np.zeros(0, dtype=np.intp)
        return leaves[encrypted[leaves]]

    def encode(
        self,
        columns: Columns,
        n: int,
        canaries: NDArray[np.int64] | None = None,
        offsets: NDArray[np.int64] | None = None,
    ) -> tuple[list[int], NDArray[Any]]:
        """Fold the Guest's decision vectors.

        Parameters
        ----------
        canaries : ndarray of int64, optional
            ``(trees, n)``: numbers that ride above the candidate leaves of each tree.
        offsets : ndarray of int64, optional
            ``(n,)``: numbers that bind each score to its request; set to 0 for people whose leaf of the carrying tree stays at the Guest.

        Returns
        -------
        constant : list of int
            ``(n,)``: base score and candidate leaves without a Host condition.
        entries : ndarray of int32 or int64, or of Python's integers where several outputs or canaries share a number
            ``(n, n_entries)``: the numbers to encrypt; one entry's samples are next to each other in memory.
        """
        sums = np.empty((len(self._lines), n), dtype=self._dtype)
        if canaries is None:
            above = None
        else:
            above = np.empty((self._constant + 1, n), dtype=np.int64)
        bound = np.zeros((len(self._bound_leaves), n), dtype=bool)
        for rows, open_leaves in self._candidates.blocks(columns, n):
            # eq. 8: w_(j,k) where leaf j is a candidate, added up by entry
            sums[:, rows] = self._units @ open_leaves
            if offsets is not None:
                bound[:, rows] = open_leaves[self._bound_leaves]
            if above is not None and canaries is not None:
                above[:, rows] = self._by_entry @ np.where(open_leaves, canaries[self._tree_of, rows], 0)
        packed: NDArray[Any] = sums
        if self.packing.slots > 1:
            entry, slot = np.divmod(self._lines, self.packing.slots)
            packed = np.zeros((self._constant + 1, n), dtype=object)
            np.add.at(packed, entry, self.packing.shifted(sums, slot))
        if above is not None:
            packed = packed.astype(object) + above.astype(object) * (1 << self.canary_shift)
        if offsets is not None:
            offsets[~bound.any(axis=0)] = 0
            if packed.dtype == np.int32:
                packed = packed.astype(np.int64)
            numbers = offsets.astype(packed.dtype)
            for entry, candidate in zip(self.bound_entries.tolist(), bound, strict=True):
                packed[entry, candidate] += numbers[candidate]
        return [self.packing.base + int(v) for v in packed[-1]], packed[:-1].T

    def sum_bits(self, canary: bool) -> int:
        """Return the width of a sum as the Hosts are told it, sign included: above it the last Host puts random numbers."""
        if canary:
            return self.canary_shift + CANARY_BITS
        return self.packing.largest.bit_length() + 1 + GUARD_BITS

    def without_canaries(self, units: Sequence[int], canaries: NDArray[np.int64]) -> list[int]:
        """``(n,)`` decrypted sums less the canaries that they should hold; others than those leave what :meth:`impossible` finds.

        Canaries are compared in their lowest :data:`CANARY_BITS` bits, which is as far as a sum comes back.
        """
        expected = canaries.sum(axis=0).tolist()
        width = self.sum_bits(canary=True)
        return [narrow(unit - (above << self.canary_shift), width) for unit, above in zip(units, expected, strict=True)]

    def margins(self, units: Sequence[int]) -> NDArray[np.float64]:
        """Decrypted integers, ``(n,)`` → ``(n, outputs)``."""
        return self.packing.margins(units)

    def impossible(self, units: Sequence[int], columns: Columns, dither: int = 0) -> NDArray[np.bool_]:
        """Return which sums no choice of one candidate leaf a tree can give: a Host has returned another number (Fed-EINI Proposition 1).

        Parameters
        ----------
        units : sequence of int
            ``(n,)``: decrypted sums, the constant added.
        columns : mapping of str to ndarray
            The Guest's columns, ``(n,)`` each.
        dither : int
            Units by which the last Host may have moved a sum.

        Returns
        -------
        ndarray of bool
            ``(n,)``: whether an output is more than `dither` below the sum of the trees' smallest candidates, or above that of the largest.
        """
        out = ~self.packing.readable(units)
        sums = self.packing.unpack([0 if bad else unit for unit, bad in zip(units, out, strict=True)]).T
        for rows, open_leaves in self._candidates.blocks(columns, len(units)):
            low, high = self._spans.of(open_leaves)
            out[rows] |= ((sums[:, rows] < low - dither) | (sums[:, rows] > high + dither)).any(axis=0)
        return out


class _Spans:
    """Between which numbers a sum of one candidate leaf a tree lies, slot by slot."""

    def __init__(self, packing: Packing, leaves: Sequence[int]) -> None:
        tree = np.repeat(np.arange(len(leaves)), leaves)[packing.leaf]
        order = np.lexsort((tree, packing.slot))
        narrow = np.abs(packing.unit).max(initial=0) < np.iinfo(np.int32).max
        self._far = int(np.iinfo(np.int32).max if narrow else np.iinfo(np.int64).max)
        self._leaf = packing.leaf[order]
        self._unit = packing.unit[order][:, None].astype(np.int32 if narrow else np.int64)
        groups = np.stack([packing.slot, tree])[:, order]
        # of each tree in each slot
        self._first = first = np.flatnonzero(np.diff(groups, axis=1, prepend=-1).any(axis=0))
        self._trees = [slice(*ends) for ends in pairwise([*first.tolist(), len(order)])]
        self._slots, self._of_slot = np.unique(groups[0, first], return_index=True)
        self._base = packing.unpack([packing.base]).T

    def of(self, open_leaves: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the smallest and largest sums of ``(n_leaves, n)`` candidates, base scores included, ``(slots, n)`` each."""
        far = self._far
        if open_leaves.shape[1] <= SMALL_BATCH:
            candidates = open_leaves[self._leaf]
            low = np.minimum.reduceat(np.where(candidates, self._unit, far), self._first)
            high = np.maximum.reduceat(np.where(candidates, self._unit, -far), self._first)
            return self._summed(low), self._summed(high)
        low, high = np.empty((2, len(self._trees), open_leaves.shape[1]), dtype=self._unit.dtype)
        for k, tree in enumerate(self._trees):  # some ten lines at a time stay in the core's cache
            candidates = open_leaves[self._leaf[tree]]
            unit = self._unit[tree]
            np.where(candidates, unit, far).min(axis=0, out=low[k])
            np.where(candidates, unit, -far).max(axis=0, out=high[k])
        return self._summed(low), self._summed(high)

    def _summed(self, of_trees: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        sums = np.repeat(self._base, of_trees.shape[1], axis=1)
        sums[self._slots] += np.add.reduceat(of_trees, self._of_slot, axis=0, dtype=np.int64)
        return sums


class CompiledHost:
    """Stage 1 at a Host, eq. 9: 1 for entries whose conditions of this Host all hold, else 0. Built once a model."""

    def __init__(self, step: Step, rules: Mapping[NodeKey, SplitRule]) -> None:
        self._m = len(step.host_conditions)
        self._conditions = Conjunctions(rules, step.host_conditions)

    def decide(self, columns: Columns, has_record: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the Host's 0/1, ``(n, m)``; one entry's samples are next to each other in memory.

        Parameters
        ----------
        columns : mapping of str to ndarray
            ``(n,)`` each.
        has_record : ndarray of bool
            ``(n,)``: a row without a record counts as missing.
        """
        keep = np.empty((self._m, len(has_record)), dtype=bool)
        for rows, holds in self._conditions.blocks(columns, len(has_record), has_record):
            keep[:, rows] = holds
        return keep.T


def host_plan(folding: Folding, index: int) -> FoldPlan:
    """Return the plan of stage 2 at Host `index` of the chain, eq. 10 and 13: the entries that it masks and those that become one."""
    step = folding.steps[index]
    origin: Sequence[int] = range(folding.n_entries)
    for earlier in folding.steps[:index]:
        origin = [earlier.target[e] for e in origin]
    is_own = tuple(bool(conditions) for conditions in step.host_conditions)
    return FoldPlan(step.target, is_own, step.n_out, tuple(origin), index, len(folding.steps))


def refreshed(folding: Folding) -> dict[str, int]:
    """Return for each Host the ciphertexts of a person that it refreshes, each with an obfuscator of its own."""
    plans = {step.host: host_plan(folding, index) for index, step in enumerate(folding.steps)}
    return {host: plan.n_out - sum(plan.untouched) for host, plan in plans.items()}
