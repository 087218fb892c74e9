"""The federated random forest (Yao et al., MLSys 2022) in kind: Tables 2, 4, 5 and 6 on a9a, credit-card and bank data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from statistics import mean, median

import numpy as np
from sklearn.metrics import roc_auc_score

from backend.crypto.registry import Cipher
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.training.row_sets import Flags, as_bits, as_gaps, pack_rows, unpack_rows
from backend.protocols.transport.simulated_latency import Link, simulate
from backend.research.baselines.comparison import ProtocolResult
from backend.results import ModelRecord
from backend.services import Glassleaf
from backend.services.protocol_comparison import ComparisonRequest
from backend.services.training import TrainingRequest
from bench.paper.centralised_trees import random_forest
from bench.paper.data import A9A, BANK, CREDIT, SEED, Table, federate
from bench.pooled import pooled
from bench.setting import REPEATS, fresh_glassleaf, progress
from bench.tables import Results
from bench.timing import repeated, seconds_of

Parameters = ForestParameters | SecureBoostParameters

BINS = 100  # "We set P to be around 100", §3.1
FOREST = ForestParameters(trees=50, depth=10, bins=BINS, cipher="none")  # §5.2.2
BOOST = SecureBoostParameters(trees=25, depth=6, bins=BINS, cipher="none")  # §5.2.2; the learning rate is not given
CIPHER: Cipher = "paillier"
BITS = 2048
TIMED_ROWS = 4500  # records of a training that is timed on ciphertexts: the bank table's
TIMED_TREES = {"forest": 10, "secureboost": 5}  # twice as many, as in §5.2.2; a training is linear in its trees
TIMED_DEPTH = 6  # of both, SecureBoost's in §5.2.2
LINK = Link()  # 300 kB/s and 50 ms, §5.1
BATCH = 100  # queries a batch, §5.2.2
QUERIES = 10  # queries, or batches, over which a mean is taken
# Table 6
RECORDS = 1_000_000
RATES = (0.1, 0.5, 0.9)


def measure(tables: Mapping[str, Table], quick: bool) -> Results:
    """Everything of §5 and appendix D.1 that the tables allow."""
    forest = replace(FOREST, trees=5, depth=4) if quick else FOREST
    boost = replace(BOOST, trees=5, depth=3) if quick else BOOST
    timed = TIMED_ROWS // 10 if quick else TIMED_ROWS
    with fresh_glassleaf() as glassleaf:
        results: Results = {"bits": BITS, "forest": forest.as_dict(), "boost": boost.as_dict()}
        results |= {"auc": [], "training": []}
        for name in (CREDIT, BANK, A9A):
            if name not in tables:
                continue
            table = tables[name]
            whole = _divided(glassleaf, table, name)
            progress(f"forest: quality on {table.title}")
            grown = _train(glassleaf, whole, forest)[0]
            boosted = _train(glassleaf, whole, boost)[0]
            results["auc"].append({"data": table.title} | _quality(glassleaf, grown, boosted, forest))
            if name == CREDIT:
                results["serving"] = _serving(glassleaf, grown, boosted, quick)
            part = _divided(glassleaf, table.sample(timed), f"{name}_timed")
            progress(f"forest: training times on {table.title}")
            results["training"].append({"data": table.title} | _times(glassleaf, part, forest, boost))
    results["row_sets"] = [_row_set(RECORDS, rate) for rate in RATES]
    return results


def _divided(glassleaf: Glassleaf, table: Table, name: str) -> str:
    """Every party holds as many features; a9a has three parties, as in the paper."""
    n_hosts = 2 if table.name == A9A else 1
    return federate(glassleaf, table, table.first(1 / (1 + n_hosts)), name, n_hosts)


def _train(glassleaf: Glassleaf, federation: str, parameters: Parameters) -> tuple[ModelRecord, Results]:
    """A model, and what its training took here and would take over the paper's link."""
    job = glassleaf.training.start(TrainingRequest(federation, parameters, most_named=1.0))
    record = job.get()
    exchange = simulate(job.transcript, LINK)
    costs = {"linked_seconds": exchange.total, "bytes": exchange.bytes, "rounds": exchange.rounds}
    return record, costs | {"splits": record.n_leaves - record.n_trees, "seconds": record.seconds}


def _quality(glassleaf: Glassleaf, grown: ModelRecord, boosted: ModelRecord, forest: ForestParameters) -> Results:
    """A line of Table 4."""
    data = pooled(glassleaf, grown, BINS)
    share = random_forest(data, forest.trees, forest.depth, forest.min_samples_leaf)
    return {
        "test": grown.parts["test"],
        "secureboost": boosted.metrics.auc,
        "forest": grown.metrics.auc,
        "centralised": float(roc_auc_score(data.labels[data.test], share)),
    }


def _times(glassleaf: Glassleaf, federation: str, forest: ForestParameters, boost: SecureBoostParameters) -> Results:
    """A line of Table 2, on ciphertexts."""
    results: Results = {"trees": TIMED_TREES, "depth": TIMED_DEPTH}
    depth = min(TIMED_DEPTH, boost.depth)
    trainings: dict[str, Parameters] = {
        # generates the key and both parties' tables, which later trainings reuse
        "warm": replace(forest, trees=1, depth=1),
        "forest": replace(forest, trees=min(TIMED_TREES["forest"], forest.trees), depth=depth),
        "secureboost": replace(boost, trees=min(TIMED_TREES["secureboost"], boost.trees), depth=depth),
    }
    for name, parameters in trainings.items():
        record, results[name] = _train(glassleaf, federation, replace(parameters, cipher=CIPHER, key_bits=BITS))
        results["records"] = record.parts["training"]
    return results


def _serving(glassleaf: Glassleaf, grown: ModelRecord, boosted: ModelRecord, quick: bool) -> list[Results]:
    """Table 5: SecureBoost and the forest queried node by node, then the forest in one round, streamed and batched."""
    progress("forest: serving")
    times = 2 if quick else QUERIES
    queries = [
        ("SecureBoost", boosted, "multi-interactive-node", 1),
        ("unoptimised, node by node", grown, "multi-interactive-node", 1),
        ("unoptimised, level by level", grown, "multi-interactive-level", 1),
        ("streaming", grown, "one-round-streaming", 1),
        ("batching", grown, "one-round-batched", min(BATCH, grown.parts["test"])),
    ]
    return [
        {"model": title} | _served(glassleaf, record, protocol, together, times)
        for title, record, protocol, together in queries
    ]


def _served(glassleaf: Glassleaf, record: ModelRecord, protocol: str, together: int, times: int) -> Results:
    """Means over `times` queries, or batches of `together` queries, one after the other."""
    rows = [
        glassleaf.protocol_comparison.start(
            ComparisonRequest(record.id, together, cipher="none", names=(protocol,), seed=seed)
        )
        .get()
        .runs.over(LINK)
        .rows[0]
        for seed in range(times)
    ]
    latency = mean(row.exchange.total for row in rows)
    return {
        "together": together,
        "times": times,
        "rounds": mean(row.exchange.rounds for row in rows),
        "bytes": mean(row.exchange.bytes for row in rows) / together,
        "latency": latency,
        "per_second": together / latency,
        "at_most": together / mean(map(_busiest, rows)),
    }


def _busiest(row: ProtocolResult) -> float:
    """Seconds of the party, or of the uplink, that has most to do: what bounds the rate when many batches are under way at once."""
    sent: dict[str, int] = {}
    for entry in row.transcript:
        sent[entry.sender] = sent.get(entry.sender, 0) + entry.bytes
    return max(*row.exchange.work.values(), *(size / LINK.bandwidth for size in sent.values()))


def _as_json(flags: Flags) -> bytes:
    """The paper's vanilla form, the indices as text."""
    return json.dumps(np.flatnonzero(flags).tolist(), separators=(",", ":")).encode()


def _row_set(n: int, rate: float) -> Results:
    """Three lines of Table 6: the same set as JSON, as bits and as gaps; and what is sent."""
    progress(f"forest: sets of rows at {rate:.0%}")
    flags = np.random.default_rng(SEED).random(n) < rate
    forms = {"V0": _as_json, "V1": as_bits, "V2": as_gaps}
    costs = {
        name: {"bytes": len(form(flags)), "seconds": median(repeated(partial(seconds_of, form, flags), REPEATS))}
        for name, form in forms.items()
    }
    sent = pack_rows(flags)
    exact = bool((unpack_rows(sent, n) == flags).all())
    return {"records": n, "rate": rate, "forms": costs, "sent": len(sent), "exact": exact}
