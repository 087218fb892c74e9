"""How cost grows with samples, leaves, Hosts and cores, and where the time goes: compute, serialise, wire, each against its floor.

One party after the other on one core, unless cores are what is counted. Paillier cold. Points that would take longer than CAP are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierSecretKey
from backend.crypto.workers import Workers
from backend.errors import ParameterError
from bench.cases import Case, credit_card_case, random_case
from bench.chain import Run, median_seconds, run_chain
from bench.engines import Sides, paillier_sides, paillier_tables, plain_sides, rlwe_parameters, rlwe_sides
from bench.parties import ServedParties
from bench.peers import TEXTBOOK_NUMBERS, phe_peer
from bench.setting import REPEATS, fresh_folder, progress, run
from bench.tables import curves as describe
from bench.timing import on_cores, repeated
from bench.where import time_by_stage

CAP = 60.0  # seconds a point may take
SAMPLES = (1, 10, 100, 1000, 10_000, 100_000)
LEAVES = (100, 300, 1000, 3000, 10_000)
HOSTS = (1, 2, 3, 4, 5)
CORES = (1, 2)
BATCH = 500  # samples, where RLWE is measured in bulk
GROWN = 1500  # leaves, where something else grows
ON_CORES = {"rlwe": 8192, "paillier": 20}  # samples

Point = dict[str, Any]


def measure(quick: bool = False) -> dict[str, Any]:
    """Every curve; `quick` on tiny settings, to see that everything runs."""
    case = random_case(100) if quick else credit_card_case() or random_case(GROWN)
    sizes = (512,) if quick else (2048, 3072)
    with fresh_folder() as folder:
        bench = _Bench(folder, 2 if quick else REPEATS, sizes)
        with on_cores(1):
            results: dict[str, Any] = {"repeats": bench.repeats, "cap_seconds": CAP, "sample": case.facts()}
            results["textbook"] = [bench.textbook(case, bits) for bits in sizes]
            results["samples"] = bench.by_samples(case, SAMPLES[:2] if quick else SAMPLES)
            leaves, hosts = (LEAVES[:1], HOSTS[:2]) if quick else (LEAVES, HOSTS)
            results["leaves"] = [point for n in leaves for point in bench.sample(random_case(n), {"leaves": n})]
            grown = 100 if quick else GROWN
            results["hosts"] = [point for n in hosts for point in bench.sample(random_case(grown, n), {"hosts": n})]
            results["where"] = time_by_stage(case, bench.secrets, bench.folder, bench.repeats, quick)
        results["cores"] = bench.by_cores(case, {"rlwe": 20, "paillier": 2} if quick else ON_CORES)
    return results


class _Bench:
    """Keys and tables, and one method a curve."""

    def __init__(self, folder: Path, repeats: int, sizes: tuple[int, ...]) -> None:
        progress("keys and tables")
        self.folder = folder
        self.repeats = repeats
        self.secrets = {bits: PaillierSecretKey.generate(bits, min(bits, KEY_BITS_FLOOR)) for bits in sizes}
        for secret in self.secrets.values():
            paillier_tables(secret, folder, "full")

    def textbook(self, case: Case, bits: int) -> Point:
        """`phe`: a number a leaf."""
        phe = phe_peer(self.secrets[bits])
        values = np.array(case.guest.encode(case.records(TEXTBOOK_NUMBERS).columns, TEXTBOOK_NUMBERS)[0])
        each = median(phe.encrypt("cold", values) for _ in range(self.repeats))
        return {"bits": bits, "encrypt_seconds": each, "per_second": 1 / (each * case.model.n_leaves)}

    def by_samples(self, case: Case, sizes: tuple[int, ...]) -> list[Point]:
        """Scores a second by batch size."""
        points: list[Point] = []
        makers: dict[str, Callable[[], Sides]] = {"rlwe": partial(rlwe_sides, case), "none": partial(plain_sides, case)}
        for bits, secret in self.secrets.items():
            makers[f"paillier {bits}"] = partial(paillier_sides, secret, self.folder, len(case.hosts))
        for name, make in makers.items():
            progress(f"samples: {name}")
            sides = make()
            before = 0.0
            for n in sizes:
                point = {"engine": name, "samples": n}
                before *= 10  # ten times the samples of the last point
                if before > CAP:
                    points.append(point | {"left_out": f"about {before:.0f} s, more than {CAP:.0f}"})
                    continue
                runs = repeated(partial(run_chain, case, sides.key, sides.hosts, n), self.repeats)
                before = median(r.total for r in runs)
                points.append(point | {"seconds": before, "per_second": n / before, "repeats": len(runs)})
        return points

    def sample(self, case: Case, size: Point) -> list[Point]:
        """Seconds of one sample, and of one in a batch, at some size."""
        progress(f"{size}")
        bits = min(self.secrets)
        facts = size | {"entries": case.guest.folding.n_entries}
        sides = paillier_sides(self.secrets[bits], self.folder, len(case.hosts))
        points = [facts | {"engine": f"paillier {bits}"} | self._seconds(case, sides, 1)]
        del sides
        try:
            name = rlwe_parameters(case).name
            lattice = rlwe_sides(case)
        except ParameterError as error:
            return [*points, facts | {"engine": "rlwe", "left_out": str(error)}]
        facts |= {"engine": "rlwe", "key": name}
        return points + [facts | self._seconds(case, lattice, n) for n in (1, BATCH)]

    def _seconds(self, case: Case, sides: Sides, n: int) -> Point:
        runs: list[Run] = repeated(partial(run_chain, case, sides.key, sides.hosts, n), self.repeats)
        seconds = median_seconds(runs, case.model.guest)
        return {
            "samples": n,
            "seconds_a_sample": seconds["seconds"] / n,
            "guest_seconds_a_sample": seconds["guest_seconds"] / n,
            "bytes_a_sample": sum(runs[0].bytes.values()) / n,
            "repeats": len(runs),
        }

    def by_cores(self, case: Case, sizes: dict[str, int]) -> list[Point]:
        """Scores a second of the service's own parties, by cores, with a worker a core."""
        points = []
        bits = min(self.secrets)
        keys = {"rlwe": rlwe_sides(case).key, "paillier": paillier_sides(self.secrets[bits], self.folder, 1).key}
        for name, key in keys.items():
            for cores in CORES:
                progress(f"cores: {name}, {cores}")
                with on_cores(cores):
                    parties = ServedParties(case, 0, self.folder, Workers(cores))
                    seconds = parties.seconds(key, sizes[name], Workers(cores), self.repeats)
                    parties.close()
                middle = median(seconds)
                title = name if name == "rlwe" else f"{name} {bits}"
                point = {"engine": title, "cores": cores, "samples": sizes[name], "repeats": len(seconds)}
                points.append(point | {"seconds": middle, "per_second": sizes[name] / middle})
        return points


if __name__ == "__main__":
    run(__doc__, measure, describe)
