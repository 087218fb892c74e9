"""How much each feature matters to a model, from the Guest's partial model alone: gains, covers and counts of its splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from backend.trees.ensemble import GuestModel, Usage

Measure = Literal["gain", "splits", "cover"]


@dataclass(frozen=True)
class FeatureImportance(Usage):
    """One feature in one model.

    Attributes
    ----------
    gain, cover : float
        Sums over the feature's splits; cover in units of hessian.
    split_share : float
        Of the whole model, 0 … 1.
    """

    party: str
    feature: str
    gain: float
    cover: float
    split_share: float


def feature_importance(model: GuestModel) -> tuple[FeatureImportance, ...]:
    """Return every feature that was offered to the training, used or not, largest gain first."""
    gain, cover = (by_tree(model, measure).sum(axis=0) for measure in ("gain", "cover"))
    splits_by_tree = by_tree(model, "splits")
    splits = splits_by_tree.sum(axis=0)
    trees = (splits_by_tree > 0).sum(axis=0)
    rows = []
    for i, (party, feature) in enumerate(model.dictionary):
        rows.append(
            FeatureImportance(
                party=party,
                feature=feature.name,
                gain=float(gain[i]),
                splits=int(splits[i]),
                cover=float(cover[i]),
                gain_share=float(gain[i] / (gain.sum() or 1.0)),
                split_share=float(splits[i] / (splits.sum() or 1.0)),
                cover_share=float(cover[i] / (cover.sum() or 1.0)),
                trees=int(trees[i]),
            )
        )
    return tuple(sorted(rows, key=lambda r: (-r.gain, r.feature)))


def by_tree(model: GuestModel, measure: Measure) -> NDArray[np.float64]:
    """``(trees, features)`` sums of a measure over the splits, features in the dictionary's order."""
    index = {f.name: i for i, (_, f) in enumerate(model.dictionary)}
    totals = np.zeros((len(model.trees), len(index)))
    for t, tree in enumerate(model.trees):
        for split in tree.splits.values():
            totals[t, index[split.feature]] += {"gain": split.gain, "splits": 1.0, "cover": split.cover}[measure]
    return totals
