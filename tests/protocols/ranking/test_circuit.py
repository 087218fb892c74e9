"""The circuit finds the places of the k largest positive numbers, as plain arithmetic does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rankings import top_merged, top_names

from backend.crypto.garbling import PlainGates
from backend.errors import ParameterError, SecurityError
from backend.protocols.ranking.circuit import add, count, exceeds, gates_needed, lengths, outputs, select
from backend.protocols.ranking.packing import RankingPacking
from backend.protocols.ranking.shape import SLACK_BITS, RankingShape, cut

ORDER = list(range(99))


def wires(bits):
    """``(…)`` of 0 and 1 → plain wires."""
    return np.asarray(bits, dtype=np.uint64)[..., np.newaxis]


def wires_of(numbers, width):
    return wires([[n >> i & 1 for n in numbers] for i in range(width)])


def number(digits):
    return sum(int(d.item()) << i for i, d in enumerate(digits))


@pytest.mark.parametrize(
    ("values", "k", "found"),
    [
        ([5, -3, 9, 1], 2, (0, 2)),
        ([5, -3, 9, 1], 4, (0, 2, 3)),  # -3 does not push toward denial
        ([0, -1, -2], 2, ()),
        ([7], 3, (0,)),
        ([4, 4, 4], 2, (1, 2)),  # the later place in the order wins
        ([4, 4, 9], 2, (1, 2)),
    ],
)
def test_the_k_largest_above_zero_are_named_in_the_order_of_their_places(values, k, found):
    assert top_names(values, k, ORDER[: len(values)]) == found


def test_the_order_decides_between_equal_values():
    assert top_names([4, 4, 4], 1, [2, 0, 1]) == (0,)
    assert top_names([4, 4, 4], 2, [2, 0, 1]) == (0, 2)


@st.composite
def rankings(draw):
    n = draw(st.integers(1, 20))
    bound = draw(st.sampled_from([1, 2, 100, 2**12 - 1]))
    values = draw(st.lists(st.integers(-bound, bound), min_size=n, max_size=n))
    return values, draw(st.integers(1, 22)), draw(st.permutations(range(n)))


@given(rankings(), st.integers(0, 2**32))
@settings(deadline=None, max_examples=100)
def test_the_circuit_on_plain_bits_finds_the_same(ranking, seed):
    values, k, order = ranking
    shape = RankingShape(len(values), k, 12)
    rng = np.random.default_rng(seed)
    blinds = [int(r) for r in rng.integers(0, 1 << shape.width, len(values))]
    lift = (1 << (shape.width - 1)) - (1 << shape.tie_bits)
    keys = [(v << shape.tie_bits) + t + lift for v, t in zip(values, order, strict=True)]
    assert len(set(keys)) == len(keys) and all(0 <= key < 1 << shape.width for key in keys)
    left = wires_of([key + r for key, r in zip(keys, blinds, strict=True)], shape.width)
    right = wires_of([-r % (1 << shape.width) for r in blinds], shape.width)
    gates = PlainGates()
    chosen = select(gates, left, right, k)
    assert tuple(np.flatnonzero(chosen[:, 0])) == top_names(values, k, order)
    assert gates.gates == gates_needed(shape)  # whatever the values are


@given(rankings(), st.integers(1, 5), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_names_of_k_groups_are_those_of_plain_arithmetic(ranking, kinds, seed):
    values, _, order = ranking
    rng, k = np.random.default_rng(seed), 1 + seed % 3
    groups = tuple(rng.integers(0, kinds, len(values)).tolist())
    shape = RankingShape(len(values), k, 12, max_names=k + 3, groups=groups)
    keys = [((v - 1) << shape.tie_bits) + t + (1 << shape.width - 1) for v, t in zip(values, order, strict=True)]
    gates, zeros = PlainGates(), np.zeros((shape.width * shape.n, 1), dtype=np.uint64)
    chosen = outputs(gates, wires_of(keys, shape.width).reshape(-1, 1), zeros, shape)
    assert tuple(np.flatnonzero(chosen[:, 0])) == top_merged(values, k, k + 3, groups, order)
    assert gates.gates == gates_needed(shape)


def test_a_place_that_two_of_a_group_share_goes_to_the_next():
    assert top_merged([9, 8, 7, 6, 5], 2, 5, [0, 0, 1, 1, 2], ORDER[:5]) == (0, 1, 2, 3)
    assert top_merged([9, 8, 7, 6, 5], 2, 3, [0, 0, 1, 1, 2], ORDER[:5]) == (0, 1, 2)
    assert top_merged([9, 8, 7, 6, 5], 2, 5, [0, 1, 2, 3, 4], ORDER[:5]) == (0, 1)


@given(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 255)), min_size=1, max_size=6))
def test_shares_are_added_modulo_a_power_of_two(pairs):
    left, right = (wires_of(side, 8) for side in zip(*pairs, strict=True))
    sums = add(PlainGates(), left, right)
    found = [number([bit[i] for bit in sums]) for i in range(len(pairs))]
    assert found == [(a + b) % 256 for a, b in pairs]


def test_ones_are_counted_with_less_than_a_gate_a_bit():
    rng = np.random.default_rng(1)
    for n in range(1, 40):
        for bits in ([0] * n, [1] * n, rng.integers(0, 2, n).tolist()):
            gates = PlainGates()
            assert number(count(gates, wires(bits))) == sum(bits)
            assert gates.gates == n - n.bit_count()


def test_a_count_is_compared_with_every_k_below_the_largest():
    for digits in range(1, 5):
        for k in range((1 << digits) - 1):
            for c in range(1 << digits):
                one = exceeds(PlainGates(), [wires([c >> i & 1]) for i in range(digits)], k)
                assert bool(one.item()) == (c > k)


def test_sizes_are_worked_out_by_hand():
    shape = RankingShape(n=24, k=4, value_bits=48)
    assert (shape.tie_bits, shape.width, shape.slot) == (5, 54, 54 + 64 + 1)
    assert RankingPacking(shape, 2048).slots == [17, 7]  # 2,046 bits hold 17 slots of 119
    assert lengths(shape)[0] == 24 * 54 * 32 and lengths(shape)[3] == 24 * 32


@given(st.lists(st.integers(0, 2**30), min_size=1, max_size=30))
def test_numbers_are_joined_and_split_again(numbers):
    packing = RankingPacking(RankingShape(len(numbers), 1, 20), 512)
    assert packing.split(packing.join(numbers)) == numbers
    assert all(0 <= packed < 1 << 510 for packed in packing.join([(1 << packing.slot) - 1] * len(numbers)))


def test_the_mask_is_longer_than_the_number_by_the_promised_bits():
    shape = RankingShape(9, 4, 48)
    assert SLACK_BITS >= 40
    assert (1 << shape.width) + (1 << (shape.width + SLACK_BITS)) <= 1 << shape.slot


@pytest.mark.parametrize("sizes", [(0, 1, 8), (5000, 1, 8), (3, 0, 8), (3, 1, 0), (3, 1, 193)])
def test_sizes_out_of_range_are_refused(sizes):
    with pytest.raises(ParameterError, match="choose from 1"):
        RankingShape(*sizes)


def test_a_key_that_holds_no_masked_number_is_refused():
    with pytest.raises(ParameterError, match="longer key"):
        RankingPacking(RankingShape(3, 1, 60), 120)


def test_a_message_of_a_wrong_length_is_refused_before_it_is_read():
    assert cut(b"abcde", (2, 0, 3)) == [b"ab", b"", b"cde"]
    for blob in (b"abcd", b"abcdef"):
        with pytest.raises(SecurityError, match="5 bytes were expected"):
            cut(blob, (2, 3))
