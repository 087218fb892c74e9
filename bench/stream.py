"""Rows a second and peak memory of `glassleaf score` over a long table: the credit-card model, its rows repeated under new ids.

The command runs as a user has it, in a process of its own: reading twice, both parties' work, journal, audit log and Parquet out are
counted, and so is starting. Memory is the sum of what the process and its workers hold, looked at ten times a second; pages that they share
count for each of them, so it is an upper bound; files in memory by which tasks pass to workers count as well. The Host's whole table is in
it, which a simulated Host holds in the same process; the Guest's columns come with the people. Processor time is of the same processes,
starting included; on a machine that others use it is the figure to compare. The peer is the same command on plaintext.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from backend.data.federation import Federation
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import SCORED
from backend.services import Glassleaf
from bench.aims import aims_of
from bench.cases import DEPTH, TREES, case_of
from bench.floors import rlwe_batch
from bench.setting import ABSENT, add_credit_card, fresh_folder, progress, run, train

ROWS = int(os.environ.get("STREAM_ROWS", "50000"))  # a million: STREAM_ROWS=1000000
QUICK_ROWS = 6_000
GROUP = 8_192  # rows that are scored together
BLOCK = 512  # bytes in which a file's room is counted (stat)
ROOT = Path(__file__).resolve().parents[1]


def measure(quick: bool = False) -> dict[str, Any]:
    """One scoring of many rows."""
    rows = QUICK_ROWS if quick else ROWS
    with fresh_folder() as folder:
        with Glassleaf(folder / "home", pools=False) as glassleaf:
            progress("stream: the model")
            name = add_credit_card(glassleaf)
            if name is None:
                return {"skipped": ABSENT}
            asked = SecureBoostParameters(trees=3 if quick else TREES, depth=DEPTH, cipher="none")
            floor = rlwe_batch(case_of(glassleaf, train(glassleaf, name, asked), "credit card"), GROUP)
            federation = glassleaf.federations.get(name)
        progress(f"stream: {rows:,} rows")
        lengthen(federation, rows)
        guest = federation.guest
        people = pd.read_csv(federation.folder / guest.file, dtype=str, keep_default_na=False)
        people[[guest.id, *(feature.name for feature in guest.features)]].to_parquet(folder / "people.parquet")
        del people
        seconds, largest, processor = scored(folder, "")
        found = pd.read_parquet(folder / "scores.parquet", columns=["status"])
        (folder / "scores.parquet").unlink()
        progress("stream: on plaintext")
        plain_seconds, plain_largest, _ = scored(folder, "none")
    return {
        "rows": len(found),
        "scored": int(found.status.isin(SCORED).sum()),
        "seconds": seconds,
        "rows_per_second": len(found) / seconds,
        "processor_ms_per_row": 1000 * processor / len(found),
        "peak_bytes": largest,
        "plain_rows_per_second": len(found) / plain_seconds,
        "plain_peak_bytes": plain_largest,
        "floor": floor,
    }


def lengthen(federation: Federation, rows: int) -> None:
    """Repeat every party's rows under new ids until there are so many, or cut them; the model was trained on the originals."""
    for party in federation.parties:
        repeat(federation.folder / party.file, party.id, rows)


def repeat(file: Path, ids: str, rows: int) -> None:
    """The same for one party's table, whose column of ids is `ids`."""
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    times = -(-rows // len(table))
    parts = [table.assign(**{ids: table[ids] + (f"r{k}" if k else "")}) for k in range(times)]
    pd.concat(parts).head(rows).to_csv(file, index=False)


def scored(folder: Path, cipher: str) -> tuple[float, int, float]:
    """Seconds, the most bytes that the command and its workers held, and the processor's seconds that they took."""
    words = [sys.executable, "-m", "backend", "score", "latest", folder / "people.parquet"]
    words += ["--out", folder / "scores.parquet", *(["--cipher", cipher] if cipher else [])]
    command = [str(word) for word in words]
    largest = 0
    began = time.perf_counter()
    processor = dict[int, float]()
    environment = {**os.environ, "GLASSLEAF_HOME": str(folder / "home")}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=sys.stderr) as running:  # noqa: S603 (our own command)
        watched = psutil.Process(running.pid)
        while running.poll() is None:
            largest = max(largest, held(watched))
            processor |= worked(watched)
            time.sleep(0.1)
    seconds = time.perf_counter() - began
    if running.returncode:
        raise SystemExit(f"The command ended with status {running.returncode}.")
    return seconds, largest, sum(processor.values())


def held(process: psutil.Process) -> int:
    """Bytes in memory of a process and all below it, and of the files in memory that they have open."""
    total = 0
    files = dict[int, int]()
    for one in [process, *children(process)]:
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
        files |= in_memory(one.pid)
    return total + sum(files.values())


def in_memory(process: int) -> dict[int, int]:
    """Bytes of the files without a name that a process has open in memory, by their number in the system."""
    found = {}
    with suppress(OSError):
        for one in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                if str(one.readlink()).startswith("/memfd:"):
                    is_it = one.stat()
                    found[is_it.st_ino] = is_it.st_blocks * BLOCK
    return found


def worked(process: psutil.Process) -> dict[int, float]:
    """Seconds that a process and all below it have kept processors busy, by process."""
    found = {}
    for one in [process, *children(process)]:
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        found[one.pid] = times.user + times.system
    return found


def children(process: psutil.Process) -> list[psutil.Process]:
    """Processes below one; none once it has ended."""
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


if __name__ == "__main__":
    run(__doc__, measure, aims_of("stream"))
