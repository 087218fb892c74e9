"""The models that ciphers are measured on, with every party's partial model and records: the credit-card model, or a
random one of its shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from backend.crypto.interface import FoldPlan
from backend.data.dictionary import Feature
from backend.data.federation import Federation, Party
from backend.data.label import Label
from backend.data.table import PartyTable, read_table
from backend.protocols.scoring.fed_eini import CompiledGuest, CompiledHost, host_plan
from backend.services import Glassleaf, SecureBoostParameters, TrainingRequest
from backend.store.party_store import PartyStore
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, Split, SplitRule
from backend.trees.serialization import load_host
from bench.setting import add_credit_card, fresh_home, say

TREES, DEPTH = 100, 4  # the forest of Fed-EINI §V-B; some 1,500 leaves
SHRUNK = 0.1  # scale of a random leaf weight, as after a learning rate of 0.1
FEATURES = 10  # a party of a random case
GUEST = "bank"


@dataclass(frozen=True)
class Case:
    """A model and records, as an operator of a simulation sees them; compiled as the parties do it, once.

    Attributes
    ----------
    title : str
    model : GuestModel
    halves : dict of str to HostModel
    tables : dict of str to PartyTable
    """

    title: str
    model: GuestModel = field(repr=False)
    halves: dict[str, HostModel] = field(repr=False)
    tables: dict[str, PartyTable] = field(repr=False)

    @cached_property
    def guest(self) -> CompiledGuest:
        """The Guest's partial model, ready to score."""
        return CompiledGuest(self.model)

    @cached_property
    def hosts(self) -> list[CompiledHost]:
        """The halves of the chain, ready to score."""
        return [CompiledHost(step, self.halves[step.host].rules) for step in self.guest.folding.steps]

    @cached_property
    def plans(self) -> list[FoldPlan]:
        """How each Host of the chain folds."""
        return [host_plan(self.guest.folding, place) for place in range(len(self.hosts))]

    @property
    def chain(self) -> list[str]:
        """Hosts that are asked, in order."""
        return [step.host for step in self.guest.folding.steps]

    def records(self, n: int) -> PartyTable:
        """`n` of the Guest's records; they come again where there are fewer."""
        own = self.tables[self.model.guest]
        return own.take(np.arange(n) % len(own.ids))

    def facts(self) -> dict[str, str | int]:
        """Its size, for a table of results."""
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
    """A model grown on the credit-card data, the Guest with 13 features and one Host with 10; None where the data is absent."""
    with fresh_home() as home:
        glassleaf = Glassleaf(home, pools=False)
        name = add_credit_card(glassleaf)
        if name is None:
            return None
        say("growing the credit-card model")
        parameters = SecureBoostParameters(trees=TREES, depth=DEPTH, learning_rate=0.1, cipher="none")
        record = glassleaf.start_training(TrainingRequest(name, parameters, most_named=1.0)).get()
        model, federation = glassleaf.guest_model(record.id), glassleaf.federation(name)
        stores = {h: PartyStore(home / "parties" / name / h) for h in model.hosts}
        halves = {h: load_host(store.artefact(record.id)) for h, store in stores.items()}
        tables = {p.name: read_table(federation, p.name) for p in federation.parties}
        glassleaf.close()
    return Case(f"credit card, {TREES} trees of depth {DEPTH}", model, halves, tables)


def random_case(leaves: int, n_hosts: int = 1, n: int = 1000, seed: int = 7) -> Case:
    """Complete trees of depth 4 with `leaves` leaves in all, rounded up to whole trees; owners, cuts and records are drawn.

    Parameters
    ----------
    n : int
        Records; every party holds all of them.
    """
    draw = np.random.default_rng(seed)
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
    halves = {h: HostModel(h, GUEST, tuple(names), model.skeletons, rules[h], "salt") for h in names}
    return Case(f"random, {len(trees)} trees of depth {DEPTH}", model, halves, tables)
