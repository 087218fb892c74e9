"""Several marks in one number: sums come apart again, whatever the marks are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.fixedpoint import GRADIENT_BITS, longest_half
from backend.errors import ParameterError
from backend.protocols.group_sums.values import half_of, pack, slots, unpack


def test_slots_by_hand():
    # 100 records: a 0/1 mark sums to 7 bits, so bits 0-6, 7-13, 14-20 … and of 59 bits without a key the last three stay free
    found = slots([1] * 9, 100, 0)
    assert [(s.number, s.shift, s.width) for s in found] == [(0, 7 * i, 7) for i in range(8)] + [(1, 0, 7)]
    # beside a 0/1 mark one of up to 2**16 takes bits 7 to 29, two of them 46 bits
    of_three = [(0, 0, 7), (0, 7, 23), (0, 30, 23)]
    assert [(s.number, s.shift, s.width) for s in slots([1, 1 << 16, 1 << 16], 100, 0)] == of_three
    assert half_of(slots([1, 1 << 16, 1 << 16], 100, 0)) == 27  # 53 bits and a sign


def test_a_key_of_3072_bits_holds_the_groups_of_many_features_at_once():
    # 5,000 records: 13 bits each, 236 of them in the 3,069 bits beside the sign
    assert {s.number for s in slots([1] * 236, 5000, 3072)} == {0} and slots([1] * 237, 5000, 3072)[-1].number == 1


def test_marks_travel_in_one_number():
    marks, ones = [np.array([1, 0]), np.array([0, 1]), np.array([1, 1])], [1] * 3
    assert pack(marks, ones, slots(ones, 2, 0)) == [[0b010001, 0b010100]]
    assert pack([], (), ()) == []


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_sums_of_packed_marks_are_packed_sums(data):
    n, groups, bits = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 4)), data.draw(st.sampled_from([0, 512]))
    largest = data.draw(st.lists(st.sampled_from([1, 3, 1 << 16, 1 << GRADIENT_BITS]), min_size=1, max_size=40))
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    marks = [draw.choice([0, top, draw.integers(0, top + 1)], n).astype(np.int64) for top in largest]
    index = draw.integers(0, groups, n).tolist()
    places = slots(largest, n, bits)
    numbers, half = pack(marks, largest, places), half_of(places)
    assert half <= longest_half(bits)
    sums = [[sum(v for v, g in zip(of, index, strict=True) if g == k) for k in range(groups)] for of in numbers]
    assert all(0 <= total < 1 << (2 * half - 1) for of in sums for total in of)
    expected = [
        [sum(v for v, g in zip(mark.tolist(), index, strict=True) if g == k) for k in range(groups)] for mark in marks
    ]
    assert unpack(sums, places).tolist() == expected


@pytest.mark.parametrize("bits", [0, 512, 3072])
def test_the_largest_sums_stay_in_their_slots(bits):
    n = 1 << 22  # MAX_ROWS
    for s in slots([1, 1 << GRADIENT_BITS] * 40, n, bits):
        assert s.shift + s.width <= 2 * longest_half(bits) - 1


@pytest.mark.parametrize("top", [0, (1 << GRADIENT_BITS) + 1])
def test_a_mark_that_fits_no_number_is_refused(top):
    with pytest.raises(ParameterError, match="from 1 to"):
        slots([top], 10, 0)


@pytest.mark.parametrize("mark", [-1, 2])
def test_a_mark_beyond_what_was_announced_would_run_into_the_next_and_is_refused(mark):
    with pytest.raises(ParameterError, match="0 to 1 was announced"):
        pack([np.array([0, mark])], [1], slots([1], 2, 0))
