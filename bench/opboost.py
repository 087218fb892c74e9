"""OpBoost's price: test AUC on the credit-card data by ε and map, beside XGBoost on undisturbed columns and on the Guest's alone.

Noise, ranks, growth and rules are the package's own; alignment, network and encryption are left out, since they change no figure here.
`auc` is that of the released score: the Hosts' rules on true values. `auc_on_ranks` is what the Guest sees by itself.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from backend.data.credit_card import split_credit_card
from backend.data.federation import Federation
from backend.data.table import PartyTable, read_labels, read_table
from backend.protocols.training.guest import draw_parts
from backend.protocols.training.joint import TEST, Grown, Joint
from backend.protocols.training.messages import Ranks, StartRanks, TakeRankSplits
from backend.protocols.training.opboost.grow import grow
from backend.protocols.training.opboost.host_side import HostRanks, NoisyColumns
from backend.protocols.training.opboost.maps import MAPS
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.training.opboost.privacy import privacy_of
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import Message
from backend.trees.ensemble import GuestTree, Leaf, SplitRule
from backend.trees.metrics import measure as metrics_of
from bench.setting import ABSENT, CREDIT_CARD, fresh_home, machine, say

EPSILONS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)  # the paper's
QUICK_ROWS, QUICK_EPSILONS = 6_000, (0.01, 0.16, 2.56)
PARAMETERS = OpBoostParameters(trees=80, depth=3, learning_rate=0.1)  # the paper's trees


@dataclass(frozen=True)
class Records:
    """The joint records in one hand, as an operator of a simulation sees them."""

    federation: Federation
    tables: dict[str, PartyTable]
    labels: NDArray[np.float64]
    parts: NDArray[np.int8]


class Straight:
    """A conversation that calls the Hosts' side instead of sending."""

    name = "curve"

    def __init__(self, records: Records, hosts: Sequence[str]) -> None:
        self.hosts = tuple(hosts)
        self._records = records
        self.at: dict[str, HostRanks] = {}

    def send(self, host: str, message: Message) -> None:
        """Have a Host draw, or keep its rules."""
        table = self._records.tables[host]
        if isinstance(message, StartRanks):
            columns = NoisyColumns(table, self._records.federation.party(host).features)
            self.at[host] = HostRanks(columns, np.arange(len(table.ids)), message)
        else:
            self.at[host].take_splits(cast(TakeRankSplits, message))

    def expect_each(self, kind: type[Ranks], hosts: Sequence[str]) -> dict[str, Ranks]:
        """The Hosts' ranks."""
        return {host: self.at[host].ranks(self.name) for host in hosts}

    def check(self) -> None:
        """Never cancelled."""


def curve(rows: int, epsilons: Sequence[float], seed: int) -> list[dict[str, Any]]:
    """AUC by map and ε.

    Parameters
    ----------
    rows : int
        Records of the credit-card data that are used, the first ones; at most 30,000.
    epsilons : sequence of float
    seed : int
        Draws training, validation and test rows; the noise comes from the system.

    Returns
    -------
    list of dict
        ``map``, ``epsilon``, ``auc``, ``auc_on_ranks``, ``undisturbed`` and ``alone`` (AUC of XGBoost on all true columns and on the
        Guest's alone), ``feature_bound`` and ``record_bound`` (worst cases of ε, None = unlimited), ``n_test``, ``seconds``. Empty
        where the data is absent.
    """
    if not CREDIT_CARD.exists():
        return []
    records = _records(rows, seed)
    undisturbed, alone = (
        _reference(records, parties) for parties in (records.federation.parties, [records.federation.guest])
    )
    points = []
    for name in MAPS:
        for epsilon in epsilons:
            say(f"{name}, ε = {epsilon:g}")
            parameters = replace(PARAMETERS, map=name, epsilon=epsilon, seed=seed)
            began = time.perf_counter()
            found = _point(records, parameters)
            points.append(found | {"undisturbed": undisturbed, "alone": alone, "seconds": time.perf_counter() - began})
    return points


def _records(rows: int, seed: int) -> Records:
    with fresh_home() as home:
        federation = split_credit_card(CREDIT_CARD, home / "credit_card")
        labels = read_labels(federation)[:rows].astype(np.float64)
        tables = {p.name: read_table(federation, p.name).take(np.arange(rows)) for p in federation.parties}
    return Records(federation, tables, labels, draw_parts(rows, seed))


def _joint(records: Records, session: Straight, table: PartyTable, features: dict[str, Any]) -> Joint:
    return Joint(
        conversation=cast(Session, session),
        key=cast(Any, None),
        guest=records.federation.guest.name,
        features=features,
        excluded=dict.fromkeys(features, ()),
        table=table,
        labels=records.labels,
        task="binary",
        classes=(),
        parts=records.parts,
        on_tree=lambda progress: None,
    )


def _reference(records: Records, parties: Sequence[Any]) -> float:
    """Test AUC of the same growth where the Guest holds these parties' true columns."""
    columns = {name: column for p in parties for name, column in records.tables[p.name].columns.items()}
    guest = records.federation.guest.name
    table = replace(records.tables[guest], columns=columns)
    features = {guest: tuple(f for p in parties for f in p.features)}
    return _auc(records, grow(_joint(records, Straight(records, ()), table, features), PARAMETERS).margins[:, 0])


def _point(records: Records, parameters: OpBoostParameters) -> dict[str, Any]:
    federation = records.federation
    session = Straight(records, [h.name for h in federation.hosts])
    features = {p.name: p.features for p in federation.parties}
    grown = grow(_joint(records, session, records.tables[federation.guest.name], features), parameters)
    figures = privacy_of(parameters.noise, [f for h in federation.hosts for f in h.features])
    return {
        "map": parameters.map,
        "epsilon": parameters.epsilon,
        "auc": _auc(records, _released(records, grown, session)),
        "auc_on_ranks": _auc(records, grown.margins[:, 0]),
        "feature_bound": figures.feature if np.isfinite(figures.feature) else None,
        "record_bound": figures.record if np.isfinite(figures.record) else None,
        "n_test": int((records.parts == TEST).sum()),
    }


def _auc(records: Records, margins: NDArray[np.float64]) -> float:
    test = records.parts == TEST
    return metrics_of(records.labels[test], margins[test], "test").auc


def _released(records: Records, grown: Grown, session: Straight) -> NDArray[np.float64]:
    """``(n,)`` margins with every party's rules on its true values, node by node."""
    rules = dict(grown.rules) | {key: rule for host in session.at.values() for key, rule in host.rules.items()}
    columns = {name: column for table in records.tables.values() for name, column in table.columns.items()}

    @cache
    def left(rule: SplitRule) -> NDArray[np.bool_]:
        return rule.goes_left(columns[rule.feature])

    margins = np.full(len(records.labels), grown.base_scores[0])
    for t, tree in enumerate(grown.trees):
        margins += _leaf_weights(tree, {key[1]: left(rules[key]) for key in rules if key[0] == t}, len(margins))
    return margins


def _leaf_weights(tree: GuestTree, left: dict[int, NDArray[np.bool_]], n: int) -> NDArray[np.float64]:
    weights = np.zeros(n)
    stack = [(0, np.ones(n, dtype=bool))]
    while stack:
        number, rows = stack.pop()
        node = tree.nodes[number]
        if isinstance(node, Leaf):
            weights[rows] = node.weight
        else:
            stack += [(node.left, rows & left[number]), (node.right, rows & ~left[number])]
    return weights


def measure(quick: bool = False) -> dict[str, Any]:
    """The curve; nothing but a reason where the data is absent."""
    rows, epsilons = (QUICK_ROWS, QUICK_EPSILONS) if quick else (30_000, EPSILONS)
    points = curve(rows, epsilons, PARAMETERS.seed)
    if not points:
        return {"skipped": ABSENT}
    return {"rows": rows, "parameters": PARAMETERS.as_dict(), "points": points}


def describe(found: dict[str, Any]) -> str:
    """One line a point."""
    if "skipped" in found:
        return f"Left out: {found['skipped']}"
    first = found["points"][0]
    lines = [
        f"undisturbed AUC {first['undisturbed']:.4f}, Guest alone {first['alone']:.4f}, {first['n_test']:,} test rows"
    ]
    lines += [
        f"{p['map']:>6} ε {p['epsilon']:<5g} AUC {p['auc']:.4f} (on ranks {p['auc_on_ranks']:.4f}), ε·W "
        + ("unlimited" if p["feature_bound"] is None else f"{p['feature_bound']:.1f}")
        + f", {p['seconds']:.1f} s"
        for p in found["points"]
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rows and values of ε, under a minute")
    options = parser.parse_args()
    result = {"machine": machine(), **measure(options.quick)}
    print(json.dumps(result, indent=1) if options.json else describe(result))
