"""Inner products of encrypted rows: exact in plain polynomials and under encryption, and hidden but for the sums."""

from functools import cache

import numpy as np
import pytest

from backend.crypto.rlwe import bin_sums, flooding
from backend.crypto.rlwe.inner_products import RowKey, RowProducts, blocks_of_rows, own_positions
from backend.crypto.rlwe.parameters import MARGIN_BITS, MAX_TOGETHER, Load, residues_for
from backend.crypto.rlwe.product_parameters import keys_for, product_noise
from backend.crypto.rlwe.residues import ResidueKeySide, ResiduePublicSide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.sum_parameters import flood_range, max_noise, noise_allowed
from backend.errors import ParameterError, SecurityError

OWN, OTHERS, ROWS, FACTOR_BITS = 3, 2, 9_000, 22
LOAD = Load(1, ROWS // 5, OWN + OTHERS, 10, 10 * ROWS << 52, OWN, FACTOR_BITS)  # two messages of five people


@cache
def sides():
    key = ResidueKeySide([RlweKeySide(RlweSecretKey.generate(p)) for p in keys_for(LOAD)])
    return key, ResiduePublicSide(key.offer())


def numbers(seed, rows=ROWS):
    draw = np.random.default_rng(seed)
    own, base = draw.integers(-(1 << 30), 1 << 30, (OWN, rows)), draw.integers(-(1 << 30), 1 << 30, rows)
    factors, parts = draw.integers(0, 1 << 22, rows), draw.integers(-(1 << 22), 1 << 22, (OTHERS, rows))
    return own, base, factors, parts


def plainly(own, base, factors, parts):
    return [*(own.astype(object) @ factors.astype(object)), *(parts.astype(object) @ base.astype(object))]


def replies(*messages):
    (key, side), totals = sides(), None
    guest, host = RowKey(key, OWN, OTHERS), RowProducts(side, OWN, OTHERS)
    for own, base, factors, parts in messages:
        totals = host.add(guest.encrypt(own, base), factors, parts, totals)
    return host.replies(totals)


def product(left, right):
    """Modulo X^N + 1, in plain integers."""
    whole, n = np.convolve(left, right), len(left)
    whole = np.append(whole, np.zeros(2 * n - len(whole), dtype=whole.dtype))
    return whole[:n] - whole[n:]


@pytest.mark.parametrize(("own", "rows"), [(1, 64), (3, 40), (5, 130), (64, 3)])
def test_coefficients_of_plain_products_are_the_inner_products(own, rows):
    degree, draw = 64, np.random.default_rng(own)
    values, factors = draw.integers(-9, 9, (own, rows)), draw.integers(-9, 9, rows)
    size = degree // own
    pairs = zip(blocks_of_rows(values, size), blocks_of_rows(factors[np.newaxis], size), strict=True)
    pad = [(np.pad(g, (0, degree - len(g))), np.pad(b[::-1], (0, degree - size))) for g, b in pairs]
    total = sum(product(g, b) for g, b in pad)
    assert total[own_positions(own, degree)].tolist() == (values @ factors).tolist()


def test_encrypted_sums_are_the_plain_integers_over_all_messages():
    first, second = numbers(1), numbers(2, ROWS // 5)
    guest = RowKey(sides()[0], OWN, OTHERS)
    wanted = [a + b for a, b in zip(plainly(*first), plainly(*second), strict=True)]
    assert guest.decrypt(replies(first, second)) == wanted
    assert max(map(abs, wanted)) > 1 << 50


def test_factors_of_zero_give_sums_of_zero():
    own, base, factors, parts = numbers(3, 100)
    assert RowKey(sides()[0], OWN, OTHERS).decrypt(replies((own, base, 0 * factors, 0 * parts))) == [0] * (OWN + OTHERS)


def test_two_replies_to_the_same_rows_share_no_number_but_the_sums():
    (key, _), message = sides(), numbers(4, 500)
    every, width = np.arange(key.bits), key.sides[0].full_width
    seen = [np.array(key.sides[0].decrypt_coefficients(replies(message)[:width], every)) for _ in range(2)]
    shown = own_positions(OWN, key.bits)
    assert (seen[0][shown] == seen[1][shown]).all()
    hidden = np.setdiff1d(every, shown)
    assert (seen[0][hidden] == seen[1][hidden]).sum() <= 1


def test_noise_stays_below_its_bound_and_the_flood_covers_it(monkeypatch):
    key, side = sides()
    parameters, degree, uniform = key.parameters[0], key.bits, flooding.uniform
    zeros = np.zeros(degree, dtype=np.uint64)
    monkeypatch.setattr(flooding, "uniform", lambda below, n: zeros.copy() if n == degree else uniform(below, n))
    ring, width = side.sides[0].ring, key.sides[0].full_width
    message, room = numbers(5), np.log2(float(max_noise(parameters)))

    def noise(blob):
        return room - key.sides[0].noise_budget(ring.ciphertext(blob[:width], ring.first))

    after = noise(replies(message))
    monkeypatch.setattr(bin_sums, "hiding", lambda of, shown, span, added: bytes(8 * of.degree * len(of.data_bits)))
    before, bound = noise(replies(message)), np.log2(float(product_noise(parameters, LOAD)))
    assert before < bound <= np.log2(float(noise_allowed(parameters, OWN)))
    # three numbers are flooded: most are near the widest one
    assert np.log2(float(flood_range(parameters, OWN))) + 63 - 12 < after <= room
    assert after - before > MARGIN_BITS


@pytest.mark.parametrize(
    ("rows", "people", "own", "value_bits"), [(1799, 200, 13, 53), (1799, 5000, 13, 53), (9, 50, 1, 49)]
)
def test_keys_hold_sums_noise_and_flood(rows, people, own, value_bits):
    load = Load(1, rows, own + 10, people, (2 * people + 1) << value_bits, own, FACTOR_BITS)
    sets = keys_for(load)
    assert np.prod([float(p.plain_modulus) for p in sets]) >= load.span
    assert len({p.plain_modulus for p in sets}) == len(sets)
    for p in sets:
        span = flood_range(p, own) << 64
        assert not {p.plain_modulus} & set(p.moduli)
        assert span // 2 + product_noise(p, load) <= max_noise(p)
        assert own * product_noise(p, load) << MARGIN_BITS <= span
    assert 1 <= load.together(8192) <= MAX_TOGETHER
    # slots of the same request would take more bytes
    slots = Load(1, rows, own + 10, people, load.span)
    assert sum(len(p.data_bits) * load.sent(p.degree) for p in sets) <= sum(
        len(p.data_bits) * p.degree // 8192 * slots.sent(p.degree) for p in residues_for(slots)
    )


def test_what_is_no_message_and_other_keys_are_refused():
    key, side = sides()
    own, base, factors, parts = numbers(6, 50)
    host = RowProducts(side, OWN, OTHERS)
    blob = RowKey(key, OWN, OTHERS).encrypt(own, base)
    for bad in (blob[:-1], blob + b"\0", b""):
        with pytest.raises(SecurityError):
            host.add(bad, factors, parts, None)
    with pytest.raises(SecurityError):
        RowKey(key, OWN, OTHERS).decrypt(b"")
    larger = Load(1, ROWS, OWN + OTHERS, 1_000_000, LOAD.span, OWN, FACTOR_BITS)
    with pytest.raises(SecurityError, match="keys"):
        side.check(larger)
    with pytest.raises(ParameterError, match="paillier"):
        keys_for(Load(1, ROWS, OWN + OTHERS, 10, 1 << 500, OWN, FACTOR_BITS))
