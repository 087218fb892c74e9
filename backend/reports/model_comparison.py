"""Two models of one federation side by side: quality, size, importance, findings, outcomes by group, and what was done differently.

As the Guest knows them: from its partial models, its records and what was measured as evidence. A difference is no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Generic, TypeVar

from backend.compliance.assessment import DISPARITY, ComplianceReport, Finding
from backend.evaluation.performance import Estimate
from backend.explain.importance import FeatureImportance
from backend.fairness.disparity import MEASURES, REFERENCE, P
from backend.fairness.evidence import Basis, Evidence
from backend.reports.verdict.comparison import NOTHING_COMPARED, Changes
from backend.results import ModelRecord
from backend.trees.ensemble import GuestModel

FIGURES = ("auc", "ks", "log_loss", "accuracy", "rmse", "r2")
HIGHER_IS_BETTER = {"auc", "ks", "accuracy", "r2"}

Intervals = Mapping[str, tuple[float, float]]
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Sizes:
    """How large a model is.

    Attributes
    ----------
    hidden_splits : int
        Splits of which a Host keeps the threshold.
    depth : int
        Splits on the longest path.
    used, offered : int
        Features that a split asks about; features that training was given.
    released : int
        Numbers that the Guest learns of each person scored.
    """

    trees: int
    leaves: int
    splits: int
    hidden_splits: int
    depth: int
    used: int
    offered: int
    released: int

    @classmethod
    def of(cls, model: GuestModel) -> Sizes:
        """Count."""
        splits = [split for tree in model.trees for split in tree.splits.values()]
        return cls(
            trees=len(model.trees),
            leaves=model.n_leaves,
            splits=len(splits),
            hidden_splits=sum(split.owner != model.guest for split in splits),
            depth=max(tree.depth for tree in model.trees),
            used=len({split.feature for split in splits}),
            offered=len(model.dictionary),
            released=len(model.trees) if model.outputs.aggregation == "median" else model.outputs.count,
        )


@dataclass(frozen=True)
class Side:
    """What is compared of one model.

    Attributes
    ----------
    disparities : mapping of str to tuple of Evidence
        Feature → outcomes by its groups, if they were measured.
    bases : mapping of (claim, feature) to Basis
        On how many records, and at which cut-off.
    test_ids : frozenset of str
        Records that its figures were measured on.
    intervals : mapping of str to (float, float)
        Figure → its 95 % interval, if scores of these records are kept.
    """

    record: ModelRecord
    sizes: Sizes
    importance: tuple[FeatureImportance, ...]
    compliance: ComplianceReport
    disparities: Mapping[str, tuple[Evidence, ...]]
    bases: Mapping[tuple[str, str], Basis]
    test_ids: frozenset[str]
    intervals: Intervals = field(default_factory=dict)

    def cutoff(self, feature: str) -> float | None:
        """From which probability decisions declined that were measured by a feature's groups; None if it was not recorded."""
        basis = self.bases.get((DISPARITY, feature))
        return None if basis is None else basis.cutoff


@dataclass(frozen=True)
class Difference(Generic[V]):
    """One thing in both models.

    Attributes
    ----------
    name : str
        Of how they were made: a parameter, ``algorithm``, ``hosts``, ``exclude``, ``cipher`` or ``key_bits``. Of what scores give away:
        ``score_bits``, or a field of :class:`backend.results.ReleaseCheck`.
    """

    name: str
    before: V
    after: V


@dataclass(frozen=True)
class QualityFigure(Difference[float]):
    """One figure of quality.

    Attributes
    ----------
    low, high : float
        95 % interval of the difference, second less first; NaN if none is known.
    better : int
        +1 if that interval is on the better side of 0, -1 on the worse side, 0 if it holds 0 or is not known.
    paired : bool
        Whether both scored the same people for it. Otherwise it is put together from both models' own intervals as if of different people,
        which is wider than need be.
    """

    low: float
    high: float
    better: int
    paired: bool = False


@dataclass(frozen=True)
class Shift:
    """A feature's share of the gain, 0 … 1; None if training was not given the feature."""

    party: str
    feature: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        """Of the share."""
        return (self.after or 0.0) - (self.before or 0.0)


@dataclass(frozen=True)
class BeforeAfter(Generic[V]):
    """A finding about a feature, or a measured outcome of its groups, in either model; None if a model has none."""

    feature: str
    before: V | None
    after: V | None

    @property
    def either(self) -> V:
        """The first that there is."""
        side = self.before or self.after
        if side is None:
            raise ValueError("a pair holds at least one")
        return side


FindingPair = BeforeAfter[Finding]
OutcomePair = BeforeAfter[Evidence]


@dataclass(frozen=True)
class SideBySide:
    """Two models compared.

    Attributes
    ----------
    figures : tuple of QualityFigure
        That apply to both.
    shifts : tuple of Shift
        Features that at least one of them uses, or that only one was given; by the larger share.
    findings : tuple of FindingPair
        Worst first, as in the first model's report; then those of the second alone.
    outcomes : tuple of OutcomePair
        By feature: one figure about a group, or a gap between groups.
    differences : tuple of Difference of str
        In how they were made.
    same_people : bool
        Whether both were measured on the same records, so that their figures can be compared.
    leaks : tuple of Difference of float
        What scores give away; empty if it was not measured of both.
    paired_on : int
        People whom both models scored for the intervals of differences; 0 if that was not measured.
    changes : Changes
        Which of the two is better, fact by fact.
    """

    before: Side
    after: Side
    figures: tuple[QualityFigure, ...]
    shifts: tuple[Shift, ...]
    findings: tuple[FindingPair, ...]
    outcomes: tuple[OutcomePair, ...]
    differences: tuple[Difference[str], ...]
    same_people: bool
    leaks: tuple[Difference[float], ...] = ()
    paired_on: int = 0
    changes: Changes = NOTHING_COMPARED

    @property
    def without(self) -> tuple[str, ...]:
        """Features that the first model was offered and the second was not."""
        offered = {row.feature for row in self.after.importance}
        return tuple(row.feature for row in self.before.importance if row.feature not in offered)


def compare(
    first: Side,
    second: Side,
    paired: Sequence[Estimate] = (),
    paired_on: int = 0,
    changes: Changes = NOTHING_COMPARED,
) -> SideBySide:
    """Put two models side by side.

    Parameters
    ----------
    paired : sequence of Estimate
        Differences that were measured on people whom both scored.
    paired_on : int
        The number of these people.
    changes : Changes
        What the verdicts of both say of each other.
    """
    return SideBySide(
        before=first,
        after=second,
        figures=quality_figures(
            first.record,
            second.record,
            (first.intervals, second.intervals),
            {figure.name: figure for figure in paired},
        ),
        shifts=_shifts(first.importance, second.importance),
        findings=tuple(_findings(first.compliance.findings, second.compliance.findings)),
        outcomes=tuple(_outcomes(first, second)),
        differences=tuple(_differences(first.record, second.record)),
        same_people=bool(first.test_ids) and first.test_ids == second.test_ids,
        changes=changes,
        leaks=tuple(_leaks(first.record, second.record)),
        paired_on=paired_on,
    )


def quality_figures(
    first: ModelRecord,
    second: ModelRecord,
    intervals: tuple[Intervals, Intervals],
    paired: Mapping[str, Estimate],
) -> tuple[QualityFigure, ...]:
    """Return the figures of quality that apply to both models.

    Parameters
    ----------
    intervals : (mapping of str to (float, float), the same)
        Figure → 95 % interval, of each model.
    paired : mapping of str to Estimate
        Differences that were measured on people whom both scored.
    """
    figures = []
    for name in FIGURES:
        first_value = getattr(first.metrics, name)
        second_value = getattr(second.metrics, name)
        if not (math.isfinite(first_value) and math.isfinite(second_value)):
            continue
        low = math.nan
        high = math.nan
        if name in paired:
            low = paired[name].low
            high = paired[name].high
        elif name in intervals[0] and name in intervals[1]:
            low, high = _apart(first_value, second_value, intervals[0][name], intervals[1][name])
        sign = (low > 0) - (high < 0)
        better = sign if name in HIGHER_IS_BETTER else -sign
        figures.append(QualityFigure(name, first_value, second_value, low, high, better, name in paired))
    return tuple(figures)


def _apart(
    first_value: float, second_value: float, first_interval: tuple[float, float], second_interval: tuple[float, float]
) -> tuple[float, float]:
    """Return the interval of a difference from those of its two ends (Zou and Donner 2008), as if of different people."""
    below = math.hypot(second_value - second_interval[0], first_interval[1] - first_value)
    above = math.hypot(second_interval[1] - second_value, first_value - first_interval[0])
    return second_value - first_value - below, second_value - first_value + above


def _leaks(first: ModelRecord, second: ModelRecord) -> Iterator[Difference[float]]:
    if first.release is None or second.release is None:
        return
    if not (first.release.measurable and second.release.measurable):
        return
    yield Difference("score_bits", first.score_bits, second.score_bits)
    for name in ("dither", "named", "without_dither", "paths"):
        first_value = getattr(first.release, name)
        second_value = getattr(second.release, name)
        if first_value is not None and second_value is not None:
            yield Difference(name, first_value, second_value)


def _shifts(first: Sequence[FeatureImportance], second: Sequence[FeatureImportance]) -> tuple[Shift, ...]:
    shifts = []
    first_rows = {row.feature: row for row in first}
    second_rows = {row.feature: row for row in second}
    for name, *rows in _paired(first_rows, second_rows):
        present = [row for row in rows if row is not None]
        if len(present) == 1 or any(row.splits for row in present):
            shifts.append(Shift(present[0].party, name, *(None if row is None else row.gain_share for row in rows)))
    return tuple(sorted(shifts, key=lambda s: (-max(s.before or 0.0, s.after or 0.0), s.feature)))


def _findings(first: Sequence[Finding], second: Sequence[Finding]) -> Iterator[FindingPair]:
    first_findings = {(finding.rule_id, finding.feature): finding for finding in first}
    second_findings = {(finding.rule_id, finding.feature): finding for finding in second}
    for (_, feature), first_finding, second_finding in _paired(first_findings, second_findings):
        yield BeforeAfter(feature, first_finding, second_finding)


def _outcomes(first: Side, second: Side) -> Iterator[OutcomePair]:
    """Yield what was measured of one of them, or of both at the same cut-off: at another one it is another decision."""
    for feature in dict.fromkeys((*first.disparities, *second.disparities)):
        rows = [side.disparities.get(feature, ()) for side in (first, second)]
        if all(rows) and first.cutoff(feature) != second.cutoff(feature):
            continue
        bases = []  # the reference group of each measure, in either model
        for side_rows in rows:
            bases.append({(row.measure, row.about) for row in side_rows if row.measure.endswith(f", {REFERENCE}")})
        alike = not all(bases) or bases[0] == bases[1]
        sides = []
        for side_rows in rows:
            sides.append({(row.about, row.measure): row for row in side_rows if _comparable(row, alike)})
        for _, first_row, second_row in _paired(sides[0], sides[1]):
            yield BeforeAfter(feature, first_row, second_row)


def _comparable(row: Evidence, alike: bool) -> bool:
    """Return whether a figure of one model can be compared with the other's.

    Further cut-offs cannot, for their tenths are each model's own; differences and ratios only if both have the same reference group.
    """
    rate, _, gap = row.measure.partition(", ")
    return rate in MEASURES and (alike or gap in ("", REFERENCE, P))


def _differences(first: ModelRecord, second: ModelRecord) -> Iterator[Difference[str]]:
    for name, first_value, second_value in _paired(_made(first), _made(second)):
        if first_value != second_value:
            yield Difference(
                name, "–" if first_value is None else first_value, "–" if second_value is None else second_value
            )


def _made(record: ModelRecord) -> dict[str, str]:
    """Return how a model was made, in words of its record."""
    basics = {"algorithm": record.algorithm, "hosts": ", ".join(record.hosts), "exclude": ", ".join(record.exclude)}
    return basics | {name: str(value) for name, value in record.parameters.items()}


def _paired(first: Mapping[K, V], second: Mapping[K, V]) -> Iterator[tuple[K, V | None, V | None]]:
    """Yield every key with what either side has under it: those of the first side first."""
    return ((key, first.get(key), second.get(key)) for key in dict.fromkeys((*first, *second)))


def as_dict(comparison: SideBySide) -> dict[str, object]:
    """For JSON: every number side by side."""
    sides = comparison.before, comparison.after
    return {
        "models": [side.record.id for side in sides],
        "changes": asdict(comparison.changes),
        "same_people": comparison.same_people,
        "without": comparison.without,
        "figures": {f.name: [f.before, f.after] for f in comparison.figures},
        "differences_95": {f.name: [f.low, f.high] for f in comparison.figures if math.isfinite(f.low)},
        "paired_on": comparison.paired_on,
        "structure": {f.name: [getattr(side.sizes, f.name) for side in sides] for f in fields(Sizes)},
        "gain_share": {s.feature: [s.before, s.after] for s in comparison.shifts},
        "findings": [
            {
                "rule": pair.either.rule_id,
                "feature": pair.feature,
                "splits": [f and f.usage.splits for f in (pair.before, pair.after)],
            }
            for pair in comparison.findings
        ],
        "outcomes": [
            {
                "feature": pair.feature,
                "group": pair.either.about.en,
                "measure": pair.either.measure,
                "values": [e and [e.value, e.low, e.high, e.n] for e in (pair.before, pair.after)],
            }
            for pair in comparison.outcomes
        ],
        "leaks": {leak.name: [leak.before, leak.after] for leak in comparison.leaks},
        "differences": {d.name: [d.before, d.after] for d in comparison.differences},
    }
