"""How well predictions fit: AUC and KS as in Fed-EINI §V-A, Brier score, log-loss and accuracy; for numbers RMSE, MAE and R².

Every figure is of weighted records, for several weightings at once, so that a bootstrap costs one call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.data.rounding import RoundedOrNan
from backend.trees.outputs import ONE_LOGIT, Outputs

NAN = float("nan")
MIN_PROBABILITY = float(np.finfo(np.float64).eps)  # smaller ones count as this in a logarithm, as in scikit-learn
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Metrics:
    """Quality on one part of the data; NaN if a figure does not apply to the task or a class is absent.

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

    auc: RoundedOrNan
    ks: RoundedOrNan
    log_loss: RoundedOrNan
    accuracy: RoundedOrNan
    n: int
    part: str
    rmse: RoundedOrNan = NAN
    r2: RoundedOrNan = NAN

    @property
    def loss(self) -> float:
        """The loss that training minimises: log-loss, or RMSE for numbers."""
        return self.log_loss if np.isnan(self.rmse) else self.rmse


def measure(
    labels: Floats, margins: Floats, part: str, outputs: Outputs = ONE_LOGIT, weights: Floats | None = None
) -> Metrics:
    """Return the metrics of margins against labels.

    Parameters
    ----------
    labels : ndarray of float64
        ``(n,)``: 0/1, number of the class, or value.
    margins : ndarray of float64
        ``(n, outputs.count)``, or ``(n,)`` if that is 1.
    weights : ndarray of float64, optional
        ``(n,)``: the weight of each record; None = equal weights. The metrics' ``n`` counts records.
    """
    n = len(labels)
    if n == 0:
        return Metrics(NAN, NAN, NAN, NAN, 0, part)
    margins = margins.reshape(n, outputs.count)
    counted = np.ones(n) if weights is None else weights
    figures = weighted_figures(labels, margins, outputs.predict(margins), outputs.task, counted[None])
    value = {name: float(values[0]) for name, values in figures.items()}
    auc, ks, loss, accuracy, rmse, r2 = (
        value.get(name, NAN) for name in ("auc", "ks", "log_loss", "accuracy", "rmse", "r2")
    )
    return Metrics(auc, ks, loss, accuracy, n, part, rmse=rmse, r2=r2)


def weighted_figures(
    labels: Floats, margins: Floats, predicted: Floats, task: str, weights: Floats
) -> Mapping[str, Floats]:
    """Every figure of the task on weighted records, ``(draws,)`` each; NaN if it is undefined.

    Parameters
    ----------
    labels : ndarray of float64
        ``(n,)``: 0/1, number of the class, or value.
    margins, predicted : ndarray of float64
        ``(n, outputs.count)``; the second are probabilities or values.
    task : {"binary", "classes", "number"}
    weights : ndarray of float64
        ``(draws, n)``: how often each record counts.
    """
    n = weights.sum(axis=1)
    if task == "number":
        return _of_numbers(labels, predicted[:, 0], weights, n)
    if task == "classes":
        present = np.unique(labels)
        one_against_rest = []
        for k in present:
            one_against_rest.append(auc((labels == k).astype(float), predicted[:, int(k)], weights))
        of_true_class = predicted[np.arange(len(labels)), labels.astype(np.intp)]
        return {
            "accuracy": weights @ (predicted.argmax(axis=1) == labels) / n,
            "auc": np.mean(one_against_rest, axis=0) if len(present) > 1 else np.full(len(n), NAN),
            "log_loss": weights @ -np.log(np.maximum(of_true_class, MIN_PROBABILITY)) / n,
        }
    probability = predicted[:, 0]
    of_true_class = np.clip(np.where(labels > 0, probability, 1 - probability), MIN_PROBABILITY, 1.0)
    # ranked by margin: probabilities next to 0 or 1 round to ties
    by_score = _by_score(labels, margins[:, 0], weights)
    return {
        "auc": _area(*by_score),
        "ks": _lead(*by_score),
        "brier": weights @ (probability - labels) ** 2 / n,
        "log_loss": weights @ -np.log(of_true_class) / n,
        "accuracy": weights @ ((probability >= 0.5) == labels) / n,
    }


def auc(labels: Floats, scores: Floats, weights: Floats) -> Floats:
    """Area under the ROC curve of weighted records: the chance that a positive one is above a negative one, ties half.

    Parameters
    ----------
    labels, scores : ndarray of float64
        ``(n,)``; labels 0 or 1.
    weights : ndarray of float64
        ``(draws, n)``: how often each record counts.

    Returns
    -------
    ndarray of float64
        ``(draws,)``; NaN if a class is absent.
    """
    return _area(*_by_score(labels, scores, weights))


def ks(labels: Floats, scores: Floats, weights: Floats) -> Floats:
    """Largest lead of the true over the false positive rate; shapes as :func:`auc`."""
    return _lead(*_by_score(labels, scores, weights))


def _area(positive: Floats, negative: Floats) -> Floats:
    """AUC from the weights at each score."""
    below = np.cumsum(negative, axis=1) - negative
    pairs = positive.sum(axis=1) * negative.sum(axis=1)
    wins = np.einsum("ij,ij->i", positive, below + negative / 2)
    areas: Floats = np.divide(wins, pairs, out=np.full(len(pairs), NAN), where=pairs > 0)
    return areas


def _lead(positive: Floats, negative: Floats) -> Floats:
    """Return KS from the weights at each score."""
    below = np.cumsum(positive, axis=1)
    others_below = np.cumsum(negative, axis=1)
    positives = below[:, -1:]
    negatives = others_below[:, -1:]
    has_both = ((positives > 0) & (negatives > 0))[:, 0]
    with np.errstate(invalid="ignore"):  # 0/0 if a class is absent
        widest = (others_below / negatives - below / positives).max(axis=1)
    lead: Floats = np.where(has_both, widest, NAN)
    return lead


def _by_score(labels: Floats, scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weights of positive and negative records at each score, lowest first: ``(draws, scores)`` each."""
    if (np.diff(scores) < 0).any():
        order = np.argsort(scores, kind="stable")
        labels = labels[order]
        scores = scores[order]
        weights = weights[:, order]
    starts = np.flatnonzero(np.diff(scores, prepend=-np.inf))
    positive = np.add.reduceat(weights * (labels > 0), starts, axis=1)
    return positive, np.add.reduceat(weights, starts, axis=1) - positive


def _of_numbers(labels: Floats, predicted: Floats, weights: Floats, n: Floats) -> Mapping[str, Floats]:
    squared = weights @ (labels - predicted) ** 2 / n
    centred = labels - labels.mean()
    variance = weights @ centred**2 / n - (weights @ centred / n) ** 2
    explained = 1 - np.divide(squared, variance, out=np.full(len(n), NAN), where=variance > 0)
    return {"rmse": np.sqrt(squared), "mae": weights @ np.abs(labels - predicted) / n, "r2": explained}
