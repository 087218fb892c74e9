"""Integers at one public scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.crypto.fixedpoint import (
    HALF_SLOT,
    MAX_ROWS,
    centred,
    half_slot,
    hidden_above,
    join_pair,
    quantise,
    split_pair,
    split_slots,
)
from backend.errors import ParameterError

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
    packed = sum(value << (2 * HALF_SLOT * i) for i, value in enumerate(joined))
    assert split_slots(packed, len(joined), 2 * HALF_SLOT) == joined


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 2.0**44, -(2.0**44)])
def test_what_does_not_fit_the_scale_is_refused_with_the_value_named(value):
    with pytest.raises(ParameterError, match=r"does not fit the scale 2\^-10: expected a number of at most 2\^43"):
        quantise([0.0, value, 1.0], 10)


@given(st.floats(-(2.0**43), 2.0**43), st.just(10))
def test_every_number_in_range_is_taken_and_keeps_its_sign(value, bits):
    (unit,) = quantise([value], bits)
    assert unit == 0 or (unit > 0) == (value > 0)


@pytest.mark.parametrize("pair", [(2**30 + 1, 0), (-(2**30) - 1, 0), (0, -1), (0, 2**30 + 1)])
def test_a_pair_that_could_overflow_its_slot_is_refused(pair):
    with pytest.raises(ParameterError, match="does not fit"):
        join_pair(*pair)


@pytest.mark.parametrize("rows", [1, 2, 3, 255, 256, 3_600, 18_000, MAX_ROWS])
def test_the_largest_sums_of_so_many_rows_come_back_from_the_slots_for_them(rows):
    for half in {half_slot(rows), HALF_SLOT}:
        total, least = rows * join_pair(2**30, 2**30, half), rows * join_pair(-(2**30), 2**30, half)
        assert split_pair(total, half) == (rows * 2**30, rows * 2**30)
        assert split_pair(least, half) == (-rows * 2**30, rows * 2**30)
        packed = total + (least << 2 * half) + (total << 4 * half)
        assert split_slots(packed, 3, 2 * half) == [total, least, total]


def test_slots_are_as_narrow_as_a_trainings_rows_allow():
    assert [half_slot(rows) for rows in (3_600, 18_000, MAX_ROWS)] == [43, 46, 54]
    assert half_slot(MAX_ROWS) <= HALF_SLOT


def test_a_number_beyond_the_plaintext_is_refused(key_side):
    assert key_side.decrypt_numbers(key_side.encrypt_numbers([key_side.limit, -key_side.limit])) == [
        key_side.limit,
        -key_side.limit,
    ]
    with pytest.raises(ParameterError, match="does not fit a plaintext of 512 bits"):
        key_side.encrypt_numbers([key_side.limit + 1])


@pytest.mark.parametrize("room", [23, 64, 97, 128, 1021])
def test_a_sum_with_its_requests_number_and_what_is_hidden_above_it_never_wraps(room):
    for width in range(2, 7):
        quarter = 1 << (width - 2)
        for multiple in range(1, hidden_above(width, room) + 1):
            for total in range(-quarter, quarter):  # a score leaves at least a bit of its width free
                for number in range(-3 * quarter, quarter):
                    shown = total + number + (multiple << width)
                    assert 0 <= shown < room
                    assert centred((shown - number) % (1 << width), 1 << width) == total


def test_something_is_hidden_above_wherever_a_number_and_a_half_fit():
    """Where nothing is, a Guest that lies reads log2(room) bits in place of the width that is booked: less than 0.6 more."""
    for width in range(2, 9):
        for room in range(1 << width, 4 << width):
            assert (hidden_above(width, room) > 0) == (2 * room >= 3 << width)
