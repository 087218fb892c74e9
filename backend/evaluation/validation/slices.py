"""A model by slices of one feature, from sums over groups: what is summed, and the figures that follow. Knows no person's value.

The Guest sums over its own column; a Host adds up what the Guest encrypted (:mod:`backend.protocols.group_sums.guest`). Both give the
same sums and so the same figures. Intervals are of all slices together (Bonferroni): one of a hundred is not found weak by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from backend.evaluation.validation.figures import normal_ends
from backend.evaluation.validation.suite import Figure, Found
from backend.fairness.intervals import TAILS, of_ratio
from backend.fairness.marking import FIXED, SCORE_BITS, Marking
from backend.protocols.group_sums.grouping import MIN_GROUP, Group
from backend.protocols.group_sums.values import Counts

Floats = NDArray[np.float64]
Key = tuple[str, str]  # (party, feature)


@dataclass(frozen=True)
class Slice:
    """One group of a feature's values.

    Attributes
    ----------
    accepted : float or None
        Share of the records that are accepted; None if decisions were not counted.
    positive, predicted : float
        Share that has the positive label; mean probability.
    loss, error : float
        Mean squared error of the probability (Brier), and its standard error.
    excess, excess_error : float
        Loss less that of quoting the slice's own share of positive labels, and its standard error.
    """

    group: Group
    accepted: float | None
    positive: float
    predicted: float
    loss: float
    error: float
    excess: float
    excess_error: float


def summed(guest_marks: Sequence[Counts], index: NDArray[np.intp], groups: int) -> Counts:
    """``(marks, groups)``: sums of the Guest's own marks by the groups of its own feature."""
    return np.array([[mark[index == k].sum() for k in range(groups)] for mark in guest_marks], dtype=np.int64)


def slices(groups: Sequence[Group], sums: Counts, marking: Marking) -> tuple[Slice, ...]:
    """Return each group's figures from sums of the marks of `marking`, ``(marks, groups)``; none if labels were not counted, and groups of
    fewer than 20 records are left out.
    """
    accepted, positive, _, units, deviations, losses, squares = sums[:FIXED]
    variances = marking.variances(np.array([group.n for group in groups]), units / (1 << SCORE_BITS), deviations)
    out = []
    for k, group in enumerate(groups if marking.labels else ()):
        n = group.n
        if n < MIN_GROUP:
            continue
        predicted = int(units[k]) / (1 << SCORE_BITS) / n
        loss = int(losses[k]) / (1 << SCORE_BITS) / n
        square = int(squares[k]) / (1 << SCORE_BITS) / n
        share = int(positive[k]) / n
        spread = max(square - loss**2, 0.0)
        squared = float(variances[k]) * (n - 1) / n + predicted**2
        excess_error = (
            _spread_of_excess(share, predicted, squared, loss, spread) / (n - 1) + 2 * (share * (1 - share) / n) ** 2
        ) ** 0.5
        out.append(
            Slice(
                group,
                int(accepted[k]) / n if marking.decisions else None,
                share,
                predicted,
                loss,
                (spread / (n - 1)) ** 0.5,
                loss - share * (1 - share) * n / (n - 1),
                excess_error,
            )
        )
    return tuple(out)


def _spread_of_excess(share: float, predicted: float, squared: float, loss: float, spread: float) -> float:
    """Variance of one record's part in a slice's excess, at the most that its sums allow.

    Linearised (Bradley, Schwartz and Hashino 2008), the part is loss - (1 - 2 share) y. The sums tell the mean of y p, not that of y p²,
    which lies between what positive, and what other records would have if they were all predicted alike (Jensen).

    Parameters
    ----------
    share, predicted, squared, loss : float
        Means of labels y, of probabilities p, of p² and of (y - p)².
    spread : float
        Variance of (y - p)².
    """
    if not 0 < share < 1:
        return spread
    slope = 1 - 2 * share
    both = (share + squared - loss) / 2
    lower_bound = both**2 / share
    if slope > 0:
        at = lower_bound
    else:
        at = max(lower_bound, squared - (predicted - both) ** 2 / (1 - share))
    together = share - 2 * both + at - share * loss
    return max(0.0, spread + slope**2 * share * (1 - share) - 2 * slope * together)


def weak_spots(by_feature: dict[Key, tuple[Slice, ...]]) -> Found:
    """Per slice, the Brier score less that of quoting the slice's own share of positive labels; above 0 the model is no help there."""
    z = _z(sum(map(len, by_feature.values())))
    return _figures(by_feature, "slice_excess", lambda s: (s.excess, s.excess_error), z)


def calibration_gaps(by_feature: dict[Key, tuple[Slice, ...]], measure: str = "group_gap") -> Found:
    """Per slice, how far predicted and observed shares are apart; the interval is what the predictions themselves leave to chance."""
    z = _z(sum(map(len, by_feature.values())))

    def gap(s: Slice) -> tuple[float, float]:
        chance = max(s.predicted * (1 - s.predicted), 0.0)
        return abs(s.positive - s.predicted), (chance / s.group.n) ** 0.5

    return _figures(by_feature, measure, gap, z)


def region_gaps(test: dict[Key, tuple[Slice, ...]], training: dict[Key, tuple[Slice, ...]]) -> Found:
    """Per slice, the Brier score on test records less that on training records of the same group.

    Both parts are drawn from the same people at random, so that the k-th bin of one is that of the other; a feature whose groups differ
    is left out.
    """
    alike = {}
    for key, test_slices in test.items():
        if key in training and _names(test_slices) == _names(training[key]):
            alike[key] = list(zip(test_slices, training[key], strict=True))
    z = _z(sum(map(len, alike.values())))
    out = []
    for key, pairs in alike.items():
        for in_test, in_training in pairs:
            gap = in_test.loss - in_training.loss
            error = float(np.hypot(in_test.error, in_training.error))
            out.append(
                _figure("region_gap", key, in_test, [of_test for of_test, _ in pairs], gap, normal_ends(gap, error, z))
            )
    return out or "few_people"


def periods(times: NDArray[np.str_], max_periods: int) -> tuple[tuple[Group, ...], NDArray[np.intp]]:
    """Return neighbouring days, months or years in at most `max_periods` groups of similar size, 20 records or more, the earliest first.

    Parameters
    ----------
    times : ndarray of str
        ``(n,)``, which sort as time does. Fewer than 20 records left at the end join the last group.
    """
    distinct, at, counts = np.unique(times, return_inverse=True, return_counts=True)
    min_size = max(MIN_GROUP, len(times) / max_periods)
    runs = list[list[int]]([[]])
    size = 0
    for k, n in enumerate(counts.tolist()):
        runs[-1].append(k)
        size += n
        if size >= min_size and k + 1 < len(counts):
            runs.append([])
            size = 0
    if len(runs) > 1 and size < MIN_GROUP:
        last = runs.pop()
        runs[-1] += last
    group_of = np.repeat(np.arange(len(runs)), [len(run) for run in runs])
    index = group_of[at].astype(np.intp)
    names = (str(distinct[run[0]]) + (f" – {distinct[run[-1]]}" if len(run) > 1 else "") for run in runs)
    sizes = np.bincount(index, minlength=len(runs)).tolist()
    return tuple(Group("code", name, n) for name, n in zip(names, sizes, strict=True)), index


def over_time(key: Key, feature_slices: Sequence[Slice]) -> Found:
    """Of the periods of one feature, lowest first: squared error less the first period's, and the gap of predicted and observed shares."""
    periods = tuple(s for s in feature_slices if s.group.kind in ("bin", "code"))
    if len(periods) < 2:
        return "few_people"
    first = periods[0]
    z = _z(len(periods) - 1)
    out = list(calibration_gaps({key: periods}, "period_gap"))
    for later in periods[1:]:
        rise = later.loss - first.loss
        error = float(np.hypot(later.error, first.error))
        out.append(_figure("period_loss", key, later, periods, rise, normal_ends(rise, error, z)))
    return [figure for figure in out if isinstance(figure, Figure)]


def impact_ratios(by_feature: dict[Key, tuple[Slice, ...]]) -> Found:
    """Per group of protected features, its acceptance rate over that of the largest group (29 CFR 1607.4(D), there the highest)."""
    out = []
    for key, feature_slices in by_feature.items():
        if len(feature_slices) < 2:
            continue
        reference = max(feature_slices, key=lambda s: s.group.n)
        for s in feature_slices:
            if s is reference or s.accepted is None or reference.accepted is None:
                continue
            if reference.accepted == 0:
                out.append(_figure("impact_ratio", key, s, feature_slices, None, (None, None)))
                continue
            ends = of_ratio(s.accepted, s.group.n, reference.accepted, reference.group.n)
            out.append(_figure("impact_ratio", key, s, feature_slices, s.accepted / reference.accepted, ends))
    return out or "few_people"


def _figures(
    by_feature: dict[Key, tuple[Slice, ...]], measure: str, of: Callable[[Slice], tuple[float, float]], z: float
) -> Found:
    out = []
    for key, feature_slices in by_feature.items():
        for s in feature_slices:
            value, error = of(s)
            out.append(_figure(measure, key, s, feature_slices, value, normal_ends(value, error, z)))
    return out or "few_people"


def _figure(
    measure: str,
    key: Key,
    s: Slice,
    all_slices: Sequence[Slice],
    value: float | None,
    ends: tuple[float | None, float | None],
) -> Figure:
    """Return a figure of one of a feature's slices; a slice of what was put together names the groups that were not."""
    apart: tuple[str, ...] = ()
    if s.group.kind == "rest":
        apart = tuple(sibling.group.name for sibling in all_slices if sibling.group.kind in ("code", "missing"))
    return Figure(
        value,
        *ends,
        n=s.group.n,
        measure=measure,
        party=key[0],
        feature=key[1],
        kind=s.group.kind,
        group=s.group.name,
        apart=apart,
    )


def _names(feature_slices: Sequence[Slice]) -> list[tuple[str, str]]:
    return [(s.group.kind, s.group.name) for s in feature_slices]


def _z(many: int) -> float:
    """Standard errors on either side so that this many intervals hold together with 95 %."""
    return NormalDist().inv_cdf(1 - TAILS[0] / max(many, 1))
