"""How often each 95 % interval about fairness holds the truth, with a gap and without: people are drawn from a population that is known.

Scores of a group are beta distributed and labels follow them, so that every rate is known in closed form; tables of an attribute and a
feature, scores of two models, of a model and its alternatives, and effects of ages are drawn likewise. What is counted are the intervals
that the product prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import beta, norm

from backend.evaluation.difference import paired_difference
from backend.evaluation.performance import RESAMPLES, draws
from backend.fairness.age_discrimination import check_ages
from backend.fairness.alternatives import (
    Candidate,
    Cells,
    CutoffComparison,
    DrawnQuality,
    Sums,
    cells_drawn,
    judge,
    marks,
)
from backend.fairness.disparity import Disparity, Measure, from_sums
from backend.fairness.evidence import Measured
from backend.fairness.marking import mark
from backend.fairness.proxies import associations
from backend.protocols.group_sums.grouping import Group
from backend.trees.metrics import auc
from backend.trees.outputs import Outputs
from bench.setting import progress, run
from bench.tables import coverage as describe

RUNS = 1000
QUICK_RUNS = 40
CUTOFF = 0.3
Shape = tuple[float, float]  # of a beta distribution of scores
Held = tuple[str, bool]  # a figure, and whether its interval held the truth

# sizes and shapes of the groups, the first being the reference
PEOPLE: dict[str, tuple[tuple[int, Shape], ...]] = {
    "no gap": ((600, (2.0, 6.0)), (300, (2.0, 6.0))),
    "gap": ((600, (2.0, 6.0)), (300, (3.0, 6.0))),
    "no gap, small groups": ((120, (2.0, 6.0)), (60, (2.0, 6.0))),
    "gap, small groups": ((120, (1.0, 9.0)), (60, (2.0, 9.0))),
    "gap, four groups": ((500, (1.0, 6.0)), (200, (2.0, 6.0)), (100, (1.5, 6.0)), (60, (1.0, 6.0))),
}
# an attribute's groups against a feature's: shares of all records
TABLES: dict[str, tuple[int, NDArray[np.float64]]] = {
    "no association": (1000, np.outer([0.6, 0.4], [0.2, 0.3, 0.5])),
    "V 0.05": (1000, np.array([[0.2875, 0.2125], [0.2625, 0.2375]])),
    "V 0.2": (1000, np.array([[0.30, 0.20], [0.20, 0.30]])),
    "weak, 5 × 10 groups": (5000, np.full((5, 10), 0.02) + 0.006 * (np.eye(5, 10) - np.eye(5, 10, 1))),
    "strong, 5 × 10 groups": (1000, np.full((5, 10), 0.012) + 0.04 * np.hstack([np.eye(5), np.eye(5)])),
    "5 × 10 groups, 400 records": (400, np.full((5, 10), 0.015) + 0.015 * np.hstack([np.eye(5), np.eye(5)])),
    "V 0.95, 300 records": (300, np.array([[0.39, 0.01], [0.015, 0.585]])),
    "V 0.6, 200 records": (200, np.array([[0.40, 0.10], [0.10, 0.40]])),
}
MODELS = {"no gap": (1.0, 1.0), "gap": (1.0, 1.2)}  # how far the two labels' mean scores are apart in two models
# A model and its alternatives: how far the labels' mean scores are apart in each, and the groups'
ALTERNATIVES: dict[str, tuple[tuple[float, float], ...]] = {
    "no gap": tuple((1.0, 0.0) for _ in range(9)),
    "gap": ((1.0, 0.6), *((1.0 - 0.02 * k, 0.6 - 0.05 * k) for k in range(1, 9))),
}
# shares: of positive labels, of the second group, of accepted people at each decision
POSITIVE = 0.3
SECOND = 0.4
ACCEPTED = (0.6, 0.75)
AGES = {"no gap": 0.0, "gap": 0.01}  # how much worse elderly ages score than each of three younger classes


def measure(quick: bool = False) -> dict[str, Any]:
    """Share of runs in which an interval held the truth, by figure and case."""
    runs = QUICK_RUNS if quick else RUNS
    rows: list[dict[str, Any]] = []
    for case, groups in PEOPLE.items():
        rows += _held(case, runs, lambda draw, groups=groups: people(groups, draw))
    for case, (n, shares) in TABLES.items():
        rows += _held(case, runs // 2, lambda draw, n=n, shares=shares: table(n, shares / shares.sum(), draw))
    for case, apart in MODELS.items():
        rows += _held(case, runs // 2, lambda draw, apart=apart: models(apart, draw))
    for case, shapes in ALTERNATIVES.items():
        few = shapes[:2] if quick else shapes
        rows += _held(case, runs // 2, lambda draw, shapes=few: alternatives(shapes, draw))
    for case, worse in AGES.items():
        rows += _held(case, runs, lambda draw, worse=worse: ages(worse, draw))
    return {"runs": runs, "cutoff": CUTOFF, "rows": rows}


def _held(case: str, runs: int, once: Any) -> list[dict[str, Any]]:
    progress(case)
    held: dict[str, list[bool]] = {}
    for seed in range(runs):
        for figure, inside in once(np.random.default_rng(seed)):
            held.setdefault(figure, []).append(inside)
    return [
        {"figure": name, "case": case, "n": len(found), "held": float(np.mean(found))} for name, found in held.items()
    ]


def people(groups: Sequence[tuple[int, Shape]], draw: np.random.Generator) -> Iterator[Held]:
    """One measurement of outcomes by group, and what it holds."""
    index = np.repeat(np.arange(len(groups)), [n for n, _ in groups])
    scores = np.concatenate([draw.beta(*shape, size=n) for n, shape in groups])
    labels = draw.random(len(scores)) < scores
    marking = mark(CUTOFF, labels, scores, own_groups=True)
    marks, _ = marking.marks(labels, scores)
    sums = np.array([[one[index == k].sum() for k in range(len(groups))] for one in marks])
    named = tuple(Group("code", str(k), n) for k, (n, _) in enumerate(groups))
    return _outcomes(from_sums("host", "f", marking, named, sums, seed=0), [shape for _, shape in groups])


def _outcomes(found: Disparity, shapes: list[Shape]) -> Iterator[Held]:
    for outcome in found.groups:
        shape = shapes[int(outcome.group.name)]
        for measure, rate in outcome.rates.items():
            yield from _is(f"{measure}", rate, truth(measure, shape, CUTOFF))
        yield from _is("calibration gap", outcome.calibration, 0.0)
        yield from _is("mean score", outcome.score, shape[0] / sum(shape))
    for gap in found.gaps:
        for other in gap.others:
            own, base = (truth(gap.measure, shapes[k], CUTOFF) for k in (int(other.group.name), 0))
            yield from _is(f"{gap.measure}: difference", other.difference, own - base)
            yield from _is(f"{gap.measure}: ratio", other.ratio, own / base)
    for score in found.scores:
        yield from _is(
            "standardised mean difference", score.smd, standardised(shapes[int(score.group.name)], shapes[0])
        )
    for at in found.cutoffs:
        for other in at.others:
            own, base = (truth("selection rate", shapes[k], at.cutoff) for k in (int(other.group.name), 0))
            yield from _is("range of cut-offs: difference", other.difference, own - base)
            yield from _is("range of cut-offs: ratio", other.ratio, own / base)


def _is(figure: str, rate: Measured, true: float) -> Iterator[Held]:
    if rate.low is not None and rate.high is not None:
        yield figure, rate.low <= true <= rate.high


def truth(measure: Measure, shape: Shape, cutoff: float) -> float:
    """A rate of people with beta scores whose labels follow these."""
    a, b = shape
    if measure == "selection rate":
        return float(beta.cdf(cutoff, a, b))
    # given the label, scores are beta distributed with one success, or one failure, more
    return float(beta.sf(cutoff, a + 1, b) if measure == "true positive rate" else beta.sf(cutoff, a, b + 1))


def standardised(own: Shape, base: Shape) -> float:
    """Standardised mean difference of two beta distributions."""
    (mean, variance), (other, other_variance) = (beta.stats(*shape, moments="mv") for shape in (own, base))
    return float((mean - other) / sqrt((variance + other_variance) / 2))


def table(n: int, shares: NDArray[np.float64], draw: np.random.Generator) -> Iterator[Held]:
    """One measurement of an association."""
    counts = draw.multinomial(n, shares.ravel()).reshape(shares.shape)
    (found,) = associations({("host", "f"): counts}, seed=0)
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    v = sqrt(((shares - expected) ** 2 / expected).sum() / (min(shares.shape) - 1))
    bits = float((shares * np.log2(shares / expected)).sum())
    yield "Cramér's V", found.v_low <= v + 1e-12 and v - 1e-12 <= found.v_high
    yield "mutual information", found.bits_low <= bits + 1e-12 and bits - 1e-12 <= found.bits_high


def models(apart: tuple[float, float], draw: np.random.Generator, n: int = 500) -> Iterator[Held]:
    """AUC of one model less that of another on the same records: normal scores that share half of their noise."""
    labels = (draw.random(n) < 0.3).astype(float)
    shared = draw.normal(size=n)
    before, after = (((labels * gap) + sqrt(0.5) * shared + sqrt(0.5) * draw.normal(size=n))[:, None] for gap in apart)
    (found,) = (e for e in paired_difference(labels, before, after, (Outputs(), Outputs())) if e.name == "auc")
    one, other = (NormalDist().cdf(gap / sqrt(2)) for gap in apart)
    yield "AUC difference", found.low <= other - one <= found.high


def alternatives(shapes: Sequence[tuple[float, float]], draw: np.random.Generator, n: int = 800) -> Iterator[Held]:
    """A search for alternatives at two decisions: all intervals of changes have to hold together, with groups at the Guest and at a Host.

    Scores are normal with variance 1, half of it shared by all models.
    """
    labels = (draw.random(n) < POSITIVE).astype(float)
    index = (draw.random(n) < SECOND).astype(np.intp)
    shared = draw.normal(size=n)
    scores = [a * labels + b * index + sqrt(0.5) * (shared + draw.normal(size=n)) for a, b in shapes]
    seed = int(draw.integers(2**31))
    whole = np.ones((1, n))
    weights = list(draws(n, RESAMPLES, seed))
    quality = [
        DrawnQuality(float(auc(labels, s, whole)[0]), np.concatenate([auc(labels, s, w) for w in weights]))
        for s in scores
    ]
    groups = tuple(Group("code", str(k), int((index == k).sum())) for k in (0, 1))
    places: dict[str, list[CutoffComparison]] = {"at the Guest": [], "at a Host": []}
    for share in ACCEPTED:
        first, *others = (
            Candidate(f"c{k}", cutoff, s < cutoff, found, found)
            for k, (s, found) in enumerate(zip(scores, quality, strict=True))
            for cutoff in [_cutoff(shapes[k], share)]
        )
        flags = marks(first.accepts, [other.accepts for other in others])
        sums = [np.array([flag[index == k].sum() for k in (0, 1)]) for flag in flags]
        pairs = [Sums(sums[0], *both) for both in zip(sums[1::2], sums[2::2], strict=True)]
        cells = {
            "at the Guest": [
                Cells(p.cells(groups), drawn)
                for p, drawn in zip(pairs, cells_drawn(flags, index, 2, weights), strict=True)
            ],
            "at a Host": [Cells.of_sums(p, groups, RESAMPLES, draw) for p in pairs],
        }
        for place, decisions in places.items():
            decisions.append(CutoffComparison(first, sums[0], tuple(zip(others, cells[place], strict=True))))
    for place, decisions in places.items():
        held = []
        for share, decided in zip(ACCEPTED, judge(decisions, groups, reference=0, tolerance=0.002), strict=True):
            widths = [abs(_gap(shape, _cutoff(shape, share))) for shape in shapes]
            for k, point in enumerate(decided.points[1:], start=1):
                true = area(shapes[k]) - area(shapes[0]), widths[k] - widths[0]
                for figure, value in zip((point.auc_together, point.gap_together), true, strict=True):
                    held.append(figure is not None and figure.low <= value <= figure.high)
        yield f"alternatives, all changes together: attribute {place}", all(held)


def area(shape: tuple[float, float]) -> float:
    """AUC of normal scores that labels and groups, independent of each other, move by so much."""
    a, b = shape
    shares = (1 - SECOND, SECOND)
    return float(
        sum(p * q * norm.cdf((a + b * (i - j)) / sqrt(2)) for i, p in enumerate(shares) for j, q in enumerate(shares))
    )


def _accepted(shape: tuple[float, float], cutoff: float, group: int) -> float:
    a, b = shape
    return float((1 - POSITIVE) * norm.cdf(cutoff - b * group) + POSITIVE * norm.cdf(cutoff - a - b * group))


def _gap(shape: tuple[float, float], cutoff: float) -> float:
    return _accepted(shape, cutoff, 1) - _accepted(shape, cutoff, 0)


@cache
def _cutoff(shape: tuple[float, float], share: float) -> float:
    """The cut-off at which this share of all people is accepted."""
    return float(
        brentq(
            lambda at: (1 - SECOND) * _accepted(shape, at, 0) + SECOND * _accepted(shape, at, 1) - share, -10.0, 10.0
        )
    )


def ages(worse: float, draw: np.random.Generator, n: int = 400) -> Iterator[Held]:
    """Effects of elderly ages against three younger classes; all intervals have to hold together."""
    elderly = draw.beta(2, 6, size=n)
    younger = [elderly - worse + draw.exponential(0.03, size=n) - 0.03 for _ in range(3)]
    found = check_ages("host", "age", elderly, younger)
    yield "elderly ages, all classes together", all(gap.low <= worse <= gap.high for gap in found.gaps)


if __name__ == "__main__":
    run(__doc__, measure, describe)
