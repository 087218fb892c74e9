"""LightGBM's models against its own raw predictions, and its files by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST

from backend.errors import ModelError
from backend.trees.ensemble import Leaf
from backend.trees.importers import read_model
from backend.trees.importers.whole import WholeSplit
from tests.trees.importers.frames import (
    ANY_SEED,
    FEATURES,
    LABELS,
    SLOW,
    STUMP,
    WIDE_CITIES,
    assert_equal_within_the_bound,
    divided,
    labels_of,
    margins_of,
    random_frame,
    random_owner,
    scores_of,
    train_lightgbm,
)


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


KINDS = {
    "multiclass": "classes",
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), "number"),
}


@pytest.mark.slow
@settings(SLOW, max_examples=20)
@given(ANY_SEED, st.sampled_from(sorted(KINDS)), st.sampled_from(["gbdt", "dart", "rf"]), st.sampled_from([10, 20, 24]))
def test_lightgbms_classes_and_numbers_have_its_own_margins(tmp_path, seed, objective, boosting, bits):
    draw = np.random.default_rng(seed)
    task = KINDS[objective]
    parameters = {"objective": objective, "boosting": boosting, "use_missing": bool(draw.random() < 0.5)}
    parameters |= {"bagging_freq": 1, "bagging_fraction": 0.7} if boosting == "rf" else {}
    parameters |= {"num_class": 3} if task == "classes" else {}
    train = random_frame(draw, gaps=draw.choice([0.0, 0.2]), cities=WIDE_CITIES)
    model = train_lightgbm(tmp_path / "model.txt", train, labels_of(draw, train, task), **parameters)
    frame = random_frame(draw, n=40, gaps=0.3, cities=(*WIDE_CITIES, "a city never seen"))
    world = divided(read_model(tmp_path / "model.txt"), frame, random_owner(draw), bits, label=LABELS[task])
    raw = model.predict(frame, raw_score=True) / (model.current_iteration() if boosting == "rf" else 1)
    assert_equal_within_the_bound(world, raw, own_rounding=1e-12)
    if task == "number":
        assert np.allclose(raw, model.predict(frame))
    elif bits == 24:
        assert np.allclose(world.model.outputs.predict(margins_of(world)), model.predict(frame), atol=1e-5)


def test_a_class_that_lightgbm_never_saw_has_a_constant(tmp_path):
    draw = np.random.default_rng(3)
    train = random_frame(draw)
    y = labels_of(draw, train, "classes") % 2
    model = train_lightgbm(tmp_path / "model.txt", train, y, objective="multiclass", num_class=3)
    world = divided(read_model(tmp_path / "model.txt"), train, random_owner(draw), label=LABELS["classes"])
    assert_equal_within_the_bound(world, model.predict(train, raw_score=True), own_rounding=1e-12)


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


def test_trees_of_lightgbm_that_are_not_as_many_for_each_class_are_refused(tmp_path):
    several = LIGHTGBM.replace("=1\nnum_tree_per_iteration=1", "=3\nnum_tree_per_iteration=3")
    with pytest.raises(ModelError, match=r"model\.txt, trees: found 1, expected the same number for each of 3 classes"):
        read_text(tmp_path, several.replace("binary sigmoid:1", "multiclass num_class:3"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("version=v4", "version=v2", "line 2, version: found 'v2', expected v3, v4"),
        (
            "binary sigmoid:1",
            "lambdarank",
            r"line 6, objective: found 'lambdarank' \(its predictions are .*\), expected one of binary, cross_entropy, mul",
        ),
        ("binary sigmoid:1", "poisson", r"found 'poisson' \(it predicts e to the power of the sum of leaf weights\)"),
        ("binary sigmoid:1", "regression sqrt", r"found 'regression sqrt' \(it predicts the square of the sum"),
        ("binary sigmoid:1", "multiclassova num_class:3 sigmoid:1", "each class has a separate probability"),
        ("binary sigmoid:1", "multiclass num_class:1", "line 3, num_class: found 1 class, expected 3 to 32"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=3", "num_tree_per_iteration: found '3', expected 1"),
        ("objective=binary sigmoid:1\n", "", "objective: found 'no objective'"),
        ("sigmoid:1", "sigmoid:-1", "found 'sigmoid:-1', expected sigmoid:1"),
        ("num_class=1", "num_class=3", "line 3, num_class: found '3' outputs a sample, expected one"),
        ("is_linear=0", "is_linear=1", "tree 0: found linear leaves"),
        ("decision_type=8", "decision_type=4", "zero_as_missing"),
        ("decision_type=8", "decision_type=12", "expected missing_type 0, 1, 2"),
        ("decision_type=8", "decision_type=1", "threshold: found 1.5, expected 0"),
        ("left_child=-1", "left_child=-2", "node -2: found two ways to it"),
        ("left_child=-1", "left_child=-1 -1", "line 17, left_child: found 2 entries, expected 1"),
        ("threshold=1.5", "threshold=nan", "node 0, threshold: found nan, expected a finite number"),
        ("threshold=1.5", "threshold=-inf", "node 0, threshold: found -inf, expected a finite number"),
        ("threshold=1.5", "threshold=one", "line 15, threshold: found 'one', expected numbers"),
        ("split_gain=8\n", "", "tree 0, split_gain: found nothing"),
        ("Tree=0", "Tree=1", "line 10: found 'Tree=1', expected Tree=0"),
        ("tree_sizes=200", "tree_sizes=200 200", "tree_sizes: found 2 entries, expected 1"),
        ("end of trees\n", "", "expected 'end of trees'"),
        ("end of trees\n", "end of trees\n\nparameters:\n", "expected 'end of parameters'"),
        ("end of trees\n", 'end of trees\npandas_categorical:[["a"', "pandas_categorical, 1:6"),
        ("end of trees\n", 'end of trees\npandas_categorical:[["a"]]', "categories of 1 column, but 0 categorical"),
    ],
)
def test_a_lightgbm_file_that_does_not_fit_is_refused_by_file_and_place(tmp_path, old, new, words):
    assert old in LIGHTGBM
    with pytest.raises(ModelError, match=words) as caught:
        read_text(tmp_path, LIGHTGBM.replace(old, new))
    assert str(caught.value).startswith("model.txt")
