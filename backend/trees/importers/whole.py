"""An undivided model: structure, thresholds and leaf weights together, whichever library it comes from.

It exists only while a model is imported; no party of a federation keeps it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from backend.data.csv_file import shown
from backend.data.label import MAX_CLASSES, MIN_CLASSES, Task
from backend.errors import ModelError
from backend.remark import Remark
from backend.trees.ensemble import Leaf
from backend.trees.importers.reading import damaged
from backend.trees.outputs import Link, Outputs

MAX_DEPTH = 128  # splits on a path
MAX_WEIGHT = float(1 << 49)  # 2**53 units, up to where float64 counts exactly, at the fewest score bits, 4
MAX_FEATURES = 100_000
MAX_CODE = 1 << 24  # XGBoost's bound on category codes
ODD_SIDES = 0.05  # share of splits
TELLING_SPLITS = 6  # of a column, from which on their default sides tell something: fewer are alike by chance


# Not the Guest's split: this one has the threshold, which the Guest's must have no room for.
@dataclass(frozen=True, slots=True)
class WholeSplit:
    """A split, with the rule that only its owner will keep.

    Attributes
    ----------
    left, right : int
        Into the tree's nodes.
    gain, cover : float
        As the library counts them (docs/import.md).
    threshold : float or None
        Numeric: ``value < threshold`` goes left, as in :class:`~backend.trees.ensemble.SplitRule`.
    codes : frozenset of int
        Categorical: these codes go to one side, every other known code to the other.
    """

    feature: int
    left: int
    right: int
    default_left: bool
    gain: float
    cover: float
    threshold: float | None = None
    codes: frozenset[int] = frozenset()
    codes_left: bool = True

    def goes_left(self, column: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Decide each number or code of a column, ``(n,)``."""
        in_codes = np.isin(column, list(self.codes)) == self.codes_left
        if self.threshold is None:
            is_left = in_codes
        else:
            is_left = column < self.threshold
        return np.where(np.isnan(column), self.default_left, is_left)


Node = WholeSplit | Leaf
WholeTree = tuple[Node, ...]


@dataclass(frozen=True)
class WholeModel:
    """The content of a model file.

    Attributes
    ----------
    categories : mapping of int to tuple of str
        Column → text of each category code, where the file names them.
    base_scores : tuple of float
        ``(outputs.count,)``: margins before any tree.
    trees : tuple of WholeTree
        Node 0 is the root; a margin is its base score and one leaf weight a tree.
    outputs : Outputs
        What the margins mean. The classes have the file's own names, or numbers from 0 as in :func:`numbered`.
    outcomes : tuple of str
        Binary: texts of both outcomes, last the one that a higher score speaks for; empty if the file names none.
    gapless : frozenset of int
        Columns of numbers in which training seems to have met no missing value: their splits send one where the library does by default.
    seen_codes : mapping of int to frozenset of int
        Categorical column → the codes that occurred in training, if the file says so.
    placeholder : float or None
        The number that stood for a missing value in training, if the file says one.
    raw_scale : float
        What the library's raw score is multiplied by to give a margin.
    notes : tuple of Remark
        Warnings for the person who imports.
    """

    file: str
    made_by: str
    features: tuple[str, ...]
    categories: Mapping[int, tuple[str, ...]]
    base_scores: tuple[float, ...]
    trees: tuple[WholeTree, ...]
    outputs: Outputs
    outcomes: tuple[str, ...] = ()
    gapless: frozenset[int] = frozenset()
    seen_codes: Mapping[int, frozenset[int]] = field(default_factory=dict)
    placeholder: float | None = None
    raw_scale: float = 1.0
    notes: tuple[Remark, ...] = ()

    def __post_init__(self) -> None:
        if not self.trees:
            raise damaged(f"{self.file}, trees", 0, "≥ 1")
        count = self.outputs.count
        if len(self.base_scores) != count:
            raise damaged(f"{self.file}, base score", Remark("this_many_entries", {"n": len(self.base_scores)}), count)
        for score in self.base_scores:
            if not abs(score) <= MAX_WEIGHT:
                raise damaged(f"{self.file}, base score", score, Remark("expected_up_to", {"bound": MAX_WEIGHT}))
        self._check_outputs()
        repeated = [name for name, count in Counter(self.features).items() if count > 1]
        if repeated:
            names = tuple(shown(name) for name in repeated)
            raise ModelError("model_names_repeated", file=self.file, names=names)

    @property
    def trees_an_output(self) -> int:
        """Trees that add to one margin."""
        return len(self.trees) // (self.outputs.count if self.outputs.of_tree else 1)

    @property
    def reach(self) -> float:
        """An upper bound of every margin's absolute value."""
        heaviest = []
        for tree in self.trees:
            weights: list[float] = []
            for node in tree:
                if isinstance(node, Leaf):
                    weights += node.weights or (node.weight,)
            heaviest.append(max(abs(weight) for weight in weights))
        return max(abs(score) for score in self.base_scores) + sum(heaviest)

    def margins(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of leaf weights, ``(n, outputs.count)``, of ``(n, n_features)`` numbers and category codes; NaN is missing."""
        margins = np.tile(np.array(self.base_scores), (len(values), 1))
        count = self.outputs.count
        for t, tree in enumerate(self.trees):

            def goes_left(i: int, rows: NDArray[np.intp], tree: WholeTree = tree) -> NDArray[np.bool_]:
                split = cast("WholeSplit", tree[i])
                return split.goes_left(values[rows, split.feature])

            if self.outputs.of_tree:
                outputs = [self.outputs.of_tree[t]]
            else:
                outputs = list(range(count))
            weights = np.zeros((len(tree), len(outputs)))
            for i, node in enumerate(tree):
                if isinstance(node, Leaf):
                    weights[i] = node.weights or (node.weight,)
            margins[:, outputs] += weights[leaves_of(tree, goes_left, len(values))]
        return margins

    def _check_outputs(self) -> None:
        """Raise ModelError unless every tree adds to one existing output, or every leaf to all outputs."""
        of_tree = self.outputs.of_tree
        count = self.outputs.count
        if of_tree and (len(of_tree) != len(self.trees) or not set(of_tree) <= set(range(count))):
            raise damaged(f"{self.file}, tree_info", of_tree[:10], f"0 … {count - 1}")
        expected = 0 if of_tree or count == 1 else count
        for t, tree in enumerate(self.trees):
            odd_leaf = next((n for n in tree if isinstance(n, Leaf) and len(n.weights) != expected), None)
            if odd_leaf is not None:
                raise damaged(
                    f"{self.file}, tree {t}, leaf",
                    Remark("this_many_entries", {"n": len(odd_leaf.weights) or 1}),
                    expected or 1,
                )


def leaves_of(
    tree: Sequence[Any], goes_left: Callable[[int, NDArray[np.intp]], NDArray[np.bool_]], n: int
) -> NDArray[np.intp]:
    """Return the leaf of each of `n` records, ``(n,)`` node numbers, in a tree whose splits come before their children.

    `goes_left` is called with a split's number and the records that reach it.
    """
    at = np.zeros(n, dtype=np.intp)
    coming = {0: np.arange(n)}
    for i, node in enumerate(tree):
        rows = coming.pop(i, at[:0])
        if isinstance(node, Leaf):
            at[rows] = i
        elif len(rows):
            is_left = goes_left(i, rows)
            coming[node.left], coming[node.right] = rows[is_left], rows[~is_left]
    return at


def columns_where(
    trees: Sequence[WholeTree], never_missing: Callable[[Sequence[tuple[bool, float, float]]], bool]
) -> frozenset[int]:
    """Return the columns of numbers whose splits' default sides and covers look as if training had no missing value."""
    sides: dict[int, list[tuple[bool, float, float]]] = defaultdict(list)
    for tree in trees:
        for split in tree:
            if isinstance(split, WholeSplit):
                if split.threshold is None:
                    continue
                left_cover = tree[split.left].cover
                right_cover = tree[split.right].cover
                sides[split.feature].append((split.default_left, left_cover, right_cover))
    columns = set()
    for column, sides_of_column in sides.items():
        if len(sides_of_column) >= TELLING_SPLITS and never_missing(sides_of_column):
            columns.add(column)
    return frozenset(columns)


def one_default(sides: Sequence[tuple[bool, float, float]]) -> bool:
    """XGBoost sends a missing value to the same side everywhere where it saw none."""
    return len({default_left for default_left, _, _ in sides}) == 1


def larger_default(sides: Sequence[tuple[bool, float, float]]) -> bool:
    """Return whether the default side is nearly always the larger one: scikit-learn's rule for splits without missing values.

    Weights that differ from counts make a few splits look otherwise.
    """
    odd_sides = 0
    for default_left, left_cover, right_cover in sides:
        if left_cover != right_cover and default_left != (left_cover > right_cover):
            odd_sides += 1
    return odd_sides <= ODD_SIDES * len(sides)


def numbered(count: int) -> tuple[str, ...]:
    """Names of classes that a file only numbers."""
    return tuple(str(k) for k in range(count))


def boosted(task: Task, of_tree: tuple[int, ...], count: int) -> Outputs:
    """Outputs of boosted trees: logits or a number; of `count` classes that are numbered, each with its own trees."""
    links: dict[Task, Link] = {"binary": "logistic", "classes": "softmax", "number": "identity"}
    several = task == "classes"
    return Outputs(task, numbered(count) if several else (), links[task], of_tree=of_tree if several else ())


def check_classes(where: str, count: int) -> None:
    """Refuse a number of classes that no label can have; raises ModelError."""
    if not MIN_CLASSES <= count <= MAX_CLASSES:
        raise ModelError("model_class_count", where=where, found=count, least=MIN_CLASSES, limit=MAX_CLASSES)


def in_order(where: str, nodes: Mapping[int, Node], n_features: int, *, root: int = 0, spare: int = 0) -> WholeTree:
    """Check that nodes make one binary tree, and number them from the root on, left before right.

    Parameters
    ----------
    nodes : mapping of int to WholeSplit or Leaf
        By the library's own numbers.
    spare : int
        Nodes that may be left over (pruned ones).
    """
    number: dict[int, int] = {}
    order: list[Node] = []
    stack = [(root, 0)]
    while stack:
        key, depth = stack.pop()
        node = nodes.get(key)
        if node is None:
            raise damaged(f"{where}, node {key}", Remark("found_nothing"), Remark("expected_one_tree"))
        if key in number:
            raise damaged(f"{where}, node {key}", Remark("found_two_ways"), Remark("expected_one_tree"))
        if depth > MAX_DEPTH:
            raise ModelError("tree_too_deep", where=where, limit=MAX_DEPTH)
        _check(f"{where}, node {key}", node, n_features)
        number[key] = len(order)
        order.append(node)
        if isinstance(node, WholeSplit):
            stack += [(node.right, depth + 1), (node.left, depth + 1)]
    if len(order) + spare != len(nodes):
        raise damaged(where, f"{len(order)} / {len(nodes) - spare}", Remark("expected_one_tree"))
    return tuple(
        replace(node, left=number[node.left], right=number[node.right]) if isinstance(node, WholeSplit) else node
        for node in order
    )


def _check(where: str, node: Node, n_features: int) -> None:
    if not 0.0 <= node.cover < math.inf:
        raise damaged(f"{where}, cover", node.cover, Remark("expected_not_negative"))
    if isinstance(node, Leaf):
        for weight in node.weights or (node.weight,):
            if not abs(weight) <= MAX_WEIGHT:
                raise damaged(f"{where}, weight", weight, Remark("expected_up_to", {"bound": MAX_WEIGHT}))
        return
    if not 0 <= node.feature < n_features:
        raise damaged(f"{where}, feature", node.feature, f"0 … {n_features - 1}")
    if not math.isfinite(node.gain):
        raise damaged(f"{where}, gain", node.gain, Remark("expected_finite"))
    if node.threshold is not None and not math.isfinite(node.threshold):
        raise damaged(f"{where}, threshold", node.threshold, Remark("expected_finite"))
    if not all(0 <= code < MAX_CODE for code in node.codes):
        raise damaged(f"{where}, categories", max(node.codes), f"0 … {MAX_CODE - 1}")


def category_text(value: object) -> str:
    """A category as a party's file writes it: whole numbers without a decimal point, everything else as text."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
