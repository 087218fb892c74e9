"""Random records of three parties, other libraries' models of them, and their scores by Fed-EINI over real messages."""

import json

import numpy as np
import pandas as pd
import pytest
import xgboost
from actors import running, score
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from worlds import GUEST, World

from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import Feature, Kind
from backend.data.label import Label
from backend.data.table import PartyTable
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.trees.importers import read_model
from backend.trees.importers.partition import split_between_parties
from backend.trees.importers.sklearn_file import export
from backend.trees.importers.thresholds import LARGEST
from backend.trees.serialization import dump_guest, dump_host, load_guest, load_host

PARTIES = (GUEST, "host0", "host1")
CITIES = ("Bern", "Koeln", "Beijing")
WIDE_CITIES = ("Bern", "Köln", "北京")
FEATURES = {
    "x": Feature(name="x", meaning="a number"),
    "k": Feature(name="k", meaning="a count"),
    "b": Feature(name="b", meaning="yes or no", kind=Kind.BOOLEAN),
    "c": Feature(name="c", meaning="a city", kind=Kind.CATEGORICAL),
    "d": Feature(name="d", meaning="a code", kind=Kind.CATEGORICAL),
}
STUMP = {"x": FEATURES["x"]}
BINARY = Label(column="y", positive="1", meaning="two outcomes")
CLASSES = Label(column="y", task="classes", classes=("low", "mid", "high"), meaning="three classes")
NUMBER = Label(column="y", task="number", meaning="an amount")
LABELS = {"binary": BINARY, "classes": CLASSES, "number": NUMBER}
ANY_SEED = st.integers(0, 2**32 - 1)
SLOW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def lightgbm():
    return pytest.importorskip("lightgbm", reason="lightgbm is in requirements-dev.txt; it is not installed here")


def random_frame(draw, n=80, gaps=0.2, cities=CITIES):
    """Rows with gaps: a float64, a count around 0, a yes/no, a text category and a whole-number category."""
    frame = pd.DataFrame({"x": draw.normal(size=n), "k": draw.integers(-2, 4, n).astype(float)})
    frame["b"] = draw.random(n) < 0.5
    frame["c"] = pd.Categorical(draw.choice(cities, n), categories=cities)
    frame["d"] = pd.Categorical(draw.choice([3, 5, 40], n), categories=[3, 5, 40])
    for name in ("x", "k", "c", "d"):
        frame.loc[draw.random(n) < gaps, name] = np.nan
    return frame


def labels_of(draw, frame, task="binary"):
    """Outcomes, numbers of three classes or amounts of some hundred thousand that lean on every column."""
    lean = (frame.x.fillna(0.5) > 0).astype(int) + (frame.c.cat.codes == 1) + (frame.d == 5) + (frame.k > 0) + frame.b
    lean = (lean + draw.normal(size=len(frame))).to_numpy()
    if task == "number":
        return 250_000.0 + 30_000.0 * lean
    return np.digitize(lean, np.quantile(lean, [0.3, 0.7])) if task == "classes" else (lean > 2).astype(int)


def column_of(series):
    """As a party's table holds it."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return np.array([None if pd.isna(v) else str(v) for v in series], dtype=object)
    return series.to_numpy(dtype=np.float64)


def divided(model, frame, owner, bits=20, features=FEATURES, label=BINARY, **options):
    """The halves and every party's records, in orders of their own."""
    dictionary = [(owner[f.name], f) for f in features.values()]
    partial_models = split_between_parties(model, dictionary, label, GUEST, PARTIES[1:], bits, **options)
    ids = [f"id{i}" for i in range(len(frame))]
    tables = {}
    for shift, party in enumerate(PARTIES):
        order = np.roll(np.arange(len(ids)), shift)
        columns = {f: column_of(frame[f])[order] for f in features if owner[f] == party}
        tables[party] = PartyTable(party, tuple(ids[i] for i in order), columns)
    return World(partial_models.guest, partial_models.hosts, tables)


def margins_of(world):
    """By Fed-EINI over real messages, in plaintext; ``(n, outputs)``."""
    with running(world) as (guest, network, _):
        scored, _ = score(world, guest, network, PlainKeySide())
    return CompiledGuest(world.model).margins(scored.units)


def scores_of(world):
    """The margins of a model of one output, ``(n,)``."""
    return margins_of(world)[:, 0]


def random_owner(draw):
    return {name: PARTIES[draw.integers(3)] for name in FEATURES}


def assert_equal_within_the_bound(world, raw, own_rounding):
    """Half a unit for each tree that adds to an output and half a unit for its base score, and what the library itself rounds."""
    model = world.model
    trees = len(model.trees) // (model.outputs.count if model.outputs.of_tree else 1)
    bound = (trees + 1) * 2.0 ** -(model.score_bits + 1)
    margins = margins_of(world)
    assert np.abs(margins - np.reshape(raw, margins.shape)).max() <= bound + own_rounding * (1 + np.abs(raw).max())
    assert_only_owners_hold_rules(world)


def assert_only_owners_hold_rules(world):
    model = world.model
    for t, tree in enumerate(model.trees):
        for i, split in tree.splits.items():
            holders = [p for p, rules in rules_of(world).items() if (t, i) in rules]
            assert holders == [split.owner] == [model.owner_of(split.feature)]
    assert load_guest(dump_guest(model)) == model
    for partial_model in world.hosts.values():
        assert load_host(dump_host(partial_model)) == partial_model


def rules_of(world):
    return {GUEST: world.model.rules} | {host: partial_model.rules for host, partial_model in world.hosts.items()}


@np.errstate(over="ignore", invalid="ignore")
def near(threshold, shift):
    """A float64 beside a threshold, where roundings decide."""
    t = np.float32(threshold)
    a, b = np.float64(np.nextafter(t, np.float32(-np.inf))), np.float64(np.nextafter(t, np.float32(np.inf)))
    points = [np.float64(t), a, b, (a + t) / 2, (b + t) / 2]
    points += [np.nextafter(p, d) for p in points for d in (-np.inf, np.inf)]
    value = float(points[shift % len(points)])
    return value if abs(value) < LARGEST else 0.0


def train_xgboost(path, frame, y, rounds=4, **parameters):
    settings_ = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3, "min_child_weight": 0.1} | parameters
    booster = xgboost.train(settings_, xgboost.DMatrix(frame, y, enable_categorical=True), rounds)
    booster.save_model(path)
    return booster


def xgboost_margin(booster, frame):
    return booster.predict(xgboost.DMatrix(frame, enable_categorical=True), output_margin=True).astype(np.float64)


def xgboost_document(**changes):
    """A stump by hand: x < 1.5 scores -0.25, other values and missing ones 0.5; base score 1/2, so logit 0."""
    tree = {
        "tree_param": {"num_nodes": "3", "num_deleted": "0", "size_leaf_vector": "1"},
        "left_children": [1, -1, -1],
        "right_children": [2, -1, -1],
        "split_indices": [0, 0, 0],
        "split_conditions": [1.5, -0.25, 0.5],
        "default_left": [0, 0, 0],
        "split_type": [0, 0, 0],
        "loss_changes": [8.0, 0.0, 0.0],
        "sum_hessian": [3.0, 1.0, 2.0],
    }
    trees = {"trees": [tree | changes.pop("tree", {})], "tree_info": [0], "gbtree_model_param": {"num_trees": "1"}}
    param = {"base_score": "[5E-1]", "num_class": "0", "num_feature": "1", "num_target": "1"} | changes.pop("param", {})
    return {
        "learner": {
            "attributes": {},
            "feature_names": ["x"],
            "gradient_booster": {"name": "gbtree", "model": trees},
            "learner_model_param": param,
            "objective": {"name": "binary:logistic"},
        }
        | changes,
        "version": [3, 2, 0],
    }


def read_document(tmp_path, document, **options):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return read_model(path, **options)


def train_lightgbm(path, frame, y, rounds=4, **parameters):
    lgb = lightgbm()
    settings_ = {"objective": "binary", "verbose": -1, "num_threads": 1, "num_leaves": 6, "min_data_in_leaf": 3}
    settings_ |= {"min_data_per_group": 1, "cat_smooth": 1.0, "cat_l2": 1.0, "min_data_in_bin": 1} | parameters
    booster = lgb.train(settings_, lgb.Dataset(frame, y), rounds)
    booster.save_model(path)
    return booster


def export_to(path, estimator):
    path.write_text(json.dumps(export(estimator), allow_nan=False), encoding="utf-8")
    return read_model(path)
