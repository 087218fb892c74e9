"""Other libraries' models, divided between parties and scored by Fed-EINI, against the libraries' own raw predictions."""

import json
import pickle
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from actors import running, score
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from worlds import GUEST, World

from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import Feature, Kind
from backend.data.table import PartyTable
from backend.errors import ModelError
from backend.protocols.inference.fed_eini import to_logits
from backend.trees.artefact import dump_guest, dump_host, load_guest, load_host
from backend.trees.ensemble import HostModel, Leaf, Rule, Split
from backend.trees.importers import read_categories, read_model
from backend.trees.importers.halves import split_between_parties
from backend.trees.importers.sklearn_file import export
from backend.trees.importers.thresholds import LARGEST, at_most, at_most_float32, below_float32
from backend.trees.importers.ubjson import parse_ubjson
from backend.trees.importers.whole import WholeSplit

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
ANY_SEED = st.integers(0, 2**32 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SLOW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def xgboost():
    return pytest.importorskip("xgboost", reason="xgboost-cpu is in requirements-dev.txt; it is not installed here")


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


def labels_of(draw, frame):
    lean = (frame.x.fillna(0.5) > 0).astype(int) + (frame.c.cat.codes == 1) + (frame.d == 5) + (frame.k > 0) + frame.b
    return (lean + draw.normal(size=len(frame)) > 2).to_numpy().astype(int)


def column_of(series):
    """As a party's table holds it."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return np.array([None if pd.isna(v) else str(v) for v in series], dtype=object)
    return series.to_numpy(dtype=np.float64)


def divided(model, frame, owner, bits=20, features=FEATURES, **options):
    """The halves and every party's records, in orders of their own."""
    dictionary = [(owner[f.name], f) for f in features.values()]
    guest, hosts = split_between_parties(model, dictionary, GUEST, PARTIES[1:], bits, **options)
    ids = [f"id{i}" for i in range(len(frame))]
    tables = {}
    for shift, party in enumerate(PARTIES):
        order = np.roll(np.arange(len(ids)), shift)
        columns = {f: column_of(frame[f])[order] for f in features if owner[f] == party}
        tables[party] = PartyTable(party, tuple(ids[i] for i in order), columns)
    return World(guest, hosts, tables)


def scores_of(world):
    """By Fed-EINI over real messages, in plain numbers."""
    with running(world) as (guest, network, _):
        scored, _ = score(world, guest, network, PlainKeySide())
    return to_logits(scored.units, world.model.score_bits)


def random_owner(draw):
    return {name: PARTIES[draw.integers(3)] for name in FEATURES}


def assert_equal_within_the_bound(world, raw, own_rounding):
    """Half a unit a tree and half a unit for the base score, and what the library itself rounds."""
    bound = (len(world.model.trees) + 1) * 2.0 ** -(world.model.score_bits + 1)
    assert np.abs(scores_of(world) - raw).max() <= bound + own_rounding * (1 + np.abs(raw).max())
    assert_only_owners_hold_rules(world)


def assert_only_owners_hold_rules(world):
    model = world.model
    for t, tree in enumerate(model.trees):
        for i, split in tree.splits.items():
            holders = [p for p, rules in rules_of(world).items() if (t, i) in rules]
            assert holders == [split.owner] == [model.owner_of(split.feature)]
    assert load_guest(dump_guest(model)) == model
    for half in world.hosts.values():
        assert load_host(dump_host(half)) == half


def rules_of(world):
    return {GUEST: world.model.rules} | {host: half.rules for host, half in world.hosts.items()}


# --- thresholds --------------------------------------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore")
def near(threshold, shift):
    """A float64 beside a threshold, where roundings decide."""
    t = np.float32(threshold)
    a, b = np.float64(np.nextafter(t, np.float32(-np.inf))), np.float64(np.nextafter(t, np.float32(np.inf)))
    points = [np.float64(t), a, b, (a + t) / 2, (b + t) / 2]
    points += [np.nextafter(p, d) for p in points for d in (-np.inf, np.inf)]
    value = float(points[shift % len(points)])
    return value if abs(value) < LARGEST else 0.0


@settings(max_examples=500, deadline=None)
@given(st.floats(width=32, allow_nan=False), st.integers(0, 14), st.one_of(st.none(), FINITE))
@example(0.0, 3, None)
@example(-0.0, 0, None)
@example(float(np.finfo(np.float32).max), 4, None)
@example(-float(np.finfo(np.float32).max), 3, None)
@example(1e-45, 3, None)
@example(np.inf, 0, 3.5e38)
@example(-np.inf, 0, -3.5e38)
def test_a_value_is_left_of_our_threshold_where_its_float32_is_left_of_xgboosts(threshold, shift, value):
    value = near(threshold, shift) if value is None else value
    assume(np.isfinite(value))
    with np.errstate(over="ignore"):
        expected = np.float32(value) < np.float32(threshold)
    assert (value < below_float32(threshold)) == expected


@settings(max_examples=500, deadline=None)
@given(FINITE, st.integers(0, 14), st.one_of(st.none(), FINITE))
def test_a_value_is_left_of_our_threshold_where_its_float32_is_at_most_scikit_learns(threshold, shift, value):
    value = near(threshold, shift) if value is None else value
    with np.errstate(over="ignore"):
        expected = float(np.float32(value)) <= threshold
    assert (value < at_most_float32(threshold)) == expected


@given(FINITE, st.one_of(st.none(), FINITE))
@example(1e300, None)
@example(-0.0, 0.0)
def test_a_value_is_left_of_our_threshold_where_it_is_at_most_lightgbms(threshold, value):
    value = threshold if value is None else value
    assume(abs(value) < LARGEST)
    assert (value < at_most(threshold)) == (value <= threshold)


# --- XGBoost -----------------------------------------------------------------------------------------------------------


def train_xgboost(path, frame, y, rounds=4, **parameters):
    xgb = xgboost()
    settings_ = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3, "min_child_weight": 0.1} | parameters
    booster = xgb.train(settings_, xgb.DMatrix(frame, y, enable_categorical=True), rounds)
    booster.save_model(path)
    return booster


def xgboost_margin(booster, frame):
    return booster.predict(xgboost().DMatrix(frame, enable_categorical=True), output_margin=True).astype(np.float64)


@SLOW
@given(
    ANY_SEED, st.sampled_from(["hist", "approx"]), st.sampled_from(["gbtree", "dart"]), st.sampled_from([10, 20, 24])
)
def test_xgboosts_models_score_as_xgboost_does(tmp_path, seed, method, booster, bits):
    draw = np.random.default_rng(seed)
    path = tmp_path / f"model.{draw.choice(['json', 'ubj'])}"
    train = random_frame(draw, gaps=draw.choice([0.0, 0.2]))
    parameters = {"max_cat_to_onehot": int(draw.choice([1, 100])), "gamma": float(draw.choice([0.0, 1.0]))}
    if booster == "dart":
        parameters["rate_drop"] = 0.5
    if draw.random() < 0.5:
        parameters["base_score"] = 0.3
    model = train_xgboost(
        path, train, labels_of(draw, train), tree_method=method, booster=booster, seed=int(seed % 1000), **parameters
    )
    frame = random_frame(draw, n=40, gaps=0.3)
    world = divided(read_model(path), frame, random_owner(draw), bits)
    assert_equal_within_the_bound(world, xgboost_margin(model, frame), own_rounding=1e-6)


@SLOW
@given(ANY_SEED)
def test_xgboosts_decisions_beside_its_thresholds_are_its_own(tmp_path, seed):
    draw = np.random.default_rng(seed)
    train = random_frame(draw)[["x", "k"]]
    path = tmp_path / "model.ubj"
    model = train_xgboost(path, train, (train.x.fillna(1) > 0).astype(int), tree_method="exact", gamma=0.5)
    cuts = [c for tree in json.loads(model.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
            for c, left in zip(tree["split_conditions"], tree["left_children"], strict=True) if left != -1]  # fmt: skip
    beside = [near(c, shift) for c in cuts for shift in range(15)] or [0.0]
    frame = pd.DataFrame({"x": beside, "k": beside[::-1]})
    features = {name: FEATURES[name] for name in ("x", "k")}
    world = divided(read_model(path), frame, {"x": "host1", "k": GUEST}, features=features)
    assert_equal_within_the_bound(world, xgboost_margin(model, frame), own_rounding=1e-6)


def test_json_and_ubj_of_one_model_are_the_same_model(tmp_path):
    draw = np.random.default_rng(3)
    train = random_frame(draw)
    booster = train_xgboost(tmp_path / "model.json", train, labels_of(draw, train))
    booster.save_model(tmp_path / "model.ubj")
    from_json, from_ubj = read_model(tmp_path / "model.json"), read_model(tmp_path / "model.ubj")
    assert {f.name for f in fields(from_json) if getattr(from_json, f.name) != getattr(from_ubj, f.name)} == {"file"}
    assert from_json.categories == {3: CITIES, 4: ("3", "5", "40")}


def test_category_names_that_xgboost_has_cut_in_the_wrong_places_are_asked_for(tmp_path):
    draw = np.random.default_rng(6)
    train = random_frame(draw, cities=WIDE_CITIES)
    booster = train_xgboost(tmp_path / "model.json", train, labels_of(draw, train))
    model = read_model(tmp_path / "model.json")
    assert model.categories == {4: ("3", "5", "40")}
    with pytest.raises(ModelError, match=r"feature 'c': the file does not legibly say .*--categories"):
        divided(model, train, random_owner(draw))
    world = divided(model, train, random_owner(draw), categories={"c": WIDE_CITIES})
    assert_equal_within_the_bound(world, xgboost_margin(booster, train), own_rounding=1e-6)


@pytest.mark.parametrize("version", [[3, 2, 0], [3, 4, 0]])
def test_names_beyond_ascii_are_trusted_from_the_version_that_keeps_them(tmp_path, version):
    raw = np.frombuffer("".join(WIDE_CITIES).encode(), dtype=np.int8).tolist()
    document = xgboost_document() | {"version": version}
    offsets = np.cumsum([0, *(len(city.encode()) for city in WIDE_CITIES)]).tolist()
    booster = document["learner"]["gradient_booster"]["model"]
    booster["cats"] = {"enc": [{"offsets": offsets, "values": raw}]}
    assert read_document(tmp_path, document).categories == ({0: WIDE_CITIES} if version > [3, 3] else {})


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


STUMP = {"x": FEATURES["x"]}


def test_a_stump_by_hand_becomes_a_rule_at_the_host_and_weights_at_the_guest(tmp_path):
    model = read_document(tmp_path, xgboost_document())
    guest, hosts = split_between_parties(model, [("host0", FEATURES["x"])], GUEST, ["host0"], 10)
    assert guest.trees[0].nodes == (Split("host0", "x", 1, 2, False, 4.0, 3.0), Leaf(-0.25, 1.0), Leaf(0.5, 2.0))
    assert guest.rules == {} and guest.base_score == 0.0 and guest.hosts == ("host0",)
    (rule,) = hosts["host0"].rules.values()
    values = np.array([np.nextafter(np.float32(1.5), np.float32(0)), 1.5, np.nan, -7.0])
    assert rule.goes_left(values).tolist() == [True, False, False, True]
    frame = pd.DataFrame({"x": values})
    assert scores_of(divided(model, frame, {"x": "host0"}, 10, STUMP)).tolist() == [-0.25, 0.5, 0.5, -0.25]


def test_the_guests_half_has_no_place_for_a_hosts_threshold(tmp_path):
    model = read_document(tmp_path, xgboost_document(tree={"split_conditions": [1234.5678, -0.25, 0.5]}))
    guest, hosts = split_between_parties(model, [("host0", FEATURES["x"])], GUEST, ["host0", "host1"], 10)
    assert "1234.5" not in dump_guest(guest) and "1234.5" in dump_host(hosts["host0"])
    assert "0.25" not in dump_host(hosts["host0"])
    assert isinstance(hosts["host1"], HostModel) and hosts["host1"].rules == {}
    assert hosts["host0"].salt != hosts["host1"].salt


def test_the_base_score_is_the_logit_of_a_probability(tmp_path):
    for text, logit in [("[7.5E-1]", np.log(3)), ("2.5E-1", -np.log(3)), ("[0E0]", np.log(1e-6 / (1 - 1e-6)))]:
        model = read_document(tmp_path, xgboost_document(param={"base_score": text}))
        assert model.base_score == pytest.approx(logit, rel=1e-6)


def test_a_dart_tree_is_multiplied_by_its_weight(tmp_path):
    document = xgboost_document()
    booster = document["learner"]["gradient_booster"]
    document["learner"]["gradient_booster"] = {"name": "dart", "gbtree": booster, "weight_drop": [0.5]}
    model = read_document(tmp_path, document)
    assert [n.weight for n in model.trees[0] if isinstance(n, Leaf)] == [-0.125, 0.25]


def test_pruned_nodes_of_xgboost_are_left_out(tmp_path):
    keys = ("left_children", "right_children", "split_indices", "default_left", "split_type", "loss_changes")
    tree = {key: [*xgboost_document()["learner"]["gradient_booster"]["model"]["trees"][0][key], -1, -1] for key in keys}
    tree |= {"default_left": [0] * 5, "split_conditions": [1.5, -0.25, 0.5, 9, 9], "sum_hessian": [3, 1, 2, 0, 0]}
    tree["tree_param"] = {"num_nodes": "5", "num_deleted": "2", "size_leaf_vector": "1"}
    assert len(read_document(tmp_path, xgboost_document(tree=tree)).trees[0]) == 3
    tree["tree_param"] = {"num_nodes": "5", "num_deleted": "0", "size_leaf_vector": "1"}
    with pytest.raises(ModelError, match=r"model\.json, tree 0: found 5 nodes of which 3 can be reached"):
        read_document(tmp_path, xgboost_document(tree=tree))


def test_trees_after_the_best_iteration_are_imported_and_said_to_be(tmp_path):
    xgb, draw = xgboost(), np.random.default_rng(1)
    train = random_frame(draw)
    data = xgb.DMatrix(train, labels_of(draw, train), enable_categorical=True)
    booster = xgb.train({"objective": "binary:logistic", "nthread": 1}, data, 6)
    booster.set_attr(best_iteration="2")
    booster.save_model(tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    assert len(model.trees) == 6
    assert "iteration 2 its best and goes on to 5" in model.notes[0]
    booster[:3].save_model(tmp_path / "cut.json")
    assert len(read_model(tmp_path / "cut.json").trees) == 3 and read_model(tmp_path / "cut.json").notes == ()


# --- LightGBM ----------------------------------------------------------------------------------------------------------


def train_lightgbm(path, frame, y, rounds=4, **parameters):
    lgb = lightgbm()
    settings_ = {"objective": "binary", "verbose": -1, "num_threads": 1, "num_leaves": 6, "min_data_in_leaf": 3}
    settings_ |= {"min_data_per_group": 1, "cat_smooth": 1.0, "cat_l2": 1.0, "min_data_in_bin": 1} | parameters
    booster = lgb.train(settings_, lgb.Dataset(frame, y), rounds)
    booster.save_model(path)
    return booster


@SLOW
@given(ANY_SEED, st.sampled_from(["gbdt", "dart", "rf"]), st.booleans(), st.sampled_from([10, 20, 24]))
def test_lightgbms_models_score_as_lightgbm_does(tmp_path, seed, boosting, use_missing, bits):
    draw = np.random.default_rng(seed)
    parameters = {"boosting": boosting, "use_missing": use_missing, "seed": int(seed % 1000)}
    if boosting == "rf":
        parameters |= {"bagging_freq": 1, "bagging_fraction": 0.7}
    parameters |= {
        "max_cat_to_onehot": int(draw.choice([1, 4])),
        "objective": str(draw.choice(["binary", "cross_entropy"])),
    }
    train = random_frame(draw, gaps=draw.choice([0.0, 0.2]), cities=WIDE_CITIES)
    model = train_lightgbm(tmp_path / "model.txt", train, labels_of(draw, train), **parameters)
    frame = random_frame(draw, n=40, gaps=0.3, cities=(*WIDE_CITIES, "a city never seen"))
    world = divided(read_model(tmp_path / "model.txt"), frame, random_owner(draw), bits)
    raw = model.predict(frame, raw_score=True)
    if boosting == "rf":
        raw /= model.num_trees()  # the probability is that of the mean, the raw score the sum
        assert np.allclose(1 / (1 + np.exp(-raw)), model.predict(frame))
    assert_equal_within_the_bound(world, raw, own_rounding=1e-12)


@SLOW
@given(ANY_SEED)
def test_lightgbms_decisions_beside_its_thresholds_are_its_own(tmp_path, seed):
    draw = np.random.default_rng(seed)
    train = random_frame(draw)[["x", "k"]]
    model = train_lightgbm(tmp_path / "model.txt", train, (train.x.fillna(1) > 0).astype(int))
    tables = model.trees_to_dataframe()
    cuts = [float(c) for c in tables.threshold if not pd.isna(c)]
    beside = [v for c in cuts for v in (c, np.nextafter(c, -np.inf), np.nextafter(c, np.inf), 0.0, 1e-36, -1e-36)]
    frame = pd.DataFrame({"x": beside, "k": beside[::-1]})
    features = {name: FEATURES[name] for name in ("x", "k")}
    world = divided(read_model(tmp_path / "model.txt"), frame, {"x": "host1", "k": GUEST}, features=features)
    assert_equal_within_the_bound(world, model.predict(frame, raw_score=True), own_rounding=1e-12)


@SLOW
@given(ANY_SEED)
def test_zeros_that_lightgbm_takes_for_missing_are_translated_exactly_or_refused(tmp_path, seed):
    draw = np.random.default_rng(seed)
    train = random_frame(draw)[["k"]]
    y = ((train.k > draw.integers(-2, 3)) ^ (draw.random(len(train)) < 0.1)).astype(int)
    model = train_lightgbm(tmp_path / "model.txt", train, y, zero_as_missing=True, num_leaves=2, rounds=1)
    try:
        whole = read_model(tmp_path / "model.txt")
    except ModelError as error:
        assert "zero_as_missing" in str(error)
        return
    frame = pd.DataFrame({"k": [-3.0, -1.0, -1e-35, -1e-36, 0.0, 1e-36, 1.0, 2.0, 3.0, np.nan]})
    world = divided(whole, frame, {"k": "host0"}, features={"k": FEATURES["k"]})
    assert_equal_within_the_bound(world, model.predict(frame, raw_score=True), own_rounding=1e-12)


def test_a_steeper_sigmoid_of_lightgbm_is_multiplied_in_so_that_scores_are_logits(tmp_path):
    draw = np.random.default_rng(5)
    train = random_frame(draw)
    model = train_lightgbm(tmp_path / "model.txt", train, labels_of(draw, train), sigmoid=2.0)
    world = divided(read_model(tmp_path / "model.txt"), train, random_owner(draw), 24)
    p = model.predict(train)
    assert_equal_within_the_bound(world, np.log(p / (1 - p)), own_rounding=1e-9)


def test_a_lightgbm_model_without_a_split_is_its_average(tmp_path):
    train = random_frame(np.random.default_rng(2))
    y = np.arange(len(train)) % 4 == 0
    booster = train_lightgbm(tmp_path / "model.txt", train, y, min_data_in_leaf=len(train))
    world = divided(read_model(tmp_path / "model.txt"), train, dict.fromkeys(FEATURES, "host1"))
    assert_equal_within_the_bound(world, booster.predict(train, raw_score=True), own_rounding=1e-12)


# --- scikit-learn ------------------------------------------------------------------------------------------------------


def export_to(path, estimator):
    path.write_text(json.dumps(export(estimator), allow_nan=False), encoding="utf-8")
    return read_model(path)


@SLOW
@given(ANY_SEED, st.sampled_from([10, 20, 24]))
def test_histogram_boosting_of_scikit_learn_scores_as_scikit_learn_does(tmp_path, seed, bits):
    draw = np.random.default_rng(seed)
    train = random_frame(draw, gaps=draw.choice([0.0, 0.2]), cities=WIDE_CITIES)
    estimator = HistGradientBoostingClassifier(
        max_iter=4, max_leaf_nodes=6, min_samples_leaf=3, categorical_features="from_dtype", random_state=0
    ).fit(train, labels_of(draw, train))
    frame = random_frame(draw, n=40, gaps=0.3, cities=(*WIDE_CITIES, "a city never seen"))
    world = divided(export_to(tmp_path / "model.json", estimator), frame, random_owner(draw), bits)
    assert_equal_within_the_bound(world, estimator.decision_function(frame), own_rounding=1e-12)


@SLOW
@given(ANY_SEED, st.sampled_from([None, "zero"]))
def test_gradient_boosting_of_scikit_learn_scores_as_scikit_learn_does(tmp_path, seed, init):
    draw = np.random.default_rng(seed)
    train = random_frame(draw, gaps=0.0)[["x", "k", "b"]]
    y = np.where(draw.normal(size=len(train)) + train.x + train.b > 0, "yes", "no")
    estimator = GradientBoostingClassifier(n_estimators=5, max_depth=3, init=init, subsample=0.8, random_state=0)
    estimator.fit(train, y)
    cuts = [c for stage in estimator.estimators_ for c in stage[0].tree_.threshold if c != -2]
    beside = [near(c, shift) for c in cuts for shift in range(15)]
    frame = pd.DataFrame({"x": beside, "k": beside[::-1], "b": [i % 2 == 0 for i in range(len(beside))]})
    features = {name: FEATURES[name] for name in ("x", "k", "b")}
    model = export_to(tmp_path / "model.json", estimator)
    assert "'yes'" in model.notes[0]
    world = divided(model, frame, random_owner(draw), features=features)
    assert_equal_within_the_bound(world, estimator.decision_function(frame), own_rounding=1e-12)


def test_histogram_boosting_on_whole_number_codes_keeps_its_columns_apart(tmp_path):
    draw = np.random.default_rng(9)
    numbers = np.column_stack([draw.normal(size=90), draw.choice([3, 5, 40], 90), draw.normal(size=90)])
    y = (numbers[:, 1] == 5) ^ (numbers[:, 2] > 0)
    estimator = HistGradientBoostingClassifier(max_iter=5, categorical_features=[1], min_samples_leaf=3).fit(numbers, y)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(export(estimator)), encoding="utf-8")
    model = read_model(path, features=["x", "d", "k"])
    frame = pd.DataFrame({"x": numbers[:, 0], "d": pd.Categorical(numbers[:, 1].astype(int)), "k": numbers[:, 2]})
    features = {name: FEATURES[name] for name in ("x", "d", "k")}
    world = divided(model, frame, {"x": GUEST, "d": "host0", "k": "host1"}, features=features)
    assert_equal_within_the_bound(world, estimator.decision_function(numbers), own_rounding=1e-12)


def test_the_snippet_of_the_page_writes_a_file_that_is_read(tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[2] / "docs" / "import.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    x = np.arange(40.0).reshape(-1, 2)
    monkeypatch.chdir(tmp_path)
    exec(snippet, {"estimator": GradientBoostingClassifier(n_estimators=2).fit(x, x[:, 0] > 20)})  # noqa: S102
    assert read_model(tmp_path / "model.json").features == ("f0", "f1")


def test_estimators_whose_scores_are_no_logits_are_not_written_out():
    x, y = np.arange(12.0).reshape(-1, 1), np.arange(12) % 3
    few = {"n_estimators": 2}
    for estimator, words in [
        (RandomForestClassifier(**few).fit(x, y > 0), "averages probabilities"),
        (LogisticRegression().fit(x, y > 0), "found LogisticRegression, expected GradientBoostingClassifier or Hist"),
        (GradientBoostingClassifier(**few), "not fitted"),
        (GradientBoostingClassifier(**few).fit(x, y), "found 3 classes, expected 2"),
        (GradientBoostingClassifier(loss="exponential", **few).fit(x, y > 0), "'exponential', expected 'log_loss'"),
        (
            GradientBoostingClassifier(init=DummyClassifier(strategy="uniform"), **few).fit(x, y > 0),
            "init: found Dummy",
        ),
    ]:
        with pytest.raises(ModelError, match=words):
            export(estimator)


# --- category codes ----------------------------------------------------------------------------------------------------


def coded_xgboost(tmp_path, codes=(1,)):
    """Splits on codes 0, 1, 2 of a feature without names: `codes` go right, to 0.5; missing values left, to -0.25."""
    tree = {
        "split_type": [1, 0, 0],
        "default_left": [1, 0, 0],
        "categories": list(codes),
        "categories_nodes": [0],
        "categories_segments": [0],
        "categories_sizes": [len(codes)],
    }
    return read_document(tmp_path, xgboost_document(tree=tree, feature_names=["c"]))


def score_texts(model, feature, texts, **options):
    frame = pd.DataFrame({"c": pd.Categorical(texts)})
    return scores_of(divided(model, frame, {"c": "host0"}, features={"c": feature}, **options)).tolist()


def test_codes_without_names_ask_for_their_texts(tmp_path):
    with pytest.raises(ModelError, match=r"model\.json, feature 'c': .*the code 1 is, .*--categories"):
        split_between_parties(coded_xgboost(tmp_path), [("host0", FEATURES["c"])], GUEST, ["host0"], 10)


def test_codes_take_the_texts_that_are_given_in_their_order(tmp_path):
    texts = [*CITIES, None, "a city never seen"]
    scores = score_texts(coded_xgboost(tmp_path), FEATURES["c"], texts, categories={"c": CITIES})
    assert scores == [-0.25, 0.5, -0.25, -0.25, -0.25]


def test_codes_are_the_federations_own_where_it_lists_them_as_whole_numbers(tmp_path):
    coded = FEATURES["c"].model_copy(update={"categories": {"0": "none", "1": "one", "2": "two"}})
    assert score_texts(coded_xgboost(tmp_path), coded, ["0", "1", "2", None]) == [-0.25, 0.5, -0.25, -0.25]
    with pytest.raises(ModelError, match="the code 3 is"):
        score_texts(coded_xgboost(tmp_path, codes=(1, 3)), coded, ["0"])


def test_given_texts_are_checked_against_the_federations_codes(tmp_path):
    cities = FEATURES["c"].model_copy(update={"categories": dict.fromkeys(CITIES, "a city")})
    for given_texts, words in [
        (
            ("Bern", "Cologne", "Beijing"),
            "found the categories 'Cologne', expected the federation's codes 'Bern', 'Koeln'",
        ),
        (("Bern", "Bern"), "two category codes with one text"),
    ]:
        with pytest.raises(ModelError, match=words):
            score_texts(coded_xgboost(tmp_path), cities, ["Bern"], categories={"c": given_texts})
    with pytest.raises(ModelError, match="given for 'z', which is none of its columns"):
        score_texts(coded_xgboost(tmp_path), cities, ["Bern"], categories={"c": CITIES, "z": ()})


def test_texts_of_codes_are_read_from_a_file(tmp_path):
    path = tmp_path / "codes.json"
    path.write_text(json.dumps({"c": WIDE_CITIES}), encoding="utf-8")
    assert read_categories(path) == {"c": WIDE_CITIES}
    for wrong, words in [("[]", "found no object"), ('{"c": [1]}', "'c': found no list of texts"), ("{", "line 1")]:
        path.write_text(wrong)
        with pytest.raises(ModelError, match=rf"codes\.json.*{words}"):
            read_categories(path)


def test_a_cut_through_codes_that_are_numbers_becomes_sets_of_codes(tmp_path):
    model = read_document(tmp_path, xgboost_document(feature_names=["c"]))
    coded = FEATURES["c"].model_copy(update={"categories": {"1": "one", "2": "two", "10": "ten"}})
    assert score_texts(model, coded, ["1", "2", "10", None, "7"]) == [-0.25, 0.5, 0.5, 0.5, 0.5]
    with pytest.raises(ModelError, match="cuts it as a number, the federation has it as categorical"):
        score_texts(model, FEATURES["c"], ["1"])


def test_a_categorical_split_on_a_number_of_the_federation_is_refused(tmp_path):
    number = Feature(name="c", meaning="a number")
    with pytest.raises(ModelError, match="has it as categorical, the federation as numeric"):
        split_between_parties(coded_xgboost(tmp_path), [("host0", number)], GUEST, ["host0"], 10)


# --- what cannot be imported -------------------------------------------------------------------------------------------


def test_a_split_on_a_feature_of_nobody_is_refused_and_an_unused_one_is_not(tmp_path):
    model = read_document(tmp_path, xgboost_document())
    for dictionary in ([("host0", FEATURES["k"])], [("stranger", FEATURES["x"]), ("host0", FEATURES["k"])]):
        with pytest.raises(ModelError, match=r"model\.json: found splits on 'x', expected a feature .*: 'k'\."):
            split_between_parties(model, dictionary, GUEST, ["host0"], 10)
    names = xgboost_document(feature_names=["x", "of nobody"], param={"num_feature": "2"})
    guest, _ = split_between_parties(read_document(tmp_path, names), [("host0", FEATURES["x"])], GUEST, ["host0"], 10)
    assert guest.dictionary == (("host0", FEATURES["x"]),)


def test_columns_can_be_named_anew(tmp_path):
    nameless = xgboost_document(feature_names=[], param={"num_feature": "2"})
    assert read_document(tmp_path, nameless).features == ("f0", "f1")
    assert read_document(tmp_path, nameless, features=["income", "age"]).features == ("income", "age")
    for names, words in [
        (["income"], "found 1 feature names, expected"),
        (["age", "age"], "found 'age' more than once"),
    ]:
        with pytest.raises(ModelError, match=words):
            read_document(tmp_path, nameless, features=names)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"objective": {"name": "multi:softprob"}},
            "learner.objective: found 'multi:softprob', expected binary:logistic",
        ),
        ({"objective": {"name": "reg:squarederror"}}, "only their scores are logits"),
        ({"param": {"num_class": "3"}}, "found 3 outputs a sample, expected one"),
        ({"param": {"base_score": "[5E-1,2E-1]"}}, r"base_score: found '\[5E-1,2E-1\]', expected one probability"),
        ({"param": {"base_score": "[5E99]"}}, "one probability"),
        ({"param": {"num_feature": "9999999999"}}, "num_feature: found 9,999,999,999"),
        ({"gradient_booster": {"name": "gblinear", "model": {}}}, "found 'gblinear', expected gbtree or dart"),
        ({"feature_names": ["x", "x"], "param": {"num_feature": "2"}}, "found 'x' more than once"),
        ({"tree": {"left_children": [0, -1, -1]}}, "tree 0: found two ways to node 0"),
        ({"tree": {"left_children": [7, -1, -1]}}, "a way to node 7, which is not there"),
        ({"tree": {"left_children": [1, -1]}}, "lists of 2, 3 nodes, expected 3"),
        ({"tree": {"split_indices": [1, 0, 0]}}, "node 0: found feature 1, expected one of 0 … 0"),
        ({"tree": {"split_indices": ["x", 0, 0]}}, r"trees\.0\.split_indices\.0: found 'x'"),
        ({"tree": {"split_conditions": [1.5, 1e30, 0.5]}}, "node 1: found a leaf weight of 1.0[0-9]*e"),
        ({"tree": {"split_conditions": [float("nan"), 1, 0.5]}}, "node 0: found a threshold of nan"),
        ({"tree": {"split_type": [1, 0, 0]}}, "node 0: found a categorical split without categories"),
        ({"tree": {"sum_hessian": [3.0, -1.0, 2.0]}}, "a cover of -1.0"),
        ({"tree": {"tree_param": {"num_nodes": "3", "size_leaf_vector": "2"}}}, "leaves of several weights"),
    ],
)
def test_an_xgboost_file_that_does_not_fit_is_refused_by_file_and_place(tmp_path, changes, words):
    with pytest.raises(ModelError, match=words) as caught:
        read_document(tmp_path, xgboost_document(**changes))
    assert str(caught.value).startswith("model.json")


LIGHTGBM = """tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=0
objective=binary sigmoid:1
feature_names=x
tree_sizes=200

Tree=0
num_leaves=2
num_cat=0
split_feature=0
split_gain=8
threshold=1.5
decision_type=8
left_child=-1
right_child=-2
leaf_value=-0.25 0.5
leaf_weight=1 2
internal_weight=3
is_linear=0


end of trees
"""


def read_text(tmp_path, text):
    path = tmp_path / "model.txt"
    path.write_bytes(text.encode())
    return read_model(path)


def test_a_lightgbm_stump_by_hand_sends_its_own_threshold_left(tmp_path):
    model = read_text(tmp_path, LIGHTGBM)
    assert model.trees == (
        (WholeSplit(0, 1, 2, False, 4.0, 3.0, np.nextafter(1.5, 2)), Leaf(-0.25, 1.0), Leaf(0.5, 2.0)),
    )
    assert read_text(tmp_path, LIGHTGBM.replace("\n", "\r\n")).trees == model.trees
    frame = pd.DataFrame({"x": [1.5, np.nextafter(1.5, 2), np.nan]})
    assert scores_of(divided(model, frame, {"x": "host0"}, 10, STUMP)).tolist() == [-0.25, 0.5, 0.5]


@pytest.mark.parametrize(("decision_type", "missing"), [(8, 0.5), (10, -0.25), (0, -0.25), (2, -0.25), (6, -0.25)])
def test_a_missing_value_goes_where_lightgbms_missing_type_sends_it(tmp_path, decision_type, missing):
    # 8, 10: NaN, default right and left; 0, 2: none, so that missing is 0 and 0 <= 1.5; 6: zero is missing, default left
    model = read_text(tmp_path, LIGHTGBM.replace("decision_type=8", f"decision_type={decision_type}"))
    world = divided(model, pd.DataFrame({"x": [np.nan]}), {"x": "host0"}, 10, STUMP)
    assert scores_of(world).tolist() == [missing]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("version=v4", "version=v2", "line 2, version: found 'v2', expected v3 or v4"),
        ("binary sigmoid:1", "regression", "line 6, objective: found 'regression', expected binary or cross_entropy"),
        ("objective=binary sigmoid:1\n", "", "objective: found 'no objective'"),
        ("sigmoid:1", "sigmoid:-1", "found 'sigmoid:-1', expected sigmoid: and a positive number"),
        ("num_class=1", "num_class=3", "line 3, num_class: found '3', expected 1 output"),
        ("is_linear=0", "is_linear=1", "tree 0: found linear leaves"),
        ("decision_type=8", "decision_type=4", "zero_as_missing"),
        ("decision_type=8", "decision_type=12", "expected a missing type of 0, 1 or 2"),
        ("decision_type=8", "decision_type=1", "found category set 1.5, expected one of 0"),
        ("left_child=-1", "left_child=-2", "tree 0: found two ways to node -2"),
        ("left_child=-1", "left_child=-1 -1", "line 17, left_child: found 2 numbers, expected 1"),
        ("threshold=1.5", "threshold=nan", "found a threshold of nan"),
        ("threshold=1.5", "threshold=one", "line 15, threshold: found 'one', expected numbers"),
        ("split_gain=8\n", "", "tree 0, split_gain: found nothing"),
        ("Tree=0", "Tree=1", "line 10: found 'Tree=1', expected Tree=0"),
        ("tree_sizes=200", "tree_sizes=200 200", "tree_sizes: found 2 trees, expected 1"),
        ("end of trees\n", "", "expected 'end of trees'"),
        ("end of trees\n", "end of trees\n\nparameters:\n", "expected 'end of parameters'"),
        ("end of trees\n", 'end of trees\npandas_categorical:[["a"', "pandas_categorical, line 1"),
        ("end of trees\n", 'end of trees\npandas_categorical:[["a"]]', "categories of 1 columns, but 0 categorical"),
    ],
)
def test_a_lightgbm_file_that_does_not_fit_is_refused_by_file_and_place(tmp_path, old, new, words):
    assert old in LIGHTGBM
    with pytest.raises(ModelError, match=words) as caught:
        read_text(tmp_path, LIGHTGBM.replace(old, new))
    assert str(caught.value).startswith("model.txt")


class Harmful:
    """A pickle of it writes a file when it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_a_pickle_is_refused_and_never_opened(tmp_path):
    trace = tmp_path / "opened"
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Harmful(str(trace))))
    with pytest.raises(ModelError, match=r"model\.pkl: found a pickle or an archive"):
        read_model(tmp_path / "model.pkl")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no known form"),
        (b"binf\x00\x00", "no known form"),
        (b"PK\x03\x04", "a pickle or an archive"),
        (b"{}", "format: found another format"),
        (b'{"format": "glassleaf-sklearn-9"}', "expected 'glassleaf-sklearn-1'"),
        (b'{"tree_info": []}', r"LightGBM's dump, .*booster\.save_model\('model\.txt'\)"),
        (b'[{"nodeid": 0}]', "a list, such as XGBoost's dump"),
        (b'{"nodes": []}', "JSON of no known form"),
        (b'{"learner": 1', r"line 1, column 14: found Expecting ',' delimiter"),
        (b'{"learner": 1}', "learner: found '1'"),
        (b"[" * 100_000, "RecursionError while reading"),
        (b'{"learner": ' + b"9" * 5000 + b"}", "ValueError while reading"),
        (b'{"\xff": 1}', "byte 2: found a byte that is not UTF-8"),
        (b"tree\n\xff", "byte 5: found a byte that is not UTF-8"),
        (b"{i\x07learner", "byte 10: found a length of 1, expected at most the 0 bytes that are left"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path, content, words):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelError, match=words):
        read_model(tmp_path / "model")


def test_an_absent_file_a_folder_and_a_file_too_large_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ModelError, match=r"model\.json: no such file"):
        read_model(tmp_path / "model.json")
    with pytest.raises(ModelError, match="cannot be read"):
        read_model(tmp_path)
    monkeypatch.setattr("backend.trees.importers.reading.MAX_FILE", 10)
    (tmp_path / "model.json").write_text("{} " * 10)
    with pytest.raises(ModelError, match="found 30 bytes, expected at most 10"):
        read_model(tmp_path / "model.json")


def test_ubj_has_constants_signed_and_unsigned_numbers_and_open_arrays():
    blob = b"{i\x01a[TFZi\xffU\xffI\xff\xfe]i\x01b[$d#i\x02\x3f\x80\x00\x00\xc0\x00\x00\x00"
    blob += b"i\x01cSi\x02\xc3\xb6i\x01d[#i\x01D\x3f\xf0\0\0\0\0\0\0}"
    expected = {"a": [True, False, None, -1, 255, -2], "b": [1.0, -2.0], "c": "ö", "d": [1.0]}
    assert parse_ubjson("m", blob) == expected


@pytest.mark.parametrize(
    ("blob", "words"),
    [
        (b"{}{", "byte 2: found 1 more bytes, expected the end of the file"),
        (b"{i\x01ai\x01i\x01ai\x01}", "the key 'a' twice"),
        (b"[#i\xff", "an array of -1 values"),
        (b"[$d#l\x7f\xff\xff\xff", "an array of 2,147,483,647 values"),
        (b"[$S#i\x01", "an array of 'S'"),
        (b"Q", "byte 1: found 'Q', expected a value"),
        (b"Si\x01\xff", "text that is not UTF-8"),
        (b"SS", "found 'S', expected a length"),
        (b"[" * 50, "nested more than 32 deep"),
    ],
)
def test_ubj_that_makes_no_sense_is_refused_by_its_byte(blob, words):
    with pytest.raises(ModelError, match=re.escape(words)):
        parse_ubjson("m", blob)


@pytest.fixture(scope="module")
def sound_files(tmp_path_factory):
    """One file of each form, and what it is called."""
    folder, draw = tmp_path_factory.mktemp("models"), np.random.default_rng(4)
    train = random_frame(draw)
    y = labels_of(draw, train)
    train_xgboost(folder / "model.json", train, y, rounds=2).save_model(folder / "model.ubj")
    train_lightgbm(folder / "model.txt", train, y, rounds=2)
    estimator = HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=5, categorical_features="from_dtype")
    (folder / "sklearn.json").write_text(json.dumps(export(estimator.fit(train, y))))
    return folder


@pytest.mark.parametrize("form", ["model.json", "model.ubj", "model.txt", "sklearn.json"])
def test_a_file_cut_off_or_garbled_anywhere_is_refused_or_still_a_model(tmp_path, sound_files, form):
    sound = (sound_files / form).read_bytes()
    draw = np.random.default_rng(0)
    cut = [sound[:n] for n in draw.integers(0, len(sound) - 40, 60)]
    garbled = []
    for _ in range(400):
        place, length = draw.integers(0, len(sound)), draw.integers(1, 4)
        noise = draw.choice([draw.bytes(length), b"9" * length, b"-", b"[", b"}", b"\n", b"", b" 1e999", b"nan"])
        garbled.append(sound[:place] + bytes(noise) + sound[place + length :])
    assert all(refuses(tmp_path / form, blob) for blob in cut)
    assert sum(refuses(tmp_path / form, blob) for blob in garbled) > len(garbled) / 4


def refuses(path, blob):
    """Whether a file is refused in words; one that is read must give sound halves."""
    path.write_bytes(blob)
    try:
        model = read_model(path)
        owner = {name: PARTIES[i % 3] for i, name in enumerate(FEATURES)}
        world = divided(model, random_frame(np.random.default_rng(0), n=1), owner)
    except ModelError as error:
        assert path.name in str(error) and len(str(error)) < 2000
        return True
    assert_only_owners_hold_rules(world)
    assert all(isinstance(rule, Rule) for rules in rules_of(world).values() for rule in rules.values())
    return False
