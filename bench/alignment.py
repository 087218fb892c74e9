"""Finding the joint records of two parties both ways, beside plain hashing, which protects no id that somebody can guess.

Processor seconds; the parties take turns, so that each one's are its own. By the clock they work at the same time, as in a training.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from backend.crypto.ristretto import hash_to_group, multiply, random_scalars
from backend.protocols.alignment.ids import joint_rows, mark
from backend.protocols.alignment.methods import guest_sides, host_side
from backend.protocols.alignment.outcome import METHODS
from bench.floors import each
from bench.setting import REPEATS, progress, run
from bench.tables import alignment as describe

RECORDS = 30_000  # of each party; as many as the credit-card data has
JOINT = 20_000


class Meter:
    """Processor seconds and bytes of each party."""

    def __init__(self) -> None:
        self.seconds = {"guest": 0.0, "host": 0.0}
        self.bytes = {"guest": 0, "host": 0}
        self.messages = 0

    def timed(self, party: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `work`, whose time is the party's."""
        began = time.process_time()
        result = work(*arguments)
        self.seconds[party] += time.process_time() - began
        return result

    def sent(self, party: str, blob: bytes) -> bytes:
        """Count what a party sends."""
        self.bytes[party] += len(blob)
        self.messages += 1
        return blob


def summary(meters: Sequence[Meter]) -> dict[str, Any]:
    """Median seconds of each party over repetitions; bytes and messages, which are the same in all."""
    first = meters[0]
    seconds = {f"{party}_seconds": median(meter.seconds[party] for meter in meters) for party in first.seconds}
    return seconds | {f"{party}_bytes": sent for party, sent in first.bytes.items()} | {"messages": first.messages}


def measure() -> dict[str, Any]:
    """Medians, and ratios to plain hashing and to each other."""
    rng = np.random.default_rng(0)
    ids = [f"customer-{i:08d}" for i in range(2 * RECORDS - JOINT)]
    guest = [ids[i] for i in rng.permutation(RECORDS)]
    host = [ids[len(ids) - RECORDS + i] for i in rng.permutation(RECORDS)]
    ways = {"hashing": hashing} | {method: partial(aligned, method) for method in METHODS}
    results: dict[str, Any] = {"records": RECORDS, "joint": JOINT, "repeats": REPEATS}
    for name, way in ways.items():
        progress(name)
        results[name] = summary([way(guest, host) for _ in range(REPEATS + 1)][1:])
    for method in METHODS:
        progress(f"{method}, both parties at once")
        results[method]["wall_seconds"] = median(together(method, guest, host) for _ in range(REPEATS))
    results["floor"] = floor()
    results["hashing"]["broken"] = "whoever sees the hashes can try all ids that it can think of"
    for name, other in (("bloom", "dh"), ("dh", "hashing")):
        results[f"{name}_times_{other}"] = {
            unit: _ratio(results[name], results[other], unit) for unit in ("seconds", "bytes")
        }
    return results


def floor() -> dict[str, Any]:
    """What an id takes at least on one core: the Guest blinds and unblinds it, the Host evaluates it and one of its own."""
    element = hash_to_group(b"id", b"bench")
    scalar = random_scalars(1)[0]
    multiplication = each(lambda: multiply(scalar, element))
    hashed = each(lambda: hash_to_group(b"id", b"bench"))
    seconds = 4 * multiplication + 2 * hashed
    words = (
        f"4 multiplications of {1e6 * multiplication:.0f} µs and 2 hashes to the group of {1e6 * hashed:.0f} µs an id"
    )
    return {"multiplication_seconds": multiplication, "hash_seconds": hashed, "seconds_an_id": seconds, "counts": words}


def _ratio(row: dict[str, Any], other: dict[str, Any], unit: str) -> float:
    return float((row[f"guest_{unit}"] + row[f"host_{unit}"]) / (other[f"guest_{unit}"] + other[f"host_{unit}"]))


def aligned(method: str, guest: list[str], host: list[str], joint: int = JOINT) -> Meter:
    """One alignment from two lists of ids, of which `joint` stand in both, to two lists of rows."""
    meter = Meter()
    side = meter.timed("guest", guest_sides, method, "guest", guest, ["host"])["host"]
    other = meter.timed("host", host_side, method, host)
    opening = meter.sent("guest", meter.timed("guest", side.open))
    answer = meter.sent("host", meter.timed("host", other.open, len(guest), opening))
    meter.timed("guest", side.opened, other.records, answer)
    pieces = side.pieces()
    while (piece := meter.timed("guest", next, pieces, None)) is not None:
        meter.timed("guest", side.take, meter.sent("host", meter.timed("host", other.take, meter.sent("guest", piece))))
    indices = meter.timed("guest", side.positions)
    rows = meter.timed("guest", joint_rows, "guest", guest, {"host": indices})
    marks = meter.sent("guest", meter.timed("guest", mark, indices, rows, other.records))
    theirs = meter.timed("host", other.rows, marks)
    if len(rows) != joint or any(guest[g] != host[h] for g, h in zip(rows, theirs, strict=True)):
        raise RuntimeError("The alignment is wrong.")
    return meter


def together(method: str, guest: list[str], host: list[str]) -> float:
    """Seconds of the same while both parties work at once, the Guest two messages ahead , as in a training."""
    began = time.perf_counter()
    side = guest_sides(method, "guest", guest, ["host"])["host"]
    other = host_side(method, host)
    side.opened(other.records, other.open(len(guest), side.open()))
    pieces = side.pieces()
    asked = deque[Future[bytes]]()
    with ThreadPoolExecutor(1) as at_host:

        def ask() -> None:
            if (piece := next(pieces, None)) is not None:
                asked.append(at_host.submit(other.take, piece))

        ask()
        ask()
        while asked:
            answer = asked.popleft().result()
            ask()
            side.take(answer)
    rows = joint_rows("guest", guest, {"host": side.positions()})
    if len(rows) != JOINT:
        raise RuntimeError("The alignment is wrong.")
    return time.perf_counter() - began


def hashing(guest: list[str], host: list[str]) -> Meter:
    """Both send SHA-256 of their ids. Broken: ids can be guessed."""
    meter = Meter()
    hashes = {}
    for party, ids in (("guest", guest), ("host", host)):
        hashes[party] = meter.timed(party, lambda ids=ids: [hashlib.sha256(i.encode()).digest() for i in ids])
        meter.sent(party, b"".join(hashes[party]))
    for party, other in (("guest", "host"), ("host", "guest")):
        meter.timed(party, lambda p=party, o=other: set(hashes[o]).intersection(hashes[p]))
    return meter


if __name__ == "__main__":
    run(__doc__, measure, describe)
