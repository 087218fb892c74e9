"""A pool's items are used once: also where the process that holds them is forked."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from backend.crypto import pool

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
        self.released = threading.Event()

    def make(self, count):
        return [0] * count

    make_unlocked = make

    def prepare(self):
        """Nothing."""

    def release(self):
        self.released.set()


class Elsewhere:
    """A process that makes as many as are asked for."""

    def ask(self, count, patience=0.0):
        return True

    def collect(self, count):
        return [0] * count

    def close(self):
        """Nothing."""


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
