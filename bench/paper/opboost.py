"""OpBoost (Li et al., VLDB 2023): accuracy against ε for its three maps, on the credit-card data."""

from __future__ import annotations

from collections.abc import Mapping

from bench.opboost import EPSILONS, PARAMETERS, curve
from bench.paper.data import Table
from bench.tables import Results

ROWS, QUICK_ROWS, QUICK_EPSILONS = 30_000, 2000, (0.02, 2.56)


def measure(tables: Mapping[str, Table], quick: bool) -> Results:
    """The curve of `bench.opboost`; no point where the credit-card data is absent."""
    rows, epsilons = (QUICK_ROWS, QUICK_EPSILONS) if quick else (ROWS, EPSILONS)
    return {"rows": rows, "parameters": PARAMETERS.as_dict(), "points": curve(rows, epsilons, PARAMETERS.seed)}
