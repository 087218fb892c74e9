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

from backend.data.csv_file import shown
from backend.data.label import Task
from backend.errors import ModelError
from backend.remark import Remark
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
REASONS = {  # code of why the sum of leaf weights is not what these predict
    "sqrt": "predicts_square_of_sum",
    "multiclassova": "predicts_separate_classes",
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "predicts_power_of_sum"),
}
# bits of a decision type; the missing type is in the two bits above
CATEGORICAL = 1
DEFAULT_LEFT = 2
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
        if key in self.values:
            return f"{self.where}, line {self.values[key][0]}, {key}"
        return f"{self.where}, {key}"

    def text(self, key: str) -> str:
        if key not in self.values:
            raise damaged(self.position(key), Remark("found_nothing"), Remark("expected_something"))
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
            raise damaged(self.position(key), Remark("this_many_entries", {"n": len(words)}), n)
        try:
            return [read(word) for word in words]
        except ValueError:
            raise damaged(self.position(key), shown(self.text(key)), Remark("expected_numbers")) from None


def read_lightgbm(name: str, data: bytes) -> WholeModel:
    """Interpret a model file's bytes; raises ModelError if it is damaged, or predicts no sums of leaf weights."""
    head, trees, tail = _sections(name, data)
    version = head.text("version")
    if version not in VERSIONS:
        raise ModelError(
            "lightgbm_version_unknown", where=head.position("version"), found=shown(version), versions=VERSIONS
        )
    task, scale = _objective(head)
    count = _outputs(head, task)
    names = head.text("feature_names").split()
    n_features = head.whole("max_feature_idx") + 1
    if not 1 <= len(names) == n_features <= MAX_FEATURES:
        raise damaged(
            head.position("feature_names"),
            Remark("this_many_entries", {"n": len(names)}),
            f"{n_features} ≤ {MAX_FEATURES}",
        )
    sizes = head.text("tree_sizes").split()
    if len(sizes) != len(trees):
        raise damaged(head.position("tree_sizes"), Remark("this_many_entries", {"n": len(sizes)}), len(trees))
    if len(trees) % count:
        raise damaged(f"{name}, trees", len(trees), Remark("expected_multiple", {"count": count}))
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
        seen_codes=_seen_codes(head, n_features),
        raw_scale=scale,
        outputs=boosted(task, tuple(t % count for t in range(len(trees))), count),
    )


def _sections(name: str, data: bytes) -> tuple[_Section, list[_Section], list[str]]:
    """The head, the trees, and the lines after them."""
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise damaged(f"{name}, byte {error.start:,}", Remark("found_no_utf8"), "UTF-8") from None
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
                raise damaged(
                    f"{name}, line {number}", Remark("found_twice", {"text": shown(key)}), Remark("expected_key_once")
                )
            sections[-1].values[key] = number, value
    raise damaged(f"{name}, line {len(lines)}", Remark("found_end_of_file"), "'end of trees'")


def _objective(head: _Section) -> tuple[Task, float]:
    """The task, and the objective's own factor from raw scores to margins."""
    text = head.values.get("objective", (0, "no objective"))[1]
    objective, *options = text.split() or [""]
    if objective not in TASKS or "sqrt" in options:
        reason = REASONS.get("sqrt" if "sqrt" in options else objective, "objective_not_known")
        where = head.position("objective")
        raise ModelError(
            "objective_not_importable", where=where, found=shown(text), reason=Remark(reason), objectives=tuple(TASKS)
        )
    if objective != "binary":
        return TASKS[objective], 1.0
    try:
        if len(options) == 1:
            factor = float(options[0].removeprefix("sigmoid:"))
        else:
            factor = 0.0
    except ValueError:
        factor = 0.0
    if not 0.0 < factor < 1e6:
        raise damaged(head.position("objective"), shown(" ".join(options)), "sigmoid:1")
    return "binary", factor


def _outputs(head: _Section, task: Task) -> int:
    """Number of outputs a sample."""
    count = head.whole("num_class")
    if task == "classes":
        check_classes(head.position("num_class"), count)
    elif count != 1:
        raise ModelError("several_outputs", where=head.position("num_class"), found=shown(head.text("num_class")))
    if head.whole("num_tree_per_iteration") != count:
        where = head.position("num_tree_per_iteration")
        raise damaged(where, shown(head.text("num_tree_per_iteration")), count)
    return count


def _tree(section: _Section, scale: float, n_features: int) -> WholeTree:
    if section.values.get("is_linear", (0, "0"))[1] != "0":
        raise ModelError("linear_leaves", where=section.where)
    n_leaves = section.whole("num_leaves")
    weights = section.floats("leaf_value", n_leaves)
    if n_leaves > 1:
        covers = section.floats("leaf_weight", n_leaves)
    else:
        covers = [0.0]
    nodes: dict[int, Node] = {}
    for j, (weight, cover) in enumerate(zip(weights, covers, strict=True)):
        nodes[~j] = Leaf(weight * scale, max(cover, 0.0))
    if n_leaves == 1:
        return in_order(section.where, nodes, n_features, root=~0)
    n = n_leaves - 1
    gains = section.floats("split_gain", n)
    kinds = section.wholes("decision_type", n)
    thresholds = section.floats("threshold", n)
    features = section.wholes("split_feature", n)
    lefts = section.wholes("left_child", n)
    rights = section.wholes("right_child", n)
    bit_sets = _bit_sets(section)
    internal = section.floats("internal_weight", n)
    for i in range(n):
        where = f"{section.where}, node {i}"
        default_left = False
        threshold = None
        codes = frozenset[int]()
        if kinds[i] & CATEGORICAL:
            if thresholds[i] not in range(len(bit_sets)):
                raise damaged(f"{where}, threshold", thresholds[i], f"0 … {len(bit_sets) - 1}")
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


def _seen_codes(head: _Section, n_features: int) -> dict[int, frozenset[int]]:
    """Return the codes of categorical columns that occurred in training: ``feature_infos`` lists them as ``1:2:4``."""
    infos = head.values.get("feature_infos", (0, ""))[1].split()
    if len(infos) != n_features:
        return {}
    codes_of = {}
    for column, info in enumerate(infos):
        codes = [code for code in info.split(":") if code != "-1"]  # -1 is a missing value
        if codes and all(code.isdecimal() for code in codes):
            codes_of[column] = frozenset(map(int, codes))
    return codes_of


def _gapless(sections: list[_Section]) -> frozenset[int]:
    """Return the columns of numbers of which no split has a way for missing values: training saw no missing value."""
    with_way = set()
    without_way = set()
    for section in sections:
        if "decision_type" not in section.values:
            continue
        n = section.whole("num_leaves") - 1
        for feature, kind in zip(section.wholes("split_feature", n), section.wholes("decision_type", n), strict=True):
            if kind & CATEGORICAL or kind >> 2 == MISSING_NAN:
                with_way.add(feature)
            else:
                without_way.add(feature)
    return frozenset(without_way - with_way)


def _numeric(where: str, kind: int, threshold: float) -> tuple[bool, float]:
    """Default direction and our threshold, by the split's missing type."""
    default_left = bool(kind & DEFAULT_LEFT)
    missing = kind >> 2
    if missing not in (MISSING_NONE, MISSING_ZERO, MISSING_NAN):
        raise damaged(f"{where}, decision_type", kind, "missing_type 0, 1, 2")
    # inf is LightGBM's for all values to the left, missing ones to the right
    if math.isnan(threshold) or threshold == -math.inf:
        raise damaged(f"{where}, threshold", threshold, Remark("expected_finite"))
    if missing == MISSING_ZERO:
        zero_left = default_left
    else:
        zero_left = threshold >= 0.0
    if (zero_left and threshold < -ZERO) or (not zero_left and threshold > ZERO):
        raise ModelError("zero_as_missing", where=where)
    if zero_left:
        ours = at_most(max(threshold, ZERO))
    else:
        ours = min(at_most(threshold), -ZERO)
    return default_left if missing == MISSING_NAN else zero_left, ours  # else a missing value is read as 0


def _bit_sets(section: _Section) -> list[frozenset[int]]:
    """Return the category codes that go left, by category set."""
    n = section.whole("num_cat")
    if not 0 <= n <= section.whole("num_leaves"):
        raise damaged(section.position("num_cat"), n, f"0 … {section.whole('num_leaves')}")
    if n == 0:
        return []
    bounds = section.wholes("cat_boundaries", n + 1)
    words = section.wholes("cat_threshold", max(bounds[-1], 0))
    if bounds[0] != 0 or bounds != sorted(bounds) or any(not 0 <= word < 1 << WORD for word in words):
        raise damaged(section.position("cat_boundaries"), bounds[:10], Remark("expected_rising_offsets"))
    sets = []
    for start, end in pairwise(bounds):
        codes = set[int]()
        for i, word in enumerate(words[start:end]):
            codes.update(i * WORD + bit for bit in range(WORD) if word >> bit & 1)
        sets.append(frozenset(codes))
    return sets


def _category_texts(name: str, tail: list[str], n_features: int) -> dict[int, tuple[str, ...]]:
    """Return Pandas' categories by column; LightGBM's file has them in the order of the categorical columns, without names."""
    if "parameters:" in tail and "end of parameters" not in tail:
        raise damaged(name, Remark("found_end_of_file"), "'end of parameters'")
    text = next(_after(tail, "pandas_categorical:"), "null")
    categories = parse_json(f"{name}, pandas_categorical", text.encode())
    if not categories:
        return {}
    if not (isinstance(categories, list) and all(isinstance(column, list) for column in categories)):
        raise damaged(f"{name}, pandas_categorical", shown(text), Remark("expected_category_lists"))
    columns = _categorical_columns(next(_after(tail, "[categorical_feature:"), "]"))
    if columns is None or len(columns) != len(categories) or not set(columns) <= set(range(n_features)):
        raise ModelError(
            "categories_of_unknown_columns", file=name, columns=len(categories), features=len(columns or ())
        )
    return {c: tuple(category_text(v) for v in values) for c, values in zip(columns, categories, strict=True)}


def _after(lines: list[str], start: str) -> Iterator[str]:
    return (line.removeprefix(start) for line in lines if line.startswith(start))


def _categorical_columns(text: str) -> list[int] | None:
    """Columns of ``2,3,4]``, rising; None if they are not numbers."""
    words: list[Any] = [word.strip() for word in text.removesuffix("]").split(",") if word.strip()]
    if all(word.isdecimal() for word in words):
        return sorted(int(word) for word in words)
    return None
