"""How far two models' figures are apart on the same records, with the interval of that difference. Knows no person's id."""

from __future__ import annotations

import numpy as np

from backend.evaluation.performance import RESAMPLES, Estimate, Floats, draws
from backend.fairness.intervals import percentiles
from backend.trees.metrics import weighted_figures
from backend.trees.outputs import Outputs


def paired_difference(
    labels: Floats, first: Floats, second: Floats, outputs: tuple[Outputs, Outputs], seed: int = 7
) -> tuple[Estimate, ...]:
    """Return every figure of the second model less the first's.

    Both are resampled on the same records each time, so that what they share cancels out.

    Parameters
    ----------
    labels : ndarray of float64
        ``(n,)``: 0/1, number of the class, or value.
    first, second : ndarray of float64
        ``(n, outputs.count)``: both models' margins of the same records, in the same order.
    outputs : (Outputs, Outputs)
        Of both models, which have one task.
    """

    def figures(weights: Floats) -> dict[str, Floats]:
        first_figures = weighted_figures(labels, first, outputs[0].predict(first), outputs[0].task, weights)
        second_figures = weighted_figures(labels, second, outputs[1].predict(second), outputs[1].task, weights)
        return {name: second_figures[name] - first_figures[name] for name in first_figures}

    differences = figures(np.ones((1, len(labels))))
    samples = [figures(weights) for weights in draws(len(labels), RESAMPLES, seed)]
    estimates = []
    for name, values in differences.items():
        value = float(values[0])
        if np.isnan(value):
            continue
        resampled = np.concatenate([sample[name] for sample in samples])
        estimates.append(Estimate(name, value, *percentiles(resampled, value)))
    return tuple(estimates)
