"""What rounding leaf weights costs: AUC and KS on the test records for the float model and for fewer and fewer bits.

An operator's view: both partial models of a simulated model are put together here, which no party could do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import quantise
from backend.data.table import read_labels, read_table
from backend.services import Glassleaf, GuestModel, Leaf, SecureBoostParameters, TrainingRequest
from backend.store.party_store import PartyStore
from backend.trees.candidates import candidate_leaves
from backend.trees.metrics import measure as metrics_of
from backend.trees.serialization import load_host
from bench.setting import ABSENT, add_credit_card, add_demo, fresh_home, run, say
from bench.tables import score_bits as describe

BITS = (16, 10, 8, 6)
PARAMETERS = SecureBoostParameters(trees=20, depth=4, cipher="none", score_bits=24)


def measure() -> dict[str, Any]:
    """Both federations, the second where its data is there."""
    with fresh_home() as home:
        glassleaf = Glassleaf(home, pools=False)
        names = [add_demo(glassleaf), *(n for n in [add_credit_card(glassleaf)] if n)]
        found = [_one(glassleaf, name) for name in names]
        glassleaf.close()
    return {"runs": found} | ({} if len(names) > 1 else {"skipped": ABSENT})


def _one(glassleaf: Glassleaf, name: str) -> dict[str, Any]:
    say(name)
    record = glassleaf.start_training(TrainingRequest(name, PARAMETERS, most_named=1.0)).get()
    model = glassleaf.guest_model(record.id)
    frame = glassleaf.samples(record.id)
    test = (frame["part"] == "test").to_numpy()
    labels = read_labels(glassleaf.federation(name))[test]
    reached = _leaves_reached(glassleaf, name, record.id, model, [str(i) for i in frame.index[test]])
    weights = [np.array([n.weight for n in (t.nodes[i] for i in t.leaves) if isinstance(n, Leaf)]) for t in model.trees]
    exact = model.base_scores[0] + sum(kept @ w for kept, w in zip(reached, weights, strict=True))
    rows = [{"bits": "float", **_quality(labels, np.asarray(exact)), "alone": _alone(np.asarray(exact))}]
    for bits in BITS:
        units = int(quantise(model.base_scores[0], bits)) + sum(
            kept @ quantise(w, bits) for kept, w in zip(reached, weights, strict=True)
        )
        rounded = np.asarray(units, dtype=np.float64) / (1 << bits)
        largest = float(np.abs(rounded - exact).max())
        rows.append({"bits": bits, **_quality(labels, rounded), "alone": _alone(rounded), "largest_error": largest})
    return {"federation": name, "trees": record.n_trees, "depth": record.depth, "n_test": len(labels), "rows": rows}


def _leaves_reached(
    glassleaf: Glassleaf, name: str, model_id: str, model: GuestModel, ids: list[str]
) -> list[NDArray[np.bool_]]:
    """Per tree ``(n, n_leaves)``: the one leaf of each record; what a Host does not hold counts as missing."""
    federation = glassleaf.federation(name)
    n = len(ids)
    reached = [np.ones((n, len(t.leaves)), dtype=bool) for t in model.trees]
    for party in federation.parties:
        table = read_table(federation, party.name)
        rows = np.array([table.row_of.get(i, -1) for i in ids], dtype=np.intp)
        columns = {key: _where_held(column, rows) for key, column in table.columns.items()}
        rules = model.rules
        if party.name != model.guest:
            rules = load_host(PartyStore(glassleaf.home / "parties" / name / party.name).artefact(model_id)).rules
        own = candidate_leaves(model.skeletons, rules, columns, n)
        reached = [kept & mine for kept, mine in zip(reached, own, strict=True)]
    return reached


def _where_held(column: NDArray[np.generic], rows: NDArray[np.intp]) -> NDArray[np.generic]:
    blank: Any = None if column.dtype == object else np.nan
    return np.where(rows < 0, blank, column[rows])


def _quality(labels: NDArray[np.float64], margins: NDArray[np.float64]) -> dict[str, float]:
    found = metrics_of(labels, margins, "test")
    return {"auc": found.auc, "ks": found.ks}


def _alone(margins: NDArray[np.float64]) -> float:
    """Share of records whose score no other record has."""
    _, counts = np.unique(margins, return_counts=True)
    return float((counts == 1).sum() / len(margins))


if __name__ == "__main__":
    run(__doc__, measure, describe)
