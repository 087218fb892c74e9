"""Fed-EINI against its baseline by batch size: which is faster where, from measured runs alone (cf. Fed-EINI Fig. 8a)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, zip_longest

from backend.research.baselines.comparison import Comparison

PAIR = ("fed-eini", "multi-interactive-level")  # Fed-EINI and the fastest form of its baseline
BATCHES = (1, 3, 10, 30, 100)  # samples


@dataclass(frozen=True)
class BatchTimes:
    """Seconds from start to scores that both protocols of :data:`PAIR` took for a batch, over the chosen link."""

    samples: int
    fed_eini: float
    by_level: float

    @property
    def wins(self) -> bool:
        """Whether Fed-EINI is the faster one."""
        return self.fed_eini < self.by_level


@dataclass(frozen=True)
class Lead:
    """Neighbouring measured batches with one winner, from `first` to `last` samples.

    `until` is where the straight lines between the points of a double logarithmic chart cross on the way to the next lead; None at the end.
    """

    wins: bool
    first: int
    last: int
    until: float | None


def points(runs: Iterable[Comparison]) -> tuple[BatchTimes, ...]:
    """Return one point for each run with both protocols, by size; if two runs have one size, the first counts."""
    by_size: dict[int, BatchTimes] = {}
    for run in runs:
        totals = {row.protocol: row.exchange.total for row in run.rows}
        if all(name in totals for name in PAIR):
            by_size.setdefault(run.samples, BatchTimes(run.samples, *(totals[name] for name in PAIR)))
    return tuple(by_size[n] for n in sorted(by_size))


def leads(measured: Sequence[BatchTimes]) -> tuple[Lead, ...]:
    """Return which protocol is faster between which sizes."""
    groups = [(wins, list(group)) for wins, group in groupby(measured, lambda point: point.wins)]
    until = []
    for (_, group_before), (_, group_after) in pairwise(groups):
        until.append(_crossing(group_before[-1], group_after[0]))
    return tuple(
        Lead(wins, group[0].samples, group[-1].samples, cross) for (wins, group), cross in zip_longest(groups, until)
    )


def expected_seconds(runs: Iterable[Comparison], samples: int) -> float:
    """Compute of `samples` at the mode of the largest run, both protocols of :data:`PAIR` together; 0 for fewer than it had."""
    largest = max(runs, key=lambda run: run.samples)
    if samples < largest.samples:
        return 0.0
    pair = sum(row.exchange.compute for row in largest.rows if row.protocol in PAIR)
    return pair * samples / largest.samples


def _crossing(first: BatchTimes, second: BatchTimes) -> float:
    """Return the number of samples at which two straight lines in a double logarithmic chart meet."""
    gap, then = (math.log(p.fed_eini / p.by_level) for p in (first, second))
    share = gap / (gap - then)
    return math.exp(math.log(first.samples) * (1 - share) + math.log(second.samples) * share)
