"""Fed-EINI (§III, Algorithm 1): each party's decision vector, and how Hosts turn the Guest's encrypted one into a score.

The steps in the paper's order, one function each. Where we differ: leaves that share their Host conditions share one entry
(:mod:`backend.trees.folding`), leaves without Host conditions stay at the Guest, all samples of a message are handled at once, and
every number a Host computed is refreshed before it leaves (the paper's reply can be traced back to the kept leaves by the Guest,
who knows each ciphertext's randomness).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from backend.crypto.cipher import FoldPlan, IntArray
from backend.crypto.fixedpoint import quantise
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import Columns, GuestModel, Leaf, NodeKey, Rule
from backend.trees.folding import Folding, Step, fold_structure


def leaf_units(model: GuestModel) -> list[NDArray[np.int64]]:
    """Leaf weights of each tree as integers at the model's public scale, left to right."""
    out = []
    for tree in model.trees:
        leaves = [tree.nodes[i] for i in tree.leaves]
        out.append(quantise([leaf.weight for leaf in leaves if isinstance(leaf, Leaf)], model.score_bits))
    return out


class CompiledGuest:
    """Stage 1 at the Guest, eq. 8: w_(j,k) for candidate leaves and 0 for the others, folded. Built once a model.

    Attributes
    ----------
    score_bits : int
        Units are 2**-score_bits.
    folding : Folding
    largest : int
        No sum of a sample's entries has a larger absolute value, in units.
    """

    def __init__(self, model: GuestModel) -> None:
        by_tree = leaf_units(model)
        self.score_bits = model.score_bits
        self.folding = folding = fold_structure(model.skeletons, model.guest, model.hosts)
        self.largest = sum(int(np.abs(units).max()) for units in by_tree)
        # the base score is one more leaf of the constant, which stands behind the entries
        units = np.append(np.concatenate(by_tree), quantise(model.base_score, model.score_bits))
        constant = folding.n_entries
        places = [constant if p is None else p for leaves in folding.entry_of_leaf for p in leaves]
        lines = np.array([*places, constant], dtype=np.intp)
        bound = np.zeros(constant + 1, dtype=np.int64)
        np.add.at(bound, lines, np.abs(units))
        self._dtype = np.int32 if bound.max() <= np.iinfo(np.int32).max else np.int64
        self._candidates = Conjunctions(model.rules, [*own_conditions(model.skeletons, model.rules), ()])
        self._units = csr_array(
            (units.astype(self._dtype), (lines, np.arange(len(units)))), shape=(constant + 1, len(units))
        )

    def encode(self, columns: Columns, n: int) -> tuple[NDArray[np.int64], IntArray]:
        """Fold the Guest's decision vectors.

        Returns
        -------
        constant : ndarray of int64
            ``(n,)``: base score and candidate leaves without a Host condition.
        entries : ndarray of int32, or int64 where that is too narrow
            ``(n, n_entries)``: what is encrypted; one entry's samples lie side by side in memory.
        """
        sums = np.empty((self.folding.n_entries + 1, n), dtype=self._dtype)
        for rows, kept in self._candidates.blocks(columns, n):
            sums[:, rows] = self._units @ kept
        return sums[-1].astype(np.int64), sums[:-1].T


class CompiledHost:
    """Stage 1 at a Host, eq. 9: 1 for entries whose conditions of this Host all hold, else 0. Built once a model.

    Parameters
    ----------
    step : Step
    rules : mapping of (tree, node) to Rule
        The Host's own.
    """

    def __init__(self, step: Step, rules: Mapping[NodeKey, Rule]) -> None:
        self._m = len(step.own)
        self._conditions = Conjunctions(rules, step.own)

    def decide(self, columns: Columns, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """``(n, m)``, one entry's samples side by side in memory.

        Parameters
        ----------
        columns : mapping of str to ndarray
            ``(n,)`` each; rows that are not `held` count as missing.
        held : ndarray of bool
            ``(n,)``.
        """
        keep = np.empty((self._m, len(held)), dtype=bool)
        for rows, kept in self._conditions.blocks(columns, len(held), held):
            keep[:, rows] = kept
        return keep.T


def host_plan(folding: Folding, place: int) -> FoldPlan:
    """Stage 2 at the Host at `place` in the chain, eq. 10 and 13: which entries it masks and which become one."""
    step = folding.steps[place]
    origin: Sequence[int] = range(folding.n_entries)
    for earlier in folding.steps[:place]:
        origin = [earlier.target[e] for e in origin]
    own = tuple(bool(conditions) for conditions in step.own)
    return FoldPlan(step.target, own, step.n_out, tuple(origin), place, len(folding.steps))


def to_logits(units: ArrayLike, score_bits: int) -> NDArray[np.float64]:
    """Decrypted integers → logits."""
    return np.asarray(units, dtype=np.float64) / float(1 << score_bits)
