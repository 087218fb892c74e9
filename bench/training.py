"""Growth beside XGBoost on the credit-card data: quality on the same rows and bins, time, and the price of encryption.

XGBoost gets the same bin numbers as its columns. `numbers`: the three coded columns are read as numbers by both, as XGBoost does
unless it is told otherwise. `codes`: both treat them as unordered categories.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray

from backend.data.binning import make_bins
from backend.data.dictionary import Kind
from backend.data.federation import Federation, load_federation, write_federation
from backend.data.table import read_labels, read_table
from backend.protocols.alignment.ids import common_order
from backend.protocols.guest import draw_parts
from backend.services import Glassleaf, ModelRecord, SecureBoostParameters, TrainingRequest
from backend.trees.metrics import Metrics
from backend.trees.metrics import measure as metrics_of
from bench.setting import ABSENT, REPEATS, add_credit_card, fresh_home, run, say
from bench.tables import training as describe

PARAMETERS = SecureBoostParameters(trees=20, depth=4, bins=32, cipher="none")
ENCRYPTED = replace(PARAMETERS, trees=100, learning_rate=0.1, cipher="paillier", key_bits=2048)
PLAIN_REPEATS = 3


def measure() -> dict[str, Any]:
    """Quality and time; nothing but a reason where the data is absent."""
    with fresh_home() as home:
        glassleaf = Glassleaf(home, pools=False)
        name = add_credit_card(glassleaf)
        if name is None:
            return {"skipped": ABSENT}
        found = {"repeats": REPEATS, "trees": PARAMETERS.trees, "depth": PARAMETERS.depth, "bins": PARAMETERS.bins}
        say("codes")
        found["codes"] = _beside_xgboost(glassleaf, glassleaf.federation(name))
        say("a training on ciphertexts")
        found["encrypted"] = _encrypted(glassleaf, glassleaf.federation(name))
        say("numbers")
        found["numbers"] = _beside_xgboost(
            glassleaf, _with_codes_as_numbers(glassleaf, glassleaf.federation(name).folder)
        )
        glassleaf.close()
    return found


def _beside_xgboost(glassleaf: Glassleaf, federation: Federation) -> dict[str, Any]:
    ours = [_train(glassleaf, federation.name, PARAMETERS) for _ in range(REPEATS + 1)][
        1:
    ]  # the first reads the tables
    theirs, seconds = _xgboost(federation, PARAMETERS.trees)
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


def _train(glassleaf: Glassleaf, federation: str, parameters: SecureBoostParameters) -> ModelRecord:
    return glassleaf.start_training(TrainingRequest(federation, parameters, most_named=1.0)).get()


def _encrypted(glassleaf: Glassleaf, federation: Federation) -> dict[str, Any]:
    """A whole training on ciphertexts, once (it takes minutes), beside the same on plaintext and XGBoost's."""
    found = _train(glassleaf, federation.name, ENCRYPTED)
    plain = [_train(glassleaf, federation.name, replace(ENCRYPTED, cipher="none")) for _ in range(PLAIN_REPEATS)]
    plain_seconds = median(r.seconds for r in plain)
    _, xgboost_seconds = _xgboost(federation, ENCRYPTED.trees)
    return {
        "key_bits": ENCRYPTED.key_bits,
        "trees": ENCRYPTED.trees,
        "depth": ENCRYPTED.depth,
        "rows": found.parts["training"],
        "repeats": 1,
        "seconds": found.seconds,
        "plain_seconds": plain_seconds,
        "times_plain": found.seconds / plain_seconds,
        "xgboost_seconds": xgboost_seconds,
        "times_xgboost": found.seconds / xgboost_seconds,
        "same_trees_as_plain": found.content_hash == plain[0].content_hash,
    }


def _with_codes_as_numbers(glassleaf: Glassleaf, folder: Path) -> Federation:
    """A second federation on the same tables in which every feature is numeric."""
    first = load_federation(folder)

    def numeric(party: Any) -> Any:
        plain = [f.model_copy(update={"kind": Kind.NUMERIC, "categories": {}}) for f in party.features]
        return party.model_copy(update={"features": tuple(plain)})

    changed = first.model_copy(
        update={"name": "numbers", "guest": numeric(first.guest), "hosts": tuple(numeric(h) for h in first.hosts)}
    )
    target = folder.with_name("numbers")
    write_federation(changed, target)
    for party in first.parties:
        (target / party.file).write_bytes((folder / party.file).read_bytes())
    return glassleaf.add_federation(target)


def _xgboost(federation: Federation, trees: int) -> tuple[Metrics, float]:
    """XGBoost's test metrics and median seconds: reading the matrix and growing, one thread."""
    labels = read_labels(federation)[_order(federation, federation.guest.name)]
    parts = draw_parts(len(labels), PARAMETERS.seed)
    features, binned = _binned(federation, parts == 0)
    kinds = ["c" if categorical else "q" for categorical in features]
    settings = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": PARAMETERS.depth,
        "eta": PARAMETERS.learning_rate,
        "lambda": PARAMETERS.reg_lambda,
        "min_child_weight": PARAMETERS.min_child_weight,
        "max_bin": 2 * PARAMETERS.bins,  # more than there are bins, so that ours are kept
        "max_cat_to_onehot": 1,
        "base_score": float(labels[parts == 0].mean()),
        "nthread": 1,
    }

    def matrix(part: int) -> xgboost.DMatrix:
        rows = parts == part
        return xgboost.DMatrix(binned[rows], labels[rows], feature_types=kinds, enable_categorical=True, nthread=1)

    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        booster = xgboost.train(settings, matrix(0), trees)
        seconds.append(time.perf_counter() - began)
    chance = booster.predict(matrix(2)).astype(np.float64)
    return metrics_of(labels[parts == 2], np.log(chance / (1 - chance)), "test"), median(seconds)


def _order(federation: Federation, party: str) -> NDArray[np.intp]:
    """Rows of a party in the common order of an alignment; here every party holds every id."""
    ids = read_table(federation, party).ids
    return common_order(ids, np.arange(len(ids)))


def _binned(federation: Federation, training: NDArray[np.bool_]) -> tuple[list[bool], NDArray[np.float64]]:
    """Our bin numbers as columns, parties put side by side in the common order, and which are categorical."""
    columns, categorical = [], []
    for party in federation.parties:
        table = read_table(federation, party.name).take(_order(federation, party.name))
        for feature in party.features:
            column = table.columns[feature.name]
            columns.append(make_bins(feature, column[training], PARAMETERS.bins).index(column).astype(np.float64))
            categorical.append(feature.kind is Kind.CATEGORICAL)
    return categorical, np.column_stack(columns)


if __name__ == "__main__":
    run(__doc__, measure, describe)
