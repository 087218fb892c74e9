"""Permutation importance of a feature, or of all of a party's: how much quality falls when its values are permuted among the people.

Pure arithmetic on margins (Breiman 2001, §10); the caller obtains the margins of the permuted records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from backend.errors import ParameterError
from backend.evaluation.performance import draws
from backend.fairness.intervals import percentiles
from backend.trees.ensemble import GuestModel
from backend.trees.metrics import weighted_figures
from backend.trees.outputs import Outputs

RESAMPLES = 500

Floats = NDArray[np.float64]
Quality = Literal["auc", "r2"]


@dataclass(frozen=True)
class Permuted:
    """How much quality falls when the values of a feature, or of all of a party's features together, are permuted.

    Permuting makes impossible records if features depend on each other, and a feature with a correlated twin looks unimportant. A
    party's columns are permuted together, so that only their link with everybody else's is cut.

    Attributes
    ----------
    feature : str
        Empty if it is all of a party's.
    quality : {"auc", "r2"}
        R² for numbers; several classes: mean AUC of each against the rest.
    fall, low, high : float
        Mean over the repeats with its 95 % interval over people drawn with replacement; negative = it did better by chance.
    """

    party: str
    feature: str
    quality: Quality
    fall: float
    low: float
    high: float
    n: int
    repeats: int


def candidates(model: GuestModel) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what can be permuted: every feature in use by itself, then all of each party's together; (party, features)."""
    used_features = {split.feature for tree in model.trees for split in tree.splits.values()}
    single = [(party, (f.name,)) for party, f in model.dictionary if f.name in used_features]
    together = []
    for party in (model.guest, *model.hosts):
        party_features = tuple(f.name for p, f in model.dictionary if p == party and f.name in used_features)
        together += [(party, party_features)] if len(party_features) > 1 else []
    return (*single, *together)


def permuted(
    party: str,
    features: Sequence[str],
    labels: Floats,
    unchanged: Floats,
    permutations: Sequence[Floats],
    outputs: Outputs,
    seed: int,
) -> Permuted:
    """Return the fall of quality from `unchanged` to the mean of `permutations`.

    Parameters
    ----------
    features : sequence of str
        The permuted features, together if there are several.
    labels : ndarray of float64
        ``(n,)``.
    unchanged : ndarray of float64
        ``(n, outputs.count)`` margins of the records as they are.
    permutations : sequence of ndarray of float64
        The same with permuted values, one per repeat.

    Raises
    ------
    ParameterError
        The people have one label only, so that quality is undefined.
    """
    n = len(labels)
    if len(np.unique(labels)) < 2:
        raise ParameterError("one_label_drawn", people=n)

    kind: Quality = "r2" if outputs.task == "number" else "auc"

    def quality(margins: Floats, weights: Floats) -> Floats:
        return weighted_figures(labels, margins, outputs.predict(margins), outputs.task, weights)[kind]

    def falls(weights: Floats) -> Floats:
        permuted_quality: Floats = np.mean([quality(margins, weights) for margins in permutations], axis=0)
        return quality(unchanged, weights) - permuted_quality

    fall = float(falls(np.ones((1, n)))[0])
    low, high = percentiles(np.concatenate([falls(weights) for weights in draws(n, RESAMPLES, seed)]), fall)
    name = features[0] if len(features) == 1 else ""
    return Permuted(party, name, kind, fall, low, high, n, len(permutations))
