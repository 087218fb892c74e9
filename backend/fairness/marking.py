"""What of each record is summed by group, so that rates, scores and a range of cut-offs come from one question. Knows no group.

A reader of sums of several marks can compute those of their differences: people accepted at one cut-off and declined at the next, say. A
set of one person would tell that person's group. So no set that can be told apart may hold between 1 and 19 of the records: the cut-offs
of the range are tenths of these records' scores, at least 20 records from each other, from the decision's cut-off and from either end;
the range, decisions by label, and labels are left out where they would tell fewer apart. Scores are rounded as the figures allow.

Decisions may be crossed with groups of the Guest's own feature: the same sums then count people by two features together. A Host cannot
read the marks, so it does not learn who is in a group of the Guest's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from backend.errors import FewRecords, ParameterError
from backend.protocols.group_sums.disclosure_bound import leaves_unknown, spread_of
from backend.protocols.group_sums.grouping import MIN_GROUP, Group, WireGroup, read_groups
from backend.protocols.group_sums.values import Counts

SCORE_BITS = 12  # probabilities, squared errors and their squares are summed in units of 2**-12
SQUARE_BITS = 16  # squared deviations in units of 2**-16 of the largest,
COARSE_BITS = 8  # or of 2**-8 where so much about few records would say too much
TENTHS = 10  # of the records, between two cut-offs of the range
FIXED = 7  # marks before those of the range: accepted, positive, both, probability, squared deviation, squared error, its square

Floats = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Marking:
    """How records are marked, the same for everybody who sums.

    Attributes
    ----------
    cutoff : float
        ``decline`` at or above it.
    others : tuple of float
        Further cut-offs, ascending.
    labelled : bool
        Whether decisions are counted by label.
    centre, scale : float
        Squares are of a probability less `centre`, at most `scale`.
    square_bits : int
        Squares are summed in units of 2**-square_bits of `scale`.
    labels : bool
        Whether labels are counted at all; without them there are no errors either.
    decisions : bool
        Whether decisions are counted at all.
    crossed : str
        A feature of the Guest's by whose groups people and decisions are counted, too; empty = none.
    crossed_groups : tuple of WireGroup
        Its groups.
    """

    cutoff: float
    others: tuple[float, ...]
    labelled: bool
    centre: float
    scale: float
    labels: bool = True
    decisions: bool = True
    square_bits: int = SQUARE_BITS
    crossed: str = ""
    crossed_groups: tuple[WireGroup, ...] = ()

    @property
    def flags(self) -> int:
        """Number of marks of 0 or 1 after the fixed ones."""
        return len(self.others) + max(0, 2 * len(self.crossed_groups) - 1)

    @property
    def range(self) -> tuple[float, ...]:
        """All cut-offs, ascending."""
        return tuple(sorted((self.cutoff, *self.others)))

    def marks(
        self, labels: NDArray[np.bool_], probabilities: Floats, crossed: Index | None = None
    ) -> tuple[list[Counts], list[int]]:
        """Return marks of records, ``(n,)`` each, and the largest value of each.

        First :data:`FIXED`, then accepted at each of the other cut-offs; then who is in each group of the crossed feature but the last,
        and who of each group is accepted.

        Parameters
        ----------
        crossed : ndarray of int, optional
            ``(n,)``: the group of the crossed feature.
        """
        accepted = (probabilities < self.cutoff) & self.decisions
        units = np.rint(probabilities * (1 << SCORE_BITS)).astype(np.int64)
        squares = np.rint((probabilities - self.centre) ** 2 * ((1 << self.square_bits) / self.scale)).astype(np.int64)
        errors = (probabilities - labels) ** 2 * self.labels
        losses = [np.rint(x * (1 << SCORE_BITS)).astype(np.int64) for x in (errors, errors**2)]
        flags = [accepted, labels & self.labels, accepted & labels & self.labelled]
        more = [(probabilities < cutoff).astype(np.int64) for cutoff in self.others]
        if crossed is not None:
            members = [crossed == k for k in range(len(self.crossed_groups))]
            more += [member.astype(np.int64) for member in members[:-1]]
            more += [(member & accepted).astype(np.int64) for member in members]
        return [*(flag.astype(np.int64) for flag in flags), units, squares, *losses, *more], bounds(
            len(more), self.square_bits
        )

    def ladder(self, accepted: Counts, more: Counts) -> Counts:
        """``(cutoffs, groups)``: accepted by group at each cut-off of the range, from the sums of its marks."""
        order = np.argsort((self.cutoff, *self.others), kind="stable")
        at_others = more[: len(self.others)].reshape(len(self.others), len(accepted))
        out: Counts = np.vstack([accepted, at_others])[order]
        return out

    def cells(self, groups: Sequence[Group], sums: Counts) -> tuple[tuple[Group, ...], Counts, Counts]:
        """Return the groups of the crossed feature, and ``(crossed groups, groups)`` people and accepted, from sums of all marks."""
        n = np.array([g.n for g in groups], dtype=np.int64)
        crossed = read_groups(self.crossed_groups, int(n.sum()))
        first = FIXED + len(self.others)
        members = sums[first : first + len(crossed) - 1]
        people = np.vstack([members, n - members.sum(axis=0)])
        return crossed, people, sums[first + len(crossed) - 1 :]

    def variances(self, n: Counts, probability: Floats, squares: Counts) -> Floats:
        """``(groups,)``: variances of probabilities, from sums of probabilities and of squares."""
        if not len(n):
            return np.empty(0)
        from_centre = probability / n - self.centre
        squared_deviations = squares * (self.scale / (1 << self.square_bits)) - n * from_centre**2
        out: Floats = np.maximum(0.0, squared_deviations) / (n - 1)
        return out


def bounds(others: int = TENTHS - 1, square_bits: int = SQUARE_BITS) -> list[int]:
    """Return the largest value of each mark, with this number of other cut-offs."""
    return [1, 1, 1, 1 << SCORE_BITS, 1 << square_bits, 1 << SCORE_BITS, 1 << SCORE_BITS, *[1] * others]


def mark(
    cutoff: float,
    labels: NDArray[np.bool_],
    probabilities: Floats,
    *,
    own_groups: bool,
    undecided: bool = False,
    crossed: tuple[str, Sequence[WireGroup], Index] | None = None,
) -> Marking:
    """Return how these records are to be marked: with as much as leaves no small set that can be told apart.

    Parameters
    ----------
    own_groups : bool
        Whether the Guest holds the groups, so that nothing is disclosed to it.
    undecided : bool
        Whether decisions may be left out where they would tell few records apart.
    crossed : (str, sequence of WireGroup, ndarray of int), optional
        A feature of the Guest's to count decisions by, too; its groups, and each record's.

    Raises
    ------
    ParameterError
        The cut-off is no probability.
    FewRecords
        A Host holds the groups, and decisions alone would tell few records apart.
    """
    check_cutoff(cutoff)
    centre = float(probabilities.mean()) if len(labels) else 0.0
    scale = float(((probabilities - centre) ** 2).max(initial=0.0)) or 1.0
    tenths = _tenths(cutoff, probabilities)
    ways = [Marking(cutoff, others, by, centre, scale) for by in (True, False) for others in (tenths, ())]
    ways += [Marking(cutoff, others, False, centre, scale, labels=False) for others in (tenths, ())]
    if undecided:
        ways += [Marking(cutoff, (), False, centre, scale, by, decisions=False) for by in (True, False)]
    index = None
    if crossed is not None:
        name, groups, index = crossed
        ways = [replace(way, crossed=name, crossed_groups=tuple(groups)) for way in ways]
    tried = (replace(way, square_bits=bits) for way in ways for bits in (SQUARE_BITS, COARSE_BITS))
    marking = next((way for way in tried if own_groups or _names_nobody(way, labels, probabilities, index)), None)
    if marking is None:
        accepted = int((probabilities < cutoff).sum())
        raise FewRecords("few_records_a_side", cutoff=cutoff, accepted=accepted, of=len(labels), least=MIN_GROUP)
    return marking


def _names_nobody(
    marking: Marking, labels: NDArray[np.bool_], probabilities: Floats, crossed: Index | None = None
) -> bool:
    """Return whether sums over groups single out no small set of records, by differences or, if groups are halves, by fitting one set."""
    half = len(labels) // 2
    mark_columns, _ = marking.marks(labels, probabilities, crossed)
    fits = half < MIN_GROUP or leaves_unknown(spread_of(mark_columns), [half, len(labels) - half])
    return fits and smallest(marking, labels, probabilities, crossed) >= MIN_GROUP


def smallest(marking: Marking, labels: NDArray[np.bool_], probabilities: Floats, crossed: Index | None = None) -> int:
    """Return a lower bound of the number of records that a combination of the sums is about.

    A combination weighs a record by its interval between cut-offs, plus its label, plus its group of the crossed feature on its side of the
    cut-off. How few records can have a weight other than 0? The labels weigh in: of two records that differ in the label alone, one has
    a weight, so that at least the fewer of both count in every cell of interval and group. They do not: the same holds of two intervals in
    every group. Nor do the intervals: then a group on one side counts as a whole.
    """
    cutoffs = np.array(marking.range if marking.decisions else (), dtype=np.float64)
    interval = np.searchsorted(cutoffs, probabilities, side="right")
    count = len(cutoffs) + 1
    if crossed is None:
        groups = np.zeros(len(labels), dtype=np.intp)
    else:
        groups = crossed
    cells = np.zeros((2, count, int(groups.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(cells, (labels.astype(np.intp), interval, groups), 1)
    declined = np.arange(count) > marking.range.index(marking.cutoff)
    if marking.decisions:
        sides = [cells[:, ~declined], cells[:, declined]]
    else:
        sides = [cells]
    sizes = [len(labels)]
    for side in sides:
        people = side.sum(axis=0)
        people = people[people.sum(axis=1) > 0]
        sizes += [n for n in people.sum(axis=0).tolist() if n]
        sizes += [int(np.minimum(first, second).sum()) for first, second in combinations(people, 2)]
        if crossed is None:
            sizes += people.sum(axis=1).tolist()
    if marking.labels:
        by_label = [int(side.min(axis=0).sum()) for side in sides]
        if not marking.labelled:
            by_label = [sum(by_label)]
        # A label that follows from the interval tells nothing more.
        sizes += [n for n in by_label if n or crossed is not None]
    return min(sizes)


def _tenths(cutoff: float, probabilities: Floats) -> tuple[float, ...]:
    """Tenths of the scores that are far enough, in records, from each other, from the cut-off and from either end."""
    n = len(probabilities)
    tenths: list[float] = []
    boundaries = [0, n, int((probabilities < cutoff).sum())]
    for tenth in np.quantile(probabilities, np.arange(1, TENTHS) / TENTHS) if n else ():
        rounded = float(f"{tenth:.3g}")
        below = int((probabilities < rounded).sum())
        if all(abs(below - boundary) >= MIN_GROUP for boundary in boundaries):
            tenths.append(rounded)
            boundaries.append(below)
    return tuple(tenths)


def check_cutoff(cutoff: float) -> None:
    """Raise ParameterError if the cut-off is no probability."""
    if not 0.0 < cutoff < 1.0:
        raise ParameterError("cutoff_no_inner_probability", cutoff=cutoff)
