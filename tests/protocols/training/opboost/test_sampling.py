"""Exact draws: certified thresholds against decimal arithmetic, frequencies against probabilities, ambiguous bits drawn on."""

from decimal import localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from backend.protocols.training.opboost import sampling
from backend.protocols.training.opboost.sampling import Sampler, system_words, thresholds

MECHANISMS = ["exponential", "laplace"]


def test_with_two_values_and_epsilon_two_ln_three_three_of_four_stay():
    """Pr[stay] = 1/(1 + e^(-ε/2)) = 3/4; ε = 2.1972246 is 2·ln 3 to seven digits."""
    (floor,) = thresholds(Fraction("2.1972246"), 2, 0, 64)
    assert floor / 2**64 == pytest.approx(0.75, abs=1e-7)


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=8, max_denominator=100),
    st.integers(2, 12),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_thresholds_are_the_distribution_function_rounded_down(bounded, epsilon, size, data):
    anchor = data.draw(st.integers(0, size - 1))
    probabilities = bounded(epsilon, size, anchor)
    with localcontext() as context:
        context.prec = 90
        expected = [int(sum(probabilities[: k + 1]) * 2**64) for k in range(size - 1)]
    assert thresholds(epsilon, size, anchor, 64) == expected


def test_thresholds_at_more_bits_begin_with_those_at_fewer():
    few, many = (thresholds(Fraction("0.37"), 40, 7, bits) for bits in (64, 192))
    assert [m >> 128 for m in many] == few


@pytest.mark.parametrize("precision", [3, 6, 9])
@pytest.mark.parametrize("epsilon", ["0.1", "0.7", "3"])
def test_bounds_at_hardly_any_precision_still_hold_the_truth_between_them(bounded, epsilon, precision):
    epsilon = Fraction(epsilon)
    for size, anchor in ((5, 0), (7, 3), (12, 10), (30, 4)):
        with localcontext() as context:
            context.prec = 90
            exact = bounded(epsilon, size, anchor)
            expected = [int(sum(exact[: k + 1]) * 2**64) for k in range(size - 1)]
        low, high = (sampling._floors(epsilon, size, anchor, 64, precision, up) for up in (False, True))
        assert all(a <= b <= c for a, b, c in zip(low, expected, high, strict=True))
        assert low != high


def test_a_probability_beyond_the_first_64_bits_is_still_certified():
    floors = thresholds(Fraction(20), 64, 0, 64)  # F(63) misses 1 by e^-620
    assert floors[-1] == floors[-2] == 2**64 - 1
    assert thresholds(Fraction(20), 64, 63, 64)[0] == 0


def test_a_failed_certificate_is_computed_again_at_twice_the_precision(monkeypatch):
    seen = []
    whole = sampling._floors

    def floors(epsilon, size, anchor, bits, precision, up):
        seen.append(precision)
        found = whole(epsilon, size, anchor, bits, precision, up)
        return [f + up for f in found] if precision == 64 + sampling.GUARD else found

    monkeypatch.setattr(sampling, "_floors", floors)
    assert thresholds(Fraction("0.21"), 5, 2, 64) == whole(Fraction("0.21"), 5, 2, 64, 384, False)
    assert seen == [192, 192, 384, 384]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("epsilon", "size", "anchor"), [("0.3", 8, 0), ("1", 8, 3), ("2.5", 5, 4), ("0.05", 16, 9)])
def test_frequencies_fit_the_exact_probabilities(mechanism, epsilon, size, anchor, bounded, seeded):
    epsilon, n = Fraction(epsilon), 40_000
    drawn = Sampler(epsilon, size, mechanism).draw(np.full(n, anchor), seeded(5))
    expected = np.array([float(p) for p in bounded(epsilon, size, anchor)]) * n
    assert chisquare(np.bincount(drawn, minlength=size), expected).pvalue > 0.001


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_system_draws_for_every_value_its_own(mechanism):
    values = np.repeat(np.arange(6), 500)
    first, second = (Sampler(Fraction(1), 6, mechanism).draw(values) for _ in range(2))
    assert first.min() == 0 and first.max() == 5 and (first != second).any()
    assert np.corrcoef(first, values)[0, 1] > 0.3


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_domain_of_one_value_and_an_empty_column_are_drawn_too(mechanism):
    sampler = Sampler(Fraction(1), 1, mechanism)
    assert sampler.draw(np.zeros(3, dtype=np.int64)).tolist() == [0, 0, 0]
    assert Sampler(Fraction(1), 4, mechanism).draw(np.zeros(0, dtype=np.int64)).tolist() == []


@pytest.mark.parametrize(("second", "expected"), [(0, 1), (2**64 - 1, 2)])
def test_bits_that_equal_a_threshold_are_drawn_on(second, expected):
    """U begins exactly like F(1): the next 64 bits decide on which side it lies."""
    epsilon, size, anchor = Fraction("0.7"), 5, 1
    first = thresholds(epsilon, size, anchor, 64)[1]
    tied = thresholds(epsilon, size, anchor, 128)[1] & (2**64 - 1)
    words = iter([[first], [second]])
    assert 0 < tied < 2**64 - 1
    drawn = Sampler(epsilon, size, "exponential").draw(
        np.array([anchor]), lambda count: np.array(next(words), dtype=np.uint64)
    )
    assert drawn.tolist() == [expected]


def test_bits_that_stay_equal_are_drawn_on_until_they_differ():
    epsilon, size, anchor = Fraction("0.7"), 5, 1
    long = thresholds(epsilon, size, anchor, 192)[1]
    words = iter([long >> 128, long >> 64 & (2**64 - 1), (long & (2**64 - 1)) - 1])
    drawn = Sampler(epsilon, size, "exponential").draw(
        np.array([anchor]), lambda count: np.array([next(words)] * count, dtype=np.uint64)
    )
    assert drawn.tolist() == [1] and next(words, None) is None


def test_words_of_the_system_are_64_bits_wide():
    words = system_words(4000)
    assert words.dtype == np.uint64 and len(set(words.tolist())) == 4000
    assert 0.45 < np.mean(words >> np.uint64(63)) < 0.55
