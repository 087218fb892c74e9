"""Several marks in one number: sums come apart again, whatever the marks are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.fixedpoint import GRADIENT_BITS, HALF_SLOT
from backend.errors import ParameterError
from backend.protocols.group_sums.values import pack, slots, unpack


def test_slots_by_hand():
    # 100 records: a 0/1 mark sums to 7 bits, so bits 0-6, 7-13, 14-20, 21-27; a fifth would begin at bit 28 and still fit
    found = slots([1] * 6, 100)
    assert [(s.number, s.shift, s.width) for s in found] == [(0, 7 * i, 7) for i in range(5)] + [(1, 0, 7)]
    # beside a 0/1 mark one of up to 2**16 goes on to bit 7 + 16
    assert [(s.number, s.shift, s.width) for s in slots([1, 1 << 16, 1 << 16], 100)] == [
        (0, 0, 7),
        (0, 7, 23),
        (1, 0, 23),
    ]


def test_two_numbers_travel_in_a_pair():
    marks = [np.array([1, 0]), np.array([0, 1]), np.array([1, 1])]
    pairs = pack(marks, slots([1 << 29] * 3, 2))
    assert [(a.tolist(), b.tolist()) for a, b in pairs] == [([1, 0], [0, 1]), ([1, 1], [0, 0])]
    assert pack([], ()) == []


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_sums_of_packed_marks_are_packed_sums(data):
    n, groups = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 4))
    largest = data.draw(st.lists(st.sampled_from([1, 3, 1 << 16, 1 << GRADIENT_BITS]), min_size=1, max_size=20))
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    marks = [draw.choice([0, top, draw.integers(0, top + 1)], n).astype(np.int64) for top in largest]
    index = draw.integers(0, groups, n)
    places = slots(largest, n)
    pairs = pack(marks, places)
    assert all(number.min() >= 0 and number.max() <= 1 << GRADIENT_BITS for pair in pairs for number in pair)

    def by_group(numbers):
        return np.array([numbers[index == k].sum() for k in range(groups)], dtype=np.int64)

    sums = [(by_group(a), by_group(b)) for a, b in pairs]
    assert unpack(sums, places).tolist() == [by_group(mark).tolist() for mark in marks]


def test_the_largest_sums_stay_in_their_slots():
    n = 1 << 22  # MAX_ROWS
    for s, top in zip(slots([1] * 9, n), [1] * 9, strict=True):
        assert (n * top) << s.shift < 1 << (HALF_SLOT - 1)


@pytest.mark.parametrize("top", [0, (1 << GRADIENT_BITS) + 1])
def test_a_mark_that_fits_no_number_is_refused(top):
    with pytest.raises(ParameterError, match="from 1 to"):
        slots([top], 10)
