"""scikit-learn's decision trees and forests on the records and bins of a federated training: what one party, or one table, would give."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from bench.pooled import Floats, Pooled

LEAF = -1  # scikit-learn's mark of a node without children


def decision_tree(data: Pooled, features: Collection[str] | None, depth: int, min_decrease: float) -> float:
    """Accuracy on the test records, 0 … 1, of a CART tree that stops where Gini's impurity decreases by no more (FL-DT eq. 16)."""
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    tree.fit(data.matrix(data.training, features), data.labels[data.training])
    prune(tree, min_decrease)
    return float(tree.score(data.matrix(data.test, features), data.labels[data.test]))


def random_forest(data: Pooled, trees: int, depth: int, min_samples_leaf: int) -> Floats:
    """``(n_test,)``: the positive share on the test records."""
    forest = RandomForestClassifier(trees, max_depth=depth, min_samples_leaf=min_samples_leaf, random_state=0)
    forest.fit(data.matrix(data.training), data.labels[data.training])
    share: Floats = forest.predict_proba(data.matrix(data.test))[:, 1]
    return share


def prune(tree: DecisionTreeClassifier, min_decrease: float) -> None:
    """Make every split a leaf that the stopping rule would not have made; scikit-learn's own rule weighs by the share of records."""
    shape = tree.tree_
    for node in np.flatnonzero(shape.children_left != LEAF):
        sides = [shape.children_left[node], shape.children_right[node]]
        weights = shape.weighted_n_node_samples[sides] / shape.weighted_n_node_samples[node]
        if shape.impurity[node] - float(weights @ shape.impurity[sides]) <= min_decrease:
            shape.children_left[node] = shape.children_right[node] = LEAF
