"""A Host's part of SHAP values: factors from its own columns. Must not know a weight, a value or a cipher.

In the notation of :mod:`backend.trees.shap`, at a point x: per entry, ∏ over the Host's features for everybody else's values, and the same
without h, times (1_h - c_h), for each of its own features h. For a drop, at x = 1, times (1_r - 1'_r), r being all of this Host's features
of h's reason, and 1'_r their answer at the medians.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.data.medians import moved, sides
from backend.errors import SecurityError
from backend.protocols.explanations.shape import COEFFICIENT_BITS, units
from backend.trees.ensemble import Columns, HostModel, NodeKey
from backend.trees.folding import Step
from backend.trees.shap import Factors, factors_of, members, merged_factors, quadrature

Flags = NDArray[np.bool_]


class CompiledFactors:
    """Built once a request.

    Parameters
    ----------
    step : Step
        This Host's part of the chain.
    shares : sequence of float
        Per own split, by tree and node: the share of cover that goes left.

    Attributes
    ----------
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
            raise SecurityError("wrong_cover_shares", asked=len(keys), got=len(shares))
        share_of: Mapping[NodeKey, float] = dict(zip(keys, shares, strict=True))
        features = {key: rule.feature for key, rule in model.rules.items()}
        self.names = sorted(set(features.values()))
        self.step = step
        self.points, _ = quadrature(model.skeletons)
        self.medians = model.medians
        self.rules = model.rules
        self.factors = Factors(
            model.rules, [factors_of(positions, features, share_of) for positions in step.host_conditions]
        )
        positions = [self.names.index(name) for name in self.factors.features]
        self.where = self.factors.row, np.array(positions, dtype=np.intp)

    @property
    def key_points(self) -> int:
        """Points for which RLWE keys are made."""
        return len(self.points)

    def decide(self, columns: Columns, has_record: bool) -> NDArray[np.bool_]:
        """Return 1_h of one person, ``(m, 1)``; columns are ``(1,)`` each and count as missing without a record."""
        (_, holds), *_ = self.factors.blocks(columns, 1, np.array([has_record]))
        return holds.copy()  # the next block overwrites it

    def others(self, holds: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the factor of every entry and point for other parties' numbers, ``(n, entries, points)``, in units of 2^-COEFFICIENT_BITS.

        Parameters
        ----------
        holds : ndarray of bool
            :meth:`decide` of `n` people, next to each other.
        """
        products = np.stack([self.factors.whole(holds, x).T for x in self.points.tolist()], axis=2)
        return units(products, COEFFICIENT_BITS)

    def own(self, holds: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the factor of every own feature on an entry's paths at every point, ``(n, m, points)``, in the order of :attr:`where`."""
        parts = np.stack([self.factors.parts(holds, x).T for x in self.points.tolist()], axis=2)
        return units(parts, COEFFICIENT_BITS)


class CompiledDropFactors:
    """The same for drops; methods as in :class:`CompiledFactors`. What is decided of a person is 1_r, and behind it 1'_r, ``(2, m, 1)``.

    Parameters
    ----------
    groups : sequence of int
        The reason that each of this Host's features belongs to; empty = each is one.
    """

    def __init__(self, compiled: CompiledFactors, groups: Sequence[int] = ()) -> None:
        self._compiled = compiled
        self.names = compiled.names
        self.step = compiled.step
        self.points = np.ones(1)
        groups = groups or range(len(self.names))
        self._factors = merged_factors(compiled.rules, compiled.step.host_conditions, self.names, groups)
        self._of, items = members(self._factors, [str(group) for group in groups])
        self.where = self._factors.row[self._of], items

    @property
    def key_points(self) -> int:
        """The keys are those of contributions, which hold more."""
        return len(self._compiled.points)

    def decide(self, columns: Columns, has_record: bool) -> NDArray[np.bool_]:
        """Return 1_h of one person's values, and of the medians in their place; columns are ``(1,)`` each."""
        decided = []
        for values in (columns, moved(columns, self._compiled.medians)):
            (_, holds), *_ = self._factors.blocks(values, 1, np.array([has_record]))
            decided.append(holds.copy())  # the next block overwrites it
        return np.stack(decided)

    def others(self, holds: NDArray[np.bool_]) -> NDArray[np.int64]:
        """As :meth:`CompiledFactors.others`, ``(n, entries, 1)``."""
        return units(self._factors.whole(holds[0], 1.0).T[:, :, np.newaxis], COEFFICIENT_BITS)

    def own(self, holds: NDArray[np.bool_]) -> NDArray[np.int64]:
        """As :meth:`CompiledFactors.own`, ``(n, m, 1)``."""
        changes = self._factors.changes(holds[0], holds[1])[self._of]
        return units(changes.T[:, :, np.newaxis], COEFFICIENT_BITS)


AnyFactors = CompiledFactors | CompiledDropFactors


@dataclass(frozen=True, repr=False)
class Decided:
    """How one person answers at this Host: all that is kept of them.

    Attributes
    ----------
    kept, drops : ndarray of bool
        What the two kinds of factors decide.
    sides : ndarray of bool
        ``(own features, 2)``: whether the value is above its median, and whether below.
    """

    holds: Flags
    drops: Flags
    sides: Flags

    @classmethod
    def of(cls, compiled: CompiledFactors, drops: CompiledDropFactors, columns: Columns, has_record: bool) -> Decided:
        """Decide one person; columns are ``(1,)`` each."""
        of_values = sides(compiled.names, columns, compiled.medians, 1)[:, :, 0] & has_record
        return cls(compiled.decide(columns, has_record), drops.decide(columns, has_record), of_values)
