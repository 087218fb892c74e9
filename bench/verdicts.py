"""What the validation says of a model whose truth is known: how often a breach is shown, left undecided or missed, by number of records.

Labels are drawn from probabilities that are known, and of one group they are moved by a gap. Beside the convention of the suite (the whole
interval decides) stands the other one, by which the figure alone decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from backend.evaluation.performance import performance
from backend.evaluation.validation import figures, slices
from backend.evaluation.validation.suite import Figure, standard
from backend.fairness.intervals import of_ratio
from backend.protocols.group_sums.grouping import Group
from backend.trees.outputs import ONE_LOGIT
from bench.setting import progress, run
from bench.tables import verdicts as describe

RECORDS = (200, 1000, 6000)
RUNS = 200
QUICK_RUNS = 40
FEATURES = 24  # as many as the credit cards have
GROUPS = 4  # of a feature, of equal size
RATE = 0.22
SEED = 7
SUITE = standard()

Draw = Callable[[np.random.Generator, int], list[Figure]]


def gaps(gap: float) -> Draw:
    """Figures of group_calibration: in one of 96 groups the predicted share is too high by `gap`."""

    def draw(random: np.random.Generator, n: int) -> list[Figure]:
        size = n // GROUPS
        found = {}
        for feature in range(FEATURES):
            own = []
            for group in range(GROUPS):
                off = gap if feature == group == 0 else 0.0
                observed = random.binomial(size, RATE) / size
                named = Group("bin", str(group + 1), size)
                own.append(slices.Slice(named, None, observed, RATE + off, 0.0, 0.0, 0.0, 0.0))
            found["bank", f"feature {feature}"] = tuple(own)
        return [figure for figure in slices.calibration_gaps(found) if isinstance(figure, Figure)]

    return draw


def ratios(ratio: float) -> Draw:
    """The figure of disparity: a third of the people are accepted `ratio` times as often as the others."""

    def draw(random: np.random.Generator, n: int) -> list[Figure]:
        few = n // 3
        reference = random.binomial(n - few, 0.7) / (n - few)
        share = random.binomial(few, 0.7 * ratio) / few
        return [Figure(share / reference, *of_ratio(share, few, reference, n - few), few, measure="impact_ratio")]

    return draw


def ranking(apart: float) -> Draw:
    """Figures of auc: scores of the two outcomes are normal, and their means are `apart` standard deviations apart."""

    def draw(random: np.random.Generator, n: int) -> list[Figure]:
        labels = (random.random(n) < RATE).astype(np.float64)
        margins = random.normal(size=n) + apart * labels
        return [
            f for f in figures.discrimination(performance(labels, margins, ONE_LOGIT, "test")) if f.measure == "auc"
        ]

    return draw


# test, truth in words, how a figure is drawn
CASES: tuple[tuple[str, str, Draw], ...] = (
    ("group_calibration", "no gap in any of 96 groups", gaps(0.0)),
    ("group_calibration", "gap of 8 points in one group", gaps(0.08)),
    ("group_calibration", "gap of 15 points in one group", gaps(0.15)),
    ("group_calibration", "gap of 25 points in one group", gaps(0.25)),
    ("disparity", "ratio 1.00", ratios(1.0)),
    ("disparity", "ratio 0.85", ratios(0.85)),
    ("disparity", "ratio 0.70", ratios(0.70)),
    ("auc", "AUC 0.76", ranking(1.0)),
    ("auc", "AUC 0.64", ranking(0.5)),
    ("auc", "AUC 0.56", ranking(0.2)),
)


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Count the verdicts of each case and number of records."""
    runs = QUICK_RUNS if quick else RUNS
    return {"runs": runs, "rows": list(_rows(runs))}


def _rows(runs: int) -> Iterator[dict[str, Any]]:
    for test, truth, draw in CASES:
        progress(f"{test}: {truth}")
        for n in RECORDS:
            random = np.random.default_rng(SEED)
            drawn = [draw(random, n) for _ in range(runs)]
            yield {"test": test, "truth": truth, "n": n, **_counted(test, drawn)}


def _counted(test: str, drawn: Sequence[list[Figure]]) -> dict[str, float]:
    """Return the shares of verdicts, and how often the worst figure alone would have failed."""
    verdicts: Counter[str] = Counter()
    alone = 0
    for found in drawn:
        judged = next(one for one in SUITE.judge({test: found}) if one.id == test)
        verdicts[judged.verdict] += 1
        bare = [Figure(measure=one.measure, value=one.value) for one in found]
        alone += next(one for one in SUITE.judge({test: bare}) if one.id == test).verdict == "fail"
    shares = {verdict: verdicts[verdict] / len(drawn) for verdict in ("fail", "warn", "undecided", "pass")}
    return shares | {"alone": alone / len(drawn)}


if __name__ == "__main__":
    run(__doc__, measure, describe)
