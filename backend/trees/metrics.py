"""How well predictions fit: AUC and KS as in Fed-EINI §V-A, log-loss and accuracy; for numbers RMSE and R²."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.trees.outputs import ONE_LOGIT, Outputs

NAN = float("nan")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Metrics:
    """Quality on one part of the data; NaN where a figure does not apply to the task or a class is absent.

    Attributes
    ----------
    auc : float
        Area under the ROC curve; several classes: mean of each against the rest.
    ks : float
        Largest difference of true and false positive rate; two classes only.
    accuracy : float
        Two classes: at a probability of 0.5; several: the most probable one.
    part : str
        ``training``, ``validation``, ``test`` or what was scored.
    rmse, r2 : float
        Numbers only: root mean squared error, and the share of the variance that is explained.
    """

    auc: float
    ks: float
    log_loss: float
    accuracy: float
    n: int
    part: str
    rmse: float = NAN
    r2: float = NAN

    @property
    def loss(self) -> float:
        """The loss that training minimises: log-loss, or RMSE for numbers."""
        return self.log_loss if np.isnan(self.rmse) else self.rmse


def measure(labels: Floats, margins: Floats, part: str, outputs: Outputs = ONE_LOGIT) -> Metrics:
    """Metrics of margins against labels.

    Parameters
    ----------
    labels : ndarray of float64
        ``(n,)``: 0/1, number of the class, or value.
    margins : ndarray of float64
        ``(n, outputs.count)``, or ``(n,)`` where that is 1.
    """
    n = len(labels)
    predictions = outputs.predict(margins.reshape(n, outputs.count))
    if n == 0:
        return Metrics(NAN, NAN, NAN, NAN, 0, part)
    if outputs.task == "number":
        return _of_numbers(labels, predictions[:, 0], part)
    if outputs.task == "classes":
        return _of_classes(labels, predictions, part)
    return _of_two(labels, margins.reshape(n), predictions[:, 0], part)


def _of_two(labels: Floats, order: Floats, predictions: Floats, part: str) -> Metrics:
    from sklearn.metrics import log_loss, roc_auc_score, roc_curve  # noqa: PLC0415 - slow to import, and few runs need it

    n, loss = len(labels), float(log_loss(labels, predictions, labels=[0, 1]))
    accuracy = float(np.mean((predictions >= 0.5) == labels))
    if len(np.unique(labels)) < 2:
        return Metrics(NAN, NAN, loss, accuracy, n, part)
    false_positive, true_positive, _ = roc_curve(labels, order)
    ks = float(np.max(true_positive - false_positive))
    return Metrics(float(roc_auc_score(labels, order)), ks, loss, accuracy, n, part)


def _of_classes(labels: Floats, predictions: Floats, part: str) -> Metrics:
    from sklearn.metrics import log_loss, roc_auc_score  # noqa: PLC0415 - as above

    classes = predictions.shape[1]
    present = np.unique(labels)
    several = [roc_auc_score(labels == k, predictions[:, int(k)]) for k in present] if len(present) > 1 else []
    loss = float(log_loss(labels, predictions, labels=list(range(classes))))
    accuracy = float(np.mean(predictions.argmax(axis=1) == labels))
    return Metrics(float(np.mean(several)) if several else NAN, NAN, loss, accuracy, len(labels), part)


def _of_numbers(labels: Floats, predictions: Floats, part: str) -> Metrics:
    squared = float(np.mean((predictions - labels) ** 2))
    variance = float(np.var(labels))
    r2 = 1.0 - squared / variance if variance else NAN
    return Metrics(NAN, NAN, NAN, NAN, len(labels), part, rmse=squared**0.5, r2=r2)
