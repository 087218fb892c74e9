"""Reads LightGBM's text model files (version v3 and v4: `save_model`), without LightGBM.

LightGBM compares in float64, ``value <= threshold`` to the left; of a categorical split the codes in the bit set go left, all other
values and missing ones right. What a missing value is depends on the split's missing type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from backend.data.csv_file import listed, shown
from backend.data.label import Task
from backend.errors import ModelError
from backend.trees.ensemble import Leaf
from backend.trees.importers.reading import damaged, parse_json
from backend.trees.importers.thresholds import at_most
from backend.trees.importers.whole import (
    MAX_FEATURES,
    Node,
    WholeModel,
    WholeSplit,
    WholeTree,
    boosted,
    category_text,
    check_classes,
    in_order,
)

VERSIONS = ("v3", "v4")
TASKS: dict[str, Task] = {
    "binary": "binary",
    "cross_entropy": "binary",
    "multiclass": "classes",
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), "number"),
}
REASONS = {  # why the sum of leaf weights is not what these predict
    "sqrt": " (it predicts the square of the sum of leaf weights)",
    "multiclassova": " (each class has a probability of its own, and they do not add up to 1)",
    **dict.fromkeys(("poisson", "gamma", "tweedie"), " (it predicts e to the power of the sum of leaf weights)"),
}
CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of a decision type; the missing type is in the two bits above
MISSING_NONE, MISSING_ZERO, MISSING_NAN = range(3)
ZERO = float(np.float32(1e-35))  # LightGBM reads numbers up to this size as 0
WORD = 32  # bits of a bit set's word

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class _Section:
    """``key=value`` lines of the file: the head or one tree."""

    where: str  # file and part
    values: dict[str, tuple[int, str]]  # key → line, text

    def position(self, key: str) -> str:
        return f"{self.where}, line {self.values[key][0]}, {key}" if key in self.values else f"{self.where}, {key}"

    def text(self, key: str) -> str:
        if key not in self.values:
            raise damaged(self.position(key), "nothing", "a value")
        return self.values[key][1]

    def whole(self, key: str) -> int:
        return self._numbers(key, 1, int)[0]

    def wholes(self, key: str, n: int) -> list[int]:
        return self._numbers(key, n, int)

    def floats(self, key: str, n: int) -> list[float]:
        return self._numbers(key, n, float)

    def _numbers(self, key: str, n: int, read: Callable[[str], Number]) -> list[Number]:
        words = self.text(key).split()
        if len(words) != n:
            raise damaged(self.position(key), f"{len(words)} numbers", f"{n}")
        try:
            return [read(word) for word in words]
        except ValueError:
            raise damaged(self.position(key), shown(self.text(key)), "numbers") from None


def read_lightgbm(name: str, data: bytes) -> WholeModel:
    """Interpret a model file's bytes; raises ModelError where it is damaged, or predicts no sums of leaf weights."""
    head, trees, tail = _sections(name, data)
    version = head.text("version")
    if version not in VERSIONS:
        raise ModelError(
            f"{head.position('version')}: found {shown(version)}, expected {' or '.join(VERSIONS)}. Save the model with a newer LightGBM."
        )
    task, scale = _objective(head)
    count = _outputs(head, task)
    names = head.text("feature_names").split()
    n_features = head.whole("max_feature_idx") + 1
    if not 1 <= len(names) == n_features <= MAX_FEATURES:
        raise damaged(
            head.position("feature_names"), f"{len(names)} names", f"{n_features}, and at most {MAX_FEATURES:,}"
        )
    if len(head.text("tree_sizes").split()) != len(trees):
        raise damaged(head.position("tree_sizes"), f"{len(head.text('tree_sizes').split())} trees", f"{len(trees)}")
    if len(trees) % count:
        raise damaged(f"{name}, trees", f"{len(trees)}", f"as many for each of {count} classes")
    if "average_output" in head.values:  # boosting=rf: the prediction is that of the mean
        scale /= max(len(trees) // count, 1)
    return WholeModel(
        file=name,
        made_by=f"LightGBM (model format {version})",
        features=tuple(names),
        categories=_category_texts(name, tail, n_features),
        base_scores=(0.0,) * count,  # LightGBM folds the average into the first trees' leaves
        trees=tuple(_tree(section, scale, n_features) for section in trees),
        gapless=_gapless(trees),
        raw_scale=scale,
        outputs=boosted(task, tuple(t % count for t in range(len(trees))), count),
    )


def _sections(name: str, data: bytes) -> tuple[_Section, list[_Section], list[str]]:
    """The head, the trees, and the lines after them."""
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise damaged(f"{name}, byte {error.start:,}", "a byte that is not UTF-8", "UTF-8 text") from None
    sections = [_Section(name, {})]
    for number, line in enumerate(lines, start=1):
        key, _, value = line.partition("=")
        if key == "end of trees":
            return sections[0], sections[1:], lines[number:]
        if key == "Tree":
            if value != str(len(sections) - 1):
                raise damaged(f"{name}, line {number}", shown(line), f"Tree={len(sections) - 1}")
            sections.append(_Section(f"{name}, tree {value}", {}))
        elif key:
            if key in sections[-1].values:
                raise damaged(f"{name}, line {number}", f"{shown(key)} twice", "every key once")
            sections[-1].values[key] = number, value
    raise damaged(f"{name}, line {len(lines)}", "the end of the file", "'end of trees'")


def _objective(head: _Section) -> tuple[Task, float]:
    """The task, and the objective's own factor from raw scores to margins."""
    text = head.values.get("objective", (0, "no objective"))[1]
    objective, *options = text.split() or [""]
    if objective not in TASKS or "sqrt" in options:
        reason = REASONS.get("sqrt" if "sqrt" in options else objective, "")
        raise ModelError(
            f"{head.position('objective')}: found {shown(text)}{reason}, expected {listed(list(TASKS), len(TASKS))}. Use one of them."
        )
    if objective != "binary":
        return TASKS[objective], 1.0
    try:
        factor = float(options[0].removeprefix("sigmoid:")) if len(options) == 1 else 0.0
    except ValueError:
        factor = 0.0
    if not 0.0 < factor < 1e6:
        raise damaged(head.position("objective"), shown(" ".join(options)), "sigmoid: and a positive number")
    return "binary", factor


def _outputs(head: _Section, task: Task) -> int:
    """Number of outputs a sample."""
    count = head.whole("num_class")
    if task == "classes":
        check_classes(head.position("num_class"), count)
    elif count != 1:
        raise ModelError(
            f"{head.position('num_class')}: found {shown(head.text('num_class'))}, expected 1 output a sample. Train with multiclass."
        )
    if head.whole("num_tree_per_iteration") != count:
        where = head.position("num_tree_per_iteration")
        raise damaged(where, shown(head.text("num_tree_per_iteration")), f"{count}")
    return count


def _tree(section: _Section, scale: float, n_features: int) -> WholeTree:
    if section.values.get("is_linear", (0, "0"))[1] != "0":
        raise ModelError(
            f"{section.where}: found linear leaves, expected one weight each. Train with linear_tree=false."
        )
    n_leaves = section.whole("num_leaves")
    weights = section.floats("leaf_value", n_leaves)
    covers = section.floats("leaf_weight", n_leaves) if n_leaves > 1 else [0.0]
    nodes: dict[int, Node] = {
        ~j: Leaf(w * scale, max(c, 0.0)) for j, (w, c) in enumerate(zip(weights, covers, strict=True))
    }
    if n_leaves == 1:
        return in_order(section.where, nodes, n_features, root=~0)
    n = n_leaves - 1
    gains, kinds = section.floats("split_gain", n), section.wholes("decision_type", n)
    thresholds, features = section.floats("threshold", n), section.wholes("split_feature", n)
    lefts, rights = section.wholes("left_child", n), section.wholes("right_child", n)
    bit_sets = _bit_sets(section)
    internal = section.floats("internal_weight", n)
    for i in range(n):
        where = f"{section.where}, node {i}"
        default_left, threshold, codes = False, None, frozenset[int]()
        if kinds[i] & CATEGORICAL:
            if thresholds[i] not in range(len(bit_sets)):
                raise damaged(where, f"category set {thresholds[i]:g}", f"one of {len(bit_sets)}")
            codes = bit_sets[int(thresholds[i])]
        else:
            default_left, threshold = _numeric(where, kinds[i], thresholds[i])
        nodes[i] = WholeSplit(
            feature=features[i],
            left=lefts[i],
            right=rights[i],
            default_left=default_left,
            gain=gains[i] / 2.0,  # LightGBM's gain is twice the fall of the loss
            cover=max(internal[i], 0.0),
            threshold=threshold,
            codes=codes,
        )
    return in_order(section.where, nodes, n_features)


def _gapless(sections: list[_Section]) -> frozenset[int]:
    """Columns of numbers of which no split has a way for missing values: training saw none."""
    seen: dict[bool, set[int]] = {True: set(), False: set()}
    for section in (section for section in sections if "decision_type" in section.values):
        n = section.whole("num_leaves") - 1
        for feature, kind in zip(section.wholes("split_feature", n), section.wholes("decision_type", n), strict=True):
            seen[bool(kind & CATEGORICAL) or kind >> 2 == MISSING_NAN].add(feature)
    return frozenset(seen[False] - seen[True])


def _numeric(where: str, kind: int, threshold: float) -> tuple[bool, float]:
    """Default direction and our threshold, by the split's missing type."""
    default_left, missing = bool(kind & DEFAULT_LEFT), kind >> 2
    if missing not in (MISSING_NONE, MISSING_ZERO, MISSING_NAN):
        raise damaged(f"{where}, decision_type", f"{kind}", "a missing type of 0, 1 or 2")
    # inf is LightGBM's for all values to the left, missing ones to the right
    if math.isnan(threshold) or threshold == -math.inf:
        raise damaged(f"{where}, threshold", f"{threshold}", "a number")
    zero_left = default_left if missing == MISSING_ZERO else threshold >= 0.0
    if (zero_left and threshold < -ZERO) or (not zero_left and threshold > ZERO):
        raise ModelError(
            f"{where}: found a split that sends 0 to the other side than its neighbours (zero_as_missing), which one "
            "threshold cannot say. Train with zero_as_missing=false."
        )
    ours = at_most(max(threshold, ZERO)) if zero_left else min(at_most(threshold), -ZERO)
    return default_left if missing == MISSING_NAN else zero_left, ours  # else a missing value is read as 0


def _bit_sets(section: _Section) -> list[frozenset[int]]:
    """Category codes that go left, by category set."""
    n = section.whole("num_cat")
    if not 0 <= n <= section.whole("num_leaves"):
        raise damaged(section.position("num_cat"), f"{n}", "at most one category set a split")
    if n == 0:
        return []
    bounds = section.wholes("cat_boundaries", n + 1)
    words = section.wholes("cat_threshold", max(bounds[-1], 0))
    if bounds[0] != 0 or bounds != sorted(bounds) or any(not 0 <= word < 1 << WORD for word in words):
        raise damaged(
            section.position("cat_boundaries"), "offsets that do not fit the bit sets", "rising offsets from 0"
        )
    return [
        frozenset(i * WORD + bit for i, word in enumerate(words[start:end]) for bit in range(WORD) if word >> bit & 1)
        for start, end in pairwise(bounds)
    ]


def _category_texts(name: str, tail: list[str], n_features: int) -> dict[int, tuple[str, ...]]:
    """Pandas' categories, which LightGBM keeps in the order of the categorical columns without naming these."""
    if "parameters:" in tail and "end of parameters" not in tail:
        raise damaged(name, "the end of the file", "'end of parameters'")
    named = next(_after(tail, "pandas_categorical:"), "null")
    categories = parse_json(f"{name}, pandas_categorical", named.encode())
    if not categories:
        return {}
    if not (isinstance(categories, list) and all(isinstance(column, list) for column in categories)):
        raise damaged(f"{name}, pandas_categorical", shown(named), "a list of each column's categories")
    columns = _categorical_columns(next(_after(tail, "[categorical_feature:"), "]"))
    if columns is None or len(columns) != len(categories) or not set(columns) <= set(range(n_features)):
        raise ModelError(
            f"{name}, pandas_categorical: found categories of {len(categories)} columns, but {len(columns or ())} categorical features, "
            "so which belong to which is unknown; expected as many. Train with unordered pandas categories alone, or on whole numbers."
        )
    return {c: tuple(category_text(v) for v in values) for c, values in zip(columns, categories, strict=True)}


def _after(lines: list[str], start: str) -> Iterator[str]:
    return (line.removeprefix(start) for line in lines if line.startswith(start))


def _categorical_columns(text: str) -> list[int] | None:
    """Columns of ``2,3,4]``, rising; None where they are not numbers."""
    words: list[Any] = [word.strip() for word in text.removesuffix("]").split(",") if word.strip()]
    return sorted(int(word) for word in words) if all(word.isdecimal() for word in words) else None
