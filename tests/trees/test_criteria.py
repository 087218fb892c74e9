"""Counts and variances: by hand, against every possible split, and against scikit-learn's trees on the same bins."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from backend.trees.criteria import ClassCounts, Stops, Variance
from backend.trees.growth import FREE, Histogram

ANY = Stops()
GINI = ClassCounts(2, "gini", ANY, binary=True)
BITS = ClassCounts(2, "entropy", ANY, binary=True)
NUMBERS = Variance(centre=10.0, span=2.0, unit=0.5, stops=ANY)  # one unit of the integers is 1


def best(criterion, sums, categorical=False):
    """Best split of ``(channels, bins + 1)`` sums, the last column for missing values."""
    return criterion.best_split(Histogram(np.array(sums), categorical), 0, FREE)


def counts_of(index, labels, bins, classes):
    sums = np.zeros((classes, bins + 1), dtype=np.int64)
    np.add.at(sums, (labels, index), 1)
    return sums


def gini(counts):
    counts = np.asarray(counts)
    return 1 - sum((c / counts.sum()) ** 2 for c in counts) if counts.sum() else 0.0


def entropy(counts):
    shares = [c / sum(counts) for c in counts if c]
    return -sum(p * np.log2(p) for p in shares)


def test_gini_by_hand():
    """6 of 0 and 2 of 1, cut into 6+1 and 0+1: 0.375 - 7/8 · 2·(6/7)(1/7) = 0.375 - 0.2142857 falls, times 8 records."""
    found = best(GINI, [[6, 0, 0], [1, 1, 0]])
    assert found.gain == pytest.approx(8 * (0.375 - 7 / 8 * 12 / 49))
    assert found.left_bins == (0,) and found.left_sums.tolist() == [6, 1]


def test_information_by_hand():
    """4 of each, parted wholly: one bit a record."""
    assert best(BITS, [[4, 0, 0], [0, 4, 0]]).gain == pytest.approx(8.0)


def test_variance_by_hand():
    """9, 9, 11, 11 around 10: a variance of 1 falls to 0, times 4 records."""
    assert best(NUMBERS, [[-2, 2, 0], [2, 2, 0]]).gain == pytest.approx(4.0)


def test_the_papers_equation_4_is_the_gain_of_the_variance():
    """Yao et al. appendix A: Var[y] - n_L/n·Var[y_L] - n_R/n·Var[y_R], times n."""
    left, right = np.array([9.0, 12.0, 10.0]), np.array([11.0, 12.0])
    both = np.append(left, right)
    fall = both.var() - 3 / 5 * left.var() - 2 / 5 * right.var()
    found = best(NUMBERS, [[(left - 10).sum(), (right - 10).sum(), 0], [3, 2, 0]])
    assert found.gain == pytest.approx(5 * fall)


@pytest.mark.parametrize("criterion", [GINI, BITS])
def test_a_pure_node_and_an_uninformative_cut_are_no_splits(criterion):
    assert best(criterion, [[5, 3, 0], [0, 0, 0]]) is None
    assert best(criterion, [[10, 20, 0], [3, 6, 0]]) is None  # the same shares on both sides


def test_what_floating_point_numbers_gain_by_rounding_is_no_split():
    """The same shares, and the same value, on both sides; without care the gains are 6e-14, 3e-13 and 0.004."""
    assert best(GINI, [[34 * 6, 35 * 6, 0], [34 * 7, 35 * 7, 0]]) is None
    assert best(BITS, [[40 * 8, 33 * 8, 0], [40 * 3, 33 * 3, 0]]) is None
    value, large = 540765344, Variance(centre=0.0, span=1e6, unit=2**-30, stops=ANY)
    assert best(large, [[30 * value, 48 * value, 0], [30, 48, 0]]) is None


def test_categories_of_three_classes_are_ordered_by_the_share_of_the_most_frequent_class():
    """Shares of class 2: 1/4, 9/10, 2/5, so the order is 0, 2, 1 and the best cut takes off the 1; by class 1 it is 0, 1, 2."""
    sums = [[3, 0, 2, 0], [0, 1, 1, 0], [1, 9, 2, 0]]
    found = best(ClassCounts(3, "gini", ANY, binary=False), sums, categorical=True)
    assert found.left_bins == (0, 2) and found.left_sums.tolist() == [5, 1, 3]


def test_the_impurity_must_fall_by_more_than_epsilon():
    """FL-DT eq. 16: the fall here is 0.5 exactly."""
    sums = [[4, 0, 0], [0, 4, 0]]
    assert best(ClassCounts(2, "gini", Stops(min_gain=0.4999), binary=True), sums) is not None
    assert best(ClassCounts(2, "gini", Stops(min_gain=0.5), binary=True), sums) is None


def test_epsilon_of_a_number_is_in_its_own_unit_squared():
    sums = [[-2, 2, 0], [2, 2, 0]]  # the variance falls by 1
    assert best(Variance(10.0, 2.0, 0.5, Stops(min_gain=0.999)), sums) is not None
    assert best(Variance(10.0, 2.0, 0.5, Stops(min_gain=1.0)), sums) is None


def test_small_nodes_stay_leaves():
    sums = [[3, 0, 0], [0, 2, 0]]
    assert best(ClassCounts(2, "gini", Stops(min_samples_split=5), binary=True), sums) is not None
    assert best(ClassCounts(2, "gini", Stops(min_samples_split=6), binary=True), sums) is None


def test_no_child_is_smaller_than_min_samples_leaf():
    sums = [[3, 2, 0, 0], [0, 1, 4, 0]]
    assert best(GINI, sums).left_bins == (0, 1)
    assert best(ClassCounts(2, "gini", Stops(min_samples_leaf=5), binary=True), sums) is None
    assert best(ClassCounts(2, "gini", Stops(min_samples_leaf=4), binary=True), sums).left_sums.sum() == 6


def test_missing_values_go_where_the_children_are_purer():
    assert best(GINI, [[4, 0, 3], [0, 4, 0]]).default_left is True
    assert best(GINI, [[4, 0, 0], [0, 4, 3]]).default_left is False


def test_without_missing_values_the_larger_child_is_the_default():
    assert best(GINI, [[9, 0, 0], [0, 4, 0]]).default_left is True
    assert best(NUMBERS, [[-2, 9, 0], [2, 9, 0]]).default_left is False


def test_a_binary_leaf_is_the_share_of_the_positives():
    leaf = GINI.leaf(np.array([6, 2]), FREE)
    assert (leaf.weight, leaf.cover, leaf.weights) == (0.25, 8.0, ())


def test_a_leaf_of_several_classes_holds_every_share():
    leaf = ClassCounts(3, "gini", ANY, binary=False).leaf(np.array([1, 5, 4]), FREE)
    assert (leaf.weight, leaf.cover, leaf.weights) == (0.5, 10.0, (0.1, 0.5, 0.4))


def test_a_leaf_of_numbers_is_their_mean():
    assert NUMBERS.leaf(np.array([-3, 2]), FREE).weight == 8.5  # 10 - 3/2


def test_leaves_of_ten_trees_are_a_tenth_each():
    assert ClassCounts(2, "gini", ANY, binary=True, trees=10).leaf(np.array([6, 2]), FREE).weight == 0.025
    assert Variance(10.0, 2.0, 0.5, ANY, trees=10).leaf(np.array([-3, 2]), FREE).weight == pytest.approx(0.85)
    shares = ClassCounts(3, "gini", ANY, binary=False, trees=2).leaf(np.array([1, 1, 2]), FREE).weights
    assert shares == (0.125, 0.125, 0.25)


def test_a_category_that_no_record_has_goes_nowhere():
    found = best(GINI, [[4, 0, 1, 0], [0, 0, 4, 0]], categorical=True)
    assert found.left_bins == (0,)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_split_of_two_classes_or_numbers_is_better_not_even_of_categories(data):
    """Every cut, or for categories every subset, with missing values on both sides (Fisher 1958; Breiman et al. 1984)."""
    bins = data.draw(st.integers(2, 5))
    categorical = data.draw(st.booleans())
    kind = data.draw(st.sampled_from(["gini", "entropy", "variance"]))
    negatives, positives = (
        [*data.draw(st.lists(st.integers(0, 9), min_size=bins, max_size=bins)), 0] for _ in range(2)
    )
    if not categorical:
        negatives[-1] = data.draw(st.integers(0, 9))
    numbers = kind == "variance"
    criterion = Variance(0.0, 1.0, 1.0, ANY) if numbers else ClassCounts(2, kind, ANY, binary=True)
    every = [n + p for n, p in zip(negatives, positives, strict=True)]
    found = best(criterion, [positives, every] if numbers else [negatives, positives], categorical)
    sizes = range(1, bins)
    lefts = (
        [set(c) for k in sizes for c in itertools.combinations(range(bins), k)] if categorical else map(range, sizes)
    )
    impurity = {"gini": gini, "entropy": entropy, "variance": lambda c: gini(c) / 2}[kind]

    def fall(left, missing_left):
        inside = [b in left for b in range(bins)] + [missing_left]
        sides = [
            [sum(c for c, i in zip(counts, inside, strict=True) if i == side) for counts in (negatives, positives)]
            for side in (True, False)
        ]
        total = [sum(negatives), sum(positives)]
        if not all(map(sum, sides)):
            return 0.0
        return sum(total) * impurity(total) - sum(sum(side) * impurity(side) for side in sides)

    expected = max(fall(left, m) for left in lefts for m in (False, True))
    assert (found.gain if found else 0.0) == pytest.approx(max(0.0, expected), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["gini", "entropy"]), st.integers(2, 4), st.integers(1, 3))
def test_the_fall_of_the_impurity_is_that_of_scikit_learns_first_split(seed, impurity, classes, least):
    draw = np.random.default_rng(seed)
    index, labels = draw.integers(0, 6, 40), draw.integers(0, classes, 40)
    criterion = ClassCounts(classes, impurity, Stops(min_samples_leaf=least), binary=False)
    found = best(criterion, counts_of(index, labels, 6, classes))
    peer = DecisionTreeClassifier(criterion=impurity, max_depth=1, min_samples_leaf=least).fit(index[:, None], labels)
    assert (found.gain if found else 0.0) == pytest.approx(fall_of(peer.tree_), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_the_fall_of_the_variance_is_that_of_scikit_learns_first_split(seed):
    draw = np.random.default_rng(seed)
    index, values = draw.integers(0, 6, 40), draw.integers(-50, 50, 40)
    sums = np.zeros((2, 7), dtype=np.int64)
    np.add.at(sums[0], index, values)
    np.add.at(sums[1], index, 1)
    found = best(Variance(0.0, 50.0, 0.02, ANY), sums)
    peer = DecisionTreeRegressor(max_depth=1).fit(index[:, None], values)
    assert found.gain == pytest.approx(fall_of(peer.tree_), rel=1e-9)


def fall_of(tree):
    """Records times impurity: before minus after the root's split."""
    weighted = tree.impurity * tree.n_node_samples
    return 0.0 if tree.node_count == 1 else weighted[0] - weighted[1] - weighted[2]
