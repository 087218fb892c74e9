"""What the floor of people a node costs a model of the credit-card data, and whether a plaintext grower with that floor grows its trees.

Three trainings on plaintext, with the same records and bins: people who need no protection, so that a node may have one person; the same
with the floor asked for by the Guest; and Hosts that insist on it, as real ones do by default. The last two must be the same trees. The
first ones' hash is that of a version without floors.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from backend.crypto.fixedpoint import half_slot
from backend.crypto.plain import PlainKeySide
from backend.data.credit_card import split_credit_card
from backend.data.federation import Federation
from backend.data.table import read_labels, read_table
from backend.protocols.group_sums.disclosure_bound import NAMED
from backend.protocols.guest import GuestParty
from backend.protocols.host import HostParty
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.terms.floors import Floors
from backend.protocols.training.growth_record import PEOPLE, least_people
from backend.protocols.training.guest import Trained
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Session
from backend.protocols.transport.network import Network
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.store.party_store import memory_store
from bench.setting import ABSENT, CREDIT_CARD, fresh_folder, progress, run
from bench.tables import markdown

PARAMETERS = SecureBoostParameters(trees=20, depth=4, bins=32, learning_rate=0.1, cipher="none")


def measure(quick: bool = False) -> dict[str, Any]:
    """Return a row for each training; ``same_trees`` says whether the last two grew the same."""
    if not CREDIT_CARD.exists():
        return {"skipped": ABSENT, "rows": []}
    wanted = replace(PARAMETERS, trees=2) if quick else PARAMETERS
    no_floor = Floors(synthetic=True)
    with fresh_folder() as folder:
        federation = split_credit_card(CREDIT_CARD, folder)
        progress("a node of one person")
        trained = _trained(federation, wanted, no_floor)
        rows = [_row(trained, "1", "no floor")]
        least = least_people(PEOPLE, NAMED, 2 * half_slot(trained.parts["training"]))
        progress(f"a node of {least} people, asked for by the Guest")
        trained = _trained(federation, replace(wanted, min_node=least), no_floor)
        rows.append(_row(trained, str(least), "asked for by the Guest"))
        progress("Hosts that insist on their floor")
        rows.append(_row(_trained(federation, wanted, Floors()), str(least), "insisted on by the Host"))
    same_trees = rows[1]["hash"] == rows[2]["hash"]
    return {"trees": wanted.trees, "depth": wanted.depth, "rows": rows, "same_trees": same_trees}


def _trained(federation: Federation, parameters: SecureBoostParameters, floors: Floors) -> Trained:
    """Return what a training with Hosts of these floors gives; they count it, as real ones do."""
    own = read_table(federation, federation.guest.name)
    hosts = []
    for party in federation.hosts:
        accountant = Accountant(Database(), Limits())
        table = read_table(federation, party.name)
        store = memory_store()
        host = HostParty(party.name, table, party.features, store, simulated=True, accountant=accountant, floors=floors)
        hosts.append(host)
    network = Network()
    served = SimulatedHosts(network, hosts)
    session = Session(network.end(federation.guest.name), "floor", tuple(host.name for host in hosts), timeout=600)
    try:
        guest = GuestParty(federation, lambda: own)
        return guest.train(read_labels(federation).astype(np.float64), parameters, PlainKeySide(), session)
    finally:
        session.close()
        served.stop()


def _row(trained: Trained, least: str, how: str) -> dict[str, Any]:
    """Return a training's figures."""
    trees = trained.model.trees
    return {
        "least": least,
        "how": how,
        "auc": trained.metrics.auc,
        "ks": trained.metrics.ks,
        "leaves": sum(len(tree.leaves) for tree in trees),
        "hash": digest_of(trees),
    }


def digest_of(trees: Any) -> str:
    """Return a short hash of who splits which node by which feature, of gains, covers and leaf weights."""
    nodes: list[tuple[object, ...]] = []
    for tree in trees:
        for node in tree.nodes:
            kind = type(node).__name__
            if kind == "Leaf":
                nodes.append((kind, node.weight, node.cover))
            else:
                nodes.append(
                    (kind, node.owner, node.feature, node.left, node.right, node.default_left, node.gain, node.cover)
                )
    return sha256(repr(nodes).encode()).hexdigest()[:16]


def describe(results: dict[str, Any]) -> str:
    """Return a table."""
    if not results["rows"]:
        return str(results["skipped"])
    cells = [
        [row["least"], row["how"], f"{row['auc']:.4f}", f"{100 * row['ks']:.1f} %", str(row["leaves"]), row["hash"]]
        for row in results["rows"]
    ]
    table = markdown(["people a node", "grown", "test AUC", "KS", "leaves", "trees"], cells)
    same = "the same trees" if results["same_trees"] else "OTHER trees"
    return f"{table}\n\nWhere the Guest asks and where the Host insists: {same}."


if __name__ == "__main__":
    run(__doc__, measure, describe)
