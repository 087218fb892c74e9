"""Tests of two groups: SciPy's, exact where counts are small; they cry wolf as often as they should."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, fisher_exact, ttest_ind_from_stats

from backend.fairness.significance import of_two_means, of_two_shares


@given(st.integers(0, 200), st.integers(0, 300), st.integers(20, 200), st.integers(20, 300))
def test_two_shares_are_tested_as_scipy_does(counted, other, n, other_n):
    counted, other = min(counted, n), min(other, other_n)
    table = np.array([[counted, n - counted], [other, other_n - other]])
    p = of_two_shares(counted, n, other, other_n)
    if not table.sum(axis=0).all():
        assert p == 1
    elif (known := chi2_contingency(table, correction=False)).expected_freq.min() < 5:
        assert p == pytest.approx(fisher_exact(table).pvalue, rel=1e-9)
    else:
        assert p == pytest.approx(known.pvalue, abs=1e-9)


def test_two_means_are_tested_as_scipy_does():
    p = of_two_means(0.03, 0.2, 50, 0.1, 80)
    assert p == pytest.approx(ttest_ind_from_stats(0.53, 0.2, 50, 0.5, 0.1, 80, equal_var=False).pvalue)
    assert (of_two_means(0, 0, 20, 0, 20), of_two_means(0.1, 0, 20, 0, 20)) == (1, 0)


@pytest.mark.parametrize(("sizes", "rate"), [((200, 100), 0.7), ((60, 25), 0.95)], ids=["normal", "exact"])
def test_two_shares_without_a_gap_are_told_apart_in_at_most_5_of_100_runs(sizes, rate):
    draw = np.random.default_rng(5).binomial(sizes, rate, size=(1000, 2))
    assert np.mean([of_two_shares(int(a), sizes[0], int(b), sizes[1]) < 0.05 for a, b in draw]) <= 0.065
