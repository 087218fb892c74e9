"""Reads XGBoost's model files (JSON and UBJ, gbtree and dart, as 2.1 to 3.2 write them), without XGBoost.

XGBoost compares float32 with float32, ``value < threshold`` to the left; of a categorical split the listed codes go right.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import AliasPath, BaseModel, Field, StrictBool

from backend.data.csv_file import shown
from backend.data.label import Task
from backend.errors import ModelError
from backend.remark import Remark
from backend.trees.ensemble import Leaf
from backend.trees.importers.reading import checked, damaged
from backend.trees.importers.thresholds import below_float32
from backend.trees.importers.whole import (
    MAX_FEATURES,
    Node,
    WholeModel,
    WholeSplit,
    WholeTree,
    boosted,
    category_text,
    check_classes,
    columns_where,
    in_order,
    one_default,
)

# objectives whose base score is a probability; the others' is a margin
PROBABILITY = ("binary:logistic", "reg:logistic")
NUMBER = ("squarederror", "absoluteerror", "pseudohubererror", "squaredlogerror", "quantileerror")
TASKS: dict[str, Task] = {
    **dict.fromkeys((*PROBABILITY, "binary:logitraw"), "binary"),
    **dict.fromkeys(("multi:softprob", "multi:softmax"), "classes"),
    **dict.fromkeys((f"reg:{name}" for name in NUMBER), "number"),
}
LOG_LINK = ("count:poisson", "reg:gamma", "reg:tweedie")
# earlier ones cut category names beyond ASCII in the wrong places (XGBoost's pull request 12371)
UTF8_SINCE = (3, 4, 0)
PROBABILITY_EDGE = 1e-6  # XGBoost keeps the base score this far from 0 and 1
LEAF = -1
TESTED = ((2, 1), (3, 2))  # the first and the last version whose files are read in tests


class _Tree(BaseModel):
    num_nodes: int = Field(validation_alias=AliasPath("tree_param", "num_nodes"))
    num_deleted: int = Field(0, validation_alias=AliasPath("tree_param", "num_deleted"))
    size_leaf_vector: int = Field(1, validation_alias=AliasPath("tree_param", "size_leaf_vector"))
    left_children: list[int]
    right_children: list[int]
    split_indices: list[int]
    split_conditions: list[float]
    default_left: list[Literal[0, 1] | StrictBool]  # earlier ones wrote true and false
    loss_changes: list[float]
    sum_hessian: list[float]
    split_type: list[int] = []
    categories: list[int] = []
    categories_nodes: list[int] = []
    categories_segments: list[int] = []
    categories_sizes: list[int] = []


class _CategoryNames(BaseModel):
    """Whole numbers as they are, or UTF-8 bytes and where each text begins (the last entry: where the last ends)."""

    values: list[int] = []
    offsets: list[int] | None = None


class _Trees(BaseModel):
    num_trees: int = Field(validation_alias=AliasPath("gbtree_model_param", "num_trees"))
    num_parallel_tree: int = Field(1, validation_alias=AliasPath("gbtree_model_param", "num_parallel_tree"))
    trees: list[_Tree]
    tree_info: list[int] = []
    iteration_indptr: list[int] = []
    encodings: list[_CategoryNames] = Field([], validation_alias=AliasPath("cats", "enc"))


class _TreeBooster(BaseModel):
    model: _Trees


class _DartBooster(BaseModel):
    gbtree: _TreeBooster
    weight_drop: list[float]


class _ModelParam(BaseModel):
    base_score: str
    num_feature: int
    num_class: int = 0
    num_target: int = 1


class _Head(BaseModel):
    attributes: dict[str, str] = {}
    feature_names: list[str] = []
    booster: str = Field(validation_alias=AliasPath("gradient_booster", "name"))
    learner_model_param: _ModelParam
    objective: str = Field(validation_alias=AliasPath("objective", "name"))


class _File(BaseModel):
    learner: _Head
    version: tuple[int, int, int]


def read_xgboost(name: str, document: Any) -> WholeModel:
    """Interpret a model file that `parse_json` or `parse_ubjson` has parsed.

    Raises ModelError if it is damaged, or its predictions are not made of sums of leaf weights.
    """
    head = checked(name, _File, document)
    learner = head.learner
    param = head.learner.learner_model_param
    task, count = _outputs(name, learner.objective, param)
    if not 1 <= param.num_feature <= MAX_FEATURES:
        where = f"{name}, learner.learner_model_param.num_feature"
        raise damaged(where, param.num_feature, f"1 … {MAX_FEATURES:,}")
    names = learner.feature_names or [f"f{i}" for i in range(param.num_feature)]
    if len(names) != param.num_feature:
        raise damaged(
            f"{name}, learner.feature_names", Remark("this_many_entries", {"n": len(names)}), param.num_feature
        )
    model, drop = _booster(name, document["learner"]["gradient_booster"], learner.booster)
    if len(model.trees) != model.num_trees or len(drop) != len(model.trees):
        where = f"{name}, learner.gradient_booster"
        raise damaged(where, Remark("this_many_entries", {"n": len(model.trees)}), model.num_trees)
    trees = []
    for t, (tree, weight) in enumerate(zip(model.trees, drop, strict=True)):
        trees.append(_tree(f"{name}, tree {t}", tree, weight, param.num_feature))
    version = ".".join(str(part) for part in head.version)
    notes = _notes(learner.attributes, _rounds(model, count), len(trees))
    return WholeModel(
        file=name,
        made_by=f"XGBoost {version}",
        features=tuple(names),
        categories=_category_texts(name, model.encodings, param.num_feature, head.version),
        base_scores=_base_scores(name, param.base_score, learner.objective, count),
        trees=tuple(trees),
        outputs=boosted(task, tuple(model.tree_info), count),
        gapless=columns_where(trees, one_default),
        placeholder=_placeholder(learner.attributes),
        notes=(*_version_notes(head.version), *notes),
    )


def _outputs(name: str, objective: str, param: _ModelParam) -> tuple[Task, int]:
    """The task, and how many outputs a sample has."""
    if objective not in TASKS:
        reason = Remark("predicts_power_of_sum" if objective in LOG_LINK else "objective_not_known")
        where = f"{name}, learner.objective"
        raise ModelError(
            "objective_not_importable", where=where, found=shown(objective), reason=reason, objectives=tuple(TASKS)
        )
    where = f"{name}, learner.learner_model_param"
    task = TASKS[objective]
    if task == "classes":
        check_classes(where, param.num_class)
    several = max(param.num_target, 0 if task == "classes" else param.num_class)
    if several > 1:
        raise ModelError("several_outputs", where=where, found=several)
    return task, param.num_class if task == "classes" else 1


def _booster(name: str, document: Any, kind: str) -> tuple[_Trees, list[float]]:
    """The trees and what each is multiplied by."""
    where = f"{name}, learner.gradient_booster"
    if kind == "gbtree":
        model = checked(where, _TreeBooster, document).model
        return model, [1.0] * len(model.trees)
    if kind == "dart":
        dart = checked(where, _DartBooster, document)
        return dart.gbtree.model, dart.weight_drop
    raise ModelError("booster_without_trees", where=where, found=shown(kind))


def _base_scores(name: str, text: str, objective: str, count: int) -> tuple[float, ...]:
    """Margins before any tree; written as ``5E-1``, ``[5E-1]`` or one number a class."""
    if objective in PROBABILITY:
        expected = Remark("expected_probability")
    else:
        expected = Remark("expected_base_scores", {"count": count})
    words = text.removeprefix("[").removesuffix("]").split(",")
    try:
        with np.errstate(over="ignore"):
            scores = [float(np.float32(word)) for word in words]
    except ValueError:
        scores = []
    fits = all(0.0 < s < 1.0 if objective in PROBABILITY else math.isfinite(s) for s in scores)
    if len(scores) not in (1, count) or not fits:
        raise damaged(f"{name}, learner.learner_model_param.base_score", shown(text), expected)
    if objective in PROBABILITY:
        scores = [min(max(p, PROBABILITY_EDGE), 1.0 - PROBABILITY_EDGE) for p in scores]
        scores = [math.log(p / (1.0 - p)) for p in scores]
    return tuple(scores * (count // len(scores)))


def _tree(where: str, tree: _Tree, weight: float, n_features: int) -> WholeTree:
    n = tree.num_nodes
    if tree.size_leaf_vector > 1:
        raise ModelError("leaves_of_several_weights", where=where)
    kinds = tree.split_type or [0] * len(tree.left_children)
    columns = (tree.left_children, tree.right_children, tree.split_indices, tree.default_left, kinds)
    lengths = set()
    for column in (*columns, tree.split_conditions, tree.loss_changes, tree.sum_hessian):
        lengths.add(len(column))
    if lengths != {n}:
        raise damaged(where, tuple(sorted(lengths)), n)
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = np.array(tree.split_conditions).astype(np.float32)
        weights = (numbers * np.float32(weight)).astype(np.float64).tolist()
        # A loss change is twice the fall of the loss.
        falls = np.array(tree.loss_changes).astype(np.float32) / 2
        gains = falls.tolist()
        covers = np.array(tree.sum_hessian).astype(np.float32).tolist()
    codes = _codes(where, tree)
    nodes: dict[int, Node] = {}
    for i, (left, right, feature, default_left, kind) in enumerate(zip(*columns, strict=True)):
        if left == LEAF:
            nodes[i] = Leaf(weights[i], covers[i])
            continue
        if kind == 1 and i not in codes:
            raise damaged(f"{where}, node {i}, categories", Remark("found_nothing"), Remark("expected_something"))
        if kind != 1 and not math.isfinite(numbers[i]):
            raise damaged(f"{where}, node {i}, threshold", tree.split_conditions[i], "float32")
        nodes[i] = WholeSplit(
            feature=feature,
            left=left,
            right=right,
            default_left=bool(default_left),
            gain=gains[i],
            cover=covers[i],
            threshold=None if kind == 1 else below_float32(float(numbers[i])),
            codes=codes[i] if kind == 1 else frozenset(),
            codes_left=False,
        )
    return in_order(where, nodes, n_features, spare=tree.num_deleted)


def _codes(where: str, tree: _Tree) -> dict[int, frozenset[int]]:
    """Node → category codes that go right."""
    starts = tree.categories_segments
    sizes = tree.categories_sizes
    if not len(tree.categories_nodes) == len(starts) == len(sizes):
        raise damaged(f"{where}, categories", Remark("found_other_length"), Remark("expected_same_length"))
    codes = {}
    for node, start, size in zip(tree.categories_nodes, starts, sizes, strict=True):
        if not (start >= 0 and size >= 1 and start + size <= len(tree.categories)):
            raise damaged(
                f"{where}, node {node}, categories", f"{start} … {start + size - 1}", f"0 … {len(tree.categories) - 1}"
            )
        codes[node] = frozenset(tree.categories[start : start + size])
    return codes


def _category_texts(
    name: str, encodings: list[_CategoryNames], n_features: int, version: tuple[int, int, int]
) -> dict[int, tuple[str, ...]]:
    if encodings and len(encodings) != n_features:
        raise damaged(f"{name}, cats", Remark("this_many_entries", {"n": len(encodings)}), n_features)
    texts = {}
    for feature, encoding in enumerate(encodings):
        if encoding.offsets is None:
            texts[feature] = tuple(category_text(value) for value in encoding.values)
        elif version >= UTF8_SINCE or all(0 <= value < 128 for value in encoding.values):
            texts[feature] = _split_text(f"{name}, cats of feature {feature}", encoding.values, encoding.offsets)
    return {feature: texts_of_feature for feature, texts_of_feature in texts.items() if texts_of_feature}


def _split_text(where: str, values: list[int], offsets: list[int]) -> tuple[str, ...]:
    if offsets != sorted(offsets) or (offsets and (offsets[0] != 0 or offsets[-1] != len(values))):
        raise damaged(where, tuple(offsets[:10]), Remark("expected_rising_offsets"))
    if any(not -128 <= value <= 255 for value in values):
        raise damaged(where, Remark("found_no_utf8"), "UTF-8")
    raw = bytes(value & 0xFF for value in values)  # written as signed bytes
    try:
        return tuple(raw[a:b].decode("utf-8") for a, b in pairwise(offsets))
    except UnicodeDecodeError:
        raise damaged(where, Remark("found_no_utf8"), "UTF-8") from None


def _version_notes(version: tuple[int, int, int]) -> tuple[Remark, ...]:
    """Return a remark about a version whose files no test here has read; empty for a tested version."""
    if TESTED[0] <= version[:2] <= TESTED[1]:
        return ()
    first, last = (".".join(map(str, tested)) for tested in TESTED)
    version_text = ".".join(map(str, version))
    return (
        Remark("library_version_untested", {"library": "XGBoost", "found": version_text, "first": first, "last": last}),
    )


def _rounds(model: _Trees, count: int) -> list[int]:
    """Return where each round's trees begin, and where the last ends; files before 2.1 do not say it."""
    if model.iteration_indptr:
        return model.iteration_indptr
    of_round = max(1, count) * max(1, model.num_parallel_tree)
    return list(range(0, len(model.trees) + 1, of_round))


def _placeholder(attributes: dict[str, str]) -> float | None:
    """Return the number that stood for a missing value, if the file has one: older versions of XGBClassifier and XGBRegressor wrote it.

    Examples
    --------
    >>> _placeholder({"scikit_learn": '{"missing": -999.0}'}), _placeholder({})
    (-999.0, None)
    """
    try:
        settings = json.loads(attributes.get("scikit_learn", "{}"))
    except ValueError:
        return None
    if isinstance(settings, dict):
        missing = settings.get("missing")
    else:
        missing = None
    if isinstance(missing, int | float) and not math.isnan(missing):
        return float(missing)
    return None


def _notes(attributes: dict[str, str], rounds: list[int], n_trees: int) -> tuple[Remark, ...]:
    best = attributes.get("best_iteration", "")
    if not best.isdecimal() or len(rounds) < 2 or int(best) + 2 >= len(rounds):
        return ()
    return (Remark("trained_past_best", {"best": int(best), "last": len(rounds) - 2, "trees": n_trees}),)
