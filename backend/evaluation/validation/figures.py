"""Figures of the suite that need no groups: of labels and probabilities, of two models, of a model's structure. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import hypot

import numpy as np
from numpy.typing import NDArray

from backend.evaluation.difference import paired_difference
from backend.evaluation.performance import CALIBRATION_BINS, RESAMPLES, Performance, Stability, calibration, draws
from backend.evaluation.validation.suite import Figure, Found
from backend.fairness.intervals import TAILS, Z, of_difference, of_mean, percentiles, wilson
from backend.protocols.group_sums.grouping import MIN_GROUP
from backend.trees.ensemble import GuestModel, Leaf
from backend.trees.metrics import auc
from backend.trees.outputs import Outputs

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
SEED = 7  # of what is drawn
MIN_TREES = 10  # that are drawn from; fewer give no useful ranking
THIN = 0.005  # of a tree's cover: leaves with less are thin


# Discrimination and calibration, on labels (0 or 1) and probabilities, (n,) each


def discrimination(part: Performance) -> tuple[Figure, Figure]:
    """AUC with its interval, and Gini = 2 AUC - 1."""
    estimate = part.figure("auc")
    if estimate is None:
        return Figure(measure="auc", value=None), Figure(measure="gini", value=None)
    gini = Figure(
        measure="gini", value=2 * estimate.value - 1, low=2 * estimate.low - 1, high=2 * estimate.high - 1, n=part.n
    )
    return Figure(measure="auc", value=estimate.value, low=estimate.low, high=estimate.high, n=part.n), gini


def of_part(part: Performance, measure: str) -> Figure:
    """Return a figure of the model card under the suite's name; not disclosed if it does not apply."""
    estimate = part.figure(measure)
    if estimate is None:
        return Figure(measure=measure, value=None)
    return Figure(measure=measure, value=estimate.value, low=estimate.low, high=estimate.high, n=part.n)


def average_precision(labels: Floats, scores: Floats, weights: Floats | None = None) -> float:
    """Sum over falling scores of the recall gained times the precision there, ties taken together; NaN without a positive label."""
    order = np.argsort(-scores, kind="stable")
    if weights is None:
        counted = np.ones(len(labels))
    else:
        counted = weights[order]
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(labels) - 1)
    true = np.cumsum(labels[order] * counted)[ends]
    if not true[-1]:
        return float("nan")
    return float((np.diff(true, prepend=0.0) / true[-1] * true / np.cumsum(counted)[ends]).sum())


def precision_lift(labels: Floats, scores: Floats, weights: Floats | None = None) -> Figure:
    """Average precision over the share of positive labels, which a random ranking has (Saito and Rehmsmeier 2015)."""
    share = float(np.average(labels, weights=weights))
    if labels.any():
        lift = average_precision(labels, scores, weights) / share
    else:
        lift = None
    return Figure(measure="precision_lift", value=lift, n=len(labels))


def brier_skill(labels: Floats, probabilities: Floats, weights: Floats | None = None) -> Figure:
    """1 - BS / BS of the share of positive labels (Brier 1950; Murphy 1973)."""
    share = float(np.average(labels, weights=weights))
    base = share * (1 - share)
    loss = float(np.average((probabilities - labels) ** 2, weights=weights))
    return Figure(measure="brier_skill", value=None if base == 0 else 1 - loss / base, n=len(labels))


def calibration_error(labels: Floats, probabilities: Floats, weights: Floats | None = None) -> Figure:
    """Expected calibration error: |observed - predicted| over tenths of the records, each by the weight of its records."""
    rows = calibration(labels, probabilities.reshape(-1, 1), "binary", weights=weights)
    total = len(labels) if weights is None else float(weights.sum())
    apart = sum((row.n if row.weight is None else row.weight) * abs(row.observed - row.predicted) for row in rows)
    return Figure(measure="ece", value=apart / total, n=len(labels))


def hosmer_lemeshow(labels: Floats, probabilities: Floats) -> Figure:
    """p-value of Hosmer and Lemeshow's C over tenths; of records that the model was not fitted to, so chi-squared with as many degrees."""
    from scipy.special import gammaincc  # noqa: PLC0415 - slow to import, and few runs need it

    rows = calibration(labels, probabilities.reshape(-1, 1), "binary", CALIBRATION_BINS)
    spread = [row.n * row.predicted * (1 - row.predicted) for row in rows]
    statistic = sum(
        (row.n * (row.observed - row.predicted)) ** 2 / s for row, s in zip(rows, spread, strict=True) if s > 0
    )
    return Figure(measure="hosmer_lemeshow", value=float(gammaincc(len(rows) / 2, statistic / 2)), n=len(labels))


def spiegelhalter(labels: Floats, probabilities: Floats) -> Figure:
    """Two-sided p-value of Spiegelhalter's z (1986): the Brier score against what the probabilities themselves expect."""
    from scipy.special import erfc  # noqa: PLC0415 - as above

    apart = ((labels - probabilities) * (1 - 2 * probabilities)).sum()
    spread = ((1 - 2 * probabilities) ** 2 * probabilities * (1 - probabilities)).sum()
    if spread > 0:
        value = float(erfc(abs(apart) / np.sqrt(spread) / np.sqrt(2)))
    else:
        value = None
    return Figure(measure="spiegelhalter", value=value, n=len(labels))


# Stability


def shift(stability: Stability) -> Figure:
    """PSI of one part's predictions against another's; its lower end is 0 if chance explains it."""
    return Figure(
        measure="psi",
        value=stability.psi,
        low=stability.psi if stability.moved else 0.0,
        high=stability.psi,
        n=stability.n,
        group=stability.part,
    )


def auc_gap(training: Performance, test: Performance) -> Figure:
    """AUC on training records less AUC on test records, which are other people: the intervals add in quadrature."""
    in_training = training.figure("auc")
    in_test = test.figure("auc")
    if in_training is None or in_test is None:
        return Figure(measure="auc_gap", value=None)
    gap = in_training.value - in_test.value
    errors = hypot(in_training.high - in_training.low, in_test.high - in_test.low) / 2
    return Figure(measure="auc_gap", value=gap, low=gap - errors, high=gap + errors, n=test.n)


def rank_agreement(gains: Floats, seed: int = SEED) -> Found:
    """Mean rank correlation (Spearman) of the features' gains in drawn trees with those in all trees.

    Parameters
    ----------
    gains : ndarray of float64
        ``(trees, features)``.
    """
    import pandas as pd  # noqa: PLC0415 - slow to import, and few runs need it

    feature_gains = gains[:, gains.sum(axis=0) > 0]
    trees = len(feature_gains)
    if trees < MIN_TREES or feature_gains.shape[1] < 3:
        return "few_trees"
    times = np.random.default_rng(seed).multinomial(trees, np.full(trees, 1 / trees), size=RESAMPLES)
    ranks = pd.DataFrame(np.vstack([feature_gains.sum(axis=0), times @ feature_gains])).rank(axis=1).to_numpy()
    full_ranks = ranks[0]
    correlations = []
    for row in ranks[1:]:
        if np.ptp(row) > 0 and np.ptp(full_ranks) > 0:
            correlations.append(np.corrcoef(full_ranks, row)[0, 1])
    if not correlations:
        return "few_trees"
    low, high = np.quantile(correlations, TAILS)
    return (Figure(measure="rank_agreement", value=float(np.mean(correlations)), low=float(low), high=float(high)),)


# Structure


def concentration(parties: Sequence[str], names: Sequence[str], gains: Floats) -> tuple[Figure, Figure]:
    """Return the largest feature's share of the gain, and the Herfindahl-Hirschman index of all shares."""
    shares = gains.sum(axis=0) / (gains.sum() or 1.0)
    top = int(shares.argmax())
    return (
        Figure(measure="top_share", value=float(shares[top]), party=parties[top], feature=names[top]),
        Figure(measure="hhi", value=float((shares**2).sum())),
    )


def thin_leaves(model: GuestModel) -> Figure:
    """Share of the leaves with less than :data:`THIN` of their tree's cover."""
    thin = leaves = 0
    for tree in model.trees:
        covers = [node.cover for node in tree.nodes if isinstance(node, Leaf)]
        leaves += len(covers)
        thin += sum(cover < THIN * sum(covers) for cover in covers)
    return Figure(measure="thin_leaves", value=thin / leaves)


def rounding(model: GuestModel) -> Figure:
    """Standard error on the margin that rounding leaf weights to 2**-score_bits makes, each leaf weighed by its cover."""
    variance = 0.0
    for t, tree in enumerate(model.trees):
        leaves = [node for node in tree.nodes if isinstance(node, Leaf)]
        covers = np.array([leaf.cover for leaf in leaves]) + 1e-12
        exact = np.array([model.weights_of(t, leaf) for leaf in leaves]) * 2.0**model.score_bits
        off = ((exact - np.rint(exact)) ** 2).max(axis=1)
        variance += float((covers * off).sum() / covers.sum())
    return Figure(measure="rounding", value=float(np.ldexp(np.sqrt(variance), -model.score_bits)))


def against_expectation(
    directions: Sequence[tuple[str, str, str, bool]], shares: Mapping[str, float]
) -> tuple[Figure, ...]:
    """Share of the gain of the features that run against what is expected, and of those without a clear direction.

    Parameters
    ----------
    directions : sequence of (party, feature, learned, contradicts)
        Of features with an expected direction.
    shares : mapping of str to float
        Feature → its share of the gain.
    """
    against = [
        Figure(measure="contradicting", value=shares[f], party=p, feature=f) for p, f, _, wrong in directions if wrong
    ]
    mixed = [
        Figure(measure="mixed", value=shares[f], party=p, feature=f) for p, f, how, _ in directions if how == "mixed"
    ]
    return (
        *(against or [Figure(measure="contradicting", value=0.0)]),
        *(mixed or [Figure(measure="mixed", value=0.0)]),
    )


# Robustness: margins of the same people, as they are and changed


def auc_fall(measure: str, labels: Floats, unchanged: Floats, changed: Floats, party: str, feature: str = "") -> Figure:
    """AUC as it is less AUC with changed values, both drawn on the same people."""
    fall = _drawn(len(labels), lambda weights: auc(labels, unchanged, weights) - auc(labels, changed, weights))
    return Figure(*fall, n=len(labels), measure=measure, party=party, feature=feature)


def flips(unchanged: Floats, changed: Floats, cutoff: float, party: str) -> Figure:
    """Share of the people whose decision changes; both are probabilities."""
    share = float(((unchanged < cutoff) != (changed < cutoff)).mean())
    return Figure(share, *wilson(share, len(unchanged)), n=len(unchanged), measure="noise_flips", party=party)


def without_host(labels: Floats, unchanged: Floats, changed: Floats, party: str) -> tuple[Figure, Figure]:
    """AUC on probabilities without a Host, and how far the mean probability moves, whichever way."""
    remaining_auc = _drawn(len(labels), lambda weights: auc(labels, changed, weights))
    moved = changed - unchanged
    low, high = of_mean(abs(float(moved.mean())), float(moved.std(ddof=1)), len(moved))
    return (
        Figure(*remaining_auc, n=len(labels), measure="out_auc", party=party),
        Figure(
            measure="out_shift",
            value=abs(float(moved.mean())),
            low=max(0.0, low),
            high=high,
            n=len(labels),
            party=party,
        ),
    )


def _drawn(n: int, figure: Callable[[Floats], Floats]) -> tuple[float | None, float | None, float | None]:
    """Return a figure of weights ``(draws, n)`` over all people, with its interval over resampled people; nothing if it is NaN."""
    value = float(figure(np.ones((1, n)))[0])
    if np.isnan(value):
        return None, None, None
    return value, *percentiles(np.concatenate([figure(weights) for weights in draws(n, RESAMPLES, SEED)]), value)


# Two models on the same people


def swap_sets(labels: Flags, champion: Flags, challenger: Flags) -> tuple[Figure, Figure]:
    """Share of the people approved by one model only; and how much worse the champion's own approvals are than the challenger's.

    Parameters
    ----------
    champion, challenger : ndarray of bool
        ``(n,)``: who is approved. The difference of bad rates has Newcombe's interval and is disclosed from 20 people on each side.
    """
    champion_only = champion & ~challenger
    challenger_only = challenger & ~champion
    swapped = Figure(measure="swapped", value=float((champion_only | challenger_only).mean()), n=len(labels))
    if min(champion_only.sum(), challenger_only.sum()) < MIN_GROUP:
        return swapped, Figure(measure="swap_excess", value=None)
    mine = float(labels[champion_only].mean())
    theirs = float(labels[challenger_only].mean())
    ends = of_difference(mine, int(champion_only.sum()), theirs, int(challenger_only.sum()))
    return swapped, Figure(
        mine - theirs, *ends, n=int(champion_only.sum() + challenger_only.sum()), measure="swap_excess"
    )


def challenger_gain(
    labels: Floats, champion: Floats, challenger: Floats, outputs: tuple[Outputs, Outputs], seed: int = SEED
) -> Figure:
    """AUC of the challenger less the champion's, drawn on the same people; both are margins."""
    for estimate in paired_difference(labels, champion, challenger, outputs, seed):
        if estimate.name == "auc":
            return Figure(
                measure="challenger_gain", value=estimate.value, low=estimate.low, high=estimate.high, n=len(labels)
            )
    return Figure(measure="challenger_gain", value=None)


def normal_ends(value: float, error: float, z: float = Z) -> tuple[float, float]:
    """`value` with `z` standard errors on either side."""
    return value - z * error, value + z * error
