"""What rounding leaf weights costs: AUC and KS on the test records for the float model and for fewer and fewer bits.

An operator's view: both partial models of a simulated model are put together here, which no party could do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import quantise
from backend.data.table import read_labels
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.trees.compiled import candidate_leaves
from backend.trees.metrics import measure as metrics_of
from bench.cases import case_of, weights_by_tree
from bench.setting import ABSENT, add_credit_card, fresh_glassleaf, progress, run, train
from bench.tables import score_bits as describe

BITS = (16, 10, 8, 6)
PARAMETERS = SecureBoostParameters(trees=20, depth=4, cipher="none", score_bits=24)


def measure() -> dict[str, Any]:
    """Both federations, the second where its data is there."""
    with fresh_glassleaf() as glassleaf:
        names = [glassleaf.training.prepare_demo(), *(n for n in [add_credit_card(glassleaf)] if n)]
        runs = [_one(glassleaf, name) for name in names]
    return {"runs": runs} | ({} if len(names) > 1 else {"skipped": ABSENT})


def _one(glassleaf: Glassleaf, name: str) -> dict[str, Any]:
    progress(name)
    record = train(glassleaf, name, PARAMETERS)
    model = glassleaf.models.guest_model(record.id)
    frame = glassleaf.samples.table(record.id)
    test = (frame["part"] == "test").to_numpy()
    labels = read_labels(glassleaf.federations.get(name))[test]
    ids = [str(i) for i in frame.index[test]]
    # the one leaf of each record, (n, n_leaves) a tree; what a Host does not hold counts as missing
    reached = candidate_leaves(model.skeletons, *case_of(glassleaf, record, name).together(ids), len(ids))
    weights = weights_by_tree(model.trees)
    exact = model.base_scores[0] + sum(kept @ w for kept, w in zip(reached, weights, strict=True))
    rows = [{"bits": "float", **_quality(labels, np.asarray(exact)), "alone": _alone(np.asarray(exact))}]
    for bits in BITS:
        units = sum(kept @ quantise(w, bits) for kept, w in zip(reached, weights, strict=True))
        rounded = np.asarray(units + int(quantise(model.base_scores[0], bits)), dtype=np.float64) / (1 << bits)
        largest = float(np.abs(rounded - exact).max())
        rows.append({"bits": bits, **_quality(labels, rounded), "alone": _alone(rounded), "largest_error": largest})
    return {"federation": name, "trees": record.n_trees, "depth": record.depth, "n_test": len(labels), "rows": rows}


def _quality(labels: NDArray[np.float64], margins: NDArray[np.float64]) -> dict[str, float]:
    metrics = metrics_of(labels, margins, "test")
    return {"auc": metrics.auc, "ks": metrics.ks}


def _alone(margins: NDArray[np.float64]) -> float:
    """Share of records whose score no other record has."""
    _, counts = np.unique(margins, return_counts=True)
    return float((counts == 1).sum() / len(margins))


if __name__ == "__main__":
    run(__doc__, measure, describe)
