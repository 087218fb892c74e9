"""What the pages read out of a model, by hand on a tree of two splits."""

from app import view_models
from backend.trees.ensemble import GuestTree, Leaf, Split

# 0 ─ left → leaf 1; right → 2 ─ left → leaf 3; right → leaf 4
TREE = GuestTree(
    (
        Split("bank", "age", 1, 2, True, gain=5.0, cover=10.0),
        Leaf(-0.2, 6.0),
        Split("telecom", "tenure", 3, 4, False, gain=2.5, cover=4.0),
        Leaf(0.1, 3.0),
        Leaf(0.7, 1.0),
    )
)


def test_leaves_stand_on_rows_from_top_to_bottom_and_splits_between_them() -> None:
    assert view_models.positions(TREE) == {1: (1, 0.0), 3: (2, 1.0), 4: (2, 2.0), 2: (1, 1.5), 0: (0, 0.75)}


def test_a_node_is_open_if_a_candidate_leaf_lies_below_it() -> None:
    assert view_models.alive(TREE, [4]) == {4, 2, 0}
    assert view_models.alive(TREE, [1, 3]) == {0, 1, 2, 3}
    assert view_models.alive(TREE, []) == frozenset()


def test_every_node_but_the_root_has_the_split_above_it() -> None:
    assert view_models.parents(TREE) == {1: 0, 2: 0, 3: 2, 4: 2}


def test_the_gain_of_a_tree_is_the_sum_over_its_splits() -> None:
    assert view_models.gain(TREE) == 7.5


def test_the_tree_of_the_largest_gain_comes_first() -> None:
    leaf = GuestTree((Leaf(0.3, 1.0),))
    assert view_models.by_gain((leaf, TREE, leaf)) == (1, 0, 2)


def test_a_single_leaf_is_a_tree_too() -> None:
    assert view_models.positions(GuestTree((Leaf(0.3, 1.0),))) == {0: (0, 0.0)}


def test_a_large_tree_is_drawn_in_parts() -> None:
    assert view_models.branches(TREE, max_leaves=3, levels=1) == (0,)
    assert view_models.branches(TREE, max_leaves=2, levels=1) == (0, 2)
    assert view_models.positions(TREE, levels=1) == {1: (1, 0.0), 2: (1, 1.0), 0: (0, 0.5)}
    assert view_models.positions(TREE, top=2, levels=1) == {3: (1, 0.0), 4: (1, 1.0), 2: (0, 0.5)}
    assert [view_models.leaves_below(TREE, node) for node in range(5)] == [3, 1, 2, 1, 1]
