"""Acceptance, bad rate and profit of ten people, counted by hand."""

import math

import pytest

from backend.policy.frontier import Costs, at_line, frontier, most_profitable

# Ten people, four bad. At 0.5: three bad and one good reach it. At 0.3: four bad and three good.
CUTOFFS = (0.5, 0.3)
TRUE = (3 / 4, 4 / 4)
FALSE = (1 / 6, 3 / 6)


def test_each_line_counts_whom_it_accepts() -> None:
    low, high = frontier(CUTOFFS, TRUE, FALSE, 0.4)
    assert (low.cutoff, high.cutoff) == (0.3, 0.5)
    assert low.accepted == pytest.approx(3 / 10) and low.bad_rate == 0.0
    assert high.accepted == pytest.approx(6 / 10) and high.bad_rate == pytest.approx(1 / 6)
    assert math.isnan(low.profit)


def test_profit_is_what_the_accepted_bring_and_cost() -> None:
    low, high = frontier(CUTOFFS, TRUE, FALSE, 0.4, Costs(gain=100, loss=400))
    assert low.profit == pytest.approx(3 * 100 / 10)
    assert high.profit == pytest.approx((5 * 100 - 1 * 400) / 10)
    assert most_profitable((low, high)) == low
    assert most_profitable(frontier(CUTOFFS, TRUE, FALSE, 0.4)) is None


def test_where_nobody_is_accepted_there_is_no_bad_rate() -> None:
    (point,) = frontier([0.0], [1.0], [1.0], 0.4)
    assert point.accepted == 0.0 and math.isnan(point.bad_rate)


def test_a_line_is_looked_up_at_the_nearest_measured_one() -> None:
    points = frontier(CUTOFFS, TRUE, FALSE, 0.4)
    assert at_line(points, 0.42).cutoff == 0.5
