"""Importance, direction and contributions: by hand on a small tree, by brute force on random ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST, goes_left, random_world

from backend.data.dictionary import ExpectedDirection, Feature, Kind
from backend.explain.contribution import Expectation
from backend.explain.direction import learned_directions
from backend.explain.importance import feature_importance
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Split, SplitRule

#        income(0) gain 6, cover 10
#   leaf -1 (1) cover 4     calls(2) gain 2, cover 6
#                        leaf +2 (3) cover 2   leaf +1 (4) cover 4
TREE = GuestTree(
    (
        Split("bank", "income", 1, 2, True, 6.0, 10.0),
        Leaf(-1.0, 4.0),
        Split("telecom", "calls", 3, 4, False, 2.0, 6.0),
        Leaf(2.0, 2.0),
        Leaf(1.0, 4.0),
    )
)
DICTIONARY = (
    ("bank", Feature(name="income", meaning="Income", expected_direction=ExpectedDirection.DOWN)),
    ("telecom", Feature(name="calls", meaning="Calls", expected_direction=ExpectedDirection.DOWN)),
    ("telecom", Feature(name="plan", meaning="Plan", kind=Kind.CATEGORICAL)),
)
MODEL = GuestModel("bank", ("telecom",), (TREE,), (0.5,), 10, DICTIONARY, {(0, 0): SplitRule("income", True, 100.0)})


def test_importance_by_hand():
    income, calls, plan = feature_importance(MODEL)
    assert (income.feature, income.gain, income.splits, income.cover, income.trees) == ("income", 6.0, 1, 10.0, 1)
    assert income.gain_share == 0.75 and calls.gain_share == 0.25 and calls.split_share == 0.5
    assert plan.splits == 0 and plan.gain_share == 0.0


def test_directions_by_hand():
    income, calls, plan = learned_directions(MODEL)
    # right of income: (2·2 + 1·4)/6 = 1.33 > -1: a higher income raises the score, which nobody expected
    assert income.learned == "up" and income.strength == 1.0 and income.contradicts and income.where == ((0, 0),)
    assert calls.learned == "down" and calls.strength == -1.0 and not calls.contradicts and calls.where == ()
    assert plan.learned == "unused" and not plan.contradicts


def test_a_categorical_feature_has_no_direction():
    tree = GuestTree((Split("telecom", "plan", 1, 2, True, 1.0, 2.0), Leaf(0.0, 1.0), Leaf(1.0, 1.0)))
    model = GuestModel("bank", ("telecom",), (tree,), (0.0,), 10, DICTIONARY, {})
    assert learned_directions(model)[2].learned == "unordered"


def test_splits_that_disagree_make_a_mixed_direction():
    up = GuestTree((Split("bank", "income", 1, 2, True, 1.0, 2.0), Leaf(0.0, 1.0), Leaf(1.0, 1.0)))
    down = GuestTree((Split("bank", "income", 1, 2, True, 1.1, 2.0), Leaf(1.0, 1.0), Leaf(0.0, 1.0)))
    income = learned_directions(GuestModel("bank", (), (up, down), (0.0,), 10, DICTIONARY[:1], {}))[0]
    assert income.learned == "mixed" and not income.contradicts and income.where == ((0, 0),)


def test_base_and_guest_part_by_hand():
    # base: 0.5 + 0.4·(-1) + 0.6·(2/6·2 + 4/6·1)
    expectation = Expectation(MODEL)
    assert expectation.base == pytest.approx(0.5 - 0.4 + 0.6 * (8 / 6))
    given_guest = expectation.given({"income": np.array([50.0, 150.0, np.nan])}, 3)
    assert given_guest == pytest.approx([-0.5, 0.5 + 8 / 6, -0.5])


def enumerate_expectation(tree, t, rules, row, node=0):
    """Oracle: weight of every leaf times the product of shares along its path."""
    found = tree.nodes[node]
    if isinstance(found, Leaf):
        return found.weight
    sides = (found.left, found.right)
    if (t, node) in rules:
        side = sides[0] if goes_left(rules[t, node], row.get(found.feature)) else sides[1]
        return enumerate_expectation(tree, t, rules, row, side)
    left = tree.nodes[sides[0]].cover / found.cover if found.cover else 0.5
    below = [enumerate_expectation(tree, t, rules, row, side) for side in sides]
    return left * below[0] + (1.0 - left) * below[1]


def with_random_covers(model, seed):
    """The same trees with covers from 0, each split's the sum of its sides'."""
    draw = np.random.default_rng(seed)

    def covered(tree):
        nodes = list(tree.nodes)
        for i in range(len(nodes) - 1, -1, -1):  # children are numbered after their split
            node = nodes[i]
            cover = (
                float(draw.choice([0.0, 0.0, 0.7, 3.0]))
                if isinstance(node, Leaf)
                else nodes[node.left].cover + nodes[node.right].cover
            )
            nodes[i] = replace(node, cover=cover)
        return GuestTree(tuple(nodes))

    return replace(model, trees=tuple(covered(tree) for tree in model.trees))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.data())
def test_the_guest_alone_gets_the_expectation_over_the_hosts_splits(seed, data):
    world = random_world(seed)
    model, table = with_random_covers(world.model, seed), world.tables[GUEST]
    names = data.draw(st.sets(st.sampled_from(sorted(table.columns))))
    columns = {name: table.columns[name] for name in names}
    expectation = Expectation(model)
    got = expectation.given(columns, len(table.ids))

    def oracle(rules, row):
        return model.base_scores[0] + sum(
            enumerate_expectation(tree, t, rules, row) for t, tree in enumerate(model.trees)
        )

    assert expectation.base == pytest.approx(oracle({}, {}), rel=1e-9, abs=1e-12)
    for k in range(len(table.ids)):
        row = {n: (None if c[k] is None or c[k] != c[k] else c[k]) for n, c in columns.items()}
        assert got[k] == pytest.approx(oracle(model.rules, row), rel=1e-9, abs=1e-12)
        alone = expectation.given({n: c[[k]] for n, c in columns.items()}, 1)
        assert alone[0] == got[k]  # to the last bit, whatever the batch
