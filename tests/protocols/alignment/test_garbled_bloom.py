"""Insertion keeps every share (docs/attacks.md T2), and what may go wrong by chance is below 2^-40."""

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import FederationError, SecurityError
from backend.protocols.alignment.garbled_bloom import MAX_IDS, MIN_IDS, FilterShape, add_up, garble, hash_ids

SALT = bytes(32)


def some_ids(n):
    return [f"customer {i}".encode() for i in range(n)]


def filled(n, shape, salt=SALT):
    _, slots = hash_ids(some_ids(n), salt, shape)
    secrets = np.random.default_rng(n).integers(0, 2**32, (n, 3), dtype=np.uint32)
    return slots, secrets


def overwriting(slots, secrets, m):
    """FL-DT eq. 6 as printed: random shares, the last one fitted, each written over what lies in its slot."""
    garbled = np.frombuffer(bytearray(os.urandom(12 * (m + 1))), dtype=np.uint32).reshape(m + 1, 3)
    garbled[m] = 0
    for row, secret in zip(slots, secrets, strict=True):
        own = row[row < m]
        shares = np.frombuffer(bytearray(os.urandom(12 * len(own))), dtype=np.uint32).reshape(-1, 3)
        shares[-1] = secret ^ np.bitwise_xor.reduce(shares[:-1], axis=0)
        garbled[own] = shares
    return garbled


def misses(garbled, slots, secrets):
    return 1 - (add_up(garbled, slots) == secrets).all(axis=1).mean()


@pytest.mark.parametrize(("k", "least"), [(3, 0.5), (8, 0.7), (32, 0.9)])
def test_insertion_as_printed_in_fl_dt_misses_most_ids(k, least):
    n = 2000
    shape = FilterShape(k, math.ceil(k * n / math.log(2)))
    slots, secrets = filled(n, shape)
    assert misses(overwriting(slots, secrets, shape.slots), slots, secrets) > least


@pytest.mark.parametrize("n", [1, 2, 300, 2000])
def test_our_insertion_misses_none(n):
    shape = FilterShape.of(n, n)
    slots, secrets = filled(n, shape)
    assert misses(garble(slots, secrets, shape.slots), slots, secrets) == 0


@given(st.binary(min_size=32, max_size=32), st.integers(1, 60))
@settings(deadline=None)
def test_our_insertion_misses_none_in_a_crowded_filter_or_says_so(salt, n):
    shape = FilterShape(6, 200)  # 360 hits on 200 slots at most: it fails often, and never silently
    slots, secrets = filled(n, shape, salt)
    try:
        garbled = garble(slots, secrets, shape.slots)
    except SecurityError:
        return
    assert misses(garbled, slots, secrets) == 0


def test_a_filter_without_room_is_refused():
    slots, secrets = filled(50, FilterShape(3, 20))
    with pytest.raises(SecurityError, match="no free slot"):
        garble(slots, secrets, 20)


def test_ids_that_were_not_inserted_are_not_found():
    shape = FilterShape.of(500, 500)
    slots, secrets = filled(500, shape)
    garbled = garble(slots, secrets, shape.slots)
    prints, others = hash_ids([b"somebody else %d" % i for i in range(500)], SALT, shape)
    assert not (add_up(garbled, others)[:, :2] == prints).all(axis=1).any()


def test_unused_and_shared_slots_look_random():
    shape = FilterShape.of(200, 200)
    slots, _ = filled(200, shape)
    garbled = garble(slots, np.zeros((200, 3), dtype=np.uint32), shape.slots)
    bits = np.unpackbits(garbled[:-1].view(np.uint8))
    assert abs(bits.mean() - 0.5) < 0.01
    assert not garbled[-1].any()


def test_a_slot_that_an_id_hits_twice_counts_once():
    shape = FilterShape(8, 12)
    _, slots = hash_ids(some_ids(40), SALT, shape)
    for row in slots:
        real = row[row < 12]
        assert len(set(real.tolist())) == len(real) and len(real) >= 1


def test_both_parties_work_out_the_same_shape():
    assert FilterShape.of(30_000, 500) == FilterShape.of(500, 30_000) == FilterShape(56, 2_423_728)
    assert FilterShape.of(1, 1) == FilterShape(42, math.ceil(42 * MIN_IDS / math.log(2)))


def test_more_ids_than_a_filter_is_made_for_are_refused_before_it_is_made():
    with pytest.raises(FederationError, match="Align by Diffie"):
        FilterShape.of(10, MAX_IDS + 1)


@pytest.mark.parametrize("n", [1, 63, 1023, 8191])
def test_what_may_fail_by_chance_is_below_two_to_the_minus_forty(n):
    """The Guest learns about other ids only if some of their rows cancel outside its slots: a union bound over all sets."""
    shape = FilterShape.of(n, n)
    outside = shape.slots // 2  # the Guest's ids use half of the slots at most
    used = np.arange(outside)  # P(s·k slots drawn all meet evenly) = Σ_w C(u,w) 2^-u (1 − 2w/m)^(s·k), w up to u
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, max(outside, n) + 1)))])
    weight = factorial[outside] - factorial[used] - factorial[outside - used] - outside * math.log(2)
    log = np.log1p(-2 * used / shape.slots)
    total = 0.0
    for size in sorted({*range(1, min(n, 20) + 1), *np.geomspace(20, n, 40).astype(int).tolist()} - {0}):
        if size > n:
            continue
        sets = factorial[n] - factorial[size] - factorial[n - size]
        term = math.exp(sets + np.logaddexp.reduce(weight + size * shape.hashes * log))
        total += term
        assert size == 1 or term < 2.0**-70  # all but single ids are negligible
    assert total < 2.0**-40
    assert n * 2.0**-shape.hashes < 2.0**-40  # an id finds no slot of its own: half of the slots are used at most
