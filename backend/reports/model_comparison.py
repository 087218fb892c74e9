"""Two models of one federation side by side: quality, size, importance, findings, outcomes by group, and what was done differently.

As the Guest knows them: from its halves, its records and what was measured as evidence. A difference is a difference, no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from backend.compliance.assessment import ComplianceReport, Finding
from backend.explain.importance import FeatureImportance
from backend.fairness.evidence import Basis, Evidence
from backend.results import ModelRecord
from backend.trees.ensemble import GuestModel

FIGURES = ("auc", "ks", "log_loss", "accuracy", "rmse", "r2")
HIGHER_IS_BETTER = {"auc", "ks", "accuracy", "r2"}


@dataclass(frozen=True)
class Sizes:
    """How large a model is.

    Attributes
    ----------
    trees, leaves, splits : int
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
        Feature → outcomes by its groups, where they were measured.
    bases : mapping of (claim, feature) to Basis
        On how many records, and at which cut-off.
    test_ids : frozenset of str
        Records that its figures were measured on.
    """

    record: ModelRecord
    sizes: Sizes
    importance: tuple[FeatureImportance, ...]
    compliance: ComplianceReport
    disparities: Mapping[str, tuple[Evidence, ...]]
    bases: Mapping[tuple[str, str], Basis]
    test_ids: frozenset[str]


@dataclass(frozen=True)
class Figure:
    """One figure of quality; `better` is +1 where the second model's is better, -1 where it is worse, else 0."""

    name: str
    before: float
    after: float
    better: int


@dataclass(frozen=True)
class Shift:
    """A feature's share of the gain, 0 … 1; None where training was not given the feature."""

    party: str
    feature: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        """Of the share."""
        return (self.after or 0.0) - (self.before or 0.0)


@dataclass(frozen=True)
class FindingPair:
    """A finding in either model; None where a model has none."""

    before: Finding | None
    after: Finding | None

    @property
    def either(self) -> Finding:
        """The first that there is."""
        found = self.before or self.after
        if found is None:
            raise ValueError("a pair of findings holds at least one")
        return found


@dataclass(frozen=True)
class OutcomePair:
    """One figure about a group, or a gap between groups, in either model; None where it was not measured."""

    feature: str
    before: Evidence | None
    after: Evidence | None

    @property
    def either(self) -> Evidence:
        """The first that there is."""
        found = self.before or self.after
        if found is None:
            raise ValueError("a pair of outcomes holds at least one")
        return found


@dataclass(frozen=True)
class Difference:
    """One thing that was done differently: the name of a parameter, ``algorithm``, ``hosts``, ``exclude``, ``cipher`` or ``key_bits``."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Leak:
    """What scores give away in either model, as both were measured before they were registered.

    Attributes
    ----------
    name : {"score_bits", "dither", "named", "without_dither", "paths"}
        As in :class:`backend.results.Release`: resolution, width of the dither, share of people whose score identifies their path with and
        without it, paths that fit a score (median).
    """

    name: str
    before: float
    after: float


@dataclass(frozen=True)
class SideBySide:
    """Two models compared.

    Attributes
    ----------
    figures : tuple of Figure
        That apply to both.
    shifts : tuple of Shift
        Features that at least one of them uses, or that only one was given; by the larger share.
    findings : tuple of FindingPair
        Worst first, as in the first model's report; then those of the second alone.
    outcomes : tuple of OutcomePair
        By feature.
    differences : tuple of Difference
        In how they were made.
    same_people : bool
        Whether both were measured on the same records, so that their figures can be compared.
    leaks : tuple of Leak
        Empty where it was not measured of both.
    """

    before: Side
    after: Side
    figures: tuple[Figure, ...]
    shifts: tuple[Shift, ...]
    findings: tuple[FindingPair, ...]
    outcomes: tuple[OutcomePair, ...]
    differences: tuple[Difference, ...]
    same_people: bool
    leaks: tuple[Leak, ...] = ()

    @property
    def without(self) -> tuple[str, ...]:
        """Features that the first model was offered and the second was not."""
        offered = {row.feature for row in self.after.importance}
        return tuple(row.feature for row in self.before.importance if row.feature not in offered)


def compare(before: Side, after: Side) -> SideBySide:
    """Put two models side by side."""
    return SideBySide(
        before=before,
        after=after,
        figures=_figures(before.record, after.record),
        shifts=_shifts(before.importance, after.importance),
        findings=_findings(before.compliance.findings, after.compliance.findings),
        outcomes=_outcomes(before.disparities, after.disparities),
        differences=_differences(before.record, after.record),
        same_people=bool(before.test_ids) and before.test_ids == after.test_ids,
        leaks=_leaks(before.record, after.record),
    )


def _figures(before: ModelRecord, after: ModelRecord) -> tuple[Figure, ...]:
    found = []
    for name in FIGURES:
        one, other = getattr(before.metrics, name), getattr(after.metrics, name)
        if math.isfinite(one) and math.isfinite(other):
            sign = (other > one) - (other < one)
            found.append(Figure(name, one, other, sign if name in HIGHER_IS_BETTER else -sign))
    return tuple(found)


def _leaks(before: ModelRecord, after: ModelRecord) -> tuple[Leak, ...]:
    one, other = before.release, after.release
    if one is None or other is None:
        return ()
    bits = Leak("score_bits", before.score_bits, after.score_bits)
    told = ((name, getattr(one, name), getattr(other, name)) for name in ("dither", "named", "without_dither", "paths"))
    return (bits, *(Leak(name, a, b) for name, a, b in told if a is not None and b is not None))


def _shifts(before: Sequence[FeatureImportance], after: Sequence[FeatureImportance]) -> tuple[Shift, ...]:
    one, other = ({row.feature: row for row in rows} for rows in (before, after))
    shifts = []
    for name in dict.fromkeys((*one, *other)):
        rows = one.get(name), other.get(name)
        if None in rows or any(row is not None and row.splits for row in rows):
            party = next(row.party for row in rows if row is not None)
            shifts.append(Shift(party, name, *(None if row is None else row.gain_share for row in rows)))
    return tuple(sorted(shifts, key=lambda s: (-max(s.before or 0.0, s.after or 0.0), s.feature)))


def _findings(before: Sequence[Finding], after: Sequence[Finding]) -> tuple[FindingPair, ...]:
    one, other = ({(f.rule_id, f.feature): f for f in found} for found in (before, after))
    return tuple(FindingPair(one.get(key), other.get(key)) for key in dict.fromkeys((*one, *other)))


def _outcomes(
    before: Mapping[str, tuple[Evidence, ...]], after: Mapping[str, tuple[Evidence, ...]]
) -> tuple[OutcomePair, ...]:
    pairs = []
    for feature in dict.fromkeys((*before, *after)):
        one, other = ({(e.about, e.measure): e for e in side.get(feature, ())} for side in (before, after))
        pairs += [OutcomePair(feature, one.get(key), other.get(key)) for key in dict.fromkeys((*one, *other))]
    return tuple(pairs)


def _differences(before: ModelRecord, after: ModelRecord) -> tuple[Difference, ...]:
    one, other = (dict(_made(record)) for record in (before, after))
    names = dict.fromkeys((*one, *other))
    return tuple(
        Difference(name, one.get(name, "–"), other.get(name, "–")) for name in names if one.get(name) != other.get(name)
    )


def _made(record: ModelRecord) -> Iterable[tuple[str, str]]:
    """How a model was made, in words of its record."""
    yield "algorithm", record.algorithm
    yield "hosts", ", ".join(record.hosts)
    yield "exclude", ", ".join(record.exclude)
    yield from ((name, str(value)) for name, value in record.parameters.items())


def as_dict(found: SideBySide) -> dict[str, object]:
    """For JSON: every number side by side."""
    return {
        "models": [side.record.id for side in (found.before, found.after)],
        "same_people": found.same_people,
        "without": found.without,
        "figures": {f.name: [f.before, f.after] for f in found.figures},
        "structure": {
            f.name: [getattr(side.sizes, f.name) for side in (found.before, found.after)] for f in fields(Sizes)
        },
        "gain_share": {s.feature: [s.before, s.after] for s in found.shifts},
        "findings": [
            {
                "rule": pair.either.rule_id,
                "feature": pair.either.feature,
                "splits": [f and f.usage.splits for f in (pair.before, pair.after)],
            }
            for pair in found.findings
        ],
        "outcomes": [
            {
                "feature": pair.feature,
                "group": pair.either.about,
                "measure": pair.either.measure,
                "values": [e and [e.value, e.low, e.high, e.n] for e in (pair.before, pair.after)],
            }
            for pair in found.outcomes
        ],
        "leaks": {leak.name: [leak.before, leak.after] for leak in found.leaks},
        "differences": {d.name: [d.before, d.after] for d in found.differences},
    }
