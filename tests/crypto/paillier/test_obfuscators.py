"""Obfuscators are n-th residues, spread evenly, and each is used once."""

import threading
import time
from collections import Counter
from pathlib import Path

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz

from backend.crypto.paillier import obfuscator_process, obfuscators
from backend.crypto.paillier.keys import PaillierSecretKey, byte_width
from backend.crypto.paillier.obfuscator_process import ObfuscatorProcess
from backend.crypto.paillier.obfuscators import (
    BASES,
    FEW_KEPT,
    SHORT_BITS,
    SLACK_BITS,
    WITHOUT_TABLE_SHORT_KEY,
    WITHOUT_TABLE_UP_TO,
    OwnerMaker,
    PublicMaker,
    _digits_per_base,
    _PrimeTable,
    _window,
)
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.pool import Pool

P, Q = mpz(251), mpz(241)
SMALL = 1 << 20  # bytes of tables: what they are made of does not depend on how many digits they have


@pytest.fixture(scope="module", autouse=True)
def around():
    """Small tables; and no key of other tests at the second process."""
    with pytest.MonkeyPatch.context() as patch:
        for constant in ("OWNER_MEMORY", "PUBLIC_MEMORY"):
            patch.setattr(obfuscators, constant, SMALL)
        patch.setattr(obfuscator_process, "_shared", obfuscator_process._Shared())
        yield


@pytest.fixture
def alone(monkeypatch):
    """No key at all at the second process, which is killed here, or counted."""
    monkeypatch.setattr(obfuscator_process, "_shared", obfuscator_process._Shared())


@pytest.fixture(params=["owner", "public"])
def maker(request, secret_key):
    return OwnerMaker(secret_key.p, secret_key.q) if request.param == "owner" else PublicMaker(secret_key.public.n)


@pytest.mark.parametrize("how", ["make", "make_unlocked"])
def test_every_obfuscator_encrypts_zero(maker, how, key_side):
    made = getattr(maker, how)(80)
    assert key_side.decrypt_numbers(made) == [0] * 80
    assert len(set(made)) == 80


@pytest.mark.parametrize(
    ("bits", "few"), [(SHORT_BITS - 1, WITHOUT_TABLE_SHORT_KEY), (SHORT_BITS, WITHOUT_TABLE_UP_TO)]
)
def test_the_first_few_need_no_table_and_many_make_one(bits, few, monkeypatch):
    monkeypatch.setattr(obfuscators, "PUBLIC_MEMORY", 1)
    maker = PublicMaker(mpz(1 << bits - 1) + 1)
    maker._made = few - 1
    maker.make(1)
    assert maker._rows is None
    maker.make(1)
    assert maker._rows is not None


def test_the_tables_hold_enough_entropy(secret_key):
    maker = OwnerMaker(secret_key.p, secret_key.q)
    maker.prepare()
    for table in maker._tables:
        assert len(table.rows) * maker._window >= table.p.bit_length() + SLACK_BITS
    public = PublicMaker(secret_key.public.n)
    public.prepare()
    assert len(public._rows) * public._window >= secret_key.public.bits + SLACK_BITS


def test_every_base_has_its_share_of_the_digits_and_there_are_enough_bases():
    digits = _digits_per_base(1536 + SLACK_BITS, 8)
    assert len(digits) == BASES >= 66 and max(digits) - min(digits) <= 1
    assert sum(digits) * 8 >= 1536 + SLACK_BITS > (sum(digits) - 1) * 8
    assert _digits_per_base(101 + SLACK_BITS, 8) == [1] * 29  # a toy key: one digit a base


def test_a_half_width_table_gives_the_power_of_the_product(secret_key):
    """Oracle: multiply the chosen entries as they stand and raise to the p-th power."""
    drawn = _PrimeTable.draw(secret_key.p, 8, 256 + SLACK_BITS)
    for table in (drawn, _PrimeTable.load(secret_key.p, drawn.dump())):
        digits = np.random.default_rng(1).integers(0, 256, (len(table.rows), 5)).astype(np.uint16)
        digits[:, 0] = 255  # the largest sums of quotients
        products = [mpz(1)] * 5
        for (values, _), row in zip(table.rows, digits, strict=True):
            products = [p * values[d] % table.p for p, d in zip(products, row, strict=True)]
        assert table.powers(iter(digits)) == [gmpy2.powmod(p, table.p, table.p2) for p in products]


def test_the_window_is_the_widest_that_fits_the_memory():
    assert _window(1000, 100, 10**9) == 12  # 84 rows of 4,096 entries: 34 MB; wider ones are not offered
    assert _window(1000, 100, 84 * 4096 * 100 - 1) == 11
    assert _window(1000, 100, 1) == 4


def test_a_table_is_kept_in_a_file_that_only_its_owner_reads_and_a_damaged_one_is_rebuilt(maker, key_side, tmp_path):
    numbers = (maker._p, maker._q) if isinstance(maker, OwnerMaker) else (maker._n,)
    file = tmp_path / "kept" / "tables"
    first, second, third = (type(maker)(*numbers, file=file) for _ in range(3))
    first.prepare()
    assert file.stat().st_mode & 0o077 == 0
    second.prepare()
    if isinstance(maker, PublicMaker):
        assert second._rows == first._rows
    else:
        assert [t.dump() for t in second._tables] == [t.dump() for t in first._tables]
    assert key_side.decrypt_numbers(second.make(70)) == [0] * 70
    kept = file.read_bytes()
    file.write_bytes(kept[:1000] + b"\0" + kept[1001:])
    third.prepare()
    assert key_side.decrypt_numbers(third.make(70)) == [0] * 70
    assert file.read_bytes() not in (kept, kept[:1000] + b"\0" + kept[1001:])  # its own, new


def test_a_table_that_is_dropped_while_others_draw_from_it_is_read_again_and_makes_no_obfuscator_of_one(
    maker, key_side, tmp_path
):
    numbers = (maker._p, maker._q) if isinstance(maker, OwnerMaker) else (maker._n,)
    kept, done = type(maker)(*numbers, file=tmp_path / "tables"), threading.Event()
    kept.prepare()

    def drop():
        while not done.is_set():
            kept.release()

    dropping = threading.Thread(target=drop)
    dropping.start()
    try:
        made = [one for _ in range(3) for one in kept.make(FEW_KEPT + 1)]
    finally:
        done.set()
        dropping.join()
    assert key_side.decrypt_numbers(made) == [0] * len(made)
    assert len(set(made)) == len(made) and mpz(1) not in made
    kept.release()
    assert (kept._tables if isinstance(kept, OwnerMaker) else kept._rows) is None


def test_a_table_without_a_file_is_not_dropped(secret_key):
    maker = PublicMaker(secret_key.public.n)
    maker.prepare()
    maker.release()
    assert maker._rows is not None


def test_a_table_of_another_key_is_not_taken(tmp_path, secret_key):
    file = tmp_path / "tables"
    OwnerMaker(P, Q, file=file).prepare()
    maker = OwnerMaker(secret_key.p, secret_key.q, file=file)
    maker.prepare()
    assert maker._tables[0].p == secret_key.p


def test_a_table_in_a_file_is_used_almost_from_the_first(secret_key, tmp_path):
    PublicMaker(secret_key.public.n, tmp_path / "t").prepare()
    maker = PublicMaker(secret_key.public.n, tmp_path / "t")
    maker.make(FEW_KEPT)
    assert maker._rows is None
    maker.make(1)
    assert maker._rows is not None


def test_short_exponents_are_half_as_long_and_still_encrypt_zero(secret_key, key_side):
    full, short = (OwnerMaker(secret_key.p, secret_key.q, how) for how in ("full", "short"))
    assert short._bits == [128, 128] and full._bits == [256 + SLACK_BITS] * 2
    short.prepare()
    assert key_side.decrypt_numbers(short.make(100)) == [0] * 100


@pytest.mark.parametrize("how", ["make", "make_unlocked"])
def test_a_toy_key_gives_every_residue_about_equally_often(how):
    """250·240 residues are too many to count; their images modulo p are 250 classes of n-th residues."""
    maker = OwnerMaker(P, Q)
    maker.prepare()
    drawn = Counter(int(r % P) for r in getattr(maker, how)(25_000))
    assert len(drawn) == P - 1
    expected = 25_000 / float(P - 1)
    chi_square = sum((count - expected) ** 2 / expected for count in drawn.values())
    assert chi_square < 249 + 6 * (2 * 249) ** 0.5  # six standard deviations


@pytest.fixture(scope="module", params=["owner", "public"])
def process(request, secret_key):
    """Started again by who asks after a test that closed it."""
    numbers = {"n": int(secret_key.public.n)}
    if request.param == "owner":
        numbers = {"p": int(secret_key.p), "q": int(secret_key.q)}
    process = ObfuscatorProcess(numbers, secret_key.public.width)
    yield process
    process.close()


def test_the_second_process_makes_fresh_obfuscators_until_it_is_closed(process, key_side):
    assert process.ask(30) and not process.ask(1)  # busy until it is collected
    made = process.collect(30)
    assert key_side.decrypt_numbers(made) == [0] * 30 and len(set(made)) == 30
    assert process.ask(5) and len(process.collect(5)) == 5


@pytest.mark.usefixtures("alone")
def test_tables_of_a_folder_that_is_named_from_where_one_stands_lie_there(secret_key, tmp_path, monkeypatch):
    """As a Host that is started beside its host.toml names its keys; the second process works elsewhere."""
    monkeypatch.chdir(tmp_path)
    process = ObfuscatorProcess(
        {"n": int(secret_key.public.n)}, secret_key.public.width, tables=Path("keys/some.tables")
    )
    many = WITHOUT_TABLE_SHORT_KEY + 1
    assert process.ask(many) and len(process.collect(many)) == many
    process.close()
    assert (tmp_path / "keys" / "some.tables").is_file()


@pytest.mark.usefixtures("alone")
def test_a_second_process_that_died_is_made_up_for(secret_key, key_side):
    process = ObfuscatorProcess({"n": int(secret_key.public.n)}, secret_key.public.width)
    pool = Pool(PublicMaker(secret_key.public.n), process, target=0)
    assert len(pool.take(600)) == 600
    process._shared.process.kill()
    process._shared.process.wait()
    made = pool.take(600)
    assert len(set(made)) == 600 and key_side.decrypt_numbers(made[:3] + made[-3:]) == [0] * 6
    pool.close()


@pytest.mark.usefixtures("alone")
def test_all_keys_share_one_process_which_ends_with_the_last_of_them(secret_key, key_side):
    other = PaillierSecretKey.generate(512, 512)
    numbers = [
        ({"p": int(secret_key.p), "q": int(secret_key.q)}, key_side),
        ({"n": int(secret_key.public.n)}, key_side),
        ({"n": int(other.public.n)}, PaillierKeySide(other)),
    ]
    sides = [(ObfuscatorProcess(of, byte_width(key.public.n**2)), key) for of, key in numbers]
    for process, key in sides:
        assert process.ask(3) and key.decrypt_numbers(process.collect(3)) == [0] * 3
    (shared,) = {process._shared for process, _ in sides}
    running = shared.process
    assert running is not None and running.poll() is None
    first, second = sides[0][0], sides[1][0]
    assert first.ask(3)
    assert not second.ask(1)
    second.close()  # by the thread whose request is under way, as a collection of garbage would
    assert key_side.decrypt_numbers(first.collect(3)) == [0] * 3 and len(shared._known) == 2
    assert second.ask(2) and key_side.decrypt_numbers(second.collect(2)) == [0] * 2  # and is known again
    for process, _ in sides:
        process.close()
    assert shared.process is None and running.poll() is not None


@pytest.mark.usefixtures("alone")
def test_who_needs_some_now_comes_before_stores_that_are_filled_for_later(secret_key):
    asking = [ObfuscatorProcess({"n": int(secret_key.public.n)}, secret_key.public.width) for _ in range(4)]
    busy, *later, now = asking
    turns, order = busy._shared.turns, []

    def ask(process, needed):
        if process.ask(2, timeout=60.0, is_urgent=needed):
            order.append(needed)
            process.collect(2)

    assert busy.ask(2)
    waiting = [threading.Thread(target=ask, args=(process, False)) for process in later]
    for thread in waiting:
        thread.start()
    while len(turns._free._waiters) < 2:
        time.sleep(0.001)
    waiting.append(threading.Thread(target=ask, args=(now, True)))
    waiting[-1].start()
    while not turns._needed:
        time.sleep(0.001)
    busy.collect(2)
    for thread in waiting:
        thread.join()
    assert order == [True, False, False]
    for process in asking:
        process.close()


def test_a_key_waits_for_the_process_while_it_works_for_another(secret_key, process):
    other = ObfuscatorProcess({"n": int(secret_key.public.n)}, secret_key.public.width)
    assert process.ask(4)
    later = threading.Timer(0.05, process.collect, [4])
    later.start()
    assert other.ask(2, timeout=60.0) and len(other.collect(2)) == 2
    later.join()
    other.close()


def test_the_key_is_neither_on_the_command_line_nor_in_the_environment_of_the_second_process(process):
    assert process.ask(1) and process.collect(1)
    folder = Path(f"/proc/{process._shared.process.pid}")
    if not folder.is_dir():
        pytest.skip("this system has no /proc to look a process up in")
    seen = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
    assert not any(str(number).encode() in seen for number in process._numbers.values())
    assert not any(str(number) in repr(process) for number in process._numbers.values())


def test_a_pool_fills_in_the_background_and_hands_each_obfuscator_out_once(secret_key, process):
    pool = Pool(OwnerMaker(secret_key.p, secret_key.q), process, target=48)
    pool.fill()
    pool.fill()
    while pool.ready < 48:
        time.sleep(0.01)
    taken = pool.take(40) + pool.take(700)
    pool.close()
    assert len(set(taken)) == 740


def test_an_empty_pool_still_answers(secret_key, key_side, process):
    pool = Pool(PublicMaker(secret_key.public.n), process, target=0)
    assert key_side.decrypt_numbers(pool.take(12)) == [0] * 12
