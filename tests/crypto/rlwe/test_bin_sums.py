"""Sums by bin under RLWE against the same sums in one place; noise against its bound; and what either side refuses."""

from functools import cache

import numpy as np
import pytest

from backend.crypto.rlwe import bin_sums, flooding, sum_key
from backend.crypto.rlwe.bin_sums import BinSumming, KeptMasks
from backend.crypto.rlwe.parameters import MARGIN_BITS
from backend.crypto.rlwe.public import RlwePublicSide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.sum_key import RlweSumKey
from backend.crypto.rlwe.sum_parameters import (
    features_a_reply,
    flood_range,
    max_noise,
    noise_allowed,
    sum_noise,
    sum_parameters,
    sum_sets,
)
from backend.crypto.workers import Workers
from backend.errors import ParameterError, SecurityError

ROWS, COUNTS, BLOCK = 300, (7, 40, 3), 64
GRADIENT = 1 << 30


@cache
def key_side():
    return RlweKeySide(RlweSecretKey.generate(sum_parameters(18_000)))


@cache
def sides():
    return RlweSumKey(key_side()), RlwePublicSide(key_side().offer())


def node(seed=0, rows=ROWS, counts=COUNTS):
    draw = np.random.default_rng(seed)
    values = np.stack([draw.integers(-GRADIENT, GRADIENT + 1, rows), draw.integers(0, GRADIENT + 1, rows)])
    return values, [(draw.integers(0, count, rows), count) for count in counts]


def by_bin(values, bins):
    parts = [[int(v[index == b].sum()) for index, count in bins for b in range(count)] for v in values]
    return np.array(parts)


def summed(values, bins, block=BLOCK, host=None):
    guest, public = sides()
    summing = (host or public).start_sums(bins, block, len(values))
    for piece in guest.encrypt(values, block):
        assert not summing.complete
        summing.add(piece)
    return summing.finish()


def opened(blob, bins, block=BLOCK, rows=ROWS, numbers=2):
    return sides()[0].decrypt(blob, rows, [count for _, count in bins], block, numbers)


@pytest.mark.parametrize("block", [16, 64, 4096])
def test_encrypted_sums_are_the_sums_in_one_place(block):
    values, bins = node()
    assert (opened(summed(values, bins, block), bins, block) == by_bin(values, bins)).all()


@pytest.mark.parametrize("rows", [10, 40_000, 1 << 22])
def test_sets_for_other_sizes_of_training_give_the_same_sums(rows):
    side = RlweKeySide(RlweSecretKey.generate(sum_parameters(rows)))
    guest, host = RlweSumKey(side), RlwePublicSide(side.offer())
    values, bins = node(2, rows=9)
    summing = host.start_sums(bins, 16, 2)
    for piece in guest.encrypt(values, 16):
        summing.add(piece)
    assert (guest.decrypt(summing.finish(), 9, COUNTS, 16, 2) == by_bin(values, bins)).all()


def test_a_node_without_rows_has_sums_of_zero():
    values, bins = node(rows=0)
    assert not opened(summed(values, bins), bins, rows=0).any()


@pytest.mark.parametrize("workers", [Workers(2), Workers(2, "threading")], ids=["processes", "cluster"])
def test_several_pieces_and_worker_processes_give_the_same_sums(monkeypatch, workers):
    monkeypatch.setattr("backend.crypto.rlwe.layout.PIECE_BYTES", 600_000)
    monkeypatch.setattr(bin_sums, "PARALLEL_MIN", 1)
    monkeypatch.setattr(sum_key, "PARALLEL_MIN", 1)
    values, bins = node(3)
    guest = RlweSumKey(key_side(), workers)
    summing = RlwePublicSide(guest.offer(), workers=workers).start_sums(bins, BLOCK, 2)
    assert (summing._file is not None) is workers.local  # a cluster cannot read it
    pieces = list(guest.encrypt(values, BLOCK))
    assert len(pieces) > 1
    for piece in pieces:
        summing.add(piece)
    assert (opened(summing.finish(), bins) == by_bin(values, bins)).all()


def test_the_root_s_polynomials_are_kept_from_the_second_tree_on_and_give_the_same_sums(monkeypatch):
    bin_sums._kept.cache_clear()
    made = []
    monkeypatch.setattr(bin_sums, "_mask", lambda *given, mask=bin_sums._mask: made.append(1) or mask(*given))
    (values, bins), (other, _) = node(5), node(6)
    after = []
    for one in (values, other, values):
        assert (opened(summed(one, bins), bins) == by_bin(one, bins)).all()
        after.append(len(made))
    assert after == [after[0], 2 * after[0], 2 * after[0]]


def test_rows_that_avoid_some_bins_take_as_many_products_as_others(monkeypatch):
    """The Guest waits for the answer: how long it takes must not say which bins no row is in."""
    plus = bin_sums._plus
    masks = []
    monkeypatch.setattr(bin_sums, "_plus", lambda of, total, c, mask: masks.append(mask) or plus(of, total, c, mask))
    products = []
    values, bins = node(7)
    for some in (bins, [(np.zeros_like(index), count) for index, count in bins]):
        masks.clear()
        assert (opened(summed(values, some, 4096), some, 4096) == by_bin(values, some)).all()
        products.append((len(masks), sum(nothing for _, nothing in masks)))
    (spread, none_empty), (alike, empty) = products
    assert spread == alike and empty > none_empty


@pytest.mark.parametrize(("room", "times"), [(1 << 24, 2), (1, 3)])
def test_a_process_that_has_others_for_large_nodes_keeps_few_polynomials_itself(monkeypatch, room, times):
    bin_sums._kept.cache_clear()
    made = []
    monkeypatch.setattr(bin_sums, "SMALL_BYTES", room)
    monkeypatch.setattr(bin_sums, "_mask", lambda *given, mask=bin_sums._mask: made.append(1) or mask(*given))
    values, bins = node(5)
    host, after = RlwePublicSide(sides()[0].offer(), workers=Workers(2)), []
    for _ in range(3):
        assert (opened(summed(values, bins, host=host), bins) == by_bin(values, bins)).all()
        after.append(len(made))
    assert after[-1] == times * after[0]


def test_polynomials_beyond_the_room_are_not_kept_and_the_oldest_make_way():
    kept = KeptMasks(100)
    assert not kept.wanted(b"a", 60) and kept.wanted(b"a", 60) and not kept.wanted(b"a", 101)
    kept.keep(b"a", 60, [])
    kept.keep(b"b", 30, [])
    assert kept.find(b"a") == []
    kept.keep(b"c", 30, [])
    assert kept.find(b"b") is None and kept.find(b"a") == kept.find(b"c") == []


def test_two_replies_to_the_same_rows_share_no_number_but_the_sums():
    values, bins = node(8)
    guest, _ = sides()
    first, second = summed(values, bins), summed(values, bins)
    every = np.arange(guest.bits)
    width = guest._ring.full_width
    numbers = [np.array(key_side().decrypt_coefficients(blob[:width], every)) for blob in (first, second)]
    shown = bin_sums.sum_positions(range(50), BLOCK)
    assert (numbers[0][shown] == numbers[1][shown]).all()
    hidden = np.setdiff1d(every, shown)
    assert (numbers[0][hidden] == numbers[1][hidden]).sum() <= 1
    # uniform modulo t: mean and spread within six standard errors
    t = guest.parameters.plain_modulus
    share = numbers[0][hidden] / t
    assert abs(share.mean()) < 6 / np.sqrt(12 * len(hidden)) and abs(share.var() - 1 / 12) < 6 / np.sqrt(
        180 * len(hidden)
    )


@pytest.mark.parametrize("name", sorted(sum_sets()))
def test_every_set_holds_its_flood_and_hides_what_is_allowed(name):
    parameters = sum_sets()[name]
    span, allowed = flood_range(parameters) << 64, noise_allowed(parameters)
    assert span // 2 + allowed <= max_noise(parameters)
    assert parameters.degree * allowed << MARGIN_BITS <= max(span, 0)
    rows = 1000
    most = features_a_reply(parameters, rows)
    assert not most or sum_noise(parameters, most * rows) <= allowed
    assert most > 100 or allowed < sum_noise(parameters, (most + 1) * rows) + 22


@pytest.mark.parametrize("rows", [1, 240, 18_000, 32_768, 32_769, 600_000, 1 << 22])
def test_a_set_is_found_for_every_size_of_training(rows):
    parameters = sum_parameters(rows)
    assert rows * GRADIENT <= parameters.limit and features_a_reply(parameters, rows) >= 1


def test_no_set_is_found_beyond_the_most_rows():
    with pytest.raises(ParameterError, match="paillier"):
        sum_parameters((1 << 24) + 1)


def noise_bits(guest, ciphertext):
    """log2 of the noise, from SEAL's own budget: bits that are left of q / (2·t·E)."""
    q = np.prod([float(m) for m in guest.parameters.moduli[:-1]])
    return np.log2(q / 2 / guest.parameters.plain_modulus) - key_side().noise_budget(ciphertext)


def test_noise_of_a_reply_stays_below_its_bound_before_the_flood_and_fills_it_after(monkeypatch):
    guest, _ = sides()
    values, bins = node(9, rows=4000, counts=(33, 33))
    degree, uniform = guest.parameters.degree, flooding.uniform
    # all other coefficients are uniform modulo q, so that a budget would be 0
    monkeypatch.setattr(
        flooding,
        "uniform",
        lambda below, count: np.zeros(degree, dtype=np.uint64) if count == degree else uniform(below, count),
    )
    flooded = summed(values, bins, 128)
    monkeypatch.setattr(bin_sums, "hiding", lambda of, shown, span, added: bytes(8 * of.degree * len(of.data_bits)))
    bare = summed(values, bins, 128)
    ring, width = guest._ring, guest._ring.full_width
    before, after = (noise_bits(guest, ring.ciphertext(blob[:width], ring.first)) for blob in (bare, flooded))
    bound = np.log2(float(sum_noise(guest.parameters, 4000 * 2)))
    flood = np.log2(float(flood_range(guest.parameters))) + 63
    assert before < bound <= np.log2(float(noise_allowed(guest.parameters)))
    assert abs(after - flood) <= 2 and after - before > MARGIN_BITS + 13


@pytest.mark.parametrize("rows", [18_000, 1_000_000])
def test_floods_have_the_residues_of_one_integer_in_their_range(rows, monkeypatch):
    parameters = sum_parameters(rows)
    drawn = []
    monkeypatch.setattr(
        flooding, "random_bytes", lambda n, source=flooding.random_bytes: drawn.append(source(n)) or drawn[-1]
    )
    shown = np.arange(3, 703)
    t, span = parameters.plain_modulus, flood_range(parameters)
    blob = flooding.hiding(parameters, shown, span)
    low, top = (np.frombuffer(d, dtype=kind) for d, kind in zip(drawn, ("<u4", "<u8"), strict=False))
    residues = np.frombuffer(blob, dtype="<u8").reshape(-1, parameters.degree)
    wrong = 0
    for k, i in enumerate(shown):
        f = (int(top[k]) % span << 64) + (int(low[700 + k]) << 32) + int(low[k]) - (span << 63)
        assert -(span << 63) <= f < span << 63
        wrong += any(int(r) != t * f % m for r, m in zip(residues[:, i], parameters.moduli, strict=False))
    assert wrong <= 1  # a word beyond the last whole multiple was redrawn


def test_all_but_the_sums_are_uniform_modulo_q():
    parameters = sum_parameters(18_000)
    first, second = (
        np.frombuffer(flooding.hiding(parameters, np.arange(7), 1), dtype="<u8").reshape(-1, parameters.degree)
        for _ in range(2)
    )
    for one, other, modulus in zip(first, second, parameters.moduli, strict=False):
        assert max(one) < modulus and (one[7:] != other[7:]).all()
        share = one[7:] / modulus  # mean and spread within six standard errors
        assert abs(share.mean() - 0.5) < 6 / np.sqrt(12 * len(share))
        assert abs(share.var() - 1 / 12) < 6 / np.sqrt(180 * len(share))


def test_uniform_numbers_lie_below_their_bound_and_those_beyond_a_whole_multiple_are_redrawn(monkeypatch):
    words = [np.array([2**64 - 1, 5, 9], dtype="<u8").tobytes(), np.array([2], dtype="<u8").tobytes()]
    monkeypatch.setattr(flooding, "random_bytes", lambda n: words.pop(0))
    assert flooding.uniform(7, 3).tolist() == [2, 5, 2]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda blob, width: blob[:-1],
        lambda blob, width: blob + blob[:width],
        lambda blob, width: bytes(len(blob)),
        lambda blob, width: b"\xff" * len(blob),
        lambda blob, width: blob[: width // 2] + b"\xff" * 8 + blob[width // 2 + 8 :][:-width] + bytes(width),
    ],
)
def test_either_side_refuses_what_are_no_ciphertexts(spoil):
    values, bins = node(1)
    guest, public = sides()
    [sent] = guest.encrypt(values, BLOCK)
    with pytest.raises(SecurityError):
        summing = public.start_sums(bins, BLOCK, 2)
        summing.add(spoil(sent, guest._ring.seeded_width))
        summing.finish()
    with pytest.raises(SecurityError):
        opened(spoil(summed(values, bins), guest._ring.full_width), bins)


def test_a_ciphertext_of_another_level_or_of_none_is_refused():
    guest, _ = sides()
    values, bins = node(1)
    ring = guest._ring
    reply = ring.ciphertext(summed(values, bins)[: ring.full_width], ring.first)
    ring.evaluator.mod_switch_to_inplace(reply, ring.last)
    low = ring.pad(bin_sums.written(reply), ring.full_width)
    void = ring.pad(bin_sums.written(ring.ciphertext_of(bytes(8 * 4 * guest.bits))), ring.full_width)
    for wrong in (low, void):
        with pytest.raises(SecurityError, match="refused"):
            key_side().decrypt_coefficients(wrong, np.arange(3))


def test_a_host_refuses_sums_that_it_could_not_hide_and_forms_that_are_none():
    guest, public = sides()
    tight = min(sum_sets().values(), key=noise_allowed)
    small = RlwePublicSide(RlweKeySide(RlweSecretKey.generate(tight)).offer())
    _, bins = node()
    with pytest.raises(SecurityError, match="hide"):
        small.start_sums(bins, BLOCK, 2)
    for block, numbers, wanted in ((48, 2, bins), (0, 2, bins), (BLOCK, 0, bins), (BLOCK, 99, bins), (BLOCK, 2, [])):
        with pytest.raises(SecurityError):
            public.start_sums(wanted, block, numbers)
    summing = public.start_sums(bins, BLOCK, 2)
    with pytest.raises(SecurityError, match="early"):
        summing.finish()
    for piece in guest.encrypt(node()[0], BLOCK):
        summing.add(piece)
    with pytest.raises(SecurityError, match="after the last one of its batch"):
        summing.add(piece)


def test_numbers_whose_sums_could_run_over_are_not_encrypted():
    guest, _ = sides()
    with pytest.raises(ParameterError, match="holds"):
        list(guest.encrypt(np.full((1, 3), guest.limit // 2), BLOCK))


def test_nothing_of_the_key_is_shown():
    guest, public = sides()
    assert repr(guest) == f"RlweSumKey({guest.parameters.name})" and isinstance(
        public.start_sums(node()[1], 16, 1), BinSumming
    )
