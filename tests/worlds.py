"""Random ensembles over several parties, in both partial models, and the oracle: node by node with everything in one hand."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from backend.data.dictionary import Feature, Kind
from backend.data.label import Label
from backend.data.medians import medians
from backend.data.table import PartyTable
from backend.trees.backgrounds import score_bands
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, Split, SplitRule
from backend.trees.importers import read_model
from backend.trees.importers.partition import split_between_parties
from backend.trees.outputs import Outputs

GUEST = "bank"


@dataclass(frozen=True)
class World:
    """A model in its halves and every party's records."""

    model: GuestModel
    hosts: dict[str, HostModel]
    tables: dict[str, PartyTable]

    def oracle(self, row: dict[str, object]) -> int:
        """Walk every tree node by node; `row` maps feature → value (None = missing). Integer units of the scale."""
        rules = dict(self.model.rules)
        for partial_model in self.hosts.values():
            rules.update(partial_model.rules)
        unit = 2**self.model.score_bits
        total = round(self.model.base_scores[0] * unit)
        for t, tree in enumerate(self.model.trees):
            total += round(tree.nodes[self.leaf_of(t, row, rules)].weight * unit)
        return total

    def leaf_of(self, t: int, row: dict[str, object], rules: dict | None = None) -> int:
        """Node number of the leaf where the walk of one tree ends."""
        known = rules or {
            **self.model.rules,
            **{k: r for partial_model in self.hosts.values() for k, r in partial_model.rules.items()},
        }
        nodes, i = self.model.trees[t].nodes, 0
        while isinstance(nodes[i], Split):
            i = nodes[i].left if goes_left(known[t, i], row.get(nodes[i].feature)) else nodes[i].right
        return i

    def row(self, sample_id: str) -> dict[str, object]:
        """Everything all parties hold about one id; a Host that holds nothing contributes nothing."""
        row = {}
        for table in self.tables.values():
            if sample_id in table.row_of:
                for name, column in table.columns.items():
                    value = column[table.row_of[sample_id]]
                    row[name] = None if pd.isna(value) else value
        return row


def goes_left(rule: SplitRule, value: object) -> bool:
    """One value, one rule, in the plainest words."""
    if value is None:
        return rule.default_left
    if rule.threshold is not None:
        return float(value) >= rule.threshold if rule.above else float(value) < rule.threshold
    if value in rule.left_categories:
        return True
    if value in rule.right_categories:
        return False
    return rule.default_left


def random_world(seed: int, n_hosts: int = 2, n_trees: int = 4, depth: int = 3, n: int = 12, bits: int = 10) -> World:
    """Draw parties with two numeric and one categorical feature each, records with gaps, and trees over all of them."""
    draw = np.random.default_rng(seed)
    parties = [GUEST, *(f"host{i}" for i in range(n_hosts))]
    ids = tuple(f"id{i}" for i in range(n))
    features = {
        p: (
            Feature(name=f"{p}_x", meaning="x"),
            Feature(name=f"{p}_y", meaning="y"),
            Feature(name=f"{p}_c", meaning="c", kind=Kind.CATEGORICAL),
        )
        for p in parties
    }
    tables = {}
    for p in parties:
        held = [i for i in ids if p == GUEST or draw.random() < 0.8]
        order = draw.permutation(len(held))
        columns = {}
        for f in features[p]:
            if f.kind is Kind.CATEGORICAL:
                column = np.array([draw.choice(["a", "b", "c", "d"]) for _ in held], dtype=object)
                column[draw.random(len(held)) < 0.2] = None
            else:
                column = draw.normal(size=len(held)).round(1)
                column[draw.random(len(held)) < 0.2] = np.nan
            columns[f.name] = column
        tables[p] = PartyTable(p, tuple(held[i] for i in order), {k: c[order] for k, c in columns.items()})
    rules: dict[str, dict[tuple[int, int], SplitRule]] = {p: {} for p in parties}
    trees = tuple(_random_tree(draw, t, parties, features, rules, depth) for t in range(n_trees))
    base = round(float(draw.normal()) * 2**bits) / 2**bits
    dictionary = tuple((p, f) for p in parties for f in features[p])
    model = GuestModel(GUEST, tuple(parties[1:]), trees, (base,), bits, dictionary, rules[GUEST])
    hosts = {p: HostModel(p, GUEST, tuple(parties[1:]), model.skeletons, rules[p], "salt") for p in parties[1:]}
    return World(model, hosts, tables)


def with_outputs(world: World, kind: str, seed: int) -> World:
    """The same splits with other leaves: three shares each ("vectors"), trees for one class each, or a median over the trees."""
    draw = np.random.default_rng(seed)
    model, classes = world.model, ("a", "b", "c")
    if kind == "vectors":
        outputs = Outputs("classes", classes, "identity")
    elif kind == "class trees":
        outputs = Outputs("classes", classes, "softmax", of_tree=tuple(t % 3 for t in range(len(model.trees))))
    else:
        outputs = Outputs(link="identity", aggregation="median")
    trees = model.trees
    if kind == "vectors":
        trees = tuple(
            GuestTree(
                tuple(
                    n if isinstance(n, Split) else Leaf(n.weight, n.cover, tuple(draw.dirichlet([1.0] * 3).tolist()))
                    for n in tree.nodes
                )
            )
            for tree in trees
        )
    bases = tuple(draw.normal(size=outputs.count).tolist())
    return replace(world, model=replace(model, trees=trees, base_scores=bases, outputs=outputs))


def with_covers(world: World, seed: int) -> World:
    """The same trees with covers drawn for the leaves and added up above."""
    draw = np.random.default_rng(seed)
    trees = []
    for tree in world.model.trees:
        nodes = list(tree.nodes)
        for i in reversed(range(len(nodes))):  # children stand behind their parents
            node = nodes[i]
            if isinstance(node, Split):
                nodes[i] = replace(node, cover=nodes[node.left].cover + nodes[node.right].cover)
            else:
                nodes[i] = replace(node, cover=float(draw.uniform(0.5, 20.0)))
        trees.append(GuestTree(tuple(nodes)))
    return replace(world, model=replace(world.model, trees=tuple(trees)))


def with_bands(world: World) -> World:
    """The same trees, and all records counted by leaf and score, as if the model had been trained on them."""
    rules = dict(world.model.rules)
    for partial_model in world.hosts.values():
        rules.update(partial_model.rules)
    rows = [world.row(i) for i in world.tables[GUEST].ids]
    leaves = [np.array([world.leaf_of(t, row, rules) for row in rows]) for t in range(len(world.model.trees))]
    bands = score_bands(world.model.trees, leaves, np.array([world.oracle(row) for row in rows]))
    return replace(world, model=replace(world.model, bands=bands))


def with_medians(world: World) -> World:
    """The same trees, and every party's medians over all of its records."""

    def of(party, rules):
        used = {rule.feature for rule in rules.values()}
        own = [f for p, f in world.model.dictionary if p == party and f.name in used]
        table = world.tables[party]
        return medians(own, table.columns, np.ones(len(table.ids), dtype=bool))

    hosts = {name: replace(host, medians=of(name, host.rules)) for name, host in world.hosts.items()}
    return replace(world, model=replace(world.model, medians=of(GUEST, world.model.rules)), hosts=hosts)


def imported_world(folder, people: int = 400) -> tuple[World, pd.DataFrame]:
    """A model that XGBoost trained, split between two parties, and XGBoost's own contributions: a column a feature, the bias last.

    All but a few people have gaps; every party holds a record of everybody.
    """
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is installed for tests only; it is not here")
    draw, host = np.random.default_rng(3), "host"
    table = pd.DataFrame(draw.normal(size=(people, 5)), columns=list("abcde")).mask(draw.random((people, 5)) < 0.1)
    risk = table.fillna(0) @ [1, -1, 0.5, 0, 2] + table.a.fillna(0) * table.b.fillna(0)
    matrix = xgboost.DMatrix(table, (risk > 0).astype(int))
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 5, "nthread": 1}, matrix, 15)
    booster.save_model(folder / "model.json")
    offered = [(GUEST if name in "ab" else host, Feature(name=name, meaning=name)) for name in table]
    label = Label(column="y", positive="1", meaning="default")
    partial_models = split_between_parties(read_model(folder / "model.json"), offered, label, GUEST, [host], 10)
    ids = tuple(f"id{i}" for i in range(people))
    tables = {
        party: PartyTable(party, ids, {name: table[name].to_numpy() for name in names})
        for party, names in ((GUEST, "ab"), (host, "cde"))
    }
    wanted = pd.DataFrame(booster.predict(matrix, pred_contribs=True), columns=[*table, "bias"])
    return World(partial_models.guest, dict(partial_models.hosts), tables), wanted


def _random_tree(draw, t, parties, features, rules, depth) -> GuestTree:
    nodes = []

    def grow(level: int) -> int:
        number = len(nodes)
        nodes.append(None)
        if level == depth or (level and draw.random() < 0.2):
            nodes[number] = Leaf(float(draw.normal()), 1.0)
            return number
        party = parties[draw.integers(len(parties))]
        feature = features[party][draw.integers(3)]
        default_left = bool(draw.random() < 0.5)
        if feature.kind is Kind.CATEGORICAL:
            # d was never seen
            rule = SplitRule(feature.name, default_left, None, frozenset({"a"}), frozenset({"b", "c"}))
        else:
            rule = SplitRule(
                feature.name, default_left, round(float(draw.normal()), 1), above=bool(draw.random() < 0.2)
            )
        rules[party][t, number] = rule
        left, right = grow(level + 1), grow(level + 1)
        cover = nodes[left].cover + nodes[right].cover
        nodes[number] = Split(party, feature.name, left, right, default_left, float(draw.random()), cover)
        return number

    grow(0)
    return GuestTree(tuple(nodes))
