"""Outcomes of a model by group: selection, wrong declines, calibration of risk. Knows counts by group, no Host's value.

The decision is the dashboard's: ``decline`` where the probability of the positive label is at or above the cut-off. So the
*selection rate* of a group is the share that is accepted; its *true positive rate* the share of those with the positive label (who
defaulted, say) that is declined; its *false positive rate* the share of the others that is declined, wrongly; its *calibration gap* the
share of positive labels less the mean probability.

Either the Guest holds the attribute, and rates come from its records through fairlearn; or a Host does, and they come from sums by group
(:mod:`backend.protocols.group_sums.guest`). Both give the same result. Rates of one group have Wilson intervals (resampling a group in
which everybody is accepted would claim certainty), and groups are compared by what follows from these: each group's rate less, and over,
that of one *reference group*, the largest. The sign is kept and the reference does not depend on the rates, so that an interval can hold
"no difference"; a smallest rate against a largest one cannot, whatever is resampled. Each interval holds with 95 % by itself; whether
several groups differ at all is for a permutation test of the widest difference between any two. A ratio is an indicator, not a finding of
law (fairlearn's own caution about the four-fifths rule).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from backend.errors import ParameterError, SecurityError
from backend.fairness.evidence import Evidence
from backend.fairness.intervals import of_difference, of_ratio, wilson
from backend.i18n import Catalogue
from backend.protocols.group_sums.grouping import MIN_GROUP, Group
from backend.protocols.group_sums.values import Counts

PERMUTATIONS = 2000
ALL_GROUPS = "all groups"  # what the permutation test is about
REFERENCE, DIFFERENCE, RATIO, P = "reference", "difference", "ratio", "p"
"""What :func:`as_evidence` adds to a rate's name for what compares groups."""
SCORE_BITS = 16  # probabilities are summed in units of 2**-16

Measure = Literal["selection rate", "true positive rate", "false positive rate"]
MEASURES: tuple[Measure, ...] = ("selection rate", "true positive rate", "false positive rate")
# columns of cells that a rate counts, and that it counts among: accepted positive, accepted other, declined positive, declined other
CELLS_OF: dict[Measure, tuple[list[int], list[int]]] = {
    "selection rate": ([0, 1], [0, 1, 2, 3]),
    "true positive rate": ([2], [0, 2]),
    "false positive rate": ([3], [1, 3]),
}
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rate:
    """A share with its 95 % interval; all None where fewer than 20 records are behind it.

    Attributes
    ----------
    n : int
        Records behind it; 0 where it is suppressed.
    """

    n: int
    value: float | None
    low: float | None
    high: float | None


SUPPRESSED = Rate(0, None, None, None)


@dataclass(frozen=True)
class GroupOutcome:
    """Decisions and labels of one group.

    Attributes
    ----------
    rates : dict of measure to Rate
        By :data:`MEASURES`.
    positive : Rate
        Share with the positive label.
    calibration : Rate
        The same less the mean probability; above 0 = the risk is underestimated. The interval takes the probabilities as given.
    """

    group: Group
    rates: dict[Measure, Rate]
    positive: Rate
    calibration: Rate


@dataclass(frozen=True)
class Compared:
    """One group's rate against the reference group's.

    Attributes
    ----------
    difference, ratio : Rate
        This group's rate less, and over, the reference group's; `n` counts the records of both. The ratio is suppressed where the reference
        group's rate is 0.
    """

    group: Group
    difference: Rate
    ratio: Rate


@dataclass(frozen=True)
class Gap:
    """How far groups are apart in one rate.

    Attributes
    ----------
    reference : Group or None
        The largest group whose rate is reported; None where fewer than two are.
    others : tuple of Compared
        The other groups whose rate is reported.
    n : int
        Records behind all of these rates.
    p : float or None
        How often rates are as far apart, between any two groups, where nothing but chance decides who is in which group.
    """

    measure: Measure
    reference: Group | None
    others: tuple[Compared, ...]
    n: int
    p: float | None


@dataclass(frozen=True)
class Disparity:
    """Outcomes of a model by the groups of one feature.

    Attributes
    ----------
    n : int
        Records.
    cutoff : float
    groups : tuple of GroupOutcome
        Empty where no two groups are large enough.
    gaps : tuple of Gap
        By :data:`MEASURES`; the ratios of the first are adverse-impact ratios, of which 0.8 is the four-fifths of US employment law
        (29 CFR 1607.4(D), there against the group with the highest rate), here an indicator.
    source : {"records", "sums"}
        From the Guest's records, or from a Host's encrypted sums.
    """

    party: str
    feature: str
    n: int
    cutoff: float
    groups: tuple[GroupOutcome, ...]
    gaps: tuple[Gap, ...]
    source: Literal["records", "sums"]


def marks(
    accepted: NDArray[np.bool_], labels: NDArray[np.bool_], probabilities: Floats
) -> tuple[list[Counts], list[int]]:
    """What is summed by group, and the largest value of each: accepted, positive, both, probability in 2**-16."""
    units = np.rint(probabilities * (1 << SCORE_BITS)).astype(np.int64)
    flags = [accepted, labels, accepted & labels]
    return [*(flag.astype(np.int64) for flag in flags), units], [1, 1, 1, 1 << SCORE_BITS]


def from_sums(
    party: str, feature: str, cutoff: float, groups: Sequence[Group], sums: Counts, *, seed: int
) -> Disparity:
    """Outcomes from sums of :func:`marks` by group, ``(4, groups)``."""
    counts = _Counts.of(groups, sums)
    values = {measure: _shares(counts.cells, measure) for measure in MEASURES}
    return _disparity(party, feature, cutoff, counts, values, "sums", seed)


def from_records(
    party: str,
    feature: str,
    cutoff: float,
    groups: Sequence[Group],
    index: NDArray[np.intp],
    labels: NDArray[np.bool_],
    probabilities: Floats,
    *,
    seed: int,
) -> Disparity:
    """Outcomes from records, ``(n,)`` each, of which `index` is the group."""
    accepted = probabilities < cutoff
    summed = marks(accepted, labels, probabilities)[0]
    sums = np.array([[mark[index == k].sum() for k in range(len(groups))] for mark in summed], dtype=np.int64)
    counts = _Counts.of(groups, sums)
    values = _by_fairlearn(index, labels, accepted, len(groups)) if len(groups) else {m: np.empty(0) for m in MEASURES}
    return _disparity(party, feature, cutoff, counts, values, "records", seed)


def measure_in_words(say: Callable[[str], str], measure: str) -> str:
    """A measure of :func:`as_evidence` from a catalogue; any other measure is its own name."""
    rate, _, gap = measure.partition(", ")
    if rate not in MEASURES or gap not in ("", REFERENCE, DIFFERENCE, RATIO, P):
        return measure
    words = say(f"measure.rate_{rate.removesuffix(' rate').replace(' ', '_')}")
    return say(f"measure.gap_{gap}").format(rate=words) if gap else words


class _Row(Protocol):
    """What :func:`widest` reads of :class:`Evidence`, or of a report's own line."""

    @property
    def measure(self) -> str: ...
    @property
    def value(self) -> float | None: ...


R = TypeVar("R", bound=_Row)


def widest(rows: Iterable[R], measure: Measure = "selection rate") -> R | None:
    """The group that is furthest from the reference group, among rows of :func:`as_evidence`."""
    differences = (row for row in rows if row.measure == f"{measure}, {DIFFERENCE}" and row.value is not None)
    return max(differences, key=lambda row: abs(row.value or 0.0), default=None)


def check_cutoff(cutoff: float) -> None:
    """Raise ParameterError where the cut-off is no probability."""
    if not 0.0 < cutoff < 1.0:
        raise ParameterError(f"The cut-off is {cutoff:g}; choose a probability above 0 and below 1.")


def as_evidence(disparity: Disparity, names: Sequence[str], names_zh: Sequence[str] = ()) -> tuple[Evidence, ...]:
    """What a compliance finding on the feature shows of it: every group's rates, then for each rate how groups compare.

    Parameters
    ----------
    names, names_zh : sequence of str
        Of the groups, in their order, in English and Chinese.
    """
    named = list(zip(names, names_zh or names, disparity.groups, strict=True))
    words = {outcome.group: (name, name_zh) for name, name_zh, outcome in named}

    def row(group: Group, measure: str, rate: Rate) -> Evidence:
        name, name_zh = words[group]
        return Evidence(name, measure, rate.n, rate.value, rate.low, rate.high, name_zh)

    rows = [row(outcome.group, measure, rate) for _, _, outcome in named for measure, rate in outcome.rates.items()]
    rates = {outcome.group: outcome.rates for outcome in disparity.groups}
    for gap in disparity.gaps:
        if gap.reference is None:
            continue
        rows.append(row(gap.reference, f"{gap.measure}, {REFERENCE}", rates[gap.reference][gap.measure]))
        for other in gap.others:
            rows.append(row(other.group, f"{gap.measure}, {DIFFERENCE}", other.difference))
            rows.append(row(other.group, f"{gap.measure}, {RATIO}", other.ratio))
        all_zh = Catalogue("zh")("measure.group_all")
        rows.append(Evidence(ALL_GROUPS, f"{gap.measure}, {P}", gap.n, gap.p, None, None, all_zh))
    return tuple(rows)


@dataclass(frozen=True)
class _Counts:
    """Counts by group: ``(groups, 4)`` records by decision and label (:data:`CELLS_OF`), ``(groups,)`` sums of probabilities."""

    groups: tuple[Group, ...]
    cells: NDArray[np.int64]
    probability: Floats

    @classmethod
    def of(cls, groups: Sequence[Group], sums: Counts) -> _Counts:
        n = np.array([g.n for g in groups], dtype=np.int64)
        accepted, positive, both, units = sums
        cells = np.stack([both, accepted - both, positive - both, n - accepted - positive + both], axis=-1)
        if cells.size and cells.min() < 0:
            raise SecurityError(
                "Sums by group came back that no records give; they were thrown away. Ask the Host what it runs."
            )
        return cls(tuple(groups), cells, units / float(1 << SCORE_BITS))


def _behind(cells: NDArray[np.int64], measure: Measure) -> NDArray[np.int64]:
    """``(groups,)``: records behind a share."""
    out: NDArray[np.int64] = cells[..., CELLS_OF[measure][1]].sum(axis=-1)
    return out


def _counted(cells: NDArray[np.int64], measure: Measure) -> NDArray[np.int64]:
    """``(groups,)``: records that a share counts."""
    out: NDArray[np.int64] = cells[..., CELLS_OF[measure][0]].sum(axis=-1)
    return out


def _shares(cells: NDArray[np.int64], measure: Measure) -> Floats:
    """``(groups,)``: NaN where nobody is behind a share."""
    behind = _behind(cells, measure)
    counted = _counted(cells, measure)
    out: Floats = np.divide(counted, behind, out=np.full(behind.shape, np.nan), where=behind > 0)
    return out


def _by_fairlearn(
    index: NDArray[np.intp], labels: NDArray[np.bool_], accepted: NDArray[np.bool_], groups: int
) -> dict[Measure, Floats]:
    """Each group's rates by fairlearn; a rate without records is 0 there, and is suppressed here."""
    from fairlearn.metrics import (  # noqa: PLC0415 - takes a second, and few runs need it
        MetricFrame,
        false_positive_rate,
        selection_rate,
        true_positive_rate,
    )

    declined = pd.Series(~accepted).astype(int)
    frame = MetricFrame(
        metrics={
            "selection rate": lambda truth, declined: selection_rate(truth, 1 - declined),
            "true positive rate": true_positive_rate,
            "false positive rate": false_positive_rate,
        },
        y_true=labels.astype(int),
        y_pred=declined,
        sensitive_features=pd.Series(index, name="group"),
    )
    table = frame.by_group.reindex(range(groups))
    return {measure: table[measure].to_numpy(dtype=np.float64) for measure in MEASURES}


def _disparity(
    party: str,
    feature: str,
    cutoff: float,
    counts: _Counts,
    values: dict[Measure, Floats],
    source: Literal["records", "sums"],
    seed: int,
) -> Disparity:
    behind = {measure: _behind(counts.cells, measure) for measure in MEASURES}
    outcomes = []
    for k, group in enumerate(counts.groups):
        rates = {m: _rate(float(values[m][k]), int(n[k])) for m, n in behind.items()}
        positive = _rate(float(counts.cells[k, [0, 2]].sum() / group.n), group.n)
        mean = float(counts.probability[k] / group.n)
        shifted = (None if v is None else v - mean for v in (positive.value, positive.low, positive.high))
        outcomes.append(GroupOutcome(group, rates, positive, Rate(group.n, *shifted)))
    draw = np.random.default_rng(seed)
    gaps = tuple(_gap(m, counts, values[m], draw) for m in MEASURES)
    n = sum(g.n for g in counts.groups)
    return Disparity(party, feature, n, cutoff, tuple(outcomes), gaps if outcomes else (), source)


def _rate(share: float, n: int) -> Rate:
    """A share with its interval; suppressed where too few records are behind it."""
    return Rate(n, share, *wilson(share, n)) if n >= MIN_GROUP else SUPPRESSED


def _gap(measure: Measure, counts: _Counts, values: Floats, draw: np.random.Generator) -> Gap:
    """Over the groups that are large enough for their rate to be reported."""
    behind = _behind(counts.cells, measure)
    large = [int(k) for k in np.flatnonzero(behind >= MIN_GROUP)]
    if len(large) < 2:
        return Gap(measure, None, (), 0, None)
    reference = max(large, key=lambda k: counts.groups[k].n)
    others = tuple(
        _compared(
            counts.groups[k], (float(values[k]), int(behind[k])), (float(values[reference]), int(behind[reference]))
        )
        for k in large
        if k != reference
    )
    p = by_chance(_counted(counts.cells, measure)[large], behind[large], draw)
    return Gap(measure, counts.groups[reference], others, int(behind[large].sum()), p)


def _compared(group: Group, own: tuple[float, int], reference: tuple[float, int]) -> Compared:
    """Shares with the records behind them, compared."""
    (share, n), (base, base_n) = own, reference
    difference = Rate(n + base_n, share - base, *of_difference(share, n, base, base_n))
    ratio = Rate(n + base_n, share / base, *of_ratio(share, n, base, base_n)) if base > 0 else SUPPRESSED
    return Compared(group, difference, ratio)


def by_chance(counted: NDArray[np.int64], behind: NDArray[np.int64], draw: np.random.Generator) -> float:
    """p-value of the widest difference between any two rates, by permuting who is in which group.

    Parameters
    ----------
    counted, behind : ndarray of int64, ``(groups,)``
        Records that a rate counts, and that it counts among.
    """
    permuted = draw.multivariate_hypergeometric(behind, int(counted.sum()), size=PERMUTATIONS) / behind
    apart = np.ptp(counted / behind) * (1 - 1e-9)
    return float(
        (1 + np.sum(np.ptp(permuted, axis=1) >= apart)) / (1 + PERMUTATIONS)
    )  # the groups as they are count as one
