"""How good a model is and on whom that was measured: figures with intervals, and what ROC, KS, calibration and stability plots draw.

Pure functions of labels and margins. Knows no person's id and no feature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.data.rounding import Rounded, Unreported
from backend.fairness.intervals import CONFIDENCE, Z, mirrored, percentiles, wilson
from backend.trees.metrics import weighted_figures
from backend.trees.outputs import Outputs

RESAMPLES = 500
CALIBRATION_BINS = 10  # of a calibration table, and of a comparison of two parts
DISTRIBUTION_BARS = 20  # of a distribution
MAX_POINTS = 200  # of a curve
WEIGHTS_AT_ONCE = 250_000  # weights held at a time: 2 MB, and ten times that while figures are made of them

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """One figure of quality with its 95 % interval: percentiles over records drawn with replacement.

    The interval is about other records of the same kind under the same model; it does not cover another training.

    Attributes
    ----------
    name : {"auc", "ks", "brier", "log_loss", "accuracy", "rmse", "mae", "r2"}
    """

    name: str
    value: Rounded
    low: Rounded
    high: Rounded


@dataclass(frozen=True)
class Calibration:
    """One bin of a calibration table: neighbouring predictions against what was observed.

    Attributes
    ----------
    predicted, observed : float
        Means: of probabilities and of the label (of several classes: of the predicted one's probability, and how often it was right), or
        of predicted and true values.
    low, high : float
        95 % interval of `observed`: Wilson's for a share, else 1.96 standard errors; with sample weights of as many records as would
        tell as much if all weighed the same (:func:`effective_size`).
    weight, squares : float or None
        Sum of the records' weights and of the weights' squares; None = all weigh the same.
    """

    n: int
    predicted: Rounded
    observed: Rounded
    low: Rounded
    high: Rounded
    weight: Unreported[float | None] = None
    squares: Unreported[float | None] = None


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
        Index of the cut-off where the two are farthest apart, which is KS.
    people : tuple of int
        Records at or above each cut-off, whatever they weigh.
    """

    cutoffs: tuple[float, ...]
    true_positive: tuple[float, ...]
    false_positive: tuple[float, ...]
    widest: int
    people: tuple[int, ...]


@dataclass(frozen=True)
class Spread:
    """A histogram with bars of equal width.

    Attributes
    ----------
    edges : tuple of float
        One more than bars.
    counts : tuple of tuple of int
        Records in each bar: negative and positive ones over the probability, or one row of residuals (true less predicted).
    """

    edges: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Performance:
    """A model's quality on one part of the data; what does not apply to its task is None or empty.

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
        """Return one figure by name; None if it does not apply."""
        return next((f for f in self.figures if f.name == name), None)


@dataclass(frozen=True)
class Stability:
    """Population stability: how far the predictions of one part are from those of another.

    Attributes
    ----------
    psi : float
        Sum over the bins of (q - p) ln(q / p); 0 = alike. Bins are tenths of the reference, or the predicted class.
    chance : float
        95 % quantile for two samples of these sizes from one population (Yurdakul 2018).
    shares : tuple of (float, float)
        Per bin: of the reference, of the other part.
    """

    reference: str
    part: str
    n: int
    psi: Rounded
    chance: Rounded
    shares: Unreported[tuple[tuple[float, float], ...]] = ()

    @property
    def moved(self) -> bool:
        """Whether it exceeds what chance explains."""
        return self.psi > self.chance


def performance(
    labels: Floats, margins: Floats, outputs: Outputs, part: str, seed: int = 7, weights: Floats | None = None
) -> Performance:
    """Return all figures of one part.

    Parameters
    ----------
    labels : ndarray of float64
        ``(n,)``: 0/1, number of the class, or value.
    margins : ndarray of float64
        ``(n, outputs.count)``.
    weights : ndarray of float64, optional
        ``(n,)``: how much each record counts in figures, calibration and the curve; counts and bars are of records.
    """
    labels = np.asarray(labels, dtype=np.float64)
    margins = np.asarray(margins, dtype=np.float64).reshape(len(labels), outputs.count)
    predicted = outputs.predict(margins)
    classes = {"binary": 2, "classes": outputs.count, "number": 0}[outputs.task]
    if classes:
        counts = np.bincount(labels.astype(np.intp), minlength=classes)
    else:
        counts = np.empty(0, dtype=np.intp)
    both = outputs.task == "binary" and bool((counts > 0).all())
    return Performance(
        part=part,
        n=len(labels),
        counts=tuple(counts.tolist()),
        figures=_figures(labels, margins, predicted, outputs.task, seed, weights),
        calibration=calibration(labels, predicted, outputs.task, weights=weights),
        separation=separation(labels, predicted[:, 0], weights) if both else None,
        spread=_spread(labels, predicted[:, 0], outputs.task),
        confusion=_confusion(labels, predicted) if outputs.task == "classes" else (),
    )


def draws(n: int, times: int, seed: int) -> Iterator[Floats]:
    """Bootstrap weights: how often each of ``n`` records counts in `times` samples with replacement, a block of samples at a time."""
    draw = np.random.default_rng(seed)
    step = max(1, WEIGHTS_AT_ONCE // max(n, 1))
    for begin in range(0, times, step):
        several = min(step, times - begin)
        records = draw.integers(0, n, size=(several, n)) + n * np.arange(several)[:, None]
        yield np.bincount(records.ravel(), minlength=several * n).reshape(several, n).astype(np.float64)


def effective_size(weights: Floats) -> float:
    """Return how many records of one weight tell as much of a mean as these (Kish 1965): (Σw)² / Σw².

    Examples
    --------
    >>> effective_size(np.array([1.0, 1.0, 2.0]))
    2.6666666666666665
    """
    return float(weights.sum() ** 2 / (weights**2).sum())


def _figures(
    labels: Floats, margins: Floats, predicted: Floats, task: str, seed: int, weights: Floats | None
) -> tuple[Estimate, ...]:
    if not len(labels):
        return ()
    counted = np.ones(len(labels)) if weights is None else weights
    # sorted once: draws are alike in any order of the records, and AUC and KS need this one
    order = np.argsort(margins[:, 0], kind="stable")
    labels = labels[order]
    margins = margins[order]
    predicted = predicted[order]
    counted = counted[order]
    figures = weighted_figures(labels, margins, predicted, task, counted[None])
    samples = []
    for times in draws(len(labels), RESAMPLES, seed):
        samples.append(weighted_figures(labels, margins, predicted, task, times * counted))
    estimates = []
    for name, values in figures.items():
        value = float(values[0])
        if np.isnan(value):
            continue
        resampled = np.concatenate([sample[name] for sample in samples])
        interval = mirrored if name == "ks" else percentiles
        estimates.append(Estimate(name, value, *interval(resampled, value)))
    return tuple(estimates)


def calibration(
    labels: Floats, predicted: Floats, task: str, bins: int = CALIBRATION_BINS, weights: Floats | None = None
) -> tuple[Calibration, ...]:
    """Predicted against observed in bins of about equally many records; equal predictions share a bin.

    Parameters
    ----------
    predicted : ndarray of float64
        ``(n, outputs.count)``.
    weights : ndarray of float64, optional
        ``(n,)``: how much each record counts in the means.
    """
    expected = predicted[:, 0]
    outcome = labels
    if task == "classes":
        expected = predicted.max(axis=1)
        outcome = (predicted.argmax(axis=1) == labels).astype(np.float64)
    rows = []
    for index in _quantile_bins(expected, bins):
        bin_weights = None if weights is None else weights[index]
        n = len(index)
        if bin_weights is None:
            size = float(n)
        else:
            size = effective_size(bin_weights)
        observed = float(np.average(outcome[index], weights=bin_weights))
        if task == "number":
            # With equal weights the standard deviation has n - 1 in its denominator.
            variance = float(np.average((outcome[index] - observed) ** 2, weights=bin_weights))
            if n > 1:
                error = Z * (variance / (size - 1)) ** 0.5
            else:
                error = float("nan")
            low = observed - error
            high = observed + error
        else:
            low, high = wilson(observed, size)
        mean = float(np.average(expected[index], weights=bin_weights))
        weight, squares = (
            (None, None) if bin_weights is None else (float(bin_weights.sum()), float((bin_weights**2).sum()))
        )
        rows.append(Calibration(n, mean, observed, low, high, weight, squares))
    return tuple(rows)


def _quantile_bins(values: Floats, bins: int) -> list[NDArray[np.intp]]:
    """Indices of the records of each bin, lowest values first; equal values share a bin."""
    if not len(values):
        return []
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    positions = [round(len(values) * k / bins) for k in range(1, bins)]
    cuts = sorted(
        {int(np.searchsorted(sorted_values, sorted_values[min(c, len(values) - 1)])) for c in positions} - {0}
    )
    return [part for part in np.split(order, cuts) if len(part)]


def separation(labels: Floats, probabilities: Floats, weights: Floats | None = None) -> Separation:
    """Cumulative shares of both outcomes, each record by its weight, on at most :data:`MAX_POINTS` cut-offs, the widest gap among them."""
    cutoffs, at = np.unique(-probabilities, return_inverse=True)
    counted = np.ones(len(labels)) if weights is None else weights
    positive = np.cumsum(np.bincount(at, weights=counted * (labels > 0), minlength=len(cutoffs)))
    negative = np.cumsum(np.bincount(at, weights=counted * (labels <= 0), minlength=len(cutoffs)))
    people = np.cumsum(np.bincount(at, minlength=len(cutoffs)))
    true = positive / positive[-1]
    false = negative / negative[-1]
    widest = int((true - false).argmax())
    points = np.unique([*np.linspace(0, len(cutoffs) - 1, MAX_POINTS).astype(np.intp).tolist(), widest])
    return Separation(
        tuple((-cutoffs[points]).tolist()),
        tuple(true[points].tolist()),
        tuple(false[points].tolist()),
        int(np.flatnonzero(points == widest)[0]),
        tuple(people[points].tolist()),
    )


def _spread(labels: Floats, predicted: Floats, task: str) -> Spread | None:
    """Probabilities by outcome, or residuals; the outer bars of residuals also hold what is beyond."""
    if task == "classes" or not len(labels):
        return None
    if task == "binary":
        edges = np.linspace(0.0, 1.0, DISTRIBUTION_BARS + 1)
        counts = [np.histogram(predicted[labels == k], edges)[0] for k in (0, 1)]
    else:
        residuals = labels - predicted
        reach = float(np.quantile(np.abs(residuals), 0.99)) or 1.0
        edges = np.linspace(-reach, reach, DISTRIBUTION_BARS + 1)
        counts = [np.histogram(np.clip(residuals, -reach, reach), edges)[0]]
    return Spread(tuple(edges.tolist()), tuple(tuple(row.tolist()) for row in counts))


def _confusion(labels: Floats, predicted: Floats) -> tuple[tuple[int, ...], ...]:
    table = np.zeros((predicted.shape[1], predicted.shape[1]), dtype=np.intp)
    np.add.at(table, (labels.astype(np.intp), predicted.argmax(axis=1)), 1)
    return tuple(tuple(row.tolist()) for row in table)


def stability(
    reference: str, margins: Floats, part: str, others: Floats, outputs: Outputs, bins: int = CALIBRATION_BINS
) -> Stability | None:
    """Population stability index of one part's predictions against another's; None if there is nothing to compare.

    Parameters
    ----------
    margins, others : ndarray of float64
        ``(n, outputs.count)`` and ``(m, outputs.count)``.
    """
    first = np.asarray(margins, dtype=np.float64).reshape(-1, outputs.count)
    second = np.asarray(others, dtype=np.float64).reshape(-1, outputs.count)
    if not len(first) or not len(second):
        return None
    if outputs.task == "classes":
        counted = [np.bincount(x.argmax(axis=1), minlength=outputs.count) for x in (first, second)]
    else:
        cuts = np.array([first[index, 0].min() for index in _quantile_bins(first[:, 0], bins)][1:])
        counted = [
            np.bincount(np.searchsorted(cuts, x[:, 0], side="right"), minlength=len(cuts) + 1) for x in (first, second)
        ]
    psi, chance = moved_by(*counted)
    filled = (counted[0] + counted[1]) > 0
    n = len(first)
    m = len(second)
    pairs = zip(counted[0][filled], counted[1][filled], strict=True)
    shares = tuple((float(a / n), float(b / m)) for a, b in pairs)
    return Stability(reference, part, m, psi, chance, shares)


def moved_by(reference: NDArray[np.intp], current: NDArray[np.intp]) -> tuple[float, float]:
    """Population stability index of two samples counted in the same bins, and its 95 % quantile under chance (Yurdakul 2018)."""
    from scipy.special import gammaincinv  # noqa: PLC0415 - slow to import, and few runs need it

    filled = (reference + current) > 0
    # An empty bin counts as half a record.
    p = np.maximum(reference[filled], 0.5) / reference.sum()
    q = np.maximum(current[filled], 0.5) / current.sum()
    psi = float(((q - p) * np.log(q / p)).sum())
    # quantile of chi-squared with one degree of freedom fewer than bins, scaled by the two sample sizes
    spread = gammaincinv(max(1, int(filled.sum()) - 1) / 2, CONFIDENCE)
    return psi, float(2 * spread * (1 / reference.sum() + 1 / current.sum()))
