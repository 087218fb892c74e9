"""scikit-learn's trees as JSON: `export` writes them in the user's own process, `read_sklearn` reads them here.

A fitted estimator is kept as a pickle, and opening a pickle can run any code; so the user's process, which has the estimator, writes
out its arrays. HistGradientBoosting compares float64 values, all others float32(value) with a float64 threshold; all send
``value <= threshold`` to the left.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from backend.errors import ModelError
from backend.remark import Remark
from backend.trees.ensemble import Leaf
from backend.trees.importers.reading import checked, damaged
from backend.trees.importers.thresholds import LARGEST, at_most, at_most_float32
from backend.trees.importers.whole import (
    MAX_FEATURES,
    Node,
    WholeModel,
    WholeSplit,
    WholeTree,
    category_text,
    check_classes,
    columns_where,
    in_order,
    larger_default,
)
from backend.trees.outputs import Outputs

FORMAT = "glassleaf-sklearn-2"
LEAF = -1
EXAMPLES = 64  # rows in a file
LARGEST_EXAMPLE = 1e30  # what float32 holds, with room
ROUNDING = 1e-9  # of sums of float64
LOSSES = ("log_loss", "squared_error", "absolute_error", "huber", "quantile")  # the others' predictions are no sums


class _Tree(BaseModel):
    """One entry a node; a leaf has left = -1, and alone has values: one, or one a class."""

    left: list[int]
    right: list[int]
    feature: list[int]
    threshold: list[float]
    missing_left: list[bool]
    left_categories: dict[int, list[int]]
    values: list[list[float]]
    gain: list[float]
    cover: list[float]


class _Examples(BaseModel):
    """Synthetic rows beside thresholds, and what the estimator itself says of them, ``(n, outputs)``."""

    rows: list[list[float]]
    margins: list[list[float]]


class _File(BaseModel):
    estimator: str
    made_by: str
    classes: list[str]  # none for a number
    shares: bool  # of the classes, else logits
    compares: Literal["float32", "float64"]
    features: list[str]
    categories: dict[int, list[str]]
    base_scores: list[float]
    of_tree: list[int]
    trees: list[_Tree]
    examples: _Examples | None = None  # none if a column holds categories


def read_sklearn(name: str, document: Any) -> WholeModel:
    """Interpret a parsed file that `export` wrote; raises ModelError if it is damaged."""
    file = checked(name, _File, document)
    n = len(file.features)
    if not 1 <= n <= MAX_FEATURES:
        raise damaged(f"{name}, features", n, f"1 … {MAX_FEATURES:,}")
    if not set(file.categories) <= set(range(n)):
        raise damaged(f"{name}, categories", tuple(sorted(file.categories)), f"0 … {n - 1}")
    if file.compares == "float32":
        ours = at_most_float32
    else:
        ours = at_most
    trees = tuple(_read_tree(f"{name}, tree {t}", tree, ours, n) for t, tree in enumerate(file.trees))
    model = WholeModel(
        file=name,
        made_by=f"{file.made_by}, {file.estimator}",
        features=tuple(file.features),
        categories={column: tuple(texts) for column, texts in file.categories.items()},
        base_scores=tuple(file.base_scores),
        trees=trees,
        outputs=_outputs(f"{name}, classes", file),
        outcomes=tuple(file.classes) if len(file.classes) == 2 else (),
        gapless=columns_where(trees, larger_default),
    )
    if file.examples is not None:
        _check_examples(model, file.examples)
    return model


def _check_examples(model: WholeModel, examples: _Examples) -> None:
    """Raise ModelError if the estimator itself scored a row otherwise than the file's trees do."""
    rows = examples.rows
    theirs = examples.margins
    where = f"{model.file}, examples"
    if any(len(row) != len(model.features) for row in rows) or any(len(row) != model.outputs.count for row in theirs):
        raise damaged(where, Remark("found_other_length"), Remark("expected_same_length"))
    if not 1 <= len(rows) == len(theirs):
        raise damaged(where, f"{len(rows)} ≠ {len(theirs)}", Remark("expected_same_length"))
    apart = np.abs(model.margins(np.array(rows)) - np.array(theirs)).max(axis=1)
    differ = ~(apart <= ROUNDING * (1.0 + model.reach))
    if differ.any():
        raise ModelError(
            "examples_score_differently",
            where=where,
            found=int(differ.sum()),
            rows=len(rows),
            difference=float(apart.max()),
        )


def _outputs(where: str, file: _File) -> Outputs:
    if not file.classes:
        return Outputs("number", link="identity")
    if len(file.classes) == 2:
        return Outputs("binary", link="identity" if file.shares else "logistic")
    check_classes(where, len(file.classes))
    link: Literal["identity", "softmax"] = "identity" if file.shares else "softmax"
    return Outputs("classes", tuple(file.classes), link, of_tree=tuple(file.of_tree))


def _read_tree(where: str, tree: _Tree, ours: Callable[[float], float], n_features: int) -> WholeTree:
    columns = [column for name, column in tree if name != "left_categories"]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise damaged(where, tuple(sorted(lengths)), Remark("expected_same_length"))
    nodes: dict[int, Node] = {}
    for i, (left, right, feature, threshold, missing_left, values, gain, cover) in enumerate(
        zip(*columns, strict=True)
    ):
        if left == LEAF:
            if not values:
                raise damaged(f"{where}, node {i}, values", Remark("found_nothing"), Remark("expected_something"))
            nodes[i] = Leaf(max(values), cover, tuple(values) if len(values) > 1 else ())
            continue
        codes = tree.left_categories.get(i)
        if not math.isfinite(threshold):
            raise damaged(f"{where}, node {i}, threshold", threshold, Remark("expected_finite"))
        nodes[i] = WholeSplit(
            feature=feature,
            left=left,
            right=right,
            default_left=missing_left,
            gain=gain,
            cover=cover,
            threshold=ours(threshold) if codes is None else None,
            codes=frozenset(codes or ()),
        )
    return in_order(where, nodes, n_features)


def export(estimator: Any) -> dict[str, Any]:
    """What `json.dump` writes of a fitted estimator of boosted trees, a forest or a decision tree.

    Raises ModelError if the estimator is of another class, not fitted, or its predictions are not made of sums of leaf weights.
    """
    names = [cls.__name__ for cls in type(estimator).__mro__]
    kind = next((name for name in names if name in WRITERS), None)
    if kind is None:
        raise ModelError("estimator_unknown", found=names[0], estimators=tuple(WRITERS))
    if not hasattr(estimator, "n_features_in_"):
        raise ModelError("estimator_not_fitted")
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise ModelError("estimator_of_several_targets", found=int(estimator.n_outputs_))
    classes = [category_text(name) for name in getattr(estimator, "classes_", ())]
    if len(classes) == 1:
        raise ModelError("estimator_of_one_class")
    loss = getattr(estimator, "loss", LOSSES[0])
    if loss not in LOSSES:
        raise ModelError("estimator_loss_unknown", found=repr(loss), losses=LOSSES)
    columns = getattr(estimator, "feature_names_in_", [f"f{i}" for i in range(estimator.n_features_in_)])
    document = {
        "format": FORMAT,
        "estimator": kind,
        "made_by": f"scikit-learn {version('scikit-learn')}",
        "classes": classes,
        "features": [str(name) for name in columns],
        **WRITERS[kind](estimator),
    }
    if document["categories"]:
        return document
    return document | {"examples": _examples(estimator, document)}


def _examples(estimator: Any, document: dict[str, Any]) -> dict[str, Any]:
    """Return rows with values on and next to the trees' thresholds, so that no person's are in the file, and the estimator's scores."""
    draw = np.random.default_rng(0)
    n = int(estimator.n_features_in_)
    values_of_column: list[list[float]] = [[0.0] for _ in range(n)]
    for tree in document["trees"]:
        for left, feature, threshold in zip(tree["left"], tree["feature"], tree["threshold"], strict=True):
            if left != LEAF and abs(threshold) < LARGEST_EXAMPLE:
                values_of_column[feature] += [
                    threshold,
                    float(np.nextafter(threshold, np.inf)),
                    threshold - 1.0,
                    threshold + 1.0,
                ]
    rows = np.column_stack([draw.choice(values, EXAMPLES) for values in values_of_column])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the rows have no names of features
        if not document["classes"]:
            margins = estimator.predict(rows)
        elif document["shares"]:
            margins = estimator.predict_proba(rows)[:, 1 if len(document["classes"]) == 2 else 0 :]
        else:
            margins = estimator.decision_function(rows)
    return {"rows": rows.tolist(), "margins": np.reshape(margins, (EXAMPLES, -1)).tolist()}


def _gradient_boosting(estimator: Any) -> dict[str, Any]:
    """Describe gradient boosting; ``estimators_`` has a line a round and a column a class."""
    rate = float(estimator.learning_rate)
    rounds, count = estimator.estimators_.shape
    trees = [tree.tree_ for tree in estimator.estimators_.ravel()]
    init = estimator.init_
    is_zero = isinstance(init, str) and init == "zero"
    is_dummy = type(init).__name__ in ("DummyClassifier", "DummyRegressor")
    is_constant = is_zero or (is_dummy and init.strategy not in ("uniform", "stratified"))
    if not is_constant:
        raise ModelError("estimator_init_not_constant", found=type(init).__name__)
    anyone = np.zeros((1, estimator.n_features_in_), dtype=np.float32)
    return {
        "shares": False,
        "compares": "float32",
        "categories": {},
        "base_scores": estimator._raw_predict_init(anyone).ravel().tolist(),
        "of_tree": list(range(count)) * rounds if count > 1 else [],
        "trees": [_plain_tree(tree, rate * tree.value[:, 0, :1]) for tree in trees],
    }


def _averaging(estimator: Any) -> dict[str, Any]:
    """Describe a forest: its prediction is its trees' mean, so each leaf gets its share of it. A decision tree is a forest of one."""
    trees = [tree.tree_ for tree in getattr(estimator, "estimators_", [estimator])]
    count = len(getattr(estimator, "classes_", ()))
    if count == 2:
        outputs = slice(1, 2)  # the share of the second of two classes determines the first's
    else:
        outputs = slice(None)
    return {
        "shares": count > 0,
        "compares": "float32",
        "categories": {},
        "base_scores": [0.0] * (count if count > 2 else 1),
        "of_tree": [],
        "trees": [_plain_tree(tree, tree.value[:, 0, outputs] / len(trees)) for tree in trees],
    }


def _plain_tree(tree: Any, values: NDArray[np.float64]) -> dict[str, Any]:
    left = tree.children_left
    right = tree.children_right
    cover = tree.weighted_n_node_samples
    inner = left != LEAF
    threshold = np.clip(tree.threshold, -LARGEST, LARGEST)  # infinite if all but NaN goes left
    missing_left = inner & (tree.missing_go_to_left != 0)
    spread = tree.impurity * cover
    gain = np.where(inner, spread - spread[left] - spread[right], 0.0)
    return {
        "left": left.tolist(),
        "right": right.tolist(),
        "feature": tree.feature.tolist(),
        "threshold": threshold.tolist(),
        "missing_left": missing_left.tolist(),
        "left_categories": {},
        "values": [[] if split else row for split, row in zip(inner, values.tolist(), strict=True)],
        "gain": gain.tolist(),
        "cover": cover.tolist(),
    }


def _histogram_boosting(estimator: Any) -> dict[str, Any]:
    marked = estimator.is_categorical_
    if marked is None:
        marked = np.zeros(estimator.n_features_in_, dtype=bool)
    else:
        marked = np.asarray(marked)
    column = [*np.flatnonzero(marked).tolist(), *np.flatnonzero(~marked).tolist()]  # it puts categorical columns first
    categories = {}
    if marked.any():
        encoder = estimator._preprocessor.named_transformers_["encoder"]
        for i, values in zip(column, encoder.categories_, strict=False):
            categories[i] = [category_text(value) for value in values.tolist() if not _is_missing(value)]
    base_scores = np.asarray(estimator._baseline_prediction).ravel().tolist()
    stages = estimator._predictors
    if len(base_scores) > 1:
        of_tree = list(range(len(base_scores))) * len(stages)
    else:
        of_tree = []
    trees = []
    for stage in stages:
        trees += [_histogram_tree(predictor, column) for predictor in stage]
    return {
        "shares": False,
        "compares": "float64",
        "categories": categories,
        "base_scores": base_scores,
        "of_tree": of_tree,
        "trees": trees,
    }


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _histogram_tree(predictor: Any, column: list[int]) -> dict[str, Any]:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    words = predictor.raw_left_cat_bitsets.astype("<u4")
    bits = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")
    left_categories = {}
    for i in np.flatnonzero(inner & (nodes["is_categorical"] != 0)):
        bits_of_node = bits[nodes["bitset_idx"][i]]
        left_categories[int(i)] = np.flatnonzero(bits_of_node).tolist()
    left = np.where(inner, nodes["left"].astype(np.int64), LEAF)
    right = np.where(inner, nodes["right"].astype(np.int64), LEAF)
    threshold = np.clip(nodes["num_threshold"], -LARGEST, LARGEST)  # may be infinite
    missing_left = nodes["missing_go_to_left"] != 0
    values = nodes["value"].tolist()
    gain = np.where(inner, nodes["gain"] / 2.0, 0.0)
    cover = nodes["count"].astype(np.float64)
    return {
        "left": left.tolist(),
        "right": right.tolist(),
        "feature": [column[feature] for feature in nodes["feature_idx"].tolist()],
        "threshold": threshold.tolist(),
        "missing_left": missing_left.tolist(),
        "left_categories": left_categories,
        "values": [[] if split else [value] for split, value in zip(inner, values, strict=True)],
        "gain": gain.tolist(),
        "cover": cover.tolist(),
    }


WRITERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    **{f"GradientBoosting{kind}": _gradient_boosting for kind in ("Classifier", "Regressor")},
    **{f"HistGradientBoosting{kind}": _histogram_boosting for kind in ("Classifier", "Regressor")},
    **{
        f"{trees}{kind}": _averaging
        for trees in ("RandomForest", "ExtraTrees", "DecisionTree")
        for kind in ("Classifier", "Regressor")
    },
}
