"""What a Host answers in a training, compared with what the Guest holds in plaintext. Exact, since all sums are integers.

A Host adds up ciphertexts that it cannot read, so the Guest alone can tell whether it added up what it was asked to. Three checks:

1. A feature has no more bins than were asked for. More bins let a Host tell more patterns of labels apart.
2. Over its bins, that of missing values included, a feature's sums are the node's, and what cannot be negative is not.
3. The rows that a Host says go left have the sums by which the Guest chose the split.

A Host that bins its records as it likes passes them; what it learns is in the label meter (:mod:`backend.protocols.training.label_bound`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature, Kind
from backend.errors import WrongAnswer
from backend.protocols.training.messages import FeatureBins
from backend.trees.growth import Histogram, IntArray


def check_bins(host: str, answer: FeatureBins, features: Sequence[Feature], max_bins: int) -> None:
    """Check 1: raise WrongAnswer if a Host's features are not those of its dictionary, or have more bins than were asked for."""
    names = tuple(feature.name for feature in features)
    categorical = tuple(feature.kind is Kind.CATEGORICAL for feature in features)
    fits = answer.names == names and answer.categorical == categorical and len(answer.bins) == len(names)
    if not fits:
        raise WrongAnswer("host_reports_other_features", host=host)
    for feature, count in zip(features, answer.bins, strict=True):
        # A categorical feature of which every training record lacks a value has no bin but that of missing values.
        if not 0 <= count <= max_bins:
            raise WrongAnswer("bins_exceed_request", host=host, feature=feature.name, asked=max_bins, got=count)


def check_histograms(
    host: str, histograms: Mapping[str, Histogram], node_sums: IntArray | None, not_negative: NDArray[np.bool_]
) -> None:
    """Check 2: raise WrongAnswer if a feature's sums do not add up to the node's.

    Parameters
    ----------
    histograms : mapping of str to Histogram
        Of all of the Host's features at one node.
    node_sums : ndarray of int64, optional
        ``(channels,)``, which the Guest has worked out from its own rows. None if the sums are what remains of two nodes that were
        checked: then they add up.
    not_negative : ndarray of bool
        ``(channels,)``: channels without a negative number, so that no bin's sum is negative.
    """
    if not histograms:
        return
    # All features of a node at once: this runs for every node, and a call to numpy a feature would be felt.
    sums = np.concatenate([histogram.sums for histogram in histograms.values()], axis=1)
    counts = [histogram.sums.shape[1] for histogram in histograms.values()]
    starts = np.cumsum([0, *counts[:-1]])
    wrong = np.zeros(len(counts), dtype=bool)
    if node_sums is not None:
        totals = np.add.reduceat(sums, starts, axis=1)
        wrong |= (totals != node_sums[:, np.newaxis]).any(axis=0)
    negative = (sums[not_negative] < 0).any(axis=0)
    wrong |= np.logical_or.reduceat(negative, starts)
    if wrong.any():
        feature = list(histograms)[int(np.argmax(wrong))]
        raise WrongAnswer("sums_do_not_add_up", host=host, feature=feature)


def check_split_rows(host: str, feature: str, left_sums: IntArray, expected: IntArray) -> None:
    """Check 3: raise WrongAnswer if the rows that a Host sends left have other sums than those that chose the split, ``(channels,)``."""
    if not np.array_equal(left_sums, expected):
        raise WrongAnswer("rows_do_not_fit_sums", host=host, feature=feature)
