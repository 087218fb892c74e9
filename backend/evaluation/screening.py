"""What a feature is worth before there is a model: information value, what it adds to the bank's own score, drift. From counts alone.

Knows no record: everything is computed from how many people of each cell are in each group of a feature. A cell is a band of the bank's
own score and an outcome. The counts are exact integers, so that figures from encrypted sums are those of the plaintext.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from backend.errors import WrongAnswer
from backend.evaluation.performance import moved_by
from backend.protocols.group_sums.grouping import MIN_GROUP, Group
from backend.protocols.group_sums.values import Counts

OUTCOMES = 2  # of each person: 0 and 1, the positive one
BANDS = 5  # of the bank's own score, at most
FOLDS = 5  # of the people, so that no person's band follows from their own outcome
FACTOR_BITS = 12  # of the secret factors of the check
# information value, by the trade's convention (Siddiqi 2006, ch. 6)
WEAK = 0.02
MEDIUM = 0.1
STRONG = 0.3
SUSPICIOUS = 0.5
RARE_BY_CHANCE = 0.05  # of what features add, over all of a screening together (Bonferroni)

Direction = Literal["rises", "falls", "mixed", "none", "codes"]
Worth = Literal["nothing", "weak", "medium", "strong", "suspicious"]
Floats = NDArray[np.float64]
Bands = NDArray[np.intp]


@dataclass(frozen=True)
class Marking:
    """What of each person is summed by group, in the order of the marks.

    Attributes
    ----------
    bands : int
        Of the bank's own score; 1 = none. There is a mark for each band and outcome.
    dated : bool
        Whether two marks follow: people before the first date, and people from the second one on.
    factors : tuple of int
        Secret factors of the last mark, one for each mark before it.
    """

    bands: int
    dated: bool
    factors: tuple[int, ...]

    @classmethod
    def new(cls, bands: int, *, dated: bool) -> Marking:
        """Return a marking with factors of its own."""
        count = bands * OUTCOMES + (2 if dated else 0)
        return cls(bands, dated, tuple(1 + secrets.randbelow(1 << FACTOR_BITS) for _ in range(count)))

    def marks(self, cells: Sequence[Counts], periods: Sequence[Counts]) -> list[Counts]:
        """Return the marks: the cells, the periods and the check, ``(n,)`` each.

        The check is the sum of all others times their secret factors. A Host that adds numbers of its own to a group's sums, which it
        can do without reading them, would have to add the right number to the check's sum, too.
        """
        plain = [*cells, *(periods if self.dated else ())]
        check = np.zeros(len(plain[0]), dtype=np.int64)
        for factor, mark in zip(self.factors, plain, strict=True):
            check += factor * mark
        return [*plain, check]

    @property
    def largest(self) -> tuple[int, ...]:
        """Return the largest value of each mark."""
        cells = self.factors[: self.bands * OUTCOMES]
        periods = self.factors[self.bands * OUTCOMES :]
        return (*(1 for _ in self.factors), max(cells) + max(periods, default=0))

    def read(self, host: str, groups: Sequence[Group], sums: Counts) -> CountedFeature:
        """Return the counts of a feature from its sums.

        Parameters
        ----------
        sums : ndarray of int64
            ``(marks, groups)``.

        Raises
        ------
        WrongAnswer
            If the sums are those of no records: the cells of a group are not as many people as the group has, or the check fails.
        """
        cells = self.bands * OUTCOMES
        counts = sums[:cells]
        plain = sums[: len(self.factors)]
        check = sum(factor * row for factor, row in zip(self.factors, plain, strict=True))
        sizes = [group.n for group in groups]
        if counts.sum(axis=0).tolist() != sizes or not np.array_equal(check, sums[-1]):
            raise WrongAnswer("group_sums_do_not_add_up", host=host)
        periods = plain[cells:] if self.dated else None
        return CountedFeature(tuple(groups), counts.T.reshape(len(groups), self.bands, OUTCOMES), periods)


@dataclass(frozen=True)
class CountedFeature:
    """How many people of each cell are in each group.

    Attributes
    ----------
    cells : ndarray of int64
        ``(groups, bands, 2)``: people by group, band of the bank's own score, and outcome.
    periods : ndarray of int64, optional
        ``(2, groups)``: people before the first date, and from the second one on.
    """

    groups: tuple[Group, ...]
    cells: Counts
    periods: Counts | None = None

    @property
    def outcomes(self) -> Counts:
        """Return people by group and outcome, ``(groups, 2)``."""
        by_group: Counts = self.cells.sum(axis=1)
        return by_group


@dataclass(frozen=True)
class Added:
    """What a feature tells about the outcome beyond the bank's own score.

    Attributes
    ----------
    value : float
        Information value of the feature within the bands, in the unit of an information value.
    chance : float
        What a feature that has nothing to do with the outcome would show on average.
    p : float
        How often chance alone would show as much or more, 0 … 1.
    """

    value: float
    chance: float
    p: float


def cell_marks(labels: NDArray[np.bool_], band: Bands, bands: int) -> list[Counts]:
    """Return a mark of 0 or 1 for each band and outcome, ``(n,)`` each."""
    marks = []
    for number in range(bands):
        for outcome in (False, True):
            marks.append(((band == number) & (labels == outcome)).astype(np.int64))
    return marks


def counted_here(groups: Sequence[Group], index: Bands, marks: Sequence[Counts], bands: int) -> CountedFeature:
    """Return the counts of a feature whose records are here: the plaintext of :meth:`Marking.read`.

    Parameters
    ----------
    index : ndarray of int
        ``(n,)``: each record's group.
    marks : sequence of ndarray
        Cells, then periods if there are any; ``(n,)`` each.
    """
    sums = np.zeros((len(marks), len(groups)), dtype=np.int64)
    for row, mark in zip(sums, marks, strict=True):
        np.add.at(row, index, mark)
    cells = bands * OUTCOMES
    periods = sums[cells:] if len(marks) > cells else None
    return CountedFeature(tuple(groups), sums[:cells].T.reshape(len(groups), bands, OUTCOMES), periods)


def information_value(outcomes: Counts) -> tuple[float, float]:
    """Return the information value of groups, and the 95 % quantile of what chance alone would show.

    Σ (p₁ - p₀)·ln(p₁ / p₀) over the groups, for their shares of both outcomes: Jeffreys' divergence, which is also the population
    stability index of two periods. So its chance level is the index's, too.

    Parameters
    ----------
    outcomes : ndarray of int64
        ``(groups, 2)``.
    """
    return moved_by(outcomes[:, 0], outcomes[:, 1])


def weights_of_evidence(outcomes: Counts) -> Floats:
    """Return ln(p₁ / p₀) of each group, ``(groups,)``: above 0, the positive outcome is more frequent in it than on average."""
    shares = np.maximum(outcomes, 0.5) / outcomes.sum(axis=0)  # an empty group counts as half a record
    weights: Floats = np.log(shares[:, 1] / shares[:, 0])
    return weights


def direction(groups: Sequence[Group], outcomes: Counts) -> Direction:
    """Return how the positive outcome goes with a number's bins, from the lowest one on; codes have no order.

    Pearson's chi-squared of bins and outcome is that of a straight trend (Armitage 1955) plus that of departures from it. There is a
    direction if the trend is beyond chance and at least half of the whole, none if the whole is not beyond chance, and else it is mixed.
    """
    from scipy.special import gammaincc  # noqa: PLC0415 - slow to import

    bins = [k for k, group in enumerate(groups) if group.kind == "bin"]
    if len(bins) < 2:
        return "codes"
    sizes = outcomes[bins].sum(axis=1).astype(np.float64)
    positives = outcomes[bins, 1].astype(np.float64)
    share = positives.sum() / sizes.sum()
    spread = share * (1 - share)
    if spread == 0:
        return "none"
    departures = positives - sizes * share
    total = float((departures**2 / (sizes * spread)).sum())
    places = np.arange(len(bins)) - float((sizes * np.arange(len(bins))).sum() / sizes.sum())
    slope = float((places * departures).sum())
    trend = slope**2 / float(spread * (sizes * places**2).sum())
    if trend >= total / 2 and gammaincc(0.5, trend / 2) < RARE_BY_CHANCE:
        return "rises" if slope > 0 else "falls"
    if gammaincc((len(bins) - 1) / 2, total / 2) < RARE_BY_CHANCE:
        return "mixed"
    return "none"


def added(cells: Counts) -> Added:
    """Return what a feature adds to the bank's own score: its information value within the bands of that score.

    The divergence of band and feature together is that of the bands plus that of the feature within them (chain rule for relative
    entropy: Cover and Thomas, 2nd ed., theorem 2.5.3, for both directions of Jeffreys' divergence). The second part is what is new.
    Whether chance explains it is a likelihood-ratio test of independence within each band (G², Agresti 2013, §3.2), the bands summed.

    Parameters
    ----------
    cells : ndarray of int64
        ``(groups, bands, 2)``.
    """
    from scipy.special import gammaincc  # noqa: PLC0415 - slow to import

    totals = cells.sum(axis=(0, 1))
    value = 0.0
    chance = 0.0
    statistic = 0.0
    freedom = 0
    for band in range(cells.shape[1]):
        of_band = cells[:, band]
        sizes = of_band.sum(axis=0)
        if not sizes.all():
            continue  # one outcome alone: nothing can be told apart here
        occupied = of_band[of_band.sum(axis=1) > 0]
        shares = np.maximum(occupied, 0.5) / totals
        of_sizes = sizes / totals
        within = float(((shares[:, 1] - shares[:, 0]) * np.log(shares[:, 1] / shares[:, 0])).sum())
        between = float((of_sizes[1] - of_sizes[0]) * np.log(of_sizes[1] / of_sizes[0]))
        value += within - between
        chance += (len(occupied) - 1) / 2 * float((1 / sizes).sum()) * float(of_sizes.sum())
        expected = np.outer(occupied.sum(axis=1), sizes) / sizes.sum()
        nonzero = occupied > 0
        statistic += 2 * float((occupied[nonzero] * np.log(occupied[nonzero] / expected[nonzero])).sum())
        freedom += len(occupied) - 1
    if freedom:
        p = float(gammaincc(freedom / 2, max(statistic, 0.0) / 2))
    else:
        p = 1.0
    return Added(max(value, 0.0), chance, p)


def worth_of(outcomes: Counts) -> Worth:
    """Return what a feature's information value means: nothing if chance alone shows as much in 1 of 20."""
    value, by_chance = information_value(outcomes)
    if value <= by_chance:
        return "nothing"
    n_groups = int((outcomes.sum(axis=1) > 0).sum())
    return worth(value, (n_groups - 1) * float((1 / outcomes.sum(axis=0)).sum()))


def worth(value: float, chance: float) -> Worth:
    """Return what an information value means by the trade's convention, less what chance shows on average."""
    beyond = value - chance
    if beyond < WEAK:
        return "nothing"
    if beyond < MEDIUM:
        return "weak"
    if beyond < STRONG:
        return "medium"
    return "strong" if beyond < SUSPICIOUS else "suspicious"


def worth_added(addition: Added, tests: int) -> Worth:
    """Return what a feature adds, given the number of tested features: nothing if chance explains it."""
    if addition.p >= RARE_BY_CHANCE / max(tests, 1):
        return "nothing"
    return worth(addition.value, addition.chance)


def own_scores(indexes: Sequence[Bands], labels: NDArray[np.bool_], seed: int) -> Floats | None:
    """Return each person's score by the bank's own features alone, ``(n,)``; None if there are no features or too few outcomes.

    A scorecard: logistic regression on the features' groups (Siddiqi 2006, ch. 6), fitted on the other folds of people.

    Parameters
    ----------
    indexes : sequence of ndarray
        Each person's group of each of the bank's features, ``(n,)``.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - slow to import
    from sklearn.model_selection import StratifiedKFold, cross_val_predict  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    rarest = int(min(labels.sum(), (~labels).sum()))
    if not indexes or rarest < 2 * MIN_GROUP:
        return None
    coded = OneHotEncoder(handle_unknown="ignore").fit_transform(np.column_stack(indexes))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    fitted = LogisticRegression(max_iter=500)
    scores: Floats = cross_val_predict(fitted, coded, labels, cv=folds, method="predict_proba")[:, 1]
    return scores


def banded(scores: Floats | None, labels: NDArray[np.bool_], max_bands: int = BANDS) -> tuple[Bands, int]:
    """Return each person's band of a score, ``(n,)``, and the number of bands, at most `max_bands`; one if there is no score.

    Bands are of equal frequency. Every band has :data:`MIN_GROUP` people of either outcome: the sums of fewer would tell their groups.
    """
    if scores is not None:
        for bands in range(max_bands, 1, -1):
            edges = np.quantile(scores, np.arange(1, bands) / bands)
            band = np.searchsorted(edges, scores, side="right").astype(np.intp)
            if min(int(mark.sum()) for mark in cell_marks(labels, band, bands)) >= MIN_GROUP:
                return band, bands
    return np.zeros(len(labels), dtype=np.intp), 1
