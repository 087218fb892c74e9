"""Random forest at the Guest (Yao et al. §3.1, Alg. 1-4): independent trees on samples of rows and features, grown side by side.

Labels are encrypted once (Alg. 1 line 4); every Host adds them up by percentile bin (Alg. 2), the Guest decrypts the sums, finds the best
split of all parties (Alg. 3), and its owner partitions the records (Alg. 4). Where we differ:

- The paper's Hosts send encrypted means by bin and the number of records in each. Ours add up encrypted ones beside the labels, so only
  the Guest reads a bin's mean and count.
- The paper encrypts with RIAC, which is broken (docs/attacks.md T1); we use Paillier.
- Eq. 3 is the loss of one record. Averaged over a node that predicts its own shares it is the node's entropy, which is what we reduce.
- "Completely SecureBoost" (App. B): the first tree involves no Host. In boosting this protects the later trees, whose gradients then say
  less about the labels. The trees of a forest are independent: only that one tree is protected, and the risk that App. B names (nearly
  pure leaves below a Host's split) remains for the others.
- The sides of a split are swapped by the Hosts, not by the Guest, which otherwise could swap them back.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import quantise
from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.jobs import work
from backend.protocols.training.federated_trees import GrownTree, TreeGrower, TreeJob, start
from backend.protocols.training.joint import VALIDATION, Grown, Joint
from backend.protocols.training.label_trees import RANGES, LabelSums, check_steps, label_sums, leaf_table
from backend.protocols.training.parameters import (
    USUAL_CIPHER,
    CheckedParameters,
    ForestAggregation,
    Ranges,
    TreeProgress,
)
from backend.protocols.training.rounds import round_of
from backend.protocols.transport.packing import chunks
from backend.remark import Remark
from backend.trees.criteria import Impurity, Stops
from backend.trees.ensemble import GuestTree
from backend.trees.outputs import Floats, Outputs

Flags = NDArray[np.bool_]
TREES_A_ROUND = (
    8  # trees that grow in lockstep: fewer rounds of messages, but progress and cancellation wait for all of them
)
ROWS_AT_ONCE = 1 << 13  # records whose votes of all trees are in memory at a time


@dataclass(frozen=True)
class ForestParameters(CheckedParameters):
    """Parameters of a federated random forest.

    Attributes
    ----------
    depth, min_gain, min_samples_split, min_samples_leaf
        A node stays a leaf at this depth; if the impurity falls by no more than this (ε of Alg. 3; bits for "entropy", the label's unit
        squared for numbers); with fewer records than this; if a child has fewer records than this.
    bins : int
        P of Alg. 2, percentile bins a feature.
    criterion : {"gini", "entropy"}
        For classes: Gini impurity or information (eq. 3). For labels that are numbers it is always the variance (eq. 2), which for 0/1
        labels is half of Gini's.
    row_sample : float
        Share of the training rows that a tree grows on, drawn without replacement; the default is what a bootstrap sample holds.
    column_sample : float
        Share of all parties' features that each split is chosen from, drawn for every node as scikit-learn does; 0 is the square root
        of their number. Hosts add up all features: drawn once a tree they would add up fewer, but trees without the feature that
        decides most know little (docs/training.md has the figures).
    aggregation : {"mean", "median"}
        For the median every tree's value is decrypted, which discloses more about the paths than their sum.
    shuffle_sides : bool
        The Hosts hide which side of their splits is the upper one (App. B). The direction in which their features act is then
        unknown, so it is off by default.
    complete : bool
        The first tree is grown from the Guest's features alone (App. B, "Completely SecureBoost").
    seed : int
        Draws the 60/20/20 split and every tree's rows and features.
    min_node, constraints, cipher, key_bits, alignment, score_bits, weights
        As for SecureBoost; leaves are shares of the classes, or means, divided by the number of trees.
    """

    ALGORITHM: ClassVar[str] = "forest"
    RANGES: ClassVar[Ranges] = RANGES | {"trees": (1, 1000), "row_sample": (0.01, 1.0), "column_sample": (0.0, 1.0)}

    trees: int = 20
    depth: int = 6
    bins: int = 100
    criterion: Impurity = "gini"
    min_gain: float = 0.0
    min_samples_split: int = 2
    min_samples_leaf: int = 5
    row_sample: float = 0.632
    column_sample: float = 0.6
    aggregation: ForestAggregation = "mean"
    shuffle_sides: bool = False
    complete: bool = False
    min_node: int = 1
    seed: int = 7
    cipher: Cipher = USUAL_CIPHER
    key_bits: int = KEY_BITS
    alignment: str = "dh"
    score_bits: int = 10
    constraints: str = ""
    weights: str = ""

    def problems(self) -> list[Remark]:
        """Return what is wrong with ranges and choices, and constraints that cannot be held."""
        problems = super().problems()
        if self.constraints and self.shuffle_sides:
            problems.append(Remark("constraint_with_hidden_sides"))
        return problems


def grow(joint: Joint, parameters: ForestParameters) -> Grown:
    """Grow a forest.

    Raises
    ------
    ParameterError
        The label needs finer leaf weights.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`Session.expect`.
    """
    median = parameters.aggregation == "median"
    n_added = 1 if median else parameters.trees
    check_steps(joint, parameters.score_bits, n_added)
    directions = joint.directions(parameters.constraints)
    stops = Stops(parameters.min_gain, parameters.min_samples_split, parameters.min_samples_leaf)
    sums = label_sums(joint, parameters.criterion, stops, n_added)
    outputs = Outputs(joint.task, joint.classes, "identity", "median" if median else "sum")
    grower = start(joint, parameters.bins, hide_order=parameters.shuffle_sides, min_node=parameters.min_node)
    encrypted = grower.encrypted_share / parameters.trees  # all trees grow on the pairs of one sending
    together = list(chunks(parameters.trees, TREES_A_ROUND))
    with work.part(0.0, encrypted):
        grower.send_pairs(sums.batches, guest_only=len(joint.resumed.rounds) >= len(together))
    forest = _Forest(outputs, n_added)
    began = time.perf_counter()
    for index, numbers in enumerate(together):
        joint.conversation.check()
        jobs = []
        for number in numbers:
            jobs.append(replace(draw_job(joint, parameters, grower, sums, number), directions=directions))
        start_share = encrypted + (1 - encrypted) * numbers.start / parameters.trees
        end_share = encrypted + (1 - encrypted) * numbers.stop / parameters.trees
        with work.part(start_share, end_share):
            grow = partial(grower.grow, jobs, parameters.depth)
            for job, tree in zip(jobs, round_of(joint, grower, index, numbers.start, grow), strict=True):
                forest.add(tree, job.rows)
            joint.on_tree(_progress(joint, parameters, forest, time.perf_counter() - began))
    every = np.arange(len(joint.labels))
    return Grown(
        trees=tuple(forest.trees),
        rules=dict(grower.rules),
        base_scores=(0.0,) * outputs.count,
        outputs=outputs,
        margins=forest.predict(every),
        units=np.rint(forest.predict(every, parameters.score_bits)).astype(np.int64),
        sides_hidden=parameters.shuffle_sides,
        label_bits=grower.label_bits,
        choice_bits=max(grower.choice_bits.values(), default=0.0),
        leaves=tuple(forest.leaves),
    )


def draw_job(joint: Joint, parameters: ForestParameters, grower: TreeGrower, sums: LabelSums, number: int) -> TreeJob:
    """One tree's rows, drawn from the seed and its number, independent of the trees grown beside it."""
    draw = np.random.default_rng((parameters.seed, number))
    training = np.flatnonzero(joint.training)
    rows = np.zeros(len(joint.labels), dtype=bool)
    rows[draw.choice(training, max(1, round(parameters.row_sample * len(training))), replace=False)] = True
    count = len(grower.features)
    share = parameters.column_sample
    if share == 0:
        a_split = round(np.sqrt(count))
    else:
        a_split = round(share * count)
    alone = parameters.complete and number == 0
    return TreeJob(
        number,
        sums.criterion,
        rows,
        sums.batch_numbers,
        features_a_split=max(1, a_split),
        seed=parameters.seed,
        guest_only=alone,
    )


class _Forest:
    """The trees so far and the leaves of the joint records.

    Parameters
    ----------
    added : int
        Trees of the whole forest if their leaves are to be added up, else 1.
    """

    def __init__(self, outputs: Outputs, n_added: int) -> None:
        self._outputs = outputs
        self._added = n_added
        self.trees: list[GuestTree] = []
        self._tables: list[Floats] = []
        self.leaves: list[NDArray[np.uint16]] = []
        self._bags: list[Flags] = []

    def add(self, tree: GrownTree, bag: Flags) -> None:
        """Add a tree; `bag` are the rows it has grown on, ``(n_joint,)``."""
        self.trees.append(tree.tree)
        self._tables.append(leaf_table(tree.tree, self._outputs))
        self.leaves.append(tree.leaf.astype(np.uint16))
        self._bags.append(bag)

    def predict(self, rows: NDArray[np.intp], bits: int | None = None) -> Floats:
        """``(len(rows), k)`` predictions of the trees so far; with `bits` from rounded leaves, in units of 2**-bits."""
        parts = []
        for r in chunks(len(rows), ROWS_AT_ONCE):
            parts.append(self._aggregate(self._votes(rows[r.start : r.stop], bits)))
        return np.concatenate([np.zeros((0, self._outputs.count)), *parts])

    def out_of_bag(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats]:
        """Those of `rows` that some tree has not grown on, and the predictions of these trees only."""
        free = ~np.all([bag[rows] for bag in self._bags], axis=0)
        rows = rows[free]
        parts = []
        for r in chunks(len(rows), ROWS_AT_ONCE):
            here = rows[r.start : r.stop]
            bags = np.array([bag[here] for bag in self._bags])
            parts.append(self._aggregate(np.where(bags[:, :, None], np.nan, self._votes(here, None))))
        return rows, np.concatenate([np.zeros((0, self._outputs.count)), *parts])

    def _votes(self, rows: NDArray[np.intp], bits: int | None) -> Floats:
        """``(trees, len(rows), k)``: the leaf of every tree."""
        if bits is None:
            tables = self._tables
        else:
            tables = [quantise(t, bits).astype(np.float64) for t in self._tables]
        return np.stack([table[leaf[rows]] for table, leaf in zip(tables, self.leaves, strict=True)])

    def _aggregate(self, votes: Floats) -> Floats:
        """Over the trees that vote; a mean is scaled up to the complete forest."""
        if self._outputs.aggregation == "median":
            median: Floats = np.nanmedian(votes, axis=0)
            return median
        voting = np.maximum((~np.isnan(votes)).sum(axis=0), 1)
        total: Floats = np.nansum(votes, axis=0) * (self._added / voting)
        return total


def _progress(joint: Joint, parameters: ForestParameters, forest: _Forest, seconds: float) -> TreeProgress:
    """Figures of the trees so far: out-of-bag training rows if there are any, and validation rows."""
    training = np.flatnonzero(joint.training)
    validation = np.flatnonzero(joint.parts == VALIDATION)
    outputs = Outputs(joint.task, joint.classes, "identity")
    rows, margins = forest.out_of_bag(training)
    if not len(rows):
        rows = training
        margins = forest.predict(training)
    fit = joint.measure(rows, margins, outputs)
    check = joint.measure(validation, forest.predict(validation), outputs)
    return TreeProgress(len(forest.trees), parameters.trees, fit.loss, check.loss, fit.auc, check.auc, seconds)
