"""FL-DT §4 (Guo et al.): Table 2's accuracies with one party's and the pooled table's trees beside them, Figures 6 and 7."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import mean

from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.simulated_latency import Link
from backend.results import ModelRecord
from backend.services import Glassleaf
from backend.services.protocol_comparison import ComparisonRequest
from backend.trees.ensemble import Split
from bench.paper.centralised_trees import decision_tree
from bench.paper.data import BANK, CAR, CREDIT, GIVE_ME_SOME, Table, federate
from bench.pooled import pooled
from bench.setting import fresh_glassleaf, progress, train
from bench.tables import Results

Parameters = DecisionTreeParameters | SecureBoostParameters

THETA = 0.7  # §4.2, as are the defaults of DecisionTreeParameters
REPEATS = 10  # §4.2
SWEEP_REPEATS = 3
THETAS = (0.1, 0.3, 0.5, 0.7, 0.9)
BINS = (4, 16, 64, 256)
DEPTHS = (2, 3, 4, 5, 6, 8, 10)
TIMED_BINS = (16, 64, 256)
TIMED_DEPTHS = (3, 5, 7)
TIMED_SHARES = (0.25, 0.5, 1.0)
QUICK_ROWS = 600  # of a training that is timed
PREDICTED = 1000  # records that are predicted together
BITS = 2048
LAN = Link(0.001, 125e6)  # 1 Gbit/s and 1 ms; the paper's two cloud servers are not described further
PLAIN = DecisionTreeParameters(cipher="none")
TIMED = DecisionTreeParameters(cipher="paillier", key_bits=BITS)
WARM = replace(TIMED, depth=1, bins=2)  # generates the key and both parties' tables, which are reused
# "one tree only", §4.1.3
ONE_TREE = SecureBoostParameters(trees=1, depth=5, bins=256, learning_rate=1.0, cipher="none")


def measure(tables: Mapping[str, Table], quick: bool) -> Results:
    """Everything of §4 that the tables allow."""
    with fresh_glassleaf() as glassleaf:
        bench = _Bench(glassleaf, 1 if quick else SWEEP_REPEATS)
        repeats, few = (1, 2) if quick else (REPEATS, None)
        credit = tables[CREDIT]
        results: Results = {"theta": THETA, "repeats": repeats, "sweep_repeats": bench.repeats, "bits": BITS}
        results |= {"parameters": PLAIN.as_dict(), "data": credit.title, "predicted": PREDICTED}
        compared = [tables[name] for name in (CREDIT, BANK, GIVE_ME_SOME, CAR) if name in tables]
        results["accuracy"] = [bench.accuracy(table, repeats) for table in compared]
        results["bins"] = [bench.point(credit, THETA, replace(PLAIN, bins=b), b) for b in BINS[:few]]
        results["depth"] = [bench.point(credit, THETA, replace(PLAIN, depth=h), h) for h in DEPTHS[:few]]
        results["theta_sweep"] = [bench.point(credit, theta, PLAIN, theta) for theta in THETAS[:few]]
        table, few = (credit.sample(QUICK_ROWS), 1) if quick else (credit, None)
        sizes = [round(share * len(table.frame)) for share in TIMED_SHARES[:few]]
        results["time_bins"] = [bench.time(table, replace(TIMED, bins=b), b) for b in TIMED_BINS[:few]]
        results["time_depth"] = [bench.time(table, replace(TIMED, depth=h), h) for h in TIMED_DEPTHS[:few]]
        results["time_records"] = [bench.time(table.sample(n), TIMED, n) for n in sizes]
    return results


class _Bench:
    """Trains through the service; a federation a table and θ.

    Parameters
    ----------
    repeats : int
        Seeds over which a point of a curve is averaged.
    """

    def __init__(self, glassleaf: Glassleaf, repeats: int) -> None:
        self.glassleaf = glassleaf
        self.repeats = repeats
        self._federations: dict[tuple[str, int, float], str] = {}
        self._warm: set[tuple[str, int, float]] = set()

    def train(self, table: Table, theta: float, parameters: Parameters) -> ModelRecord:
        """One model; the Guest holds the first `theta` of the features."""
        key = table.name, len(table.frame), theta
        if key not in self._federations:
            name = f"f{len(self._federations)}"
            self._federations[key] = federate(self.glassleaf, table, table.first(theta), name)
        return train(self.glassleaf, self._federations[key], parameters)

    def accuracy(self, table: Table, repeats: int) -> Results:
        """A line of Table 2, in the mean of `repeats` divisions into training and test records."""
        progress(f"fl-dt: {repeats} divisions of {table.title}")
        at_a = table.first(THETA)
        held = {"pooled": table.features, "part_a": at_a, "part_b": [f for f in table.features if f not in at_a]}
        trees = [self.train(table, THETA, replace(PLAIN, seed=seed)) for seed in range(repeats)]
        boosted = [self.train(table, THETA, replace(ONE_TREE, seed=seed)) for seed in range(repeats)]
        every = [pooled(self.glassleaf, record, PLAIN.bins) for record in trees]
        return {
            "table": table.name,
            "data": table.title,
            "parts": trees[0].parts,
            "features": [len(at_a), len(held["part_b"])],
            "fl_dt": mean(r.metrics.accuracy for r in trees),
            "auc": mean(r.metrics.auc for r in trees),
            "secureboost": mean(r.metrics.accuracy for r in boosted),
            "secureboost_auc": mean(r.metrics.auc for r in boosted),
            "most_frequent": mean(a.most_frequent() for a in every),
            **{n: mean(decision_tree(a, f, PLAIN.depth, PLAIN.min_gain) for a in every) for n, f in held.items()},
            "in_file_order": decision_tree(every[0].in_file_order(), None, PLAIN.depth, PLAIN.min_gain),
        }

    def point(self, table: Table, theta: float, parameters: DecisionTreeParameters, at: float) -> Results:
        """A point of Figure 6, in the mean of some divisions."""
        progress(f"fl-dt: {parameters.bins} bins, depth {parameters.depth}, theta {theta:g}")
        metrics = [self.train(table, theta, replace(parameters, seed=seed)).metrics for seed in range(self.repeats)]
        return {"at": at, "accuracy": mean(m.accuracy for m in metrics), "auc": mean(m.auc for m in metrics)}

    def time(self, table: Table, parameters: DecisionTreeParameters, at: float) -> Results:
        """A point of Figure 7: a training on ciphertexts, ids aligned by the garbled Bloom filter, and a prediction."""
        progress(f"fl-dt: timing {parameters.bins} bins, depth {parameters.depth}, {len(table.frame):,} records")
        if (table.name, len(table.frame), THETA) not in self._warm:
            self._warm.add((table.name, len(table.frame), THETA))
            self.train(table, THETA, WARM)
        record = self.train(table, THETA, parameters)
        align = record.alignment.seconds if record.alignment else None
        return {"at": at, "seconds": record.seconds, "align_seconds": align, **self._predict(record)}

    def _predict(self, record: ModelRecord) -> Results:
        """A record's share of a collaborative prediction; nothing if the Host owns no split and is not asked."""
        model = self.glassleaf.models.guest_model(record.id)
        if all(n.owner == model.guest for tree in model.trees for n in tree.nodes if isinstance(n, Split)):
            return {"predict_seconds": None, "rounds": 0}
        n = min(PREDICTED, record.parts["test"])
        request = ComparisonRequest(record.id, n, cipher="none", names=("collaborative",))
        exchange = self.glassleaf.protocol_comparison.start(request).get().runs.over(LAN).rows[0].exchange
        return {"predict_seconds": exchange.total / n, "rounds": exchange.rounds}
