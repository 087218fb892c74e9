"""All parties' columns together, binned as in a training: the view of a centralised learner, for comparison."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from backend.data.binning import make_bins
from backend.data.dictionary import Kind
from backend.data.table import read_labels, read_table
from backend.results import ModelRecord
from backend.services import Glassleaf

FIRST = 0.7  # share of training records in FL-DT §4.1.1

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pooled:
    """The records of a training as nobody but the operator of a simulation has them.

    Attributes
    ----------
    bins : dict of str to ndarray
        Feature → ``(n,)`` index of the bin; the last one of a feature is that of missing values.
    categories : dict of str to int
        Features whose bins have no order → how many they have.
    labels : ndarray of float64
        ``(n,)``.
    training, test : ndarray of bool
        ``(n,)``.
    """

    bins: dict[str, NDArray[np.intp]] = field(repr=False)
    categories: dict[str, int]
    labels: Floats = field(repr=False)
    training: Flags = field(repr=False)
    test: Flags = field(repr=False)

    def matrix(self, rows: Flags, features: Collection[str] | None = None) -> Floats:
        """``(n_rows, k)``: a column of bins a number, a 0/1 column for each category; `features` None = all parties'."""
        columns = []
        for name, index in self.bins.items():
            if features is None or name in features:
                count = self.categories.get(name)
                columns.append(index[rows][:, None] if count is None else np.eye(count)[index[rows]])
        return np.hstack(columns).astype(np.float64)

    def most_frequent(self) -> float:
        """Accuracy on the test records of always answering with the most frequent class of the training records."""
        classes, counts = np.unique(self.labels[self.training], return_counts=True)
        return float((self.labels[self.test] == classes[counts.argmax()]).mean())

    def in_file_order(self) -> Pooled:
        """The same divided in the file's order: its first 70 % to train on, the rest to test."""
        first = np.arange(len(self.labels)) < FIRST * len(self.labels)
        return replace(self, training=first, test=~first)


def pooled(glassleaf: Glassleaf, record: ModelRecord, bins: int) -> Pooled:
    """The records of a trained model that all parties hold, divided and binned as in its training."""
    federation = glassleaf.federations.get(record.federation)
    frame = glassleaf.samples.table(record.id)
    joint = frame.index.isin(list(glassleaf.models.part_of(record)))
    ids = [str(i) for i in frame.index[joint]]
    parts = frame["part"].to_numpy()[joint]
    training = parts == "training"
    indices = {}
    categories = {}
    for party in federation.parties:
        table = read_table(federation, party.name)
        rows = np.array([table.row_of[i] for i in ids], dtype=np.intp)
        for feature in party.features:
            column = table.columns[feature.name][rows]
            own = make_bins(feature, column[training], bins)
            indices[feature.name] = own.index(column)
            if feature.kind is Kind.CATEGORICAL:
                categories[feature.name] = own.count + 1
    labels = np.asarray(read_labels(federation), dtype=np.float64)[joint]
    return Pooled(indices, categories, labels, training, parts == "test")
