"""Gains and leaf weights against arithmetic by hand and an exhaustive search."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.trees.growth import (
    GrowthRules,
    Histogram,
    best_split,
    leaf_weight,
    logistic_gradients,
    sigmoid,
)

RULES = GrowthRules(learning_rate=0.5, reg_lambda=1.0, gamma=0.0, min_child_weight=0.0)


def histogram(g, h, categorical=False):
    return Histogram(np.array(g), np.array(h), 1.0, categorical)


def test_leaf_weight_by_hand():
    assert leaf_weight(-6.0, 2.0, RULES) == pytest.approx(1.0)  # -0.5 · -6 / (2 + 1)


def test_gain_by_hand():
    found = best_split(histogram([-4, 4, 0], [1, 1, 0]), RULES)
    assert found.gain == pytest.approx(0.5 * (16 / 2 + 16 / 2 - 0))
    assert found.left_bins == (0,) and (found.g_left, found.h_left) == (-4, 1)


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


def test_gradients_are_the_derivatives_of_the_logistic_loss():
    labels, margins, step = np.array([0, 1, 1]), np.array([0.3, -1.2, 40.0]), 1e-4
    g, h = logistic_gradients(labels, margins)

    def loss(m):
        return np.logaddexp(0, m) - labels * m

    assert g == pytest.approx((loss(margins + step) - loss(margins - step)) / (2 * step), abs=1e-7)
    second = (loss(margins + step) - 2 * loss(margins) + loss(margins - step)) / step**2
    assert h == pytest.approx(second, abs=1e-6)


def test_the_sigmoid_does_not_overflow():
    assert sigmoid(np.array([-1e4, 0.0, 1e4])).tolist() == [0.0, 0.5, 1.0]
