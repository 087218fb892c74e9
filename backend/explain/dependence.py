"""How a prediction moves with one feature: the Guest's own by setting it, a Host's by the mean over groups of its people.

The first is partial dependence (Friedman 2001, §8.2): the mean prediction if everybody had that value, all else left as it is. The
second compares people who differ in everything else, too; it needs no value and no bin edge of the Host's, only encrypted sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature, Kind
from backend.errors import ParameterError, SecurityError
from backend.explain.contribution import Expectation
from backend.fairness.evidence import FeatureResult
from backend.fairness.intervals import Z
from backend.fairness.marking import FIXED, SCORE_BITS, Marking
from backend.protocols.group_sums.grouping import Group
from backend.protocols.group_sums.values import Counts
from backend.trees.ensemble import Columns, GuestModel

UNITS = 1 << 16  # predictions are summed in units of 2**-16 of their range
DECILES = 10
MIN_PEOPLE = 50  # in a group whose mean is reported
MAX_RECORDS = 2000  # that a curve is averaged over: more move it by less than a reader sees
SEED = 7  # of the records drawn

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """The model's mean prediction if a feature has one value, or any value between two of its thresholds.

    Attributes
    ----------
    low, high : float or None
        A number from `low` to below `high`; None = no bound. Both None and no `code`: the value is missing.
    code : str
        Of a category, or 0 and 1; else empty.
    share : float
        Of the records that have such a value, 0 … 1.
    score : tuple of float
        ``(outputs.count,)``: the mean margin if everybody had it.
    predicted : tuple of float
        The same as a prediction: the probability (of each class) that belongs to that score, or the value.
    """

    low: float | None
    high: float | None
    code: str
    share: float
    score: tuple[float, ...]
    predicted: tuple[float, ...]

    @property
    def missing(self) -> bool:
        """Return whether it is the missing value."""
        return self.low is None and self.high is None and not self.code


@dataclass(frozen=True)
class Dependence:
    """Partial dependence on one of the Guest's features.

    Attributes
    ----------
    levels : tuple of Level
        Numbers ascending, codes in order; the missing value last, if some records have it.
    n : int
        The Guest's records that it was averaged over, drawn if there are more than :data:`MAX_RECORDS`; at the Hosts' splits both
        branches count, by their covers. Shares are of all its records.
    """

    party: str
    feature: str
    levels: tuple[Level, ...]
    n: int


@dataclass(frozen=True)
class GroupMean:
    """People of one group: how many, and the mean of their predictions.

    Attributes
    ----------
    mean, low, high : tuple of float
        ``(outputs.count,)`` with 1.96 standard errors.
    observed : float or None
        Share with the positive label, or None if the label is no outcome of two.
    """

    group: Group
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    observed: float | None


@dataclass(frozen=True)
class GroupMeans(FeatureResult):
    """Mean predictions by the groups of one feature; empty if no two groups of :data:`MIN_PEOPLE` people can be formed.

    Attributes
    ----------
    measured : str
        Day of an answer to another measurement that they follow from; empty = the Host was asked for them.
    """

    groups: tuple[GroupMean, ...]
    measured: str = ""


def partial_dependence(
    model: GuestModel,
    expectation: Expectation,
    feature: str,
    columns: Columns,
    max_records: int = MAX_RECORDS,
) -> Dependence:
    """Mean predictions if everybody had the same value of one of the Guest's features.

    Parameters
    ----------
    expectation : Expectation
        Of the same model.
    columns : mapping of str to ndarray
        The Guest's, ``(n,)`` each.
    max_records : int
        Records averaged over; of more some are drawn.

    Raises
    ------
    ParameterError
        The feature is not the Guest's or no split of the model, there is no record, or the model takes the median over its trees.
    """
    guest_features = {f.name: f for party, f in model.dictionary if party == model.guest}
    rules = [rule for rule in model.rules.values() if rule.feature == feature]
    if feature not in guest_features or not rules:
        raise ParameterError("no_own_split_feature", feature=feature, guest=model.guest)
    if model.outputs.aggregation == "median":
        raise ParameterError("median_has_no_dependence")
    column = columns[feature]
    if not len(column):
        raise ParameterError("no_records_to_average")
    if guest_features[feature].kind is Kind.NUMERIC:
        levels = _between(np.unique([rule.threshold for rule in rules if rule.threshold is not None]), column)
    else:
        levels = _codes(guest_features[feature], column)
    n = min(len(column), max_records)
    out = []
    rows = np.sort(np.random.default_rng(SEED).permutation(len(column))[:n])
    sampled = {name: values[rows] for name, values in columns.items()}
    for low, high, code, value, share in levels:
        changed = {**sampled, feature: np.full(n, value, dtype=column.dtype)}
        score = expectation.given(changed, n).mean(axis=0)
        predicted = model.outputs.predict(score[None, :])[0]
        out.append(Level(low, high, code, share, tuple(score.tolist()), tuple(predicted.tolist())))
    return Dependence(model.guest, feature, tuple(out), n)


Value = tuple[float | None, float | None, str, object, float]  # bounds, code, a value in it, share of the records


def _between(cuts: Floats, column: NDArray[np.generic]) -> list[Value]:
    """Intervals between thresholds: the model treats every value in one alike."""
    values = column.astype(np.float64)
    present = values[~np.isnan(values)]
    shares = np.bincount(np.searchsorted(cuts, present, side="right"), minlength=len(cuts) + 1) / len(values)
    edges = cuts.tolist()
    probes = [float(np.nextafter(cuts[0], -np.inf)), *edges]
    levels: list[Value] = [
        (low, high, "", probe, share)
        for low, high, probe, share in zip([None, *edges], [*edges, None], probes, shares.tolist(), strict=True)
    ]
    missing = 1 - len(present) / len(values)
    if missing:
        return [*levels, (None, None, "", np.nan, missing)]
    return levels


def _codes(feature: Feature, column: NDArray[np.generic]) -> list[Value]:
    """Codes that occur in the records."""
    if feature.kind is Kind.CATEGORICAL:
        codes = [None if value is None else str(value) for value in column]
        values: dict[str, object] = {code: code for code in sorted({code for code in codes if code is not None})}
        absent: object = None
    else:
        numbers = column.astype(np.float64)
        codes = [None if np.isnan(value) else f"{value:g}" for value in numbers]
        values = {f"{v:g}": v for v in np.unique(numbers[~np.isnan(numbers)]).tolist()}
        absent = np.nan
    levels: list[Value] = [(None, None, code, value, codes.count(code) / len(codes)) for code, value in values.items()]
    missing = codes.count(None) / len(codes)
    if missing:
        return [*levels, (None, None, "", absent, missing)]
    return levels


@dataclass(frozen=True)
class Scale:
    """The scale of a summed mark: ``value = low + span * units / 2**16``, ``(outputs.count,)`` each."""

    low: Floats
    span: Floats

    @classmethod
    def of(cls, predicted: Floats, task: str) -> Scale:
        """0 … 1 for probabilities, the values' own range for numbers."""
        if task != "number":
            return cls(np.zeros(predicted.shape[1]), np.ones(predicted.shape[1]))
        low = predicted.min(axis=0)
        return cls(low, np.maximum(predicted.max(axis=0) - low, np.finfo(float).tiny))


def marks(predicted: Floats, scale: Scale) -> tuple[list[Counts], list[int]]:
    """Return what is summed by group, and the largest value of each: predictions, then their squares.

    Parameters
    ----------
    predicted : ndarray of float64
        ``(n, outputs.count)``.
    """
    share = (predicted - scale.low) / scale.span
    units = [np.rint(column * UNITS).astype(np.int64) for column in share.T]
    squares = [np.rint((u / UNITS) ** 2 * UNITS).astype(np.int64) for u in units]
    return [*units, *squares], bounds(len(units))


def bounds(outputs: int) -> list[int]:
    """Return the largest value of each mark of so many outputs."""
    return [UNITS] * 2 * outputs


def from_sums(
    party: str, feature: str, groups: Sequence[Group], sums: Counts, scale: Scale, day: str = ""
) -> GroupMeans:
    """Means from sums of :func:`marks` by group, ``(marks, groups)``.

    Raises
    ------
    SecurityError
        A group is smaller than :data:`MIN_PEOPLE`.
    """
    if any(g.n < MIN_PEOPLE for g in groups):
        raise SecurityError("sums_of_few_people", host=party, least=MIN_PEOPLE)
    outputs = len(scale.low)
    rows = []
    for k, group in enumerate(groups):
        share = sums[:outputs, k] / UNITS / group.n
        square = sums[outputs:, k] / UNITS / group.n
        error = Z * np.sqrt(np.maximum(square - share**2, 0.0) / max(group.n - 1, 1))
        mean = scale.low + scale.span * share
        width = scale.span * error
        low = tuple((mean - width).tolist())
        high = tuple((mean + width).tolist())
        rows.append(GroupMean(group, tuple(mean.tolist()), low, high, None))
    return GroupMeans(party, feature, sum(g.n for g in groups), tuple(rows), day)


def from_marks(
    party: str, feature: str, marking: Marking, groups: Sequence[Group], sums: Counts, day: str
) -> GroupMeans:
    """Means of the groups of :data:`MIN_PEOPLE` people or more, from sums of a :class:`Marking` by group, ``(marks, groups)``."""
    n = np.array([group.n for group in groups], dtype=np.int64)
    _, positive, _, units, squares, _, _ = sums[:FIXED]
    probability = units / (1 << SCORE_BITS)
    widths = Z * np.sqrt(marking.variances(n, probability, squares) / n)
    rows = []
    for k, group in enumerate(groups):
        if group.n < MIN_PEOPLE:
            continue
        mean = float(probability[k] / group.n)
        width = float(widths[k])
        if marking.labels:
            observed = float(positive[k] / group.n)
        else:
            observed = None
        rows.append(GroupMean(group, (mean,), (mean - width,), (mean + width,), observed))
    return GroupMeans(party, feature, int(n.sum()), tuple(rows) if len(rows) > 1 else (), day)
