"""Processes that make obfuscators while the parties of a simulation keep some ready, and their memory, as on the dashboard's first page.

Memory is what a process holds once every party has some. *Alone* is a process for the Guest's key only, as every key had one of its own
before; the floor is a process that has imported what makes them, and made none.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.obfuscator_process import ObfuscatorProcess
from backend.data.demo import write_demo
from backend.services import Glassleaf
from bench.aims import aims_of
from bench.setting import fresh_folder, progress, run

ROOT = Path(__file__).resolve().parents[1]
MODULE = "backend.crypto.paillier.obfuscator_process"
QUICK_BITS = 512
BITS = 3072
TIMEOUT = 300  # seconds until every party has some


def measure(quick: bool = False) -> dict[str, Any]:
    """Warm a federation up as the overview does, and look."""
    bits = QUICK_BITS if quick else BITS
    alone = _alone(bits)
    with fresh_folder() as home, Glassleaf(home, key_floor=bits) as glassleaf:
        write_demo(home / "demo", rows=500)
        name = glassleaf.federations.add(home / "demo").name
        progress(f"processes: {bits} bits")
        glassleaf.federations.warm_up(name, bits)
        parties = wait_until_ready(glassleaf, name)
        found = makers()
        held = sum(one.memory_info().rss for one in found)
    return {
        "bits": bits,
        "parties": parties,
        "count": len(found),
        "bytes": held,
        "alone_bytes": alone,
        "floor_bytes": _imported(),
        "floor": "an interpreter that has imported what makes them",
    }


def wait_until_ready(glassleaf: Glassleaf, name: str) -> int:
    """Parties, once each has some obfuscators on hand."""
    until = time.monotonic() + TIMEOUT
    while time.monotonic() < until:
        levels = glassleaf.federations.pools(name)
        if all(level.ready for level in levels):
            return len(levels)
        time.sleep(0.1)
    raise SystemExit(f"Not every party had obfuscators within {TIMEOUT} s.")


def makers() -> list[psutil.Process]:
    """Processes below this one that make obfuscators."""
    return [one for one in psutil.Process().children(recursive=True) if MODULE in one.cmdline()]


def _alone(bits: int) -> int:
    """Bytes of a process for the Guest's key alone."""
    key = PaillierSecretKey.generate(bits, bits)
    process = ObfuscatorProcess({"p": int(key.p), "q": int(key.q)}, key.public.width)
    if not process.ask(1, TIMEOUT) or process.collect(1) is None:
        raise SystemExit("The process that makes obfuscators died.")
    (one,) = makers()
    held = int(one.memory_info().rss)
    process.close()
    return held


def _imported() -> int:
    command = [sys.executable, "-c", f"import {MODULE}, sys; sys.stdin.read()"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as running:  # noqa: S603 (our own command)
        watched = psutil.Process(running.pid)
        before = -1
        while (held := int(watched.memory_info().rss)) != before:  # until it grows no more
            before = held
            time.sleep(1.0)
        running.communicate(b"")
    return held


if __name__ == "__main__":
    run(__doc__, measure, aims_of("processes"))
