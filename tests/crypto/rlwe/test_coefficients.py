"""Sums by bin as coefficients: plain polynomial arithmetic first, then ciphertexts; noise against its bound, and what is refused."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.rlwe.coefficients import (
    BLOCKS,
    best_block,
    blocks,
    groups,
    mask_positions,
    places_of,
    sum_positions,
)


def product(a, b, t):
    """a·b modulo X^N + 1 and t, term by term."""
    n, out = len(a), [0] * len(a)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            if x and y:
                at, sign = (i + j, 1) if i + j < n else (i + j - n, -1)
                out[at] = (out[at] + sign * x * y) % t
    return out


def sums(values, bins):
    """By bin, in one place."""
    return [int(values[index == b].sum()) for index, count in bins for b in range(count)]


def some_bins(counts, rows, draw):
    return [(draw.integers(0, count, rows), count) for count in counts]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(0, 40),
    st.sampled_from([2, 4, 8, 16]),
    st.integers(1, 3),
    st.integers(0, 2**31),
)
def test_the_agreed_coefficients_of_products_are_the_sums_by_bin_and_no_other_row_enters(
    counts, rows, block, most, seed
):
    degree, t, draw = 64, 2**13 - 1, np.random.default_rng(seed)
    bins, values = some_bins(counts, rows, draw), draw.integers(-50, 51, rows)
    places, found = places_of(bins), []
    for group in groups(counts, block, degree, most):
        total = [0] * degree
        for cut in blocks(rows, block):
            g = [int(v) for v in values[cut]] + [0] * (degree - len(values[cut]))
            b = np.zeros(degree, dtype=int)
            b[mask_positions(places[:, cut], group, block)] = 1
            total = [x + y for x, y in zip(total, product(g, b.tolist(), t), strict=True)]
        found += [(total[i] + t // 2) % t - t // 2 for i in sum_positions(group, block)]
    assert found == sums(values, bins)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=12), st.sampled_from(BLOCKS), st.integers(1, 5))
def test_groups_hold_every_bin_once_and_no_more_bins_or_features_than_fit(counts, block, most):
    found = groups(counts, block, 8192, most)
    assert [b for group in found for b in group] == list(range(sum(counts)))
    owner = np.repeat(np.arange(len(counts)), counts)
    assert all(len(group) * block <= 8192 and len(set(owner[list(group)])) <= most for group in found)


def test_many_rows_take_longer_blocks_and_many_bins_shorter_ones():
    assert best_block(100, [[33] * 10], 2, 8192) < best_block(18_000, [[33] * 10], 2, 8192)
    assert best_block(18_000, [[33] * 100], 2, 8192) < best_block(18_000, [[33]], 2, 8192)
    # by hand: blocks of 256 take 2·(36·1.3 + 14·3.2) + 36·14·0.69 = 531 ms, of 512 2·(18·1.3 + 27·3.2) + 18·27·0.69 = 555
    assert best_block(9_000, [[33] * 13], 2, 8192) == 256
