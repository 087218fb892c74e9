"""Alternatives to a model, judged by quality and disparity: who is accepted alike often, who is closest, and how sure that is.

Knows of a candidate its scores and of a group sums alone, so that it does not matter which party holds the attribute. Every model is
judged at the cut-off that accepts the share of people that the model in use accepts: a cut-off that accepts everybody would close any
gap and tell nothing about the model. A *gap* is a group's share of accepted people less the reference group's
(:mod:`backend.fairness.disparity`), and of several groups the widest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from backend.data.rounding import Rounded
from backend.errors import ParameterError
from backend.fairness.intervals import mirrored, of_difference, of_ratio, percentiles, simultaneous
from backend.i18n import NO_TEXT, Text
from backend.protocols.group_sums.grouping import MIN_GROUP, Group
from backend.protocols.group_sums.values import Counts

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class IntervalFigure:
    """A number with its 95 % interval."""

    value: Rounded
    low: Rounded
    high: Rounded


@dataclass(frozen=True)
class DrawnQuality:
    """A figure of one model, and over draws of records that are the same for every model.

    Attributes
    ----------
    draws : ndarray of float64
        ``(draws,)``
    """

    value: float
    draws: Floats

    def figure(self) -> IntervalFigure:
        """With its percentile interval."""
        return IntervalFigure(self.value, *percentiles(self.draws, self.value))

    def less(self, base: DrawnQuality) -> DrawnQuality:
        """Return the difference of both, draw by draw: what they share cancels out."""
        return DrawnQuality(self.value - base.value, self.draws - base.draws)


@dataclass(frozen=True)
class Candidate:
    """One model at one cut-off, before groups are known.

    Attributes
    ----------
    cutoff : float
        Its own, on the probability of the positive label.
    accepts : ndarray of bool
        ``(n,)``: of the records that gaps are measured on.
    """

    name: str
    cutoff: float
    accepts: Flags
    auc_drawn: DrawnQuality
    ks_drawn: DrawnQuality


@dataclass(frozen=True)
class Point:
    """One model at one cut-off.

    Attributes
    ----------
    accepted : float
        Share of the records that gaps are measured on.
    auc_change : IntervalFigure
        Its AUC less the first model's.
    group : Group or None
        The group that is furthest from the reference group; None if it was not measured.
    gap, ratio : IntervalFigure or None
        That group's share of accepted people less, and over, the reference group's; no ratio where the reference is 0.
    gap_change : IntervalFigure or None
        The width of the gap less that of the first model; below 0 = narrower.
    auc_together, gap_together : IntervalFigure or None
        `auc_change` and `gap_change` with intervals that hold together, for all alternatives at all decisions of the search; None of the
        first model, and in searches that were kept before there were such.
    frontier : bool
        No other model is both at least as good and at least as even.
    narrower : bool
        Within the tolerance in AUC, and with a narrower gap, as measured.
    sure : bool
        The intervals that hold together say the same.
    """

    name: str
    cutoff: Rounded
    accepted: Rounded
    auc: IntervalFigure
    ks: IntervalFigure
    auc_change: IntervalFigure
    group: Group | None = None
    gap: IntervalFigure | None = None
    ratio: IntervalFigure | None = None
    gap_change: IntervalFigure | None = None
    auc_together: IntervalFigure | None = None
    gap_together: IntervalFigure | None = None
    frontier: bool = False
    narrower: bool = False
    sure: bool = False


@dataclass(frozen=True)
class Tried:
    """One model that was trained for a search; the first is the model that the search began from.

    Attributes
    ----------
    name : str
        Within the search.
    model, sha256 : str
        Id and content hash of the Guest's partial model.
    without : tuple of str
        Features that the first model had and this one has not.
    reg_lambda : float or None
        None if the algorithm has none.
    """

    name: str
    model: str
    sha256: str
    without: tuple[str, ...]
    constraints: str
    depth: int
    reg_lambda: Rounded | None
    trees: int
    leaves: int


@dataclass(frozen=True)
class DecidedModels:
    """All models at one decision, that of the first model at `cutoff`.

    Attributes
    ----------
    policy : int or None
        Version of the first model's policy whose line the cut-off is; None = another line.
    """

    cutoff: float
    points: tuple[Point, ...]
    policy: int | None = None

    def narrower(self) -> tuple[Point, ...]:
        """Alternatives within the tolerance whose gap is narrower, the narrowest first."""
        narrower_points = (p for p in self.points if p.narrower and p.gap is not None)
        return tuple(sorted(narrower_points, key=lambda p: abs(p.gap.value) if p.gap else 0.0))


@dataclass(frozen=True)
class Choice:
    """What a person took from a search, and why.

    Attributes
    ----------
    name, model : str
        Of the model; the first one's if it is kept.
    time : str
        ISO 8601.
    """

    name: str
    model: str
    person: str
    role: str
    reason: str
    time: str


@dataclass(frozen=True)
class Search:
    """A search for less discriminatory alternatives to a model, by the groups of one attribute.

    Attributes
    ----------
    n : int
        Records behind the gaps.
    source : {"records", "sums", "validation"}
        From the Guest's test records, or a Host's encrypted sums: of test records (before version 0.11), of validation records.
    groups : tuple of Group
        With their names in English (`words`) and Chinese.
    reference : int
        Place of the group that others are compared with.
    tolerance : float
        AUC that an alternative may lose.
    """

    model: str
    sha256: str
    party: str
    attribute: str
    created: str
    n: int
    source: Literal["records", "sums", "validation"]
    groups: tuple[Group, ...]
    words: tuple[Text, ...]
    reference: int
    tolerance: float
    tried: tuple[Tried, ...]
    decisions: tuple[DecidedModels, ...]
    choice: Choice | None = None

    def of(self, name: str) -> Tried:
        """Return one of the models; raises ParameterError if no model has that name."""
        for candidate in self.tried:
            if name in (candidate.name, candidate.model):
                return candidate
        raise ParameterError("unknown_alternative", name=name, known=tuple(tried.name for tried in self.tried))

    def group_in_words(self, group: Group | None) -> Text:
        """Return a group's name; an empty text if there is no group."""
        if group is None:
            return NO_TEXT
        return self.words[self.groups.index(group)]


def read_search(body: object) -> Search:
    """Return a search as it was stored."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - slow to import, and few runs need it

    return TypeAdapter(Search).validate_python(body)


def cutoff_for(probabilities: Floats, share: float) -> float:
    """Return the cut-off below which the share of people comes closest to `share`; of two as close the lower one.

    Parameters
    ----------
    probabilities : ndarray of float64
        ``(n,)``: of records that no gap is measured on.
    """
    if not len(probabilities):
        raise ParameterError("no_records_for_cutoff")
    values = np.unique(probabilities)
    ends = np.append(values, np.nextafter(values[-1], np.inf))
    below = np.searchsorted(np.sort(probabilities), ends, side="left") / len(probabilities)
    return float(ends[int(np.argmin(np.abs(below - share)))])


def too_close(earlier_sets: Sequence[Flags], accepted: Flags) -> bool:
    """Return whether sums by group over these people, next to those of earlier sets, would reveal sums over a small set of people.

    The sums of two sets differ by the sums over the people who are in one of them alone. Such a part must be empty, or have at least
    :data:`MIN_GROUP` people.
    """
    for earlier in earlier_sets:
        only_earlier = int(np.count_nonzero(earlier & ~accepted))
        only_accepted = int(np.count_nonzero(accepted & ~earlier))
        if 0 < only_earlier < MIN_GROUP or 0 < only_accepted < MIN_GROUP:
            return True
    return False


def marks(first: Flags, accepted: Sequence[Flags]) -> list[Counts]:
    """Return what is summed by group: whom the first model accepts, then for each other model whom it accepts and whom both accept."""
    flags = [first]
    for second in accepted:
        flags.append(second)
        flags.append(second & first)
    return [flag.astype(np.int64) for flag in flags]


@dataclass(frozen=True)
class Sums:
    """Sums of :func:`marks` by group: ``(groups,)`` of the first model, ``(groups,)`` of a second one and of both."""

    first: Counts
    second: Counts
    both: Counts

    def cells(self, groups: Sequence[Group]) -> Counts:
        """``(groups, 4)`` records: accepted by both, by the first alone, by the second alone, by neither."""
        n = np.array([g.n for g in groups], dtype=np.int64)
        return np.stack(
            [self.both, self.first - self.both, self.second - self.both, n - self.first - self.second + self.both],
            axis=-1,
        )


def cells_drawn(
    flags: Sequence[Counts], index: NDArray[np.intp], groups: int, weights: Iterable[Floats]
) -> list[NDArray[np.int64]]:
    """Cells over draws of records, of everybody who searches its own table: what :meth:`Sums.cells` counts, draw by draw.

    Parameters
    ----------
    flags : sequence of ndarray of int64
        As :func:`marks` returns them, ``(n,)`` each.
    index : ndarray of intp
        ``(n,)``: each record's group.
    weights : iterable of ndarray of float64
        ``(some draws, n)``: how often a draw holds each record; those that quality was drawn by.

    Returns
    -------
    list of ndarray of int64
        ``(draws, groups, 4)`` of each other model.
    """
    first = flags[0]
    others = flags[1::2]
    both = flags[2::2]
    of_cell = []
    for second, shared in zip(others, both, strict=True):
        of_cell.append(4 * index + np.select([shared == 1, first == 1, second == 1], [0, 1, 2], 3))
    parts: list[list[NDArray[np.int64]]] = [[] for _ in of_cell]
    for some in weights:
        for part, cell in zip(parts, of_cell, strict=True):
            counted = some @ (cell[:, None] == np.arange(4 * groups)).astype(np.float64)
            part.append(np.rint(counted).astype(np.int64).reshape(len(some), groups, 4))
    return [np.concatenate(part) for part in parts]


@dataclass(frozen=True)
class Cells:
    """Records by group and by two models' decisions, as they are and over draws.

    Attributes
    ----------
    counts : ndarray of int64
        ``(groups, 4)``, see :meth:`Sums.cells`.
    draws : ndarray of int64
        ``(draws, groups, 4)``: over the draws of quality, or over draws of its own where a Host's sums are all that is known.
    """

    counts: Counts
    draws: Counts

    @classmethod
    def of_sums(cls, sums: Sums, groups: Sequence[Group], draws: int, draw: np.random.Generator) -> Cells:
        """Drawn from the counts, which hold all that drawing records could change; independently of every other model's."""
        cells = sums.cells(groups)
        flat = draw.multinomial(int(cells.sum()), cells.ravel() / cells.sum(), size=draws)
        return cls(cells, flat.reshape(draws, *cells.shape))


@dataclass(frozen=True)
class CutoffComparison:
    """What is known of all models at one cut-off of the first.

    Attributes
    ----------
    first_accepted : ndarray of int64
        ``(groups,)``: accepted by the first model.
    others : tuple of (Candidate, Cells or None)
        None if sums would be about too few people.
    """

    first: Candidate
    first_accepted: Counts
    others: tuple[tuple[Candidate, Cells | None], ...]


@dataclass(frozen=True)
class _Compared:
    """A point, and what it changes over draws."""

    point: Point
    auc: DrawnQuality
    gap: DrawnQuality | None


def judge(
    decisions: Sequence[CutoffComparison], groups: Sequence[Group], *, reference: int, tolerance: float
) -> tuple[DecidedModels, ...]:
    """Return the first model and its alternatives at every decision, with frontiers, and with intervals over all alternatives together.

    Parameters
    ----------
    reference : int
        Place of the group that others are compared with.
    tolerance : float
        AUC that an alternative may lose.
    """
    # 1. Compare every alternative with the first model, decision by decision.
    compared = []
    for decision in decisions:
        row = []
        for candidate, cells in decision.others:
            row.append(_compare(decision.first, candidate, cells, groups, reference))
        compared.append(row)
    # 2. Intervals that hold for all alternatives at all decisions at once.
    intervals = iter(_joint_intervals([entry for row in compared for entry in row]))
    # 3. Each decision's points, with those on the frontier marked.
    decided = []
    for decision, row in zip(decisions, compared, strict=True):
        none = Sums(decision.first_accepted, decision.first_accepted, decision.first_accepted).cells(groups)
        first = _compare(decision.first, decision.first, Cells(none, none[None]), groups, reference)
        points = [first.point, *(_with_intervals(entry, *next(intervals), tolerance) for entry in row)]
        leading = tuple(replace(point, frontier=_leads(point, points)) for point in points)
        decided.append(DecidedModels(decision.first.cutoff, leading))
    return tuple(decided)


def _joint_intervals(row: Sequence[_Compared]) -> list[tuple[IntervalFigure | None, IntervalFigure | None]]:
    """Return changes of AUC and of the gap's width, with intervals that hold for all of them at once."""
    changes = [change for entry in row for change in (entry.auc, entry.gap) if change is not None]
    if row:
        ends = simultaneous(np.array([c.value for c in changes]), np.stack([c.draws for c in changes], axis=1))
    else:
        ends = None
    if ends is None:
        return [(None, None)] * len(row)
    figures = (IntervalFigure(c.value, float(low), float(high)) for c, low, high in zip(changes, *ends, strict=True))
    return [(next(figures), None if entry.gap is None else next(figures)) for entry in row]


def _with_intervals(
    compared: _Compared, auc: IntervalFigure | None, gap: IntervalFigure | None, tolerance: float
) -> Point:
    narrower = compared.gap is not None and compared.auc.value >= -tolerance and compared.gap.value < 0
    sure = narrower and auc is not None and gap is not None and auc.low >= -tolerance and gap.high < 0
    return replace(compared.point, auc_together=auc, gap_together=gap, narrower=narrower, sure=sure)


def _compare(
    first: Candidate, candidate: Candidate, cells: Cells | None, groups: Sequence[Group], reference: int
) -> _Compared:
    """Return a model compared with the first one."""
    auc = candidate.auc_drawn.less(first.auc_drawn)
    share = float(candidate.accepts.mean())
    ks = IntervalFigure(
        candidate.ks_drawn.value, *mirrored(candidate.ks_drawn.draws, candidate.ks_drawn.value)
    )  # see `performance`
    point = Point(candidate.name, candidate.cutoff, share, candidate.auc_drawn.figure(), ks, auc.figure())
    if cells is None:
        return _Compared(point, auc, None)
    counts = cells.counts
    n = counts.sum(axis=1)
    shares = (counts[:, 0] + counts[:, 2]) / n
    widest = max((k for k in range(len(groups)) if k != reference), key=lambda k: abs(shares[k] - shares[reference]))
    gap = DrawnQuality(float(_widths(counts[None], reference)[0]), _widths(cells.draws, reference))
    widest_rate = (float(shares[widest]), int(n[widest]))
    reference_rate = (float(shares[reference]), int(n[reference]))
    measured = replace(
        point,
        group=groups[widest],
        gap=IntervalFigure(widest_rate[0] - reference_rate[0], *of_difference(*widest_rate, *reference_rate)),
        ratio=IntervalFigure(widest_rate[0] / reference_rate[0], *of_ratio(*widest_rate, *reference_rate))
        if reference_rate[0] > 0
        else None,
        gap_change=gap.figure(),
    )
    return _Compared(measured, auc, gap)


def _widths(cells: Counts, reference: int) -> Floats:
    """``(draws,)``: the other model's widest gap less the first one's, of ``(draws, groups, 4)`` cells."""
    n = np.maximum(cells.sum(axis=2), 1)
    both = cells[..., 0]
    first = cells[..., 1]
    second = cells[..., 2]
    wide = []
    for accepted in (both + second, both + first):
        share = accepted / n
        wide.append(np.abs(share - share[:, [reference]]).max(axis=1))
    out: Floats = wide[0] - wide[1]
    return out


def _leads(point: Point, points: Sequence[Point]) -> bool:
    """Return whether no other point is at least as good and as even, and better in one of both."""
    if point.gap is None:
        return False
    position = point.auc.value, -abs(point.gap.value)
    rivals = [(p.auc.value, -abs(p.gap.value)) for p in points if p.gap is not None]
    return not any(rival[0] >= position[0] and rival[1] >= position[1] and rival != position for rival in rivals)
