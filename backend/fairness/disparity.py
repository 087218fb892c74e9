"""Outcomes of a model by group: selection, wrong declines, calibration of risk. Knows counts by group, no Host's value.

The decision is the dashboard's: ``decline`` where the probability of the positive label is at or above the cut-off. So the
*selection rate* of a group is the share that is accepted; its *true positive rate* the share of those with the positive label (who
defaulted, say) that is declined; its *false positive rate* the share of the others that is declined, wrongly; its *calibration gap* the
share of positive labels less the mean probability.

Either the Guest holds the attribute, and rates come from its records through fairlearn; or a Host does, and they come from sums by group
(:mod:`backend.protocols.group_sums.guest`). Both give the same result. Rates of one group have Wilson intervals (resampling a group in
which everybody is accepted would claim certainty), and groups are compared by what follows from these: each group's rate less, and over,
that of one *reference group*, the largest or one that is named. The sign is kept and the reference does not depend on the rates, so that
an interval can hold "no difference"; a smallest rate against a largest one cannot, whatever is resampled. Scores are compared without any
cut-off by their standardised mean difference, and selection at a range of cut-offs (:mod:`backend.fairness.marking`). Each interval and
each test of two groups is for itself; whether several groups differ at all is for a permutation test of the widest difference between
any two. A ratio is an indicator, not a finding of law (fairlearn's own caution about the four-fifths rule).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from backend.errors import ParameterError, SecurityError
from backend.fairness.evidence import Evidence, FeatureResult, Measured
from backend.fairness.intervals import of_difference, of_mean, of_ratio, of_standardised, wilson
from backend.fairness.marking import FIXED, SCORE_BITS, Marking
from backend.fairness.significance import by_chance, of_two_means, of_two_shares
from backend.i18n import Text
from backend.protocols.group_sums.grouping import MIN_GROUP, PAIR, Group, sides_of
from backend.protocols.group_sums.values import Counts

ALL_GROUPS = Text("all groups", "所有群体")  # what the test of a whole gap is about
REFERENCE = "reference"
DIFFERENCE = "difference"
RATIO = "ratio"
P = "p"
PAIR_P = "pair p"
"""What :func:`as_evidence` adds to a rate's name for what compares groups."""
# what :func:`as_evidence` says of scores, without a cut-off
SCORE = "score"
SMD = "standardised mean difference"
BY_CUTOFF = "selection rate by cut-off"
FOUR_FIFTHS = 0.8  # 29 CFR 1607.4(D), of employment; in lending an indicator
LABELLED = ("true positive rate", "false positive rate")

Measure = Literal["selection rate", "true positive rate", "false positive rate"]
SELECTION: Measure = "selection rate"
MEASURES: tuple[Measure, ...] = ("selection rate", "true positive rate", "false positive rate")
# columns of cells that a rate counts, and that it counts among: accepted positive, accepted other, declined positive, declined other
CELLS_OF: dict[Measure, tuple[list[int], list[int]]] = {
    "selection rate": ([0, 1], [0, 1, 2, 3]),
    "true positive rate": ([2], [0, 2]),
    "false positive rate": ([3], [1, 3]),
}
Floats = NDArray[np.float64]


SUPPRESSED = Measured(None)


@dataclass(frozen=True)
class GroupOutcome:
    """Decisions and labels of one group.

    Attributes
    ----------
    rates : dict of measure to Measured
        By :data:`MEASURES`.
    positive : Measured
        Share with the positive label.
    calibration : Measured
        The same less the mean probability; above 0 = the risk is underestimated. The interval takes the probabilities as given.
    score : Measured
        Mean probability of the positive label.
    deviation : float
        Standard deviation of the probabilities.
    """

    group: Group
    rates: dict[Measure, Measured]
    positive: Measured
    calibration: Measured
    score: Measured
    deviation: float


@dataclass(frozen=True)
class ComparedRate:
    """One group's rate against the reference group's.

    Attributes
    ----------
    difference, ratio : Measured
        This group's rate less, and over, the reference group's; `n` counts the records of both. The ratio is suppressed if the reference
        group's rate is 0.
    p : float
        How often two such rates are as far apart by chance alone: exact or normal, as the counts allow.
    """

    group: Group
    difference: Measured
    ratio: Measured
    p: float


@dataclass(frozen=True)
class Gap:
    """How far groups are apart in one rate.

    Attributes
    ----------
    reference : Group or None
        The group that was named, else the largest, among those whose rate is reported; None if fewer than two are, or it is not.
    others : tuple of ComparedRate
        The other groups whose rate is reported.
    n : int
        Records behind all of these rates.
    p : float or None
        How often rates are as far apart, between any two groups, if nothing but chance decides who is in which group: of two groups that
        of their comparison, of several a permutation test.
    """

    measure: Measure
    reference: Group | None
    others: tuple[ComparedRate, ...]
    n: int
    p: float | None


@dataclass(frozen=True)
class ScoreCompared:
    """One group's scores against the reference group's, without a cut-off.

    Attributes
    ----------
    smd : Measured
        Mean probability less the reference group's, over the root of the mean of both variances (Bonett 2008); above 0, this group is
        scored riskier. Suppressed if all scores are the same.
    p : float
        Of two such means by chance alone (Welch 1947).
    """

    group: Group
    smd: Measured
    p: float


@dataclass(frozen=True)
class AtCutoff:
    """Selection at one cut-off of the range.

    Attributes
    ----------
    rates : tuple of Measured
        Selection rates, as `Disparity.groups`.
    others : tuple of ComparedRate
        As in the gap of selection rates.
    """

    cutoff: float
    rates: tuple[Measured, ...]
    others: tuple[ComparedRate, ...]


@dataclass(frozen=True)
class Disparity(FeatureResult):
    """Outcomes of a model by the groups of one feature.

    Attributes
    ----------
    groups : tuple of GroupOutcome
        Empty if no two groups are large enough.
    gaps : tuple of Gap
        By :data:`MEASURES`; the ratios of the first are adverse-impact ratios, of which 0.8 is the four-fifths of US employment law
        (29 CFR 1607.4(D), there against the group with the highest rate), here an indicator.
    scores : tuple of ScoreCompared
        Against the reference group of the first gap.
    cutoffs : tuple of AtCutoff
        A range of cut-offs, ascending, `cutoff` among them.
    source : {"records", "sums"}
        From the Guest's records, or from a Host's encrypted sums.
    measured : str
        The day, UTC, of an answer that the Host gave before; empty = just now.
    policy : int or None
        Version of the policy whose line the cut-off is; None = another line.
    pairs : tuple of (Group, Group) or None
        Of two features together: which group of each makes a group of `groups`, then of `small`; None of small ones that a Host has put
        together. Empty of one feature.
    small : tuple of Group
        Groups of two features together with fewer than 20 records, as few as none: they are left out, and their `n` is 0.
    """

    cutoff: float
    groups: tuple[GroupOutcome, ...]
    gaps: tuple[Gap, ...]
    scores: tuple[ScoreCompared, ...]
    cutoffs: tuple[AtCutoff, ...]
    source: Literal["records", "sums"]
    measured: str = ""
    policy: int | None = None
    pairs: tuple[tuple[Group, Group] | None, ...] = ()
    small: tuple[Group, ...] = ()


def of_pairs(
    party: str,
    feature: str,
    cutoff: float,
    features: tuple[Sequence[Group], Sequence[Group]],
    people: Counts,
    accepted: Counts,
    source: Literal["records", "sums"],
    *,
    reference: str = "",
    seed: int,
) -> Disparity:
    """Return acceptance by the groups of two features together; cells of fewer than 20 records are left out.

    Parameters
    ----------
    people, accepted : ndarray of int64
        ``(groups of the first feature, groups of the second)``.

    Raises
    ------
    ParameterError
        No group is called `reference`.
    SecurityError
        The counts cannot be those of any records.
    """
    if people.size and ((accepted < 0) | (accepted > people)).any():
        raise SecurityError("impossible_group_sums")
    large = []
    small = []
    for (i, first_group), (j, second_group) in product(enumerate(features[0]), enumerate(features[1])):
        name = f"{first_group.name or first_group.kind}{PAIR}{second_group.name or second_group.kind}"
        if people[i, j] >= MIN_GROUP:
            large.append((Group("pair", name, int(people[i, j])), int(accepted[i, j]), (first_group, second_group)))
        else:
            small.append((Group("pair", name, 0), (first_group, second_group)))
    groups = tuple(group for group, _, _ in large)
    _check_reference(feature, groups, reference)
    n = np.array([group.n for group in groups], dtype=np.int64)
    n_accepted = np.array([count for _, count, _ in large], dtype=np.int64)
    no_records = np.zeros_like(n)
    # Labels are not counted: all records count as being without the positive one.
    cells = np.stack([no_records, n_accepted, no_records, n - n_accepted], axis=-1)
    unknown = np.zeros(len(n))
    counts = _Counts(groups, cells, unknown, unknown, n_accepted[None], labelled=False, labels=False)
    shares = _shares(cells, SELECTION)
    outcomes = []
    for k, group in enumerate(groups):
        rates = {SELECTION: _rate(float(shares[k]), group.n)}
        outcomes.append(GroupOutcome(group, rates, SUPPRESSED, SUPPRESSED, SUPPRESSED, 0.0))
    gap = _gap(SELECTION, counts, shares, reference, np.random.default_rng(seed))
    return Disparity(
        party,
        feature,
        int(n.sum()),
        cutoff,
        tuple(outcomes),
        (gap,),
        (),
        (),
        source,
        pairs=(*(pair for _, _, pair in large), *(pair for _, pair in small)),
        small=tuple(group for group, _ in small),
    )


def from_sums(
    party: str, feature: str, marking: Marking, groups: Sequence[Group], sums: Counts, *, reference: str = "", seed: int
) -> Disparity:
    """Outcomes from sums of the marks of `marking` by group, ``(marks, groups)``.

    Raises
    ------
    ParameterError
        No group is called `reference`.
    """
    counts = _Counts.of(groups, sums, marking)
    values = {measure: _shares(counts.cells, measure) for measure in MEASURES}
    return _disparity(party, feature, marking, counts, values, "sums", reference, seed)


def of_cells(
    party: str,
    features: str,
    marking: Marking,
    groups: Sequence[Group],
    sums: Counts,
    *,
    reference: str = "",
    seed: int,
) -> Disparity:
    """Return outcomes by two features of a Host together; else as :func:`from_sums`.

    Parameters
    ----------
    groups : sequence of Group
        Cells, and all small ones together.

    Raises
    ------
    SecurityError
        The Host has named no such groups.
    """
    pair_groups = []
    pairs = list[tuple[Group, Group] | None]()
    for group in groups:
        if group.kind == "rest":
            pair_groups.append(group)
            pairs.append(None)
        else:
            sides = sides_of(group)
            name = PAIR.join(side.name or side.kind for side in sides)
            pair_groups.append(Group("pair", name, group.n))
            pairs.append(sides)
    disparity = from_sums(party, features, marking, pair_groups, sums, reference=reference, seed=seed)
    return replace(disparity, pairs=tuple(pairs))


def from_records(
    party: str,
    feature: str,
    marking: Marking,
    groups: Sequence[Group],
    index: NDArray[np.intp],
    labels: NDArray[np.bool_],
    probabilities: Floats,
    *,
    reference: str = "",
    seed: int,
) -> Disparity:
    """Outcomes from records, ``(n,)`` each, of which `index` is the group; else as :func:`from_sums`."""
    summed, _ = marking.marks(labels, probabilities)
    sums = np.array([[mark[index == k].sum() for k in range(len(groups))] for mark in summed], dtype=np.int64)
    counts = _Counts.of(groups, sums, marking)
    accepted = probabilities < marking.cutoff
    if len(groups):
        values = _by_fairlearn(index, labels, accepted, len(groups))
    else:
        values = {m: np.empty(0) for m in MEASURES}
    return _disparity(party, feature, marking, counts, values, "records", reference, seed)


def measure_in_words(say: Callable[[str], str], measure: str) -> str:
    """Return a measure of :func:`as_evidence` from a catalogue; any other measure is its own name."""
    rate, _, gap = measure.partition(", ")
    if rate in (SCORE, BY_CUTOFF) and gap in ("", SMD, DIFFERENCE, RATIO, PAIR_P):
        words = say(f"measure.{'score' if rate == SCORE else 'by_cutoff'}")
        if gap:
            return say(f"measure.gap_{gap.replace(' ', '_')}").format(rate=words)
        return words
    if rate not in MEASURES or gap not in ("", REFERENCE, DIFFERENCE, RATIO, P, PAIR_P):
        return measure
    words = say(f"measure.rate_{rate.removesuffix(' rate').replace(' ', '_')}")
    if gap:
        return say(f"measure.gap_{gap.replace(' ', '_')}").format(rate=words)
    return words


def lower_over_higher(ratio: float, low: float | None, high: float | None) -> tuple[float, float | None, float | None]:
    """Return a ratio of two rates, with its interval, as the lower rate over the higher one.

    A group's ratio is over the reference group's rate, which may itself be the lower one: then four fifths is below the inverse.

    Examples
    --------
    >>> lower_over_higher(2.0, 1.6, 2.5)
    (0.5, 0.4, 0.625)
    >>> lower_over_higher(0.9, 0.8, 1.1)
    (0.9, 0.8, 1.1)
    """
    if ratio <= 1:
        return ratio, low, high
    return 1 / ratio, 1 / high if high else None, 1 / low if low else None


def widest(rows: Iterable[Evidence]) -> Evidence | None:
    """Return the group whose selection rate is furthest from the reference group's, among rows of :func:`as_evidence`."""
    differences = (row for row in rows if row.measure == f"selection rate, {DIFFERENCE}" and row.value is not None)
    return max(differences, key=lambda row: abs(row.value or 0.0), default=None)


def as_evidence(disparity: Disparity, names: Sequence[Text]) -> tuple[Evidence, ...]:
    """Return what a compliance finding on the feature shows: each group's rates, then for each rate how groups compare; scores, cut-offs.

    Parameters
    ----------
    names : sequence of Text
        Of the groups, in their order; then of those that are too small.
    """
    groups = [outcome.group for outcome in disparity.groups]
    words = dict(zip((*groups, *disparity.small), names, strict=True))

    def row(group: Group, measure: str, rate: Measured, cutoff: float | None = None) -> Evidence:
        return Evidence(
            about=words[group], measure=measure, n=rate.n, value=rate.value, low=rate.low, high=rate.high, cutoff=cutoff
        )

    def by_itself(comparison: ComparedRate | ScoreCompared, measure: str, n: int) -> Evidence:
        return row(comparison.group, f"{measure}, {PAIR_P}", Measured(comparison.p, n=n))

    rows = [row(o.group, measure, rate) for o in disparity.groups for measure, rate in o.rates.items()]
    rows += [row(group, SELECTION, SUPPRESSED) for group in disparity.small]
    rates = {outcome.group: outcome.rates for outcome in disparity.groups}
    for gap in disparity.gaps:
        if gap.reference is None:
            continue
        rows.append(row(gap.reference, f"{gap.measure}, {REFERENCE}", rates[gap.reference][gap.measure]))
        for rate in gap.others:
            rows.append(row(rate.group, f"{gap.measure}, {DIFFERENCE}", rate.difference))
            rows.append(row(rate.group, f"{gap.measure}, {RATIO}", rate.ratio))
            rows.append(by_itself(rate, gap.measure, rate.difference.n))
        rows.append(
            Evidence(about=ALL_GROUPS, measure=f"{gap.measure}, {P}", n=gap.n, value=gap.p, low=None, high=None)
        )
    rows += [row(outcome.group, SCORE, outcome.score) for outcome in disparity.groups if outcome.score.n]
    for compared in disparity.scores:
        rows += [row(compared.group, f"{SCORE}, {SMD}", compared.smd), by_itself(compared, SCORE, compared.smd.n)]
    for at in disparity.cutoffs:
        rows += [row(o.group, BY_CUTOFF, r, at.cutoff) for o, r in zip(disparity.groups, at.rates, strict=True)]
        rows += [row(o.group, f"{BY_CUTOFF}, {DIFFERENCE}", o.difference, at.cutoff) for o in at.others]
        rows += [row(o.group, f"{BY_CUTOFF}, {RATIO}", o.ratio, at.cutoff) for o in at.others]
    return tuple(rows)


@dataclass(frozen=True)
class _Counts:
    """Counts by group: ``(groups, 4)`` records by decision and label (:data:`CELLS_OF`), ``(groups,)`` sums of probabilities and variances,
    ``(cutoffs, groups)`` accepted; `labelled` = decisions were counted by label, `labels` = labels were.
    """

    groups: tuple[Group, ...]
    cells: NDArray[np.int64]
    probability: Floats
    variance: Floats
    accepted: NDArray[np.int64]
    labelled: bool
    labels: bool

    @classmethod
    def of(cls, groups: Sequence[Group], sums: Counts, marking: Marking) -> _Counts:
        n = np.array([g.n for g in groups], dtype=np.int64)
        accepted, positive, both, units, squares, _, _ = sums[:FIXED]
        cells = np.stack([both, accepted - both, positive - both, n - accepted - positive + both], axis=-1)
        ladder = marking.ladder(accepted, sums[FIXED:])
        steps = np.diff(np.vstack([np.zeros_like(n), ladder, n]), axis=0)
        if (cells.size and marking.labelled and cells.min() < 0) or (steps.size and steps.min() < 0):
            raise SecurityError("impossible_group_sums")
        probability = units / float(1 << SCORE_BITS)
        variance = marking.variances(n, probability, squares)
        return cls(tuple(groups), cells, probability, variance, ladder, marking.labelled, marking.labels)


def _behind(cells: NDArray[np.int64], measure: Measure) -> NDArray[np.int64]:
    """``(groups,)``: records behind a share."""
    out: NDArray[np.int64] = cells[..., CELLS_OF[measure][1]].sum(axis=-1)
    return out


def _counted(cells: NDArray[np.int64], measure: Measure) -> NDArray[np.int64]:
    """``(groups,)``: records that a share counts."""
    out: NDArray[np.int64] = cells[..., CELLS_OF[measure][0]].sum(axis=-1)
    return out


def _shares(cells: NDArray[np.int64], measure: Measure) -> Floats:
    """``(groups,)``: NaN if no record is behind a share."""
    behind = _behind(cells, measure)
    counted = _counted(cells, measure)
    out: Floats = np.divide(counted, behind, out=np.full(behind.shape, np.nan), where=behind > 0)
    return out


def _by_fairlearn(
    index: NDArray[np.intp], labels: NDArray[np.bool_], accepted: NDArray[np.bool_], groups: int
) -> dict[Measure, Floats]:
    """Return each group's rates by fairlearn; a rate without records is 0 there, and is suppressed here."""
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
    marking: Marking,
    counts: _Counts,
    values: dict[Measure, Floats],
    source: Literal["records", "sums"],
    reference: str,
    seed: int,
) -> Disparity:
    _check_reference(feature, counts.groups, reference)
    outcomes = tuple(_outcome(k, counts, values) for k in range(len(counts.groups)))
    draw = np.random.default_rng(seed)
    if outcomes:
        gaps = tuple(_gap(m, counts, values[m], reference, draw) for m in MEASURES)
    else:
        gaps = ()
    base = gaps[0].reference if gaps else None
    n = sum(g.n for g in counts.groups)
    return Disparity(
        party,
        feature,
        n,
        marking.cutoff,
        outcomes,
        gaps,
        _scores(outcomes, base),
        _range(marking, counts, base),
        source,
    )


def _check_reference(feature: str, groups: Sequence[Group], reference: str) -> None:
    """Raise ParameterError if there are groups, and none is called so."""
    names = tuple(group.name or group.kind for group in groups)
    if reference and names and reference not in names:
        raise ParameterError("no_such_group", feature=feature, group=reference, known=names)


def _outcome(k: int, counts: _Counts, values: dict[Measure, Floats]) -> GroupOutcome:
    """Return one group's rates, calibration and scores."""
    group = counts.groups[k]
    behind = {m: _reported(counts, m)[k] for m in MEASURES}
    rates = {m: _rate(float(values[m][k]), int(n)) for m, n in behind.items()}
    if counts.labels:
        positive = _rate(float(counts.cells[k, [0, 2]].sum() / group.n), group.n)
    else:
        positive = SUPPRESSED
    mean = float(counts.probability[k] / group.n)
    deviation = float(np.sqrt(counts.variance[k]))
    shifted = SUPPRESSED
    if positive.value is not None and positive.low is not None and positive.high is not None:
        shifted = Measured(positive.value - mean, positive.low - mean, positive.high - mean, positive.n)
    score = Measured(mean, *of_mean(mean, deviation, group.n), group.n)
    return GroupOutcome(group, rates, positive, shifted, score, deviation)


def _rate(share: float, n: int) -> Measured:
    """Return a share with its interval; suppressed if too few records are behind it."""
    if n >= MIN_GROUP:
        return Measured(share, *wilson(share, n), n)
    return SUPPRESSED


def _reported(counts: _Counts, measure: Measure) -> NDArray[np.int64]:
    """``(groups,)``: records behind a rate; 0 if decisions were not counted by label."""
    behind = _behind(counts.cells, measure)
    if counts.labelled or measure not in LABELLED:
        return behind
    return np.zeros_like(behind)


def _gap(measure: Measure, counts: _Counts, values: Floats, reference: str, draw: np.random.Generator) -> Gap:
    """Over the groups that are large enough for their rate to be reported."""
    behind = _reported(counts, measure)
    counted = _counted(counts.cells, measure)
    large = [int(k) for k in np.flatnonzero(behind >= MIN_GROUP)]
    base = max(large, key=lambda k: _first(counts.groups[k], reference), default=-1)
    if len(large) < 2 or (reference and (counts.groups[base].name or counts.groups[base].kind) != reference):
        return Gap(measure, None, (), 0, None)
    others = tuple(
        _compared(
            counts.groups[k], float(values[k]), int(counted[k]), int(behind[k]), int(counted[base]), int(behind[base])
        )
        for k in large
        if k != base
    )
    if len(large) == 2:
        p = others[0].p
    else:
        p = by_chance(counted[large], behind[large], draw)
    return Gap(measure, counts.groups[base], others, int(behind[large].sum()), p)


def _first(group: Group, reference: str) -> tuple[bool, int]:
    """Orders groups by whether they are the one that was named, then by size."""
    return bool(reference) and (group.name or group.kind) == reference, group.n


def _compared(group: Group, share: float, counted: int, n: int, base_counted: int, base_n: int) -> ComparedRate:
    """Return a group's share against the reference group's."""
    base = base_counted / base_n
    difference = Measured(share - base, *of_difference(share, n, base, base_n), n + base_n)
    if base > 0:
        ratio = Measured(share / base, *of_ratio(share, n, base, base_n), n + base_n)
    else:
        ratio = SUPPRESSED
    return ComparedRate(group, difference, ratio, of_two_shares(counted, n, base_counted, base_n))


def _scores(outcomes: tuple[GroupOutcome, ...], reference: Group | None) -> tuple[ScoreCompared, ...]:
    """Return every other group's scores against the reference group's."""
    base = next((o for o in outcomes if o.group == reference), None)
    if base is None:
        return ()
    return tuple(_score(o, base) for o in outcomes if o is not base)


def _score(group: GroupOutcome, base: GroupOutcome) -> ScoreCompared:
    n = group.group.n
    base_n = base.group.n
    apart = (group.score.value or 0.0) - (base.score.value or 0.0)
    smd_interval = of_standardised(apart, group.deviation, n, base.deviation, base_n)
    if smd_interval is None:
        smd = SUPPRESSED
    else:
        smd = Measured(*smd_interval, n + base_n)
    return ScoreCompared(group.group, smd, of_two_means(apart, group.deviation, n, base.deviation, base_n))


def _range(marking: Marking, counts: _Counts, reference: Group | None) -> tuple[AtCutoff, ...]:
    """Selection at every cut-off of the range."""
    if reference is None:
        return ()
    base = counts.groups.index(reference)
    at_cutoffs = []
    for cutoff, accepted in zip(marking.range, counts.accepted, strict=True):
        shares = []
        for a, g in zip(accepted, counts.groups, strict=True):
            shares.append((int(a) / g.n, int(a), g.n))
        rates = tuple(_rate(share, n) for share, _, n in shares)
        others = []
        for k, (group, counted) in enumerate(zip(counts.groups, shares, strict=True)):
            if k != base:
                others.append(_compared(group, *counted, *shares[base][1:]))
        at_cutoffs.append(AtCutoff(cutoff, rates, tuple(others)))
    return tuple(at_cutoffs)
