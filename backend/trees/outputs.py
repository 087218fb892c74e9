"""What the sums of a model's leaf weights mean: one number or one per class, added up or the median over trees."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from backend.data.label import Task

Floats = NDArray[np.float64]
Link = Literal["logistic", "softmax", "identity"]
Aggregation = Literal["sum", "median"]


@dataclass(frozen=True)
class Outputs:
    """How a sample's leaves become its prediction.

    Attributes
    ----------
    task : {"binary", "classes", "number"}
    classes : tuple of str
        Names of the classes in their order; empty unless the task is "classes".
    link : {"logistic", "softmax", "identity"}
        From margins to predictions: boosting adds up logits, a forest and a decision tree add up shares, a regression numbers.
    aggregation : {"sum", "median"}
        Over the trees; for the median every tree's own value is decrypted, which discloses more about the paths.
    of_tree : tuple of int
        Per tree the output it adds to, where trees grow for one class each; empty if every leaf holds all outputs.
    spread : int
        Log2, rounded, of the standard deviation of a label that is a number (:meth:`for_labels`); else 0.
    """

    task: Task = "binary"
    classes: tuple[str, ...] = ()
    link: Link = "logistic"
    aggregation: Aggregation = "sum"
    of_tree: tuple[int, ...] = ()
    spread: int = 0

    @property
    def count(self) -> int:
        """Numbers per prediction: one per class, else one."""
        return len(self.classes) or 1

    @property
    def scale(self) -> int:
        """Log2 of the amount that corresponds to 1 on a logit: 0 for logits, -2 for shares, the label's spread for numbers.

        A share moves by at most a quarter of its logit's move: the logistic function is steepest at 0, if its slope is 1/4.
        """
        if self.task == "number":
            return self.spread
        return -2 if self.link == "identity" else 0

    def for_labels(self, labels: Floats) -> Outputs:
        """The same with the spread of ``(n,)`` labels, if they are numbers that differ."""
        if self.task == "number":
            deviation = float(np.std(labels))
        else:
            deviation = 0.0
        if deviation > 0:
            return replace(self, spread=round(math.log2(deviation)))
        return self

    def margin_at(self, probability: float) -> float:
        """Inverse of :meth:`predict` for the probability of a positive label; infinite at a logit of 0 or 1."""
        if self.link == "identity":
            return probability
        if probability in (0.0, 1.0):
            return math.inf * (2 * probability - 1)
        return math.log(probability / (1 - probability))

    def slots(self, trees: int) -> int:
        """Numbers decrypted per sample: for the median those of every tree."""
        return self.count * (trees if self.aggregation == "median" else 1)

    def predict(self, margins: Floats) -> Floats:
        """Probabilities, shares or values.

        Parameters
        ----------
        margins : ndarray of float64
            ``(n, count)``: base score and leaf weights added up.

        Returns
        -------
        ndarray of float64
            The same shape. Binary: the probability of the positive label. Classes: one probability each.
        """
        if self.link == "logistic":
            return sigmoid(margins)
        if self.link == "softmax":
            return softmax(margins)
        if self.task == "number":
            return margins
        shares = np.clip(margins, 0.0, 1.0)
        return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12) if self.task == "classes" else shares


ONE_LOGIT = Outputs()


def sigmoid(margins: Floats) -> Floats:
    """Return the probability of the positive label, without overflow; any shape."""
    # 1 / (1 + e^-m) for m ≥ 0, e^m / (1 + e^m) for m < 0
    numerator = np.where(margins >= 0, 1.0, np.exp(np.minimum(margins, 0)))
    probabilities: Floats = numerator / (1.0 + np.exp(-np.abs(margins)))
    return probabilities


def softmax(margins: Floats) -> Floats:
    """Probabilities of the classes, ``(n, classes)``, without overflow."""
    powers = np.exp(margins - margins.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares
