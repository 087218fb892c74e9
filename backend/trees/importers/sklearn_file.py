"""scikit-learn's boosted trees as JSON: `export` writes them in the user's own process, `read_sklearn` reads them here.

A fitted estimator is kept as a pickle, and opening a pickle can run any code; so the user's process, which has the estimator, writes
out its arrays. GradientBoosting compares float32(value) with a float64 threshold, HistGradientBoosting float64 values; both send
``value <= threshold`` to the left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel

from backend.data.csv_file import shown
from backend.errors import ModelError
from backend.trees.ensemble import Leaf
from backend.trees.importers.reading import checked, damaged
from backend.trees.importers.thresholds import LARGEST, at_most, at_most_float32
from backend.trees.importers.whole import MAX_FEATURES, Node, WholeModel, WholeSplit, WholeTree, category_text, in_order

FORMAT = "glassleaf-sklearn-1"
LEAF = -1
AVERAGING = ("RandomForestClassifier", "ExtraTreesClassifier", "DecisionTreeClassifier", "ExtraTreeClassifier")


class _Tree(BaseModel):
    """One entry a node; a leaf has left = -1."""

    left: list[int]
    right: list[int]
    feature: list[int]
    threshold: list[float]
    missing_left: list[bool]
    left_categories: dict[int, list[int]]
    value: list[float]
    gain: list[float]
    cover: list[float]


class _File(BaseModel):
    estimator: str
    made_by: str
    positive: str
    compares: Literal["float32", "float64"]
    features: list[str]
    categories: dict[int, list[str]]
    base_score: float
    trees: list[_Tree]


def read_sklearn(name: str, document: Any) -> WholeModel:
    """Make sense of a parsed file that `export` wrote; raises ModelError where it is damaged."""
    file = checked(name, _File, document)
    n = len(file.features)
    if not 1 <= n <= MAX_FEATURES:
        raise damaged(f"{name}, features", f"{n:,}", f"1 … {MAX_FEATURES:,}")
    if not set(file.categories) <= set(range(n)):
        raise damaged(f"{name}, categories", f"{sorted(file.categories)}", f"features of 0 … {n - 1}")
    ours = at_most_float32 if file.compares == "float32" else at_most
    return WholeModel(
        file=name,
        made_by=f"{file.made_by}, {file.estimator}",
        features=tuple(file.features),
        categories={column: tuple(texts) for column, texts in file.categories.items()},
        base_score=file.base_score,
        trees=tuple(_read_tree(f"{name}, tree {t}", tree, ours, n) for t, tree in enumerate(file.trees)),
        notes=(
            f"A higher score speaks for the class {shown(file.positive)}; check that it is the label's positive one.",
        ),
    )


def _read_tree(where: str, tree: _Tree, ours: Callable[[float], float], n_features: int) -> WholeTree:
    columns = (
        tree.left,
        tree.right,
        tree.feature,
        tree.threshold,
        tree.missing_left,
        tree.value,
        tree.gain,
        tree.cover,
    )
    if len({len(column) for column in columns}) != 1:
        raise damaged(where, f"lists of {sorted({len(c) for c in columns})} nodes", "as many in each")
    nodes: dict[int, Node] = {}
    for i, (left, right, feature, threshold, missing_left, value, gain, cover) in enumerate(zip(*columns, strict=True)):
        if left == LEAF:
            nodes[i] = Leaf(value, cover)
            continue
        codes = tree.left_categories.get(i)
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
    """What `json.dump` writes of a fitted GradientBoostingClassifier or HistGradientBoostingClassifier of two classes.

    Raises
    ------
    ModelError
        The estimator is of another class, not fitted, or its scores are not logits of one class.
    """
    classes = [cls.__name__ for cls in type(estimator).__mro__]
    writers = {"GradientBoostingClassifier": _gradient_boosting, "HistGradientBoostingClassifier": _histogram_boosting}
    kind = next((name for name in classes if name in writers), None)
    if kind is None:
        reason = (
            "it averages probabilities, and no sum of leaf weights is their logit"
            if set(classes) & {*AVERAGING}
            else ""
        )
        raise ModelError(
            f"estimator: found {classes[0]}{f' ({reason})' if reason else ''}, expected {' or '.join(writers)}. Train one of these."
        )
    if not hasattr(estimator, "classes_"):
        raise ModelError("estimator: found one that is not fitted, expected a fitted one. Call its fit first.")
    if len(estimator.classes_) != 2:
        raise ModelError(
            f"estimator: found {len(estimator.classes_)} classes, expected 2. Train one class against the rest."
        )
    if estimator.loss != "log_loss":
        raise ModelError(f"estimator, loss: found {estimator.loss!r}, expected 'log_loss': only its scores are logits.")
    names = getattr(estimator, "feature_names_in_", [f"f{i}" for i in range(estimator.n_features_in_)])
    return {
        "format": FORMAT,
        "estimator": kind,
        "made_by": f"scikit-learn {version('scikit-learn')}",
        "positive": category_text(estimator.classes_[1]),
        "features": [str(name) for name in names],
        **writers[kind](estimator),
    }


def _gradient_boosting(estimator: Any) -> dict[str, Any]:
    rate = float(estimator.learning_rate)
    return {
        "compares": "float32",
        "categories": {},
        "base_score": _base_logit(estimator.init_),
        "trees": [_plain_tree(stage[0].tree_, rate) for stage in estimator.estimators_],
    }


def _base_logit(init: Any) -> float:
    """The logit before any tree; `init` is 'zero' or the default, a DummyClassifier that knows the classes' shares."""
    if isinstance(init, str) and init == "zero":
        return 0.0
    if getattr(init, "strategy", None) != "prior":
        raise ModelError(
            f"estimator, init: found {type(init).__name__}, expected the default or 'zero': another estimator's score is no constant."
        )
    edge = float(np.finfo(np.float32).eps)  # as scikit-learn keeps it from 0 and 1
    share = min(max(float(init.class_prior_[1]), edge), 1.0 - edge)
    return math.log(share / (1.0 - share))


def _plain_tree(tree: Any, rate: float) -> dict[str, Any]:
    left, right, cover = tree.children_left, tree.children_right, tree.weighted_n_node_samples
    inner = left != LEAF
    spread = tree.impurity * cover
    return {
        "left": left.tolist(),
        "right": right.tolist(),
        "feature": tree.feature.tolist(),
        "threshold": tree.threshold.tolist(),
        "missing_left": (inner & (cover[left] >= cover[right])).tolist(),  # it knows no missing value: the heavier side
        "left_categories": {},
        "value": (rate * tree.value[:, 0, 0]).tolist(),
        "gain": np.where(inner, spread - spread[left] - spread[right], 0.0).tolist(),
        "cover": cover.tolist(),
    }


def _histogram_boosting(estimator: Any) -> dict[str, Any]:
    marked = estimator.is_categorical_
    marked = np.zeros(estimator.n_features_in_, dtype=bool) if marked is None else np.asarray(marked)
    column = [*np.flatnonzero(marked).tolist(), *np.flatnonzero(~marked).tolist()]  # it puts categorical columns first
    categories = {}
    if marked.any():
        encoder = estimator._preprocessor.named_transformers_["encoder"]
        for place, values in zip(column, encoder.categories_, strict=False):
            categories[place] = [category_text(value) for value in values.tolist() if not _is_missing(value)]
    return {
        "compares": "float64",
        "categories": categories,
        "base_score": float(np.asarray(estimator._baseline_prediction).ravel()[0]),
        "trees": [_histogram_tree(stage[0], column) for stage in estimator._predictors],
    }


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _histogram_tree(predictor: Any, column: list[int]) -> dict[str, Any]:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    bits = np.unpackbits(predictor.raw_left_cat_bitsets.astype("<u4").view(np.uint8), axis=-1, bitorder="little")
    return {
        "left": np.where(inner, nodes["left"].astype(np.int64), LEAF).tolist(),
        "right": np.where(inner, nodes["right"].astype(np.int64), LEAF).tolist(),
        "feature": [column[feature] for feature in nodes["feature_idx"].tolist()],
        "threshold": np.clip(
            nodes["num_threshold"], -LARGEST, LARGEST
        ).tolist(),  # infinite where all but NaN goes left
        "missing_left": (nodes["missing_go_to_left"] != 0).tolist(),
        "left_categories": {
            int(i): np.flatnonzero(bits[nodes["bitset_idx"][i]]).tolist()
            for i in np.flatnonzero(inner & (nodes["is_categorical"] != 0))
        },
        "value": nodes["value"].tolist(),
        "gain": np.where(inner, nodes["gain"] / 2.0, 0.0).tolist(),
        "cover": nodes["count"].astype(np.float64).tolist(),
    }
