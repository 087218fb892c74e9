"""Gains and leaf weights against arithmetic by hand and an exhaustive search."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.trees.growth import FREE, Bounds, GrowthRules, Histogram, SecondOrder, gradients

RULES = GrowthRules(learning_rate=0.5, reg_lambda=1.0, gamma=0.0, min_child_weight=0.0)


def histogram(g, h, categorical=False):
    return Histogram(np.array([g, h]), categorical)


def best_split(histogram, rules=RULES, direction=0, bounds=FREE):
    return SecondOrder(rules, (1.0, 1.0)).best_split(histogram, direction, bounds)


def test_leaf_weight_by_hand():
    leaf = SecondOrder(RULES, (1.0, 0.5)).leaf(np.array([-6, 4]), FREE)
    assert leaf.weight == pytest.approx(1.0) and leaf.cover == 2.0  # -0.5 · -6 / (2 + 1)


def test_a_leaf_of_which_nothing_is_known_weighs_nothing():
    rules = GrowthRules(learning_rate=0.5, reg_lambda=0.0, gamma=0.0, min_child_weight=0.0)
    assert SecondOrder(rules, (1.0, 1.0)).leaf(np.array([0, 0]), FREE).weight == 0.0


def test_gain_by_hand():
    found = best_split(histogram([-4, 4, 0], [1, 1, 0]), RULES)
    assert found.gain == pytest.approx(0.5 * (16 / 2 + 16 / 2 - 0))
    assert found.left_bins == (0,) and found.left_sums.tolist() == [-4, 1]


def test_gamma_is_taken_off_the_gain_and_can_forbid_the_split():
    rules = GrowthRules(0.5, 1.0, 7.5, 0.0)
    assert best_split(histogram([-4, 4, 0], [1, 1, 0]), rules).gain == pytest.approx(0.5)
    assert best_split(histogram([-4, 4, 0], [1, 1, 0]), GrowthRules(0.5, 1.0, 8.0, 0.0)) is None


def test_a_child_lighter_than_min_child_weight_is_not_made():
    assert best_split(histogram([-4, 4, 0], [1, 9, 0]), GrowthRules(0.5, 1.0, 0.0, 2.0)) is None


def test_missing_values_go_where_the_gain_is_larger():
    assert best_split(histogram([-4, 4, 3], [1, 1, 1]), RULES).default_left is False
    assert best_split(histogram([-4, 4, -3], [1, 1, 1]), RULES).default_left is True


def test_without_missing_values_the_heavier_child_is_the_default():
    assert best_split(histogram([-4, 4, 0], [9, 1, 0]), RULES).default_left is True
    assert best_split(histogram([-4, 4, 0], [1, 9, 0]), RULES).default_left is False


def test_one_bin_cannot_be_split():
    assert best_split(histogram([3, 0], [2, 0]), RULES) is None


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_best_split_is_the_best_of_all(data):
    """Oracle: every cut (ordered) or every subset (categories), both directions for missing values."""
    count = data.draw(st.integers(2, 5))
    categorical = data.draw(st.booleans())
    g = data.draw(st.lists(st.integers(-9, 9), min_size=count + 1, max_size=count + 1))
    h = data.draw(st.lists(st.integers(1, 9), min_size=count + 1, max_size=count + 1))
    found = best_split(histogram(g, h, categorical), RULES)
    lefts = (
        [set(c) for k in range(1, count) for c in itertools.combinations(range(count), k)]
        if categorical
        else [set(range(k)) for k in range(1, count)]
    )

    def gain(left, missing_left):
        gl = sum(g[b] for b in left) + (g[-1] if missing_left else 0)
        hl = sum(h[b] for b in left) + (h[-1] if missing_left else 0)
        gr, hr = sum(g) - gl, sum(h) - hl
        return 0.5 * (gl**2 / (hl + 1) + gr**2 / (hr + 1) - sum(g) ** 2 / (sum(h) + 1))

    if not categorical:  # with λ > 0 the order by G/(H+λ) is a heuristic for subsets, as in every library
        best = max(gain(left, m) for left in lefts for m in (True, False))
        assert (found.gain if found else 0.0) == pytest.approx(max(best, 0.0))
    if found:
        assert found.gain == pytest.approx(gain(set(found.left_bins), found.default_left))


def test_constraints_by_hand():
    """Weights would be 3 on the left and -1 on the right: allowed where predictions fall, and 1 parts what comes below."""
    falling, rising = histogram([-6, 2, 0], [1, 1, 0]), histogram([2, -6, 0], [1, 1, 0])
    assert best_split(falling, direction=1) is None and best_split(rising, direction=-1) is None
    assert best_split(falling, direction=-1).bounds == (Bounds(1.0, np.inf), Bounds(-np.inf, 1.0))
    assert best_split(rising, direction=1).bounds == (Bounds(-np.inf, 1.0), Bounds(1.0, np.inf))


def test_a_split_without_a_direction_hands_its_bounds_on_and_gains_less_within_them():
    free, held = (best_split(histogram([-4, 4, 0], [1, 1, 0]), bounds=b) for b in (FREE, Bounds(-1.0, 1.0)))
    assert held.bounds == (Bounds(-1.0, 1.0), Bounds(-1.0, 1.0))
    # -(2·-4·1 + 2·1) = 6 on each side, halved
    assert held.gain == pytest.approx(6.0) and free.gain == pytest.approx(8.0)


def test_a_leaf_stays_within_its_bounds():
    leaf = SecondOrder(RULES, (1.0, 1.0)).leaf(np.array([-6, 1]), Bounds(-1.0, 1.0))
    assert leaf.weight == 0.5  # 3 would be best, 1 is allowed, half of it is learned


def test_gradients_are_the_derivatives_of_the_logistic_loss():
    labels, margins, step = np.array([0.0, 1.0, 1.0]), np.array([0.3, -1.2, 40.0]), 1e-4
    g, h = (column[:, 0] for column in gradients("binary", labels, margins[:, None]))

    def loss(m):
        return np.logaddexp(0, m) - labels * m

    assert g == pytest.approx((loss(margins + step) - loss(margins - step)) / (2 * step), abs=1e-7)
    second = (loss(margins + step) - 2 * loss(margins) + loss(margins - step)) / step**2
    assert h == pytest.approx(second, abs=1e-6)


def test_gradients_of_classes_are_the_derivatives_of_the_softmax_loss():
    labels, margins, step = np.array([0.0, 2.0]), np.array([[0.3, -1.0, 0.5], [2.0, 0.0, -3.0]]), 1e-6
    g, h = gradients("classes", labels, margins)

    def loss(m):
        return np.log(np.exp(m).sum(axis=1)) - m[[0, 1], [0, 2]]

    for k in range(3):
        nudge = step * (np.arange(3) == k)
        assert g[:, k] == pytest.approx((loss(margins + nudge) - loss(margins - nudge)) / (2 * step), abs=1e-7)
    p = g + np.array([[1, 0, 0], [0, 0, 1]])
    assert h == pytest.approx(2 * p * (1 - p))


def test_gradients_of_numbers_are_the_errors():
    g, h = gradients("number", np.array([5.0, -2.0]), np.array([[4.0], [1.0]]))
    assert g.tolist() == [[-1.0], [3.0]] and h.tolist() == [[1.0], [1.0]]
