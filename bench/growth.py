"""How cost grows: rows, features, trees and parties, one at a time from a base, for training, scoring and alignment beside plaintext.

Every size is measured in a process of its own, plaintext first and then RLWE. A training grows a tenth of the trees, since it is linear in
them. A model that scores was grown on few of the rows, which are repeated under new ids before they are scored. The people whom Guest and
Hosts share are found by blinded ids, and on plaintext by hashed ones. Processor seconds are those of all parties and their workers; on a
machine that others use they are the figure to compare, and exponents are made of them. Memory is looked at ten times a second.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from threading import Event, Thread
from typing import Any

import numpy as np
import psutil

from backend.crypto.registry import Cipher
from backend.crypto.workers import Workers, cores
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.training import TrainingRequest
from backend.services.workspace import Workspace
from bench.alignment import Meter, aligned, hashing
from bench.large import write_large
from bench.setting import fresh_folder, progress, run, train
from bench.stream import held, lengthen, worked
from bench.tables import growth_by_axis as describe

LOOK = 0.1  # seconds between two looks at the memory
CIPHERS: tuple[Cipher, ...] = ("none", "rlwe")
GROWN_ROWS = 5_000  # rows that a scored model is grown on
TREES_A_TRAINED_TREE = 10
KEY_BITS = 2048  # of Paillier, which is not measured
PARAMETERS = SecureBoostParameters(depth=4, bins=32, learning_rate=0.1)


@dataclass(frozen=True)
class Size:
    """Rows of each party, features of all of them, trees, and parties with the Guest."""

    rows: int
    features: int
    trees: int
    parties: int

    @property
    def counts(self) -> dict[str, int]:
        """Party → features, as many at each Host; the Guest, who is the first, has what is left."""
        each = self.features // self.parties
        hosts = {f"host{number}": each for number in range(1, self.parties)}
        return {"bank": self.features - each * len(hosts), **hosts}


FULL = Size(100_000, 50, 100, 3)
# a smaller base: GROWTH_BASE=10000,50,100,3
BASE = Size(*map(int, os.environ["GROWTH_BASE"].split(","))) if "GROWTH_BASE" in os.environ else FULL
AXES: dict[str, tuple[int, ...]] = {
    "rows": (BASE.rows // 10, BASE.rows, 10 * BASE.rows),
    "features": (BASE.features // 5, BASE.features, 4 * BASE.features, 10 * BASE.features),
    "trees": (BASE.trees // 10, BASE.trees, 5 * BASE.trees),
    "parties": (2, 3, 5),
}
QUICK_BASE = Size(400, 6, 10, 2)
QUICK_AXES: dict[str, tuple[int, ...]] = {"rows": (400, 800), "features": (6, 9), "trees": (10, 20), "parties": (2, 3)}


def measure(quick: bool = False) -> dict[str, Any]:
    """One point for every size, and the axes through them."""
    base = QUICK_BASE if quick else BASE
    axes = QUICK_AXES if quick else AXES
    points = []
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as processes:
        for size in sizes(base, axes):
            progress(f"growth: {size}")
            points.append(processes.submit(point, size).result())
    return assembled(base, axes, points)


def sizes(base: Size, axes: Mapping[str, Sequence[int]]) -> list[Size]:
    """The base and every size that differs from it along one axis."""
    found = {base: None}
    for axis, values in axes.items():
        found |= {replace(base, **{axis: value}): None for value in values}
    return list(found)


def assembled(base: Size, axes: Mapping[str, Sequence[int]], points: list[dict[str, Any]]) -> dict[str, Any]:
    """The results, from the points."""
    limits = {"memory_bytes": psutil.virtual_memory().total, "cores": cores()}
    return {"base": asdict(base), "reduced": base != FULL, "axes": axes, "points": points, **limits}


def point(size: Size) -> dict[str, Any]:
    """Seconds, processor seconds, bytes and memory of the three tasks, on plaintext and encrypted."""
    tasks = {"alignment": _alignment, "training": _training, "scoring": _scoring}
    return {**asdict(size), **{name: task(size) for name, task in tasks.items()}}


def _alignment(size: Size) -> dict[str, Any]:
    """Every Host holds all people of the Guest, in another order."""
    ids = [f"customer-{i:08d}" for i in range(size.rows)]
    shuffled = ids[::-1]

    def rows_of(way: Callable[[], Meter]) -> int:
        return sum(sum(way().bytes.values()) for _ in range(1, size.parties))

    return {
        "none": _watched(lambda: rows_of(lambda: hashing(ids, shuffled))),
        "rlwe": _watched(lambda: rows_of(lambda: aligned("dh", ids, shuffled, len(ids)))),
    }


def _training(size: Size) -> dict[str, Any]:
    """Keys and tables are made by a training of one small tree before."""
    wanted = replace(PARAMETERS, trees=max(1, size.trees // TREES_A_TRAINED_TREE))
    found: dict[str, Any] = {}
    with _federation(size, size.rows) as (glassleaf, federation):
        for cipher in CIPHERS:
            train(glassleaf, federation, replace(wanted, trees=1, depth=1, cipher=cipher))
            parameters = replace(wanted, cipher=cipher)

            def work(parameters: SecureBoostParameters = parameters) -> int:
                job = glassleaf.training.start(TrainingRequest(federation, parameters, most_named=1.0))
                job.get()
                return sum(entry.bytes for entry in job.transcript)

            found[cipher] = {"trees": wanted.trees, **_watched(work)}
    return found


def _scoring(size: Size) -> dict[str, Any]:
    """All rows, once some have been scored that do not count."""
    found: dict[str, Any] = {}
    workers = Workers(cores())
    with _federation(size, min(size.rows, GROWN_ROWS)) as (glassleaf, federation):
        record = train(glassleaf, federation, replace(PARAMETERS, trees=size.trees, cipher="none"))
        lengthen(glassleaf.federations.get(federation), size.rows)
        compiled = CompiledGuest(glassleaf.models.guest_model(record.id))
        workspace = Workspace(glassleaf.home, pools=False)
        runtime = workspace.runtime(federation)
        for cipher in CIPHERS:
            key = runtime.keys.scoring(cipher, KEY_BITS, compiled)

            def work(rows: int = size.rows, key: Any = key) -> int:
                table = runtime.table.take(np.arange(rows))
                session = runtime.open_session(record.hosts, counted=False)
                try:
                    runtime.guest.score(record.id, compiled, table, key, session, workers=workers)
                finally:
                    transcript = session.close()
                return sum(entry.bytes for entry in transcript)

            work(min(size.rows, 50))
            found[cipher] = {"leaves": record.n_leaves, **_watched(work)}
        workspace.close()
    workers.close()
    return found


@contextmanager
def _federation(size: Size, rows: int) -> Iterator[tuple[Glassleaf, str]]:
    """A service with a federation of this size but of `rows` drawn people."""
    with fresh_folder() as folder:
        write_large(folder / "data", rows, size.counts, "drawn")
        with Glassleaf(folder / "home", pools=False) as glassleaf:
            yield glassleaf, glassleaf.federations.add(folder / "data").name


def _watched(work: Callable[[], int]) -> dict[str, float]:
    """What `work` takes, which returns the bytes that were sent."""
    process = psutil.Process()
    largest = 0
    workers = worked_below(process)
    before = sum(workers.values())
    done = Event()

    def look() -> None:
        nonlocal largest, workers
        largest = max(largest, held(process))
        workers |= worked_below(process)

    def watch() -> None:
        while not done.wait(LOOK):
            look()

    watching = Thread(target=watch)
    began = time.perf_counter()
    began_here = time.process_time()
    watching.start()
    try:
        sent = work()
    finally:
        seconds = time.perf_counter() - began
        here = time.process_time() - began_here
        done.set()
        watching.join()
        look()
    return {
        "seconds": seconds,
        "processor_seconds": here + sum(workers.values()) - before,
        "bytes": sent,
        "peak_bytes": largest,
    }


def worked_below(process: psutil.Process) -> dict[int, float]:
    """Seconds that the processes below one have kept processors busy; its own are counted more finely."""
    found = worked(process)
    del found[process.pid]
    return found


if __name__ == "__main__":
    run(__doc__, measure, describe)
