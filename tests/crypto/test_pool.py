"""A pool's items are used once: also where the process that holds them is forked."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from backend.crypto import pool
from backend.jobs import work

FORKED = """
import itertools, os
from backend.crypto.pool import Pool

class Numbers:
    def __init__(self): self.next = itertools.count(os.getpid() * 1000)
    def make(self, count): return [next(self.next) for _ in range(count)]
    make_unlocked = make
    def prepare(self): pass

maker = Numbers()
pool = Pool(maker, None, 0)
pool._ready.extend(maker.make(8))
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, str(pool.ready).encode())
    os._exit(0)
os.wait()
print(os.read(reader, 9).decode(), pool.ready)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only POSIX forks")
def test_what_is_on_hand_stays_with_the_process_that_made_it():
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", FORKED], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "8"]


class Tables:
    """A maker with tables that can be dropped."""

    def __init__(self):
        self.released, self.made = threading.Event(), 0

    def make(self, count):
        self.made += count
        return [0] * count

    make_unlocked = make

    def prepare(self):
        """Nothing."""

    def release(self):
        self.released.set()


class Elsewhere:
    """A process that makes as many as are asked for."""

    def __init__(self):
        self.ended, self.made = threading.Event(), 0

    def ask(self, count, patience=0.0, *, is_urgent=True):
        return True

    def collect(self, count):
        self.made += count
        return [0] * count

    def close(self):
        self.ended.set()


@pytest.mark.parametrize(("process", "dropped"), [(Elsewhere(), True), (None, False)])
def test_a_full_pool_at_rest_drops_its_tables_where_a_process_has_them_too(process, dropped, monkeypatch):
    monkeypatch.setattr(pool, "REST", 0.01)
    maker = Tables()
    full = pool.Pool(maker, process, 4)
    full.fill()
    try:
        assert maker.released.wait(5.0 if dropped else 0.3) is dropped
    finally:
        full.close()


@pytest.mark.parametrize("count", [pool.BULK - 1, 4 * pool.BULK])
def test_where_a_store_is_filled_two_processes_make_what_is_wanted_and_the_second_one_ends_at_rest(count, monkeypatch):
    """So that a dashboard never holds tables of hundreds of megabytes."""
    monkeypatch.setattr(pool, "REST", 0.01)
    maker, first, second = Tables(), Elsewhere(), Elsewhere()
    lasting = pool.Pool(maker, first, 4, second)
    lasting.fill()
    try:
        assert len(lasting.take(count)) == count and maker.made == 0
        assert first.made > 0 and (second.made >= pool.BULK) is (count >= pool.BULK)  # some were on hand
        assert second.ended.wait(5.0)
    finally:
        lasting.close()


def test_where_nothing_is_filled_this_process_works_beside_the_first_and_starts_no_second():
    maker, first, second = Tables(), Elsewhere(), Elsewhere()
    brief = pool.Pool(maker, first, 0, second)
    assert len(brief.take(2 * pool.BULK)) == 2 * pool.BULK
    assert (maker.made, first.made, second.made) == (pool.BULK, pool.BULK, 0)


def test_while_a_job_is_under_way_no_more_than_a_small_stock_is_filled():
    filled = pool.Pool(Tables(), None, 320)
    try:
        with work.watched(lambda: None, lambda share: None):
            filled.fill()
            while filled.ready < 32:
                time.sleep(0.01)
            time.sleep(2 * pool.PAUSE)
            assert filled.ready < 32 + pool.UNLOCKED_BATCH
        while filled.ready < 320:
            time.sleep(0.01)
    finally:
        filled.close()
