"""Associations: by hand, against scikit-learn and SciPy, and what chance alone does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats.contingency import association, expected_freq
from sklearn.metrics import mutual_info_score

from backend.fairness import proxies
from backend.fairness.proxies import NOTABLE, as_evidence, associations


def table_of(first, second):
    table = np.zeros((first.max() + 1, second.max() + 1), dtype=np.int64)
    np.add.at(table, (first, second), 1)
    return table


def one(table, seed=0):
    return associations({("host", "f"): np.array(table, dtype=np.int64)}, seed)[0]


def test_a_feature_that_is_the_attribute_tells_all_of_it():
    found = one([[500, 0], [0, 500]])
    assert found.v == pytest.approx(1, abs=2e-3) and found.bits == pytest.approx(1, abs=2e-3)
    assert found.explained == pytest.approx(1, abs=2e-3) and found.found and found.n == 1000
    assert found.v_high <= 1


def test_a_feature_that_is_spread_alike_over_all_groups_tells_nothing():
    found = one([[300, 100], [300, 100]])
    assert (found.v, found.bits, found.explained, found.v_low, found.bits_low) == (0, 0, 0, 0, 0)
    assert found.p == 1 and not found.found and 0 < found.chance < NOTABLE


def test_a_half_sided_feature_by_hand():
    # 400 of 1,000: χ²/n = 0.36, so V = 0.6 before the correction by 1/999; I = 1 - H(0.8) = 0.278 bits
    found = one([[400, 100], [100, 400]])
    assert found.v == pytest.approx(((0.36 - 1 / 999) / (1 - 1 / 999)) ** 0.5)
    assert found.bits == pytest.approx(1 - 0.7219281 - 1 / (2 * 1000 * np.log(2)), abs=1e-6)
    assert found.explained == pytest.approx(found.bits)  # the attribute's entropy is one bit
    assert found.v_low < 0.6 < found.v_high and found.bits_low < found.bits < found.bits_high


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(2, 6))
def test_before_the_corrections_the_numbers_are_those_of_scipy_and_scikit_learn(seed, r, c):
    draw = np.random.default_rng(seed)
    first, second = (np.concatenate([np.arange(k), draw.integers(0, k, 100)]) for k in (r, c))
    n = min(len(first), len(second))
    first, second = (np.concatenate([np.arange(k), v[-(n - k) :]]) for k, v in ((r, first), (c, second)))
    table = table_of(first, second)
    if (expected_freq(table) == 0).any():
        return
    chi = float(proxies.chi_squared(table))
    assert (chi / n / (min(r, c) - 1)) ** 0.5 == pytest.approx(association(table, "cramer"), abs=1e-12)
    plain = mutual_info_score(first, second) / np.log(2)
    bias = (r - 1) * (c - 1) / (2 * n * np.log(2))
    assert float(proxies.mutual_information(table)) == pytest.approx(max(0.0, plain - bias), abs=1e-9)


def test_drawn_tables_are_what_shuffling_the_records_gives():
    draw = np.random.default_rng(3)
    first, second = draw.integers(0, 3, 200), draw.choice(4, 200, p=[0.6, 0.2, 0.1, 0.1])
    drawn = proxies.permuted_chi_squared(table_of(first, second), draw)
    by_hand = np.array([float(proxies.chi_squared(table_of(draw.permutation(first), second))) for _ in range(1000)])
    for q in (0.1, 0.5, 0.9, 0.95):
        assert np.quantile(drawn, q) == pytest.approx(np.quantile(by_hand, q), rel=0.15)


def test_of_many_unrelated_features_none_is_found_and_a_weak_one_is():
    draw = np.random.default_rng(5)
    attribute = draw.integers(0, 2, 2000)
    noise = {("host", f"f{i}"): table_of(attribute, draw.integers(0, 10, 2000)) for i in range(40)}
    weak = np.where(draw.random(2000) < 0.15, attribute, draw.integers(0, 2, 2000))
    found = associations(noise | {("host", "weak"): table_of(attribute, weak)}, 1)
    assert [a.feature for a in found if a.found] == ["weak"] and found[0].feature == "weak"
    assert found[0].v_low < 0.15 < found[0].v_high
    assert [e.about.en for e in as_evidence(found)] == ["weak"] and as_evidence(found)[0].value == found[0].v


def test_what_is_certain_but_negligible_is_not_found():
    found = one([[10_500, 9_500], [9_500, 10_500]])
    assert found.p < 0.01 and found.v == pytest.approx(0.05, abs=0.005) and not found.found


def test_a_p_value_counts_how_many_features_were_looked_at():
    weak = np.array([[60, 40], [45, 55]])
    alone = one(weak).p
    noise = {("host", f"n{i}"): np.array([[50, 50], [50, 50]]) for i in range(9)}
    among = {a.feature: a.p for a in associations({("host", "f"): weak} | noise, 0)}
    # 0.047 in all permutations; four standard errors of 2,000 of them
    assert 0.028 < alone < 0.067 and among["f"] == pytest.approx(min(1, 10 * alone), rel=0.3) and among["n0"] == 1


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    draw = np.random.default_rng(11)
    shares = np.array([[0.20, 0.12, 0.08], [0.15, 0.15, 0.30]])
    expected = np.outer(shares.sum(1), shares.sum(0))
    truth = (((shares - expected) ** 2 / expected).sum()) ** 0.5
    tables = [draw.multinomial(800, shares.ravel()).reshape(2, 3) for _ in range(60)]
    held = [a.v_low <= truth <= a.v_high for a in (one(t, s) for s, t in enumerate(tables))]
    assert sum(held) >= 51  # of 60 at 95 %: fewer happen once in 2,000 times


def test_the_interval_of_an_unrelated_feature_begins_at_nothing():
    draw = np.random.default_rng(13)
    tables = [draw.multinomial(1000, np.full(50, 1 / 50)).reshape(5, 10) for _ in range(40)]
    found = [one(t, s) for s, t in enumerate(tables)]
    assert sum(a.v_low == 0 for a in found) >= 34 and sum(a.bits_low == 0 for a in found) >= 34  # of 40 at 97.5 %


def test_the_same_seed_gives_the_same_figures():
    assert one([[40, 60], [55, 45]], 9) == one([[40, 60], [55, 45]], 9)


def test_intervals_do_not_depend_on_the_order_in_which_tables_came():
    """Answers of today come after those that are taken again, and the other way round."""
    draw = np.random.default_rng(3)
    tables = {("host", f"f{i}"): draw.integers(5, 40, (2, 3 + i)) for i in range(3)}
    assert associations(tables, 1) == associations(dict(reversed(tables.items())), 1)
