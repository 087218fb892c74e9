"""scikit-learn's models against its own raw predictions and shares."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from worlds import GUEST

from backend.errors import ModelError
from backend.i18n import Text
from backend.trees.importers import read_model
from backend.trees.importers.sklearn_file import export
from backend.trees.outputs import Outputs
from tests.trees.importers.frames import (
    ANY_SEED,
    BINARY,
    CLASSES,
    FEATURES,
    LABELS,
    SLOW,
    WIDE_CITIES,
    assert_equal_within_the_bound,
    divided,
    export_to,
    labels_of,
    margins_of,
    near,
    random_frame,
    random_owner,
    read_document,
)


@pytest.mark.slow
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


HISTOGRAM = {"max_iter": 4, "max_leaf_nodes": 6, "min_samples_leaf": 3, "categorical_features": "from_dtype"}
BOOSTED = [
    *[(HistGradientBoostingClassifier(**HISTOGRAM), "classes")],
    *[
        (HistGradientBoostingRegressor(loss=loss, **HISTOGRAM), "number")
        for loss in ("squared_error", "absolute_error")
    ],
    *[(HistGradientBoostingRegressor(loss="quantile", quantile=0.3, **HISTOGRAM), "number")],
    *[(GradientBoostingClassifier(n_estimators=4, init=init), "classes") for init in (None, "zero")],
    *[(GradientBoostingRegressor(n_estimators=4, loss=loss), "number") for loss in ("squared_error", "absolute_error")],
    *[(GradientBoostingRegressor(n_estimators=4, loss=loss), "number") for loss in ("huber", "quantile")],
    *[(GradientBoostingRegressor(n_estimators=4, init="zero"), "number")],
]


@pytest.mark.parametrize(("estimator", "task"), BOOSTED, ids=lambda kind: str(kind)[:60])
@settings(SLOW, max_examples=3)
@given(ANY_SEED, st.sampled_from([10, 24]))
def test_boosted_classes_and_numbers_of_scikit_learn_have_its_own_margins(tmp_path, estimator, task, seed, bits):
    draw = np.random.default_rng(seed)
    histogram = "Hist" in type(estimator).__name__
    columns = list(FEATURES) if histogram else ["x", "k", "b"]
    train = random_frame(draw, gaps=0.2 if histogram else 0.0, cities=WIDE_CITIES)
    y = labels_of(draw, train, task)
    estimator.fit(train[columns], np.array(CLASSES.classes)[y] if task == "classes" else y)
    cities = (*WIDE_CITIES, "a city never seen")
    frame = random_frame(draw, n=40, gaps=0.3 if histogram else 0.0, cities=cities)[columns]
    model, features = export_to(tmp_path / "model.json", estimator), {name: FEATURES[name] for name in columns}
    world = divided(model, frame, random_owner(draw), bits, features, LABELS[task])
    if task == "number":
        assert_equal_within_the_bound(world, estimator.predict(frame), own_rounding=1e-12)
        return
    order = [estimator.classes_.tolist().index(name) for name in CLASSES.classes]
    assert order == [1, 2, 0]  # "high", "low", "mid"
    assert_equal_within_the_bound(world, estimator.decision_function(frame)[:, order], own_rounding=1e-12)
    shares = world.model.outputs.predict(margins_of(world))
    assert np.allclose(shares, estimator.predict_proba(frame)[:, order], atol=20 * 2.0**-bits)


CODES = FEATURES | {
    "d": FEATURES["d"].model_copy(update={"categories": {"3": Text("three"), "5": Text("five"), "40": Text("forty")}}),
}
FOREST = {"n_estimators": 5, "max_depth": 5, "random_state": 0}
AVERAGED = [
    *[
        (cls(**FOREST), task)
        for cls in (RandomForestClassifier, ExtraTreesClassifier)
        for task in ("binary", "classes")
    ],
    *[(DecisionTreeClassifier(max_depth=6), task) for task in ("binary", "classes")],
    *[(cls(**FOREST), "number") for cls in (RandomForestRegressor, ExtraTreesRegressor)],
    *[(DecisionTreeRegressor(criterion="absolute_error", max_depth=6), "number")],
    *[(RandomForestRegressor(criterion="poisson", **FOREST), "number")],
    *[(RandomForestClassifier(class_weight="balanced", criterion="entropy", bootstrap=False, **FOREST), "classes")],
]


@pytest.mark.parametrize(("estimator", "task"), AVERAGED, ids=lambda kind: str(kind)[:60])
@settings(SLOW, max_examples=3)
@given(ANY_SEED, st.booleans(), st.sampled_from([10, 24]))
def test_forests_and_trees_of_scikit_learn_have_its_own_shares_and_numbers(tmp_path, estimator, task, seed, gaps, bits):
    draw = np.random.default_rng(seed)
    train = random_frame(draw, gaps=0.2 * gaps)
    missing = random_frame(draw, n=60, gaps=0.3)
    y = labels_of(draw, train, task)
    estimator.fit(numbers_of(train), np.array(CLASSES.classes)[y] if task == "classes" else y)
    model, features = export_to(tmp_path / "model.json", estimator), {name: CODES[name] for name in numbers_of(train)}
    world = divided(model, missing, random_owner(draw), bits, features, LABELS[task])
    if task == "number":
        assert_equal_within_the_bound(world, estimator.predict(numbers_of(missing)), own_rounding=1e-12)
        return
    shares = estimator.predict_proba(numbers_of(missing))
    order = [1] if task == "binary" else [estimator.classes_.tolist().index(name) for name in CLASSES.classes]
    assert_equal_within_the_bound(world, shares[:, order], own_rounding=1e-12)
    assert world.model.outputs.link == "identity" and world.model.base_scores == (0.0,) * len(order)
    ours = world.model.outputs.predict(margins_of(world))
    assert np.allclose(ours, shares[:, order], atol=20 * 2.0**-bits)


def numbers_of(frame):
    """What a forest is given: the whole-number category as its numbers, and no texts."""
    return frame[["x", "k", "b", "d"]].astype(float)


@pytest.mark.slow
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
    label = BINARY.model_copy(update={"positive": "yes"})
    world = divided(model, frame, random_owner(draw), features=features, label=label)
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
    page = (Path(__file__).resolve().parents[3] / "docs" / "import.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    x = np.arange(40.0).reshape(-1, 2)
    monkeypatch.chdir(tmp_path)
    exec(snippet, {"estimator": GradientBoostingClassifier(n_estimators=2).fit(x, x[:, 0] > 20)})  # noqa: S102
    assert read_model(tmp_path / "model.json").features == ("f0", "f1")


def test_estimators_whose_predictions_are_no_sums_are_not_written_out():
    x, y = np.arange(12.0).reshape(-1, 1), np.arange(12) % 3
    few = {"n_estimators": 2}
    boosted = GradientBoostingClassifier(init=DummyClassifier(strategy="uniform"), **few).fit(x, y > 0)
    for estimator, words in [
        (
            LogisticRegression().fit(x, y > 0),
            "found LogisticRegression, expected one of GradientBoostingClassifier, Gradient",
        ),
        (AdaBoostClassifier(**few).fit(x, y > 0), "found AdaBoostClassifier"),
        (RandomForestRegressor(**few), "not fitted"),
        (
            GradientBoostingClassifier(loss="exponential", **few).fit(x, y > 0),
            "'exponential', expected one of log_loss",
        ),
        (HistGradientBoostingRegressor(loss="poisson").fit(x, y), "loss: found 'poisson', expected"),
        (DecisionTreeRegressor().fit(x, np.column_stack([y, y])), "found 2 targets, expected 1"),
        (DecisionTreeClassifier().fit(x, np.ones(12)), "found 1 class, expected 2 or more"),
        (boosted, "init: found DummyClassifier"),
    ]:
        with pytest.raises(ModelError, match=words):
            export(estimator)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"base_scores": [0.0]}, "base score: found 1 entry, expected 3"),
        ({"base_scores": [0.0, 1e30, 0.0]}, "base score: found 1e\\+30, expected a number up to"),
        ({"of_tree": [0]}, "tree 0, leaf: found 3 entries, expected 1"),
        ({"classes": ["a"]}, "classes: found 1 class, expected 3 to 32"),
        ({"classes": ["a", "b", "c", "d"], "base_scores": [0.0] * 4}, "tree 0, leaf: found 3 entries, expected 4"),
        ({"classes": [], "base_scores": [0.0]}, "tree 0, leaf: found 3 entries, expected 1"),
        ({"values": [[]]}, "node 0, values: found nothing"),
        ({"values": [[0.0, 0.0, -1e30]]}, "node 0, weight: found -1e\\+30"),
        ({"format": "glassleaf-sklearn-1"}, "expected 'glassleaf-sklearn-2'. Write the model out again"),
    ],
)
def test_a_written_out_forest_that_does_not_fit_is_refused(tmp_path, changes, words):
    sound = export(DecisionTreeClassifier(max_depth=1).fit([[0.0], [0.0], [0.0]], ["a", "b", "c"]))
    (tmp_path / "model.json").write_text(json.dumps(sound))
    assert read_model(tmp_path / "model.json").outputs == Outputs("classes", ("a", "b", "c"), "identity")
    sound["trees"][0] |= {key: changes.pop(key) for key in ("values",) if key in changes}
    (tmp_path / "model.json").write_text(json.dumps(sound | changes))
    with pytest.raises(ModelError, match=words) as caught:
        read_model(tmp_path / "model.json")
    assert str(caught.value).startswith("model.json")


def test_a_file_whose_trees_score_otherwise_than_the_estimator_did_is_refused(tmp_path):
    draw = np.random.default_rng(4)
    rows = draw.normal(size=(80, 3))
    document = export(RandomForestClassifier(4, max_depth=3, random_state=0).fit(rows, rows[:, 0] > 0))
    assert read_document(tmp_path, document).features == ("f0", "f1", "f2")
    tree = document["trees"][0]
    leaf = next(i for i, left in enumerate(tree["left"]) if left == -1)
    tree["values"][leaf] = [0.123]
    with pytest.raises(ModelError, match=r"model\.json, examples: .* score otherwise"):
        read_document(tmp_path, document)
    del document["examples"]  # as an earlier exporter wrote it
    assert read_document(tmp_path, document).outputs.task == "binary"


@pytest.mark.parametrize("change", [{"rows": [[0.0]]}, {"margins": []}, {"margins": [[0.0, 1.0]] * 64}])
def test_examples_that_do_not_fit_the_model_are_refused(tmp_path, change):
    rows = np.random.default_rng(4).normal(size=(80, 3))
    document = export(RandomForestClassifier(4, max_depth=3, random_state=0).fit(rows, rows[:, 0] > 0))
    document["examples"] |= change
    with pytest.raises(ModelError, match=r"model\.json, examples: found"):
        read_document(tmp_path, document)
