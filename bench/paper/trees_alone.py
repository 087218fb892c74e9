"""scikit-learn's decision trees and forests on the records and bins of a federated training: what one party, or one table, would give."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from backend.data.binning import make_bins
from backend.data.dictionary import Kind
from backend.data.table import read_labels, read_table
from backend.services import Glassleaf, ModelRecord

STOP = -1  # scikit-learn's mark of a leaf
FIRST = 0.7  # share of training records in FL-DT §4.1.1

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pooled:
    """All parties' columns in one place, as nobody but the operator of a simulation has them.

    Attributes
    ----------
    columns : dict of str to ndarray
        Feature → ``(n, k)``: bins of a number, a 0/1 column for each code.
    labels : ndarray of float64
        ``(n,)``.
    training, test : ndarray of bool
        ``(n,)``.
    """

    columns: dict[str, Floats] = field(repr=False)
    labels: Floats = field(repr=False)
    training: Flags = field(repr=False)
    test: Flags = field(repr=False)

    def matrix(self, rows: Flags, features: Collection[str] | None = None) -> Floats:
        """``(n_rows, k)``; `features` None = all parties'."""
        return np.hstack([c[rows] for name, c in self.columns.items() if features is None or name in features])

    def most_frequent(self) -> float:
        """Accuracy on the test records of always answering with the most frequent class of the training records."""
        classes, counts = np.unique(self.labels[self.training], return_counts=True)
        return float((self.labels[self.test] == classes[counts.argmax()]).mean())

    def in_file_order(self) -> Pooled:
        """The same divided as the file lies: its first 70 % to train on, the rest to test."""
        first = np.arange(len(self.labels)) < FIRST * len(self.labels)
        return replace(self, training=first, test=~first)


def pooled(glassleaf: Glassleaf, record: ModelRecord, bins: int) -> Pooled:
    """The records of a trained model, divided and binned as in its training."""
    federation, frame = glassleaf.federation(record.federation), glassleaf.samples(record.id)
    ids, parts = [str(i) for i in frame.index], frame["part"].to_numpy()
    training = parts == "training"
    columns = {}
    for party in federation.parties:
        table = read_table(federation, party.name)
        rows = np.array([table.row_of[i] for i in ids], dtype=np.intp)
        for feature in party.features:
            column = table.columns[feature.name][rows]
            made = make_bins(feature, column[training], bins)
            index = made.index(column)
            codes = np.eye(made.count + 1)[index] if feature.kind is Kind.CATEGORICAL else index[:, None]
            columns[feature.name] = codes.astype(np.float64)
    labels = np.asarray(read_labels(federation), dtype=np.float64)
    return Pooled(columns, labels, training, parts == "test")


def decision_tree(data: Pooled, features: Collection[str] | None, depth: int, least_fall: float) -> float:
    """Accuracy on the test records, 0 … 1, of a CART tree that stops where Gini's impurity falls by no more (FL-DT eq. 16)."""
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    tree.fit(data.matrix(data.training, features), data.labels[data.training])
    stop_early(tree, least_fall)
    return float(tree.score(data.matrix(data.test, features), data.labels[data.test]))


def random_forest(data: Pooled, trees: int, depth: int, fewest: int) -> Floats:
    """``(n_test,)``: the positive share on the test records; `fewest` records a leaf."""
    forest = RandomForestClassifier(trees, max_depth=depth, min_samples_leaf=fewest, random_state=0)
    forest.fit(data.matrix(data.training), data.labels[data.training])
    share: Floats = forest.predict_proba(data.matrix(data.test))[:, 1]
    return share


def stop_early(tree: DecisionTreeClassifier, least_fall: float) -> None:
    """Make every split a leaf that the stopping rule would not have made; scikit-learn's own rule weighs by the share of records."""
    shape = tree.tree_
    for node in np.flatnonzero(shape.children_left != STOP):
        sides = [shape.children_left[node], shape.children_right[node]]
        weights = shape.weighted_n_node_samples[sides] / shape.weighted_n_node_samples[node]
        if shape.impurity[node] - float(weights @ shape.impurity[sides]) <= least_fall:
            shape.children_left[node] = shape.children_right[node] = STOP
