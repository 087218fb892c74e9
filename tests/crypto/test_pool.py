"""A pool's items are used once: also where the process that holds them is forked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
