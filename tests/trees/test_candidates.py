"""Candidate leaves: the paper's toy tree by hand, and Proposition 1 on random ensembles."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import GUEST_RULES, HOST_RULES, TOY
from worlds import GUEST, random_world

from backend.trees.compiled import candidate_leaves
from backend.trees.ensemble import SplitRule


def test_the_toy_tree_has_its_leaves_left_to_right():
    assert TOY.leaves == (7, 8, 4, 5, 9, 10)


def test_the_toy_guest_keeps_leaves_one_and_two_as_in_equation_11():
    columns = {"g1": np.array([1.0]), "g2": np.array([1.0]), "g6": np.array([1.0])}
    (kept,) = candidate_leaves([TOY], GUEST_RULES, columns, 1)
    assert kept[0].tolist() == [True, True, False, False, False, False]


def test_the_toy_host_keeps_leaves_one_three_and_four_as_in_equation_12():
    columns = {"h4": np.array([1.0]), "h7": np.array([1.0])}
    (kept,) = candidate_leaves([TOY], HOST_RULES, columns, 1)
    assert kept[0].astype(int).tolist() == [1, 0, 1, 1, 0, 0]


def test_a_missing_column_follows_the_default_direction():
    (kept,) = candidate_leaves([TOY], {(0, 2): SplitRule("h7", False, 5.0)}, {}, 1)
    assert kept[0].tolist() == [True, True, True, False, True, True]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_the_parties_candidate_leaves_meet_in_exactly_one_leaf_of_every_tree(seed, n_hosts):
    """Proposition 1."""
    world = random_world(seed, n_hosts)
    ids = world.tables[GUEST].ids
    partial_models = {GUEST: world.model.rules} | {h: partial_model.rules for h, partial_model in world.hosts.items()}
    for sample in ids:
        meeting = None
        for party, rules in partial_models.items():
            table = world.tables[party]
            columns = table.take(np.array([table.row_of[sample]])).columns if sample in table.row_of else {}
            kept = candidate_leaves(world.model.skeletons, rules, columns, 1)
            meeting = kept if meeting is None else [a & b for a, b in zip(meeting, kept, strict=True)]
        assert all(tree.sum() == 1 for tree in meeting)
