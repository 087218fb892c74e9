"""Many samples at once: on one core, both parties' work counted; and on two, as two processes or as the service's own workers."""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import Any

from backend.crypto.workers import Workers
from bench.cases import Case
from bench.chain import median_seconds
from bench.engines import Engine, rlwe_sides
from bench.parties import HostProcess, ServedParties
from bench.setting import fresh_folder, progress
from bench.timing import on_cores, repeated

SIZES = {"paillier": (4,), "paillier-short": (4,), "rlwe": (1, 5, 50, 500, 5000, 8192), "none": (5000,)}
TWO_CORES = (5000, 8192)
QUICK = (5,)


def bulk(engine: Engine, repeats: int, quick: bool) -> list[dict[str, Any]]:
    """Batches of several sizes, cold, one party after the other on one core."""
    progress(f"bulk: {engine.label} {engine.key}")
    rows = []
    for samples in QUICK if quick else SIZES[engine.name]:
        began = time.process_time()
        runs = repeated(partial(engine.sample, "cold", samples), repeats)
        worked = time.process_time() - began
        seconds = median_seconds(runs, engine.guest)
        row = {
            "engine": engine.name,
            "label": engine.label,
            "key": engine.key,
            "samples": samples,
            "repeats": len(runs),
        }
        row |= seconds | {"cpu_seconds": worked / len(runs), "per_second": samples / seconds["seconds"]}
        rows.append(row | {"bytes_a_sample": sum(runs[0].bytes.values()) / samples})
    return rows


def two_cores(case: Case, repeats: int, quick: bool) -> list[dict[str, Any]]:
    """RLWE: Guest and Host in a process and on a core each; and the service's parties with two workers."""
    progress("bulk: RLWE on two cores")
    key = rlwe_sides(case).key
    rows: list[dict[str, Any]] = []
    sizes = QUICK if quick else TWO_CORES
    if len(case.hosts) == 1:
        with HostProcess(case, key) as other, on_cores(1):
            other.score(1)
            for samples in sizes:
                runs = repeated(partial(other.score, samples), repeats)
                row = {name: median(run[name] for run in runs) for name in runs[0]}
                rows.append({"how": "Guest and Host a process each", "samples": samples, "repeats": len(runs)} | row)
    with fresh_folder() as folder, on_cores(2):
        parties = ServedParties(case, 0, folder, Workers(2))
        for samples in sizes:
            times = parties.seconds(key, samples, Workers(2), repeats)
            rows.append({"how": "two workers", "samples": samples, "repeats": len(times), "seconds": median(times)})
        parties.close()
    return [row | {"per_second": row["samples"] / row["seconds"]} for row in rows]
