"""The likeliest combination of leaves at a sum is that of trying every one, however many look alike."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.privacy import leakage, likeliest
from backend.privacy.leakage import _largest, _Options

LEAVES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5)), min_size=1, max_size=4).filter(
    lambda leaves: any(cover for _, cover in leaves)
)


def options(leaves):
    covers = np.array([cover for _, cover in leaves], dtype=float)
    return _Options.of(np.array([unit for unit, _ in leaves]), covers / covers.sum())


def as_given(trees):
    return [(tree.offsets, tree.logs) for tree in trees]


def by_trying(trees, low, high):
    pairs = [list(zip(tree.offsets.tolist(), tree.logs.tolist(), strict=True)) for tree in trees]
    found = [tuple(zip(*leaves, strict=True)) for leaves in product(*pairs)]
    return max((sum(logs) for units, logs in found if low <= sum(units) <= high), default=-np.inf)


@settings(max_examples=60, deadline=None)
@given(st.lists(LEAVES, min_size=1, max_size=5), st.integers(-3, 40), st.integers(0, 4), st.integers(1, 4))
def test_it_is_that_of_trying_every_combination(trees, target, dither, first):
    known = [options(leaves) for leaves in trees]
    wanted = by_trying(known, target - dither, target + dither)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(likeliest, "FIRST", first)  # few at first, so that more have to be looked at
        found = likeliest.likeliest(as_given(known), target - dither, target + dither)
    assert found == pytest.approx(wanted, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.lists(LEAVES, min_size=2, max_size=5), st.integers(0, 40), st.integers(0, 4), st.sampled_from([3, 8192]))
def test_sum_by_sum_it_is_the_same(trees, target, dither, block):
    known = [options(leaves) for leaves in trees]
    wanted = by_trying(known, target - dither, target + dither)
    if 0 <= target <= sum(tree.spread for tree in known) and np.isfinite(wanted):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(leakage, "BLOCK", block)
            assert _largest((known[::2], known[1::2]), target, dither) == pytest.approx(wanted, abs=1e-9)


def test_where_too_many_are_alike_it_says_so_and_the_meter_goes_sum_by_sum(monkeypatch):
    draw = np.random.default_rng(5)
    trees = [_Options.of(np.array([0, int(far)]), np.array([0.5, 0.5])) for far in draw.integers(1, 10**6, 10)]
    target = int(sum(tree.spread for tree in trees[::3]))
    wanted = leakage._at(trees, target, 0)
    assert wanted[0] == 1 and wanted[2] == 0.0
    monkeypatch.setattr(likeliest, "MAX_COMBINATIONS", 8)
    assert likeliest.likeliest(as_given(trees), target, target) is None
    assert leakage._at(trees, target, 0) == wanted


def test_what_nobody_reaches_is_never_the_likeliest():
    never = _Options.of(np.array([0, 1]), np.array([0.0, 1.0]))
    assert likeliest.likeliest(as_given([never, never]), 2, 2) == 0.0
    assert likeliest.likeliest(as_given([never, never]), 0, 1) == -np.inf


def test_without_trees_there_is_the_empty_sum():
    assert likeliest.likeliest([], -1, 0) == 0.0 and likeliest.likeliest([], 1, 2) == -np.inf
    assert leakage._at([], 0, 0) == (1, 0.0, 0.0, 0.0)
