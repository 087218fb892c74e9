"""What a feature is worth, from counts: hand-worked figures, the chain rule, and sums that a Host has changed."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from backend.errors import WrongAnswer
from backend.evaluation.screening import (
    Marking,
    added,
    banded,
    cell_marks,
    counted_here,
    direction,
    information_value,
    own_scores,
    weights_of_evidence,
    worth,
    worth_added,
    worth_of,
)
from backend.protocols.group_sums.grouping import Group

HOST = "shop"


def bins(*sizes):
    return tuple(Group("bin", str(k), n) for k, n in enumerate(sizes, 1))


def test_the_information_value_is_worked_out_by_hand():
    """Of 80 and 20 people: (60, 5) and (20, 15); the shares are 3/4 and 1/4, 1/4 and 3/4."""
    outcomes = np.array([[60, 5], [20, 15]])
    value, chance = information_value(outcomes)
    assert value == pytest.approx((0.25 - 0.75) * log(0.25 / 0.75) + (0.75 - 0.25) * log(0.75 / 0.25))
    assert weights_of_evidence(outcomes) == pytest.approx([log(0.25 / 0.75), log(0.75 / 0.25)])
    assert chance == pytest.approx(3.841 * (1 / 80 + 1 / 20), rel=1e-3)  # chi-squared with one degree of freedom
    assert worth_of(outcomes) == "suspicious"


def test_a_group_without_an_outcome_counts_as_half_a_record():
    value, _ = information_value(np.array([[50, 0], [50, 40]]))
    low, high = 0.5 / 40, 40 / 40
    assert value == pytest.approx((low - 0.5) * log(low / 0.5) + (high - 0.5) * log(high / 0.5))


def test_what_is_added_and_the_bands_make_up_the_whole():
    """The chain rule: the information value of band and feature together is that of the bands plus what the feature adds."""
    draw = np.random.default_rng(3)
    cells = draw.integers(5, 60, (4, 3, 2))
    together, _ = information_value(cells.reshape(12, 2))
    of_bands, _ = information_value(cells.sum(axis=0))
    assert added(cells).value == pytest.approx(together - of_bands)


def test_a_feature_that_repeats_the_score_adds_nothing_and_one_beside_it_does():
    draw = np.random.default_rng(5)
    n = 6000
    score = draw.normal(size=n)
    other = draw.normal(size=n)
    labels = draw.random(n) < 1 / (1 + np.exp(1.5 - 1.2 * score - 1.2 * other))
    band, count = banded(score, labels)
    assert count == 5
    marks = cell_marks(labels, band, count)

    def of(column):
        index = np.searchsorted(np.quantile(column, [0.25, 0.5, 0.75]), column)
        groups = bins(*np.bincount(index).tolist())
        return counted_here(groups, index, marks, count)

    repeated = added(of(score + draw.normal(scale=0.05, size=n)).cells)
    beside = added(of(other).cells)
    noise = added(of(draw.normal(size=n)).cells)
    assert [worth_added(one, 3) for one in (noise, beside)] == ["nothing", "suspicious"]
    assert beside.value > 5 * repeated.value
    assert information_value(of(score).outcomes)[0] > 0.3  # it tells the outcome, all the same
    assert noise.value == pytest.approx(noise.chance, abs=0.02)


def test_what_chance_shows_is_its_mean_over_many_features_of_no_use():
    draw = np.random.default_rng(9)
    n = 3000
    labels = draw.random(n) < 0.2
    band = draw.integers(0, 3, n)
    marks = cell_marks(labels, band, 3)
    found = []
    for _ in range(60):
        index = draw.integers(0, 5, n)
        found.append(added(counted_here(bins(*np.bincount(index).tolist()), index, marks, 3).cells))
    assert np.mean([one.value for one in found]) == pytest.approx(found[0].chance, rel=0.15)
    assert 0.0 <= np.mean([one.p < 0.05 for one in found]) <= 0.15


@pytest.mark.parametrize(
    ("positives", "said"),
    [((10, 20, 30, 40), "rises"), ((40, 33, 19, 10), "falls"), ((10, 40, 40, 10), "mixed"), ((20, 21, 19, 20), "none")],
)
def test_the_direction_is_that_of_a_trend_beyond_chance(positives, said):
    outcomes = np.array([[100 - k, k] for k in positives])
    assert direction(bins(100, 100, 100, 100), outcomes) == said
    missing = (*bins(100, 100, 100, 100), Group("missing", "", 100))
    assert direction(missing, np.vstack([outcomes, [0, 100]])) == said, "those without a value are no bin"


def test_codes_have_no_direction():
    groups = (Group("code", "a", 50), Group("code", "b", 50))
    assert direction(groups, np.array([[40, 10], [10, 40]])) == "codes"


def test_words_begin_at_the_trades_limits():
    assert [worth(value, 0.0) for value in (0.01, 0.02, 0.1, 0.3, 0.5)] == [
        "nothing",
        "weak",
        "medium",
        "strong",
        "suspicious",
    ]


def test_bands_have_enough_people_of_either_outcome_and_scores_are_of_other_folds():
    draw = np.random.default_rng(1)
    n = 1000
    noise = [draw.integers(0, 10, n) for _ in range(8)]
    labels = draw.random(n) < 0.3
    scores = own_scores(noise, labels, 7)
    gap = scores[labels].mean() - scores[~labels].mean()
    assert abs(gap) < 0.03, "a score fitted on the people themselves would tell their outcomes"
    band, bands = banded(scores, labels)
    assert bands > 1 and min(int(mark.sum()) for mark in cell_marks(labels, band, bands)) >= 20
    assert banded(scores, np.arange(n) < 30)[1] == 1
    assert own_scores([], labels, 7) is None and banded(None, labels)[1] == 1


class TestSumsOfAHost:
    """Sums as they come back, and what a Host can do to them that it cannot read."""

    def setup_method(self):
        draw = np.random.default_rng(2)
        n = 400
        labels = draw.random(n) < 0.4
        self.index = draw.integers(0, 4, n)
        self.marking = Marking.new(2, dated=True)
        cells = cell_marks(labels, draw.integers(0, 2, n), 2)
        late = (draw.random(n) < 0.5).astype(np.int64)
        marks = self.marking.marks(cells, [1 - late, late])
        self.groups = bins(*np.bincount(self.index).tolist())
        self.sums = np.array([np.bincount(self.index, weights=mark, minlength=4) for mark in marks]).astype(np.int64)
        self.plain = counted_here(self.groups, self.index, [*cells, 1 - late, late], 2)

    def test_they_are_read_as_the_plaintext_is_counted(self):
        read = self.marking.read(HOST, self.groups, self.sums)
        assert read.groups == self.plain.groups
        assert (read.cells == self.plain.cells).all() and (read.periods == self.plain.periods).all()

    def test_numbers_that_a_host_adds_are_found_though_all_totals_stay(self):
        """Positives moved from one bin to another, negatives back: sizes and totals hold, and the feature looks worth more."""
        changed = self.sums.copy()
        changed[:2, 0] += [-10, 10]
        changed[:2, 1] += [10, -10]
        assert (changed.sum(axis=1) == self.sums.sum(axis=1)).all()
        assert changed[:4].sum(axis=0).tolist() == [group.n for group in self.groups]
        with pytest.raises(WrongAnswer):
            self.marking.read(HOST, self.groups, changed)

    def test_sums_of_other_people_than_a_group_has_are_found(self):
        sizes = [group.n for group in self.groups]
        swapped = bins(sizes[0] + 1, sizes[1] - 1, *sizes[2:])
        with pytest.raises(WrongAnswer):
            self.marking.read(HOST, swapped, self.sums)

    def test_factors_are_drawn_anew_and_the_largest_mark_bounds_all(self):
        assert Marking.new(2, dated=True).factors != self.marking.factors
        top = replace(self.marking, factors=(4096,) * 6)
        assert top.largest == (1, 1, 1, 1, 1, 1, 8192)
