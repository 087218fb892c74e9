"""Finding the joint records of two parties both ways, beside plain hashing, which protects no id that somebody can guess.

One thread and processor seconds; the parties take turns, so that each one's are its own. In a training they work at the same time.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from backend.protocols.alignment.ids import joint_rows, mark
from backend.protocols.alignment.methods import METHODS, guest_sides, host_side
from bench.setting import REPEATS, run, say
from bench.tables import alignment as describe

RECORDS = 30_000  # of each party; as many as the credit-card data has
JOINT = 20_000


class Meter:
    """Processor seconds and bytes of each party."""

    def __init__(self) -> None:
        self.seconds = {"guest": 0.0, "host": 0.0}
        self.bytes = {"guest": 0, "host": 0}
        self.messages = 0

    def of(self, party: str, work: Callable[..., Any], *given: Any) -> Any:
        """Do `work` on the party's account."""
        began = time.process_time()
        made = work(*given)
        self.seconds[party] += time.process_time() - began
        return made

    def sent(self, party: str, blob: bytes) -> bytes:
        """Count what a party sends."""
        self.bytes[party] += len(blob)
        self.messages += 1
        return blob


def measure() -> dict[str, Any]:
    """Medians, and ratios to plain hashing and to each other."""
    rng = np.random.default_rng(0)
    numbers = [f"customer-{i:08d}" for i in range(2 * RECORDS - JOINT)]
    guest = [numbers[i] for i in rng.permutation(RECORDS)]
    host = [numbers[len(numbers) - RECORDS + i] for i in rng.permutation(RECORDS)]
    ways: dict[str, Callable[[list[str], list[str]], Meter]] = {
        "hashing": hashing,
        **{method: (lambda g, h, method=method: aligned(method, g, h)) for method in METHODS},
    }
    found: dict[str, Any] = {"records": RECORDS, "joint": JOINT, "repeats": REPEATS}
    for name, way in ways.items():
        say(name)
        meters = [way(guest, host) for _ in range(REPEATS + 1)][1:]
        found[name] = {
            "guest_seconds": median(m.seconds["guest"] for m in meters),
            "host_seconds": median(m.seconds["host"] for m in meters),
            "guest_bytes": meters[0].bytes["guest"],
            "host_bytes": meters[0].bytes["host"],
            "messages": meters[0].messages,
        }
    found["hashing"]["broken"] = "whoever sees the hashes can try all ids that it can think of"
    total = {name: found[name]["guest_seconds"] + found[name]["host_seconds"] for name in ways}
    size = {name: found[name]["guest_bytes"] + found[name]["host_bytes"] for name in ways}
    found["bloom_times_dh"] = {"seconds": total["bloom"] / total["dh"], "bytes": size["bloom"] / size["dh"]}
    found["dh_times_hashing"] = {"seconds": total["dh"] / total["hashing"], "bytes": size["dh"] / size["hashing"]}
    return found


def aligned(method: str, guest: list[str], host: list[str]) -> Meter:
    """One alignment from two lists of ids to two lists of rows."""
    meter = Meter()
    side = meter.of("guest", guest_sides, method, "guest", guest, ["host"])["host"]
    other = meter.of("host", host_side, method, host)
    opening = meter.sent("guest", meter.of("guest", side.open))
    answer = meter.sent("host", meter.of("host", other.open, len(guest), opening))
    meter.of("guest", side.opened, other.records, answer)
    pieces = side.pieces()
    while (piece := meter.of("guest", next, pieces, None)) is not None:
        meter.of("guest", side.take, meter.sent("host", meter.of("host", other.take, meter.sent("guest", piece))))
    places = meter.of("guest", side.places)
    rows = meter.of("guest", joint_rows, "guest", guest, {"host": places})
    joint = meter.sent("guest", meter.of("guest", mark, places, rows, other.records))
    theirs = meter.of("host", other.rows, joint)
    if len(rows) != JOINT or any(guest[g] != host[h] for g, h in zip(rows, theirs, strict=True)):
        raise RuntimeError("the alignment is wrong")
    return meter


def hashing(guest: list[str], host: list[str]) -> Meter:
    """Both send SHA-256 of their ids. Broken: ids can be guessed."""
    meter = Meter()
    own = meter.of("guest", lambda: [hashlib.sha256(i.encode()).digest() for i in guest])
    theirs = meter.of("host", lambda: [hashlib.sha256(i.encode()).digest() for i in host])
    meter.sent("guest", b"".join(own))
    meter.sent("host", b"".join(theirs))
    for party, held, other in (("guest", own, theirs), ("host", theirs, own)):
        meter.of(party, lambda held=held, other=other: [h in other for other in [set(other)] for h in held])
    return meter


if __name__ == "__main__":
    run(__doc__, measure, describe)
