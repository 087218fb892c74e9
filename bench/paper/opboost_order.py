"""OpBoost (Li et al.) on the credit cards in full, and the order of its maps on Give Me Some Credit and a9a."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

from backend.protocols.training.opboost.maps import MAPS
from backend.services import Glassleaf
from bench import opboost
from bench.paper.data import A9A, GIVE_ME_SOME, Table, federate
from bench.setting import fresh_glassleaf, progress
from bench.tables import Results

GUEST_SHARE = 0.5


def measure(tables: Mapping[str, Table], quick: bool) -> Results:
    """The curve on the credit cards, and a line of means for each other table."""
    results = opboost.measure(quick)
    if "skipped" in results:
        return results
    others = [tables[name] for name in (GIVE_ME_SOME, A9A) if name in tables]
    with fresh_glassleaf() as glassleaf:
        return results | {"others": [line(glassleaf, table, quick) for table in others]}


def line(glassleaf: Glassleaf, table: Table, quick: bool) -> Results:
    """Return the mean AUC of each map over all ε, and the AUC without noise and of the Guest's columns alone."""
    progress(f"opboost: {table.title}")
    sample = table.sample(opboost.QUICK_ROWS if quick else opboost.ROWS)
    name = federate(glassleaf, sample, sample.first(GUEST_SHARE), table.name)
    federation = glassleaf.federations.get(name)
    seed = opboost.PARAMETERS.seed
    records = opboost.records_of(federation, len(sample.frame), seed)
    points = opboost.curve(records, opboost.QUICK_EPSILONS if quick else opboost.EPSILONS, seed)
    means: Results = {name: mean(point["auc"] for point in points if point["map"] == name) for name in MAPS}
    first = points[0]
    return {
        "data": table.title,
        "rows": len(sample.frame),
        "undisturbed": first["undisturbed"],
        "alone": first["alone"],
        "n_test": first["n_test"],
        **means,
    }
