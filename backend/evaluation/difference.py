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
        first_figures, second_figures = (
            weighted_figures(labels, margins, how.predict(margins), how.task, weights)
            for margins, how in zip((first, second), outputs, strict=True)
        )
        return {name: second_figures[name] - first_figures[name] for name in first_figures}

    differences = figures(np.ones((1, len(labels))))
    samples = [figures(weights) for weights in draws(len(labels), RESAMPLES, seed)]
    return tuple(
        Estimate(name, float(apart[0]), *percentiles(np.concatenate([s[name] for s in samples]), float(apart[0])))
        for name, apart in differences.items()
        if not np.isnan(apart[0])
    )
