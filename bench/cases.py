"""The models that ciphers are measured on, with all parties' records: the credit-card model, or a random one of its shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import FoldPlan
from backend.data.dictionary import Feature
from backend.data.federation import Federation, Party
from backend.data.label import Label
from backend.data.table import PartyTable, read_table
from backend.protocols.scoring.fed_eini import CompiledGuest, CompiledHost, host_plan
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import ModelRecord
from backend.services import Glassleaf
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, NodeKey, Split, SplitRule
from backend.trees.serialization import load_host
from bench.setting import add_credit_card, fresh_glassleaf, progress, train

# the forest of Fed-EINI §V-B; some 1,500 leaves
TREES = 100
DEPTH = 4
SHRUNK = 0.1  # scale of a random leaf weight, as after a learning rate of 0.1
FEATURES = 10  # a party of a random case
GUEST = "bank"
SEED = 7


@dataclass(frozen=True)
class Case:
    """A model and records, as an operator of a simulation sees them; compiled as the parties do it, once."""

    title: str
    model: GuestModel = field(repr=False)
    partial_models: dict[str, HostModel] = field(repr=False)
    tables: dict[str, PartyTable] = field(repr=False)

    @cached_property
    def guest(self) -> CompiledGuest:
        """The Guest's partial model, ready to score."""
        return CompiledGuest(self.model)

    @cached_property
    def hosts(self) -> list[CompiledHost]:
        """The partial models of the chain, ready to score."""
        return [CompiledHost(step, self.partial_models[step.host].rules) for step in self.guest.folding.steps]

    @cached_property
    def plans(self) -> list[FoldPlan]:
        """How each Host of the chain folds."""
        return [host_plan(self.guest.folding, index) for index in range(len(self.hosts))]

    def together(self, ids: Sequence[str]) -> tuple[dict[NodeKey, SplitRule], dict[str, NDArray[Any]]]:
        """All parties' rules, and their columns for some people, ``(n,)`` each; missing where a party holds no record."""
        rules = dict(self.model.rules)
        columns = {}
        for party, table in self.tables.items():
            if party in self.partial_models:
                rules |= self.partial_models[party].rules
            rows = np.array([table.row_of.get(i, -1) for i in ids], dtype=np.intp)
            for name, column in table.take(np.maximum(rows, 0)).columns.items():
                missing = np.array(None if column.dtype == object else np.nan, dtype=column.dtype)
                columns[name] = np.where(rows < 0, missing, column)
        return rules, columns

    @property
    def chain(self) -> list[str]:
        """Names of the Hosts, in the order of the scoring chain."""
        return [step.host for step in self.guest.folding.steps]

    def records(self, n: int) -> PartyTable:
        """`n` of the Guest's records; repeated if there are fewer."""
        own = self.tables[self.model.guest]
        return own.take(np.arange(n) % len(own.ids))

    def facts(self) -> dict[str, str | int]:
        """Its size, for the results."""
        folding = self.guest.folding
        return {
            "model": self.title,
            "trees": len(self.model.trees),
            "depth": max(tree.depth for tree in self.model.trees),
            "leaves": self.model.n_leaves,
            "entries": folding.n_entries,
            "hosts": len(folding.steps),
            "largest_sum": self.guest.largest,
        }

    def federation(self) -> Federation:
        """The parties as a federation file would name them."""

        def party(name: str) -> Party:
            features = tuple(f for p, f in self.model.dictionary if p == name)
            return Party(name=name, title=name, file=f"{name}.csv", id="id", features=features)

        return Federation(
            name="case",
            title=self.title,
            label=Label(column="label", positive="1", meaning="label"),
            guest=party(self.model.guest),
            hosts=tuple(party(h) for h in self.model.hosts),
        )


def credit_card_case() -> Case | None:
    """A model grown on the credit-card data, the Guest with 13 features and one Host with 10; None if the data is absent."""
    with fresh_glassleaf() as glassleaf:
        name = add_credit_card(glassleaf)
        if name is None:
            return None
        progress("growing the credit-card model")
        parameters = SecureBoostParameters(trees=TREES, depth=DEPTH, learning_rate=0.1, cipher="none")
        return case_of(glassleaf, train(glassleaf, name, parameters), "credit card")


def demo_case() -> Case:
    """The built-in demo with its first model."""
    with fresh_glassleaf() as glassleaf:
        name = glassleaf.training.prepare_demo()
        return case_of(glassleaf, glassleaf.models.all(name)[0], "demo")


def case_of(glassleaf: Glassleaf, record: ModelRecord, title: str) -> Case:
    """A model of the registry with all parties' records."""
    model = glassleaf.models.guest_model(record.id)
    federation = glassleaf.federations.get(record.federation)
    stores = {h: PartyStore(Database(glassleaf.home / "parties" / record.federation / h)) for h in model.hosts}
    partial_models = {h: load_host(store.artefact(record.id)) for h, store in stores.items()}
    tables = {p.name: read_table(federation, p.name) for p in federation.parties}
    return Case(f"{title}, {record.n_trees} trees of depth {record.depth}", model, partial_models, tables)


def random_case(leaves: int, n_hosts: int = 1, n: int = 1000) -> Case:
    """Complete trees of depth 4 with `leaves` leaves in all, rounded up to whole trees; owners, cuts and records are drawn.

    Parameters
    ----------
    n : int
        Records; every party holds all of them.
    """
    draw = np.random.default_rng(SEED)
    names = [f"host{i + 1}" for i in range(n_hosts)]
    features = {p: [Feature(name=f"{p}_{i}", meaning=f"{p} {i}") for i in range(FEATURES)] for p in (GUEST, *names)}
    ids = tuple(f"r{i}" for i in range(n))
    tables = {p: PartyTable(p, ids, {f.name: draw.normal(size=n) for f in own}) for p, own in features.items()}
    rules: dict[str, dict[tuple[int, int], SplitRule]] = {p: {} for p in features}
    trees = []
    for t in range(-(-leaves // 2**DEPTH)):
        nodes: list[Split | Leaf] = []
        for i in range(2**DEPTH - 1):  # node i leads to 2i + 1 and 2i + 2
            party = str(draw.choice(list(features)))
            rule = SplitRule(
                str(draw.choice([f.name for f in features[party]])), bool(draw.random() < 0.5), float(draw.normal())
            )
            rules[party][t, i] = rule
            nodes.append(Split(party, rule.feature, 2 * i + 1, 2 * i + 2, rule.default_left, 1.0, 1.0))
        nodes += [Leaf(float(draw.normal()) * SHRUNK, 1.0) for _ in range(2**DEPTH)]
        trees.append(GuestTree(tuple(nodes)))
    dictionary = tuple((p, f) for p, own in features.items() for f in own)
    model = GuestModel(GUEST, tuple(names), tuple(trees), (0.0,), 10, dictionary, rules[GUEST])
    partial_models = {h: HostModel(h, GUEST, tuple(names), model.skeletons, rules[h], "salt") for h in names}
    return Case(f"random, {len(trees)} trees of depth {DEPTH}", model, partial_models, tables)


def weights_by_tree(trees: Sequence[GuestTree]) -> list[NDArray[np.float64]]:
    """``(n_leaves,)`` a tree, its leaves from left to right."""
    leaves = [[tree.nodes[i] for i in tree.leaves] for tree in trees]
    return [np.array([leaf.weight for leaf in own if isinstance(leaf, Leaf)]) for own in leaves]
