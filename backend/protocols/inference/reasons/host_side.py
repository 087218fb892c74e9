"""A Host's part of SHAP values: factors from its own columns, applied to numbers that it cannot read. Must not know a weight or a value.

In the notation of :mod:`backend.trees.shap`, at a point x: per entry, ∏ over the Host's features for everybody else's values, and the same
without h, times (1_h - c_h), for each of its own features h. What goes on to the next Host is added up by what conditions remain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.cipher import Weighted, WeightedPublicSide
from backend.errors import SecurityError
from backend.protocols.inference.reasons.terms import COEFFICIENT_BITS, ReasonShape, to_units
from backend.trees.ensemble import Columns, HostModel, NodeKey
from backend.trees.folding import Step
from backend.trees.shap import Factors, factors_of, quadrature

_Sums = dict[int, tuple[list[int], list[int]]]


class CompiledFactors:
    """Built once a request.

    Parameters
    ----------
    model : HostModel
    step : Step
        This Host's part of the chain.
    shares : sequence of float
        Per own split, by tree and node: the share of cover that goes left.

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
        self._place = [self.names.index(name) for name in self._factors.features]

    def decide(self, columns: Columns, held: bool) -> NDArray[np.bool_]:
        """1_h of one person, ``(m, 1)``; columns are ``(1,)`` each and count as missing where no record is held."""
        (_, kept), *_ = self._factors.blocks(columns, 1, np.array([held]))
        return kept

    def others(self, kept: NDArray[np.bool_]) -> list[int]:
        """Factor of every entry and point for what is somebody else's, ``(entries · points,)``."""
        whole = np.stack([self._factors.whole(kept, x)[:, 0] for x in self.points.tolist()], axis=1)
        return to_units(whole.ravel(), COEFFICIENT_BITS)

    def own(self, kept: NDArray[np.bool_]) -> list[tuple[int, int, list[int]]]:
        """Entry, own feature, and its factor at every point."""
        parts = np.stack([self._factors.parts(kept, x)[:, 0] for x in self.points.tolist()], axis=1)
        units = [to_units(line, COEFFICIENT_BITS) for line in parts]
        return list(zip(self._factors.row.tolist(), self._place, units, strict=True))


class PersonTerms:
    """One person's numbers at one Host.

    Parameters
    ----------
    side : WeightedPublicSide
        The Guest's public key.
    compiled : CompiledFactors
    shape : ReasonShape
    party : int
        This Host's place among the parties, the Guest's being 0.
    """

    def __init__(self, side: WeightedPublicSide, compiled: CompiledFactors, shape: ReasonShape, party: int) -> None:
        self._side, self._compiled, self._shape, self._party = side, compiled, shape, party
        self._points, self._packs = len(compiled.points), shape.packs_before(party)

    def last(self, terms: bytes, kept: NDArray[np.bool_]) -> list[Any]:
        """Values of all features, in the layout of :meth:`ReasonShape.layout`; not refreshed."""
        base_enc, packs_enc, constant_enc = self._load(terms)
        factors, width = self._compiled.others(kept), self._packs
        sums: list[Weighted] = [(range(g, len(packs_enc), width), factors) for g in range(width)]
        theirs = self._side.weighted_sums(packs_enc, sums)
        for g, one in enumerate(constant_enc):
            theirs[g] = self._side.weighted_sums([theirs[g], one], [((0, 1), (1, 1))])[0]
        own: _Sums = defaultdict(lambda: ([], []))
        for entry, feature, units in self._compiled.own(kept):
            _extend(own[feature], self._at(entry), units)
        mine = self._side.weighted_sums(base_enc, [own[h] for h in range(self._shape.features[self._party])])
        return [*theirs, *mine]

    def spread(self, values: Sequence[Any]) -> list[Any]:
        """A number a feature, as the ranking takes them; it adds up 2^(slot·i) · number i.

        A pack stands at the place of its first feature, and zeros at those of its others.
        """
        (zero,) = self._side.weighted_sums([], [((), ())])
        layout = self._shape.layout(self._party)
        return [one for value, held in zip(values, layout, strict=True) for one in (value, *[zero] * (held - 1))]

    def passed_on(self, terms: bytes, kept: NDArray[np.bool_]) -> bytes:
        """Base, packs and constant for the next Host, refreshed; packs of this Host's own features are new among them."""
        base_enc, packs_enc, constant_enc = self._load(terms)
        step, points, width = self._compiled.step, self._points, self._packs
        factors, places = self._compiled.others(kept), step.n_out * points
        on: _Sums = defaultdict(lambda: ([], []))
        for entry, out in enumerate(step.target):
            for k, i in enumerate(self._at(entry)):
                _extend(on[out * points + k], [i], [factors[i]])
        base_out = self._side.weighted_sums(base_enc, [on[o] for o in range(places)])
        theirs = self._side.weighted_sums(
            packs_enc, [([i * width + g for i in on[o][0]], on[o][1]) for o in range(places) for g in range(width)]
        )
        mine = self._own_packs(base_enc, kept)
        packs_out = [one for o in range(places) for one in (*theirs[o * width : (o + 1) * width], *mine[o])]
        return self._side.refreshed([*base_out, *packs_out, *constant_enc])

    def _own_packs(self, base_enc: Any, kept: NDArray[np.bool_]) -> list[list[Any]]:
        """Packs of this Host's features per outgoing entry and point."""
        step, points, count = self._compiled.step, self._points, self._shape.features[self._party]
        own: _Sums = defaultdict(lambda: ([], []))
        for entry, feature, units in self._compiled.own(kept):
            for k, (i, unit) in enumerate(zip(self._at(entry), units, strict=True)):
                _extend(own[(step.target[entry] * points + k) * count + feature], [i], [unit])
        out = []
        for place in range(step.n_out * points):
            values = iter(self._side.weighted_sums(base_enc, [own[place * count + h] for h in range(count)]))
            out.append(
                [
                    self._side.joined([next(values) for _ in range(held)], self._shape.slot)
                    for held in self._shape.packs(self._party)
                ]
            )
        return out

    def _at(self, entry: int) -> range:
        return range(entry * self._points, (entry + 1) * self._points)

    def _load(self, terms: bytes) -> tuple[Any, Any, Any]:
        """Base, packs and constant."""
        count = len(self._compiled.step.own) * self._points
        ends = count, count * (1 + self._packs)
        loaded = self._side.load_terms(terms, ends[1] + len(self._shape.packs(0)))
        return loaded[: ends[0]], loaded[ends[0] : ends[1]], loaded[ends[1] :]


def _extend(one: tuple[list[int], list[int]], places: Sequence[int], factors: Sequence[int]) -> None:
    one[0].extend(places)
    one[1].extend(factors)
