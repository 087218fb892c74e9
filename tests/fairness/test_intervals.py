"""Intervals: Wilson's is SciPy's; percentiles leave out undefined draws and hold the figure itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from backend.fairness.intervals import percentiles, wilson


@given(st.integers(1, 400), st.data())
def test_wilson_is_scipys(n, data):
    k = data.draw(st.integers(0, n))
    known = binomtest(k, n).proportion_ci(method="wilson")
    assert wilson(k / n, n) == pytest.approx((known.low, known.high), abs=1e-9)


def test_percentiles_leave_out_undefined_draws_and_hold_the_value():
    drawn = np.array([np.nan, *np.arange(1000.0)])
    assert percentiles(drawn, 500.0) == pytest.approx((24.975, 974.025))
    assert percentiles(drawn, 2000.0)[1] == 2000.0 and percentiles(np.array([np.nan]), 3.0) == (3.0, 3.0)
