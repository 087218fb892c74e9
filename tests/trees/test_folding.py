"""Which leaves share a ciphertext, worked out by hand for the toy tree and checked on random ensembles."""

from hypothesis import given, settings
from hypothesis import strategies as st
from toy import TOY
from worlds import GUEST, random_world

from backend.trees.ensemble import Fork, Skeleton
from backend.trees.folding import fold_structure


def test_in_the_toy_tree_two_leaves_share_an_entry_and_one_stays_at_the_guest():
    folding = fold_structure([TOY], "guest", ["host"])
    # L1: h4 left; L2: h4 right; L3: none; L4: h7 left; L5 and L6: h7 right
    l1, l2, l3, l4, l5, l6 = folding.entry_of_leaf[0]
    assert l3 is None and l5 == l6 and len({l1, l2, l4, l5}) == folding.n_entries == 4
    assert folding.steps[0].n_out == 1 and set(folding.steps[0].target) == {0}


def test_a_tree_without_host_splits_sends_nothing():
    folding = fold_structure([Skeleton({0: Fork("guest", 1, 2)})], "guest", ["host"])
    assert folding.n_entries == 0 and folding.steps == () and folding.entry_of_leaf == ((None, None),)


def test_a_host_that_owns_no_split_is_left_out_of_the_chain():
    folding = fold_structure([TOY], "guest", ["idle", "host"])
    assert [s.host for s in folding.steps] == ["host"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_entries_are_never_more_than_leaves_and_the_last_host_sends_one(seed, n_hosts):
    world = random_world(seed, n_hosts)
    folding = fold_structure(world.model.skeletons, GUEST, world.model.hosts)
    assert folding.n_entries <= world.model.n_leaves
    incoming = folding.n_entries
    for step in folding.steps:
        assert len(step.host_conditions) == len(step.target) == incoming
        incoming = step.n_out
    assert incoming == (1 if folding.steps else 0)
