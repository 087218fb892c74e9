"""Integers at one public scale."""

from hypothesis import given
from hypothesis import strategies as st

from backend.crypto.fixedpoint import PAIR_SLOT, join_pair, quantise, split_pair, split_slots

PAIRS = st.tuples(st.integers(-(2**30), 2**30), st.integers(0, 2**28))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.integers(4, 24))
def test_rounding_is_off_by_at_most_half_a_unit(values, bits):
    for value, unit in zip(values, quantise(values, bits), strict=True):
        assert abs(value - unit / 2**bits) <= 2.0 ** -(bits + 1)


@given(st.lists(PAIRS, min_size=1, max_size=50))
def test_a_sum_of_joined_pairs_is_the_joined_sum(pairs):
    total = sum(join_pair(g, h) for g, h in pairs)
    assert split_pair(total) == (sum(g for g, _ in pairs), sum(h for _, h in pairs))


@given(st.lists(PAIRS, min_size=1, max_size=27))
def test_packed_slots_come_back_in_order_whatever_their_signs(pairs):
    joined = [join_pair(g, h) for g, h in pairs]
    packed = sum(value << (PAIR_SLOT * i) for i, value in enumerate(joined))
    assert split_slots(packed, len(joined)) == joined
