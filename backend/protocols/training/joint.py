"""What every training algorithm starts from at the Guest, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import quantise
from backend.crypto.interface import IntArray, TrainingKeySide
from backend.data.dictionary import ExpectedDirection, Feature, Kind
from backend.data.label import Task
from backend.data.table import PartyTable
from backend.errors import ParameterError
from backend.protocols.training.parameters import TreeProgress, read_constraints
from backend.protocols.transport.channel import Session
from backend.trees.ensemble import GuestTree, NodeKey, SplitRule
from backend.trees.metrics import Metrics, measure
from backend.trees.outputs import Floats, Link, Outputs

TRAINING = 0
VALIDATION = 1
TEST = 2
DIRECTIONS = {ExpectedDirection.UP: 1, ExpectedDirection.DOWN: -1}
FeatureKey = tuple[str, str]  # (party, feature)
LINKS: dict[Task, Link] = {"binary": "logistic", "classes": "softmax", "number": "identity"}  # of boosted margins


class Resumed(Protocol):
    """A training as far as it had come when it was broken off; what is finished from now on is kept.

    Attributes
    ----------
    request : str
        Its name at the Hosts; empty if it cannot go on.
    rounds : list
        What each finished round came to, as JSON has it.
    """

    request: str
    rounds: list[Any]

    def add(self, finished: Any) -> None:
        """Keep one round more."""


class FromTheStart:
    """A training that is kept nowhere: a :class:`Resumed` without rounds."""

    request = ""

    def __init__(self) -> None:
        self.rounds: list[Any] = []

    def add(self, finished: Any) -> None:
        """Nothing: nobody goes on with it."""


@dataclass(frozen=True, repr=False)
class Joint:
    """The records that every party holds, as the Guest knows them: its own columns and labels, in the common order.

    Attributes
    ----------
    conversation : Session
        With the participating Hosts, after the key was offered and the ids were aligned.
    features : mapping of str to tuple of Feature
        Per party, the Guest first and the Hosts in chain order: features offered to the training.
    excluded : mapping of str to tuple of str
        Per party: features that are left out.
    table : PartyTable
        ``n_joint`` records of the Guest.
    labels : ndarray of float64
        ``(n_joint,)``: 0 or 1, the number of the class, or the value to be predicted.
    task : {"binary", "classes", "number"}
    classes : tuple of str
        Names, in the order of their numbers; empty unless the task is "classes".
    parts : ndarray of int8
        ``(n_joint,)``: TRAINING, VALIDATION or TEST.
    weights : ndarray of float64, optional
        ``(n_joint,)``: how much each record counts in training and in its figures, above 0; None = all count the same. No Host gets them:
        they are factors of the numbers that are encrypted.
    resumed : Resumed
        Rounds that need not be grown again.
    """

    conversation: Session
    key: TrainingKeySide
    guest: str
    features: Mapping[str, tuple[Feature, ...]]
    excluded: Mapping[str, tuple[str, ...]]
    table: PartyTable
    labels: NDArray[np.float64]
    task: Task
    classes: tuple[str, ...]
    parts: NDArray[np.int8]
    on_tree: Callable[[TreeProgress], None]
    resumed: Resumed = field(default_factory=FromTheStart)
    weights: NDArray[np.float64] | None = None

    @property
    def training(self) -> NDArray[np.bool_]:
        """``(n_joint,)``: training rows."""
        rows: NDArray[np.bool_] = self.parts == TRAINING
        return rows

    @property
    def weight_of_each(self) -> Floats:
        """``(n_joint,)``: how much each record counts, 1 unless there are weights."""
        if self.weights is None:
            return np.ones(len(self.labels))
        return self.weights

    def directions(self, constraints: str, *, expected: bool = False) -> dict[FeatureKey, int]:
        """Return the direction of predictions with each constrained feature: from `constraints`, else (`expected`) from the dictionary.

        The Guest needs the order of a feature's bins for it, but no threshold.

        Raises
        ------
        ParameterError
            There are several classes, or a constrained feature is not offered or has no order.
        """
        constrained = read_constraints(constraints)
        if self.classes and (constrained or expected):
            name = "constraints" if constrained else "monotone"
            raise ParameterError("constraint_with_classes", parameter=name)
        offered = {f.name: (party, f) for party, features in self.features.items() for f in features}
        for feature in constrained:
            if feature not in offered:
                raise ParameterError("constraint_not_offered", feature=feature, offered=tuple(offered))
            if offered[feature][1].kind is Kind.CATEGORICAL:
                raise ParameterError("constraint_on_categories", feature=feature)
        directions: dict[FeatureKey, int] = {}
        if expected:
            for party, f in offered.values():
                if f.kind is not Kind.CATEGORICAL and f.expected_direction in DIRECTIONS:
                    directions[party, f.name] = DIRECTIONS[f.expected_direction]
        for name, sign in constrained.items():
            party, _ = offered[name]
            directions[party, name] = sign
        return directions

    def boosting_outputs(self, trees: int = 0) -> Outputs:
        """Outputs of `trees` boosted trees, which take turns between the classes."""
        k = len(self.classes)
        return Outputs(
            self.task, self.classes, LINKS[self.task], of_tree=tuple(t % k for t in range(trees)) if k else ()
        )

    def base_margins(self, weights: Floats, score_bits: int) -> Floats:
        """``(k,)`` multiples of 2**-score_bits: the constant prediction, i.e. log-odds, log of each class's share, or mean.

        Parameters
        ----------
        weights : ndarray of float64
            ``(n_joint,)``: how much each record counts.
        """
        labels = self.labels[self.training]
        weights = weights[self.training]
        if self.task == "number":
            base = np.array([np.average(labels, weights=weights)])
        else:
            sums = np.bincount(labels.astype(np.intp), weights=weights, minlength=len(self.classes) or 2)
            shares = np.clip(sums / weights.sum(), 1e-6, 1 - 1e-6)
            base = np.log(shares if self.classes else shares[1:] / (1 - shares[1:]))
        rounded: Floats = quantise(base, score_bits) / float(1 << score_bits)
        return rounded

    def measure(
        self, rows: NDArray[np.bool_] | NDArray[np.intp], margins: Floats, outputs: Outputs, part: str = ""
    ) -> Metrics:
        """Return metrics of some records, each by its weight; `margins` are theirs, ``(len(rows), k)``."""
        return measure(self.labels[rows], margins, part, outputs, None if self.weights is None else self.weights[rows])

    def report(self, tree: int, trees: int, margins: Floats, outputs: Outputs, seconds: float) -> TreeProgress:
        """Measure ``(n_joint, k)`` margins after round `tree` of `trees` and hand the figures to `on_tree`."""
        fit = self.measure(self.training, margins[self.training], outputs)
        validation = self.parts == VALIDATION
        check = self.measure(validation, margins[validation], outputs)
        progress = TreeProgress(tree, trees, fit.loss, check.loss, fit.auc, check.auc, seconds)
        self.on_tree(progress)
        return progress


@dataclass(frozen=True, eq=False, repr=False)
class GrownTrees:
    """Trees, and what they predict of the joint records.

    Attributes
    ----------
    margins : ndarray of float64
        ``(n_joint, outputs.count)``: predictions on the scale of the leaf weights.
    """

    trees: tuple[GuestTree, ...]
    margins: NDArray[np.float64]


@dataclass(frozen=True)
class Grown(GrownTrees):
    """A grown model at the Guest, before the Hosts have kept their partial models.

    Attributes
    ----------
    base_scores : tuple of float
        ``(outputs.count,)``.
    units : ndarray of int64 or None
        The same as released, in units of 2**-score_bits; None if it is known only after scoring.
    label_bits : float or None
        Most that a set of training records told to a Host tells about labels, see :mod:`backend.protocols.training.label_bound`; None
        if the label is a number or no sets are told.
    choice_bits : float
        Bits about labels that the choice of splits may have told a Host which bins its records as it likes, the most of any Host; see
        :func:`backend.protocols.training.label_bound.choice_bits`.
    sides_hidden : bool
        Whether the Hosts keep to themselves which side of a split holds the lower values.
    leaves : tuple of ndarray of uint16
        Per tree, ``(n_joint,)``: number of the leaf that each joint record has come to; empty if the Guest does not know.
    """

    rules: Mapping[NodeKey, SplitRule]
    base_scores: tuple[float, ...]
    outputs: Outputs
    units: IntArray | None
    sides_hidden: bool = False
    label_bits: float | None = None
    choice_bits: float = 0.0
    leaves: tuple[NDArray[np.uint16], ...] = ()
