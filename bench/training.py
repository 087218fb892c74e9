"""Growth beside XGBoost on the credit-card data: quality on the same rows and bins, and time.

XGBoost gets the same bin numbers as its columns. `numbers`: the three coded columns are read as numbers by both, as XGBoost does
by default. `codes`: both treat them as unordered categories.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray

from backend.data.dictionary import Kind
from backend.data.federation import write_federation
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import ModelRecord
from backend.services import Glassleaf
from backend.trees.metrics import Metrics
from backend.trees.metrics import measure as metrics_of
from bench.pooled import pooled
from bench.setting import ABSENT, REPEATS, add_credit_card, fresh_glassleaf, progress, run, train
from bench.tables import training as describe

PARAMETERS = SecureBoostParameters(trees=20, depth=4, bins=32, cipher="none")


def measure() -> dict[str, Any]:
    """Quality and time; nothing but a reason where the data is absent."""
    with fresh_glassleaf() as glassleaf:
        name = add_credit_card(glassleaf)
        if name is None:
            return {"skipped": ABSENT}
        p = PARAMETERS
        results: dict[str, Any] = {"repeats": REPEATS, "trees": p.trees, "depth": p.depth, "bins": p.bins}
        progress("codes")
        results["codes"] = _beside_xgboost(glassleaf, name)
        progress("numbers")
        results["numbers"] = _beside_xgboost(glassleaf, _with_codes_as_numbers(glassleaf, name))
    return results


def _beside_xgboost(glassleaf: Glassleaf, federation: str) -> dict[str, Any]:
    # the first training reads the tables
    ours = [train(glassleaf, federation, PARAMETERS) for _ in range(REPEATS + 1)][1:]
    theirs, seconds = xgboost_beside(glassleaf, ours[0])
    mine = median(r.seconds for r in ours)
    return {
        "auc": ours[0].metrics.auc,
        "ks": ours[0].metrics.ks,
        "xgboost_auc": theirs.auc,
        "xgboost_ks": theirs.ks,
        "seconds": mine,
        "xgboost_seconds": seconds,
        "times_xgboost": mine / seconds,
        "n_test": theirs.n,
    }


def _with_codes_as_numbers(glassleaf: Glassleaf, name: str) -> str:
    """A second federation on the same tables in which every feature is numeric."""
    first = glassleaf.federations.get(name)

    def numeric(party: Any) -> Any:
        plain = [f.model_copy(update={"kind": Kind.NUMERIC, "categories": {}}) for f in party.features]
        return party.model_copy(update={"features": tuple(plain)})

    changed = first.model_copy(
        update={"name": "numbers", "guest": numeric(first.guest), "hosts": tuple(numeric(h) for h in first.hosts)}
    )
    target = first.folder.with_name("numbers")
    write_federation(changed, target)
    for party in first.parties:
        (target / party.file).write_bytes((first.folder / party.file).read_bytes())
    return glassleaf.federations.add(target).name


def xgboost_beside(glassleaf: Glassleaf, record: ModelRecord) -> tuple[Metrics, float]:
    """XGBoost's test metrics and median seconds on the same bins, as many trees: reading the matrix and growing, one thread."""
    data = pooled(glassleaf, record, PARAMETERS.bins)
    bins = np.column_stack(list(data.bins.values()))
    kinds = ["c" if name in data.categories else "q" for name in data.bins]
    settings = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": PARAMETERS.depth,
        "eta": PARAMETERS.learning_rate,
        "lambda": PARAMETERS.reg_lambda,
        "min_child_weight": PARAMETERS.min_child_weight,
        # more than there are bins, so that ours are kept
        "max_bin": 2 * PARAMETERS.bins,
        "max_cat_to_onehot": 1,
        "base_score": float(data.labels[data.training].mean()),
        "nthread": 1,
    }

    def matrix(rows: NDArray[np.bool_]) -> xgboost.DMatrix:
        return xgboost.DMatrix(bins[rows], data.labels[rows], feature_types=kinds, enable_categorical=True, nthread=1)

    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        booster = xgboost.train(settings, matrix(data.training), record.n_trees)
        seconds.append(time.perf_counter() - began)
    chance = booster.predict(matrix(data.test)).astype(np.float64)
    return metrics_of(data.labels[data.test], np.log(chance / (1 - chance)), "test"), median(seconds)


if __name__ == "__main__":
    run(__doc__, measure, describe)
