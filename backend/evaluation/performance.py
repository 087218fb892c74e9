"""How good a model is and on whom that was measured: figures with intervals, and what ROC, KS, calibration and stability plots draw.

Pure functions of labels and margins. Knows no person's id and no feature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

from backend.fairness.disparity import wilson
from backend.trees.outputs import Outputs

RESAMPLES = 500
CONFIDENCE = 0.95
BINS = 10  # of a calibration table, and of a comparison of two parts
BARS = 20  # of a distribution
POINTS = 200  # of a curve, at most
SMALLEST = 1e-15  # a probability below it counts as it in a logarithm
BLOCK = 2_000_000  # weights held at a time: 16 MB

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """One figure of quality with its 95 % interval: percentiles over records drawn with replacement.

    It says what other records of the same kind would have given, the model being what it is; another training is not in it.

    Attributes
    ----------
    name : {"auc", "ks", "brier", "log_loss", "accuracy", "rmse", "mae", "r2"}
    """

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Calibration:
    """Records with predictions next to each other: what was predicted and what came.

    Attributes
    ----------
    n : int
    predicted, observed : float
        Means: of probabilities and of the label (of several classes: of the predicted one's probability, and how often it was right), or
        of predicted and true values.
    low, high : float
        95 % interval of `observed`: Wilson's of a share, else 1.96 standard errors.
    """

    n: int
    predicted: float
    observed: float
    low: float
    high: float


@dataclass(frozen=True)
class Separation:
    """The two outcomes' cumulative distributions over the probability, and ROC: the same curve on other axes.

    Attributes
    ----------
    cutoffs : tuple of float
        Falling probabilities; a record is declined at or above.
    true_positive, false_positive : tuple of float
        Share of the positive and of the other records at or above each.
    widest : int
        Place of the cut-off where the two are farthest apart, which is KS.
    """

    cutoffs: tuple[float, ...]
    true_positive: tuple[float, ...]
    false_positive: tuple[float, ...]
    widest: int


@dataclass(frozen=True)
class Spread:
    """A distribution in bars of one width.

    Attributes
    ----------
    edges : tuple of float
        One more than bars.
    counts : tuple of tuple of int
        Records a bar: of the negative and of the positive ones over the probability, or one row of residuals (true less predicted).
    """

    edges: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Performance:
    """A model on one part of the data; what does not apply to its task is None or empty.

    Attributes
    ----------
    counts : tuple of int
        Records of each outcome (negative and positive, or by class); empty for numbers.
    confusion : tuple of tuple of int
        Several classes: records by true and by predicted class.
    """

    part: str
    n: int
    counts: tuple[int, ...]
    figures: tuple[Estimate, ...]
    calibration: tuple[Calibration, ...]
    separation: Separation | None
    spread: Spread | None
    confusion: tuple[tuple[int, ...], ...]

    def figure(self, name: str) -> Estimate | None:
        """One figure; None where it does not apply."""
        return next((f for f in self.figures if f.name == name), None)


@dataclass(frozen=True)
class Stability:
    """Population stability: how far the predictions of one part are from those of another.

    Attributes
    ----------
    psi : float
        Sum over the bins of (q - p) ln(q / p); 0 = alike. Bins are tenths of the reference, or the predicted class.
    chance : float
        What two samples of these sizes from one population stay below with a probability of 95 % (Yurdakul 2018).
    shares : tuple of (float, float)
        Per bin: of the reference, of the other part.
    """

    reference: str
    part: str
    n: int
    psi: float
    chance: float
    shares: tuple[tuple[float, float], ...]

    @property
    def moved(self) -> bool:
        """Whether it is more than chance."""
        return self.psi > self.chance


def performance(labels: Floats, margins: Floats, outputs: Outputs, part: str, seed: int = 7) -> Performance:
    """All figures of one part.

    Parameters
    ----------
    labels : ndarray of float64
        ``(n,)``: 0/1, number of the class, or value.
    margins : ndarray of float64
        ``(n, outputs.count)``.
    """
    labels = np.asarray(labels, dtype=np.float64)
    margins = np.asarray(margins, dtype=np.float64).reshape(len(labels), outputs.count)
    predicted = outputs.predict(margins)
    classes = {"binary": 2, "classes": outputs.count, "number": 0}[outputs.task]
    counts = np.bincount(labels.astype(np.intp), minlength=classes) if classes else np.empty(0, dtype=np.intp)
    both = outputs.task == "binary" and bool((counts > 0).all())
    return Performance(
        part=part,
        n=len(labels),
        counts=tuple(counts.tolist()),
        figures=_figures(labels, margins, predicted, outputs.task, seed),
        calibration=calibration(labels, predicted, outputs.task),
        separation=separation(labels, predicted[:, 0]) if both else None,
        spread=_spread(labels, predicted[:, 0], outputs.task),
        confusion=_confusion(labels, predicted) if outputs.task == "classes" else (),
    )


# figures ------------------------------------------------------------------------------------------------------------


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
        ``(draws,)``; NaN where a class is absent.
    """
    return _area(*_by_score(labels, scores, weights))


def ks(labels: Floats, scores: Floats, weights: Floats) -> Floats:
    """Largest lead of the true over the false positive rate (as :func:`backend.trees.metrics.measure`); shapes as :func:`auc`."""
    return _lead(*_by_score(labels, scores, weights))


def _area(positive: Floats, negative: Floats) -> Floats:
    """AUC from the weights at each score."""
    below = np.cumsum(negative, axis=1) - negative
    pairs = positive.sum(axis=1) * negative.sum(axis=1)
    wins = np.einsum("ij,ij->i", positive, below + negative / 2)
    areas: Floats = np.divide(wins, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
    return areas


def _lead(positive: Floats, negative: Floats) -> Floats:
    """KS from the weights at each score."""
    below, others_below = np.cumsum(positive, axis=1), np.cumsum(negative, axis=1)
    whole, others = below[:, -1:], others_below[:, -1:]
    known = ((whole > 0) & (others > 0))[:, 0]
    widest = (others_below / np.maximum(others, 1) - below / np.maximum(whole, 1)).max(axis=1)
    lead: Floats = np.where(known, widest, np.nan)
    return lead


def _by_score(labels: Floats, scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weights of positive and negative records at each score, lowest first: ``(draws, scores)`` each."""
    if (np.diff(scores) < 0).any():
        order = np.argsort(scores, kind="stable")
        labels, scores, weights = labels[order], scores[order], weights[:, order]
    starts = np.flatnonzero(np.diff(scores, prepend=-np.inf))
    of_positive = weights * (labels > 0)
    positive = np.add.reduceat(of_positive, starts, axis=1)
    return positive, np.add.reduceat(weights, starts, axis=1) - positive


def draws(n: int, times: int, seed: int) -> Iterator[Floats]:
    """How often each of ``n`` records counts in `times` samples with replacement, some samples at a time."""
    draw, step = np.random.default_rng(seed), max(1, BLOCK // max(n, 1))
    for begin in range(0, times, step):
        several = min(step, times - begin)
        chosen = draw.integers(0, n, size=(several, n)) + n * np.arange(several)[:, None]
        yield np.bincount(chosen.ravel(), minlength=several * n).reshape(several, n).astype(np.float64)


def bounds(drawn: Floats, value: float) -> tuple[float, float]:
    """95 % percentiles of what was drawn, with `value` between them; draws that mean nothing are left out."""
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return value, value
    low, high = np.quantile(known, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return min(float(low), value), max(float(high), value)


def _figures(labels: Floats, margins: Floats, predicted: Floats, task: str, seed: int) -> tuple[Estimate, ...]:
    if not len(labels):
        return ()
    order = np.argsort(
        margins[:, 0], kind="stable"
    )  # records are drawn alike in any order; this one need not be sought again
    labels, margins, predicted = labels[order], margins[order], predicted[order]
    whole = measured(labels, margins, predicted, task, np.ones((1, len(labels))))
    drawn: dict[str, list[Floats]] = {name: [] for name in whole}
    for weights in draws(len(labels), RESAMPLES, seed):
        for name, values in measured(labels, margins, predicted, task, weights).items():
            drawn[name].append(values)
    known = {name: float(values[0]) for name, values in whole.items() if not np.isnan(values[0])}
    return tuple(Estimate(name, value, *bounds(np.concatenate(drawn[name]), value)) for name, value in known.items())


def measured(labels: Floats, margins: Floats, predicted: Floats, task: str, weights: Floats) -> Mapping[str, Floats]:
    """Every figure of the task on weighted records, ``(draws,)`` each; NaN where it means nothing.

    Parameters
    ----------
    margins, predicted : ndarray of float64
        ``(n, outputs.count)``; the second are probabilities or values.
    weights : ndarray of float64
        ``(draws, n)``: how often each record counts.
    """
    n = weights.sum(axis=1)
    if task == "number":
        return _of_numbers(labels, predicted[:, 0], weights, n)
    if task == "classes":
        present = np.unique(labels)
        areas = [auc((labels == k).astype(float), predicted[:, int(k)], weights) for k in present]
        own = predicted[np.arange(len(labels)), labels.astype(np.intp)]
        return {
            "accuracy": weights @ (predicted.argmax(axis=1) == labels) / n,
            "auc": np.mean(areas, axis=0) if len(present) > 1 else np.full(len(n), np.nan),
            "log_loss": weights @ -np.log(np.maximum(own, SMALLEST)) / n,
        }
    share, order = predicted[:, 0], margins[:, 0]
    own = np.clip(np.where(labels > 0, share, 1 - share), SMALLEST, 1.0)
    at = _by_score(labels, order, weights)
    return {
        "auc": _area(*at),
        "ks": _lead(*at),
        "brier": weights @ (share - labels) ** 2 / n,
        "log_loss": weights @ -np.log(own) / n,
        "accuracy": weights @ ((share >= 0.5) == labels) / n,
    }


def _of_numbers(labels: Floats, predicted: Floats, weights: Floats, n: Floats) -> Mapping[str, Floats]:
    squared, centred = weights @ (labels - predicted) ** 2 / n, labels - labels.mean()
    variance = weights @ centred**2 / n - (weights @ centred / n) ** 2
    explained = 1 - np.divide(squared, variance, out=np.full(len(n), np.nan), where=variance > 0)
    return {"rmse": np.sqrt(squared), "mae": weights @ np.abs(labels - predicted) / n, "r2": explained}


# tables -------------------------------------------------------------------------------------------------------------


def calibration(labels: Floats, predicted: Floats, task: str, bins: int = BINS) -> tuple[Calibration, ...]:
    """Predicted against observed in bins of about equal size; equal predictions share a bin.

    Parameters
    ----------
    predicted : ndarray of float64
        ``(n, outputs.count)``.
    """
    said, came = predicted[:, 0], labels
    if task == "classes":
        said, came = predicted.max(axis=1), (predicted.argmax(axis=1) == labels).astype(np.float64)
    rows = []
    for index in _tenths(said, bins):
        n, observed = len(index), float(came[index].mean())
        if task == "number":
            half = ndtri((1 + CONFIDENCE) / 2) * float(came[index].std(ddof=1)) / n**0.5 if n > 1 else float("nan")
            low, high = observed - half, observed + half
        else:
            rate = wilson(observed, n)
            low, high = float(rate.low or 0.0), float(rate.high or 0.0)
        rows.append(Calibration(n, float(said[index].mean()), observed, low, high))
    return tuple(rows)


def _tenths(values: Floats, bins: int) -> list[NDArray[np.intp]]:
    """Places of the records of each bin, lowest values first."""
    if not len(values):
        return []
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    wanted = [round(len(values) * k / bins) for k in range(1, bins)]
    cuts = sorted({int(np.searchsorted(sorted_values, sorted_values[min(c, len(values) - 1)])) for c in wanted} - {0})
    return [part for part in np.split(order, cuts) if len(part)]


def separation(labels: Floats, probabilities: Floats) -> Separation:
    """Cumulative shares of both outcomes, on at most :data:`POINTS` cut-offs, the widest gap among them."""
    cutoffs, place = np.unique(-probabilities, return_inverse=True)
    positive = np.cumsum(np.bincount(place, weights=labels > 0, minlength=len(cutoffs)))
    negative = np.cumsum(np.bincount(place, weights=labels <= 0, minlength=len(cutoffs)))
    true, false = positive / positive[-1], negative / negative[-1]
    widest = int((true - false).argmax())
    kept = np.unique([*np.linspace(0, len(cutoffs) - 1, POINTS).astype(np.intp).tolist(), widest])
    return Separation(
        tuple((-cutoffs[kept]).tolist()),
        tuple(true[kept].tolist()),
        tuple(false[kept].tolist()),
        int(np.flatnonzero(kept == widest)[0]),
    )


def _spread(labels: Floats, predicted: Floats, task: str) -> Spread | None:
    """Probabilities by outcome, or residuals; the outer bars of residuals hold what lies beyond."""
    if task == "classes" or not len(labels):
        return None
    if task == "binary":
        edges = np.linspace(0.0, 1.0, BARS + 1)
        counts = [np.histogram(predicted[labels == k], edges)[0] for k in (0, 1)]
    else:
        residuals = labels - predicted
        reach = float(np.quantile(np.abs(residuals), 0.99)) or 1.0
        edges = np.linspace(-reach, reach, BARS + 1)
        counts = [np.histogram(np.clip(residuals, -reach, reach), edges)[0]]
    return Spread(tuple(edges.tolist()), tuple(tuple(row.tolist()) for row in counts))


def _confusion(labels: Floats, predicted: Floats) -> tuple[tuple[int, ...], ...]:
    table = np.zeros((predicted.shape[1], predicted.shape[1]), dtype=np.intp)
    np.add.at(table, (labels.astype(np.intp), predicted.argmax(axis=1)), 1)
    return tuple(tuple(row.tolist()) for row in table)


# stability ----------------------------------------------------------------------------------------------------------


def stability(
    reference: str, margins: Floats, part: str, others: Floats, outputs: Outputs, bins: int = BINS
) -> Stability | None:
    """Population stability index of one part's predictions against another's; None where there is nothing to compare.

    Parameters
    ----------
    margins, others : ndarray of float64
        ``(n, outputs.count)`` and ``(m, outputs.count)``.
    """
    first, second = (np.asarray(x, dtype=np.float64).reshape(-1, outputs.count) for x in (margins, others))
    if not len(first) or not len(second):
        return None
    if outputs.task == "classes":
        counted = [np.bincount(x.argmax(axis=1), minlength=outputs.count) for x in (first, second)]
    else:
        cuts = np.array([first[index, 0].min() for index in _tenths(first[:, 0], bins)][1:])
        counted = [
            np.bincount(np.searchsorted(cuts, x[:, 0], side="right"), minlength=len(cuts) + 1) for x in (first, second)
        ]
    used = (counted[0] + counted[1]) > 0
    n, m = len(first), len(second)
    p, q = (np.maximum(c[used], 0.5) / c.sum() for c in counted)  # an empty bin counts as half a record
    psi = float(((q - p) * np.log(q / p)).sum())
    chance = float(2 * gammaincinv(max(1, int(used.sum()) - 1) / 2, CONFIDENCE) * (1 / n + 1 / m))  # of chi-squared
    shares = tuple((float(a / n), float(b / m)) for a, b in zip(*(c[used] for c in counted), strict=True))
    return Stability(reference, part, m, psi, chance, shares)
