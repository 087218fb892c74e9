"""SHAP values are those of the definition, of XGBoost, and of a tree worked out by hand."""

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST, imported_world, random_world, with_bands, with_covers

from backend.explain.contribution import Expectation
from backend.trees.backgrounds import ALL, COVERS, backgrounds, left_shares
from backend.trees.ensemble import Fork, GuestModel, GuestTree, Leaf, Skeleton, Split, SplitRule
from backend.trees.shap import factors_of, quadrature, shap_values
from bench.backgrounds import interventional_values


def all_rules(world):
    return {
        **world.model.rules,
        **{k: r for partial_model in world.hosts.values() for k, r in partial_model.rules.items()},
    }


def all_columns(world):
    rows = [world.row(i) for i in world.tables[GUEST].ids]
    columns = {}
    for party, feature in world.model.dictionary:
        values = [row.get(feature.name) for row in rows]
        kind = world.tables[party].columns[feature.name].dtype
        missing = None if kind.kind == "O" else np.nan
        columns[feature.name] = np.array([missing if v is None else v for v in values], dtype=kind)
    return columns


def known(tree, t, i, row, rules, features, shares):
    """Expectation of a tree where only `features` of the row are known: other splits go both ways by cover."""
    node = tree.nodes[i]
    if isinstance(node, Leaf):
        return node.weight
    if node.feature in features:
        values = np.array([row[node.feature]], dtype=object if isinstance(row[node.feature], str | None) else float)
        left = rules[t, i].goes_left(values)[0]
        return known(tree, t, node.left if left else node.right, row, rules, features, shares)
    share = shares[t, i]
    down = [known(tree, t, child, row, rules, features, shares) for child in (node.left, node.right)]
    return share * down[0] + (1 - share) * down[1]


def by_definition(world, row, background=COVERS):
    """Shapley values over all subsets of features: Lundberg et al. 2020, eq. 4."""
    rules, shares = all_rules(world), left_shares(world.model, background)

    def game(s):
        return sum(known(tree, t, 0, row, rules, s, shares) for t, tree in enumerate(world.model.trees))

    return shapley(world, game)


def shapley(world, game):
    """Of a game over the features in use, by the definition."""
    names = sorted({s.feature for tree in world.model.trees for s in tree.splits.values()})
    games = {s: game(s) for k in range(len(names) + 1) for s in map(frozenset, combinations(names, k))}
    out = []
    for name in names:
        others = [n for n in names if n != name]
        out.append(
            sum(
                factorial(len(s))
                * factorial(len(others) - len(s))
                / factorial(len(names))
                * (games[s | {name}] - games[s])
                for k in range(len(names))
                for s in map(frozenset, combinations(others, k))
            )
        )
    return names, out


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 1), st.integers(1, 4))
def test_values_are_those_of_the_definition_over_all_subsets(seed, n_hosts, depth):
    world = with_covers(random_world(seed, n_hosts, n_trees=2, depth=depth, n=2), seed)
    columns = all_columns(world)
    features, values = shap_values(world.model, all_rules(world), columns, 2)
    for i in range(2):
        names, wanted = by_definition(world, {name: column[i] for name, column in columns.items()})
        assert list(features) == names and values[i] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("seed", [1, 5])
def test_values_against_a_background_are_those_of_the_definition_with_its_shares(seed):
    world = with_bands(random_world(seed, 1, n_trees=2, depth=3, n=430))
    columns = {name: column[:2] for name, column in all_columns(world).items()}
    assert [b.against for b in backgrounds(world.model)] == ["covers", "all", "approved", "approved"]
    for background in backgrounds(world.model):
        _, values = shap_values(world.model, all_rules(world), columns, 2, background)
        for i in range(2):
            _, wanted = by_definition(world, {name: column[i] for name, column in columns.items()}, background)
            assert values[i] == pytest.approx(wanted, abs=1e-12)
    assert not np.allclose(values, shap_values(world.model, all_rules(world), columns, 2, ALL)[1])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_interventional_values_are_those_of_the_definition_over_the_records_of_the_background(seed):
    world = with_covers(random_world(seed, 1, n_trees=3, depth=3, n=9), seed)
    columns, rules = all_columns(world), all_rules(world)
    people, others = ({name: column[rows] for name, column in columns.items()} for rows in (slice(2), slice(2, 9)))
    features, values = interventional_values(world.model, rules, (people, 2), (others, 7))
    for i in range(2):

        def game(s, i=i):
            rows = [{n: (people[n][i] if n in s else others[n][j]) for n in columns} for j in range(7)]
            rows = [{n: None if pd.isna(v) else v for n, v in row.items()} for row in rows]
            trees = range(len(world.model.trees))
            return np.mean(
                [sum(world.model.trees[t].nodes[world.leaf_of(t, r, rules)].weight for t in trees) for r in rows]
            )

        names, wanted = shapley(world, game)
        assert list(features) == names and values[i] == pytest.approx(wanted, abs=1e-12)


def test_a_tree_of_two_features_worked_out_by_hand():
    # root: a < 0 (cover 3 of 4 left) -> b < 0 (cover 1 of 3 left): weights 6, 0; right leaf 8
    nodes = (
        Split("g", "a", 1, 4, True, 1.0, 4.0),
        Split("g", "b", 2, 3, True, 1.0, 3.0),
        Leaf(6.0, 1.0),
        Leaf(0.0, 2.0),
        Leaf(8.0, 1.0),
    )
    rules = {(0, 0): SplitRule("a", True, 0.0), (0, 1): SplitRule("b", True, 0.0)}
    model = GuestModel("g", (), (GuestTree(nodes),), (0.0,), 10, (), rules)
    # a left, b right: {} 3.5, {a} 2, {b} (3*0 + 8)/4 = 2, {a, b} 0
    features, values = shap_values(model, rules, {"a": np.array([-1.0]), "b": np.array([1.0])}, 1)
    assert features == ("a", "b")
    assert values[0] == pytest.approx([((2 - 3.5) + (0 - 2)) / 2, ((2 - 3.5) + (0 - 2)) / 2])


def test_values_add_up_to_the_margin_less_the_expectation_given_nothing():
    world = with_covers(random_world(5, 2, n_trees=6, depth=4, n=9), 5)
    _, values = shap_values(world.model, all_rules(world), all_columns(world), 9)
    trees, rules = world.model.trees, all_rules(world)
    for i, sample in enumerate(world.tables[GUEST].ids):
        row = world.row(sample)
        margin = sum(trees[t].nodes[world.leaf_of(t, row, rules)].weight for t in range(len(trees)))
        assert values[i].sum() == pytest.approx(margin + world.model.base_scores[0] - Expectation(world.model).base[0])


def test_a_feature_that_stands_twice_on_a_path_is_one_factor():
    shares = {(0, 0): 0.25, (0, 1): 0.5, (0, 2): 0.125}
    names = {(0, 0): "a", (0, 1): "b", (0, 2): "a"}
    found = factors_of([(0, 0, True), (0, 1, False), (0, 2, False), (0, 9, True)], names, shares)
    assert [(f.feature, f.conditions, f.share) for f in found] == [
        ("a", ((0, 0, True), (0, 2, False)), 0.25 * 0.875),
        ("b", ((0, 1, False),), 0.5),
    ]


@pytest.mark.parametrize(("depth", "count"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (7, 4)])
def test_half_as_many_points_as_splits_on_a_path_integrate_exactly(depth, count):
    chain = Skeleton({i: Fork("g", 2 * i + 1, 2 * i + 2) for i in [2**d - 1 for d in range(depth)]})
    points, weights = quadrature([Skeleton({}), chain])
    assert len(points) == count and weights.sum() == pytest.approx(1.0)
    if depth:
        assert (weights * points ** (depth - 1)).sum() == pytest.approx(1 / depth, rel=1e-12)


def test_values_of_an_imported_model_are_xgboosts_own_contributions(tmp_path):
    world, wanted = imported_world(tmp_path)
    features, values = shap_values(world.model, all_rules(world), all_columns(world), len(wanted))
    assert np.abs(values - wanted[list(features)].to_numpy()).max() < 1e-4  # XGBoost adds up float32
    assert wanted.bias.to_numpy() == pytest.approx(Expectation(world.model).base[0], abs=1e-4)
