"""Obfuscators are n-th residues, spread evenly, and each is used once."""

from collections import Counter

import gmpy2
import pytest
from gmpy2 import mpz

from backend.crypto.obfuscators import BASES, SLACK_BITS, ObfuscatorPool, OwnerMaker, PublicMaker, _PrimeTable

P, Q = mpz(251), mpz(241)


@pytest.fixture(params=["owner", "public"])
def maker(request, secret_key):
    return OwnerMaker(secret_key.p, secret_key.q) if request.param == "owner" else PublicMaker(secret_key.public.n)


@pytest.mark.parametrize("how", ["make", "make_quietly"])
def test_every_obfuscator_encrypts_zero(maker, how, key_side):
    made = getattr(maker, how)(20)
    assert key_side.decrypt_numbers(made) == [0] * 20
    assert len(set(made)) == 20


def test_the_tables_hold_enough_entropy(secret_key):
    maker = OwnerMaker(secret_key.p, secret_key.q)
    maker.prepare()
    for table in maker._tables:
        assert len(table.rows) * 8 >= table.p.bit_length() + SLACK_BITS
        assert len(table.rows) % BASES == 0
    public = PublicMaker(secret_key.public.n)
    public.prepare()
    assert len(public._rows) * 6 >= secret_key.public.bits + SLACK_BITS


def test_a_half_width_table_gives_the_power_of_the_product(secret_key):
    """Oracle: multiply the chosen entries as they stand and raise to the p-th power."""
    table = _PrimeTable(secret_key.p, 8)
    digits = bytes(range(200, 200 + len(table.rows))) if len(table.rows) <= 56 else bytes(len(table.rows))
    product = mpz(1)
    for (values, _), digit in zip(table.rows, digits, strict=True):
        product = product * values[digit] % table.p
    assert table.power(digits) == gmpy2.powmod(product, table.p, table.p2)


@pytest.mark.parametrize("how", ["make", "make_quietly"])
def test_a_toy_key_gives_every_residue_about_equally_often(how):
    """250·240 residues are too many to count; their images modulo p are 250 classes of n-th residues."""
    maker = OwnerMaker(P, Q)
    maker.prepare()
    drawn = Counter(int(r % P) for r in getattr(maker, how)(25_000))
    assert len(drawn) == P - 1
    expected = 25_000 / float(P - 1)
    chi_square = sum((count - expected) ** 2 / expected for count in drawn.values())
    assert chi_square < 249 + 6 * (2 * 249) ** 0.5  # six standard deviations


def test_a_pool_fills_in_the_background_and_hands_each_obfuscator_out_once(secret_key):
    pool = ObfuscatorPool(OwnerMaker(secret_key.p, secret_key.q), target=48)
    pool.fill()
    pool.fill()
    while pool.ready < 48:
        pass
    taken = pool.take(40) + pool.take(40)
    pool.close()
    assert len(set(taken)) == 80


def test_an_empty_pool_still_answers(secret_key, key_side):
    assert key_side.decrypt_numbers(ObfuscatorPool(PublicMaker(secret_key.public.n), target=0).take(12)) == [0] * 12
