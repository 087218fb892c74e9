"""Numbers longer than a slot under several RLWE keys, against plain integers; the bounds that the keys are chosen by; what is refused."""

import math
from functools import cache

import numpy as np
import pytest
import tenseal.sealapi as seal
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from tenseal.sealapi import util

from backend.crypto.interface import FoldPlan
from backend.crypto.registry import open_offer
from backend.crypto.rlwe.parameters import (
    MARGIN_BITS,
    MAX_RESIDUES,
    RESIDUE_BITS,
    RESIDUE_RINGS,
    Load,
    parameters_named,
    residue_sets,
    residues_for,
)
from backend.crypto.rlwe.residues import LENGTH_BYTES, ResidueKeySide, ResiduePublicSide, from_residues
from backend.crypto.rlwe.ring import ring
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.errors import ParameterError, SecurityError

ONE, TWO, THREE = (Load(hosts, 700, 24, 1, 1 << (102 + 22 * hosts)) for hosts in (1, 2, 3))
SETS = [p for degree, primes in RESIDUE_RINGS for bits in RESIDUE_BITS for p in residue_sets(degree, primes, bits)]


@cache
def lattice(name):
    return RlweKeySide(RlweSecretKey.generate(parameters_named(name)))


@cache
def sides(load):
    guest = ResidueKeySide([lattice(p.name) for p in residues_for(load)])
    return guest, ResiduePublicSide(guest.offer())


def offered(*names):
    offers = [lattice(name).offer() for name in names]
    return b"".join(len(o).to_bytes(LENGTH_BYTES, "big") + o for o in offers)


def draw(seed, shape, bits):
    return np.random.default_rng(seed).integers(-(2**bits), 2**bits, shape)


def through(load, values, factors, added=()):
    """What the Guest decrypts when every Host multiplies by one of `factors`, ``(hosts, n, k)``."""
    guest, host = sides(load)
    blob = guest.encrypt(values)
    for place, own in enumerate(factors):
        weighted = host.weighted(blob, own, place == 0)
        if place + 1 < len(factors):
            blob = host.refreshed(weighted)
    return guest.decrypt(host.reply(host.total(weighted), len(values), added), len(values))


def plainly(values, factors):
    return np.prod([values.astype(object), *factors], axis=0).sum(axis=1).tolist()


@given(st.lists(st.integers(0, 2**120), min_size=1, max_size=5), st.integers(3, MAX_RESIDUES))
def test_integers_are_put_together_from_their_residues(numbers, count):
    moduli = [p.plain_modulus for p in residue_sets(8192, 3, 43)[:count]]
    assert from_residues([[n % t for n in numbers] for t in moduli], moduli) == numbers


def test_residues_of_small_primes_are_worked_out_by_hand():
    assert from_residues([[2, 0], [3, 0], [2, 0]], [3, 5, 7]) == [23, 0]  # Sunzi's number of things


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 900), st.sampled_from([ONE, TWO]))
def test_weighted_sums_are_those_of_plain_integers(seed, n, k, load):
    values = draw(seed, (n, k), 30)
    factors = draw(seed + 1, (load.hosts, n, k), 22)
    assert through(load, values, factors) == plainly(values, factors)


def test_sums_of_three_hosts_and_what_is_added_are_those_of_plain_integers():
    values, factors = draw(1, (24, 700), 30), draw(2, (3, 24, 700), 22)
    added = [(-1) ** i * (1 << 160) + i for i in range(24)]
    wanted = [a + b for a, b in zip(plainly(values, factors), added, strict=True)]
    assert through(THREE, values, factors, added) == wanted


def test_sums_go_up_to_the_limit_and_no_further():
    guest, host = sides(ONE)
    zeros = host.total(
        host.weighted(guest.encrypt(np.zeros((2, 1), dtype=np.int64)), np.zeros((2, 1), dtype=np.int64), True)
    )
    assert guest.decrypt(host.reply(zeros, 2, [guest.limit, -guest.limit]), 2) == [guest.limit, -guest.limit]
    assert guest.decrypt(host.reply(zeros, 2, [guest.limit + 1, 0]), 2) == [-guest.limit, 0]


def test_values_of_several_people_are_added_up():
    guest, host = sides(ONE)
    held, wanted = None, [0, 0, 0]
    for seed in range(4):
        values, factors = draw(seed, (3, 5000), 20), draw(-seed % 99, (3, 5000), 22)
        held = host.total(host.weighted(guest.encrypt(values), factors, True), held)
        wanted = [a + b for a, b in zip(wanted, plainly(values, [factors]), strict=True)]
    assert guest.decrypt(host.reply(held, 3), 3) == wanted


def test_every_set_has_128_bits_against_quantum_computers_40_bits_of_margin_and_a_prime_of_its_own():
    for p in SETS:
        assert math.prod(p.moduli).bit_length() <= util.seal_he_std_parms_128_tq(p.degree)
        assert p.plain_modulus % (2 * p.degree) == 1 and p.plain_modulus not in p.moduli
        if p.noise_allowed > 0:
            assert p.degree * p.noise_allowed << MARGIN_BITS <= 2 * p.flood
            assert p.max_noise - p.max_noise // (1 << 30) <= p.flood + p.noise_allowed <= p.max_noise
        assert parameters_named(p.name) == p
    assert len({(p.degree, p.data_bits, p.plain_modulus) for p in SETS}) == len(SETS)
    for degree, primes in RESIDUE_RINGS:
        context = ring(residue_sets(degree, primes, 43)[0].name).context
        assert context.key_context_data().qualifiers().sec_level == seal.SEC_LEVEL_TYPE.TC128


@given(st.integers(1, 5), st.integers(1, 20_000), st.integers(1, 200), st.integers(1, 5000), st.integers(10, 120))
def test_the_sets_that_are_chosen_hold_what_they_are_chosen_for(hosts, rows, features, people, value_bits):
    load = Load(hosts, rows, features, people, 1 << (value_bits + 22 * hosts))
    try:
        chosen = residues_for(load)
    except ParameterError:
        assert hosts == 5  # or more than this many people
        return
    assert math.prod(p.plain_modulus for p in chosen) >= load.span
    sent = load.sent(chosen[0].degree)
    assert all(p.noise(hosts, sent) <= p.noise_allowed for p in chosen)
    assert len({p.plain_modulus for p in chosen}) == len(chosen) <= MAX_RESIDUES


def test_few_keys_are_taken_for_few_bits():
    assert [len(residues_for(load)) for load in (ONE, TWO, THREE)] == [3, 5, 4]
    assert [p.degree for p in (residues_for(ONE)[0], residues_for(TWO)[0], residues_for(THREE)[0])] == [
        8192,
        8192,
        16384,
    ]
    assert len(residues_for(Load(1, 700, 24, 200, 1 << 62))) == 2
    with pytest.raises(ParameterError, match="up to 5 Hosts"):
        residues_for(Load(6, 700, 24, 1, 1 << 250))
    with pytest.raises(ParameterError, match="paillier"):
        residues_for(Load(1, 700, 20_000, 1, 1 << 60))


@pytest.mark.parametrize("load", [ONE, TWO, THREE])
def test_measured_noise_is_below_the_bound_and_40_bits_below_the_flood(load):
    guest, host = sides(load)
    values, factors = draw(3, (load.features, load.rows), 40), draw(4, (load.hosts, load.features, load.rows), 50)
    blob = guest.encrypt(values)
    for place, own in enumerate(factors):  # factors as large as t: the most that a Host can multiply by
        weighted = host.weighted(blob, own, place == 0)
        blob = host.refreshed(weighted)
    for side, host_side, row in zip(guest.sides, host.sides, host.total(weighted), strict=True):
        p = side.parameters
        whole = math.log2(math.prod(p.moduli[:-1])) - 1 - math.log2(p.plain_modulus)
        noise = whole - side.noise_budget(row[0])
        flood = whole - side.noise_budget(host_side.floods.take(1)[0])
        assert noise <= math.log2(p.noise(load.hosts, load.ciphertexts(p.degree))) + 1
        assert flood - noise >= MARGIN_BITS + math.log2(p.degree)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_flood_on_the_most_noise_is_still_decrypted(sign, monkeypatch):
    _, host = sides(ONE)
    for side in host.sides:
        p, maker = side.ring.parameters, side.zeros
        extreme = [sign * (p.flood + p.noise_allowed // 2)] * p.degree
        scaled = [p.plain_modulus * f for f in extreme]
        c0 = b"".join(np.array([f % m for f in scaled], dtype="<u8").tobytes() for m in p.moduli[:-1])
        monkeypatch.setattr(side.floods, "take", lambda _, maker=maker, c0=c0: [maker.make(c0)])
    values, factors = draw(5, (24, 700), 30), draw(6, (1, 24, 700), 22)
    assert through(ONE, values, factors) == plainly(values, factors)


def slots_of(guest, reply):
    """What the Guest decrypts under each key before it adds the blocks up, ``(N,)`` each, as shares of t."""
    width, out = guest.sides[0].reply_width, []
    for i, side in enumerate(guest.sides):
        plain = seal.Plaintext()
        side._decryptor.decrypt(side._ring.ciphertext(reply[i * width : (i + 1) * width], side._ring.last), plain)
        out.append(np.array(side._ring.encoder.decode_int64(plain)) % side.parameters.plain_modulus)
    return out


def test_slots_that_come_back_are_uniform_but_for_the_sums_of_their_blocks():
    guest, host = sides(ONE)
    values, factors = np.full((24, 700), 3), np.full((24, 700), 5)
    held = host.total(host.weighted(guest.encrypt(values), factors, True))
    first, second = (slots_of(guest, host.reply(held, 24, [7] * 24)) for _ in range(2))
    for a, b, p in zip(first, second, guest.parameters, strict=True):
        t, blocks = p.plain_modulus, p.degree // 24
        for slots in (a, b, (a - b) % t):
            assert kstest(slots / t, "uniform").pvalue > 1e-6
        sums = a[: blocks * 24].reshape(blocks, 24).sum(axis=0) % t
        assert (sums == 700 * 15 + 7).all()
        assert kstest(a[blocks * 24 :] / t, "uniform").pvalue > 1e-6  # of no feature
    assert guest.decrypt(host.reply(held, 24, [7] * 24), 24) == [700 * 15 + 7] * 24


def test_messages_have_the_same_length_whatever_they_hold():
    guest, host = sides(TWO)
    lengths = set()
    for values, factors in (
        (draw(1, (24, 700), 40), draw(2, (24, 700), 22)),
        (np.zeros((24, 700), dtype=np.int64),) * 2,
    ):
        blob = guest.encrypt(values)
        weighted = host.weighted(blob, factors, True)
        lengths.add((len(blob), len(host.refreshed(weighted)), len(host.reply(host.total(weighted), 24))))
    assert len(lengths) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda blob: blob[:-1],
        lambda blob: blob + b"\0",
        lambda blob: b"",
        lambda blob: blob[: len(blob) // 3],
        lambda blob: bytes(len(blob)),
        lambda blob: blob[:40] + b"\xff" * 8 + blob[48:],
    ],
)
def test_damaged_and_shortened_messages_are_refused(change):
    guest, host = sides(ONE)
    values = np.ones((24, 700), dtype=np.int64)
    blob = guest.encrypt(values)
    with pytest.raises(SecurityError):
        host.weighted(change(blob), values, True)
    reply = host.reply(host.total(host.weighted(blob, values, True)), 24)
    with pytest.raises(SecurityError):
        guest.decrypt(change(reply), 24)
    with pytest.raises(SecurityError, match="items of"):
        host.weighted(blob, values, False)  # not from the Guest


def test_an_offer_of_other_keys_than_residues_take_is_refused():
    names = [p.name for p in residues_for(ONE)]
    whole = offered(*names)
    for offer, match in (
        (b"", "1 to 8 keys"),
        (whole[:-1], "1 to 8 keys"),
        (offered(*[names[0]] * 9), "1 to 8 keys"),
        (offered(names[0], names[0]), "differ in their plain primes"),
        (offered(names[0], residue_sets(16384, 4, 43)[0].name), "differ in their plain primes"),
        (len(b"what\nkey").to_bytes(LENGTH_BYTES, "big") + b"what\nkey", "is unknown"),
    ):
        with pytest.raises(SecurityError, match=match):
            ResiduePublicSide(offer)


def test_keys_of_another_request_are_refused_on_both_sides():
    guest, host = sides(ONE)
    guest.check(ONE)
    host.check(ONE)
    with pytest.raises(ParameterError, match="other parameter sets"):
        guest.check(TWO)
    with pytest.raises(SecurityError, match="This request takes 5 keys"):
        host.check(TWO)
    with pytest.raises(SecurityError, match="got 2"):
        ResiduePublicSide(offered(*[p.name for p in residues_for(ONE)][:2])).check(ONE)


def test_a_host_opens_the_offer_and_scores_nothing_under_it():
    guest, _ = sides(ONE)
    side, pool = open_offer(guest.scheme, guest.offer(), 2048, 8, None, None)
    assert isinstance(side, ResiduePublicSide) and side.bits == guest.bits and pool.ready == 0
    with pytest.raises(SecurityError, match="keys for reasons"):
        side.start_fold(np.ones((1, 1), dtype=bool), FoldPlan((0,), (True,), 1, (0,), 0, 1))


def test_neither_side_shows_a_key():
    guest, host = sides(ONE)
    assert repr(guest).count("n8192-q180") == repr(host).count("n8192-q180") == 3
    assert len(repr(guest)) < 200 > len(repr(host))
