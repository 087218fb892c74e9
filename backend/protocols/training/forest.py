"""Random forest at the Guest (Yao et al. §3.1, Alg. 1-4): independent trees on samples of rows and features, grown side by side.

Labels are encrypted once (Alg. 1 line 4); every Host adds them up by percentile bin (Alg. 2) and the Guest decrypts the sums, looks for
the best split of all parties (Alg. 3) and has its owner part the records (Alg. 4). Where we differ:

- The paper's Hosts send encrypted means by bin and tell how many records are in each. Ours add up encrypted ones beside the labels, so
  that only the Guest reads a bin's mean and number.
- The paper encrypts with RIAC, which is broken (SECURITY.md T1); here it is Paillier.
- Eq. 3 is the loss of one record. Averaged over a node that predicts its own shares it is the node's entropy, which is what falls.
- "Completely SecureBoost" (App. B) means that the first tree asks no Host anything. In boosting this shields the later trees, whose
  gradients then say less about the labels. The trees of a forest are independent: here it shields that one tree, and what App. B fears
  (nearly pure leaves below a Host's split) remains true of the others.
- The left and the right side of a split are swapped by the Hosts, not by the Guest: only so the Guest cannot swap them back.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import quantise
from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.errors import ParameterError
from backend.protocols.training.federated_trees import GrownTree, TreeGrower, TreeJob, start
from backend.protocols.training.joint import VALIDATION, Grown, Joint
from backend.protocols.training.label_trees import (
    IMPURITIES,
    RANGES,
    LabelSums,
    check_steps,
    label_sums,
    leaf_table,
)
from backend.protocols.training.parameters import Ranges, TreeProgress, problems_of
from backend.protocols.transport.packing import chunks
from backend.trees.criteria import Impurity, Stops
from backend.trees.ensemble import GuestTree
from backend.trees.metrics import measure
from backend.trees.outputs import Floats, Outputs

Flags = NDArray[np.bool_]
ForestAggregation = Literal["mean", "median"]
TOGETHER = 8  # trees in lockstep: fewer rounds of messages, but progress and a wish to stop wait for all of them
ROWS_AT_ONCE = 1 << 13  # records whose votes of all trees are held at a time


@dataclass(frozen=True)
class ForestParameters:
    """Parameters of a federated random forest.

    Attributes
    ----------
    trees : int
    depth, min_gain, min_samples_split, min_samples_leaf
        When a node stays a leaf: splits above it; the impurity falls by no more than this (ε of Alg. 3; bits for "entropy", the label's
        unit squared for numbers); fewer records than this; a child with fewer records than this.
    bins : int
        P of Alg. 2, percentile bins a feature.
    criterion : {"gini", "entropy"}
        For classes: Gini impurity or information (eq. 3). For labels that are numbers it is always the variance (eq. 2), which for 0/1
        labels is half of Gini's.
    row_sample : float
        Share of the training rows that a tree grows on, drawn without replacement; the default is what a bootstrap sample holds.
    column_sample : float
        Share of all parties' features that a tree may use. Drawn once a tree and not at every split, so that a Host is asked for
        fewer sums; the square root of their number, which is usual at every split, would be too few here.
    aggregation : {"mean", "median"}
        The median has every tree's value decrypted, which tells the Guest more about the paths than their sum.
    shuffle_sides : bool
        The Hosts hide which side of their splits is the upper one (App. B). Then nobody can say in which direction their features
        act, so it is off unless it is asked for.
    complete : bool
        The first tree is grown from the Guest's features alone (App. B, "Completely SecureBoost").
    seed : int
        Draws the 60/20/20 split and every tree's rows and features.
    cipher, key_bits, alignment, score_bits
        As for SecureBoost; leaves are shares of the classes, or means, divided by the number of trees.
    """

    ALGORITHM: ClassVar[str] = "forest"
    RANGES: ClassVar[Ranges] = RANGES | {"trees": (1, 1000), "row_sample": (0.01, 1.0), "column_sample": (0.01, 1.0)}

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
    seed: int = 7
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS
    alignment: str = "dh"
    score_bits: int = 10

    def __post_init__(self) -> None:
        problems = problems_of(self, self.RANGES)
        if self.criterion not in IMPURITIES:
            problems.append(f"criterion is {self.criterion!r}; choose one of {', '.join(IMPURITIES)}.")
        if self.aggregation not in get_args(ForestAggregation):
            problems.append(
                f"aggregation is {self.aggregation!r}; choose one of {', '.join(get_args(ForestAggregation))}."
            )
        if problems:
            raise ParameterError(" ".join(problems))

    def as_dict(self) -> dict[str, object]:
        """Field name → value, for the registry."""
        return asdict(self)


def grow(joint: Joint, parameters: ForestParameters) -> Grown:
    """Grow a forest.

    Raises
    ------
    ParameterError
        The label needs finer leaf weights.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`Conversation.expect`.
    """
    median = parameters.aggregation == "median"
    added = 1 if median else parameters.trees
    check_steps(joint, parameters.score_bits, added)
    stops = Stops(parameters.min_gain, parameters.min_samples_split, parameters.min_samples_leaf)
    sums = label_sums(joint, parameters.criterion, stops, added)
    outputs = Outputs(joint.task, joint.classes, "identity", "median" if median else "sum")
    grower = start(joint, parameters.bins, hide_order=parameters.shuffle_sides)
    grower.send_pairs(sums.batches)
    forest = _Forest(outputs, added)
    began = time.perf_counter()
    for numbers in chunks(parameters.trees, TOGETHER):
        joint.conversation.check()
        jobs = [draw_job(joint, parameters, grower, sums, number) for number in numbers]
        for job, tree in zip(jobs, grower.grow(jobs, parameters.depth), strict=True):
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
    )


def draw_job(joint: Joint, parameters: ForestParameters, grower: TreeGrower, sums: LabelSums, number: int) -> TreeJob:
    """One tree's rows and features: drawn from the seed and its number, whoever grows beside it."""
    draw = np.random.default_rng((parameters.seed, number))
    training = np.flatnonzero(joint.training)
    rows = np.zeros(len(joint.labels), dtype=bool)
    rows[draw.choice(training, max(1, round(parameters.row_sample * len(training))), replace=False)] = True
    features = grower.features
    chosen = draw.choice(len(features), max(1, round(parameters.column_sample * len(features))), replace=False)
    alone = parameters.complete and number == 0
    return TreeJob(
        number,
        sums.criterion,
        rows,
        sums.places,
        None if alone else frozenset(features[i] for i in chosen),
        guest_only=alone,
    )


class _Forest:
    """The trees so far and where they lead the joint records.

    Parameters
    ----------
    outputs : Outputs
    added : int
        Trees of the whole forest if their leaves are to be added up, else 1.
    """

    def __init__(self, outputs: Outputs, added: int) -> None:
        self._outputs, self._added = outputs, added
        self.trees: list[GuestTree] = []
        self._tables: list[Floats] = []
        self._leaves: list[NDArray[np.uint16]] = []
        self._bags: list[Flags] = []

    def add(self, tree: GrownTree, bag: Flags) -> None:
        """One more tree; `bag` are the rows it has grown on, ``(n_joint,)``."""
        self.trees.append(tree.tree)
        self._tables.append(leaf_table(tree.tree, self._outputs))
        self._leaves.append(tree.leaf.astype(np.uint16))
        self._bags.append(bag)

    def predict(self, rows: NDArray[np.intp], bits: int | None = None) -> Floats:
        """``(len(rows), k)`` predictions of the trees so far; with `bits` from rounded leaves, in units of 2**-bits."""
        parts = [self._aggregate(self._votes(rows[r.start : r.stop], bits)) for r in chunks(len(rows), ROWS_AT_ONCE)]
        return np.concatenate([np.zeros((0, self._outputs.count)), *parts])

    def out_of_bag(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats]:
        """Those of `rows` that some tree has not grown on, and the predictions of such trees alone."""
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
        tables = self._tables if bits is None else [quantise(t, bits).astype(np.float64) for t in self._tables]
        return np.stack([table[leaf[rows]] for table, leaf in zip(tables, self._leaves, strict=True)])

    def _aggregate(self, votes: Floats) -> Floats:
        """Over the trees that vote; for the mean as if the forest were complete."""
        if self._outputs.aggregation == "median":
            median: Floats = np.nanmedian(votes, axis=0)
            return median
        voting = np.maximum((~np.isnan(votes)).sum(axis=0), 1)
        total: Floats = np.nansum(votes, axis=0) * (self._added / voting)
        return total


def _progress(joint: Joint, parameters: ForestParameters, forest: _Forest, seconds: float) -> TreeProgress:
    """How well the trees so far predict: training rows out of the bag where there are any, and validation rows."""
    training, validation = np.flatnonzero(joint.training), np.flatnonzero(joint.parts == VALIDATION)
    outputs = Outputs(joint.task, joint.classes, "identity")
    rows, margins = forest.out_of_bag(training)
    if not len(rows):
        rows, margins = training, forest.predict(training)
    fit = measure(joint.labels[rows], margins, "training", outputs)
    check = measure(joint.labels[validation], forest.predict(validation), "validation", outputs)
    return TreeProgress(len(forest.trees), parameters.trees, fit.loss, check.loss, fit.auc, check.auc, seconds)
