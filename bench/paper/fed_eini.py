"""Fed-EINI §V (Chen et al.): Table IV, Figures 7 and 8. One model, scored by the multi-interactive protocol and by Fed-EINI.

An operator's view: test records and labels of a simulated federation, and the protocols' own scores, protocol by protocol.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score, roc_curve

from backend.crypto.registry import Cipher
from backend.crypto.workers import Workers, cores
from backend.data.table import read_labels
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport import transcript
from backend.protocols.transport.simulated_latency import Link, simulate
from backend.protocols.transport.transcript import TranscriptEntry
from backend.research.baselines.comparison import protocols
from backend.results import ModelRecord
from backend.services import Glassleaf
from backend.services.workspace import Workspace
from bench.paper.data import CREDIT, GIVE_ME_SOME, ID, SEED, Table, federate
from bench.setting import fresh_glassleaf, progress, train
from bench.stream import lengthen
from bench.tables import Results

# §V-A names 100 trees of depth 4, no learning rate
TREES = 100
DEPTH = 4
RATE = 0.1
GUEST_FEATURES = 5  # "The Guest party holds five features, and the Host party holds the remaining features", §V-D
SAMPLING = (0.2, 0.8, 1.0)
INSTANCES = (1, 10, 100, 600, 6000)
# §V-D varies {10000, 20000, 40000, 80000}; Give Me Some Credit has room for more
MANY = {CREDIT: (10_000, 20_000, 40_000, 80_000), GIVE_ME_SOME: (10_000, 40_000, 120_000)}
QUICK_MANY = (500, 1_000)
TOGETHER = 100  # instances where features or trees vary
HOST_FEATURES = (5, 10, 18)
TREE_COUNTS = (10, 20, 100)
PAPERS_KEY = 512  # bits, §V-A; factored since 1999, and refused outside tests and this comparison
RLWE = "RLWE"
PAPERS = "Paillier 512"
OURS = "Paillier 2048"
# cipher, bits, greatest number of instances that are timed with it
KEYS: dict[str, tuple[Cipher, int, int]] = {
    RLWE: ("rlwe", 2048, 10**9),
    PAPERS: ("paillier", PAPERS_KEY, 600),
    OURS: ("paillier", 2048, 10),
}
WARM = 50  # records that are scored before the clock starts
BASELINE = "MI, tree by tree"
LEVELS = "MI, level by level"
WALKS = {BASELINE: "multi-interactive-tree", LEVELS: "multi-interactive-level"}
LINKS = {"LAN": Link(0.001, 125e6), "WAN": Link()}  # 1 Gbit/s and 1 ms; 300 kB/s and 50 ms (Yao et al. §5.1)


def measure(tables: Mapping[str, Table], quick: bool) -> Results:
    """Everything of §V that the tables allow."""
    table = tables[CREDIT]
    trees, few = (10, 1) if quick else (TREES, None)
    with fresh_glassleaf(key_floor=PAPERS_KEY) as glassleaf:
        bench = _Bench(glassleaf, trees, Workers(cores()))
        results: Results = {"data": table.title, "trees": trees, "depth": DEPTH, "learning_rate": RATE}
        results |= {"guest_features": GUEST_FEATURES, "n_features": len(table.features)}
        results["sampled"] = [bench.sampled(table, rate) for rate in SAMPLING[:few]]
        whole = bench.model(table, "whole", trees)
        results["instances"] = [bench.times(whole, n, {"instances": n}) for n in INSTANCES[: few and 2]]
        results["features"] = [
            bench.times(bench.model(_narrowed(table, k), f"host{k}", trees), TOGETHER, {"features": k})
            for k in HOST_FEATURES[:few]
        ]
        results["tree_counts"] = [
            bench.times(bench.model(table, f"trees{k}", k), TOGETHER, {"trees": k}) for k in TREE_COUNTS[:few]
        ]
        if GIVE_ME_SOME in tables:
            results["other_data"] = other_data(bench, tables[GIVE_ME_SOME], few)
        bench.close()
    return results


def measure_many(tables: Mapping[str, Table], quick: bool) -> Results:
    """Figures 7 and 8 a on as many instances as the paper has: a model's records, repeated under new ids if they are too few.

    A party works in one thread, and its work is that thread's processor time. Other processes of the machine lengthen it, but far less
    than the time by the clock.
    """
    trees = 10 if quick else TREES
    results: Results = {"trees": trees, "depth": DEPTH, "sets": []}
    processor_time = SimpleNamespace(perf_counter=time.thread_time)
    with fresh_glassleaf(key_floor=PAPERS_KEY) as glassleaf, patch.object(transcript, "time", processor_time):
        bench = _Bench(glassleaf, trees, Workers())
        for name, sizes in MANY.items():
            if name in tables:
                points = bench.many(tables[name], QUICK_MANY if quick else sizes)
                results["sets"].append({"data": tables[name].title, **points})
        bench.close()
    return results


def other_data(bench: _Bench, table: Table, few: int | None) -> Results:
    """Return Table IV's figures on Give Me Some Credit, which the paper cites for the set that has the credit cards' size."""
    return {"data": table.title, "lines": [bench.quality(table, rate) for rate in SAMPLING[:few]]}


def _narrowed(table: Table, host_features: int) -> Table:
    """The Guest's five features and `host_features` others."""
    kept = table.features[: GUEST_FEATURES + host_features]
    return replace(table, frame=table.frame[[ID, *kept, table.label]])


@dataclass(frozen=True)
class _Run:
    """One protocol on some records."""

    units: NDArray[np.int64]
    transcript: tuple[TranscriptEntry, ...]

    def costs(self) -> Results:
        over = {name: simulate(self.transcript, link) for name, link in LINKS.items()}
        lan = over["LAN"]
        seconds = {name: exchange.total for name, exchange in over.items()}
        return {"rounds": lan.rounds, "bytes": lan.bytes, "compute": lan.compute, "seconds": seconds}


class _Bench:
    """Trains through the service, and runs one protocol at a time on the model's test records."""

    def __init__(self, glassleaf: Glassleaf, trees: int, workers: Workers) -> None:
        self._glassleaf = glassleaf
        self._trees = trees
        self._workspace = Workspace(glassleaf.home, PAPERS_KEY, pools=False, workers=workers)
        self._workers = workers

    def close(self) -> None:
        """Stop the Hosts and the workers."""
        self._workspace.close()
        self._workers.close()

    def model(self, table: Table, name: str, trees: int) -> ModelRecord:
        """Grown on plaintext: ciphertexts give the same trees, byte for byte (docs/speed.md measures that)."""
        progress(f"fed-eini: growing {name}, {trees} trees")
        federation = federate(self._glassleaf, table, table.features[:GUEST_FEATURES], name)
        parameters = SecureBoostParameters(trees=trees, depth=DEPTH, learning_rate=RATE, cipher="none")
        return train(self._glassleaf, federation, parameters)

    def sampled(self, table: Table, rate: float) -> Results:
        """A line of Table IV and a group of Figure 7: all test records of a sample of the table."""
        record = self.model(table.sample(round(rate * len(table.frame))), f"rate{rate * 100:.0f}", self._trees)
        n = record.parts["test"]
        rows = self._rows(record, n)
        runs = self._runs(record, rows)
        labels = read_labels(self._glassleaf.federations.get(record.federation))[rows]
        quality = {name: auc_and_ks(labels, run.units) for name, run in runs.items()}
        line = {"rate": rate, "instances": n, "auc_training": record.curve[-1].auc_training, "quality": quality}
        return line | _costs(runs)

    def quality(self, table: Table, rate: float) -> Results:
        """AUC and KS of a model on the test records of a sample of a table, as the service measures them."""
        record = self.model(table.sample(round(rate * len(table.frame))), f"{table.name}{rate * 100:.0f}", self._trees)
        return {"rate": rate, "instances": record.metrics.n, "auc": record.metrics.auc, "ks": record.metrics.ks}

    def times(self, record: ModelRecord, n: int, point: Results) -> Results:
        """One point of Figure 8."""
        n = min(n, record.parts["test"])
        return point | {"scored": n, **_costs(self._runs(record, self._rows(record, n)))}

    def many(self, table: Table, sizes: Sequence[int]) -> Results:
        """Points on the first `n` of all records, of which some were trained on: that changes no time."""
        record = self.model(table, f"{table.name}_many", self._trees)
        lengthen(self._glassleaf.federations.get(record.federation), max(sizes[-1], len(table.frame)))
        points = [{"scored": n, **_costs(self._runs(record, np.arange(n)))} for n in sizes]
        return {"records": len(table.frame), "leaves": record.n_leaves, "points": points}

    def _runs(self, record: ModelRecord, rows: NDArray[np.intp]) -> dict[str, _Run]:
        """Every protocol on the same rows; each first scores some that are not counted, so that workers know the key."""
        n = len(rows)
        progress(f"fed-eini: scoring {n:,} records with {record.n_leaves:,} leaves")
        runtime = self._workspace.runtime(record.federation)
        model = self._glassleaf.models.guest_model(record.id)
        compiled = CompiledGuest(model)
        table = runtime.table.take(rows)
        first = table.take(np.arange(min(n, WARM)))
        runs = {}
        for name, protocol, (cipher, bits) in [
            *((name, protocol, ("none", 2048)) for name, protocol in WALKS.items()),
            *((name, "fed-eini", (cipher, bits)) for name, (cipher, bits, max_n) in KEYS.items() if n <= max_n),
        ]:
            key = runtime.keys.scoring(cipher, bits, compiled)
            every = protocols(runtime.guest, model, compiled, key, workers=self._workers)
            for records in (first, table):
                # no budget is spent, as in every comparison
                session = runtime.open_session(record.hosts, counted=False)
                try:
                    outcome = every[protocol].run(record.id, records, session)
                finally:
                    transcript = session.close()
            runs[name] = _Run(np.asarray(outcome.scored.units, dtype=np.int64).reshape(n, -1)[:, 0], transcript)
        return runs

    def _rows(self, record: ModelRecord, n: int) -> NDArray[np.intp]:
        parts = self._glassleaf.samples.table(record.id)["part"].to_numpy()
        return np.random.default_rng(SEED).permutation(np.flatnonzero(parts == "test"))[:n]


def auc_and_ks(labels: NDArray[np.float64], scores: NDArray[Any]) -> dict[str, float]:
    """§V-A: area under the curve, and the largest difference of true and false positive rate."""
    false, true, _ = roc_curve(labels, scores)
    return {"auc": float(roc_auc_score(labels, scores)), "ks": float(np.max(true - false))}


def _costs(runs: Mapping[str, _Run]) -> Results:
    """Times over both links, and whether all scores are the same."""
    equal = all(bool((run.units == runs[BASELINE].units).all()) for run in runs.values())
    return {"equal": equal, "runs": {name: run.costs() for name, run in runs.items()}}
