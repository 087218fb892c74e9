"""The privacy guarantees of OpBoost's noise. Knows parameters and feature kinds, no value.

For a pair of true levels x, x' and every noisy y, ``Pr[y | x] ≤ e^b · Pr[y | x']`` with

- Global-Map: b = ε·t, where t = |x - x'| (distance-based LDP);
- Adj-Map (partition-dLDP): b = t·ε_ner in one partition, b = d·ε_prt + (θ-1)·ε_ner in partitions that are d ≤ ⌈t/θ⌉ apart;
- Local-Map: b = t·ε in one partition; different partitions are told apart with certainty, b = ∞.

A yes-or-no column has b = ε/2, a categorical one b = ε: two of its indicators change. Values of a record are drawn independently, so
the b of a record is the sum over its features. Missing values are disclosed as missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from backend.data.dictionary import Feature, Kind
from backend.protocols.training.opboost.maps import Noise


@dataclass(frozen=True)
class PrivacyFigures:
    """The b of a training's ranks; larger discloses more: e^b bounds the likelihood ratio of two values.

    Attributes
    ----------
    epsilon : float
        As requested.
    neighbours : float
        Worst case over neighbouring levels.
    width : int
        W = R - L, the largest distance.
    feature : float
        Worst case of one numeric feature over the whole width: ε·W under Global-Map; infinite under Local-Map.
    numeric, boolean, categorical : int
        Features of the Hosts by kind.
    record : float
        Worst case of a record with all its features: ε·W·d for d numeric features under Global-Map.
    shown_partitions : int
        Partitions of a numeric feature that are disclosed exactly; 0 unless the map is Local-Map.
    """

    epsilon: float
    neighbours: float
    width: int
    feature: float
    numeric: int
    boolean: int
    categorical: int
    record: float
    shown_partitions: int


def privacy_of(noise: Noise, features: Sequence[Feature]) -> PrivacyFigures:
    """Figures of Hosts' `features` desensitised by `noise`."""
    counts = {kind: sum(f.kind is kind for f in features) for kind in Kind}
    width = noise.levels - 1
    feature = worst(noise, width)
    numeric = counts[Kind.NUMERIC]
    yes_or_no = noise.epsilon * (counts[Kind.BOOLEAN] / 2 + counts[Kind.CATEGORICAL])
    return PrivacyFigures(
        epsilon=noise.epsilon,
        neighbours=worst(noise, 1),
        width=width,
        feature=feature,
        numeric=numeric,
        boolean=counts[Kind.BOOLEAN],
        categorical=counts[Kind.CATEGORICAL],
        record=(numeric * feature if numeric else 0.0) + yes_or_no,
        shown_partitions=noise.levels // noise.theta if noise.map == "local" else 0,
    )


def worst(noise: Noise, distance: int) -> float:
    """Largest b over all pairs of levels that are `distance` apart, 1 … levels-1."""
    return max(bound(noise, x, x + distance) for x in range(noise.levels - distance))


def bound(noise: Noise, first: int, second: int) -> float:
    """The b of one pair of levels; infinite where Local-Map discloses that they differ."""
    apart = abs(first // noise.theta - second // noise.theta)
    if noise.map == "global" or apart == 0:
        return float(noise.step * abs(first - second))
    if noise.map == "local":
        return inf
    return float(Fraction(apart) * noise.jump + (noise.theta - 1) * noise.step)
