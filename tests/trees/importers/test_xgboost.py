"""XGBoost's models against its own raw predictions, and its files by hand."""

import json
from dataclasses import fields
from functools import partial

import numpy as np
import pandas as pd
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST

from backend.data.dictionary import Feature
from backend.data.label import Label
from backend.errors import ModelError
from backend.services.import_proof import _empty_sides, _zeros_missing
from backend.trees.ensemble import Leaf
from backend.trees.importers import read_model
from backend.trees.importers.partition import split_between_parties
from backend.trees.outputs import Outputs
from tests.trees.importers.frames import (
    ANY_SEED,
    CITIES,
    FEATURES,
    LABELS,
    SLOW,
    WIDE_CITIES,
    assert_equal_within_the_bound,
    divided,
    labels_of,
    margins_of,
    near,
    random_frame,
    random_owner,
    read_document,
    train_xgboost,
    xgboost_document,
    xgboost_margin,
)


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


SEVERAL = ("reg:absoluteerror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:quantileerror")
KINDS = {
    "multi:softprob": "classes",
    "multi:softmax": "classes",
    "binary:logitraw": "binary",
    "reg:squarederror": "number",
}
KINDS |= dict.fromkeys(SEVERAL, "number")


@pytest.mark.slow
@settings(SLOW, max_examples=25)
@given(ANY_SEED, st.sampled_from(sorted(KINDS)), st.sampled_from(["gbtree", "dart"]), st.sampled_from([10, 20, 24]))
def test_xgboosts_classes_and_numbers_have_its_own_margins(tmp_path, seed, objective, booster, bits):
    draw = np.random.default_rng(seed)
    train, task = random_frame(draw, gaps=draw.choice([0.0, 0.2])), KINDS[objective]
    y = labels_of(draw, train, task) / (1e5 if objective in SEVERAL else 1)  # two of them move by 1 a round at most
    parameters = {"objective": objective, "booster": booster, "num_parallel_tree": int(draw.choice([1, 2]))}
    parameters |= {"rate_drop": 0.5} if booster == "dart" else {}
    parameters |= {"num_class": 3} if task == "classes" else {}
    parameters |= {"quantile_alpha": 0.3} if objective == "reg:quantileerror" else {}
    parameters |= {"base_score": 0.3} if draw.random() < 0.3 else {}
    path = tmp_path / f"model.{draw.choice(['json', 'ubj'])}"
    model = train_xgboost(path, train, y, seed=int(seed % 1000), **parameters)
    frame = random_frame(draw, n=40, gaps=0.3)
    world = divided(read_model(path), frame, random_owner(draw), bits, label=LABELS[task])
    assert world.model.outputs.classes == LABELS[task].classes
    assert_equal_within_the_bound(world, xgboost_margin(model, frame), own_rounding=1e-6)


def test_probabilities_of_xgboosts_classes_are_its_own(tmp_path):
    draw = np.random.default_rng(7)
    train = random_frame(draw)
    y = labels_of(draw, train, "classes")
    model = train_xgboost(tmp_path / "model.json", train, y, objective="multi:softprob", num_class=3)
    world = divided(read_model(tmp_path / "model.json"), train, random_owner(draw), 24, label=LABELS["classes"])
    own = model.predict(xgboost.DMatrix(train, enable_categorical=True))
    assert world.model.outputs.predict(margins_of(world)) == pytest.approx(own, abs=1e-5)


def test_every_tree_adds_to_its_own_class_and_one_base_score_is_every_class_s(tmp_path):
    document = xgboost_document(objective={"name": "multi:softprob"}, param={"num_class": "3", "base_score": "[1,2,3]"})
    booster = document["learner"]["gradient_booster"]["model"]
    booster |= {"trees": booster["trees"] * 3, "tree_info": [2, 0, 1], "gbtree_model_param": {"num_trees": "3"}}
    model = read_document(tmp_path, document)
    assert model.outputs == Outputs("classes", ("0", "1", "2"), "softmax", of_tree=(2, 0, 1))
    assert model.base_scores == (1.0, 2.0, 3.0)
    document["learner"]["learner_model_param"]["base_score"] = "5E-1"
    assert read_document(tmp_path, document).base_scores == (0.5, 0.5, 0.5)
    for wrong, words in [([2, 0, 3], "tree_info: found"), ([2, 0], "tree_info: found"), ([], "tree 0, leaf: found 1")]:
        booster["tree_info"] = wrong
        with pytest.raises(ModelError, match=words):
            read_document(tmp_path, document)


def test_xgboosts_trees_of_several_outputs_are_refused(tmp_path):
    draw = np.random.default_rng(8)
    train = random_frame(draw)
    options = {
        "objective": "multi:softprob",
        "num_class": 3,
        "multi_strategy": "multi_output_tree",
        "max_cat_to_onehot": 9,
    }
    train_xgboost(tmp_path / "model.json", train[["x", "k"]], labels_of(draw, train, "classes"), **options)
    with pytest.raises(ModelError, match=r"leaves of several weights.*multi_strategy=one_output_per_tree"):
        read_model(tmp_path / "model.json")


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


def test_the_base_score_is_the_logit_of_a_probability(tmp_path):
    for text, logit in [("[7.5E-1]", np.log(3)), ("2.5E-1", -np.log(3)), ("[1E-9]", np.log(1e-6 / (1 - 1e-6)))]:
        model = read_document(tmp_path, xgboost_document(param={"base_score": text}))
        assert model.base_scores == (pytest.approx(logit, rel=1e-6),)


@pytest.mark.parametrize("text", ["[0E0]", "[1E0]", "1", "0"])
def test_a_base_score_that_is_certain_of_one_outcome_is_refused(tmp_path, text):
    with pytest.raises(ModelError, match=r"base_score: found .* expected one probability, not 0 and not 1"):
        read_document(tmp_path, xgboost_document(param={"base_score": text}))


@pytest.mark.parametrize("side", ["yes", "true", 2, 0.5, None])
def test_a_default_side_that_is_neither_0_nor_1_is_refused(tmp_path, side):
    with pytest.raises(ModelError, match="default_left"):
        read_document(tmp_path, xgboost_document(tree={"default_left": [side, 0, 0]}))


@pytest.mark.parametrize("threshold", [float("inf"), float("-inf"), float("nan"), 1e39])
def test_a_threshold_that_is_no_float32_is_refused(tmp_path, threshold):
    with pytest.raises(ModelError, match="threshold: found"):
        read_document(tmp_path, xgboost_document(tree={"split_conditions": [threshold, -0.25, 0.5]}))


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
    with pytest.raises(ModelError, match=r"model\.json, tree 0: found 3 / 5"):
        read_document(tmp_path, xgboost_document(tree=tree))


def test_trees_after_the_best_iteration_are_imported_and_said_to_be(tmp_path):
    draw = np.random.default_rng(1)
    train = random_frame(draw)
    data = xgboost.DMatrix(train, labels_of(draw, train), enable_categorical=True)
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, 6)
    booster.set_attr(best_iteration="2")
    booster.save_model(tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    assert len(model.trees) == 6
    assert model.notes[0].code == "trained_past_best" and model.notes[0].values["last"] == 5
    booster[:3].save_model(tmp_path / "cut.json")
    assert len(read_model(tmp_path / "cut.json").trees) == 3 and read_model(tmp_path / "cut.json").notes == ()


def test_rounds_are_counted_in_files_that_do_not_say_them_and_an_untested_version_is_named(tmp_path):
    draw = np.random.default_rng(1)
    train = random_frame(draw)
    data = xgboost.DMatrix(train, labels_of(draw, train), enable_categorical=True)
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, 6)
    booster.set_attr(best_iteration="2")
    document = json.loads(booster.save_raw("json"))
    del document["learner"]["gradient_booster"]["model"]["iteration_indptr"]
    document["version"] = [1, 7, 6]
    (tmp_path / "old.json").write_text(json.dumps(document))
    notes = {note.code: note.values for note in read_model(tmp_path / "old.json").notes}
    assert notes["trained_past_best"] == {"best": 2, "last": 5, "trees": 6}
    assert notes["library_version_untested"]["found"] == "1.7.6"


def test_a_column_of_few_splits_is_not_said_to_have_had_no_gap(tmp_path):
    draw = np.random.default_rng(3)
    x = draw.normal(size=(300, 1))
    x[::7] = np.nan
    y = np.nan_to_num(x[:, 0]) > 0
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 1}, xgboost.DMatrix(x, y), 3)
    booster.save_model(tmp_path / "model.json")
    assert not read_model(tmp_path / "model.json").gapless


@pytest.mark.parametrize(
    ("change", "told"),
    [(lambda x: x, 0), (np.log1p, 1), (lambda x: x / 100, 1), (lambda x: x * 1.02, 0)],
)
def test_splits_that_the_cells_cannot_have_made_are_told(tmp_path, change, told):
    draw = np.random.default_rng(5)
    x = draw.uniform(10, 90, size=(1000, 2))
    y = draw.random(1000) < 1 / (1 + np.exp(-(x[:, 0] - 50) / 15 - (x[:, 1] - 50) / 15))
    trained = np.column_stack([change(x[:, 0]), x[:, 1]])
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 3}, xgboost.DMatrix(trained, y), 10)
    booster.save_model(tmp_path / "model.json")
    notes = _empty_sides(read_model(tmp_path / "model.json"), x)
    assert len(notes) == told
    for note in notes:
        assert note.code == "cells_unlike_training" and note.values["columns"][0].values["name"] == "'f0'"


@pytest.mark.parametrize(("missing", "told"), [(0.0, True), (np.nan, False)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_model_that_was_trained_with_zero_as_missing_is_told(tmp_path, missing, told, seed):
    x, y = with_zeros(seed)
    matrix = xgboost.DMatrix(x, y, missing=missing)
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 3}, matrix, 10)
    booster.save_model(tmp_path / "model.json")
    notes = _zeros_missing(read_model(tmp_path / "model.json"), x)
    assert [note.code for note in notes] == ["zeros_seem_missing"] * told
    if told:
        assert notes[0].values["columns"] == ("'f0'", "'f1'")
        assert notes[0].values["gap"] > 0.1 and notes[0].values["without"] < 0.03
        # Once the feature counts 0 as missing, nothing is left to say, and scores are the library's.
        blank = np.where(x == 0, np.nan, x)
        assert not _zeros_missing(read_model(tmp_path / "model.json"), blank)
        ours = read_model(tmp_path / "model.json").margins(blank)[:, 0]
        np.testing.assert_allclose(ours, booster.predict(matrix, output_margin=True), atol=1e-5)


def with_zeros(seed):
    """1,500 people with two numbers; the first is 0 for four in ten of them, who default more often."""
    draw = np.random.default_rng(seed)
    amount = np.where(draw.random(1500) < 0.4, 0.0, draw.gamma(2, 1, 1500))
    steps = draw.integers(-3, 4, 1500).astype(np.float64)
    logits = 1.5 * (amount == 0) + 0.4 * amount + 0.5 * steps - 1
    return np.column_stack([amount, steps]), draw.random(1500) < 1 / (1 + np.exp(-logits))


@pytest.mark.parametrize(
    ("attribute", "missing", "passes"),
    [
        ('{"missing": 0.0}', (), False),
        ('{"missing": 0.0}', ("0",), True),
        ('{"missing": 0.0}', ("0.00", "?"), True),
        ('{"missing": -999.0}', ("0",), False),
        ('{"missing": NaN}', (), True),
        ('{"missing": null}', (), True),
        ('{"_estimator_type": "classifier"}', (), True),
        ("[", (), True),
    ],
)
def test_a_number_that_the_file_says_was_missing_in_training_has_to_be_missing_here(
    tmp_path, attribute, missing, passes
):
    document = xgboost_document(feature_names=["x"])
    document["learner"]["attributes"] = {"scikit_learn": attribute}
    model = read_document(tmp_path, document)
    feature = Feature(name="x", meaning="x", missing=missing)
    label = Label(column="y", positive="1", meaning="y")
    act = partial(split_between_parties, model, [("bank", feature)], label, "bank", ("shop",), 24)
    if passes:
        act()
        return
    with pytest.raises(ModelError) as caught:
        act()
    (remark,) = caught.value.remarks
    assert remark.code == "placeholder_not_missing" and remark.values["feature"] == "'x'"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"objective": {"name": "rank:pairwise"}},
            r"learner.objective: found 'rank:pairwise' \(its predictions are .*\), expected one of binary:logistic, ",
        ),
        (
            {"objective": {"name": "reg:gamma"}},
            r"'reg:gamma' \(it predicts e to the power of the sum of leaf weights\)",
        ),
        ({"objective": {"name": "multi:softmax"}, "param": {"num_class": "2"}}, "found 2 classes, expected 3 to 32"),
        ({"objective": {"name": "multi:softmax"}, "param": {"num_class": "999999999"}}, "found 999,999,999 classes"),
        ({"objective": {"name": "reg:quantileerror"}, "param": {"num_target": "2"}}, "found 2 outputs a sample"),
        ({"objective": {"name": "reg:squarederror"}, "param": {"base_score": "[NaN]"}}, "expected finite numbers"),
        (
            {"objective": {"name": "reg:squarederror"}, "param": {"base_score": "1,2"}},
            "finite numbers: one, or one for",
        ),
        ({"param": {"num_class": "3"}}, "found 3 outputs a sample, expected one"),
        ({"param": {"base_score": "[5E-1,2E-1]"}}, r"base_score: found '\[5E-1,2E-1\]', expected one probability"),
        ({"param": {"base_score": "[5E99]"}}, "one probability"),
        ({"param": {"num_feature": "9999999999"}}, "num_feature: found 9,999,999,999"),
        ({"gradient_booster": {"name": "gblinear", "model": {}}}, "found 'gblinear', expected gbtree or dart"),
        ({"feature_names": ["x", "x"], "param": {"num_feature": "2"}}, "found 'x' more than once"),
        ({"tree": {"left_children": [0, -1, -1]}}, "node 0: found two ways to it"),
        ({"tree": {"left_children": [7, -1, -1]}}, "node 7: found nothing"),
        ({"tree": {"left_children": [1, -1]}}, "tree 0: found 2, 3, expected 3"),
        ({"tree": {"split_indices": [1, 0, 0]}}, "node 0, feature: found 1, expected 0 … 0"),
        ({"tree": {"split_indices": ["x", 0, 0]}}, r"trees\.0\.split_indices\.0: found 'x'"),
        ({"tree": {"split_conditions": [1.5, 1e30, 0.5]}}, "node 1, weight: found 1.0[0-9]*e"),
        ({"tree": {"split_conditions": [float("nan"), 1, 0.5]}}, "node 0, threshold: found nan"),
        ({"tree": {"split_type": [1, 0, 0]}}, "node 0, categories: found nothing"),
        ({"tree": {"sum_hessian": [3.0, -1.0, 2.0]}}, "cover: found -1.0"),
        ({"tree": {"tree_param": {"num_nodes": "3", "size_leaf_vector": "2"}}}, "leaves of several weights"),
    ],
)
def test_an_xgboost_file_that_does_not_fit_is_refused_by_file_and_place(tmp_path, changes, words):
    with pytest.raises(ModelError, match=words) as caught:
        read_document(tmp_path, xgboost_document(**changes))
    assert str(caught.value).startswith("model.json")
