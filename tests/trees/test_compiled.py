"""Compiled conditions give what the walk gives, bit for bit: on random ensembles, at every threshold's edge, for strange categories."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from node_walk import goes_left, walked_candidates
from toy import GUEST_RULES, TOY
from worlds import GUEST, random_world

from backend.trees import compiled
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import SplitRule


def hold(rules, conjunctions, columns, n, held=None):
    return Conjunctions(rules, conjunctions).matrix(columns, n, held)


def each_alone(rules):
    """Both sides of every rule, each a conjunction of its own."""
    return [((*key, left),) for key in rules for left in (True, False)]


def test_the_toy_guest_has_its_conditions_leaf_by_leaf_and_keeps_leaves_one_and_two():
    conditions = own_conditions([TOY], GUEST_RULES)
    left, right = ((0, 0, True),), ((0, 0, False),)
    assert conditions == [
        (*left, (0, 1, True)),
        (*left, (0, 1, True)),
        (*left, (0, 1, False)),
        right,
        (*right, (0, 6, True)),
        (*right, (0, 6, False)),
    ]
    columns = {name: np.array([1.0]) for name in ("g1", "g2", "g6")}
    assert hold(GUEST_RULES, conditions, columns, 1).tolist() == [[True, True, False, False, False, False]]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.integers(1, 14), st.data())
def test_candidate_leaves_are_those_of_the_walk_whatever_columns_and_blocks(seed, n_hosts, block, data):
    world = random_world(seed, n_hosts)
    partial_models = {GUEST: world.model.rules} | {
        host: partial_model.rules for host, partial_model in world.hosts.items()
    }
    for party, rules in partial_models.items():
        table = world.tables[party]
        n = len(table.ids)
        names = data.draw(st.sets(st.sampled_from(sorted(table.columns))))
        columns = {name: table.columns[name] for name in names}
        walked = np.concatenate(walked_candidates(world.model.skeletons, rules, columns, n), axis=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "BLOCK", block)
            got = hold(rules, own_conditions(world.model.skeletons, rules), columns, n)
        assert np.array_equal(got, walked)


numbers = st.floats(width=64) | st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.5])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(numbers, st.booleans()), min_size=1, max_size=6), st.lists(numbers, max_size=6))
def test_a_value_goes_where_the_rule_sends_it_at_and_beside_every_threshold(drawn, values):
    rules = {(0, i): SplitRule("x", default_left, threshold) for i, (threshold, default_left) in enumerate(drawn)}
    edges = np.array([t for t, _ in drawn])
    with np.errstate(all="ignore"):
        beside = [np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)]
    column = np.concatenate([values, edges, *beside])
    got = hold(rules, each_alone(rules), {"x": column}, len(column))
    for i, rule in enumerate(rules.values()):
        assert np.array_equal(got[:, 2 * i], rule.goes_left(column))
        assert np.array_equal(got[:, 2 * i + 1], ~rule.goes_left(column))


@pytest.mark.parametrize(
    "column", [np.array([3, 4, 5]), np.array([4.0, None, 3.0], dtype=object)], ids=["int", "object"]
)
def test_numbers_may_come_as_integers_or_objects(column):
    rules = {(0, 0): SplitRule("x", True, 4.0), (0, 1): SplitRule("x", False, 4.0)}
    got = hold(rules, [((0, 0, True),), ((0, 1, True),)], {"x": column}, 3)
    assert np.array_equal(got, np.stack([rule.goes_left(column) for rule in rules.values()], axis=1))


texts = st.sampled_from(["a", "b", "c", "d", ""])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.frozensets(texts), st.frozensets(texts), st.booleans()), min_size=1, max_size=5),
    st.lists(texts | st.none() | st.just("stranger"), max_size=8),
)
def test_a_category_goes_where_the_rule_sends_it_known_missing_or_strange(drawn, values):
    rules = {(0, i): SplitRule("x", default, None, left, right) for i, (left, right, default) in enumerate(drawn)}
    column = np.array(values, dtype=object)
    got = hold(rules, each_alone(rules), {"x": column}, len(column))
    for i, rule in enumerate(rules.values()):
        assert np.array_equal(got[:, 2 * i], rule.goes_left(column))


def test_rows_that_are_not_held_follow_the_default_direction():
    rules = {
        (0, 0): SplitRule("x", True, 5.0),
        (0, 1): SplitRule("x", False, 5.0),
        (0, 2): SplitRule("c", True, None, frozenset({"a"}), frozenset({"b"})),
        (0, 3): SplitRule("gone", False, 1.0),
    }
    columns = {"x": np.array([9.0, 1.0]), "c": np.array(["b", "a"], dtype=object)}
    held = np.array([False, False])
    got = hold(rules, [((*key, True),) for key in rules], columns, 2, held)
    assert got.tolist() == [[goes_left(rule, {}, 1)[0] for rule in rules.values()]] * 2
    assert hold(rules, [((0, 0, True),)], columns, 2, np.array([True, False])).tolist() == [[False], [True]]


def test_conditions_of_all_kinds_must_hold_together_and_no_condition_always_holds():
    rules = {(0, 0): SplitRule("x", True, 5.0), (1, 4): SplitRule("c", False, None, frozenset({"a"}), frozenset({"b"}))}
    columns = {"x": np.array([1.0, 1.0, 9.0]), "c": np.array(["a", "b", "a"], dtype=object)}
    both, none = ((0, 0, True), (1, 4, True)), ()
    assert hold(rules, [none, both], columns, 3).tolist() == [[True, True], [True, False], [True, False]]


def test_a_party_without_rules_and_a_batch_without_samples_are_no_special_case():
    assert hold({}, own_conditions([TOY], {}), {}, 2).tolist() == [[True] * 6] * 2
    assert hold(GUEST_RULES, own_conditions([TOY], GUEST_RULES), {"g1": np.empty(0)}, 0).shape == (0, 6)
