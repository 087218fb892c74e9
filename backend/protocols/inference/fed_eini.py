"""Fed-EINI (§III, Algorithm 1): each party's decision vector, and how Hosts turn the Guest's encrypted one into a score.

The steps in the paper's order, one function each. Where we differ: leaves that share their Host conditions share one entry
(:mod:`backend.trees.folding`), leaves without Host conditions stay at the Guest, all samples of a message are handled at once, and
every number a Host computed is refreshed before it leaves (the paper's reply can be traced back to the kept leaves by the Guest,
who knows each ciphertext's randomness).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backend.crypto.cipher import FoldPlan
from backend.crypto.fixedpoint import quantise
from backend.trees.candidates import candidate_leaves, decide
from backend.trees.ensemble import Columns, GuestModel, Leaf, NodeKey, Rule
from backend.trees.folding import Folding, Step

IntArray = NDArray[np.int64]


def leaf_units(model: GuestModel) -> list[IntArray]:
    """Leaf weights of each tree as integers at the model's public scale, left to right."""
    out = []
    for tree in model.trees:
        leaves = [tree.nodes[i] for i in tree.leaves]
        out.append(quantise([leaf.weight for leaf in leaves if isinstance(leaf, Leaf)], model.score_bits))
    return out


def guest_decision_vectors(model: GuestModel, folding: Folding, columns: Columns, n: int) -> tuple[IntArray, IntArray]:
    """Stage 1 at the Guest, eq. 8: w_(j,k) for candidate leaves and 0 for the others, folded.

    Returns
    -------
    constant : ndarray of int64
        ``(n,)``: base score and candidate leaves without a Host condition.
    entries : ndarray of int64
        ``(n, n_entries)``: what is encrypted.
    """
    base = int(quantise(model.base_score, model.score_bits))
    constant = np.full(n, base, dtype=np.int64)
    entries = np.zeros((n, folding.n_entries), dtype=np.int64)
    candidates = candidate_leaves(model.skeletons, model.rules, columns, n)
    for kept, units, places in zip(candidates, leaf_units(model), folding.entry_of_leaf, strict=True):
        for j, place in enumerate(places):
            target = constant if place is None else entries[:, place]
            target += kept[:, j] * units[j]
    return constant, entries


def host_decision_vectors(
    step: Step, rules: Mapping[NodeKey, Rule], columns: Columns, held: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Stage 1 at a Host, eq. 9: 1 for entries whose conditions of this Host all hold, else 0.

    Parameters
    ----------
    step : Step
    rules : mapping of (tree, node) to Rule
        The Host's own.
    columns : mapping of str to ndarray
        ``(n,)`` each; rows that are not `held` count as missing.
    held : ndarray of bool
        ``(n,)``.

    Returns
    -------
    ndarray of bool
        ``(n, m)``.
    """
    n = len(held)
    goes_left: dict[NodeKey, NDArray[np.bool_]] = {}
    keep = np.ones((n, len(step.own)), dtype=bool)
    for e, conditions in enumerate(step.own):
        for tree, node, left in conditions:
            if (tree, node) not in goes_left:
                rule = rules[tree, node]
                goes_left[tree, node] = np.where(held, decide(rule, columns, n), rule.default_left)
            keep[:, e] &= goes_left[tree, node] == left
    return keep


def host_plan(step: Step) -> FoldPlan:
    """Stage 2 at a Host, eq. 10 and 13: which entries it masks and which become one."""
    return FoldPlan(step.target, tuple(bool(conditions) for conditions in step.own), step.n_out)


def to_logits(units: ArrayLike, score_bits: int) -> NDArray[np.float64]:
    """Decrypted integers → logits."""
    return np.asarray(units, dtype=np.float64) / float(1 << score_bits)
