"""The libraries' comparisons as ours, beside every rounding."""

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from backend.trees.importers.thresholds import LARGEST, at_most, at_most_float32, below_float32
from tests.trees.importers.frames import near

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=500, deadline=None)
@given(st.floats(width=32, allow_nan=False), st.integers(0, 14), st.one_of(st.none(), FINITE))
@example(0.0, 3, None)
@example(-0.0, 0, None)
@example(float(np.finfo(np.float32).max), 4, None)
@example(-float(np.finfo(np.float32).max), 3, None)
@example(1e-45, 3, None)
@example(np.inf, 0, 3.5e38)
@example(-np.inf, 0, -3.5e38)
def test_a_value_is_left_of_our_threshold_where_its_float32_is_left_of_xgboosts(threshold, shift, value):
    value = near(threshold, shift) if value is None else value
    assume(np.isfinite(value))
    with np.errstate(over="ignore"):
        expected = np.float32(value) < np.float32(threshold)
    assert (value < below_float32(threshold)) == expected


@settings(max_examples=500, deadline=None)
@given(FINITE, st.integers(0, 14), st.one_of(st.none(), FINITE))
def test_a_value_is_left_of_our_threshold_where_its_float32_is_at_most_scikit_learns(threshold, shift, value):
    value = near(threshold, shift) if value is None else value
    with np.errstate(over="ignore"):
        expected = float(np.float32(value)) <= threshold
    assert (value < at_most_float32(threshold)) == expected


@given(FINITE, st.one_of(st.none(), FINITE))
@example(1e300, None)
@example(-0.0, 0.0)
def test_a_value_is_left_of_our_threshold_where_it_is_at_most_lightgbms(threshold, value):
    value = threshold if value is None else value
    assume(abs(value) < LARGEST)
    assert (value < at_most(threshold)) == (value <= threshold)
