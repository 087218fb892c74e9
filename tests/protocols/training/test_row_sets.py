"""Sets of records as bytes: the same set comes back, near the smallest size there is, and anything else is refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import SecurityError
from backend.protocols.training.row_sets import FLIPPED, HEAD, as_bits, as_gaps, pack_rows, unpack_rows


def smallest_size(n, count):
    """n·H(p)/8 bytes: what no code can stay below on average, for sets of `count` of `n` records drawn at random."""
    shares = np.array([count, n - count]) / n if n else np.zeros(2)
    return float(-n * sum(p * np.log2(p) for p in shares if p) / 8)


RATES = (0.001, 0.01, 0.1, 0.15, 0.25, 0.38, 0.5, 0.9, 0.99)


def drawn(n, rate, seed=1):
    return np.random.default_rng(seed).random(n) < rate


def as_json(flags):
    """The paper's vanilla form: the indices as text."""
    return json.dumps(np.flatnonzero(flags).tolist(), separators=(",", ":")).encode()


def test_a_bitmap_by_hand():
    flags = np.array([1, 0, 1, 0, 0, 0, 0, 0, 1], dtype=bool)
    assert as_bits(flags) == bytes([0, 0b10100000, 0b10000000])


def test_gaps_by_hand():
    """Places 6, 8 and 16: gaps 6, 1 and 7; k = 2 writes 1, 0 and 1 in unary (01 1 01) and 2, 1 and 3, low bit first."""
    flags = np.zeros(1000, dtype=bool)
    flags[[6, 8, 16]] = True
    assert as_gaps(flags) == bytes([2, 3, 0, 0, 0, 0b01101000, 0b01101100])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.booleans(), max_size=300))
def test_every_set_comes_back_from_both_forms(flags):
    flags = np.array(flags, dtype=bool)
    for blob in (pack_rows(flags), as_bits(flags)):
        assert np.array_equal(unpack_rows(blob, len(flags)), flags)
    gaps = as_gaps(flags)
    if len(gaps) <= len(as_bits(flags)):
        assert np.array_equal(unpack_rows(gaps, len(flags)), flags)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 30_000), st.floats(0, 1), st.integers(0, 99))
def test_a_drawn_set_comes_back(n, rate, seed):
    flags = drawn(n, rate, seed)
    blob = pack_rows(flags)
    assert np.array_equal(unpack_rows(blob, n), flags)
    assert len(blob) == min(len(as_bits(flags)), len(as_gaps(flags)))


@pytest.mark.parametrize("rate", RATES)
def test_a_set_takes_at_most_a_twentieth_more_than_the_entropy(rate):
    flags = drawn(1 << 20, rate)
    assert 1.0 <= len(pack_rows(flags)) / smallest_size(len(flags), int(flags.sum())) < 1.05


def test_a_tenth_of_a_million_records_takes_little_more_than_half_of_the_papers_size():
    """Table 6: 112.2 KB with extreme-bit encoding, 788.9 KB as JSON."""
    flags = drawn(1_000_000, 0.1)
    assert len(pack_rows(flags)) < 0.54 * 112_200
    assert len(as_json(flags)) > 10 * len(pack_rows(flags))


def test_gaps_and_bits_change_places_at_a_rate_of_38_percent():
    below, above = drawn(1 << 20, 0.37), drawn(1 << 20, 0.39)
    assert pack_rows(below)[0] != 0 and pack_rows(above)[0] == 0


def test_a_large_set_is_written_by_what_is_not_in_it():
    large = drawn(10_000, 0.95)
    assert pack_rows(large)[0] & FLIPPED
    assert len(pack_rows(large)) == len(pack_rows(~large))


def test_the_smallest_size_by_hand():
    assert smallest_size(16, 8) == 2.0  # 16 fair bits
    assert smallest_size(16, 0) == smallest_size(0, 0) == 0.0


GAPS = as_gaps(drawn(1000, 0.02))


@pytest.mark.parametrize(
    ("blob", "n"),
    [
        (b"", 8),
        (b"\x00", 8),  # no bits
        (b"\x00\x80\x00", 8),  # bits beyond the last record's byte
        (b"\x00\x01", 7),  # a record beyond the last
        (b"\x80\x00", 8),  # flipped bits are no form
        (b"\x60\x00", 8),  # nor is this
        (bytes([20, 1, 0, 0, 0, 0x80, 0xA0, 0, 0]), 1000),  # place 5 with more low bits than places have
        (GAPS[:-1], 1000),
        (GAPS + b"\x00", 1000),
        (GAPS[:HEAD], 1000),
        (GAPS[:3], 1000),
        (GAPS, 900),  # names a record beyond the last
        (bytes([GAPS[0], 0xFF, 0xFF, 0xFF, 0xFF]) + GAPS[HEAD:], 1000),
        (bytes([GAPS[0], GAPS[1] + 1]) + GAPS[2:], 1000),
        (as_bits(np.ones(1 << 16, dtype=bool)), 1000),
    ],
)
def test_anything_else_is_refused(blob, n):
    with pytest.raises(SecurityError, match="refused"):
        unpack_rows(blob, n)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 300))
def test_no_bytes_crash_or_name_a_record_twice(blob, n):
    try:
        flags = unpack_rows(blob, n)
    except SecurityError:
        return
    assert flags.shape == (n,)
    assert np.array_equal(unpack_rows(pack_rows(flags), n), flags)
