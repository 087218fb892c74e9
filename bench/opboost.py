"""OpBoost's price: test AUC on the credit-card data by ε and map, beside XGBoost on undisturbed columns and on the Guest's alone.

Noise, ranks, growth and rules are the package's own; alignment, network and encryption are left out, since they change no figure here.
`auc` is that of the released score: the Hosts' rules on true values. `auc_on_ranks` is what the Guest sees by itself.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import Message
from backend.trees.compiled import candidate_leaves
from backend.trees.ensemble import GuestModel
from backend.trees.metrics import measure as metrics_of
from bench.cases import weights_by_tree
from bench.opboost_bounds import of_record, worst
from bench.setting import ABSENT, CREDIT_CARD, fresh_folder, progress, run
from bench.tables import Column, table

EPSILONS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)  # the paper's
ROWS = 30_000
QUICK_ROWS = 6_000
QUICK_EPSILONS = (0.01, 0.16, 2.56)
PARAMETERS = OpBoostParameters(trees=80, depth=3, learning_rate=0.1)  # the paper's trees


@dataclass(frozen=True)
class Records:
    """All parties' joint records, as an operator of a simulation sees them."""

    federation: Federation
    tables: dict[str, PartyTable]
    labels: NDArray[np.float64]
    parts: NDArray[np.int8]


class DirectSession:
    """A session that calls the Hosts' side instead of sending."""

    name = "curve"

    def __init__(self, records: Records, hosts: Sequence[str]) -> None:
        self.hosts = tuple(hosts)
        self._records = records
        self.at: dict[str, HostRanks] = {}

    def send(self, host: str, message: Message) -> None:
        """Have a Host draw, or keep its rules."""
        table = self._records.tables[host]
        if isinstance(message, StartRanks):
            columns = NoisyColumns(table, self._records.federation.party(host).features, secrets.token_bytes(32))
            self.at[host] = HostRanks(columns, np.arange(len(table.ids)), message)
        else:
            self.at[host].take_splits(cast(TakeRankSplits, message))

    def expect_each(self, kind: type[Ranks], hosts: Sequence[str]) -> dict[str, Ranks]:
        """The Hosts' ranks."""
        return {host: self.at[host].ranks(self.name) for host in hosts}

    def check(self) -> None:
        """Never cancelled."""


def curve(records: Records, epsilons: Sequence[float], seed: int) -> list[dict[str, Any]]:
    """AUC by map and ε; the noise comes from the system, the seed draws the rest.

    Returns
    -------
    list of dict
        ``map``, ``epsilon``, ``auc``, ``auc_on_ranks``, ``undisturbed`` and ``alone`` (AUC of XGBoost on all true columns and on the
        Guest's alone), ``feature_bound`` and ``record_bound`` (worst cases of ε, None = unlimited), ``n_test``, ``seconds``.
    """
    federation = records.federation
    undisturbed, alone = (_reference(records, parties) for parties in (federation.parties, [federation.guest]))
    points = []
    for name in MAPS:
        for epsilon in epsilons:
            progress(f"{name}, ε = {epsilon:g}")
            parameters = replace(PARAMETERS, map=name, epsilon=epsilon, seed=seed)
            began = time.perf_counter()
            point = _point(records, parameters) | {"undisturbed": undisturbed, "alone": alone}
            points.append(point | {"seconds": time.perf_counter() - began})
    return points


def cards(rows: int, seed: int) -> Records:
    """The first `rows` records of the credit-card data, at most 30,000; the seed draws training, validation and test rows."""
    with fresh_folder() as folder:
        return records_of(split_credit_card(CREDIT_CARD, folder), rows, seed)


def records_of(federation: Federation, rows: int, seed: int) -> Records:
    """The first `rows` records of all parties, who hold the same people in one order."""
    labels = read_labels(federation)[:rows].astype(np.float64)
    tables = {p.name: read_table(federation, p.name).take(np.arange(rows)) for p in federation.parties}
    return Records(federation, tables, labels, draw_parts(rows, seed))


def _joint(records: Records, session: DirectSession, table: PartyTable, features: dict[str, Any]) -> Joint:
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
    return _auc(records, grow(_joint(records, DirectSession(records, ()), table, features), PARAMETERS).margins[:, 0])


def _point(records: Records, parameters: OpBoostParameters) -> dict[str, Any]:
    federation = records.federation
    session = DirectSession(records, [h.name for h in federation.hosts])
    features = {p.name: p.features for p in federation.parties}
    grown = grow(_joint(records, session, records.tables[federation.guest.name], features), parameters)
    noise = parameters.noise
    feature = worst(noise, noise.levels - 1)
    record = of_record(noise, [f for h in federation.hosts for f in h.features])
    return {
        "map": parameters.map,
        "epsilon": parameters.epsilon,
        "auc": _auc(records, _released(records, grown, session)),
        "auc_on_ranks": _auc(records, grown.margins[:, 0]),
        "feature_bound": feature if np.isfinite(feature) else None,
        "record_bound": record if np.isfinite(record) else None,
        "n_test": int((records.parts == TEST).sum()),
    }


def _auc(records: Records, margins: NDArray[np.float64]) -> float:
    test = records.parts == TEST
    return metrics_of(records.labels[test], margins[test], "test").auc


def _released(records: Records, grown: Grown, session: DirectSession) -> NDArray[np.float64]:
    """``(n,)`` margins with every party's rules on its true values."""
    rules = dict(grown.rules) | {key: rule for host in session.at.values() for key, rule in host.rules.items()}
    columns = {name: column for table in records.tables.values() for name, column in table.columns.items()}
    guest = records.federation.guest.name
    model = GuestModel(guest, session.hosts, grown.trees, grown.base_scores, 0, (), grown.rules)
    reached = candidate_leaves(model.skeletons, rules, columns, len(records.labels))
    sums = [kept @ weights for kept, weights in zip(reached, weights_by_tree(grown.trees), strict=True)]
    return np.asarray(grown.base_scores[0] + np.sum(sums, axis=0), dtype=np.float64)


def measure(quick: bool = False) -> dict[str, Any]:
    """The curve; nothing but a reason where the data is absent."""
    if not CREDIT_CARD.exists():
        return {"skipped": ABSENT}
    rows, epsilons = (QUICK_ROWS, QUICK_EPSILONS) if quick else (ROWS, EPSILONS)
    points = curve(cards(rows, PARAMETERS.seed), epsilons, PARAMETERS.seed)
    return {"rows": rows, "parameters": PARAMETERS.as_dict(), "points": points}


def describe(results: dict[str, Any]) -> str:
    """A line a point."""
    if "skipped" in results:
        return f"Left out: {results['skipped']}"
    columns: dict[str, Column] = {
        "map": "{map}",
        "ε": "{epsilon:g}",
        "AUC": "{auc:.4f}",
        "AUC on ranks": "{auc_on_ranks:.4f}",
        "ε·W": lambda point: "unlimited" if point["feature_bound"] is None else f"{point['feature_bound']:.1f}",
        "time": "{seconds:.1f} s",
    }
    first = results["points"][0]
    reference = f"AUC without noise {first['undisturbed']:.4f}, of the Guest's columns alone {first['alone']:.4f}"
    return f"{table(results['points'], columns)}\n\n{reference}, on {first['n_test']:,} test rows."


if __name__ == "__main__":
    run(__doc__, measure, describe)
