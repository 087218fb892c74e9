"""Acceptance, bad rate and profit of ten people, counted by hand; and that bands and frontier accept the same people."""

import math

import numpy as np
import pytest

from backend.policy.bands import Policy
from backend.policy.frontier import Costs, at_line, frontier, most_profitable

# Ten people, four bad. At 0.5: three bad and one good reach it. At 0.3: four bad and three good.
VALUES = np.array([0.6, 0.7, 0.8, 0.4, 0.5, 0.3, 0.35, 0.1, 0.1, 0.2])
BAD = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def test_each_line_counts_whom_it_accepts() -> None:
    low, high = frontier(VALUES, BAD, cutoffs=(0.5, 0.3))
    assert (low.cutoff, high.cutoff) == (0.3, 0.5)
    assert low.accepted == pytest.approx(3 / 10) and low.outcome == 0.0
    assert high.accepted == pytest.approx(6 / 10) and high.outcome == pytest.approx(1 / 6)
    assert math.isnan(low.profit)


def test_profit_is_what_the_accepted_bring_and_cost() -> None:
    low, high = frontier(VALUES, BAD, costs=Costs(gain=100, loss=400), cutoffs=(0.5, 0.3))
    assert low.profit == pytest.approx(3 * 100 / 10)
    assert high.profit == pytest.approx((5 * 100 - 1 * 400) / 10)
    assert most_profitable((low, high)) == low
    assert most_profitable(frontier(VALUES, BAD)) is None


def test_if_nobody_is_accepted_there_is_no_bad_rate() -> None:
    (point,) = frontier(VALUES, BAD, cutoffs=[0.0])
    assert point.accepted == 0.0 and math.isnan(point.outcome)


def test_a_line_is_looked_up_at_the_nearest_one() -> None:
    assert at_line(frontier(VALUES, BAD, cutoffs=(0.5, 0.3)), 0.42).cutoff == 0.5


@pytest.mark.parametrize("declines", ["above", "below"])
def test_a_number_is_accepted_as_its_bands_say(declines: str) -> None:
    values = np.array([1.0, 2.0, 2.0, 3.0, 10.0])
    for point in frontier(values, values, task="number", declines=declines):
        policy = Policy("number", decline_at=point.cutoff, declines=declines)
        accepted = [value for value in values if policy.band(value) == "accept"]
        assert point.accepted == pytest.approx(len(accepted) / 5)
        assert point.outcome == pytest.approx(np.mean(accepted)) if accepted else math.isnan(point.outcome)


def test_of_classes_the_line_says_who_is_not_referred_and_how_many_of_these_are_wrong() -> None:
    values = np.array([0.9, 0.6, 0.6, 0.4])
    wrong = np.array([0.0, 0.0, 1.0, 1.0])
    at_60, at_95 = frontier(values, wrong, task="classes", cutoffs=(0.6, 0.95))
    assert (at_60.accepted, at_60.outcome) == (0.75, pytest.approx(1 / 3))
    assert at_95.accepted == 0.0 and math.isnan(at_95.outcome)
    policy = Policy("classes", decline_at=None, refer_at=0.6)
    assert [policy.band(value) for value in values] == ["accept", "accept", "accept", "refer"]
