"""How well scores separate: AUC and KS as in Fed-EINI §V-A, log-loss and accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score, roc_curve

from backend.trees.growth import sigmoid


@dataclass(frozen=True)
class Metrics:
    """Quality on one part of the data; NaN where a part holds one class only.

    Attributes
    ----------
    auc : float
        Area under the ROC curve.
    ks : float
        Largest difference of true and false positive rate.
    log_loss : float
    accuracy : float
        At a probability of 0.5.
    n : int
    part : str
        ``training``, ``validation``, ``test`` or what was scored.
    """

    auc: float
    ks: float
    log_loss: float
    accuracy: float
    n: int
    part: str


def measure(labels: NDArray[np.int8], margins: NDArray[np.float64], part: str) -> Metrics:
    """Metrics of logits against 0/1 labels, both ``(n,)``."""
    probabilities = sigmoid(margins)
    one_class = len(np.unique(labels)) < 2
    if one_class:
        auc = ks = float("nan")
    else:
        false_positive, true_positive, _ = roc_curve(labels, margins)
        auc, ks = float(roc_auc_score(labels, margins)), float(np.max(true_positive - false_positive))
    loss = float(log_loss(labels, probabilities, labels=[0, 1])) if len(labels) else float("nan")
    accuracy = float(np.mean((probabilities >= 0.5) == labels)) if len(labels) else float("nan")
    return Metrics(auc, ks, loss, accuracy, len(labels), part)
