"""Obfuscators are n-th residues, spread evenly, and each is used once."""

import time
from collections import Counter
from pathlib import Path

import gmpy2
import pytest
from gmpy2 import mpz

from backend.crypto.maker_process import MakerProcess
from backend.crypto.obfuscators import BASES, FEW, SLACK_BITS, OwnerMaker, PublicMaker, _digits_per_base, _PrimeTable
from backend.crypto.pool import ObfuscatorPool

P, Q = mpz(251), mpz(241)


@pytest.fixture(params=["owner", "public"])
def maker(request, secret_key):
    return OwnerMaker(secret_key.p, secret_key.q) if request.param == "owner" else PublicMaker(secret_key.public.n)


@pytest.mark.parametrize("how", ["make", "make_quietly"])
def test_every_obfuscator_encrypts_zero(maker, how, key_side):
    made = getattr(maker, how)(80)
    assert key_side.decrypt_numbers(made) == [0] * 80
    assert len(set(made)) == 80


def test_the_first_few_need_no_table_and_many_make_one(secret_key):
    maker = PublicMaker(secret_key.public.n)
    maker.make(FEW)
    assert maker._rows is None
    maker.make(1)
    assert maker._rows is not None


def test_the_tables_hold_enough_entropy(secret_key):
    maker = OwnerMaker(secret_key.p, secret_key.q)
    maker.prepare()
    for table in maker._tables:
        assert len(table.rows) * 8 >= table.p.bit_length() + SLACK_BITS
    public = PublicMaker(secret_key.public.n)
    public.prepare()
    assert len(public._rows) * 6 >= secret_key.public.bits + SLACK_BITS


def test_every_base_has_its_share_of_the_digits_and_there_are_enough_bases():
    digits = _digits_per_base(mpz(1) << 1535, 8)
    assert len(digits) == BASES >= 66 and max(digits) - min(digits) <= 1
    assert sum(digits) * 8 >= 1536 + SLACK_BITS > (sum(digits) - 1) * 8
    assert _digits_per_base(mpz(1) << 100, 8) == [1] * 29  # a toy key: one digit a base


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


@pytest.fixture(params=["owner", "public"])
def process(request, secret_key):
    numbers = {"n": int(secret_key.public.n)}
    if request.param == "owner":
        numbers = {"p": int(secret_key.p), "q": int(secret_key.q)}
    process = MakerProcess(numbers, secret_key.public.width)
    yield process
    process.close()


def test_the_second_process_makes_fresh_obfuscators_until_it_is_closed(process, key_side):
    assert process.ask(30) and not process.ask(1)  # busy until it is collected
    made = process.collect(30)
    assert key_side.decrypt_numbers(made) == [0] * 30 and len(set(made)) == 30
    assert process.ask(5) and len(process.collect(5)) == 5


def test_a_second_process_that_died_is_made_up_for(secret_key, key_side):
    process = MakerProcess({"n": int(secret_key.public.n)}, secret_key.public.width)
    pool = ObfuscatorPool(PublicMaker(secret_key.public.n), process, target=0)
    assert len(pool.take(600)) == 600
    process._process.kill()
    process._process.wait()
    made = pool.take(600)
    assert len(set(made)) == 600 and key_side.decrypt_numbers(made[:3] + made[-3:]) == [0] * 6
    pool.close()


def test_the_key_is_neither_on_the_command_line_nor_in_the_environment_of_the_second_process(process):
    assert process.ask(1) and process.collect(1)
    folder = Path(f"/proc/{process._process.pid}")
    if not folder.is_dir():
        pytest.skip("this system has no /proc to look a process up in")
    seen = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
    assert not any(str(number).encode() in seen for number in process._numbers.values())
    assert not any(str(number) in repr(process) for number in process._numbers.values())


def test_a_pool_fills_in_the_background_and_hands_each_obfuscator_out_once(secret_key, process):
    pool = ObfuscatorPool(OwnerMaker(secret_key.p, secret_key.q), process, target=48)
    pool.fill()
    pool.fill()
    while pool.ready < 48:
        time.sleep(0.01)
    taken = pool.take(40) + pool.take(700)
    pool.close()
    assert len(set(taken)) == 740


def test_an_empty_pool_still_answers(secret_key, key_side, process):
    pool = ObfuscatorPool(PublicMaker(secret_key.public.n), process, target=0)
    assert key_side.decrypt_numbers(pool.take(12)) == [0] * 12
