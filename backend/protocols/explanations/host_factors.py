"""A Host's part of SHAP values: factors from its own columns. Must not know a weight, a value or a cipher.

In the notation of :mod:`backend.trees.shap`, at a point x: per entry, ∏ over the Host's features for everybody else's values, and the same
without h, times (1_h - c_h), for each of its own features h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError
from backend.protocols.explanations.shape import COEFFICIENT_BITS, units
from backend.trees.ensemble import Columns, HostModel, NodeKey
from backend.trees.folding import Step
from backend.trees.shap import Factors, factors_of, quadrature


class CompiledFactors:
    """Built once a request.

    Parameters
    ----------
    model : HostModel
    step : Step
        This Host's part of the chain.
    shares : sequence of float
        Per own split, by tree and node: the share of cover that goes left.

    Attributes
    ----------
    names : list of str
        Own features.
    points : ndarray of float64
        Of the quadrature.
    where : tuple of two ndarray of int
        ``(m,)`` each: entry and own feature of every factor of an own feature.

    Raises
    ------
    SecurityError
        The shares do not fit the Host's splits.
    """

    def __init__(self, model: HostModel, step: Step, shares: Sequence[float]) -> None:
        keys = sorted(model.rules)
        if len(shares) != len(keys) or not all(0.0 <= share <= 1.0 for share in shares):
            raise SecurityError(f"{len(keys)} shares of cover from 0 to 1 were expected, {len(shares)} numbers came.")
        share_of: Mapping[NodeKey, float] = dict(zip(keys, shares, strict=True))
        features = {key: rule.feature for key, rule in model.rules.items()}
        self.names = sorted(set(features.values()))
        self.step = step
        self.points, _ = quadrature(model.skeletons)
        self._factors = Factors(model.rules, [factors_of(own, features, share_of) for own in step.own])
        own = [self.names.index(name) for name in self._factors.features]
        self.where = self._factors.row, np.array(own, dtype=np.intp)

    def decide(self, columns: Columns, held: bool) -> NDArray[np.bool_]:
        """1_h of one person, ``(m, 1)``; columns are ``(1,)`` each and count as missing where no record is held."""
        (_, kept), *_ = self._factors.blocks(columns, 1, np.array([held]))
        return kept

    def others(self, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Factor of every entry and point for what is somebody else's, ``(entries, points)``: multiples of 2^-COEFFICIENT_BITS."""
        whole = np.stack([self._factors.whole(kept, x)[:, 0] for x in self.points.tolist()], axis=1)
        return units(whole, COEFFICIENT_BITS)

    def own(self, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Factor of every own feature on an entry's paths at every point, ``(m, points)``; :attr:`where` says which those are."""
        parts = np.stack([self._factors.parts(kept, x)[:, 0] for x in self.points.tolist()], axis=1)
        return units(parts, COEFFICIENT_BITS)
