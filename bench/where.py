"""Where the time of one sample and of a bulk batch goes: stage by stage, and on two wires, each beside its floor."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from backend.crypto.paillier.keys import PaillierSecretKey
from bench.cases import Case
from bench.chain import Run, run_chain
from bench.engines import paillier_sides, rlwe_sides
from bench.floors import GUEST, HOST, Floors, PaillierFloor, RlweFloor, copied
from bench.setting import progress
from bench.timing import repeated

WIRES = {"300 kB/s, 50 ms": (300e3, 0.05), "1 Gbit/s, 1 ms": (125e6, 0.001)}
BULK = {"rlwe": 5000, "paillier": 4}


def time_by_stage(
    case: Case, secrets: dict[int, PaillierSecretKey], folder: Path, repeats: int, quick: bool
) -> list[dict[str, Any]]:
    """One entry a cipher, state (cold or warm) and batch size."""
    rows = []
    sizes = dict.fromkeys(BULK, 5) if quick else BULK
    for bits, secret in secrets.items():
        progress(f"where the time goes: paillier {bits}")
        floor = PaillierFloor(secret)
        hosts = len(case.hosts)
        ready = (repeats + 1) * case.guest.folding.n_entries
        for how, warm, samples in (("cold", 0, (1, sizes["paillier"])), ("warm", ready, (1,))):
            sides = paillier_sides(secret, folder, hosts, "full", warm)
            for n in samples:
                runs = repeated(partial(run_chain, case, sides.key, sides.hosts, n), repeats)
                row = _row(case, n, runs, floor.of(case, n, runs[0].kept, bool(warm)))
                rows.append({"engine": f"paillier {bits}", "how": how, "costs": floor.costs} | row)
    progress("where the time goes: rlwe")
    for how in ("cold", "warm"):
        sides = rlwe_sides(case, warm=how == "warm")
        sent = case.model.guest, case.chain[0]
        lattice = RlweFloor(sides.hosts[0].zeros)
        for n in (1, sizes["rlwe"]):
            runs = repeated(partial(run_chain, case, sides.key, sides.hosts, n), repeats)
            row = _row(case, n, runs, lattice.of(runs[0].rounds, runs[0].bytes[sent], how == "warm"))
            rows.append({"engine": "rlwe", "how": how, "costs": lattice.costs} | row)
    return rows


def _row(case: Case, n: int, runs: list[Run], floors: Floors) -> dict[str, Any]:
    one = runs[0]
    waits = one.rounds * (len(case.chain) + 1)
    sent = sum(one.bytes.values())
    stages = []
    for party, stage in one.seconds:
        part = GUEST if party == case.model.guest else HOST
        floor, words = floors.get((part, stage), (None, ""))
        if stage == "serialise":
            floor = copied(sent)
            words = f"{sent:,} bytes copied once"
        seconds = median(r.seconds[party, stage] for r in runs)
        stages.append({"party": party, "stage": stage, "seconds": seconds, "floor_seconds": floor, "floor": words})
    return {
        "samples": n,
        "repeats": len(runs),
        "seconds": median(r.total for r in runs),
        "bytes": sent,
        "rounds": one.rounds,
        "stages": stages,
        "wires": [
            {"wire": name, "seconds": sent / rate + waits * latency, "floor_seconds": sent / rate}
            for name, (rate, latency) in WIRES.items()
        ],
    }
