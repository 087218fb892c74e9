"""What a Host infers about labels from which records share a node in training, and what a bound on it costs: the credit-card data.

The attack is T4's of the attack lab (:mod:`backend.research.attacks.shared_nodes`), beside the same clustering on the Host's own
columns alone.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from backend.data.credit_card import split_credit_card
from backend.data.table import read_labels, read_table
from backend.research.attacks.setup import PARAMETERS, synthetic_people
from backend.research.attacks.shared_nodes import clustered, figures_of, watch
from bench.setting import ABSENT, CREDIT_CARD, fresh_folder, progress, run
from bench.tables import label_leak as describe

BOUNDS = (0.0, 0.3, 0.1, 0.05, 0.02, 0.01)  # bits; 0 = none
SEED = 0
QUICK_PEOPLE = 400
QUICK_BOUNDS = (0.0, 0.02)


def measure(quick: bool = False) -> dict[str, Any]:
    """A training a bound, and one whose first tree is the Guest's alone; on the demo's people where the data is absent."""
    skipped: dict[str, Any] = {}
    if CREDIT_CARD.exists() and not quick:
        with fresh_folder() as folder:
            federation = split_credit_card(CREDIT_CARD, folder)
            tables = {p.name: read_table(federation, p.name) for p in federation.parties}
            labels = read_labels(federation).astype(np.float64)
    else:
        skipped = {"skipped": ABSENT}
        federation, tables, labels = synthetic_people(QUICK_PEOPLE)
    ways = [replace(PARAMETERS, label_bound=bound) for bound in (QUICK_BOUNDS if quick else BOUNDS)] + [
        replace(PARAMETERS, complete=True)
    ]
    rows: list[dict[str, Any]] = []
    own: dict[str, Any] = {}
    for way in ways:
        progress(f"bound {way.label_bound:g}, first tree at the Guest {way.complete}")
        seen = watch(federation, tables, labels, way)
        row = {"bound": way.label_bound, "complete": way.complete, "model_auc": seen.model_auc, "bits": seen.label_bits}
        rows.append(row | asdict(figures_of(clustered(seen, SEED), seen.labels)))
        own = own or asdict(figures_of(clustered(replace(seen, cells=()), SEED), seen.labels))
    positive = float(seen.labels.mean())
    sizes = {
        "federation": federation.name,
        "records": len(seen.labels),
        "trees": PARAMETERS.trees,
        "depth": PARAMETERS.depth,
    }
    return skipped | sizes | {"prior": max(positive, 1 - positive), "own": own, "rows": rows}


if __name__ == "__main__":
    run(__doc__, measure, describe)
